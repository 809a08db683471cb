//! `farhop remote`: the end beside the users.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context;
use farhop_events::Bus;
use farhop_ground::path_plan;
use farhop_netdev::Privileged;
use farhop_remote::{Reach, Running};
use farhop_settings::{RemoteSettings, Role, SettingsError, changes};
use farhop_transport::identity::Identity;
use farhop_transport::path::PathPlan;
use farhop_transport::socket::udp::UdpSocket;

use crate::ca;
use crate::first_window;
use crate::inherited;
use crate::limits;
use crate::log::{self, Log};
use crate::signals::{Signals, Told};
use crate::source::Source;
use crate::transparent::{self, Catching};

/// Runs the end beside the users: a proxy for their browsers.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Catches connections that pass this machine, so that clients need no settings; short for --set
    /// transparent.enabled=true. Needs CAP_NET_ADMIN.
    #[arg(long)]
    transparent: bool,
    /// Catches by a TUN device of this name in place of TPROXY, for kernels without that; short for --set
    /// transparent.enabled=true --set transparent.tun=DEVICE. Name the users' devices in transparent.interfaces.
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, default_missing_value = "farhop0")]
    tun: Option<String>,
    /// What this end does: transport (connections that are caught, as they are), application (HTTP) or both; short for
    /// --set role=….
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: Option<Role>,
}

fn role(text: &str) -> Result<Role, String> {
    text.parse().map_err(|()| "not a role; write transport, application or both".to_owned())
}

impl Arguments {
    fn settings(&self) -> Result<RemoteSettings, SettingsError> {
        let is_caught = self.transparent || self.tun.is_some();
        let transparent = is_caught.then(|| "transparent.enabled=true".to_owned());
        let tun = self.tun.as_ref().map(|name| format!("transparent.tun={name}"));
        let role = self.role.map(|role| format!("role={role}"));
        self.source.load_with(transparent.into_iter().chain(tun).chain(role))
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings = arguments.settings()?;
    let log = log::start(settings.log.level);
    let helper = transparent::helper(&settings)?;
    limits::set();
    let listeners = inherited::listeners()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    runtime.block_on(serve(arguments, settings, listeners, helper, &log))
}

async fn serve(
    arguments: &Arguments,
    settings: RemoteSettings,
    listeners: Vec<TcpListener>,
    helper: Option<Privileged>,
    log: &Log,
) -> anyhow::Result<()> {
    let identity = Identity::load(&settings.identity).context("identity")?;
    let authority = ca::authority(&settings)?.inspect(|authority| ca::warn_of_its_end(authority));
    let plan = path_plan(&settings.link);
    let socket = socket(&plan)?;
    let helper = helper.map(Arc::new);
    let first_window = first_window::of(helper.as_ref(), settings.tcp_initial_window);
    let socket_below = Arc::clone(&socket) as _;
    let reach = Reach { socket: socket_below, identity, plan, in_process: None, authority, first_window };
    let catcher = helper.clone().filter(|_| settings.transparent.enabled);
    let catching = catcher.map(|helper| Catching::listen(helper, &settings)).transpose()?;
    let mut running = if !settings.role.serves_http() {
        farhop_remote::start_on(Vec::new(), settings.clone(), reach, Bus::new(), true).await?
    } else if listeners.is_empty() {
        farhop_remote::start(settings.clone(), reach, Bus::new(), true).await?
    } else {
        let listeners =
            listeners.into_iter().map(tokio::net::TcpListener::from_std).collect::<Result<_, _>>()?;
        farhop_remote::start_on(listeners, settings.clone(), reach, Bus::new(), true).await?
    };
    running.grow_buffers_of(&socket);
    let signals = Signals::listen()?;
    for address in running.addresses() {
        tracing::info!("remote is up, proxy on {address}");
    }
    let catching = match catching {
        None => None,
        Some((catching, taking)) => {
            catching.serve(&mut running, taking);
            catching.set(&settings)?;
            tracing::info!("remote is up, connections that pass are caught, role {}", settings.role);
            Some(catching)
        }
    };
    until_told(&running, catching.as_ref(), arguments, settings, log, signals).await;
    if let Some(Err(error)) = catching.as_ref().map(Catching::let_go) {
        tracing::warn!("connections are caught until the end: {error:#}");
    }
    running.stop().await;
    Ok(())
}

/// A socket that reaches grounds of both families where the system has both.
pub(crate) fn socket(plan: &PathPlan) -> anyhow::Result<Arc<UdpSocket>> {
    let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let old = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    Ok(plan.socket(both).or_else(|_| plan.socket(old))?)
}

/// SIGTERM and SIGINT end it, SIGHUP reads the settings anew.
async fn until_told(
    running: &Running,
    catching: Option<&Catching>,
    arguments: &Arguments,
    mut settings: RemoteSettings,
    log: &Log,
    mut signals: Signals,
) {
    let started = settings.clone();
    loop {
        match signals.next().await {
            Told::End => return,
            Told::ReadAnew => match arguments.settings() {
                Err(error) => tracing::error!("settings stay as they are: {error}"),
                Ok(new) => {
                    log.set(new.log.level);
                    take_over(running, &started, &settings, &new);
                    if let Some(Err(error)) = catching.map(|catching| catching.set(&new)) {
                        tracing::error!("what is caught stays as it is: {error:#}");
                    }
                    renew_authority(running, &started);
                    settings = new;
                }
            },
        }
    }
}

/// Puts into force what of new settings can be, and says so of each that differs.
pub(crate) fn take_over(
    running: &Running,
    started: &RemoteSettings,
    settings: &RemoteSettings,
    new: &RemoteSettings,
) {
    for change in changes(started, settings, new) {
        match change.live {
            true => tracing::info!("{} is in force", change.key),
            false => tracing::warn!("{} needs a restart to be in force", change.key),
        }
    }
    running.reload(new.clone());
}

/// Reads the CA again from where it was as the remote `started`.
pub(crate) fn renew_authority(running: &Running, started: &RemoteSettings) {
    match ca::authority(started) {
        Ok(Some(authority)) => {
            ca::warn_of_its_end(&authority);
            if let Err(error) = running.renew(authority) {
                tracing::error!("the CA stays as it is: {error}");
            }
        }
        Ok(None) => {}
        Err(error) => tracing::error!("the CA stays as it is: {error:#}"),
    }
}
