//! How fast pages are read: the scanners of `core/page` over the documents, style sheets and scripts that its benchmark
//! makes up, one row for each kind.

#[path = "../../../core/page/benches/cases/mod.rs"]
mod cases;

use std::time::{Duration, Instant};

use crate::group::Context;
use crate::{MeasureError, Row};
use cases::Case;

/// How long is read for each figure.
const READ: Duration = Duration::from_secs(2);

pub(crate) fn rows(_: &Context) -> Result<Vec<Row>, MeasureError> {
    cases::all().iter().map(row).collect()
}

/// Reads again and again for long enough, and tells the fastest reading: how fast a core reads that has nothing else to
/// do. A reading that finds nothing is none.
fn row(case: &Case) -> Result<Row, MeasureError> {
    let (mut best, mut found) = (Duration::MAX, 0);
    let end = Instant::now() + READ;
    while Instant::now() < end {
        let start = Instant::now();
        let hints = case.read();
        best = best.min(start.elapsed());
        found = hints.ok_or_else(|| MeasureError::Unexpected(format!("{} is not read", case.name)))?;
    }
    let bytes = case.text.len();
    let rate = bytes as f64 / 1e6 / best.as_secs_f64();
    let measured = format!("{rate:.0} MB/s, {found} hints in {} KB", bytes / 1000);
    let bound = format!("≥ {} MB/s on one core", case.least);
    let holds = rate >= f64::from(case.least) && found > 0;
    Ok(Row::judged(format!("reading {}", case.name), measured, bound, holds))
}
