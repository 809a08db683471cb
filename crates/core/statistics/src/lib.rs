//! What repeated measurements say, and what measurements of two things in pairs say of their difference. Pure arithmetic on
//! numbers that come in; what is not finite is left out.

mod paired;
mod student;
mod summary;

pub use paired::{Method, Shift};
pub use student::student_975;
pub use summary::{Interval, Summary, quantile};

/// The mean; none of nothing.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Student's 95 % interval of the mean; none of fewer than two.
fn student_interval(values: &[f64]) -> Option<Interval> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let count = values.len() as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = student_975(values.len() - 1) * (variance / count).sqrt();
    Some(Interval { low: mean - half, high: mean + half })
}
