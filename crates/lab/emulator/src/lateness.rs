//! How late packets left the emulator, compared with when the model wanted them out. Kept as a histogram, so
//! that recording costs the same however long a load runs.

use std::time::Duration;

/// One bucket per microsecond up to this; all beyond share the last.
const BUCKETS: usize = 10_000;

/// Lateness of the packets since the last reset.
#[derive(Debug, Clone)]
pub(crate) struct Lateness {
    buckets: Box<[u64]>,
    packets: u64,
    max: Duration,
}

/// Percentiles of lateness; zero where no packet passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatenessSummary {
    /// How many packets it is about.
    pub packets: u64,
    /// Half of them were at most this late, to the microsecond.
    pub p50: Duration,
    /// All but one in a hundred were at most this late, to the microsecond.
    pub p99: Duration,
    /// The latest.
    pub max: Duration,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Lateness { buckets: vec![0; BUCKETS].into(), packets: 0, max: Duration::ZERO }
    }

    pub(crate) fn record(&mut self, late: Duration) {
        let micros = usize::try_from(late.as_micros()).unwrap_or(usize::MAX);
        self.buckets[micros.min(BUCKETS - 1)] += 1;
        self.packets += 1;
        self.max = self.max.max(late);
    }

    pub(crate) fn summary(&self) -> LatenessSummary {
        LatenessSummary {
            packets: self.packets,
            p50: self.percentile(50),
            p99: self.percentile(99),
            max: self.max,
        }
    }

    /// The upper edge of the bucket in which the percentile lies, but never more than the latest.
    fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.packets * percent).div_ceil(100);
        let mut seen = 0;
        for (micros, count) in self.buckets.iter().enumerate().take(BUCKETS - 1) {
            seen += count;
            if seen >= rank {
                return Duration::from_micros(micros as u64 + 1).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_packets() {
        let mut lateness = Lateness::new();
        for micros in 0..1000 {
            lateness.record(Duration::from_micros(micros));
        }
        let summary = lateness.summary();
        assert_eq!(summary.packets, 1000);
        assert_eq!(summary.p50, Duration::from_micros(500));
        assert_eq!(summary.p99, Duration::from_micros(990));
        assert_eq!(summary.max, Duration::from_micros(999));
    }

    #[test]
    fn lateness_beyond_the_buckets_is_not_made_smaller() {
        let mut lateness = Lateness::new();
        for _ in 0..10 {
            lateness.record(Duration::from_secs(1));
        }
        assert_eq!(lateness.summary().p50, Duration::from_secs(1));
    }

    #[test]
    fn without_packets_there_is_no_lateness() {
        assert_eq!(Lateness::new().summary(), LatenessSummary::default());
    }
}
