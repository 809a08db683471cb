//! Whether a load may count. An unfit one is left out and repeated by the caller.

use farhop_emulator::LoadRecord;
use std::time::Duration;

/// A link whose packets leave later than this at the 99th percentile is not the link of the profile.
const LATEST: Duration = Duration::from_millis(1);
/// Clients and servers that got no processor for longer were slowed by this machine, not by the link.
const STILL: Duration = Duration::from_millis(100);

/// A verdict on a load or on a calibration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitness {
    /// It counts.
    Fit,
    /// It does not, for the reason given in one line.
    Unfit(String),
}

impl Fitness {
    /// Fit if nothing speaks against it.
    pub(crate) fn of(reasons: &[String]) -> Self {
        match reasons {
            [] => Fitness::Fit,
            reasons => Fitness::Unfit(reasons.join("; ")),
        }
    }

    /// Whether it counts.
    pub fn is_fit(&self) -> bool {
        *self == Fitness::Fit
    }
}

/// Judges a load by what the link recorded during it.
pub fn fit(record: &LoadRecord) -> Fitness {
    let mut reasons = Vec::new();
    let late = record.p99_lateness();
    if late > LATEST {
        let late = late.as_secs_f64() * 1e3;
        reasons.push(format!("packets left {late:.1} ms late at the 99th percentile, allowed is 1 ms"));
    }
    if record.stood_still > STILL {
        let still = record.stood_still.as_secs_f64();
        reasons.push(format!("this machine stood still for {still:.2} s, allowed is 0.1 s"));
    }
    let refused = record.forward.refused + record.return_.refused;
    if refused > 0 {
        reasons.push(format!("{refused} packets were refused by the receiving kernel"));
    }
    reasons.extend(record.failure.clone());
    Fitness::of(&reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_punctual_load_counts() {
        let mut record = LoadRecord::default();
        record.forward.lateness.p99 = LATEST;
        record.forward.lateness.max = 5 * LATEST; // one straggler is no verdict
        assert_eq!(fit(&record), Fitness::Fit);
    }

    #[test]
    fn lateness_of_either_way_makes_a_load_unfit_and_is_said() {
        let mut record = LoadRecord::default();
        record.return_.lateness.p99 = Duration::from_micros(2500);
        let said = "packets left 2.5 ms late at the 99th percentile, allowed is 1 ms";
        assert_eq!(fit(&record), Fitness::Unfit(said.into()));
    }

    #[test]
    fn a_machine_that_stood_still_makes_a_load_unfit_though_no_packet_was_late() {
        let record = LoadRecord { stood_still: STILL, ..LoadRecord::default() };
        assert_eq!(fit(&record), Fitness::Fit);
        let record = LoadRecord { stood_still: Duration::from_millis(2340), ..LoadRecord::default() };
        let said = "this machine stood still for 2.34 s, allowed is 0.1 s";
        assert_eq!(fit(&record), Fitness::Unfit(said.into()));
    }

    #[test]
    fn a_link_that_stopped_makes_its_load_unfit() {
        let record = LoadRecord { failure: Some("device gone".into()), ..LoadRecord::default() };
        assert_eq!(fit(&record), Fitness::Unfit("device gone".into()));
    }
}
