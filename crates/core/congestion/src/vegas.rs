//! TCP Vegas: L. Brakmo, L. Peterson, "TCP Vegas: end to end congestion avoidance on a global internet", IEEE JSAC 13 (1995). Once
//! in a round trip, with the shortest round trip ever (base) and the shortest of this round (RTT):
//!
//! ```text
//! queued = (W / base − W / RTT) × base      packets of ours that stand in the queue
//! slow start: doubles in every other round; ends when more than GAMMA are queued
//! avoidance:  one packet more below ALPHA, one fewer above BETA
//! ```
//!
//! Losses as in Reno. Here to compare with: over 600 ms its every other round costs seconds, and one packet a round finds no rate.

use std::time::Duration;

use farhop_units::Bytes;

use crate::rounds::{Round, Rounds};
use crate::window::Window;
use crate::{Ack, Controller, Loss};

/// Packets in the queue (JSAC §III.B: α = 2, β = 4; §III.C: γ = 1).
const ALPHA: f64 = 2.0;
const BETA: f64 = 4.0;
const GAMMA: f64 = 1.0;
/// As NewReno's.
const REDUCTION: f64 = 0.5;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Vegas {
    window: Window,
    rounds: Rounds,
    base: Option<Duration>,
    /// Whether slow start grows in this round.
    grows: bool,
}

impl Vegas {
    /// A controller for a path that carries packets of `mtu` bytes of UDP payload.
    pub fn new(mtu: Bytes) -> Self {
        Vegas { window: Window::new(mtu), rounds: Rounds::default(), base: None, grows: true }
    }

    /// Packets of ours that stood in the queue for all of `round` (JSAC §III.B: Diff × base).
    fn queued(&self, round: &Round) -> f64 {
        let base = self.base.unwrap_or(round.min_rtt).min(round.min_rtt);
        let longer = round.min_rtt.saturating_sub(base).as_secs_f64() / round.min_rtt.as_secs_f64();
        self.window.bytes / self.window.mtu * longer
    }

    fn end_of_round(&mut self, round: &Round, may_grow: bool) {
        let queued = self.queued(round);
        let mtu = self.window.mtu;
        if self.window.in_slow_start() {
            if queued > GAMMA {
                self.window.reduce(self.window.bytes - (queued - GAMMA) * mtu);
            } else {
                self.grows = !self.grows;
            }
        } else if queued > BETA {
            self.window.reduce(self.window.bytes - mtu);
        } else if queued < ALPHA && may_grow && !round.app_limited {
            self.window.bytes += mtu;
        }
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        let may_grow = self.window.may_grow(ack);
        if let Some(round) = self.rounds.on_ack(ack) {
            self.end_of_round(&round, may_grow);
        }
        self.base = Some(self.base.map_or(ack.sample(), |base| base.min(ack.sample())));
        if may_grow && self.grows && self.window.in_slow_start() {
            self.window.bytes += ack.bytes.0 as f64;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.window.begins_recovery(loss) {
            self.window.reduce(self.window.bytes * REDUCTION);
        }
        if loss.persistent {
            self.window.collapse();
            self.rounds.restart(loss.now);
            self.grows = true;
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.window.set_mtu(mtu);
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.window.steer(window, threshold);
        self.grows = true;
    }

    fn window(&self) -> Bytes {
        self.window.get()
    }

    fn initial_window(&self) -> Bytes {
        self.window.initial()
    }

    fn is_searching(&self) -> bool {
        self.window.in_slow_start()
    }

    fn boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RTT, ack_at, loss_at, packets_after_rounds};

    /// Acknowledges windows over a path that holds `path` packets and queues the rest.
    fn play(vegas: &mut Vegas, path: u64, rounds: u32) -> Vec<u64> {
        let mut now = Duration::from_secs(10);
        let play_one = |_| {
            let packets = vegas.window().0 / 1200;
            let rtt = RTT * packets.max(path) as u32 / path as u32;
            for packet in 0..packets as u32 {
                let at = now + rtt * packet / packets as u32;
                vegas.on_ack(&Ack { now: at, sent: at - rtt, rtt, ..ack_at(0) });
            }
            now += rtt;
            vegas.window().0 / 1200
        };
        (0..rounds).map(play_one).collect()
    }

    #[test]
    fn slow_start_doubles_in_every_other_round() {
        let mut vegas = Vegas::new(Bytes(1200));
        assert_eq!(packets_after_rounds(&mut vegas, 1, 6), [20, 20, 40, 40, 80, 80]);
    }

    #[test]
    fn slow_start_ends_as_soon_as_packets_queue_and_two_to_four_stay_in_the_queue() {
        let mut vegas = Vegas::new(Bytes(1200));
        let windows = play(&mut vegas, 60, 28);
        assert!(!vegas.is_searching(), "{windows:?}");
        assert!(windows[20..].iter().all(|window| (62..=64).contains(window)), "{windows:?}");
    }

    #[test]
    fn a_longer_queue_is_given_up_packet_by_packet() {
        let mut vegas = Vegas::new(Bytes(1200));
        vegas.base = Some(RTT);
        vegas.steer(Bytes(80 * 1200), Some(Bytes(0)));
        let windows = play(&mut vegas, 60, 30);
        assert!(windows.windows(2).all(|pair| pair[0] >= pair[1] && pair[0] - pair[1] <= 1), "{windows:?}");
        assert!((62..=64).contains(&windows[29]), "{windows:?}");
    }

    #[test]
    fn losses_halve_the_window_and_persistent_ones_begin_anew() {
        let mut vegas = Vegas::new(Bytes(1200));
        vegas.steer(Bytes(120_000), Some(Bytes(0)));
        vegas.on_loss(&loss_at(1300, 1000));
        assert_eq!(vegas.window(), Bytes(60_000));
        vegas.on_loss(&Loss { persistent: true, ..loss_at(9000, 8000) });
        assert_eq!(vegas.window(), Bytes(2_400));
    }
}
