//! `farhop ground`: the end near the internet.

use std::path::PathBuf;

use anyhow::Context;
use farhop_events::Bus;
use farhop_settings::{GroundSettings, load};

use crate::{log, plan};

/// Runs the end near the internet: fetches what remotes ask for and what their pages will need.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The settings file; `farhop check --sample ground` prints one to start from.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Sets one value over the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let read = || load::<GroundSettings>(Some(&arguments.config), &arguments.sets);
    let settings = read()?;
    let log = log::start(settings.log.level);
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let reload = || {
        let settings = read().map_err(|error| error.to_string())?;
        log.set(settings.log.level);
        Ok(settings)
    };
    Ok(runtime.block_on(farhop_ground::run(settings, plan::epoch(), Bus::new(), reload))?)
}
