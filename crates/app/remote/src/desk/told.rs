//! What ground is to be told of promises: which are not wanted, which have answered requests, and what was answered from the
//! repository in their place.

use std::ops::RangeInclusive;
use std::time::Duration;

use farhop_bundle::LoadId;
use farhop_events::ExchangeId;

use super::{Desk, MOST_UNWANTED, Wire};

impl Desk {
    /// The repository has answered from `entry` what `page` asked for, at `now`.
    pub(crate) fn answered_here(&mut self, page: ExchangeId, entry: u64, now: Duration) {
        if let Some(began) = self.began(LoadId(page.0))
            && self.answered_here.len() < MOST_UNWANTED
        {
            self.answered_here.push((page, entry, now.saturating_sub(began)));
        }
    }

    /// What the repository has answered to pages, by page, of which ground has to be told.
    pub(crate) fn take_answered_here(&mut self) -> Vec<(ExchangeId, Vec<(u64, u64)>)> {
        let mut all = std::mem::take(&mut self.answered_here);
        all.sort_by_key(|(page, ..)| *page);
        let milliseconds = |after: Duration| u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let pages = all.chunk_by(|a, b| a.0 == b.0);
        pages
            .filter_map(|own| {
                let entries = own.iter().map(|(_, entry, after)| (*entry, milliseconds(*after))).collect();
                Some((own.first()?.0, entries))
            })
            .collect()
    }

    /// Runs of promises that ground has to be told are not wanted, by carrier.
    pub(crate) fn take_untold(&mut self) -> Vec<(u64, RangeInclusive<u64>)> {
        runs(std::mem::take(&mut self.untold))
    }

    /// Runs of promises that have answered requests, of which ground has to be told, by carrier.
    pub(crate) fn take_used(&mut self) -> Vec<(u64, RangeInclusive<u64>)> {
        runs(std::mem::take(&mut self.used))
    }
}

/// Takes down that a promise has answered a request. Ground is told every second, where there is a carrier: without one,
/// what is more has nobody to be told to.
pub(super) fn note_used(used: &mut Vec<Wire>, wire: Wire) {
    if used.len() < MOST_UNWANTED {
        used.push(wire);
    }
}

fn runs(mut all: Vec<Wire>) -> Vec<(u64, RangeInclusive<u64>)> {
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a.0 == b.0 && a.1 + 1 == b.1);
    runs.filter_map(|run| Some((run.first()?.0, run.first()?.1..=run.last()?.1))).collect()
}
