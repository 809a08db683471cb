//! What takes a carrier's place: called while it still does its work, since another would do it better, or when it has fallen
//! silent or seems held back.

use std::time::Duration;

use farhop_events::Event;
use farhop_transport::race::Choice as Over;
use farhop_transport::{Connection, Kind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::{Called, Caller, LONGEST_PAUSE, LOOK};
use crate::uplink::Carrier;

/// After so long a silence others are called too.
const LONG_SILENCE: Duration = Duration::from_secs(10);

impl Caller {
    /// Calls what is better than a carrier that does its work, and says in what. What is under way there may end there.
    pub(super) async fn better(&self, carrier: &Carrier, quic_again: Duration) -> (Called, &'static str) {
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
    pub(super) async fn replace(&self, carrier: &Carrier) -> Called {
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
}

/// Completes when a silent carrier is heard again.
async fn heard(silent: &mut watch::Receiver<Option<Instant>>) {
    // Fails only once the hop is gone, whose end is noticed elsewhere.
    let _ = silent.wait_for(Option::is_none).await;
}
