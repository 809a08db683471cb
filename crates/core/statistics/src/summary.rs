//! One thing measured repeatedly.

use crate::{mean, student_interval};

/// Where a value lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Half of its width.
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether a value lies in it, the ends included.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// What sums up repeated measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many there were.
    pub count: usize,
    /// The middle one; the mean of the two middle ones of an even number.
    pub median: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The 95th percentile, as [`quantile`] has it.
    pub p95: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Student's 95 % interval of the mean, as the studies report it; none of a single measurement.
    pub interval: Option<Interval>,
}

impl Summary {
    /// Sums up; none of nothing.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        Some(Summary {
            count: values.len(),
            median: quantile(&values, 0.5)?,
            mean: mean(&values)?,
            p95: quantile(&values, 0.95)?,
            min: *values.first()?,
            max: *values.last()?,
            interval: student_interval(&values),
        })
    }

    /// Whether half of the 95 % interval is within this share of the median: measured often enough.
    pub fn is_within(&self, share: f64) -> bool {
        self.interval.is_some_and(|interval| interval.half() <= share * self.median.abs())
    }
}

/// The quantile at `share` (0 to 1) of sorted values, between two of them in proportion (Hyndman and Fan 1996, type 7, as
/// R's and NumPy's default); none of nothing.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    Some(below + (above - below) * place.fract())
}
