//! HyStart++ (RFC 9406): slow start ends when round trips lengthen, not when the queue overflows.
//!
//! ```text
//!             RTT up by ≥ clamp(RTT/8, 4 ms, 16 ms)          5 rounds
//! slow start ───────────────────────────────────▶ CSS ────────────────▶ done
//!      ▲                                           │
//!      └──────────────── RTT below that again ─────┘
//! ```

use std::time::Duration;

use crate::Ack;

/// RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// Watches the round trips of one slow start.
#[derive(Debug, Clone, Default)]
pub(crate) struct HyStart {
    round_start: Duration,
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    samples: u32,
    cautious: Option<Cautious>,
}

/// Conservative slow start: the queue may have begun to fill.
#[derive(Debug, Clone)]
struct Cautious {
    baseline: Duration,
    rounds: u32,
}

/// What an acknowledgement in slow start means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// The window grows by this share of what was acknowledged.
    Grow(f64),
    /// Slow start is over.
    Leave,
}

impl HyStart {
    /// Takes an acknowledgement in, RFC 9406 §4.2. The sender is paced, so growth needs no limit (L = ∞).
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> Verdict {
        if ack.sent >= self.round_start && self.next_round(ack.now) {
            return Verdict::Leave;
        }
        let sample = ack.sample();
        self.current_min = Some(self.current_min.map_or(sample, |min| min.min(sample)));
        self.samples += 1;
        if self.samples >= N_RTT_SAMPLE
            && let Some(current) = self.current_min
        {
            self.judge(current);
        }
        Verdict::Grow(if self.cautious.is_some() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 })
    }

    /// Begins a round; true when slow start has been cautious for long enough.
    fn next_round(&mut self, now: Duration) -> bool {
        self.last_min = self.current_min.take();
        self.samples = 0;
        self.round_start = now;
        self.cautious.as_mut().is_some_and(|cautious| {
            cautious.rounds += 1;
            cautious.rounds >= CSS_ROUNDS
        })
    }

    fn judge(&mut self, current: Duration) {
        match (&self.cautious, self.last_min) {
            (None, Some(last)) => {
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + threshold {
                    self.cautious = Some(Cautious { baseline: current, rounds: 0 });
                }
            }
            (Some(cautious), _) if current < cautious.baseline => self.cautious = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack_at;

    /// Plays a round of ten acknowledgements whose round trips took `rtt_ms`.
    fn round(hystart: &mut HyStart, number: u64, rtt_ms: u64) -> Verdict {
        let mut last = Verdict::Leave;
        for packet in 0..10 {
            let now = Duration::from_millis((number + 1) * 1000 + packet);
            let ack = Ack { now, sent: now - Duration::from_millis(rtt_ms), ..ack_at(0) };
            last = hystart.on_ack(&ack);
            if last == Verdict::Leave {
                break;
            }
        }
        last
    }

    #[test]
    fn steady_round_trips_double_the_window_for_ever() {
        let mut hystart = HyStart::default();
        assert!((0..20).all(|number| round(&mut hystart, number, 600) == Verdict::Grow(1.0)));
    }

    #[test]
    fn a_queue_slows_growth_and_ends_it_after_five_rounds() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 600);
        let verdicts: Vec<Verdict> = (1..8).map(|number| round(&mut hystart, number, 620)).collect();
        let (slow, over) = (Verdict::Grow(0.25), Verdict::Leave);
        assert_eq!(verdicts[..6], [slow, slow, slow, slow, slow, over]);
    }

    #[test]
    fn a_false_alarm_is_taken_back() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 600);
        assert_eq!(round(&mut hystart, 1, 620), Verdict::Grow(0.25));
        assert_eq!(round(&mut hystart, 2, 600), Verdict::Grow(1.0));
    }
}
