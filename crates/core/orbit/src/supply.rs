//! What a serialiser can send when: a steady rate, rates that change at known times, recorded opportunities. One question is
//! answered, when a packet's last bit will have left, for packets in the order in which they are sent.

use farhop_units::{BitRate, Bytes};
use std::sync::Arc;
use std::time::Duration;

use crate::schedule::modulo;
use crate::trace::OPPORTUNITY;
use crate::{Leg, Supply, Trace};

/// Rates that change at known times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// Since when which rate; the first since zero, times rise.
    steps: Vec<(Duration, BitRate)>,
    /// After which it begins anew; `None` keeps the last rate for ever.
    period: Option<Duration>,
}

/// Why steps are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StepsError {
    /// The first is not at zero, or a later one not later than the one before.
    #[error("the first step is at 0 s, and each later than the one before")]
    Order,
    /// They end in silence, or consist of nothing else.
    #[error("nothing would ever pass again: the last rate is 0, and it does not begin anew")]
    Silence,
    /// The period ends before the last step.
    #[error("it begins anew before its last step")]
    Period,
}

impl Steps {
    /// Each rate from its time on; after `period` from the first one again.
    ///
    /// # Errors
    /// They are out of order, or a packet could wait for ever.
    pub fn new(steps: Vec<(Duration, BitRate)>, period: Option<Duration>) -> Result<Steps, StepsError> {
        if steps.first().is_none_or(|first| !first.0.is_zero()) || !steps.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(StepsError::Order);
        }
        let last = steps.last().map_or((Duration::ZERO, BitRate(0)), |last| *last);
        if period.is_some_and(|period| period <= last.0) {
            return Err(StepsError::Period);
        }
        let passes = match period {
            Some(_) => steps.iter().any(|step| step.1.0 > 0),
            None => last.1.0 > 0,
        };
        if passes { Ok(Steps { steps, period }) } else { Err(StepsError::Silence) }
    }

    /// The rate at `now`, and when it changes next.
    pub fn at(&self, now: Duration) -> (BitRate, Option<Duration>) {
        let into = self.period.map_or(now, |period| modulo(now, period));
        let base = now.saturating_sub(into);
        let next = self.steps.partition_point(|step| step.0 <= into);
        let rate =
            next.checked_sub(1).and_then(|index| self.steps.get(index)).map_or(BitRate(0), |step| step.1);
        let end = self.steps.get(next).map(|step| step.0).or(self.period);
        (rate, end.map(|end| base.saturating_add(end)))
    }

    /// The mean over a period; the last rate where it does not begin anew.
    pub fn mean(&self) -> BitRate {
        let Some(period) = self.period else { return self.steps.last().map_or(BitRate(0), |last| last.1) };
        BitRate((self.passed_in(period) as f64 / period.as_nanos() as f64).round() as u64)
    }

    /// In bits times nanoseconds, of which nothing is lost to rounding, however short a step is.
    fn finish(&self, start: Duration, size: Bytes) -> Duration {
        let mut left = u128::from(size.0) * 8 * 1_000_000_000;
        let mut now = start;
        if let Some((period, passed)) = self.period.map(|period| (period, self.passed_in(period))) {
            let whole = left.saturating_sub(1) / passed.max(1);
            left -= whole * passed;
            now = now.saturating_add(nanoseconds(period.as_nanos().saturating_mul(whole)));
        }
        loop {
            let (rate, until) = self.at(now);
            let passed = until.map(|until| u128::from(rate.0) * (until.saturating_sub(now)).as_nanos());
            match (until, passed) {
                (Some(until), Some(passed)) if passed < left && until > now => {
                    left -= passed;
                    now = until;
                }
                _ => return now.saturating_add(nanoseconds(left / u128::from(rate.0.max(1)))),
            }
        }
    }

    /// What passes in one period, in bits times nanoseconds.
    fn passed_in(&self, period: Duration) -> u128 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([period]);
        self.steps.iter().zip(ends).map(|(step, end)| u128::from(step.1.0) * (end - step.0).as_nanos()).sum()
    }
}

/// So long, at most some centuries.
fn nanoseconds(count: u128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

/// A serialiser's supply, and how much of it is used up.
#[derive(Debug)]
pub(crate) enum Serialiser {
    Instant,
    Steady(BitRate),
    Steps(Arc<Steps>),
    Trace {
        trace: Arc<Trace>,
        /// Number of the first opportunity not begun.
        next: u64,
        /// The opportunity begun, and what is left of it.
        moment: Duration,
        left: Bytes,
    },
}

impl Serialiser {
    pub(crate) fn new(leg: &Leg) -> Self {
        match (&leg.supply, leg.rate) {
            (Supply::Steps(steps), _) => Serialiser::Steps(Arc::clone(steps)),
            (Supply::Trace(trace), _) => Serialiser::Trace {
                trace: Arc::clone(trace),
                next: 0,
                moment: Duration::ZERO,
                left: Bytes(0),
            },
            (Supply::Steady, Some(rate)) => Serialiser::Steady(rate),
            (Supply::Steady, None) | (Supply::OnDemand(_), _) => Serialiser::Instant,
        }
    }

    /// When a packet's last bit has left that is begun at `start`, which is no earlier than the last answer.
    pub(crate) fn finish(&mut self, start: Duration, size: Bytes) -> Duration {
        match self {
            Serialiser::Instant => start,
            Serialiser::Steady(rate) => start.saturating_add(rate.time_for(size)),
            Serialiser::Steps(steps) => steps.finish(start, size),
            Serialiser::Trace { trace, next, moment, left } => {
                // What an opportunity has left is gone once its moment is.
                if *moment < start {
                    *left = Bytes(0);
                }
                let mut need = size;
                loop {
                    if left.0 == 0 {
                        if trace.moment(*next) < start {
                            *next = trace.first_from(start).max(*next);
                        }
                        (*moment, *left) = (trace.moment(*next), OPPORTUNITY);
                        *next += 1;
                    }
                    let taken = need.min(*left);
                    (need, *left) = (need - taken, *left - taken);
                    if need.0 == 0 {
                        return *moment;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_packet_takes_as_long_as_the_rates_that_it_meets() {
        // 1 byte per microsecond, nothing, then half of it; and again.
        let steps =
            vec![(Duration::ZERO, BitRate::mbit(8)), (10 * MS, BitRate(0)), (20 * MS, BitRate::mbit(4))];
        let steps = Steps::new(steps, Some(30 * MS)).unwrap();
        assert_eq!(steps.finish(Duration::ZERO, Bytes(1000)), MS);
        assert_eq!(steps.finish(9 * MS, Bytes(2000)), 22 * MS, "half before the silence, half after it");
        assert_eq!(steps.finish(29 * MS, Bytes(1000)), 30 * MS + MS / 2);
        assert_eq!(steps.finish(70 * MS, Bytes(1000)), 82 * MS);
        assert_eq!(steps.mean(), BitRate(4_000_000));
    }

    #[test]
    fn steps_far_shorter_than_a_packet_add_up() {
        let blink = vec![(Duration::ZERO, BitRate(1_000)), (Duration::from_micros(1), BitRate(0))];
        let steps = Steps::new(blink, Some(Duration::from_secs(60))).unwrap();
        // A thousandth of a bit each minute: the last one of eight million is used up a microsecond into its minute.
        let done = Duration::from_secs(60 * 7_999_999) + Duration::from_micros(1);
        assert_eq!(steps.finish(Duration::ZERO, Bytes(1000)), done);
    }

    #[test]
    fn steps_that_would_never_send_again_are_refused() {
        let fast = (Duration::ZERO, BitRate::mbit(8));
        assert_eq!(Steps::new(vec![fast, (MS, BitRate(0))], None), Err(StepsError::Silence));
        assert_eq!(Steps::new(vec![(Duration::ZERO, BitRate(0))], Some(MS)), Err(StepsError::Silence));
        assert_eq!(Steps::new(vec![(MS, BitRate(1))], None), Err(StepsError::Order));
        assert_eq!(Steps::new(vec![fast, (MS, fast.1)], Some(MS)), Err(StepsError::Period));
    }

    #[test]
    fn opportunities_carry_small_packets_together_large_ones_in_parts_and_do_not_wait() {
        let trace = Trace::parse("10\n20\n20\n30\n").unwrap();
        let leg = Leg { supply: Supply::Trace(Arc::new(trace)), ..Leg::transparent() };
        let mut line = Serialiser::new(&leg);
        assert_eq!(line.finish(Duration::ZERO, Bytes(700)), 10 * MS);
        assert_eq!(line.finish(10 * MS, Bytes(700)), 10 * MS, "the same opportunity has room");
        assert_eq!(line.finish(10 * MS, Bytes(1500)), 20 * MS, "100 bytes at 10 ms, the rest at 20 ms");
        assert_eq!(line.finish(25 * MS, Bytes(3000)), 40 * MS, "at 30 ms, then 10 ms into the next round");
    }
}
