//! `farhop status` and `farhop control`: talk to a running end over its control socket.

use std::path::PathBuf;

use anyhow::Context;
use farhop_control::{Client, Told};
use serde_json::{Value, json};

use crate::output::say;

/// Shows what a running end is doing.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArguments {
    /// The end's control socket, as its settings name it.
    socket: PathBuf,
}

/// Sends a command to a running end. `commands` lists what it knows, `subscribe` prints events as they happen.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The end's control socket, as its settings name it.
    socket: PathBuf,
    /// The command.
    command: String,
    /// What the command takes, as JSON.
    #[arg(value_name = "JSON", value_parser = read_json)]
    args: Option<Value>,
}

fn read_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("not JSON ({error}); write it like '{{\"seconds\":5}}'"))
}

pub(crate) fn status(arguments: &StatusArguments) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let mut client = Client::connect(&arguments.socket).await?;
        let status = client.call("status", Value::Null).await?;
        let counters = client.call("counters", Value::Null).await?;
        say(&pretty(&shown(status, counters))?)
    })
}

/// What a link manager counts, by how the counters' names begin.
const OF_LINK: [&str; 3] = ["calls_", "link", "sip_"];

/// An end's answers as they are. A link manager has the counters of the ends besides its own, in which nothing ever happens, and what it
/// says by silence is put into words.
fn shown(mut status: Value, mut counters: Value) -> Value {
    if serde_json::from_value::<farhop_link::Status>(status.clone()).is_ok() {
        for (field, [good, not, none]) in [
            ("sip", ["heard", "not heard", "not to be heard"]),
            ("follow", ["followed", "not followed", "not to be followed"]),
        ] {
            status[field] = match status[field].as_str() {
                None => none.into(),
                Some("") => good.into(),
                Some(why) => format!("{not}: {why}").into(),
            };
        }
        if let Some(counters) = counters.as_object_mut() {
            counters.retain(|name, _| OF_LINK.iter().any(|of| name.starts_with(of)));
        }
    }
    json!({ "status": status, "counters": counters })
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let mut client = Client::connect(&arguments.socket).await?;
        if arguments.command != "subscribe" {
            let args = arguments.args.clone().unwrap_or(Value::Null);
            return say(&pretty(&client.call(&arguments.command, args).await?)?);
        }
        let mut events = client.subscribe().await?;
        while let Some(told) = events.next().await? {
            say(&match told {
                Told::Event(event) => serde_json::to_string(&event)?,
                Told::Missed(missed) => json!({ "missed": missed }).to_string(),
            })?;
        }
        Ok(())
    })
}

fn pretty(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)?)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_manager_shows_what_is_its_own_and_says_it_in_words() {
        let counters = farhop_events::Bus::new().counters().snapshot();
        let mut status = json!({
            "interface": "sat0", "link_bps": 1, "shaped_bps": 1, "in_force": true, "trouble": null, "share_bps": 1,
            "held_bps": 0, "calls": 0, "sip": "", "follow": null,
        });
        let said = shown(status.clone(), counters.clone());
        assert_eq!(
            (&said["status"]["sip"], &said["status"]["follow"]),
            (&json!("heard"), &json!("not to be followed"))
        );
        let mut own: Vec<_> = said["counters"].as_object().unwrap().keys().map(String::as_str).collect();
        own.sort_unstable();
        assert_eq!(
            own,
            [
                "calls_admitted",
                "calls_lapsed",
                "calls_refused",
                "calls_released",
                "link_rates",
                "links_in_force",
                "links_lost",
                "sip_ignored",
                "sip_unplaced"
            ]
        );
        status["sip"] = "it needs CAP_NET_RAW".into();
        assert_eq!(shown(status, counters.clone())["status"]["sip"], "not heard: it needs CAP_NET_RAW");
        let end = json!({"end": "remote"});
        assert_eq!(shown(end.clone(), counters.clone()), json!({"status": end, "counters": counters}));
    }
}
