//! Bytes of request heads and promises over recorded header sets: the same computation that the tests of `core/htotp` hold.

use farhop_testkit::heads::{Browser, measure, median};

use crate::group::Context;
use crate::{MeasureError, Row, Verdict};

pub(crate) fn rows(_: &Context) -> Result<Vec<Row>, MeasureError> {
    let rows: Result<Vec<_>, _> = Browser::ALL.into_iter().map(of).collect();
    Ok(rows?.concat())
}

fn of(browser: Browser) -> Result<Vec<Row>, MeasureError> {
    // The recordings lie beside the sources, which a program that was copied elsewhere has not.
    let measured = std::panic::catch_unwind(|| measure(browser));
    let sizes = measured.map_err(|_| MeasureError::Unexpected("the recorded heads are not here".into()))?;
    let (following, promise) = (median(&sizes.following), median(&sizes.promises));
    let worst = sizes.excess.last().map_or(0, |(bytes, _)| *bytes);
    let count = |sizes: &[usize]| format!("{} B (median of {})", median(sizes), sizes.len());
    let what = |what: &str| format!("{}: {what}", browser.name());
    Ok(vec![
        Row {
            what: what("first request head to an origin"),
            measured: count(&sizes.first),
            bound: "none, printed".into(),
            verdict: Verdict::Told,
        },
        Row::judged(what("following request heads"), count(&sizes.following), "≤ 40 B", following <= 40),
        Row::judged(what("promises"), count(&sizes.promises), "≤ 60 B", promise <= 60),
        Row::judged(
            what("worst head above its path and query"),
            format!("+{worst} B"),
            "≤ +40 B",
            worst <= 40,
        ),
    ])
}
