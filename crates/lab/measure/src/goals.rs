//! The pages of the demonstration on `geo-hylas2` against the limit, and against direct loads.

use farhop_compare::demonstrate;
use farhop_report::{PageResult, VariantResult};
use farhop_workload::pages::NAMES;

use crate::group::Context;
use crate::pages::{demo, faster};
use crate::{MeasureError, Row};

/// How many limits a load may take.
const LIMITS: f64 = 1.5;
/// What is aimed at.
const GOAL: f64 = 1.25;

/// Page, opponent, and how many times faster Farhop has to be.
const RATIOS: [(&str, &str, f64); 4] = [
    ("flags", "direct-h1", 10.0),
    ("flags", "direct-h2", 3.0),
    ("photos", "direct-h1", 2.5),
    ("photos", "direct-h2", 2.5),
];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let demo = demo(context.runs.unwrap_or(5))?;
    let mut rows = Vec::new();
    demonstrate(&demo, &mut |line| eprintln!("{line}"), |comparison| {
        let page = |name: &str| comparison.results.iter().find(|result| result.page == name);
        rows.extend(NAMES.iter().map(|name| near_limit(page(name), name)));
        rows.extend(RATIOS.iter().map(|(name, base, bound)| faster(page(name), name, base, *bound)));
        rows.extend(NAMES.iter().map(|name| painted(page(name), name)));
        Ok(())
    })?;
    Ok(rows)
}

fn near_limit(page: Option<&PageResult>, name: &str) -> Row {
    let what = format!("{name} on geo-hylas2, cold, against the limit");
    let bound = format!("≤ {LIMITS} × limit_s ({GOAL} is the goal)");
    let farhop = page.and_then(|page| Some((page, page.variant("farhop")?)));
    match farhop.and_then(|(page, farhop)| Some((page, farhop.plt_s?.median, page.limit_s?))) {
        Some((page, plt, limit)) => {
            let parts = &page.limit;
            let measured = format!(
                "{:.2} × ({plt:.2} s; limit {limit:.2} s: browser {:.2}, RTT {:.2}, origin {:.2}, {} KB)",
                plt / limit,
                parts.browser_s.unwrap_or_default(),
                parts.rtt_s,
                parts.origin_s,
                parts.bytes / 1000
            );
            Row::judged(what, measured, bound, plt <= LIMITS * limit)
        }
        None => Row::judged(what, "not loaded", bound, false),
    }
}

fn painted(page: Option<&PageResult>, name: &str) -> Row {
    let what = format!("{name} on geo-hylas2, first contentful paint");
    let bound = "not later than direct-h2's";
    let paint = |variant: &VariantResult| Some(variant.fcp_s?.median);
    let pair = page.and_then(|page| Some((page.variant("direct-h2")?, page.variant("farhop")?)));
    match pair.and_then(|(direct, farhop)| Some((paint(direct)?, paint(farhop)?))) {
        Some((direct, farhop)) => {
            let measured = format!("{farhop:.2} s, direct-h2 {direct:.2} s");
            Row::judged(what, measured, bound, farhop <= direct)
        }
        None => Row::judged(what, "not painted", bound, false),
    }
}
