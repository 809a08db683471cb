//! The carrier to ground: made, watched, made again. Whoever needs it waits here while it is away.

use std::net::SocketAddr;
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_events::{Bus, Event};
use farhop_htotp::frame::Hello;
use farhop_htotp::scheduler::Pace;
use farhop_htotp::session::{Config, Probe, Role};
use farhop_settings::{HostPort, RemoteSettings};
use farhop_transport::hop::{Closed, Hop};
use farhop_transport::identity::PublicKey;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{CarrierError, Dialer};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

/// A ground that may be called.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) address: HostPort,
    pub(crate) keys: Vec<PublicKey>,
}

/// One carrier, while it lasts.
#[derive(Debug, Clone)]
pub(crate) struct Carrier {
    pub(crate) hop: Hop,
    /// Tells the carriers of a process apart: promises are numbered anew on each.
    pub(crate) generation: u64,
    pub(crate) peer: String,
    pub(crate) address: SocketAddr,
    pub(crate) connection: quinn::Connection,
    pub(crate) since: Instant,
}

/// The current carrier, if there is one.
#[derive(Clone)]
pub(crate) struct Uplink(watch::Receiver<Option<Carrier>>);

impl Uplink {
    /// The carrier, waiting for it until `deadline`.
    pub(crate) async fn carrier(&self, deadline: Instant) -> Option<Carrier> {
        let mut current = self.0.clone();
        let usable = |carrier: &Option<Carrier>| carrier.as_ref().is_some_and(|c| c.hop.closed().is_none());
        let found = timeout_at(deadline, current.wait_for(usable)).await;
        found.ok()?.ok()?.clone()
    }

    /// The carrier if it is up now.
    pub(crate) fn now(&self) -> Option<Carrier> {
        self.0.borrow().clone().filter(|carrier| carrier.hop.closed().is_none())
    }
}

/// Keeps a carrier up.
pub(crate) struct Caller {
    pub(crate) dialer: Dialer,
    pub(crate) plan: PathPlan,
    pub(crate) targets: Vec<Target>,
    pub(crate) config: Config,
    pub(crate) longest_pause: Duration,
    pub(crate) bus: Bus,
}

/// How a session of this remote is set up.
pub(crate) fn session_config(settings: &RemoteSettings, plan: &PathPlan, epoch: u64) -> Config {
    let hello = Hello {
        versions: Vec::new(),
        epoch,
        profile: settings.link.profile.clone(),
        agent: format!("farhop/{}", env!("CARGO_PKG_VERSION")),
    };
    let probe = Probe {
        // A sign of life is looked for five times a second, so the probe goes out that much earlier.
        active: settings.probe.active.saturating_sub(Duration::from_millis(200)),
        idle: settings.probe.idle,
        patience: settings.probe.patience + plan.rtt,
    };
    Config {
        hello,
        pace: Pace { rate: plan.sending_rate(End::Remote), ..Pace::default() },
        probe,
        ..Config::default()
    }
}

/// What drives the return link.
pub(crate) fn choice(plan: &PathPlan) -> Choice {
    plan.default_choice(End::Remote)
}

impl Caller {
    /// Calls until the returned future is dropped; `attend` runs while a carrier is up and ends with it.
    pub(crate) fn start<F, A>(self, attend: A) -> (Uplink, impl Future<Output = ()> + Send)
    where
        A: Fn(Carrier) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send,
    {
        let (publish, current) = watch::channel(None);
        (Uplink(current), self.run(publish, attend))
    }

    async fn run<F, A>(self, publish: watch::Sender<Option<Carrier>>, attend: A)
    where
        A: Fn(Carrier) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send,
    {
        let mut generation = 0;
        let mut pause = Duration::ZERO;
        loop {
            for target in &self.targets {
                let carrier = match self.call(target, generation).await {
                    Ok(carrier) => carrier,
                    Err(why) => {
                        tracing::warn!(target: "farhop", "ground {}: {why}", target.name);
                        continue;
                    }
                };
                generation += 1;
                publish.send_replace(Some(carrier.clone()));
                attend(carrier.clone()).await;
                publish.send_replace(None);
                let why = self.why_lost(&carrier);
                self.bus.emit(Event::CarrierDown {
                    peer: carrier.peer.clone(),
                    why,
                    exchanges: carrier.hop.lost(),
                });
                // What lasted is called again at once. A ground that ends each carrier as soon as it is up, for a key
                // that it does not know, is called ever more rarely.
                if carrier.since.elapsed() > self.longest_pause {
                    pause = Duration::ZERO;
                }
            }
            sleep(pause).await;
            // The first attempt after a loss comes at once; a ground that is down is not hammered.
            pause = (pause * 2).clamp(Duration::from_millis(500), self.longest_pause);
        }
    }

    /// What ended a carrier, in the words of whoever knows best.
    fn why_lost(&self, carrier: &Carrier) -> String {
        let closed = carrier.hop.closed();
        match (closed, carrier.connection.close_reason()) {
            (Some(Closed::Lost(_)) | None, Some(error)) => {
                CarrierError::explain(&error, carrier.address, self.dialer.public_key()).to_string()
            }
            (Some(closed), _) => closed.to_string(),
            (None, None) => "ended".into(),
        }
    }

    async fn call(&self, target: &Target, generation: u64) -> Result<Carrier, String> {
        let addresses = tokio::net::lookup_host((target.address.host.as_str(), target.address.port)).await;
        let addresses =
            addresses.map_err(|error| format!("cannot resolve {}: {error}", target.address.host))?;
        let mut last = format!("{} has no address", target.address.host);
        for address in addresses {
            match self.dialer.connect(address, &target.keys).await {
                Ok(connection) => {
                    self.bus.emit(Event::CarrierUp {
                        peer: target.name.clone(),
                        address: address.to_string(),
                        round_trip_ms: connection.rtt().as_millis() as u64,
                    });
                    let hop = Hop::start(connection.clone(), Role::Remote, self.config.clone(), &self.plan);
                    let peer = target.name.clone();
                    return Ok(Carrier { hop, generation, peer, address, connection, since: Instant::now() });
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }
}

/// A ground reached over a socket in this process is called by any address.
pub(crate) fn in_process(name: &str, address: std::net::SocketAddr, key: PublicKey) -> Target {
    let address = HostPort { host: address.ip().to_string(), port: address.port() };
    Target { name: name.into(), address, keys: vec![key] }
}
