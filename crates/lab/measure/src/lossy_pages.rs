//! Pages of parts 2 and 3 while one packet of a hundred gets lost, against the same without loss; and what each takes of the return link.
//! Both are loaded in turn on one testbed whose link goes to and fro, so that a busy host makes neither slower than the other.

use std::path::Path;
use std::time::Duration;

use farhop_compare::{Alternated, Alternation, Variant};
use farhop_orbit::Profile;
use farhop_report::VariantResult;
use farhop_workload::pages::{self, HTTPEP, NAMES, Page};
use farhop_workload::{npm, packages};

use crate::group::Context;
use crate::{MeasureError, Row, Verdict};

/// Loss both ways.
const LOSS: f64 = 0.01;
/// How many times the lossless load time it may be.
const FACTOR: f64 = 1.2;
/// Of the pages of packages two that differ: many small files in a row, and a style framework's documentation with pictures.
const PACKAGES: [&str; 2] = ["sb-admin", "spectre"];

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let folder = tempfile::tempdir().map_err(MeasureError::system("a folder"))?;
    let mut rows = Vec::new();
    let mut plain = built(context, folder.path(), &NAMES)?;
    let secure = [plain.clone(), fetched(context, &mut rows)?].concat();
    plain.extend(built(context, folder.path(), &HTTPEP)?);
    for (pages, scheme) in [(plain, "HTTP"), (secure, "HTTPS")] {
        for Alternated { page, results: [clean, lossy] } in alternated(context, pages, scheme == "HTTPS")? {
            let time = |loaded: &VariantResult| loaded.plt_s.map(|spread| spread.median);
            rows.push(judged(&page, scheme, time(&clean), time(&lossy)));
            rows.push(returned(&page, scheme, &clean));
        }
    }
    Ok(rows)
}

/// The pages made here.
fn built(context: &Context, folder: &Path, names: &[&str]) -> Result<Vec<Page>, MeasureError> {
    let node = npm::cache_folder();
    let mut built = Vec::new();
    for name in names {
        context.interrupt.check()?;
        eprintln!("making the page {name}");
        let page = pages::build(name, folder, &node);
        built.push(page.map_err(|error| MeasureError::Unexpected(error.to_string()))?);
    }
    Ok(built)
}

/// Pages that others made. One that cannot be had is a row that misses, not the end of the others.
fn fetched(context: &Context, rows: &mut Vec<Row>) -> Result<Vec<Page>, MeasureError> {
    let cache = npm::cache_folder().join("packages");
    let mut fetched = Vec::new();
    for listed in packages::list()?.iter().filter(|page| PACKAGES.contains(&&*page.name)) {
        context.interrupt.check()?;
        eprintln!("fetching {}: {}", listed.name, listed.packages.join(", "));
        match listed.fetch(&cache) {
            Ok(page) => fetched.push(page.page),
            Err(error) => rows.push(Row::unmeasured(&listed.name, &error.into())),
        }
    }
    Ok(fetched)
}

fn alternated(context: &Context, pages: Vec<Page>, tls: bool) -> Result<Vec<Alternated>, MeasureError> {
    let clean = Profile::named("geo-hylas2").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    let lossy = clean.clone().with_loss(LOSS, LOSS);
    let alternation = Alternation {
        pages,
        variant: Variant::Farhop,
        conditions: [clean, lossy],
        runs: context.runs.unwrap_or(5),
        timeout: Duration::from_secs(300),
        tls,
    };
    Ok(alternation.carry_out(context.interrupt.clone(), &mut |line| eprintln!("{line}"))?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_packages_are_of_the_list() {
        let listed = packages::list().unwrap();
        assert!(PACKAGES.iter().all(|name| listed.iter().any(|page| page.name == *name)));
    }
}
