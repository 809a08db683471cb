//! `farhop models`: what a running ground has learned of pages; shows it, and forgets it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use farhop_control::Client;
use farhop_tuning::time_in_words;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::output::say;

/// Shows or erases what a running ground has learned of pages, to begin with at their next visit.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Lists the hosts of which pages are known.
    List {
        /// Ground's control socket, as its settings name it.
        socket: PathBuf,
        /// Prints it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows what is known of the pages of a host: what follows each, how often, and what is done about it.
    Show {
        /// Ground's control socket, as its settings name it.
        socket: PathBuf,
        /// The host, as its URLs name it; its port says nothing here.
        host: String,
        /// Prints it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Forgets what is known of the pages of a host, or of all, in memory and in the file.
    Erase {
        /// Ground's control socket, as its settings name it.
        socket: PathBuf,
        /// The host, as its URLs name it; its port says nothing here.
        #[arg(required_unless_present = "all")]
        host: Option<String>,
        /// Forgets everything.
        #[arg(long, conflicts_with = "host")]
        all: bool,
    },
}

/// A model, as ground tells of it.
#[derive(Debug, Deserialize)]
struct Model {
    user: Option<String>,
    page: String,
    template: bool,
    visits: u32,
    age_s: u64,
    used_percent: u8,
    withheld: usize,
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    url: String,
    destination: String,
    visits: u32,
    asked: u32,
    delay_ms: u32,
    confidence_percent: u8,
    means: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        match &arguments.command {
            Command::List { socket, json } => {
                let known = ask(socket, Value::Null).await?;
                let text = if *json { serde_json::to_string_pretty(&known)? } else { list(&known) };
                say(&text)
            }
            Command::Show { socket, host, json } => {
                let known = ask(socket, json!({ "site": host })).await?;
                if *json {
                    return say(&serde_json::to_string_pretty(&known)?);
                }
                let models: Vec<Model> =
                    serde_json::from_value(known["models"].clone()).context("ground's answer")?;
                say(&show(host, &models))
            }
            Command::Erase { socket, host, all: _ } => {
                let asked = match host {
                    Some(host) => json!({ "site": host, "erase": true }),
                    None => json!({ "erase": true }),
                };
                let erased = ask(socket, asked).await?;
                say(&format!("{} models forgotten", erased["erased"]))
            }
        }
    })
}

async fn ask(socket: &Path, args: Value) -> anyhow::Result<Value> {
    let mut client = Client::connect(socket).await?;
    let commands = client.call("commands", Value::Null).await?;
    if commands.get("models").is_none() {
        bail!(
            "{} is not ground's socket: pages are learned by ground, name its socket ('control' in its settings; \
             'farhop local' opens it with --set ground.control=ground.sock)",
            socket.display()
        );
    }
    Ok(client.call("models", args).await?)
}

fn list(known: &Value) -> String {
    let files: Vec<&str> = ["file", "own_file"].iter().filter_map(|file| known[file].as_str()).collect();
    let on_disk = if files.is_empty() { "nothing".to_owned() } else { files.join(" and ") };
    let sites = known["sites"].as_object();
    let mut lines = vec![format!(
        "{} hosts, {} bytes in memory; on disk: {}",
        sites.map_or(0, serde_json::Map::len),
        known["bytes"],
        on_disk,
    )];
    let line =
        |(host, models): (&String, &Value)| format!("{:>6}  {host}", models.as_u64().unwrap_or_default());
    lines.extend(sites.into_iter().flatten().map(line));
    lines.join("\n")
}

fn show(host: &str, models: &[Model]) -> String {
    if models.is_empty() {
        return format!("nothing is known of the pages of {host}");
    }
    let all: Vec<String> = models.iter().map(one).collect();
    all.join("\n\n")
}

fn one(model: &Model) -> String {
    let Model { user, page, template, visits, age_s, used_percent, withheld, resources } = model;
    let whose = user.as_ref().map_or("everyone's".to_owned(), |user| format!("of user {user}"));
    let (what, taught) = if *template { ("pages like", "pages") } else { ("page", "visits") };
    let age = time_in_words(Duration::from_secs(*age_s));
    let mut lines = vec![format!("{what} {page} ({whose}): {visits} {taught}, the last {age} ago")];
    lines.push(format!("  of what was sent ahead of late {used_percent} % was used"));
    if *withheld > 0 {
        lines.push(format!("  {withheld} resources serve nobody: fewer than three users have shown them"));
    }
    if !resources.is_empty() {
        lines.push("  asked   after     sure   next     what".into());
    }
    for Resource { url, destination, visits, asked, delay_ms, confidence_percent, means } in resources {
        let next = means.as_deref().unwrap_or("nothing");
        lines.push(format!(
            "  {asked:>2} of {visits:<2} {delay_ms:>5} ms {confidence_percent:>4} %  {next:<7}  {destination} {url}"
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_shown_as_people_read_them() {
        let model = json!([{
            "user": "ship/7", "page": "http://site.test/item/#", "template": true, "visits": 3, "age_s": 120,
            "used_percent": 100, "withheld": 2, "resources": [{
                "url": "http://site.test/app.js", "destination": "script", "mode": "cors", "visits": 3, "asked": 2,
                "delay_ms": 650, "confidence_percent": 67, "means": "promise",
            }],
        }]);
        let text = show("site.test", &serde_json::from_value::<Vec<Model>>(model).unwrap());
        assert!(
            text.starts_with("pages like http://site.test/item/# (of user ship/7): 3 pages, the last "),
            "{text}"
        );
        assert!(
            text.contains("\n   2 of 3    650 ms   67 %  promise  script http://site.test/app.js"),
            "{text}"
        );
        assert_eq!(show("site.test", &[]), "nothing is known of the pages of site.test");
    }

    #[test]
    fn hosts_are_listed_with_what_they_take() {
        let known = json!({ "bytes": 5000, "sites": { "a.test": 2, "b.test": 4 }, "file": null });
        assert_eq!(
            list(&known),
            "2 hosts, 5000 bytes in memory; on disk: nothing\n     2  a.test\n     4  b.test"
        );
        let kept = json!({ "bytes": 0, "sites": {}, "file": "/all", "own_file": "/own" });
        assert_eq!(list(&kept), "0 hosts, 0 bytes in memory; on disk: /all and /own");
    }
}
