//! What the last visits have shown of one resource, and how sure that makes it that the next one asks for it.

use serde::{Deserialize, Serialize};

/// Visits that are remembered.
const MOST: u8 = 16;
/// Each visit counts for so much of the one after it.
const WEIGHT: f64 = 0.8;
/// As if one visit of this weight, before all others, had not asked: few visits show little.
const DOUBT: f64 = 0.25;
/// What nobody has confirmed for so long counts half.
const HALF_LIFE: u64 = 60 * 24 * 3600;

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// Whether the visit asked for it, the last one in the lowest bit.
    bits: u16,
    visits: u8,
}

impl History {
    /// A visit has asked for it, or has not.
    pub(crate) fn push(&mut self, asked: bool) {
        self.bits = self.bits << 1 | u16::from(asked);
        self.visits = self.visits.saturating_add(1).min(MOST);
    }

    /// As it may stand in a file.
    pub(crate) fn is_valid(self) -> bool {
        self.visits <= MOST && (self.visits == MOST || self.bits >> self.visits == 0)
    }

    /// How many visits it knows of, and in how many of them it was asked for.
    pub(crate) fn counts(self) -> (u32, u32) {
        (u32::from(self.visits), self.bits.count_ones())
    }

    /// How sure it is that the next visit asks for it, 0 to 1: the share of the visits that did, the late ones counted
    /// more (exponential smoothing with a prior), less the older (seconds) the last of them is.
    pub(crate) fn confidence(self, age: u64) -> f64 {
        let (mut asked, mut all, mut weight) = (0.0, DOUBT, 1.0);
        for visit in 0..self.visits {
            all += weight;
            if self.bits >> visit & 1 == 1 {
                asked += weight;
            }
            weight *= WEIGHT;
        }
        asked / all * decay(age)
    }
}

/// Halves with every half-life, linearly within one: no rounding of a library's decides what is foreseen.
fn decay(age: u64) -> f64 {
    let (whole, part) = (age / HALF_LIFE, age % HALF_LIFE);
    if whole >= 16 {
        return 0.0;
    }
    (1.0 - part as f64 / HALF_LIFE as f64 / 2.0) / f64::from(1u32 << whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(visits: &[bool]) -> History {
        let mut history = History::default();
        visits.iter().for_each(|asked| history.push(*asked));
        history
    }

    #[test]
    fn late_visits_count_more_and_few_show_little() {
        let sure = |visits: &[bool]| shown(visits).confidence(0);
        assert!(sure(&[true]) < sure(&[true, true]) && sure(&[true, true]) < sure(&[true; 5]));
        assert!(sure(&[true, false]) < sure(&[false, true]));
        assert!(sure(&[true; 16]) < 1.0 && sure(&[false; 3]) == 0.0 && sure(&[]) == 0.0);
    }

    #[test]
    fn what_is_not_confirmed_fades() {
        let history = shown(&[true; 5]);
        let at = |days: u64| history.confidence(days * 24 * 3600);
        assert!((at(60) * 2.0 - at(0)).abs() < 1e-9 && (at(120) * 4.0 - at(0)).abs() < 1e-9);
        assert!(at(7) < at(0) && at(7) > at(14));
        assert!(at(10_000) == 0.0);
    }

    #[test]
    fn only_the_last_visits_are_remembered() {
        let mut history = shown(&[true; 40]);
        assert_eq!(history.counts(), (16, 16));
        (0..16).for_each(|_| history.push(false));
        assert_eq!(history.counts(), (16, 0));
        assert!(history.is_valid());
        assert!(
            !History { bits: 0b1000, visits: 3 }.is_valid() && !History { bits: 0, visits: 17 }.is_valid()
        );
    }
}
