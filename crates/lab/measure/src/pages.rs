//! The pages of the demonstration on `geo-hylas2`: how many times faster than direct loads, and how many requests cross.

use std::time::Duration;

use farhop_compare::{Demo, Variant, demonstrate};
use farhop_orbit::Profile;
use farhop_report::{PageResult, ratio};
use farhop_workload::pages::NAMES;

use crate::group::Context;
use crate::{MeasureError, Row, Verdict};

/// Page, opponent, and how many times faster Farhop has to be.
const RATIOS: [(&str, &str, f64); 4] = [
    ("flags", "direct-h1", 8.0),
    ("flags", "direct-h2", 2.0),
    ("photos", "direct-h1", 2.0),
    ("photos", "direct-h2", 2.0),
];

/// Pages of which one request may cross.
const BUNDLED: [&str; 2] = ["flags", "photos"];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let demo = demo(context.runs.unwrap_or(3))?;
    let mut rows = Vec::new();
    demonstrate(&demo, &mut |line| eprintln!("{line}"), |comparison| {
        let page = |name: &str| comparison.results.iter().find(|result| result.page == name);
        rows.extend(RATIOS.iter().map(|(name, base, bound)| faster(page(name), name, base, *bound)));
        rows.extend(NAMES.iter().flat_map(|name| [crossed(page(name), name), right(page(name), name)]));
        Ok(())
    })?;
    Ok(rows)
}

/// The demonstration as its bounds have it.
pub(crate) fn demo(runs: u32) -> Result<Demo, MeasureError> {
    let profile =
        Profile::named("geo-hylas2").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    Ok(Demo {
        profile,
        pages: NAMES.map(str::to_owned).into(),
        variants: vec![Variant::DirectH1, Variant::DirectH2, Variant::Farhop],
        runs,
        timeout: Duration::from_secs(300),
        tls: false,
        keep: false,
    })
}

pub(crate) fn faster(page: Option<&PageResult>, name: &str, base: &str, bound: f64) -> Row {
    let pair = page.and_then(|page| Some((page.variant(base)?, page.variant("farhop")?)));
    let what = format!("{name} on geo-hylas2, faster than {base}");
    let bound_text = format!("≥ {bound} ×");
    let Some((direct, farhop)) = pair else { return Row::judged(what, "not loaded", bound_text, false) };
    match (ratio(direct, farhop), direct.plt_s, farhop.plt_s) {
        (Some(ratio), Some(slow), Some(fast)) => {
            let measured = format!("{ratio:.2} × ({:.2} s → {:.2} s)", slow.median, fast.median);
            Row::judged(what, measured, bound_text, ratio >= bound)
        }
        _ => Row::judged(what, "not loaded", bound_text, false),
    }
}

fn crossed(page: Option<&PageResult>, name: &str) -> Row {
    let what = format!("{name} on geo-hylas2, requests that cross");
    let count = page.and_then(|page| page.variant("farhop")).filter(|farhop| farhop.runs > 0);
    let Some(count) = count.map(|farhop| farhop.requests_crossed) else {
        return Row::judged(what, "not loaded", "1", false);
    };
    if BUNDLED.contains(&name) {
        return Row::judged(what, count.to_string(), "1, /favicon.ico included", count == 1.0);
    }
    Row { what, measured: count.to_string(), bound: "none, printed".into(), verdict: Verdict::Told }
}

pub(crate) fn right(page: Option<&PageResult>, name: &str) -> Row {
    let what = format!("{name} on geo-hylas2, files right");
    let farhop = page.and_then(|page| page.variant("farhop"));
    let (ok, bad) = farhop.map_or((0, 0), |farhop| (farhop.resources_ok, farhop.resources_bad));
    Row::judged(what, format!("{ok} right, {bad} wrong"), "all right, by hash", ok > 0 && bad == 0)
}
