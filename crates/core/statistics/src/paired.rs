//! Two things measured in pairs: by how much the second differs from the first, how surely, and how consistently.

use crate::summary::quantile;
use crate::{Interval, student_interval};

/// By what an interval was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Wilcoxon's signed ranks, inverted: no assumption but symmetry. Needs six pairs to say anything with 95 %.
    SignedRanks,
    /// Student's, of the mean difference, where there are fewer pairs.
    Student,
}

/// What pairs say of a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// How many pairs there were.
    pub pairs: usize,
    /// By how much the second is larger: the median of the means of every two differences, each with itself too (Hodges and
    /// Lehmann 1963).
    pub shift: f64,
    /// Where that lies with 95 % confidence at least; none of a single pair.
    pub interval: Option<Interval>,
    /// By what.
    pub method: Method,
    /// The matched-pairs rank-biserial correlation (Kerby 2014): 1 where the second is larger in every pair, -1 where it is
    /// smaller, 0 where neither prevails.
    pub effect: f64,
}

/// With fewer pairs even the widest interval of signed ranks holds less than 95 %: 1 - 2 / 2^n.
const RANKS: usize = 6;
/// More pairs than any plan has; the counts below stay exact.
const MOST: usize = 50;

impl Shift {
    /// Of pairs (first, second); none of none. A pair of which one is not finite is left out.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Shift> {
        let pairs = pairs.iter().filter(|(first, second)| first.is_finite() && second.is_finite());
        let differences: Vec<f64> = pairs.map(|(first, second)| second - first).take(MOST).collect();
        let averages = walsh(&differences);
        let ranked = interval_by_ranks(differences.len(), &averages);
        Some(Shift {
            pairs: differences.len(),
            shift: quantile(&averages, 0.5)?,
            interval: ranked.or_else(|| student_interval(&differences)),
            method: if ranked.is_some() { Method::SignedRanks } else { Method::Student },
            effect: rank_biserial(&differences),
        })
    }

    /// Whether the measurements show a difference: the interval does not hold zero.
    pub fn is_shown(&self) -> bool {
        self.interval.is_some_and(|interval| !interval.holds(0.0))
    }
}

/// The means of every two differences, each with itself too, sorted.
fn walsh(differences: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = (0..differences.len())
        .flat_map(|first| (first..differences.len()).map(move |second| (first, second)))
        .map(|(first, second)| (differences[first] + differences[second]) / 2.0)
        .collect();
    averages.sort_by(f64::total_cmp);
    averages
}

/// Tukey's interval: from the k-th smallest average to the k-th largest, where k is the most that leaves 2.5 % at either side.
fn interval_by_ranks(pairs: usize, averages: &[f64]) -> Option<Interval> {
    if pairs < RANKS {
        return None;
    }
    let total = 2f64.powi(i32::try_from(pairs).ok()?);
    let mut below = 0.0;
    let mut outside = 0usize;
    for ways in rank_sums(pairs) {
        below += ways;
        if below / total > 0.025 {
            break;
        }
        outside += 1;
    }
    let first = outside.checked_sub(1)?;
    Some(Interval {
        low: *averages.get(first)?,
        high: *averages.get(averages.len().checked_sub(1 + first)?)?,
    })
}

/// In how many ways signs can be given to the ranks 1 to `pairs` so that the positive ones add up to 0, 1, 2, …
fn rank_sums(pairs: usize) -> Vec<f64> {
    let mut ways = vec![0.0; pairs * (pairs + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=pairs {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    ways
}

/// Ranks of equal sizes are shared; differences of zero say nothing for either side.
fn rank_biserial(differences: &[f64]) -> f64 {
    let mut sizes: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    sizes.sort_by(|one, other| one.abs().total_cmp(&other.abs()));
    let (mut for_second, mut all) = (0.0, 0.0);
    let mut begin = 0;
    while begin < sizes.len() {
        let equal = sizes[begin..].iter().take_while(|size| size.abs() == sizes[begin].abs()).count();
        let rank = begin as f64 + (equal as f64 + 1.0) / 2.0;
        for size in &sizes[begin..begin + equal] {
            all += rank;
            for_second += rank * size.signum();
        }
        begin += equal;
    }
    if all > 0.0 { for_second / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_left_outside_are_those_of_wilcoxons_table() {
        // Critical values of W, two-sided 5 %: of n pairs W may be at most this.
        for (pairs, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52)] {
            let averages: Vec<f64> = (0..pairs * (pairs + 1) / 2).map(|place| place as f64).collect();
            let interval = interval_by_ranks(pairs, &averages).unwrap();
            assert_eq!(interval.low, critical as f64, "{pairs}");
            assert_eq!(interval.high, (averages.len() - 1 - critical) as f64, "{pairs}");
        }
        assert_eq!(rank_sums(3), [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0]);
    }
}
