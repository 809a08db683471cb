//! What was loaded and what became of it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// So many faults are told in words; all are counted.
const TOLD: usize = 20;

/// Counts from many tasks.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<Counts>);

/// The counts.
#[derive(Debug, Default, Clone)]
pub(super) struct Counts {
    /// Rounds of loads that were begun.
    pub(super) rounds: u64,
    /// Loads that went as they had to, by their kind.
    pub(super) good: BTreeMap<&'static str, u64>,
    /// Bytes that were compared.
    pub(super) bytes: u64,
    /// Loads that ended with a ground that was killed.
    pub(super) lost: u64,
    /// Loads that went wrong.
    pub(super) faults: u64,
    /// The first of them.
    pub(super) told: Vec<String>,
    /// When a ground was killed, and when it was reached again.
    restarts: Vec<(Instant, Option<Instant>)>,
}

impl Tally {
    pub(super) fn counts(&self) -> Counts {
        self.lock().clone()
    }

    pub(super) fn round(&self) {
        self.lock().rounds += 1;
    }

    /// From now on loads may end with their ground.
    pub(super) fn ground_is_gone(&self) {
        self.lock().restarts.push((Instant::now(), None));
    }

    /// What begins from now on may not.
    pub(super) fn ground_is_back(&self) {
        if let Some(last) = self.lock().restarts.last_mut() {
            last.1 = Some(Instant::now());
        }
    }

    /// Notes a load that began at `start`, with the bytes that were compared.
    pub(super) fn note(&self, kind: &'static str, start: Instant, outcome: io::Result<u64>) {
        let mut counts = self.lock();
        match outcome {
            Ok(bytes) => {
                *counts.good.entry(kind).or_default() += 1;
                counts.bytes += bytes;
            }
            // Bytes that nobody sent are wrong whatever happened meanwhile.
            Err(error) if error.kind() != io::ErrorKind::InvalidData && counts.met_a_restart(start) => {
                counts.lost += 1;
            }
            Err(error) => {
                counts.faults += 1;
                if counts.told.len() < TOLD {
                    counts.told.push(format!("{kind}: {error}"));
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Loads of every kind that went as they had to.
    pub(super) fn loads(&self) -> u64 {
        self.good.values().sum()
    }

    /// Whether ground was away at any time since `start`.
    fn met_a_restart(&self, start: Instant) -> bool {
        self.restarts.iter().any(|(_, back)| back.is_none_or(|back| start <= back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_restart_may_break_and_what_nothing_may() {
        let cut = || Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        let tally = Tally::default();
        let before = Instant::now();
        tally.note("page", before, cut());
        tally.ground_is_gone();
        tally.note("page", before, cut());
        tally.note("page", before, Err(io::Error::new(io::ErrorKind::InvalidData, "byte 3")));
        tally.ground_is_back();
        tally.note("page", before, cut());
        let later = Instant::now() + std::time::Duration::from_millis(1);
        tally.note("page", later, cut());
        tally.note("page", later, Ok(7));
        let counts = tally.counts();
        assert_eq!((counts.lost, counts.faults, counts.loads(), counts.bytes), (2, 3, 1, 7));
        assert_eq!(counts.told[1], "page: byte 3");
    }
}
