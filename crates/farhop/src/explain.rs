//! `farhop explain`: the plan for a page, from a running ground or from one made for the purpose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use farhop_control::Client;
use farhop_events::Bus;
use farhop_ground::{Explained, Explanation, Follows, Ground, Learned};
use farhop_settings::{LocalSettings, load};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use url::Url;

use crate::ground::epoch;
use crate::local::range;
use crate::output::say;

/// Shows what ground would promise for a page, in which order, and what it would leave to the browser, and why.
/// Fetches the page and reads it; nothing is sent to anyone else.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The page.
    url: Url,
    /// Whose requests to plan for.
    #[arg(long, value_enum, default_value_t = Browser::Chromium)]
    browser: Browser,
    /// A request field of the browser, such as 'Cookie: a=1'; replaces the one that it sends by itself.
    #[arg(long = "field", value_name = "NAME: VALUE", value_parser = field)]
    fields: Vec<(String, String)>,
    /// Asks the running ground with this control socket, under its settings.
    #[arg(long, value_name = "SOCKET", conflicts_with = "allow")]
    control: Option<PathBuf>,
    /// An address range to fetch from although it is private or loopback, such as 127.0.0.0/8.
    #[arg(long, value_name = "CIDR", value_parser = range)]
    allow: Vec<String>,
    /// Prints the plan as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Browser {
    Chromium,
    Firefox,
    Safari,
}

impl Browser {
    /// Of a request for a document over plain HTTP.
    fn fields(self) -> [(&'static str, &'static str); 5] {
        let (agent, accept) = match self {
            Browser::Chromium => (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/jxl,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
            ),
            Browser::Firefox => (
                "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            ),
            Browser::Safari => (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            ),
        };
        [
            ("user-agent", agent),
            ("accept", accept),
            ("accept-language", "en-US,en;q=0.9"),
            ("accept-encoding", "gzip, deflate"),
            ("upgrade-insecure-requests", "1"),
        ]
    }
}

fn field(text: &str) -> Result<(String, String), String> {
    let wrong = || "not a field; write it like 'Cookie: a=1'".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
    HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
    Ok((name.as_str().to_owned(), value.trim().to_owned()))
}

fn header_map(fields: &BTreeMap<String, String>) -> anyhow::Result<HeaderMap> {
    fields
        .iter()
        .map(|(name, value)| Ok((name.parse::<HeaderName>()?, value.parse::<HeaderValue>()?)))
        .collect()
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut fields: BTreeMap<String, String> =
        arguments.browser.fields().map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    fields.extend(arguments.fields.iter().cloned());
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let plan = runtime.block_on(async {
        match &arguments.control {
            Some(socket) => {
                let mut client = Client::connect(socket).await?;
                let status = client.call("status", Value::Null).await?;
                if status["end"] != "ground" {
                    bail!(
                        "{} is the socket of farhop {}: plans are made by ground, name its socket",
                        socket.display(),
                        status["end"].as_str().unwrap_or("something else")
                    );
                }
                let asked = json!({ "url": arguments.url.as_str(), "fields": fields });
                anyhow::Ok(serde_json::from_value(client.call("explain", asked).await?)?)
            }
            None => {
                let sets = [format!("ground.allow=\"{}\"", arguments.allow.join(","))];
                let settings: LocalSettings = load(None, &sets)?;
                let ground = Ground::new(settings.ground, epoch(), Bus::new())?;
                let fields = header_map(&fields)?;
                ground
                    .explain(&arguments.url, fields)
                    .await
                    .map_err(|why| anyhow!("{}: {why}", arguments.url))
            }
        }
    })?;
    match arguments.json {
        true => say(&serde_json::to_string_pretty(&plan)?),
        false => say(text(&plan).trim_end()),
    }
}

/// The plan as people read it: what is promised in the order in which it is sent, then what is left.
fn text(plan: &Explained) -> String {
    let (mut promised, left): (Vec<&Explanation>, Vec<_>) =
        plan.resources.iter().partition(|resource| resource.urgency.is_some());
    promised.sort_by_key(|resource| resource.urgency);
    let mut lines = vec![format!(
        "{} (status {}): {} promised, {} left to the browser",
        plan.url,
        plan.status,
        promised.len(),
        left.len()
    )];
    lines.extend(plan.notes.iter().map(|note| format!("  {note}")));
    if !promised.is_empty() {
        lines.push("\nurgency  confidence  source            resource".into());
    }
    for resource in promised {
        let urgency = resource.urgency.unwrap_or_default();
        lines.push(format!(
            "{urgency:>7}  {:<10}  {:<16}  {}{}",
            resource.confidence,
            resource.source,
            resource.url,
            named_by(resource)
        ));
    }
    if !left.is_empty() {
        lines.push("\nleft to the browser".into());
    }
    for resource in left {
        let why = resource.left.as_deref().unwrap_or_default();
        lines.push(format!("  {}{}: {why}", resource.url, named_by(resource)));
    }
    lines.extend(plan.learned.iter().filter(|learned| !learned.resources.is_empty()).flat_map(taught));
    if !plan.unread.is_empty() {
        lines.push("\nnot read, so that what they name is not in this plan".into());
        lines.extend(plan.unread.iter().map(|unread| format!("  {unread}")));
    }
    lines.join("\n")
}

/// What one model of the page has to say, the surest first.
fn taught(learned: &Learned) -> Vec<String> {
    let whose = learned.user.as_ref().map_or_else(|| "everyone's".into(), |user| format!("user {user}'s"));
    let of = match &learned.template {
        Some(template) => format!("{} pages like {template}", learned.visits),
        None => format!("{} of this page", learned.visits),
    };
    let mut resources: Vec<&Follows> = learned.resources.iter().collect();
    resources.sort_by_key(|one| std::cmp::Reverse(one.confidence_percent));
    let mut lines = vec![format!("\nlearned from {whose} visits, {of}: done as soon as it is asked for")];
    lines.extend(resources.into_iter().map(|one| {
        let means = one.means.as_deref().unwrap_or("nothing");
        format!("  {means:<8} {:>3} %  {:<8}  {}", one.confidence_percent, one.destination, one.url)
    }));
    lines
}

fn named_by(resource: &Explanation) -> String {
    match resource.named_by.as_str() {
        "document" => String::new(),
        file => format!(" (named by {file})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_visits_have_taught_is_told_surest_first() {
        let follows = |url: &str, confidence_percent, means: Option<&str>| Follows {
            url: url.into(),
            destination: "script".into(),
            confidence_percent,
            means: means.map(Into::into),
        };
        let learned = Learned {
            user: Some("ship/7".into()),
            template: None,
            visits: 3,
            resources: vec![
                follows("http://a.test/b.js", 20, None),
                follows("http://a.test/a.js", 91, Some("push")),
            ],
        };
        let plan = Explained {
            url: "http://a.test/".into(),
            status: 200,
            notes: Vec::new(),
            resources: Vec::new(),
            unread: Vec::new(),
            learned: vec![learned],
        };
        let expected = "http://a.test/ (status 200): 0 promised, 0 left to the browser\n\n\
                        learned from user ship/7's visits, 3 of this page: done as soon as it is asked for\n  \
                        push      91 %  script    http://a.test/a.js\n  \
                        nothing   20 %  script    http://a.test/b.js";
        assert_eq!(text(&plan), expected);
    }
}
