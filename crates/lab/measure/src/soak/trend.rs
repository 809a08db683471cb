//! Whether something grows, from what was seen of it over time. Pure.
//!
//! Theil–Sen: the median of the slopes between all pairs of points, which a third of wild points does not move; and Sen's bound
//! of it from Kendall's variance, below which the true slope lies once in a thousand times (Sen, Estimates of the regression
//! coefficient based on Kendall's tau, J. Amer. Statist. Assoc. 63, 1968).

/// Of a normal distribution, one in a thousand lies so many deviations above its middle: some dozen trends are judged at once,
/// and noise must not make one of them miss.
const ONE_IN_A_THOUSAND: f64 = 3.09;
/// Fewer points than this can prove nothing at that level.
pub(super) const LEAST_POINTS: usize = 7;

/// How something changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    /// For each unit of time, in the median.
    pub(super) slope: f64,
    /// What it is at least.
    pub(super) least: f64,
}

/// The trend of points of time and value; none of fewer than [`LEAST_POINTS`].
pub(super) fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    if points.len() < LEAST_POINTS {
        return None;
    }
    let mut slopes = Vec::new();
    for (number, (time, value)) in points.iter().enumerate() {
        let later = points[number + 1..].iter().filter(|(later, _)| later > time);
        slopes.extend(later.map(|(later, then)| (then - value) / (later - time)));
    }
    slopes.sort_by(f64::total_cmp);
    let (n, pairs) = (points.len() as f64, slopes.len());
    // Kendall's variance of the number of rising less falling pairs.
    let spread = ONE_IN_A_THOUSAND * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let rank = ((pairs as f64 - spread) / 2.0).max(0.0) as usize;
    Some(Trend { slope: *slopes.get(pairs / 2)?, least: *slopes.get(rank)? })
}

/// The middle one of some values; none of none.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_orbit::Rng;

    /// Ten minutes in periods of 40 s, each value off by as much as `noise` either way.
    fn course(seed: u64, each_minute: f64, noise: f64) -> Vec<(f64, f64)> {
        let mut rng = Rng::new(seed);
        let minutes = (0..15).map(|period| f64::from(period) * 2.0 / 3.0);
        minutes
            .map(|minute| {
                (minute, (50.0 + each_minute * minute + noise * (2.0 * rng.next_f64() - 1.0)).round())
            })
            .collect()
    }

    #[test]
    fn a_descriptor_lost_each_minute_is_seen_through_noise_and_noise_alone_is_not() {
        for seed in 0..200 {
            let leak = trend(&course(seed, 1.0, 1.2)).unwrap();
            assert!(leak.least > 0.1 && (0.4..1.6).contains(&leak.slope), "seed {seed}: {leak:?}");
            let noise = trend(&course(seed, 0.0, 3.0)).unwrap();
            assert!(noise.least <= 0.1, "seed {seed}: {noise:?}");
        }
    }

    #[test]
    fn wild_points_do_not_hide_a_leak_nor_make_one() {
        let mut points = course(1, 1.0, 0.0);
        let mut flat = course(1, 0.0, 0.0);
        for wild in [3, 11] {
            points[wild].1 = 500.0;
            flat[wild].1 = 500.0;
        }
        assert!(trend(&points).unwrap().least > 0.5);
        assert_eq!(trend(&flat).unwrap(), Trend { slope: 0.0, least: 0.0 });
    }

    #[test]
    fn what_falls_grows_by_less_than_nothing_and_few_points_tell_nothing() {
        assert!(trend(&course(1, -1.0, 0.5)).unwrap().slope < 0.0);
        assert_eq!(trend(&course(1, 1.0, 0.0)[..LEAST_POINTS - 1]), None);
        assert!(trend(&course(1, 3.0, 0.0)[..LEAST_POINTS]).unwrap().least > 1.0);
    }
}
