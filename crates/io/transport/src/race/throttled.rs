//! UDP that passes but is held to a small rate, on its way hither or thither: noticed on a carrier over QUIC, which is then left for
//! one over TCP, and that one for QUIC again unless it does better. What the signs are is decided in `farhop_congestion`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_congestion::{Arrived, Trial, Wanted, Watch};
use farhop_units::{BitRate, Bytes};
use tokio::time::{Instant, sleep};

use super::{Choice, Dialers};
use crate::hop::Hop;
use crate::identity::PublicKey;
use crate::memory::{Way, way_to};
use crate::path::End;
use crate::{Connection, Kind, wake};

/// How often counters are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// While TCP is on trial.
const LOOK_CLOSELY: Duration = Duration::from_millis(100);
/// After TCP has proved no better it is not tried for so long, doubled each time up to the last.
const PAUSE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));

/// What is believed of UDP, across carriers. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Doubts(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// TCP is on trial: whose datagrams were held to which rate.
    held: Option<(End, BitRate)>,
    not_before: Option<Instant>,
    pause: Duration,
}

impl Default for Doubts {
    fn default() -> Self {
        Doubts(Arc::new(Mutex::new(State { held: None, not_before: None, pause: PAUSE.0 })))
    }
}

impl Doubts {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every step under this lock is complete in itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may_try(&self) -> bool {
        self.lock().not_before.is_none_or(|at| at <= Instant::now())
    }

    /// The carrier on trial has gone before a verdict: the next one is called for reasons of its own.
    pub(super) fn drop_trial(&self) {
        self.lock().held = None;
    }

    fn settle(&self, better: bool) {
        let mut state = self.lock();
        state.held = None;
        if better {
            (state.not_before, state.pause) = (None, PAUSE.0);
        } else {
            state.not_before = Some(Instant::now() + state.pause);
            state.pause = (2 * state.pause).min(PAUSE.1);
        }
    }
}

impl Dialers {
    /// Watches a carrier, by what arrives on `connection` while `hop` waits for something. Completes where datagrams seem to
    /// be held back and a ground with one of `keys` answers at `addr` over TCP: with that connection, which is then on trial
    /// ([`Dialers::prove`]). Never completes for a carrier over TCP, or where TCP is not to be ridden.
    pub async fn doubt(
        &self,
        connection: &Connection,
        hop: &Hop,
        addr: SocketAddr,
        keys: &[PublicKey],
    ) -> Connection {
        if self.choice != Choice::Either || connection.kind() == Kind::Tcp {
            return std::future::pending().await;
        }
        let way = way_to(addr);
        let known = |sender| Watch::new(self.known_rate(sender, addr, way));
        let mut watches = [End::Ground, End::Remote].map(|sender| (sender, known(sender)));
        let start = Instant::now();
        loop {
            sleep(LOOK).await;
            self.keep_what_is_known(hop, way);
            // Both look each time.
            let seen = watches.each_mut().map(|(sender, watch)| {
                let held = watch.look(self.arrived(*sender, connection, hop, start));
                held.map(|rate| (*sender, rate))
            });
            let held = seen.into_iter().flatten().next();
            let Some(held) = held.filter(|_| self.doubts.may_try()) else { continue };
            let (rate, way) = (held.1, if held.0 == End::Ground { "from" } else { "to" });
            tracing::info!(target: "farhop", "UDP seems held to {rate} on its way {way} {addr}, trying TCP");
            match self.call(Kind::Tcp, addr, keys).await {
                Ok(other) => {
                    self.doubts.lock().held = Some(held);
                    return other;
                }
                Err(error) => {
                    tracing::debug!(target: "farhop", "TCP is no way out: {error}");
                    self.doubts.settle(false);
                }
            }
        }
    }

    /// Waits until it is clear whether a carrier over TCP does better than the one over QUIC that was left for it; true at
    /// once for one that was not called for that.
    pub async fn prove(&self, connection: &Connection, hop: &Hop) -> bool {
        let Some((sender, held)) = self.doubts.lock().held.filter(|_| connection.kind() == Kind::Tcp) else {
            return true;
        };
        let mut trial = Trial::new(held);
        let start = Instant::now();
        loop {
            if let Some(better) = trial.look(self.arrived(sender, connection, hop, start)) {
                let verdict = if better { "does better: UDP is held back" } else { "does no better" };
                tracing::info!(target: "farhop", "TCP {verdict}");
                self.doubts.settle(better);
                return better;
            }
            sleep(LOOK_CLOSELY).await;
        }
    }

    /// What the path to `addr` carries of what `sender` sends, by settings or by what earlier carriers have measured: among them
    /// may be one over TCP, and those of an earlier process the same `way`.
    fn known_rate(&self, sender: End, addr: SocketAddr, way: Way) -> Option<BitRate> {
        let measured = self.learned().of(addr.ip());
        let kept = self.quic.memory().and_then(|memory| memory.carried(way));
        let (seen, kept) = match sender {
            End::Ground => (measured.receiving, kept.and_then(|kept| kept.hither)),
            End::Remote => (measured.sending, kept.and_then(|kept| kept.thither)),
        };
        self.plan.sending_rate(sender).or(seen.max(kept))
    }

    /// Keeps what a carrier has been seen to carry on its way.
    fn keep_what_is_known(&self, hop: &Hop, way: Way) {
        if let Some(memory) = self.quic.memory() {
            let measured = hop.measured();
            memory.note_carried(way, measured.receiving, measured.sending);
        }
    }

    /// What has come of the datagrams of `sender`, and is wanted of them.
    fn arrived(&self, sender: End, connection: &Connection, hop: &Hop, start: Instant) -> Arrived {
        let now = start.elapsed();
        let round_trip = match connection {
            // What waits for room here makes it longer, too.
            Connection::Quic(_) if sender == End::Ground && hop.is_held_up() => None,
            Connection::Quic(connection) => {
                hop.measured().round_trip.map(|measured| (connection.rtt(), measured.least))
            }
            // No trial asks.
            Connection::Tcp(_) => None,
        };
        if sender == End::Remote {
            let wanted = if hop.is_held_up() { Wanted::Certainly } else { Wanted::Nothing };
            return match connection {
                Connection::Quic(connection) => {
                    let (path, bytes) = (connection.stats().path, wake::acknowledged(connection));
                    let (packets, lost) =
                        (path.sent_packets.saturating_sub(path.lost_packets), path.lost_packets);
                    Arrived { now, bytes, packets, lost, wanted, round_trip }
                }
                Connection::Tcp(connection) => {
                    Arrived { now, bytes: connection.acknowledged(), wanted, ..Arrived::default() }
                }
            };
        }
        // What ground has yet to say only ground knows.
        let wanted = if hop.is_active() { Wanted::Perhaps } else { Wanted::Nothing };
        match connection {
            Connection::Quic(connection) => {
                // Without a repair layer nobody counts what is missing, and nothing is suspected.
                let counters = self.quic.repairs().counters(connection.remote_address()).unwrap_or_default();
                let bytes = Bytes(connection.stats().udp_rx.bytes);
                Arrived {
                    now,
                    bytes,
                    packets: counters.received.sources,
                    lost: counters.received.lost,
                    wanted,
                    round_trip,
                }
            }
            Connection::Tcp(connection) => {
                Arrived { now, bytes: connection.received(), wanted, ..Arrived::default() }
            }
        }
    }
}
