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
//!            full pipe            flight ≤ BDP             8 rounds
//! Startup ─────────────▶ Drain ─────────────────▶ Cruise ──────────▶ Probe ◀─┐
//!                          ▲                                          │  └───┘
//!                          └──────────── no more after 2 rounds ──────┘  more: bolder
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use farhop_units::Bytes;

use crate::rounds::{Meter, Round, Rounds};
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
/// Samples so much above the smallest round trip, a few in a row, are a queue.
const QUEUE_SHARE: f64 = 1.125;
const QUEUE_LEAST: Duration = Duration::from_millis(20);
const QUEUE_SAMPLES: u32 = 8;
/// A round trip whose smallest sample is stretched so far, or that loses so much, while nothing is probed
/// says that the rate has fallen.
const FALLEN_STRETCH: f64 = 1.5;
const HEAVY_LOSS: f64 = 0.10;
const ENOUGH_LOST: u64 = 3 * 1200;
/// Beside the BDP: what the peer's delayed acknowledgements keep back, and a few packets.
const ACK_DELAY: Duration = Duration::from_millis(25);
const SLACK_PACKETS: u64 = 4;
/// The smallest round trip is measured again, with the path emptied, when it is older than this.
const STALE: Duration = Duration::from_secs(10);
const REFRESHES: f64 = 1.02;
const EMPTIED: f64 = 0.75;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Bbr {
    mtu: u64,
    window: f64,
    mode: Mode,
    rounds: Rounds,
    meter: Meter,
    /// What the last round trips delivered, in bytes a second.
    rates: VecDeque<f64>,
    min_rtt: Option<Duration>,
    /// When a sample last confirmed it.
    confirmed: Duration,
    /// Samples in a row that show a queue.
    queued: u32,
    cut: bool,
}

/// The machine is drawn in the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// Doubles, up to `ceiling`. `best` is the rate it must surpass, `flat` how often it has not.
    Startup { best: f64, flat: u32, ceiling: f64 },
    /// Lets a queue run empty, `deep` to see the bare round trip, and cruises `then` for so many round trips.
    Drain { deep: bool, then: u32 },
    /// Keeps the path full.
    Cruise { left: u32 },
    /// Looks for more than `from`, the `tries`-th time in a row.
    Probe { from: f64, left: u32, tries: usize },
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
            meter: Meter::default(),
            rates: VecDeque::new(),
            min_rtt: None,
            confirmed: Duration::ZERO,
            queued: 0,
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

    /// The window for `gain` × BDP in flight at the bottleneck.
    fn sized(&self, gain: f64) -> f64 {
        let slack = self.bandwidth() * ACK_DELAY.as_secs_f64() + (SLACK_PACKETS * self.mtu) as f64;
        (gain * self.bdp() + slack).max(self.minimum())
    }

    /// Keeps the smallest round trip; gives whether this sample shows a queue.
    fn sample(&mut self, ack: &Ack) -> bool {
        let sample = ack.sample();
        let min = self.min_rtt.map_or(sample, |min| min.min(sample));
        self.min_rtt = Some(min);
        if sample <= min.mul_f64(REFRESHES) {
            self.confirmed = ack.now;
        }
        sample > min.mul_f64(QUEUE_SHARE).max(min + QUEUE_LEAST)
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
            Mode::Startup { .. } | Mode::Drain { .. } => {}
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
    fn transit(&mut self, ack: &Ack, lately: Option<f64>) {
        let queue = self.queued >= QUEUE_SAMPLES;
        match self.mode {
            Mode::Startup { .. } if queue => {
                // What came through since the queue stands is what the path carries; no whole round trip shows it yet.
                if let Some(rate) = lately {
                    self.rates.push_back(rate);
                    self.mode = Mode::Drain { deep: false, then: CRUISE };
                }
            }
            Mode::Drain { deep, then } => {
                let gain = if deep { EMPTIED } else { 1.0 };
                if ack.in_flight.0 as f64 <= self.sized(gain) {
                    if deep {
                        // What is measured from here on is the bare path, whatever it was before.
                        self.min_rtt = None;
                        self.confirmed = ack.now;
                    }
                    self.mode = Mode::Cruise { left: then };
                }
            }
            Mode::Cruise { .. } if ack.now.saturating_sub(self.confirmed) > STALE => {
                self.mode = Mode::Drain { deep: true, then: CRUISE };
            }
            _ => {}
        }
    }

    fn resize(&mut self, ack: &Ack) {
        self.window = match self.mode {
            // RFC 9002 §7.8: a window that is not used does not grow.
            Mode::Startup { .. } if ack.app_limited => self.window,
            Mode::Startup { ceiling, .. } => (self.window + ack.bytes.0 as f64).min(ceiling),
            Mode::Drain { deep, .. } => self.sized(if deep { EMPTIED } else { 1.0 }),
            Mode::Cruise { .. } => self.sized(1.0),
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
        let span = (self.min_rtt.unwrap_or_default() / 4).max(2 * ACK_DELAY);
        let lately = self.meter.on_ack(ack, span);
        self.transit(ack, lately);
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
        matches!(self.mode, Mode::Startup { .. })
    }

    fn boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
