//! The token bucket of a service plan.

use farhop_units::Bytes;
use std::time::Duration;

use crate::Policer;

/// A [`Policer`] in use: full at first.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// When it would be full again if nothing passed. Until then it holds less by what the rate gives in that time, which
    /// says all there is to know without rounding.
    full: Duration,
}

impl Bucket {
    /// Whether a packet conforms; only then it takes its tokens.
    pub(crate) fn takes(&mut self, policer: &Policer, now: Duration, size: Bytes) -> bool {
        let full = self.full.max(now).saturating_add(policer.rate.time_for(size));
        let conforms = full - now <= policer.rate.time_for(policer.burst);
        if conforms {
            self.full = full;
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::BitRate;

    #[test]
    fn a_burst_passes_at_once_and_the_rate_after_it() {
        let policer = Policer { rate: BitRate::mbit(8), burst: Bytes(5000) }; // a byte each microsecond
        let mut bucket = Bucket::default();
        let mut takes = |micros| bucket.takes(&policer, Duration::from_micros(micros), Bytes(1000));
        let passed: Vec<bool> = [0, 0, 0, 0, 0, 0, 999, 1000, 1000, 10_000].map(&mut takes).into();
        assert_eq!(passed, [true, true, true, true, true, false, false, true, false, true]);
    }
}
