//! Where the stream of two handles is: an exchange or tunnel may go on on another carrier than it began on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_htotp::scheduler::StreamId;

use super::{Shared, Signals, State};

/// What the two handles of a stream share. Its lock is taken before that of any carrier, never while one is held.
pub(super) struct Line {
    at: Mutex<Place>,
    pub(super) signals: Arc<Signals>,
}

type Place = (Arc<Shared>, StreamId);

impl Line {
    pub(super) fn new(shared: Arc<Shared>, id: StreamId, signals: Arc<Signals>) -> Arc<Line> {
        Arc::new(Line { at: Mutex::new((shared, id)), signals })
    }

    /// Where it is, for as long as the guard is held: whoever moves the stream holds it meanwhile.
    pub(super) fn place(&self) -> MutexGuard<'_, Place> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something where the stream is.
    pub(super) fn act<T>(&self, act: impl FnOnce(&Arc<Shared>, &mut State, StreamId) -> T) -> T {
        let (mut shared, mut id) = self.place().clone();
        loop {
            let mut state = shared.lock();
            if state.slots.contains_key(&id) {
                return act(&shared, &mut state, id);
            }
            drop(state);
            // It is being moved, was moved, or is over.
            let place = self.place().clone();
            if Arc::ptr_eq(&place.0, &shared) && place.1 == id {
                return act(&shared, &mut shared.lock(), id);
            }
            (shared, id) = place;
        }
    }
}
