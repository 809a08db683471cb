//! Room for bodies that are kept while they come: of the beginnings that wait in memory, and of the files that are written at a
//! time. Whoever asks for many at once gets no more than a share of it, so that the rest is for the others. Nothing in here waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bodies that are written to their files at a time, a file and 128 KiB each.
const FILES: u64 = 64;
/// Bytes of beginnings that wait in memory.
const BYTES: u64 = 32 << 20;
/// What is this long waits in memory until it is whole: most of what is asked for, however slowly it comes, takes no file.
pub(crate) const BEGINNING: u64 = 128 * 1024;
/// The share of one who asks.
const SHARE: u64 = 4;

/// See the module. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Room(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    all: Taken,
    /// By who has asked, as long as anything of theirs is coming.
    of: HashMap<u64, Taken>,
    refused: u64,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
struct Taken {
    files: u64,
    bytes: u64,
}

impl Taken {
    fn plus(self, more: Taken) -> Taken {
        Taken { files: self.files + more.files, bytes: self.bytes + more.bytes }
    }

    fn less(self, back: Taken) -> Taken {
        Taken { files: self.files - back.files, bytes: self.bytes - back.bytes }
    }

    fn is_within(self, share: u64) -> bool {
        self.files <= FILES / share && self.bytes <= BYTES / share
    }
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a body that comes for this one who asks; nothing is taken yet.
    pub(crate) fn seat(&self, asker: u64) -> Seat {
        Seat { room: self.clone(), asker, taken: Taken::default() }
    }

    /// A body that has no seat is not kept: it is counted.
    pub(crate) fn refuse(&self) {
        self.lock().refused += 1;
    }

    /// Bodies for which there was no room, or that the disk could not follow.
    pub(crate) fn refused(&self) -> u64 {
        self.lock().refused
    }
}

/// What one body has taken; given back when it is dropped.
pub(crate) struct Seat {
    room: Room,
    asker: u64,
    taken: Taken,
}

impl Seat {
    /// Room for more bytes in memory, if there is any.
    pub(crate) fn take_bytes(&mut self, bytes: usize) -> bool {
        self.take(Taken { files: 0, bytes: bytes as u64 })
    }

    /// Room for a file, in place of that in memory.
    pub(crate) fn take_file(&mut self) -> bool {
        let has_room = self.take(Taken { files: 1, bytes: 0 });
        self.give_back(Taken { files: 0, ..self.taken });
        has_room
    }

    /// The body is not kept: it is counted.
    pub(crate) fn refuse(&mut self) {
        self.room.lock().refused += 1;
        self.give_back(self.taken);
    }

    /// The body is too long to be kept: nobody's fault.
    pub(crate) fn leave(&mut self) {
        self.give_back(self.taken);
    }

    fn take(&mut self, more: Taken) -> bool {
        let mut state = self.room.lock();
        let all = state.all.plus(more);
        let own = state.of.get(&self.asker).copied().unwrap_or_default().plus(more);
        let has_room = all.is_within(1) && own.is_within(SHARE);
        if has_room {
            state.all = all;
            state.of.insert(self.asker, own);
            self.taken = self.taken.plus(more);
        }
        has_room
    }

    fn give_back(&mut self, back: Taken) {
        let mut state = self.room.lock();
        state.all = state.all.less(back);
        let own = state.of.get(&self.asker).copied().unwrap_or_default().less(back);
        match own == Taken::default() {
            true => drop(state.of.remove(&self.asker)),
            false => drop(state.of.insert(self.asker, own)),
        }
        self.taken = self.taken.less(back);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_who_asks_for_much_leaves_room_for_others_and_what_is_refused_is_counted() {
        let room = Room::default();
        let takes = |asker| {
            let mut seat = room.seat(asker);
            let has_room = seat.take_file();
            if !has_room {
                seat.refuse();
            }
            has_room.then_some(seat)
        };
        let greedy: Vec<_> = (0..FILES).filter_map(|_| takes(1)).collect();
        assert_eq!(greedy.len() as u64, FILES / SHARE);
        let others: Vec<_> = (0..2 * FILES).filter_map(|number| takes(2 + number)).collect();
        assert_eq!(others.len() as u64, FILES - FILES / SHARE);
        assert_eq!(room.refused(), FILES + FILES);
        drop((greedy, others));
        let state = room.lock();
        assert!(state.all == Taken::default() && state.of.is_empty());
    }

    #[test]
    fn a_file_takes_no_room_in_memory() {
        let room = Room::default();
        let (mut first, mut second) = (room.seat(1), room.seat(1));
        assert!(first.take_bytes((BYTES / SHARE) as usize) && !second.take_bytes(1));
        assert!(first.take_file() && second.take_bytes(1));
        assert_eq!(room.lock().all, Taken { files: 1, bytes: 1 });
    }
}
