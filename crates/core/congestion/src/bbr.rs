//! A controller that measures what the path delivers and keeps just that in flight, in the manner of BBR
//! (Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14, 2016;
//! draft-ietf-ccwg-bbr). It is a simplification and named after what it simplifies:
//!
//! - The window alone does the work: it stands at bandwidth × smallest round trip and a little slack, and
//!   acknowledgements clock it. There are no pacing gains, since a carrier's pacer cannot be given a rate.
//! - Bandwidth is what whole round trips delivered, the best of the last ten.
//! - Start-up ends also when a queue shows, not only when the rate stops growing; a probe that finds more
//!   is followed by a bolder one, up to a doubling.
//! - Loss counts only above 10 % in a round trip: less is what a satellite loses in the rain, and a window
//!   that fits the path fills no queue.
//!
//! ```text
//!     ┌─── all came through ───┐
//!     ▼                        │  not all
//! Startup ── delay grows ──▶ Doubt ──────────┐
//!    │           full pipe                   ▼   flight ≤ BDP           8 rounds
//!    └─────────────────────────────────▶ Drain ────────────▶ Cruise ─────────────▶ Probe ◀─┐
//!                                          ▲                                       │  └────┘
//!                                          └───────── no more after 2 rounds ──────┘  more: bolder
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use farhop_units::Bytes;

use crate::rounds::{Round, Rounds};
use crate::window::{MINIMUM_PACKETS, initial};
use crate::{Ack, Controller, Loss};

/// Round trips for which a measured rate is believed: a whole cycle of cruising and probing.
const MEMORY: usize = 12;
/// Round trips between probes. A probe that finds nothing costs an eighth BDP of queue for one round trip.
const CRUISE: u32 = 8;
/// A probe fills the path in one round trip and shows what came through in the next.
const PROBE: u32 = 2;
/// How much more each of the probes of one series tries.
const PROBE_GAINS: [f64; 4] = [1.125, 1.25, 1.5, 2.0];
/// A probe that delivers so much of what it tried beyond has found a wider path.
const FOUND: f64 = 0.7;
/// Start-up ends when the rate grows by less than a quarter for so many round trips.
const STARTUP_GROWTH: f64 = 1.25;
const STARTUP_PATIENCE: u32 = 2;
/// Samples so much above the smallest round trip, a few in a row, may be a queue; more so by this much than what was none.
const QUEUE_SHARE: f64 = 1.125;
const QUEUE_LEAST: Duration = Duration::from_millis(20);
const QUEUE_SAMPLES: u32 = 8;
const JITTER_MARGIN: f64 = 1.25;
/// It is none when so much of what is in flight comes through in so many round trips: start-up has then sent twice of what it
/// did a round trip ago, for which a full path would take two.
const CARRIED: f64 = 0.85;
const DOUBTFUL: f64 = 1.5;
/// A round trip whose smallest sample is stretched so far, or that loses so much, while nothing is probed
/// says that the rate has fallen.
const FALLEN_STRETCH: f64 = 1.5;
const HEAVY_LOSS: f64 = 0.10;
const ENOUGH_LOST: u64 = 3 * 1200;
/// Beside the BDP: what the peer's delayed acknowledgements keep back, and a few packets.
const ACK_DELAY: Duration = Duration::from_millis(25);
const SLACK_PACKETS: [f64; 2] = [2.0, 4.0];
const SLACK_SHARE: f64 = 0.125;
/// The smallest round trip is measured again, with the path emptied, when it is older than this.
const STALE: Duration = Duration::from_secs(10);
const REFRESHES: f64 = 1.02;
const EMPTIED: f64 = 0.85;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Bbr {
    mtu: u64,
    window: f64,
    mode: Mode,
    rounds: Rounds,
    /// What the last round trips delivered, in bytes a second.
    rates: VecDeque<f64>,
    min_rtt: Option<Duration>,
    /// When a sample last confirmed it.
    confirmed: Duration,
    /// Samples in a row that may show a queue.
    queued: u32,
    /// By how much the delay has varied where there was no queue.
    jitter: Duration,
    cut: bool,
}

/// The machine is drawn in the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// Doubles, up to `ceiling`. `best` is the rate it must surpass, `flat` how often it has not.
    Startup { best: f64, flat: u32, ceiling: f64 },
    /// Sends no more than it did until it is clear whether the delay comes from a queue.
    Doubt { doubt: Doubt, ceiling: f64 },
    /// Lets a queue run empty, `deep` to see the bare round trip, and cruises `then` for so many round trips.
    Drain { deep: bool, then: u32 },
    /// Waits for the first packet that finds the queue empty, sent after `since`.
    Bare { since: Duration },
    /// Keeps the path full.
    Cruise { left: u32 },
    /// Looks for more than `from`, the `tries`-th time in a row.
    Probe { from: f64, left: u32, tries: usize },
}

/// What start-up had in flight when the delay grew, and what becomes of it in a round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Doubt {
    since: Duration,
    until: Duration,
    flight: u64,
    acked: u64,
    longest: Duration,
    /// The window.
    tried: f64,
}

impl Doubt {
    fn is_carried(&self) -> bool {
        self.acked as f64 >= CARRIED * self.flight as f64
    }
}

impl Bbr {
    /// A controller for a path that carries packets of `mtu` bytes of UDP payload.
    pub fn new(mtu: Bytes) -> Self {
        let mtu = Bytes(mtu.0.max(1));
        Bbr {
            mtu: mtu.0,
            window: initial(mtu).0 as f64,
            mode: Mode::startup(f64::INFINITY),
            rounds: Rounds::default(),
            rates: VecDeque::new(),
            min_rtt: None,
            confirmed: Duration::ZERO,
            queued: 0,
            jitter: Duration::ZERO,
            cut: false,
        }
    }

    fn minimum(&self) -> f64 {
        (MINIMUM_PACKETS * self.mtu) as f64
    }

    /// Bytes a second: the best that any remembered round trip delivered.
    fn bandwidth(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    fn bdp(&self) -> f64 {
        self.bandwidth() * self.min_rtt.unwrap_or_default().as_secs_f64()
    }

    /// The window for `gain` × BDP in flight at the bottleneck. Where the delay varies, it covers half of by how much;
    /// where a packet takes long, little more than it needs, since each waits in a queue.
    fn sized(&self, gain: f64) -> f64 {
        let mtu = self.mtu as f64;
        let packets = (SLACK_SHARE * self.bdp()).clamp(SLACK_PACKETS[0] * mtu, SLACK_PACKETS[1] * mtu);
        let slack = self.bandwidth() * (ACK_DELAY + self.jitter / 4).as_secs_f64() + packets;
        (gain * self.bdp() + slack).max(self.minimum())
    }

    /// The window at which a queue runs empty, to see the bare round trip.
    fn emptied(&self) -> f64 {
        (EMPTIED * self.bdp()).max(self.minimum())
    }

    /// Keeps the smallest round trip; gives whether this sample shows a queue.
    fn sample(&mut self, ack: &Ack) -> bool {
        let sample = ack.sample();
        let min = self.min_rtt.map_or(sample, |min| min.min(sample));
        self.min_rtt = Some(min);
        if sample <= min.mul_f64(REFRESHES) {
            self.confirmed = ack.now;
        }
        let usual = self.jitter.mul_f64(JITTER_MARGIN);
        sample > min.mul_f64(QUEUE_SHARE).max(min + QUEUE_LEAST).max(min + usual)
    }

    fn remember(&mut self, round: &Round) {
        // What an application that sent little got through says nothing, unless it is more.
        if !round.app_limited || round.rate() > self.bandwidth() {
            self.rates.push_back(round.rate());
            let surplus = self.rates.len().saturating_sub(MEMORY);
            self.rates.drain(..surplus);
        }
    }

    fn on_round(&mut self, round: &Round) {
        self.remember(round);
        let heavy_loss = round.lost_share() > HEAVY_LOSS && round.lost >= ENOUGH_LOST;
        match &mut self.mode {
            Mode::Startup { best, flat, ceiling } if !round.app_limited => {
                if round.rate() >= STARTUP_GROWTH * *best {
                    (*best, *flat) = (round.rate(), 0);
                } else {
                    *flat += 1;
                }
                if *flat >= STARTUP_PATIENCE || heavy_loss {
                    // Above a ceiling that someone else has set nothing has been tried yet.
                    let then = if ceiling.is_finite() && !heavy_loss { 1 } else { CRUISE };
                    self.mode = Mode::Drain { deep: false, then };
                }
            }
            Mode::Doubt { .. } if heavy_loss => self.mode = Mode::Drain { deep: false, then: CRUISE },
            Mode::Startup { .. } | Mode::Doubt { .. } | Mode::Drain { .. } | Mode::Bare { .. } => {}
            Mode::Cruise { left } => {
                *left = left.saturating_sub(1);
                let (left, stretch) = (*left, round.min_rtt.as_secs_f64() / self.base());
                if heavy_loss || stretch > FALLEN_STRETCH {
                    self.fall(round);
                } else if left == 0 && !round.app_limited {
                    self.mode = Mode::Probe { from: self.bandwidth(), left: PROBE, tries: 0 };
                }
            }
            Mode::Probe { from, left, tries } => {
                *left = left.saturating_sub(1);
                let (left, tries) = (*left, *tries);
                let found = 1.0 + FOUND * (PROBE_GAINS[tries] - 1.0);
                if round.rate() >= found * *from && !heavy_loss {
                    let tries = (tries + 1).min(PROBE_GAINS.len() - 1);
                    self.mode = Mode::Probe { from: self.bandwidth(), left: PROBE, tries };
                } else if left == 0 || heavy_loss {
                    self.mode = Mode::Drain { deep: false, then: CRUISE };
                }
            }
        }
    }

    fn base(&self) -> f64 {
        self.min_rtt.unwrap_or_default().as_secs_f64().max(0.001)
    }

    /// The path delivers less than was measured: only what it does now counts.
    fn fall(&mut self, round: &Round) {
        if !round.app_limited {
            self.rates.clear();
            self.rates.push_back(round.rate());
        }
        self.mode = Mode::Drain { deep: false, then: CRUISE };
    }

    /// What the acknowledgement means for the mode, beyond its round trip.
    fn transit(&mut self, ack: &Ack) {
        match &mut self.mode {
            Mode::Startup { ceiling, .. } if self.queued >= QUEUE_SAMPLES => {
                let doubt = Doubt {
                    since: ack.now,
                    until: ack.now + self.min_rtt.unwrap_or_default().mul_f64(DOUBTFUL),
                    tried: self.window,
                    flight: ack.in_flight.0,
                    acked: 0,
                    longest: ack.sample(),
                };
                self.mode = Mode::Doubt { doubt, ceiling: *ceiling };
            }
            Mode::Doubt { doubt, ceiling } => {
                doubt.acked += ack.bytes.0;
                doubt.longest = doubt.longest.max(ack.sample());
                if ack.now >= doubt.until || doubt.is_carried() {
                    let (doubt, ceiling) = (*doubt, *ceiling);
                    self.resolve(ack.now, &doubt, ceiling);
                }
            }
            &mut Mode::Drain { deep, then } => {
                let target = if deep { self.emptied() } else { self.sized(1.0) };
                if ack.in_flight.0 as f64 <= target {
                    self.mode =
                        if deep { Mode::Bare { since: ack.now } } else { Mode::Cruise { left: then } };
                }
            }
            &mut Mode::Bare { since } if ack.sent >= since => {
                // What is measured from here on is the bare path, whatever it was before.
                self.min_rtt = Some(ack.sample());
                self.confirmed = ack.now;
                self.mode = Mode::Cruise { left: CRUISE };
            }
            Mode::Cruise { .. } if ack.now.saturating_sub(self.confirmed) > STALE => {
                self.mode = Mode::Drain { deep: true, then: CRUISE };
            }
            _ => {}
        }
    }

    /// It is clear what the delay came from.
    fn resolve(&mut self, now: Duration, doubt: &Doubt, ceiling: f64) {
        let rate = doubt.acked as f64 / (now - doubt.since).as_secs_f64().max(0.001);
        let capped = doubt.tried >= ceiling;
        if !capped && doubt.is_carried() {
            // The first flight leaves as one burst, whose packets wait for each other.
            if doubt.tried > 4.0 * self.initial_window().0 as f64 {
                let varied = doubt.longest.saturating_sub(self.min_rtt.unwrap_or_default());
                self.jitter = self.jitter.max(varied);
            }
            self.window = doubt.tried;
            self.mode = Mode::startup(ceiling);
        } else {
            // No whole round trip shows yet what the path carries.
            self.rates.push_back(rate);
            self.mode = Mode::Drain { deep: false, then: 1 };
        }
        self.queued = 0;
    }

    fn resize(&mut self, ack: &Ack) {
        self.window = match self.mode {
            // RFC 9002 §7.8: a window that is not used does not grow.
            Mode::Startup { .. } if ack.app_limited => self.window,
            // If there is a queue, this lets it run empty.
            Mode::Doubt { doubt, ceiling } if doubt.tried < ceiling => {
                (doubt.tried / 2.0).max(self.minimum())
            }
            Mode::Doubt { .. } => self.window,
            Mode::Startup { ceiling, .. } => (self.window + ack.bytes.0 as f64).min(ceiling),
            Mode::Drain { deep: true, .. } | Mode::Bare { .. } => self.emptied(),
            Mode::Drain { deep: false, .. } | Mode::Cruise { .. } => self.sized(1.0),
            Mode::Probe { tries, .. } => self.sized(PROBE_GAINS[tries]),
        };
    }
}

impl Mode {
    fn startup(ceiling: f64) -> Mode {
        Mode::Startup { best: 0.0, flat: 0, ceiling }
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, ack: &Ack) {
        if self.sample(ack) {
            self.queued += 1;
        } else {
            self.queued = 0;
        }
        if std::mem::take(&mut self.cut) {
            // The link is back. As after any pause, half of what it carried is a careful start (RFC 9959).
            let half = (self.bdp() / 2.0).max(self.minimum());
            self.mode = Mode::startup(f64::INFINITY);
            self.window = half;
            self.rounds.restart(ack.now);
        }
        if let Some(round) = self.rounds.on_ack(ack) {
            self.on_round(&round);
        }
        self.transit(ack);
        self.resize(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.rounds.on_loss(loss);
        if loss.persistent {
            self.rounds.restart(loss.now);
            self.cut = true;
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.mtu = mtu.0.max(1);
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.window = (window.0 as f64).max(self.minimum());
        let ceiling = threshold.map_or(f64::INFINITY, |threshold| (threshold.0 as f64).max(self.window));
        self.mode = Mode::startup(ceiling);
        self.queued = 0;
    }

    fn window(&self) -> Bytes {
        Bytes(if self.cut { self.minimum() } else { self.window } as u64)
    }

    fn initial_window(&self) -> Bytes {
        initial(Bytes(self.mtu))
    }

    fn is_searching(&self) -> bool {
        matches!(self.mode, Mode::Startup { .. } | Mode::Doubt { .. })
    }

    fn boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
