//! The connections that nobody uses, of all users together. No more of them are kept than so many: beyond, the one that
//! was unused the longest is closed, so that neither users nor origins decide how much memory and how many sockets lie
//! idle.
//!
//! Locks are taken in this order: a place's state, then this. What [`Kept::enter`] displaces is closed when neither is
//! held.

use super::lock;
use super::place::Place;
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

/// See the module.
pub(crate) struct Kept {
    settings: Arc<Settings>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The one unused the longest first.
    unused: BTreeMap<u64, Weak<Place>>,
    next: u64,
}

/// Stands for an unused connection, until it is used, closed or displaced.
pub(super) struct Ticket {
    kept: Arc<Kept>,
    pub(super) number: u64,
}

/// The connection that has to make room, if one has to.
#[must_use = "it stays open until it is closed"]
pub(super) struct Displaced(Option<(u64, Weak<Place>)>);

impl Kept {
    /// Keeps as many as these settings have it at the time.
    pub(super) fn new(settings: Arc<Settings>) -> Arc<Kept> {
        Arc::new(Kept { settings, state: Mutex::default() })
    }

    /// A connection of this place, whose state the caller holds, is not used any more.
    pub(super) fn enter(self: &Arc<Self>, place: &Arc<Place>) -> (Ticket, Displaced) {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        state.unused.insert(number, Arc::downgrade(place));
        let displaced =
            if state.unused.len() > self.settings.kept() { state.unused.pop_first() } else { None };
        (Ticket { kept: self.clone(), number }, Displaced(displaced))
    }
}

impl Displaced {
    /// Closes it, unless somebody has just begun to use it.
    pub(super) fn close(self) {
        if let Some((number, place)) = self.0
            && let Some(place) = place.upgrade()
        {
            place.close_unused(number);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.kept.state).unused.remove(&self.number);
    }
}
