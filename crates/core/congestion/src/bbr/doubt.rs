//! Start-up in doubt whether a delay that has grown comes from a queue: what was in flight then, and what becomes of it.

use std::time::Duration;

use crate::Ack;

/// It comes from none when so much of what is in flight comes through in so many round trips, this long beyond one at least:
/// start-up has then sent twice of what it did a round trip ago, for which a full path would take two.
const CARRIED: f64 = 0.85;
const PATIENCE: f64 = 1.5;
const PATIENCE_LEAST: Duration = Duration::from_millis(60);
/// What comes after a silence of so many round trips has waited together, as acknowledgements do for a return link's capacity: what
/// comes with it, this much later at the most, is waited for. What leaves a queue comes one after the other.
const SILENCE: f64 = 0.5;
const TOGETHER: f64 = 0.25;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Doubt {
    since: Duration,
    until: Duration,
    /// The smallest round trip, and when the last acknowledgement came.
    trip: Duration,
    heard: Duration,
    in_flight: u64,
    acked: u64,
    /// The smallest sample and the largest.
    shortest: Duration,
    longest: Duration,
    tried: f64,
    /// There was nothing more to send: what is in flight runs dry by itself.
    ran_out: bool,
}

impl Doubt {
    /// Begins with an acknowledgement, `window` open and `min` the smallest round trip.
    pub(super) fn new(ack: &Ack, min: Duration, window: f64) -> Self {
        Doubt {
            since: ack.now,
            until: ack.now + min.mul_f64(PATIENCE).max(min + PATIENCE_LEAST),
            trip: min,
            heard: ack.now,
            in_flight: ack.in_flight.0,
            acked: 0,
            shortest: ack.sample(),
            longest: ack.sample(),
            tried: window,
            ran_out: ack.app_limited,
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if ack.now.saturating_sub(self.heard) > self.trip.mul_f64(SILENCE) {
            self.until = self.until.max(ack.now + self.trip.mul_f64(TOGETHER));
        }
        self.heard = ack.now;
        self.acked += ack.bytes.0;
        self.shortest = self.shortest.min(ack.sample());
        self.longest = self.longest.max(ack.sample());
        self.ran_out |= ack.app_limited;
    }

    /// Whether nothing can be learned any more, since too little was sent.
    pub(super) fn has_run_out(&self) -> bool {
        self.ran_out
    }

    /// The smallest sample.
    pub(super) fn shortest(&self) -> Duration {
        self.shortest
    }

    /// Whether all, or nearly all, has come through.
    pub(super) fn is_carried(&self) -> bool {
        self.acked as f64 >= CARRIED * self.in_flight as f64
    }

    pub(super) fn is_over(&self, now: Duration) -> bool {
        now >= self.until || self.is_carried()
    }

    /// The window at its begin.
    pub(super) fn tried(&self) -> f64 {
        self.tried
    }

    /// The largest sample.
    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// Bytes a second that came through.
    pub(super) fn rate(&self, now: Duration) -> f64 {
        self.acked as f64 / now.saturating_sub(self.since).as_secs_f64().max(0.001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::Bytes;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Twenty packets in flight over a round trip of 600 ms, acknowledged at these times after the doubt began: what is thought of
    /// them when it is over.
    fn carried(acked_at: impl Iterator<Item = u64>) -> bool {
        let ack = |now: Duration| Ack {
            now,
            sent: now.saturating_sub(ms(1_300)),
            rtt: ms(1_300),
            min_rtt: None,
            bytes: Bytes(1_200),
            in_flight: Bytes(20 * 1_200),
            app_limited: false,
        };
        let mut doubt = Doubt::new(&ack(ms(5_000)), ms(600), 24_000.0);
        for at in acked_at {
            doubt.on_ack(&ack(ms(5_000 + at)));
            if doubt.is_over(ms(5_000 + at)) {
                break;
            }
        }
        doubt.is_carried()
    }

    #[test]
    fn what_has_waited_together_and_comes_at_once_was_carried() {
        assert!(carried((0..20).map(|packet| 1_250 + 4 * packet)), "after a silence");
        assert!(carried((0..20).map(|packet| 600 + 4 * packet)), "within a round trip");
        assert!(!carried((1..=20).map(|packet| 60 * packet)), "one after the other, of a full queue");
        assert!(!carried((0..20).map(|packet| 950 + 60 * packet)), "nor is a queue none since it was silent");
    }
}
