//! `farhop local`: both ends in this process with the link between them in software. The same remote, carrier
//! and ground as two processes run; only the sockets below QUIC are joined by the link's model.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use farhop_authority::{Authority, Terms};
use farhop_control::Socket;
use farhop_events::Bus;
use farhop_ground::{Ground, path_plan};
use farhop_orbit::Profile;
use farhop_remote::Reach;
use farhop_settings::{CarrierKind, Cidr, LocalSettings, is_given, load};
use farhop_squeeze::Policy;
use farhop_transport::identity::Identity;
use farhop_transport::path::End;
use farhop_transport::quic::{Listener, Peers};
use farhop_transport::socket::link;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::ground::epoch;
use crate::{ca, log, output};

/// Runs both ends on this machine with a satellite link in software between them.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the proxy listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3128")]
    listen: SocketAddr,
    /// The link between the ends.
    #[arg(long, value_name = "LINK", default_value = "none", value_parser = farhop_compare::links())]
    link: Profile,
    /// An address range to fetch from although it is private or loopback, such as 127.0.0.0/8.
    #[arg(long, value_name = "CIDR", value_parser = range)]
    allow: Vec<String>,
    /// Opens a control socket for the remote end here: status, counters, events and commands. Ground's is opened where
    /// `ground.control` is set.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// A settings file with the tables `remote` and `ground`; `farhop check --sample local` prints one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What may be done to images: identity, gentle, httpep or strong; short for --set ground.squeeze.policy=….
    #[arg(long, value_name = "POLICY")]
    policy: Option<Policy>,
    /// Answers HTTPS with a CA made for this run, so that it becomes as quick as HTTP for those who trust that CA.
    #[arg(long)]
    intercept: bool,
    /// Where the certificate of that CA goes (PEM), for a browser or program to trust.
    #[arg(long, value_name = "FILE", requires = "intercept")]
    ca_out: Option<PathBuf>,
    /// Sets one value over the file, such as ground.squeeze.zstd_level=3.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

pub(crate) fn range(text: &str) -> Result<String, String> {
    let wrong = |()| "not an address range; write it like 127.0.0.0/8".to_owned();
    text.parse().map(|range: Cidr| range.to_string()).map_err(wrong)
}

impl Arguments {
    /// The options as settings, behind those that `--set` gives.
    fn settings(&self) -> anyhow::Result<Asked> {
        // Of a link that has no name in settings the ends find out all by themselves.
        let profile = if self.link.is_preset() { &self.link.name } else { "auto" };
        let mut sets = vec![
            format!("remote.listen=\"{}\"", self.listen),
            format!("remote.link.profile=\"{profile}\""),
            format!("ground.link.profile=\"{profile}\""),
        ];
        if !self.allow.is_empty() {
            sets.push(format!("ground.allow=\"{}\"", self.allow.join(",")));
        }
        if let Some(control) = &self.control {
            let control = std::path::absolute(control).context("control")?;
            sets.push(format!("remote.control={}", serde_json::json!(control.to_string_lossy())));
        }
        if self.intercept {
            sets.push("remote.interception.enabled=true".into());
        }
        sets.extend(self.policy.map(|policy| format!("ground.squeeze.policy={policy}")));
        sets.extend(self.sets.iter().cloned());
        let file = self.config.as_deref();
        let settings = load(file, &sets)?;
        // Their defaults would put sockets where nobody has asked for any.
        let [remote, ground] =
            [is_given(file, &sets, "remote.control")?, is_given(file, &sets, "ground.control")?];
        Ok(Asked { settings, controls: Controls { remote, ground } })
    }
}

/// What was asked for.
struct Asked {
    settings: LocalSettings,
    controls: Controls,
}

/// Which ends have a control socket.
struct Controls {
    remote: bool,
    ground: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Asked { settings, controls } = arguments.settings()?;
    log::start(settings.remote.log.level);
    let authority = match arguments.intercept {
        true => {
            Some(Arc::new(Authority::ephemeral(&Terms { name: "Farhop local".into(), ..Terms::default() })?))
        }
        false => ca::authority(&settings.remote)?,
    };
    if let (Some(file), Some(authority)) = (&arguments.ca_out, &authority) {
        ca::write(file, authority.certificate().pem().as_bytes())?;
    }
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    runtime.block_on(serve(settings, arguments.link.clone(), authority, controls))
}

async fn serve(
    settings: LocalSettings,
    link: Profile,
    authority: Option<Arc<Authority>>,
    controls: Controls,
) -> anyhow::Result<()> {
    let LocalSettings { remote, ground } = settings;
    if remote.carrier == CarrierKind::Tcp {
        bail!("remote.carrier: the link between the ends of 'farhop local' carries no TCP; leave it at auto");
    }
    if remote.transparent.enabled {
        bail!(
            "remote.transparent.enabled: 'farhop local' catches no connections; that is for 'farhop remote'"
        );
    }
    // Settings may name another; of a link that is measured they name none.
    let profile = remote.link.profile.clone().unwrap_or(link);
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    let (ground_identity, remote_identity) = (Identity::generate()?, Identity::generate()?);
    let ground_key = ground_identity.public();

    let plan = path_plan(&ground.link);
    let peers = Peers::new([("local".to_owned(), remote_identity.public())])?;
    let listener = Listener::new(at_ground, ground_identity, peers, plan, plan.default_choice(End::Ground))
        .context("the carrier at ground")?;
    let address = listener.local_addr().context("the carrier at ground")?;
    let (control, bus) = (controls.ground.then(|| Socket::open(&ground.control)).transpose()?, Bus::new());
    let ground = Ground::new(ground, epoch(), bus.clone())?;
    ground.show_repairs(listener.repairs());
    ground.learn(listener.learned());
    ground.know(listener.begun());
    let mut tasks = JoinSet::new();
    tasks.spawn(accept(ground.clone(), listener));
    if let Some(control) = control {
        tasks.spawn(farhop_ground::commands(&ground, bus).serve(control));
    }

    let plan = path_plan(&remote.link);
    let in_process = Some((address, ground_key));
    let reach = Reach {
        socket: at_remote,
        identity: remote_identity,
        plan,
        in_process,
        authority,
        first_window: None,
    };
    let running = farhop_remote::start(remote, reach, Bus::new(), controls.remote).await?;
    if !running.connected(Duration::from_secs(30)).await {
        bail!("the ends did not find each other over the link '{}'", profile.name);
    }
    for address in running.addresses() {
        output::say(&format!("farhop: proxy on {address}, link {}", profile.name))?;
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    running.stop().await;
    // Waited for, so that the control socket's file is gone.
    tasks.shutdown().await;
    drop(link);
    Ok(())
}

async fn accept(ground: Ground, mut listener: Listener) {
    while let Some(accepted) = listener.accept().await {
        match accepted {
            Ok(accepted) => {
                let ground = ground.clone();
                tokio::spawn(async move {
                    ground.serve_carrier(accepted.connection, Arc::clone(&accepted.name)).await
                });
            }
            Err(refused) => tracing::warn!("{refused}"),
        }
    }
}
