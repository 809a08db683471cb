//! TCP Westwood+: S. Mascolo et al., "TCP Westwood: bandwidth estimation for enhanced transport over wireless links", MobiCom
//! 2001, with one sample in a round trip as L. Grieco, S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno,
//! and Vegas TCP congestion control", ACM CCR 34 (2004). It grows as Reno and after a loss goes to what the path was found to
//! deliver in its shortest round trip, so that a loss that means no congestion costs little.
//!
//! Here to compare with, as its papers have it: slow start without HyStart++, and a filter that needs many long round trips to
//! learn that a path has become faster.

use std::time::Duration;

use farhop_units::Bytes;

use crate::rounds::{Round, Rounds};
use crate::window::Window;
use crate::{Ack, Controller, Loss};

/// What a round trip's sample counts in the low-pass filter, B_k = 7/8 B_(k−1) + 1/8 b_k (CCR 2004 §2; the constant is Linux's).
const NEWEST: f64 = 1.0 / 8.0;
/// As NewReno's, before the first round trip has been measured.
const REDUCTION: f64 = 0.5;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Westwood {
    window: Window,
    rounds: Rounds,
    /// Bytes a second that come through, filtered.
    rate: Option<f64>,
    min_rtt: Option<Duration>,
}

impl Westwood {
    /// A controller for a path that carries packets of `mtu` bytes of UDP payload.
    pub fn new(mtu: Bytes) -> Self {
        Westwood { window: Window::new(mtu), rounds: Rounds::default(), rate: None, min_rtt: None }
    }

    fn sample(&mut self, round: &Round) {
        let sample = round.rate();
        self.rate = match self.rate {
            // The first is all that is known.
            None => Some(sample),
            // What an application that sent little got through says nothing, unless it is more.
            Some(rate) if round.app_limited && sample < rate => Some(rate),
            Some(rate) => Some(rate + NEWEST * (sample - rate)),
        };
    }

    /// Bytes that fill the path without its queue.
    fn fits(&self) -> Option<f64> {
        Some(self.rate? * self.min_rtt?.as_secs_f64())
    }
}

impl Controller for Westwood {
    fn on_ack(&mut self, ack: &Ack) {
        let shortest = ack.min_rtt.map_or(ack.sample(), |min| min.min(ack.sample()));
        self.min_rtt = Some(self.min_rtt.map_or(shortest, |min| min.min(shortest)));
        if let Some(round) = self.rounds.on_ack(ack) {
            self.sample(&round);
        }
        if self.window.may_grow(ack) {
            self.window.grow_as_reno(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.window.begins_recovery(loss) {
            // MobiCom 2001 §3.1: the threshold; the window only where it is larger.
            let fits = self.fits().unwrap_or(self.window.bytes * REDUCTION);
            let before = self.window.bytes;
            self.window.reduce(fits);
            self.window.bytes = self.window.bytes.min(before);
        }
        if loss.persistent {
            // §3.2: the threshold stays, so that slow start leads back to it.
            self.window.collapse();
            self.rounds.restart(loss.now);
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.window.set_mtu(mtu);
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.window.steer(window, threshold);
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
    use crate::testing::{ack_at, loss_at, packets_after_rounds};

    #[test]
    fn after_a_loss_the_window_is_what_the_path_delivers_without_its_queue() {
        let mut westwood = Westwood::new(Bytes(1200));
        westwood.steer(Bytes(240_000), Some(Bytes(0)));
        // 100 packets in each round trip of 600 ms, however many are under way.
        for number in 1..60 {
            for packet in 0..100 {
                westwood.on_ack(&ack_at(number * 600 + packet * 6));
            }
        }
        assert!(westwood.window().0 > 250_000);
        westwood.on_loss(&loss_at(36_100, 36_000));
        let after = westwood.window().0 / 1200;
        assert!((99..=101).contains(&after), "{after}");
    }

    #[test]
    fn a_loss_on_a_path_that_carries_more_costs_nothing() {
        let mut westwood = Westwood::new(Bytes(1200));
        westwood.steer(Bytes(120_000), Some(Bytes(0)));
        let grown = packets_after_rounds(&mut westwood, 1, 8);
        let now = 9 * 600;
        westwood.on_loss(&loss_at(now, now - 10));
        let after = westwood.window().0 / 1200;
        assert!(after > grown[7] - 8 && after <= grown[7], "{grown:?}, {after}");
    }

    #[test]
    fn what_an_application_sent_little_in_is_no_sample() {
        let mut westwood = Westwood::new(Bytes(1200));
        westwood.steer(Bytes(120_000), Some(Bytes(0)));
        packets_after_rounds(&mut westwood, 1, 8);
        let before = westwood.rate;
        for number in 9..40 {
            westwood.on_ack(&Ack { app_limited: true, ..ack_at(number * 600) });
        }
        assert!(westwood.rate >= before.map(|rate| rate * 0.99), "{before:?}, {:?}", westwood.rate);
    }

    #[test]
    fn persistent_congestion_leaves_two_packets_and_slow_start_to_what_the_path_carries() {
        let mut westwood = Westwood::new(Bytes(1200));
        westwood.steer(Bytes(120_000), Some(Bytes(0)));
        packets_after_rounds(&mut westwood, 1, 8);
        westwood.on_loss(&Loss { persistent: true, ..loss_at(9000, 8000) });
        assert_eq!(westwood.window(), Bytes(2_400));
        assert!(westwood.is_searching() && westwood.window.threshold > 100_000.0);
    }
}
