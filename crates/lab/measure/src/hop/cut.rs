//! The link is cut in the middle of a download and comes back: the download has to go on at once, and end with every byte.

use std::time::Duration;

use farhop_lab_transport::{Load, Via, bulk};

use super::{against, fewest, lateness, median, runs, warm};
use crate::group::Context;
use crate::{MeasureError, Row};

/// How long the link stays away.
const AWAY: Duration = Duration::from_secs(30);
/// Bytes of the download that have crossed when it goes.
const AFTER: u64 = 10_000_000;
/// How many limits, beside the cut and three round trips.
const FACTOR: f64 = 1.05;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let hop = warm(context, "geo-hylas2")?;
    let wanted = [bulk("/20m")];
    let whole = [hop.load(Via::Farhop, &wanted)?];
    let cut = || -> Result<(), MeasureError> {
        let link = hop.testbed.link();
        while link.record().forward.counters.delivered.bytes.0 < AFTER {
            context.interrupt.sleep(Duration::from_millis(5))?;
        }
        link.cut();
        let slept = context.interrupt.sleep(AWAY);
        link.restore();
        Ok(slept?)
    };
    let loads: Vec<Load> =
        (0..runs(context)).map(|_| hop.load_while(Via::Farhop, &wanted, cut)).collect::<Result<_, _>>()?;
    let limit = hop.limit(fewest(&whole));
    let bound = limit.mul_f64(FACTOR) + AWAY + 3 * hop.profile.rtt();
    let middle = median(&mut loads.iter().map(Load::time).collect::<Vec<_>>());
    let measured =
        format!("every byte right, {} without the cut{}", against(middle, limit), lateness(&loads));
    let bound_text = format!("≤ 1.05 × limit + 30 s + 3 RTT = {:.2} s", bound.as_secs_f64());
    Ok(vec![Row::judged("30 s cut in the middle of 20 MB", measured, bound_text, middle <= bound)])
}
