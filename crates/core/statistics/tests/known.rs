//! The statistics against values that others have published or that R and NumPy give.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use farhop_statistics::{Method, Shift, Summary, quantile};

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
}

#[test]
fn a_summary_is_what_r_says_of_the_same_numbers() {
    // R: x <- c(12.1, 11.4, 13.0, 12.6, 11.9); median, mean, quantile(x, .95), t.test(x)$conf.int
    let summary = Summary::of([12.1, 11.4, 13.0, 12.6, 11.9]).unwrap();
    assert_eq!((summary.count, summary.median, summary.min, summary.max), (5, 12.1, 11.4, 13.0));
    close(summary.mean, 12.2);
    close(summary.p95, 12.92);
    let interval = summary.interval.unwrap();
    // Deviation 0.620484, error 0.277489, t(4) 2.776445.
    close(interval.low, 12.2 - 0.770432);
    close(interval.high, 12.2 + 0.770432);
    assert!(summary.is_within(0.07) && !summary.is_within(0.05));
}

#[test]
fn quantiles_lie_between_their_neighbours_in_proportion() {
    // numpy.percentile(range(1, 11), [0, 25, 50, 95, 100])
    let values: Vec<f64> = (1..=10).map(f64::from).collect();
    for (share, expected) in [(0.0, 1.0), (0.25, 3.25), (0.5, 5.5), (0.95, 9.55), (1.0, 10.0)] {
        close(quantile(&values, share).unwrap(), expected);
    }
    assert_eq!(quantile(&[], 0.5), None);
}

#[test]
fn one_measurement_has_no_interval_and_none_no_summary() {
    let one = Summary::of([3.0]).unwrap();
    assert_eq!((one.median, one.p95, one.interval, one.is_within(1.0)), (3.0, 3.0, None, false));
    assert_eq!(Summary::of([f64::NAN]), None);
    assert!(Summary::of([2.0, 2.0, 2.0]).unwrap().is_within(0.0), "what never varies is known");
}

#[test]
fn paired_shifts_are_those_of_the_depression_data_of_hollander_and_wolfe() {
    // R's example of wilcox.test: Hamilton depression scale of nine patients before and after.
    let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    #[expect(clippy::approx_constant, reason = "what was measured")]
    let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
    let pairs: Vec<(f64, f64)> = after.into_iter().zip(before).collect();
    let shift = Shift::of(&pairs).unwrap();
    // wilcox.test(x, y, paired = TRUE, conf.int = TRUE): estimate 0.46, V = 40 of 45.
    close(shift.shift, 0.46);
    close(shift.effect, (40.0 - 5.0) / 45.0);
    let interval = shift.interval.unwrap();
    close(interval.low, 0.01);
    close(interval.high, 0.786);
    assert_eq!((shift.pairs, shift.method, shift.is_shown()), (9, Method::SignedRanks, true));
}

#[test]
fn few_pairs_are_judged_by_student_and_no_difference_is_none() {
    let shift = Shift::of(&[(10.0, 8.0), (11.0, 9.5), (10.5, 8.5)]).unwrap();
    // The means of two: -2, -2, -2, -1.75, -1.75, -1.5.
    close(shift.shift, -1.875);
    // Differences -2, -1.5, -2: mean -1.83333, deviation 0.288675, t(2) 4.302653.
    let interval = shift.interval.unwrap();
    close(interval.low, -1.833_333 - 0.717_109);
    close(interval.high, -1.833_333 + 0.717_109);
    assert_eq!((shift.method, shift.effect, shift.is_shown()), (Method::Student, -1.0, true));

    let none = Shift::of(&[(1.0, 1.25), (1.0, 0.75), (1.0, 1.125), (1.0, 0.875)]).unwrap();
    assert_eq!((none.is_shown(), none.effect, none.shift), (false, 0.0, 0.0));
    assert!(!Shift::of(&[(1.0, 2.0)]).unwrap().is_shown(), "one pair shows nothing");
    assert_eq!(Shift::of(&[]), None);
}
