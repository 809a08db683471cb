//! Recorded packet-delivery traces, as mahimahi's link shell reads them: each line is a time in milliseconds at which 1,500
//! bytes may leave; at the end it begins anew.

use farhop_units::{BitRate, Bytes};
use std::time::Duration;

/// What one line lets through: a packet of an Ethernet's size.
pub(crate) const OPPORTUNITY: Bytes = Bytes(1500);

/// A packet-delivery trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds from a round's beginning, never falling. The last one is the round's length.
    at: Vec<u32>,
}

/// Why a text is no trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line is no number, or less than the one before.
    #[error("line {line}: '{text}' is no time in whole milliseconds from {least} up")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What stands there, its beginning at least.
        text: String,
        /// The time before it.
        least: u32,
    },
    /// It has no line, or nothing but zeros: it would never end, or never begin.
    #[error("it lasts 0 ms; a trace has one time in milliseconds on each line, the last above 0")]
    Empty,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// A line is not what it should be, or the trace lasts no time.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let (mut at, mut least) = (Vec::new(), 0);
        for (number, line) in text.lines().enumerate() {
            let time = line.trim().parse::<u32>().ok().filter(|time| *time >= least);
            least = time.ok_or_else(|| TraceError::Line {
                line: number + 1,
                text: line.chars().filter(|char| !char.is_control()).take(30).collect(),
                least,
            })?;
            at.push(least);
        }
        if least == 0 { Err(TraceError::Empty) } else { Ok(Trace { at }) }
    }

    /// What it lets through on average.
    pub fn mean(&self) -> BitRate {
        let bits = OPPORTUNITY.0 * 8 * self.at.len() as u64;
        BitRate((u128::from(bits) * 1000 / u128::from(self.period().max(1))).try_into().unwrap_or(u64::MAX))
    }

    fn period(&self) -> u64 {
        self.at.last().copied().map_or(0, u64::from)
    }

    /// When opportunity `number` is, counted from the first of the first round.
    pub(crate) fn moment(&self, number: u64) -> Duration {
        let (round, index) = (number / self.at.len() as u64, number % self.at.len() as u64);
        let into = usize::try_from(index).ok().and_then(|index| self.at.get(index)).copied().unwrap_or(0);
        Duration::from_millis(round.saturating_mul(self.period()).saturating_add(into.into()))
    }

    /// The first opportunity of its round that is no earlier than `now`.
    pub(crate) fn first_from(&self, now: Duration) -> u64 {
        let millis = u64::try_from(now.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let (round, into) = (millis / self.period(), millis % self.period());
        round * self.at.len() as u64 + self.at.partition_point(|at| u64::from(*at) < into) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_begins_anew_when_it_ends() {
        let trace = Trace::parse("0\n5\n5\n20\n").unwrap();
        let moments: Vec<_> = (0..9).map(|number| trace.moment(number).as_millis()).collect();
        assert_eq!(moments, [0, 5, 5, 20, 20, 25, 25, 40, 40]);
        assert_eq!(trace.first_from(Duration::from_micros(5_001)), 3);
        assert_eq!(trace.first_from(Duration::from_millis(45)), 9);
        assert_eq!(trace.mean(), BitRate(4 * 1500 * 8 * 50));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let error = |text| Trace::parse(text).unwrap_err().to_string();
        assert_eq!(error("1\n3\n2\n"), "line 3: '2' is no time in whole milliseconds from 3 up");
        assert_eq!(error("1\n\n"), "line 2: '' is no time in whole milliseconds from 1 up");
        assert_eq!(error("12 packets"), "line 1: '12 packets' is no time in whole milliseconds from 0 up");
        assert!(error("").starts_with("it lasts 0 ms") && error("0\n0\n").starts_with("it lasts 0 ms"));
    }
}
