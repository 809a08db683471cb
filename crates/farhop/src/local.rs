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
use farhop_remote::{Reach, Running};
use farhop_settings::{CarrierKind, Cidr, LocalSettings, is_given, load};
use farhop_squeeze::Policy;
use farhop_transport::identity::Identity;
use farhop_transport::path::End;
use farhop_transport::quic::{Listener, Peers};
use farhop_transport::socket::link;
use tokio::task::JoinSet;

use crate::ground::epoch;
use crate::log::{self, Log};
use crate::signals::{Signals, Told};
use crate::{ca, output, remote};

/// Runs both ends on this machine with a satellite link in software between them.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where the proxy listens, in place of what the settings file says [default: 127.0.0.1:3128]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The link between the ends, in place of the one that the settings file names [default: none]
    #[arg(long, value_name = "LINK", value_parser = farhop_compare::links())]
    link: Option<Profile>,
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

/// The tables of the settings.
const ENDS: [&str; 2] = ["remote", "ground"];

pub(crate) fn range(text: &str) -> Result<String, String> {
    let wrong = |()| "not an address range; write it like 127.0.0.0/8".to_owned();
    text.parse().map(|range: Cidr| range.to_string()).map_err(wrong)
}

impl Arguments {
    /// The options as settings, behind those that `--set` gives.
    fn settings(&self) -> anyhow::Result<Asked> {
        let file = self.config.as_deref();
        let mut sets = Vec::new();
        sets.extend(self.listen.map(|listen| format!("remote.listen=\"{listen}\"")));
        let [at_remote, at_ground] =
            ENDS.map(|end| is_given(file, &self.sets, &format!("{end}.link.profile")));
        let named = (at_remote?, at_ground?);
        let link = match &self.link {
            // Of a link that has no name in settings the ends find out all by themselves.
            Some(link) => Some(if link.is_preset() { link.name.as_str() } else { "auto" }),
            None => (named == (false, false)).then_some("none"),
        };
        if let Some(link) = link {
            sets.extend(ENDS.map(|end| format!("{end}.link.profile=\"{link}\"")));
        }
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
        let mut settings: LocalSettings = load(file, &sets)?;
        if link.is_none() {
            // There is one link between them: an end whose table names none goes by the other's.
            let (remote, ground) = (&mut settings.remote.link, &mut settings.ground.link);
            match named {
                (true, false) => ground.profile.clone_from(&remote.profile),
                (false, true) => remote.profile.clone_from(&ground.profile),
                _ => {}
            }
        }
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
    let log = log::start(settings.remote.log.level);
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
    runtime.block_on(serve(arguments, settings, authority, controls, &log))
}

async fn serve(
    arguments: &Arguments,
    settings: LocalSettings,
    authority: Option<Arc<Authority>>,
    controls: Controls,
    log: &Log,
) -> anyhow::Result<()> {
    let LocalSettings { remote, ground } = settings.clone();
    if remote.carrier == CarrierKind::Tcp {
        bail!("remote.carrier: the link between the ends of 'farhop local' carries no TCP; leave it at auto");
    }
    if remote.transparent.enabled {
        bail!(
            "remote.transparent.enabled: 'farhop local' catches no connections; that is for 'farhop remote'"
        );
    }
    // Of a link that is measured settings name none.
    let given = arguments.link.clone().map_or_else(|| Profile::named("none"), Ok);
    let profile = remote.link.profile.clone().map_or(given, Ok)?;
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
    let signals = Signals::listen()?;
    for address in running.addresses() {
        output::say(&format!("farhop: proxy on {address}, link {}", profile.name))?;
    }
    until_told(&running, &ground, arguments, settings, log, signals).await;
    running.stop().await;
    // Waited for, so that the control socket's file is gone.
    tasks.shutdown().await;
    drop(link);
    Ok(())
}

/// SIGTERM and SIGINT end it, SIGHUP reads the settings anew.
async fn until_told(
    running: &Running,
    ground: &Ground,
    arguments: &Arguments,
    mut settings: LocalSettings,
    log: &Log,
    mut signals: Signals,
) {
    let started = settings.clone();
    loop {
        match signals.next().await {
            Told::End => return,
            Told::ReadAnew => match arguments.settings() {
                Err(error) => tracing::error!("settings stay as they are: {error:#}"),
                Ok(Asked { settings: new, .. }) => {
                    log.set(new.remote.log.level);
                    remote::take_over(running, &started.remote, &settings.remote, &new.remote);
                    farhop_ground::take_over(ground, &started.ground, new.ground.clone());
                    // A CA that was made for this run stays.
                    if !arguments.intercept {
                        remote::renew_authority(running, &started.remote);
                    }
                    settings = new;
                }
            },
        }
    }
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
