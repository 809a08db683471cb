//! `farhop lab remotes`: many remotes in one process, each with a carrier of its own to the same ground. The lab starts it itself.

use std::net::SocketAddr;

use farhop_events::Bus;
use farhop_ground::path_plan;
use farhop_remote::{Reach, Running};
use farhop_settings::RemoteSettings;
use farhop_transport::identity::Identity;
use tokio::signal::unix::{SignalKind, signal};

use crate::log;
use crate::remote::socket;
use crate::source::Source;

/// Runs many remotes in one process; started by the lab itself within a testbed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// How many
    #[arg(long, value_name = "NUMBER")]
    count: u16,
    /// Where the first of them listens; each that follows has the next port
    #[arg(long, value_name = "ADDRESS")]
    first: SocketAddr,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings: RemoteSettings = arguments.source.load()?;
    log::start(settings.log.level);
    tokio::runtime::Runtime::new()?.block_on(serve(arguments, &settings))
}

async fn serve(arguments: &Arguments, settings: &RemoteSettings) -> anyhow::Result<()> {
    let identity = Identity::load(&settings.identity)?;
    let plan = path_plan(&settings.link);
    let mut remotes: Vec<Running> = Vec::new();
    for number in 0..arguments.count {
        let mut listen = arguments.first;
        listen.set_port(arguments.first.port().saturating_add(number));
        let settings = RemoteSettings { listen: vec![listen], ..settings.clone() };
        let reach = Reach {
            socket: socket(&plan)?,
            identity: identity.clone(),
            plan,
            in_process: None,
            authority: None,
            first_window: None,
        };
        // The control socket is that of the settings, and there is only one.
        remotes.push(farhop_remote::start(settings, reach, Bus::new(), false).await?);
    }
    signal(SignalKind::terminate())?.recv().await;
    for remote in remotes {
        remote.stop().await;
    }
    Ok(())
}
