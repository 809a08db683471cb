//! `farhop ground`: the end near the internet.

use anyhow::Context;
use farhop_events::Bus;
use farhop_settings::GroundSettings;

use crate::source::Source;
use crate::{log, plan};

/// Runs the end near the internet: fetches what remotes ask for and what their pages will need.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings: GroundSettings = arguments.source.load()?;
    let log = log::start(settings.log.level);
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let reload = || {
        let settings: GroundSettings = arguments.source.load().map_err(|error| error.to_string())?;
        log.set(settings.log.level);
        Ok(settings)
    };
    Ok(runtime.block_on(farhop_ground::run(settings, plan::epoch(), Bus::new(), reload))?)
}
