//! Both real ends in virtual time, on paths drawn from seeds.

use std::time::{Duration, Instant};

use farhop_seeds::live_many;

use crate::group::Context;
use crate::{MeasureError, Row};

/// How many, unless `FARHOP_SEEDS` says otherwise.
const SEEDS: u64 = 10_000;
/// Lived before somebody is told how far it has come, and may stop it.
const PORTION: u64 = 500;

pub(crate) fn rows(context: &Context) -> Result<Vec<Row>, MeasureError> {
    let count = match std::env::var("FARHOP_SEEDS") {
        Ok(text) => {
            text.parse().map_err(|_| MeasureError::Unexpected(format!("FARHOP_SEEDS={text} is no number")))?
        }
        Err(_) => SEEDS,
    };
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    let (mut lived, mut failed) = (0, 0);
    for first in (0..count).step_by(PORTION as usize) {
        context.interrupt.check()?;
        let lives = live_many(first..count.min(first + PORTION), at_a_time);
        lived += lives.lived;
        failed += lives.failed.len();
        lives.failed.iter().for_each(|life| eprintln!("{life}"));
        eprintln!("{lived} seeds, {failed} failed");
        if failed >= 20 {
            break;
        }
    }
    let taken = Duration::from_secs(start.elapsed().as_secs());
    Ok(vec![Row::judged(
        "both ends on paths drawn from seeds, in virtual time",
        format!("{lived} seeds, {failed} failed, {taken:?}"),
        format!("{SEEDS} seeds: no byte wrong or lost, no stall > outage + 3 RTT"),
        failed == 0 && lived == count && count >= SEEDS,
    )])
}
