//! Keeps a carrier to ground up: calls ([`call`]), uses what answers for as long as it lasts ([`ride`]) or until there is better
//! ([`successor`]), calls again.

mod call;
mod leaving;
mod ride;
mod successor;

use std::sync::Arc;
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_events::{Bus, Event};
use farhop_htotp::frame::Hello;
use farhop_htotp::scheduler::Pace;
use farhop_htotp::session::{Config, Probe, Role};
use farhop_settings::RemoteSettings;
use farhop_transport::Kind;
use farhop_transport::hop::Hop;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::race::Dialers;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::adrift::Adrift;
use crate::uplink::{Carrier, Left, Uplink};
use call::Called;
pub(crate) use call::{Target, in_process};
use leaving::Leaving;

/// While QUIC does not pass, the pauses between two attempts grow up to so many times the first.
const LONGEST_PAUSE: u32 = 16;
/// How often a carrier is looked at that may be left, or is.
const LOOK: Duration = Duration::from_millis(200);

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
        undoes: true,
        ..Config::default()
    }
}

/// What drives the return link.
pub(crate) fn choice(plan: &PathPlan) -> Choice {
    plan.default_choice(End::Remote)
}

/// Whether to speak before there is an answer would be in vain after a carrier like this: QUIC alone is spoken on so, and it
/// costs a while to find out. The next call waits for an answer then, over whatever gives one.
fn is_in_vain(rode: Kind, answered: bool) -> bool {
    // Who rode on TCP did so since QUIC did not pass, whatever tickets are left from when it did.
    !answered || rode == Kind::Tcp
}

impl Caller {
    /// Calls until the returned future is dropped; `attend` runs while a carrier is up and ends with it.
    pub(crate) fn start<F, A>(self, attend: A) -> (Uplink, impl Future<Output = ()> + Send)
    where
        A: Fn(Carrier) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (publish, current) = watch::channel(None);
        let left = Left::default();
        (Uplink::new(current, left.clone()), self.run(publish, Leaving::new(left), attend))
    }

    async fn run<F, A>(self, publish: watch::Sender<Option<Carrier>>, mut leaving: Leaving, attend: A)
    where
        A: Fn(Carrier) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut generation = 0;
        let mut pause = Duration::ZERO;
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
                        None => self.ride(&carrier, attended, quic_again, &mut leaving).await,
                        Some(early) => {
                            self.ride_early(&carrier, attended, early, quic_again, &mut leaving).await
                        }
                    };
                    if called.is_none() {
                        publish.send_replace(None);
                    }
                    in_vain =
                        called.is_none() && is_in_vain(carrier.connection.kind(), *carrier.answered.borrow());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_speaks_early_only_where_quic_was_heard_last() {
        assert!(!is_in_vain(Kind::Quic, true));
        assert!(is_in_vain(Kind::Quic, false) && is_in_vain(Kind::Tcp, true));
    }
}
