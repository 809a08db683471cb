//! The pages of the demonstration over HTTPS on `geo-hylas2`: through an intercepting Farhop against plain HTTP through it and
//! against direct loads, and what passing through untouched is worth.

use farhop_compare::{Demo, Variant, demonstrate};
use farhop_report::PageResult;
use farhop_workload::pages::NAMES;

use crate::group::Context;
use crate::pages::{demo, faster, right};
use crate::{MeasureError, Row};

/// How many times the load time over plain HTTP that over HTTPS may be.
const OVER_PLAIN: f64 = 1.10;
/// How many times faster than direct HTTP/2 each page has to be.
const RATIOS: [(&str, f64); 3] = [("flags", 3.0), ("photos", 2.0), ("article", 2.0)];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let demo = Demo {
        variants: vec![Variant::DirectH2, Variant::FarhopHttp, Variant::Farhop, Variant::FarhopTunnel],
        tls: true,
        ..demo(context.runs.unwrap_or(5))?
    };
    let rtt = demo.profile.rtt().as_secs_f64();
    let mut rows = Vec::new();
    demonstrate(&demo, &mut |line| eprintln!("{line}"), |comparison| {
        let page = |name: &str| comparison.results.iter().find(|result| result.page == name);
        rows.extend(NAMES.iter().map(|name| like_plain(page(name), name)));
        rows.extend(RATIOS.iter().map(|(name, bound)| faster(page(name), name, "direct-h2", *bound)));
        rows.extend(NAMES.iter().map(|name| passed_through(page(name), name, rtt)));
        rows.extend(NAMES.iter().map(|name| right(page(name), name)));
        Ok(())
    })?;
    Ok(rows)
}

/// The median load times of two variants, in seconds.
fn pair(page: Option<&PageResult>, one: &str, other: &str) -> Option<(f64, f64)> {
    let plt = |name: &str| Some(page?.variant(name)?.plt_s?.median);
    Some((plt(one)?, plt(other)?))
}

pub(crate) fn like_plain(page: Option<&PageResult>, name: &str) -> Row {
    let what = format!("{name} over HTTPS, against plain HTTP through Farhop");
    let bound = format!("≤ {OVER_PLAIN:.2} ×");
    match pair(page, "farhop-http", "farhop") {
        Some((plain, secure)) => {
            let measured = format!("{:.2} × ({plain:.2} s → {secure:.2} s)", secure / plain);
            Row::judged(what, measured, bound, secure <= plain * OVER_PLAIN)
        }
        None => Row::judged(what, "not loaded", bound, false),
    }
}

fn passed_through(page: Option<&PageResult>, name: &str, rtt: f64) -> Row {
    let what = format!("{name}, passed through, first visit");
    let bound = format!("≥ one round trip ({rtt:.2} s) before direct-h2");
    match pair(page, "direct-h2", "farhop-tunnel") {
        Some((direct, tunnel)) => {
            let measured = format!("{:.2} s before ({direct:.2} s → {tunnel:.2} s)", direct - tunnel);
            Row::judged(what, measured, bound, direct - tunnel >= rtt)
        }
        None => Row::judged(what, "not loaded", bound, false),
    }
}
