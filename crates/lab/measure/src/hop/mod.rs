//! What the carrier itself does: downloads through both ends as processes over an emulated link, timed at the user's end and
//! compared with what the link allows.

pub(crate) mod cut;
pub(crate) mod downloads;
pub(crate) mod fresh;
pub(crate) mod loss;
pub(crate) mod tunnel;

use std::time::Duration;

use farhop_compare::Tuning;
use farhop_lab_transport::{Hop, Load, Via, bulk};
use farhop_testbed::Fitness;
use farhop_units::Bytes;

use crate::group::Context;
use crate::{MeasureError, Row};

/// Both ends over the link of this name. Their first download is made already: the carrier is warm.
pub(crate) fn warm<'a>(context: &'a Context, link: &str) -> Result<Hop<'a>, MeasureError> {
    let mut hop = Hop::up(&context.interrupt, link)?;
    if let Fitness::Unfit(reason) = hop.calibration.fitness() {
        return Err(MeasureError::Unexpected(format!("the link is not what it should be: {reason}")));
    }
    hop.start("ends", &Tuning::default())?;
    hop.load(Via::Farhop, &[bulk("/2m")])?;
    Ok(hop)
}

/// How many loads of each kind.
pub(crate) fn runs(context: &Context) -> u32 {
    context.runs.unwrap_or(5)
}

/// A row of the median time of some loads against a multiple of a limit.
pub(crate) fn within(what: impl Into<String>, loads: &[Load], limit: Duration, factor: f64) -> Row {
    let mut times: Vec<_> = loads.iter().map(Load::time).collect();
    let middle = median(&mut times);
    let ratio = middle.as_secs_f64() / limit.as_secs_f64();
    let measured = format!("{ratio:.3} × ({}){}", against(middle, limit), lateness(loads));
    Row::judged(what, measured, format!("≤ {factor:.2} × limit"), ratio <= factor)
}

/// A time and its limit in words.
pub(crate) fn against(time: Duration, limit: Duration) -> String {
    format!("{:.2} s, limit {:.2} s", time.as_secs_f64(), limit.as_secs_f64())
}

/// A remark where loads were late.
pub(crate) fn lateness(loads: &[Load]) -> &'static str {
    if loads.iter().any(|load| load.late) { ", late: indicative" } else { "" }
}

/// The middle one; zero of none.
pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The fewest bytes that any of some lossless loads took on the wire: without what was sent twice.
pub(crate) fn fewest(loads: &[Load]) -> Bytes {
    loads.iter().map(Load::wire).min().unwrap_or_default()
}
