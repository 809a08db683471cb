//! A figure that a study gives in its text, beside the same figure as it was measured here. Pure.

use serde::{Deserialize, Serialize};

/// What a study says of a variant against another, and what was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyClaim {
    /// The study's figure, table or section.
    pub figure: String,
    /// What it says, in a sentence.
    pub says: String,
    /// What was measured.
    pub measure: String,
    /// The variant.
    pub variant: String,
    /// What it is compared with.
    pub against: String,
    /// The variant as a multiple of the other, as the study has it; none where it gives no number.
    pub study: Option<f64>,
    /// The same here: the geometric mean over pages and links of multiples of medians; none where nothing was measured.
    pub here: Option<f64>,
    /// The least and the most of these.
    pub range: Option<[f64; 2]>,
    /// Of how many pages and links.
    pub cells: usize,
    /// `confirmed`, `direction confirmed`, `not confirmed` or `not measured`.
    pub verdict: String,
    /// Why it differs, as far as that is known.
    pub why: String,
}

/// Less than this apart is as much.
const SAME: f64 = 0.05;
/// As a power of the study's own change: between a half and double of it is confirmed.
const LIKE: [f64; 2] = [0.5, 2.0];

impl StudyClaim {
    /// What measured multiples say to a claim: the study's number, or else the direction that it names (-1 less, 0 the same,
    /// 1 more).
    pub fn judge(study: Option<f64>, direction: i8, multiples: &[f64]) -> (Option<f64>, &'static str) {
        let good: Vec<f64> = multiples.iter().copied().filter(|it| it.is_finite() && *it > 0.0).collect();
        if good.is_empty() {
            return (None, "not measured");
        }
        let here = (good.iter().map(|it| it.ln()).sum::<f64>() / good.len() as f64).exp();
        let way = |multiple: f64| match multiple {
            it if it < 1.0 - SAME => -1,
            it if it > 1.0 + SAME => 1,
            _ => 0,
        };
        let expected = study.map_or(direction, way);
        let verdict = match (way(here) == expected, study) {
            (false, _) => "not confirmed",
            (true, Some(study)) if expected != 0 => {
                let share = here.ln() / study.ln();
                if (LIKE[0]..=LIKE[1]).contains(&share) { "confirmed" } else { "direction confirmed" }
            }
            (true, _) => "confirmed",
        };
        (Some(here), verdict)
    }

    /// The claim's own sentence on the difference.
    pub fn sentence(&self) -> String {
        let study = self.study.map_or_else(String::new, |study| format!("the study has {}; ", change(study)));
        let here = match (self.here, self.range) {
            (Some(here), Some([least, most])) if self.cells > 1 => {
                format!(
                    "here it is {} ({} to {} over {} cells)",
                    change(here),
                    change(least),
                    change(most),
                    self.cells
                )
            }
            (Some(here), _) => format!("here it is {}", change(here)),
            (None, _) => "nothing was measured here".into(),
        };
        // What is as the study has it needs no reason.
        let differs = self.verdict != "confirmed" && !self.why.is_empty();
        let why = if differs { format!(": {}", self.why) } else { String::new() };
        format!("{study}{here}: {}{why}", self.verdict)
    }
}

/// `27 % less`, `3.2 times as much`, `as much`.
fn change(multiple: f64) -> String {
    let share = (multiple - 1.0) * 100.0;
    match multiple {
        _ if share.abs() < 0.5 => "as much".into(),
        it if it < 1.0 => format!("{:.0} % less", -share),
        it if it < 2.0 => format!("{share:.0} % more"),
        it => format!("{it:.1} times as much"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_confirmed_between_half_and_double_of_its_change() {
        let verdict = |study, multiples: &[f64]| StudyClaim::judge(study, 0, multiples).1;
        assert_eq!(verdict(Some(0.73), &[0.7, 0.76]), "confirmed");
        assert_eq!(verdict(Some(0.9), &[0.5]), "direction confirmed");
        assert_eq!(verdict(Some(0.73), &[1.2]), "not confirmed");
        assert_eq!(verdict(Some(0.73), &[0.99]), "not confirmed");
        assert_eq!(verdict(Some(3.5), &[4.0]), "confirmed");
        assert_eq!(verdict(Some(1.0), &[1.02]), "confirmed");
        assert_eq!(verdict(Some(0.73), &[]), "not measured");
        assert_eq!(verdict(Some(0.73), &[f64::NAN, 0.0]), "not measured");
    }

    #[test]
    fn a_direction_is_confirmed_by_any_change_that_way() {
        let verdict = |direction, here| StudyClaim::judge(None, direction, &[here]).1;
        assert_eq!(
            [verdict(-1, 0.2), verdict(1, 0.2), verdict(0, 1.01)],
            ["confirmed", "not confirmed", "confirmed"]
        );
    }

    #[test]
    fn the_sentence_has_both_figures() {
        let claim = StudyClaim {
            figure: "6".into(),
            says: String::new(),
            measure: "load".into(),
            variant: "a".into(),
            against: "b".into(),
            study: Some(0.73),
            here: Some(0.4),
            range: Some([0.3, 2.5]),
            cells: 5,
            verdict: "direction confirmed".into(),
            why: "another queue".into(),
        };
        assert_eq!(
            claim.sentence(),
            "the study has 27 % less; here it is 60 % less (70 % less to 2.5 times as much over 5 cells): \
             direction confirmed: another queue"
        );
        let alike = StudyClaim { here: Some(0.7), cells: 1, verdict: "confirmed".into(), ..claim };
        assert_eq!(alike.sentence(), "the study has 27 % less; here it is 30 % less: confirmed");
    }
}
