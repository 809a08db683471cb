//! Keeps a carrier to ground up: calls, watches for silence, calls again.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
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
use farhop_transport::quic::Early;
use farhop_transport::race::{Choice as Over, Dialers};
use farhop_transport::{Connection, Kind};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::adrift::Adrift;
use crate::uplink::{Carrier, Uplink};

/// A ground that may be called.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) address: HostPort,
    pub(crate) keys: Vec<PublicKey>,
}

/// After so long a silence others are called too.
const LONG_SILENCE: Duration = Duration::from_secs(10);
/// While QUIC does not pass, the pauses between two attempts grow up to so many times the first.
const LONGEST_PAUSE: u32 = 16;
/// How often a carrier that is left is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A ground that has answered, or may be spoken to before.
struct Called {
    peer: String,
    address: SocketAddr,
    connection: Connection,
    early: Option<Early>,
}

/// Keeps a carrier up.
pub(crate) struct Caller {
    pub(crate) dialers: Dialers,
    pub(crate) plan: PathPlan,
    pub(crate) targets: Vec<Target>,
    pub(crate) config: Config,
    pub(crate) longest_pause: Duration,
    pub(crate) quic_again: Duration,
    pub(crate) adrift: Arc<Adrift>,
    pub(crate) bus: Bus,
}

/// How a session of this remote is set up.
pub(crate) fn session_config(settings: &RemoteSettings, plan: &PathPlan, epoch: u64) -> Config {
    let hello = Hello {
        versions: Vec::new(),
        epoch,
        profile: settings.link.told().into(),
        agent: format!("farhop/{}", env!("CARGO_PKG_VERSION")),
    };
    let probe = Probe {
        // A sign of life is looked for five times a second, so the probe goes out that much earlier.
        active: settings.probe.active.saturating_sub(Duration::from_millis(200)),
        idle: settings.probe.idle,
        patience: settings.probe.patience,
        hold: settings.probe.hold,
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
        F: Future<Output = ()> + Send + 'static,
    {
        let (publish, current) = watch::channel(None);
        (Uplink(current), self.run(publish, attend))
    }

    async fn run<F, A>(self, publish: watch::Sender<Option<Carrier>>, attend: A)
    where
        A: Fn(Carrier) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut generation = 0;
        let mut pause = Duration::ZERO;
        let mut left = JoinSet::new();
        let mut quic_again = self.quic_again;
        let mut in_vain = false;
        loop {
            for target in &self.targets {
                let early = if in_vain { None } else { self.call_early(target).await };
                let mut called = match early {
                    Some(called) => Some(called),
                    None => match self.call(target, Kind::Quic).await {
                        Ok(called) => Some(called),
                        Err(why) => {
                            tracing::warn!(target: "farhop", "ground {}: {why}", target.name);
                            continue;
                        }
                    },
                };
                while let Some(mut connected) = called {
                    let early = connected.early.take();
                    let carrier = self.begin(connected, generation, early.is_none());
                    generation += 1;
                    publish.send_replace(Some(carrier.clone()));
                    let attended = Box::pin(attend(carrier.clone()));
                    called = match early {
                        None => self.ride(&carrier, attended, quic_again, &mut left).await,
                        Some(early) => {
                            self.ride_early(&carrier, attended, early, quic_again, &mut left).await
                        }
                    };
                    if called.is_none() {
                        publish.send_replace(None);
                    }
                    // It costs a while to find out: the next call waits for an answer, over whatever gives one.
                    in_vain = !*carrier.answered.borrow() && called.is_none();
                    quic_again = self.next_try(quic_again, &carrier, called.as_ref());
                    // What lasted is called again at once. A ground that ends each carrier as soon as it is up, for a
                    // key that it does not know, is called ever more rarely.
                    if carrier.since.elapsed() > self.longest_pause {
                        pause = Duration::ZERO;
                    }
                }
            }
            sleep(pause).await;
            // The first attempt after a loss comes at once; a ground that is down is not hammered.
            pause = (pause * 2).clamp(Duration::from_millis(500), self.longest_pause);
        }
    }

    /// As [`Caller::ride`], from before ground has answered.
    async fn ride_early(
        &self,
        carrier: &Carrier,
        mut attended: Pin<Box<dyn Future<Output = ()> + Send>>,
        early: Early,
        quic_again: Duration,
        left: &mut JoinSet<()>,
    ) -> Option<Called> {
        let answer = tokio::select! {
            biased;
            answer = early.answered() => answer,
            // Refused; the next call tells why.
            () = &mut attended => {
                self.adrift.ended(carrier);
                return None;
            }
        };
        match answer {
            Ok(true) => {
                carrier.answered.send_replace(true);
                self.tell(carrier, true);
                self.ride(carrier, attended, quic_again, left).await
            }
            Ok(false) => {
                carrier.hop.forsake();
                attended.await;
                self.adrift.ended(carrier);
                let Carrier { peer, address, connection, .. } = carrier.clone();
                Some(Called { peer, address, connection, early: None })
            }
            Err(why) => {
                tracing::debug!(target: "farhop", "ground {} did not answer: {why}", carrier.peer);
                carrier.hop.replace();
                attended.await;
                self.adrift.ended(carrier);
                None
            }
        }
    }

    /// Attends to a carrier until it ends. Gives what takes its place, if that has been called already: the next user of
    /// the carrier takes that one, and what is under way on this one goes on there if it can.
    async fn ride(
        &self,
        carrier: &Carrier,
        mut attended: Pin<Box<dyn Future<Output = ()> + Send>>,
        quic_again: Duration,
        left: &mut JoinSet<()>,
    ) -> Option<Called> {
        let successor = tokio::select! {
            () = &mut attended => None,
            successor = self.replace(carrier) => {
                carrier.hop.replace();
                attended.await;
                Some(successor)
            }
            (successor, why) = self.better(carrier, quic_again) => {
                while left.try_join_next().is_some() {}
                left.spawn(leave(carrier.clone(), attended, why, Arc::clone(&self.adrift), self.bus.clone()));
                return Some(successor);
            }
        };
        self.adrift.ended(carrier);
        let why = self.why_lost(carrier);
        let exchanges = carrier.hop.lost();
        self.bus.emit(Event::CarrierDown { peer: carrier.peer.clone(), why, exchanges });
        successor
    }

    /// Calls what is better than a carrier that does its work, and says in what. What is under way there may end there.
    async fn better(&self, carrier: &Carrier, quic_again: Duration) -> (Called, &'static str) {
        tokio::select! {
            called = self.improve(carrier, quic_again) => (called, "left for one over QUIC"),
            called = self.outgrow(carrier) => (called, "left for one with windows that fit the path"),
        }
    }

    /// Waits until the path turns out to take much more than the streams of a carrier may carry, and calls the same ground again:
    /// the next carrier begins with what was measured on this one.
    async fn outgrow(&self, carrier: &Carrier) -> Called {
        let Carrier { peer, address, connection, hop, .. } = carrier;
        let Some(target) = self.targets.iter().find(|target| target.name == *peer) else {
            return std::future::pending().await;
        };
        loop {
            sleep(LOOK).await;
            if !hop.has_outgrown(connection.kind()) {
                continue;
            }
            match self.dialers.call(Kind::Quic, *address, &target.keys).await {
                Ok(connection) => {
                    return Called { peer: peer.clone(), address: *address, connection, early: None };
                }
                Err(_) => sleep(self.quic_again).await,
            }
        }
    }

    /// While a carrier rides on TCP for want of better, calls the same ground over QUIC until it answers.
    async fn improve(&self, carrier: &Carrier, mut pause: Duration) -> Called {
        let target = self.targets.iter().find(|target| target.name == carrier.peer);
        let (Kind::Tcp, Over::Either, Some(target)) =
            (carrier.connection.kind(), self.dialers.choice(), target)
        else {
            return std::future::pending().await;
        };
        loop {
            sleep(pause).await;
            pause = (2 * pause).min(LONGEST_PAUSE * self.quic_again);
            let address = carrier.address;
            match self.dialers.call(Kind::Quic, address, &target.keys).await {
                Ok(connection) => {
                    return Called { peer: carrier.peer.clone(), address, connection, early: None };
                }
                Err(error) => tracing::debug!(target: "farhop", "still over TCP: {error}"),
            }
        }
    }

    /// Calls what is to take a carrier's place, with all that is under way on it.
    async fn replace(&self, carrier: &Carrier) -> Called {
        tokio::select! {
            called = self.watch(carrier) => called,
            called = self.doubt(carrier) => called,
        }
    }

    /// Calls over TCP while a carrier rides on UDP that seems held back, and over QUIC again when TCP, tried for that, does no
    /// better.
    async fn doubt(&self, carrier: &Carrier) -> Called {
        let Carrier { peer, address, connection, hop, .. } = carrier;
        let Some(target) = self.targets.iter().find(|target| target.name == *peer) else {
            return std::future::pending().await;
        };
        let connection = match connection.kind() {
            Kind::Quic => self.dialers.doubt(connection, hop, *address, &target.keys).await,
            Kind::Tcp if self.dialers.prove(connection, hop).await => std::future::pending().await,
            Kind::Tcp => loop {
                match self.dialers.call(Kind::Quic, *address, &target.keys).await {
                    Ok(connection) => break connection,
                    Err(_) => sleep(self.quic_again).await,
                }
            },
        };
        Called { peer: peer.clone(), address: *address, connection, early: None }
    }

    /// Watches a carrier for silence. It is worth waiting for, with all that is under way on it; but when it is silent for
    /// long, ground may have moved, or another be within reach: whoever answers first is kept.
    async fn watch(&self, carrier: &Carrier) -> Called {
        let mut silent = carrier.hop.silent();
        loop {
            // Fails only once the hop is gone, which is held here.
            let since = silent.wait_for(Option::is_some).await.ok().and_then(|since| *since);
            let peer = || carrier.peer.clone();
            self.bus.emit(Event::CarrierSilent { peer: peer() });
            tokio::select! {
                called = self.call_elsewhere(&carrier.connection) => return called,
                () = heard(&mut silent) => {}
            }
            let silent_ms = since.map_or(0, |since| since.elapsed().as_millis() as u64);
            self.bus.emit(Event::CarrierBack { peer: peer(), silent_ms });
        }
    }

    /// Calls every ground in turn, after a while and until one answers, first over the kind that is not `silent`.
    async fn call_elsewhere(&self, silent: &Connection) -> Called {
        loop {
            sleep(LONG_SILENCE).await;
            for target in &self.targets {
                if let Ok(called) = self.call(target, silent.kind().other()).await {
                    // It came over the link over which the silent one is probed all the time: that has the first word.
                    sleep(Duration::from_secs(1) + self.plan.round_trip(silent)).await;
                    return called;
                }
            }
        }
    }

    /// What ended a carrier, in the words of whoever knows best.
    fn why_lost(&self, carrier: &Carrier) -> String {
        let closed = carrier.hop.closed();
        let own = self.dialers.public_key();
        match (closed, carrier.connection.close_reason(carrier.address, own)) {
            (Some(Closed::Lost(_)) | None, Some(error)) => error.to_string(),
            (Some(closed), _) => closed.to_string(),
            (None, None) => "ended".into(),
        }
    }

    /// Calls a ground that was reached before, without waiting for its answer.
    async fn call_early(&self, target: &Target) -> Option<Called> {
        let host = (target.address.host.as_str(), target.address.port);
        let address = tokio::net::lookup_host(host).await.ok()?.next()?;
        let early = self.dialers.early(address, &target.keys)?;
        let connection = Connection::Quic(early.connection().clone());
        Some(Called { peer: target.name.clone(), address, connection, early: Some(early) })
    }

    async fn call(&self, target: &Target, favourite: Kind) -> Result<Called, String> {
        let addresses = tokio::net::lookup_host((target.address.host.as_str(), target.address.port)).await;
        let addresses =
            addresses.map_err(|error| format!("cannot resolve {}: {error}", target.address.host))?;
        let mut last = format!("{} has no address", target.address.host);
        for address in addresses {
            match self.dialers.connect(address, &target.keys, favourite).await {
                Ok(connection) => {
                    return Ok(Called { peer: target.name.clone(), address, connection, early: None });
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }

    /// When QUIC is tried again, the next time that a carrier rides on TCP: where it passes only for moments, ever more
    /// rarely.
    fn next_try(&self, last: Duration, carrier: &Carrier, successor: Option<&Called>) -> Duration {
        let rode = carrier.connection.kind();
        match successor.map(|successor| successor.connection.kind()) {
            Some(Kind::Quic) if rode == Kind::Tcp => (2 * last).min(LONGEST_PAUSE * self.quic_again),
            _ if rode == Kind::Quic && carrier.since.elapsed() > last => self.quic_again,
            _ => last,
        }
    }

    fn begin(&self, called: Called, generation: u64, answered: bool) -> Carrier {
        let Called { peer, address, connection, .. } = called;
        let mut config = self.config.clone();
        config.probe.patience += self.plan.round_trip(&connection);
        if connection.kind() == Kind::Tcp {
            // After a cut the kernel tries again ever more rarely: a fresh call is there sooner.
            config.probe.hold = Duration::ZERO;
        }
        let hop = Hop::start_lasting(connection.clone(), Role::Remote, config, &self.plan);
        hop.learn(self.dialers.learned(), address.ip());
        let told = Arc::new(watch::Sender::new(answered));
        let since = Instant::now();
        let carrier = Carrier { hop, generation, peer, address, connection, since, answered: told };
        if answered {
            self.tell(&carrier, false);
        }
        carrier
    }

    fn tell(&self, carrier: &Carrier, early: bool) {
        self.adrift.landed(carrier);
        self.bus.emit(Event::CarrierUp {
            peer: carrier.peer.clone(),
            address: carrier.address.to_string(),
            over: carrier.connection.kind().to_string(),
            round_trip_ms: carrier.connection.rtt().as_millis() as u64,
            early,
        });
    }
}

/// Completes when a silent carrier is heard again.
async fn heard(silent: &mut watch::Receiver<Option<Instant>>) {
    // Fails only once the hop is gone, whose end is noticed elsewhere.
    let _ = silent.wait_for(Option::is_none).await;
}

/// Attends to a carrier that another has taken the place of, until all that is under way on it has ended.
async fn leave(
    carrier: Carrier,
    mut attended: Pin<Box<dyn Future<Output = ()> + Send>>,
    why: &str,
    adrift: Arc<Adrift>,
    bus: Bus,
) {
    let idle = async {
        while carrier.hop.is_active() {
            sleep(LOOK).await;
        }
    };
    tokio::select! {
        () = &mut attended => {}
        () = idle => {
            carrier.hop.close();
            attended.await;
        }
    }
    adrift.ended(&carrier);
    bus.emit(Event::CarrierDown { peer: carrier.peer, why: why.into(), exchanges: carrier.hop.lost() });
}

/// A ground reached over a socket in this process is called by any address.
pub(crate) fn in_process(name: &str, address: std::net::SocketAddr, key: PublicKey) -> Target {
    let address = HostPort { host: address.ip().to_string(), port: address.port() };
    Target { name: name.into(), address, keys: vec![key] }
}
