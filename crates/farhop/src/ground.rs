//! `farhop ground`: the end near the internet.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use anyhow::Context;
use farhop_events::Bus;
use farhop_ground::{Rights, Speaker};
use farhop_netdev::{Divert, Privileged};
use farhop_settings::{GroundSettings, SettingsError};
use farhop_squeeze::Policy;

use crate::source::Source;
use crate::{first_window, limits, log, transparent};

/// Runs the end near the internet: fetches what remotes ask for and what their pages will need.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// What may be done to images: identity, gentle, httpep or strong; short for --set squeeze.policy=….
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
}

impl Arguments {
    fn settings(&self) -> Result<GroundSettings, SettingsError> {
        self.source.load_with(self.policy.map(|policy| format!("squeeze.policy={policy}")))
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings = arguments.settings()?;
    let log = log::start(settings.log.level);
    let helper = helper(&settings)?.map(Arc::new);
    let first_window = first_window::of(helper.as_ref(), settings.tcp_initial_window);
    let speaker = helper.as_ref().map(|helper| speaker(helper, &settings)).transpose()?.flatten();
    limits::set();
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let reload = || {
        let settings = arguments.settings().map_err(|error| error.to_string())?;
        log.set(settings.log.level);
        Ok(settings)
    };
    Ok(runtime.block_on(farhop_ground::run(
        settings,
        epoch(),
        Bus::new(),
        Rights { speaker, first_window },
        reload,
    ))?)
}

/// Whether some remote's clients may keep their addresses.
fn keeps_addresses(settings: &GroundSettings) -> bool {
    settings.remote.iter().any(|remote| !remote.client_addresses.is_empty())
}

/// Starts the helper that changes networks, if there is anything for it to do.
fn helper(settings: &GroundSettings) -> anyhow::Result<Option<Privileged>> {
    let what = match (keeps_addresses(settings), settings.tcp_initial_window) {
        (true, _) => "keeping clients' addresses (client_addresses)",
        (false, Some(_)) => first_window::WHAT,
        (false, None) => return Ok(None),
    };
    transparent::privileged(what).map(Some)
}

/// Has the helper give sockets with clients' addresses, if some remote's clients may keep theirs.
fn speaker(helper: &Arc<Privileged>, settings: &GroundSettings) -> anyhow::Result<Option<Speaker>> {
    if !keeps_addresses(settings) {
        return Ok(None);
    }
    let helper = Arc::clone(helper);
    helper.divert(&Divert { mark: settings.mark, catch: None }).context("client_addresses")?;
    // This end has no right to start another, and to connect as itself would be another address than what was agreed on.
    helper.watch(|how| {
        tracing::error!(
            "the helper that gives sockets with clients' addresses has {how}: tunnels of clients to whom their addresses are \
             granted are refused until ground is started again"
        );
    })?;
    Ok(Some(Arc::new(move |address| helper.speak(address).map(TcpStream::from).map_err(io::Error::other))))
}

/// A number that no earlier process of this end had.
pub(crate) fn epoch() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
