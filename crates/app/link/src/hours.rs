//! Hours of classes, as they are told.

use std::fmt;
use std::time::Duration;

use farhop_units::BitRate;

use crate::config::{Config, Window};
use crate::shaping::plan_at;
use crate::told::HoursTold;

/// What the classes that have hours have at this time of the day, after midnight in UTC.
pub fn hours(config: &Config, time: Duration) -> Vec<HoursTold> {
    hours_at(config, time, None)
}

/// The same, with what is sent at now where that is followed.
pub(crate) fn hours_at(config: &Config, time: Duration, sent_at: Option<BitRate>) -> Vec<HoursTold> {
    let shaped = plan_at(config, &config.shares_at(time), sent_at, Vec::new());
    let told = |window: &Window| HoursTold {
        class: window.queue.to_string(),
        service: window.queue.service().to_string(),
        hours: format!("{}-{}", clock(window.hours.0), clock(window.hours.1)),
        is_within: window.is_open(time),
        most_bps: shaped.as_ref().map_or(0, |shaped| shaped.plan.of(window.queue).ceiling.0),
    };
    config.windows.iter().map(told).collect()
}

/// `06:30`.
fn clock(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// `LE (background): 24.32 kbit/s at most now, outside of 22:00-06:00 UTC`.
impl fmt::Display for HoursTold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HoursTold { class, service, hours, is_within, most_bps } = self;
        // To three digits of what is less than kbit/s.
        let most = BitRate(most_bps / 10 * 10);
        let side = if *is_within { "within" } else { "outside of" };
        write!(formatter, "{class} ({service}): {most} at most now, {side} {hours} UTC")
    }
}
