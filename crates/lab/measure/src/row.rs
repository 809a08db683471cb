//! One bound, what was measured, and the verdict. Pure.

use std::fmt;

use crate::MeasureError;

/// Whether a bound holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Pass,
    /// It does not.
    Miss,
    /// There is none: the number is printed for the record.
    Told,
    /// It is held elsewhere.
    Elsewhere,
}

/// One line of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What was measured, under which conditions.
    pub what: String,
    /// What came out, with its unit.
    pub measured: String,
    /// What it had to be.
    pub bound: String,
    /// Whether it is.
    pub verdict: Verdict,
}

impl Row {
    /// A row that passes or misses.
    pub fn judged(
        what: impl Into<String>,
        measured: impl Into<String>,
        bound: impl Into<String>,
        pass: bool,
    ) -> Row {
        let verdict = if pass { Verdict::Pass } else { Verdict::Miss };
        Row { what: what.into(), measured: measured.into(), bound: bound.into(), verdict }
    }

    /// The same for programs.
    pub(crate) fn as_json(&self) -> serde_json::Value {
        let Row { what, measured, bound, verdict } = self;
        let verdict = format!("{verdict:?}").to_lowercase();
        serde_json::json!({ "what": what, "measured": measured, "bound": bound, "verdict": verdict })
    }

    /// A row for a group that gave none.
    pub(crate) fn unmeasured(what: &str, error: &MeasureError) -> Row {
        Row::judged(what, format!("could not be measured: {error}"), "measured", false)
    }
}

impl From<farhop_testbed::measure::Row> for Row {
    fn from(row: farhop_testbed::measure::Row) -> Row {
        Row::judged(row.what, row.measured, row.bound, row.pass)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Pass => "pass",
            Verdict::Miss => "MISS",
            Verdict::Told => "told",
            Verdict::Elsewhere => "CI",
        };
        write!(f, "{verdict:<5} {:<48} {:<40} bound: {}", self.what, self.measured, self.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_verdict_subject_measurement_and_bound_in_this_order() {
        let row = Row::judged("flags, faster than direct-h1", "6.1 ×", "≥ 8 ×", false).to_string();
        let words: Vec<_> = row.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        assert_eq!(
            words,
            ["MISS", "flags, faster than direct-h1", "6.1 ×", "bound: ≥ 8 ×"].map(String::from)
        );
    }

    #[test]
    fn what_could_not_be_measured_is_a_miss_with_its_reason() {
        let row = Row::unmeasured("emulator", &MeasureError::Unexpected("no device".into()));
        assert_eq!((row.verdict, row.measured.as_str()), (Verdict::Miss, "could not be measured: no device"));
    }
}
