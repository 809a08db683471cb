//! A controller that measures what the path delivers and keeps just that in flight, in the manner of BBR
//! (Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14, 2016;
//! draft-ietf-ccwg-bbr). It is a simplification and named after what it simplifies:
//!
//! - The window alone does the work: it stands at bandwidth × smallest round trip and a little slack, and
//!   acknowledgements clock it. There are no pacing gains, since a carrier's pacer cannot be given a rate.
//! - Bandwidth is what whole round trips delivered, the best of the last twelve and of two seconds.
//! - A delay that grows is a queue if what was sent beyond does not come through as quickly as before, and none if it stays
//!   when the path is empty. What comes and goes while as much is sent is how the path's delay varies ([`delay`]). Half of
//!   that, as much as packets wait on average, is in the window too, so that the bottleneck does not run dry meanwhile.
//! - Start-up ends also when a queue shows, not only when the rate stops growing; a probe that finds more
//!   is followed by a bolder one, up to a doubling. Where the delay varies much, so does what round trips deliver, and probes
//!   begin bolder.
//! - Loss counts only above 10 % in a round trip: less is what a satellite loses in the rain, and a window
//!   that fits the path fills no queue. What was sent in a search and is lost was its price.
//!
//! ```text
//!     ┌─── all came through ───┐
//!     ▼                        │  not all
//! Startup ── delay grows ──▶ Doubt ──────────┐
//!    │           full pipe                   ▼   flight ≤ BDP           8 rounds
//!    └─────────────────────────────────▶ Drain ────────────▶ Cruise ─────────────▶ Probe ◀─┐
//!                                          ▲                 │    ▲                │  └────┘
//!                                          │   10 s, or delay│    │first packet    │  more: bolder
//!                                          │        has grown▼    │through         │
//!                                          │               Empty ▶ Bare            │
//!                                          └───────── no more after 2 rounds ──────┘
//! ```

mod delay;
mod doubt;

use std::time::Duration;

use farhop_units::Bytes;

use self::delay::{ACK_DELAY, Delay};
use self::doubt::Doubt;
use crate::rounds::{Rates, Round, Rounds};
use crate::window::{MINIMUM_PACKETS, initial};
use crate::{Ack, Controller, Loss};

/// Round trips between probes. A probe that finds nothing costs an eighth BDP of queue for one round trip.
const CRUISE: u32 = 8;
/// A probe fills the path in one round trip and shows what came through in the next.
const PROBE: u32 = 2;
/// How much more each of the probes of one series tries.
const PROBE_GAINS: [f64; 4] = [1.125, 1.25, 1.5, 2.0];
/// A probe that delivers so much of what it tried beyond has found a wider path.
const FOUND: f64 = 0.5;
/// A series begins with a probe that tries so much of how the delay varies beyond, and not with the last.
const PROBE_VARIATION: f64 = 0.25;
const BOLDEST_FIRST: usize = 2;
/// Start-up ends when the rate grows by less than a quarter for so many round trips.
const STARTUP_GROWTH: f64 = 1.25;
const STARTUP_PATIENCE: u32 = 2;
/// The first flight leaves as one burst, whose packets wait for each other.
const BURST: f64 = 4.0;
/// The path may deliver less when all samples are stretched for so long.
const FALLEN_PATIENCE: Duration = Duration::from_millis(500);
/// A round trip that loses so much, and no few packets, says that it does.
const HEAVY_LOSS: f64 = 0.10;
const ENOUGH_LOST: u64 = 3 * 1200;
/// Beside the BDP: an eighth of it, within so many packets, and one less where a packet takes longer than an acknowledgement is
/// held back: there each is acknowledged alone.
const SLACK_SHARE: f64 = 0.125;
const SLACK_PACKETS: [f64; 2] = [2.0, 4.0];
/// Acknowledgements go back for each 1/64 of what fills the path, nine packets at the least (`core/tuning`): twice that at the most
/// is kept back, or what comes while an end does not run.
const ACK_SHARE: f64 = 1.0 / 32.0;
const ACK_PACKETS: f64 = 18.0;
const BUSY: Duration = Duration::from_micros(2500);
/// Share of the BDP at which a queue runs empty, and where the rate may have fallen since it was measured.
const EMPTIED: f64 = 0.85;
const EMPTIED_SURELY: f64 = 0.5;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Bbr {
    mtu: u64,
    window: f64,
    mode: Mode,
    rounds: Rounds,
    rates: Rates,
    delay: Delay,
    /// When a round trip last had samples that were not stretched.
    calm: Duration,
    /// When a search last ended: what was sent before and is lost was its price.
    searched: Duration,
    /// Nothing has come through for long.
    cut: bool,
}

/// The machine is drawn in the module's text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// Doubles, up to `ceiling`. `best` is the rate it must surpass, `flat` how often it has not.
    Startup { best: f64, flat: u32, ceiling: f64 },
    /// Sends no more than it did until it is clear whether the delay comes from a queue.
    Doubt { doubt: Doubt, ceiling: f64 },
    /// Lets a queue run empty, and cruises `then` for so many round trips.
    Drain { then: u32 },
    /// Lets it run empty to see the bare round trip; `before` is the rate that the path had, if it seems to have fallen.
    Empty { before: Option<f64> },
    /// Waits for the first packet that finds the queue empty, sent after `since`.
    Bare { since: Duration, before: Option<f64> },
    /// Keeps the path full, since then.
    Cruise { left: u32, since: Duration },
    /// Looks with a larger window whether the path delivers more than `from`, the `tries`-th time in a row.
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
            rates: Rates::default(),
            delay: Delay::default(),
            calm: Duration::ZERO,
            searched: Duration::ZERO,
            cut: false,
        }
    }

    /// Whether more is sent than was found to pass.
    fn is_trying(&self) -> bool {
        matches!(self.mode, Mode::Startup { .. } | Mode::Doubt { .. } | Mode::Probe { .. })
    }

    fn minimum(&self) -> f64 {
        (MINIMUM_PACKETS * self.mtu) as f64
    }

    /// Bytes a second: the best that any remembered round trip delivered.
    fn bandwidth(&self) -> f64 {
        self.rates.best()
    }

    fn bdp(&self) -> f64 {
        self.bandwidth() * self.delay.min().as_secs_f64()
    }

    /// How long a full packet takes at the bottleneck; zero while its rate is not known.
    fn packet_time(&self) -> Duration {
        let seconds = self.mtu as f64 / self.bandwidth();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// The window for `gain` × BDP in flight at the bottleneck, with what the peer's delayed acknowledgements keep back and what
    /// a delay that varies holds up. Where a packet takes long it is little more, since each waits in a queue.
    fn sized(&self, gain: f64) -> f64 {
        let mtu = self.mtu as f64;
        let alone = if self.packet_time() > ACK_DELAY { 1.0 } else { 0.0 };
        let least = (SLACK_PACKETS[0] - alone) * mtu;
        let packets = (SLACK_SHARE * self.bdp()).clamp(least, SLACK_PACKETS[1] * mtu);
        let varies = self.bandwidth() * (self.delay.variation() / 2).as_secs_f64();
        (gain * self.bdp() + self.held_back() + varies + packets).max(self.minimum())
    }

    /// What the peer's delayed acknowledgements keep back: what comes in [`ACK_DELAY`], or the packets of which each so many are
    /// acknowledged at once. Where these come quickly, ends that are busy with other things count for more.
    fn held_back(&self) -> f64 {
        let packets = (ACK_SHARE * self.bdp()).max(ACK_PACKETS * self.mtu as f64);
        let within = |time: Duration| self.bandwidth() * time.as_secs_f64();
        within(ACK_DELAY).min(packets.max(within(BUSY.max(self.delay.variation()))))
    }

    /// The window at which a queue runs empty, to see the bare round trip.
    fn emptied(&self, before: Option<f64>) -> f64 {
        let share = if before.is_some() { EMPTIED_SURELY } else { EMPTIED };
        let delivered = self.rates.last() * self.delay.min().as_secs_f64();
        (share * delivered).max(self.minimum())
    }

    fn remember(&mut self, now: Duration, round: &Round) {
        let rate = match self.mode {
            Mode::Cruise { .. } | Mode::Probe { .. } => round.steady_rate(),
            _ => round.rate(),
        };
        // What an application that sent little got through says nothing, unless it is more.
        if !round.app_limited || rate > self.bandwidth() {
            self.rates.push(now, rate);
        }
    }

    fn on_round(&mut self, now: Duration, round: &Round) {
        self.remember(now, round);
        if round.min_rtt <= self.delay.longest() {
            self.calm = self.calm.max(now);
        }
        let stretched = now.saturating_sub(self.calm) > FALLEN_PATIENCE && !round.app_limited;
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
                    self.mode = Mode::Drain { then };
                }
            }
            Mode::Doubt { .. } if heavy_loss => self.mode = Mode::Drain { then: CRUISE },
            Mode::Startup { .. } | Mode::Doubt { .. } => {}
            Mode::Drain { .. } | Mode::Empty { .. } | Mode::Bare { .. } => {}
            Mode::Cruise { left, .. } => {
                *left = left.saturating_sub(1);
                let left = *left;
                if heavy_loss {
                    self.fall(now, round);
                } else if stretched {
                    self.suspect(now, round);
                } else if left == 0 && !round.app_limited {
                    self.mode = self.probe(self.first_try());
                }
            }
            Mode::Probe { from, left, tries } => {
                *left = left.saturating_sub(1);
                let (from, left, tries) = (*from, *left, *tries);
                let more = PROBE_GAINS[tries] - 1.0;
                if round.steady_rate() >= (1.0 + FOUND * more) * from && !heavy_loss {
                    self.mode = self.probe((tries + 1).min(PROBE_GAINS.len() - 1));
                } else if stretched {
                    self.suspect(now, round);
                } else if left == 0 || heavy_loss {
                    self.mode = Mode::Drain { then: CRUISE };
                }
            }
        }
    }

    fn probe(&self, tries: usize) -> Mode {
        Mode::Probe { from: self.bandwidth(), left: PROBE, tries }
    }

    /// Which probe a series begins with.
    fn first_try(&self) -> usize {
        let varies = self.delay.variation().as_secs_f64() / self.delay.min().as_secs_f64().max(0.001);
        let stands_out = |gain: &f64| gain - 1.0 >= PROBE_VARIATION * varies;
        PROBE_GAINS.iter().position(stands_out).unwrap_or(BOLDEST_FIRST)
    }

    /// The path delivers less, or takes longer: which of these, the bare round trip tells.
    fn suspect(&mut self, now: Duration, round: &Round) {
        let before = Some(self.bandwidth());
        self.rates.replace(now, round.steady_rate());
        self.mode = Mode::Empty { before };
    }

    /// The path delivers less than was measured: only what it does now counts.
    fn fall(&mut self, now: Duration, round: &Round) {
        if !round.app_limited {
            self.rates.replace(now, round.rate());
        }
        self.mode = Mode::Drain { then: CRUISE };
    }

    /// What the acknowledgement means for the mode, beyond its round trip.
    fn transit(&mut self, ack: &Ack) {
        match self.mode {
            Mode::Startup { ceiling, .. } if self.delay.may_be_queue() && !ack.app_limited => {
                let doubt = Doubt::new(ack, self.delay.min(), self.window);
                self.mode = Mode::Doubt { doubt, ceiling };
            }
            Mode::Doubt { mut doubt, ceiling } => {
                doubt.on_ack(ack);
                self.mode = Mode::Doubt { doubt, ceiling };
                if doubt.has_run_out() {
                    self.window = doubt.tried();
                    self.mode = Mode::startup(ceiling);
                    self.delay.forget_queue();
                } else if doubt.is_over(ack.now) {
                    self.resolve(ack.now, &doubt, ceiling);
                }
            }
            Mode::Drain { then } if ack.in_flight.0 as f64 <= self.sized(1.0) => {
                self.cruise(ack.now, then);
            }
            Mode::Empty { before } if ack.in_flight.0 as f64 <= self.emptied(before) => {
                self.mode = Mode::Bare { since: ack.now, before };
            }
            Mode::Bare { since, before } if ack.sent >= since => self.bare(ack, before),
            Mode::Cruise { since, .. } => {
                if ack.sent >= since {
                    // One packet more or less before it is no variation of the path.
                    let steady = self.packet_time().max(ACK_DELAY);
                    self.delay.swing(ack.sample(), steady);
                }
                if self.delay.is_stale(ack.now) {
                    self.mode = Mode::Empty { before: None };
                }
            }
            _ => {}
        }
    }

    fn cruise(&mut self, now: Duration, left: u32) {
        // What is still in flight may have waited in a queue that is gone.
        self.calm = now + self.delay.min();
        self.delay.settle();
        self.mode = Mode::Cruise { left, since: now };
    }

    /// A packet has seen the path without a queue.
    fn bare(&mut self, ack: &Ack, before: Option<f64>) {
        if self.delay.is_longer_way(ack.sample()) {
            self.delay.lengthen(ack.now, ack.sample());
            return self.search_again(before);
        }
        if let Some(rate) = before.filter(|_| ack.sample() > self.delay.longest()) {
            // It takes longer, and delivers what it did.
            self.rates.push(ack.now, rate);
            self.delay.vary(ack.sample());
        } else {
            self.delay.renew(ack.now, ack.sample());
        }
        self.cruise(ack.now, CRUISE);
    }

    /// The way is longer, and may be another: what it delivers is found again, up to what the old one did.
    fn search_again(&mut self, before: Option<f64>) {
        let ceiling = before.unwrap_or(self.bandwidth()) * self.delay.min().as_secs_f64();
        self.window = self.sized(1.0).min(ceiling.max(self.minimum()));
        self.mode = Mode::startup(ceiling.max(self.window));
    }

    /// It is clear what the delay came from.
    fn resolve(&mut self, now: Duration, doubt: &Doubt, ceiling: f64) {
        if doubt.tried() < ceiling && doubt.is_carried() {
            if self.delay.is_longer_way(doubt.shortest()) {
                self.delay.lengthen(now, doubt.shortest());
            } else if doubt.tried() > BURST * self.initial_window().0 as f64 {
                self.delay.vary(doubt.longest());
            }
            self.window = doubt.tried();
            self.mode = Mode::startup(ceiling);
        } else {
            // No whole round trip shows yet what the path carries.
            self.rates.push(now, doubt.rate(now));
            self.mode = Mode::Drain { then: 1 };
        }
        self.delay.forget_queue();
    }

    fn resize(&mut self, ack: &Ack) {
        self.window = match self.mode {
            // RFC 9002 §7.8: a window that is not used does not grow. What comes next may be large, and all at once: it gets what has
            // passed, and searches on from there.
            Mode::Startup { ceiling, .. } if ack.app_limited && ceiling.is_infinite() => {
                self.window.min(self.sized(1.0).max(BURST * self.initial_window().0 as f64))
            }
            Mode::Startup { .. } if ack.app_limited => self.window,
            // If there is a queue, this lets it run empty.
            Mode::Doubt { doubt, ceiling } if doubt.tried() < ceiling => {
                (doubt.tried() / 2.0).max(self.minimum())
            }
            Mode::Doubt { .. } => self.window,
            Mode::Startup { ceiling, .. } => (self.window + ack.bytes.0 as f64).min(ceiling),
            Mode::Empty { before } | Mode::Bare { before, .. } => self.emptied(before),
            Mode::Drain { .. } | Mode::Cruise { .. } => self.sized(1.0),
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
        self.delay.on_sample(ack.now, ack.sample());
        if std::mem::take(&mut self.cut) {
            // The link is back. As after any pause, half of what it carried is a careful start (RFC 9959).
            let half = (self.bdp() / 2.0).max(self.minimum());
            self.mode = Mode::startup(f64::INFINITY);
            self.window = half;
            self.rounds.restart(ack.now);
        }
        if self.is_trying() {
            self.searched = ack.now;
        }
        if let Some(round) = self.rounds.on_ack(ack) {
            self.on_round(ack.now, &round);
        }
        self.transit(ack);
        self.resize(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.is_trying() || loss.sent > self.searched {
            self.rounds.on_loss(loss);
        }
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
        self.delay.forget_queue();
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
