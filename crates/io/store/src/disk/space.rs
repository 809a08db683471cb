//! A disk that has less room than the store may take: what is worth the least goes until what comes fits, as it does at the store's
//! own bound. What is worth less than all that is there goes itself.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use farhop_replacement::Response;

use super::files::Bodies;
use super::row::Row;
use super::writer::{Batch, Done, Outcome, PAUSE, SHARE, Writer};

/// How often room is made for one thing, each time twice as much: others write to the disk, and files that are read go later.
const ROUNDS: u32 = 3;
/// The share of what there is that goes besides, so that not every entry has to make room for itself, and at most so many bytes.
const SPARE: u64 = 64;
const MOST_SPARE: u64 = 4 << 20;
/// Room for the pages of the index that one transaction changes.
const PAGES: u64 = 256 * 1024;
/// How often it is said that the disk is full.
const SAID: Duration = Duration::from_secs(600);

/// What has become of a full disk.
#[derive(Default)]
pub(super) struct Space {
    /// When room was made and there was none nevertheless: for a while nothing goes for it.
    in_vain: Option<Instant>,
    said: Option<Instant>,
}

/// Whether the system has no more room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Writer {
    /// Writes what belongs to `response`, and where the disk is full again after so many bytes of room were made.
    pub(super) fn with_room<T>(
        &mut self,
        batch: &mut Batch,
        response: &Response,
        bytes: u64,
        mut write: impl FnMut(&Bodies) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut written = write(&self.bodies);
        for round in 0..ROUNDS {
            match &written {
                Err(error) if is_full(error) && self.makes_space(batch, Some(response), bytes << round) => {
                    self.say_full(error);
                    written = write(&self.bodies);
                }
                _ => return written,
            }
        }
        if written.as_ref().is_err_and(is_full) {
            self.space.in_vain = Some(Instant::now());
        }
        written
    }

    /// Commits the batch, and where the disk is full again after room for the index was made.
    pub(super) fn commit_with_room(&mut self, batch: &mut Batch) -> Option<Result<(), redb::Error>> {
        let place = self.place.clone();
        let mut committed = place.ask(|index| self.commit(index, batch));
        for round in 0..ROUNDS {
            match &committed {
                // What has failed is asked nothing more before it is opened again.
                Some(Err(redb::Error::Io(error))) if is_full(error) && place.reopen() => {
                    self.say_full(error);
                    if !self.makes_space(batch, None, PAGES << round) {
                        return committed;
                    }
                    committed = place.ask(|index| self.commit(index, batch));
                }
                _ => return committed,
            }
        }
        if matches!(&committed, Some(Err(redb::Error::Io(error))) if is_full(error)) {
            self.space.in_vain = Some(Instant::now());
        }
        committed
    }

    /// Removes the files of what is worth the least, of so many bytes; the index forgets them with the batch. `false`: nothing went,
    /// since too little is worth less than `response`, which would take it, or it would be in vain.
    fn makes_space(&mut self, batch: &mut Batch, response: Option<&Response>, bytes: u64) -> bool {
        if self.space.in_vain.is_some_and(|at| at.elapsed() < PAUSE) {
            return false;
        }
        let gone: HashSet<u64> = batch.removed.iter().copied().collect();
        let worth = response.map(|response| self.policy.worth(response));
        let place = self.place.clone();
        let found = place.ask(|index| {
            let (_, used) = index.extent()?;
            let takes = response.map_or(0, |response| response.size.0);
            // The share of the room that there is, as it is of that which there may be.
            if takes > used / SHARE {
                return Ok(Err(true));
            }
            let spare = (used / SPARE).min(MOST_SPARE);
            let least = index.least(bytes + spare, worth, |id| !gone.contains(&id))?;
            Ok(least.ok_or(false))
        });
        let least = match found {
            Some(Ok(Ok(least))) => least,
            Some(Ok(Err(is_too_long))) => {
                // It was worth the least itself.
                worth.filter(|_| !is_too_long).into_iter().for_each(|worth| self.policy.handle_gone(worth));
                return false;
            }
            Some(Err(_)) | None => return false,
        };
        for (worth, id, sealed) in least {
            self.bodies.remove(id);
            self.policy.handle_gone(worth);
            batch.removed.push(id);
            if let Some(row) = Row::open(id, &sealed, &self.keys) {
                let outcome = Outcome::Evicted { partition: row.partition, bytes: row.length };
                batch.done.push(Done { id, url: row.url.into(), outcome });
            }
        }
        true
    }

    fn say_full(&mut self, error: &io::Error) {
        if self.space.said.is_none_or(|at| at.elapsed() >= SAID) {
            self.space.said = Some(Instant::now());
            let name = self.place.name();
            tracing::warn!(target: "farhop", "store {name}: {error}; what is worth the least goes to make room");
        }
    }
}
