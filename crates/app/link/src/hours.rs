//! Hours of classes, as they are told.

use std::fmt;
use std::time::Duration;

use farhop_diffserv::{Ceiling, Patient, Queue};
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
    let shaped = plan_at(config, &config.at(time), sent_at, Vec::new());
    let told = |window: &Window| HoursTold {
        class: window.queue.to_string(),
        service: window.queue.service().to_string(),
        hours: format!("{}-{}", clock(window.hours.0), clock(window.hours.1)),
        is_within: window.is_open(time),
        most_bps: shaped.as_ref().map_or(0, |shaped| shaped.plan.of(window.queue).ceiling.0),
    };
    // A kind is within its hours where it has the rate of these; one without hours always is.
    let kind = |ceiling: &Ceiling| {
        let (from, to) = ceiling.hours?;
        let minute = u16::try_from(time.as_secs() / 60 % 1440).unwrap_or(0);
        let is_within = Ceiling { rate: None, ..*ceiling }.at(minute).is_none();
        let plan = shaped.as_ref().ok().map(|shaped| &shaped.plan);
        let (class, most) = match Patient::BACKGROUND.iter().position(|it| *it == ceiling.of) {
            Some(place) => (Queue::Le, plan.map(|plan| plan.kinds[place].ceiling)),
            None => {
                let queue = if ceiling.of == Patient::Bulk { Queue::Af1 } else { Queue::Af2 };
                (queue, plan.map(|plan| plan.of(queue).ceiling))
            }
        };
        let after_midnight = |minutes: u16| clock(Duration::from_secs(u64::from(minutes) * 60));
        Some(HoursTold {
            class: class.to_string(),
            service: ceiling.of.to_string(),
            hours: format!("{}-{}", after_midnight(from), after_midnight(to)),
            is_within,
            most_bps: most.map_or(0, |most| most.0),
        })
    };
    config.windows.iter().map(told).chain(config.ceilings.iter().filter_map(kind)).collect()
}

/// `06:30`.
fn clock(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// `LE (background): 24.3 kbit/s at most now, outside of 22:00-06:00 UTC`.
impl fmt::Display for HoursTold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HoursTold { class, service, hours, is_within, most_bps } = self;
        let most = BitRate(*most_bps).in_words();
        let side = if *is_within { "within" } else { "outside of" };
        write!(formatter, "{class} ({service}): {most} at most now, {side} {hours} UTC")
    }
}
