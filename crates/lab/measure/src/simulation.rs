//! Both real ends in virtual time, on paths drawn from seeds.

use std::time::{Duration, Instant};

use farhop_seeds::{Lives, live_many};

use crate::group::Context;
use crate::{MeasureError, Row, Verdict};

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
    let mut all = Lives::default();
    for first in (0..count).step_by(PORTION as usize) {
        context.interrupt.check()?;
        let lives = live_many(first..count.min(first + PORTION), at_a_time);
        lives.failed.iter().for_each(|life| eprintln!("{life}"));
        all.add(lives);
        eprintln!("{} seeds, {} failed", all.lived, all.failed.len());
        if all.failed.len() >= 20 {
            break;
        }
    }
    let taken = Duration::from_secs(start.elapsed().as_secs());
    let is_whole = all.lived == count && count >= SEEDS;
    Ok(judged(&all, is_whole, taken).into())
}

/// What is judged, in full, and beside it how often the bound holds as it is written.
fn judged(all: &Lives, is_whole: bool, taken: Duration) -> [Row; 2] {
    let Lives { lived, failed, literal, cut_alone, literal_cut_alone } = all;
    let failed = failed.len();
    let share = |part: u64, whole: u64| 100.0 * part as f64 / (whole.max(1)) as f64;
    [
        Row::judged(
            "both ends on paths drawn from seeds, in virtual time",
            format!("{lived} seeds, {failed} failed, {taken:?}"),
            format!(
                "{SEEDS} seeds: no byte wrong or lost; no stall > 3 round trips with the queues and delays seen, from the second question on (1.25 s) \
                 or since the path last took something; no silence > twice that and once more for each cut; where only cuts come, > 3 round trips \
                 with queues for each and 1.25 s"
            ),
            failed == 0 && is_whole,
        ),
        Row {
            what: "of these, no silence > outage + 3 RTT of the empty path".into(),
            measured: format!(
                "{:.1} % of all; {:.1} % of the {cut_alone} on which only cuts come",
                share(*literal, *lived),
                share(*literal_cut_alone, *cut_alone)
            ),
            bound: "none, printed".into(),
            verdict: Verdict::Told,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_within_the_bound_as_it_is_written_is_told_beside_what_is_judged() {
        let all = Lives {
            lived: 10_000,
            literal: 7_900,
            cut_alone: 800,
            literal_cut_alone: 600,
            ..Lives::default()
        };
        let [judged, told] = judged(&all, true, Duration::from_secs(1));
        assert_eq!((judged.verdict, told.verdict), (Verdict::Pass, Verdict::Told));
        assert_eq!(told.measured, "79.0 % of all; 75.0 % of the 800 on which only cuts come");
        assert_eq!(
            super::judged(&all, false, Duration::ZERO)[0].verdict,
            Verdict::Miss,
            "fewer than asked for"
        );
    }
}
