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
        say(&pretty(&json!({ "status": status, "counters": counters }))?)
    })
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
