//! HTTPEP's pages over its links: what share of direct HTTP/1.1's load time is saved, beside what physics would allow.

use std::time::Duration;

use farhop_compare::{Demo, Variant, demonstrate};
use farhop_orbit::Profile;
use farhop_report::{PageResult, VariantResult, saving, saving_at_limit};
use farhop_workload::pages::HTTPEP;

use crate::group::Context;
use crate::{MeasureError, Row};

/// Link, variant, what is saved at least on average over the pages.
const SAVINGS: [(&str, Variant, f64); 3] = [
    ("geo-256k", Variant::FarhopHttpep, 0.27),
    ("geo-256k", Variant::FarhopIdentity, 0.10),
    ("geo-2m", Variant::FarhopIdentity, 0.32),
];

/// Loads of each; a page is never slower by these (DESIGN.md), not by fewer.
const RUNS: u32 = 5;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let mut rows = Vec::new();
    for link in ["geo-256k", "geo-2m"] {
        let profile = Profile::named(link).map_err(|error| MeasureError::Unexpected(error.to_string()))?;
        let bounds: Vec<_> = SAVINGS.iter().filter(|(over, ..)| *over == link).collect();
        let mut variants = vec![Variant::DirectH1, Variant::DirectH2];
        variants.extend(bounds.iter().map(|(_, variant, _)| *variant));
        let demo = Demo {
            profile,
            pages: HTTPEP.map(str::to_owned).into(),
            variants,
            runs: context.runs.unwrap_or(RUNS),
            timeout: Duration::from_secs(300),
            tls: false,
            keep: false,
        };
        demonstrate(&demo, &mut |line| eprintln!("{line}"), |comparison| {
            for (_, variant, bound) in &bounds {
                let enough = demo.runs >= RUNS;
                rows.extend(judged(&comparison.results, link, variant.name(), *bound, enough));
            }
            Ok(())
        })?;
    }
    Ok(rows)
}

/// The mean saving over the pages, and a row for each page.
fn judged(pages: &[PageResult], link: &str, variant: &str, bound: f64, enough: bool) -> Vec<Row> {
    let pairs: Vec<_> = pages
        .iter()
        .filter_map(|page| Some((page, page.variant("direct-h1")?, page.variant(variant)?)))
        .collect();
    let mean = |share: fn(&VariantResult, &VariantResult) -> Option<f64>| {
        let shares: Option<Vec<f64>> =
            pairs.iter().map(|(_, direct, farhop)| share(direct, farhop)).collect();
        let shares = shares.filter(|shares| shares.len() == HTTPEP.len())?;
        Some(shares.iter().sum::<f64>() / shares.len() as f64)
    };
    let what = format!("HTTPEP's pages on {link}, {variant}, mean saving");
    let bound_text = format!("≥ {:.0} % of direct-h1's load time", bound * 100.0);
    let saved = match (mean(saving), mean(saving_at_limit)) {
        (Some(saved), Some(limit)) => {
            let measured = format!("{:.1} % (at the limit {:.1} %)", saved * 100.0, limit * 100.0);
            Row::judged(what, measured, bound_text, saved >= bound)
        }
        _ => Row::judged(what, "not every page loaded", bound_text, false),
    };
    let each = pairs.iter().map(|(page, direct, farhop)| {
        let what = format!("{} on {link}, {variant}", page.page);
        let bound = "not slower than the better of direct-h1 and -h2, fewer bytes on the link than -h1";
        let bytes = |result: &VariantResult| result.link_bytes.forward + result.link_bytes.return_;
        let other = page.variant("direct-h2").and_then(|it| it.plt_s);
        let better =
            other.filter(|other| direct.plt_s.is_none_or(|it| other.median < it.median)).or(direct.plt_s);
        match (better, farhop.plt_s) {
            (Some(slow), Some(fast)) => {
                let (before, after) = (bytes(direct), bytes(farhop));
                let measured = format!(
                    "{:.2} s → {:.2} s, {:.1} KB → {:.1} KB",
                    slow.median,
                    fast.median,
                    before / 1e3,
                    after / 1e3
                );
                let pass = enough && fast.median <= slow.median * 1.03 && after < before;
                let measured = if enough { measured } else { format!("{measured}, fewer than {RUNS} loads") };
                Row::judged(what, measured, bound, pass)
            }
            _ => Row::judged(what, "not loaded", bound, false),
        }
    });
    std::iter::once(saved).chain(each).collect()
}
