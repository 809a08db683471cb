//! The pages of parts 2 and 3 while one packet of a hundred gets lost, against the same without loss; and what each takes of the
//! return link.

use farhop_compare::{Demo, Variant, demonstrate};
use farhop_report::VariantResult;
use farhop_workload::pages::NAMES;

use crate::group::Context;
use crate::pages::demo;
use crate::{MeasureError, Row, Verdict};

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
        for ((name, clean), lossy) in NAMES.iter().zip(clean).zip(lossy) {
            let time = |loaded: &Option<VariantResult>| Some(loaded.as_ref()?.plt_s?.median);
            rows.push(judged(name, scheme, time(&clean), time(&lossy)));
            rows.extend(clean.map(|clean| returned(name, scheme, &clean)));
        }
    }
    Ok(rows)
}

/// What became of the demonstration's pages, in the order of [`NAMES`].
fn loaded(demo: Demo) -> Result<Vec<Option<VariantResult>>, MeasureError> {
    let mut results = Vec::new();
    demonstrate(&demo, &mut |line| eprintln!("{line}"), |comparison| {
        let page = |name: &&str| comparison.results.iter().find(|result| result.page == **name);
        results = NAMES.iter().map(|name| page(name)?.variant("farhop").cloned()).collect();
        Ok(())
    })?;
    Ok(results)
}

fn returned(name: &str, scheme: &str, loaded: &VariantResult) -> Row {
    let (bytes, packets) = (loaded.link_bytes, loaded.link_packets);
    let share = 100.0 * bytes.return_ / bytes.forward.max(1.0);
    Row {
        what: format!("{name} over {scheme}, return link"),
        measured: format!("{} bytes, {} packets ({share:.2} % of forward)", bytes.return_, packets.return_),
        bound: "none, printed".into(),
        verdict: Verdict::Told,
    }
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
