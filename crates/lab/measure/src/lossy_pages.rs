//! The pages of parts 2 and 3 while one packet of a hundred gets lost, against the same without loss.

use farhop_compare::{Demo, Variant, demonstrate};
use farhop_workload::pages::NAMES;

use crate::group::Context;
use crate::pages::demo;
use crate::{MeasureError, Row};

/// Loss both ways.
const LOSS: f64 = 0.01;
/// How many times the lossless load time it may be.
const FACTOR: f64 = 1.2;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = Vec::new();
    for (tls, scheme) in [(false, "HTTP"), (true, "HTTPS")] {
        let demo = || demo(context.runs.unwrap_or(5));
        let clean = loaded(Demo { variants: vec![Variant::Farhop], tls, ..demo()? })?;
        let lossy = Demo { variants: vec![Variant::Farhop], tls, ..demo()? };
        let lossy = loaded(Demo { profile: lossy.profile.clone().with_loss(LOSS, LOSS), ..lossy })?;
        let pairs = clean.into_iter().zip(lossy);
        rows.extend(NAMES.iter().zip(pairs).map(|(name, (clean, lossy))| judged(name, scheme, clean, lossy)));
    }
    Ok(rows)
}

/// The median load times of the demonstration's pages, in seconds, in the order of [`NAMES`].
fn loaded(demo: Demo) -> Result<Vec<Option<f64>>, MeasureError> {
    let mut times = Vec::new();
    demonstrate(&demo, &mut |line| eprintln!("{line}"), |comparison| {
        let page = |name: &&str| comparison.results.iter().find(|result| result.page == **name);
        times = NAMES.iter().map(|name| Some(page(name)?.variant("farhop")?.plt_s?.median)).collect();
        Ok(())
    })?;
    Ok(times)
}

fn judged(name: &str, scheme: &str, clean: Option<f64>, lossy: Option<f64>) -> Row {
    let what = format!("{name} over {scheme}, 1 % lost both ways");
    let bound = format!("≤ {FACTOR} × the lossless load");
    match (clean, lossy) {
        (Some(clean), Some(lossy)) => {
            let measured = format!("{:.2} × ({clean:.2} s → {lossy:.2} s)", lossy / clean);
            Row::judged(what, measured, bound, lossy <= clean * FACTOR)
        }
        _ => Row::judged(what, "not loaded", bound, false),
    }
}
