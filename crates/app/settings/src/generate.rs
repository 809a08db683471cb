//! Writes what derives from the definitions: the sample files and `docs/config.md`.

use std::fmt::Write;

use crate::section::{Definition, Described, Section};
use crate::{GroundSettings, LinkManagerSettings, RemoteSettings};

/// A settings file with every setting at its default, explained; those that must be given stand filled
/// with an example, so that the file loads as it is.
pub fn sample<S: Section>(title: &str) -> String {
    let mut out = format!(
        "# {title}\n# Every setting is shown with its default. Remove the # of a line to change it.\n"
    );
    // Peers have to be there; of other lists an example would be in force.
    let mut mark = "";
    for line in described::<S>() {
        match line {
            Described::Table { path, doc } => {
                let is_peer = matches!(&*path, "ground[]" | "remote[]");
                mark = if path.ends_with("[]") && !is_peer { "# " } else { "" };
                let name = match path.strip_suffix("[]") {
                    Some(list) => format!("[[{list}]]"),
                    None => format!("[{path}]"),
                };
                let _ = write!(out, "\n\n# {doc}\n{mark}{name}\n");
            }
            Described::Setting(setting) => {
                out.push('\n');
                for text in wrapped(&setting.doc, 100) {
                    let _ = writeln!(out, "# {text}");
                }
                if let Some(facts) = facts(&setting) {
                    let _ = writeln!(out, "# ({facts})");
                }
                let key = setting.key.rsplit('.').next().unwrap_or_default();
                let _ = match &setting.default {
                    Some(_) if setting.key == EITHER => writeln!(out, "{key} = {}", example(&setting)),
                    Some(default) if mark.is_empty() => {
                        writeln!(out, "#{key} = {}", shown_default(&setting, default))
                    }
                    Some(default) => writeln!(out, "{mark}{key} = {}", shown_default(&setting, default)),
                    None => writeln!(out, "{mark}{key} = {}", example(&setting)),
                };
            }
        }
    }
    out
}

/// Of the two that say a device's rate one has to be there.
const EITHER: &str = "profile";

/// `docs/config.md`.
pub fn reference() -> String {
    let mut out = String::from(concat!(
        "# Settings\n\n",
        "<!-- Written by `farhop check --reference` from the definitions in crates/app/settings; not by hand. -->\n\n",
        "Each end reads one TOML file. Units are written out (`\"8 Mbit/s\"`, `\"650 ms\"`, `\"64 KB\"`); relative paths\n",
        "start at the folder of the file that names them. `--set key=value` stands over the file: `--set link.profile=geo-2m`,\n",
        "`--set ground.0.address=192.0.2.1:4433` for the first `[[ground]]`. `farhop check FILE` tells what is wrong with a file;\n",
        "`farhop check --sample remote` (or `ground`, or `link`) prints one to start from. Settings marked *live* are taken over on SIGHUP, the\n",
        "others on restart.\n\n",
        "`farhop local --config FILE` reads one file with the settings below in two tables, `[remote]` and `[ground]`\n",
        "(`[remote.repository]`, `[ground.bundle]`, …); identities and peers are not needed there,\n\
         and an end has a control socket there only where its `control` is set.\n",
    ));
    out += &section::<RemoteSettings>("remote.toml: the end beside the users");
    out += &section::<GroundSettings>("ground.toml: the end near the internet");
    out += &section::<LinkManagerSettings>("link.toml: the link manager");
    out
}

fn section<S: Section>(title: &str) -> String {
    let head = "\n| setting | type | default | |\n|---|---|---|---|\n";
    let mut out = format!("\n## {title}\n{head}");
    for line in described::<S>() {
        let _ = match line {
            Described::Table { path, doc } => {
                let name = path.strip_suffix("[]").map_or(format!("[{path}]"), |list| format!("[[{list}]]"));
                write!(out, "\n### `{name}`\n{doc}\n{head}")
            }
            Described::Setting(setting) => {
                let key = setting.key.rsplit('.').next().unwrap_or_default();
                let kind =
                    if setting.list { format!("list of {}", setting.kind) } else { setting.kind.into() };
                let default = setting
                    .default
                    .as_ref()
                    .map_or("must be given".into(), |raw| format!("`{}`", shown_default(&setting, raw)));
                let facts = facts(&setting).map_or(String::new(), |facts| format!(" ({facts})"));
                writeln!(out, "| `{key}` | {kind} | {default} | {}{facts} |", setting.doc)
            }
        };
    }
    out
}

fn described<S: Section>() -> Vec<Described> {
    let mut described = Vec::new();
    S::describe("", &mut described);
    described
}

/// Range, link and liveness in one clause, where there is something to say.
fn facts(setting: &Definition) -> Option<String> {
    let mut facts = Vec::new();
    if let Some((low, high)) = setting.range {
        facts.push(format!("{low} to {high}"));
    }
    if let Some(link) = setting.chosen_for {
        facts.push(format!("chosen for {link}"));
    }
    if setting.live {
        facts.push("live".into());
    }
    (!facts.is_empty()).then(|| facts.join("; "))
}

/// Lists are declared as comma-separated text and shown as the TOML arrays that they are.
fn shown_default(setting: &Definition, default: &crate::Raw) -> String {
    if !setting.list {
        return default.to_string();
    }
    let items = default.items().into_iter().map(|item| match &item {
        crate::Raw::Text(text) => text.parse().map(crate::Raw::Integer).unwrap_or(item),
        _ => item,
    });
    crate::Raw::List(items.collect()).to_string()
}

/// What stands in the sample for a setting without default.
fn example(setting: &Definition) -> &'static str {
    match setting.key.rsplit('.').next().unwrap_or_default() {
        "address" => "\"192.0.2.1:4433\"",
        "keys" => "[\"farhop-ed25519 …\"]",
        "profile" => "\"geo-hylas2\"",
        "interface" => "\"sat0\"",
        "service" => "\"bulk\"",
        "policy" => "\"strong\"",
        "of" => "\"backups\"",
        "name" if setting.key.contains("rule[]") => "\"backups\"",
        _ if setting.key.starts_with("ground") => "\"home\"",
        _ => "\"ship\"",
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(word.into());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
