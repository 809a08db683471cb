//! Whose a thing is: all state of ground is kept apart by remote and user. What outlives an exchange and belongs to a
//! user is kept here, bounded and in memory only.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_bundle::{Cookies, NeverUnasked};

/// Users of whom something is remembered; the one that was new the longest ago goes first.
const USERS: usize = 1024;
/// URLs remembered for a user.
const URLS: usize = 256;

/// A user of a remote. The number means nothing at another remote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// The remote's name in the settings.
    pub(crate) remote: Arc<str>,
    /// HTOTP's UserId.
    pub(crate) user: u64,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.remote, self.user)
    }
}

/// What is known of one user.
pub(crate) struct Known {
    never: Mutex<NeverUnasked>,
    cookies: Mutex<Cookies>,
}

impl Default for Known {
    fn default() -> Self {
        Known { never: Mutex::new(NeverUnasked::new(URLS)), cookies: Mutex::default() }
    }
}

impl Known {
    /// The URLs that are not fetched unasked.
    pub(crate) fn never(&self) -> MutexGuard<'_, NeverUnasked> {
        lock(&self.never)
    }

    /// What the user's browsers hold and send.
    pub(crate) fn cookies(&self) -> MutexGuard<'_, Cookies> {
        lock(&self.cookies)
    }
}

/// What is remembered of users.
#[derive(Default)]
pub(crate) struct Owners(Mutex<State>);

#[derive(Default)]
struct State {
    known: HashMap<Owner, Arc<Known>>,
    order: VecDeque<Owner>,
}

impl Owners {
    /// What is known of this user.
    pub(crate) fn known(&self, owner: &Owner) -> Arc<Known> {
        let mut state = lock(&self.0);
        if let Some(known) = state.known.get(owner) {
            return Arc::clone(known);
        }
        if state.order.len() >= USERS
            && let Some(oldest) = state.order.pop_front()
        {
            state.known.remove(&oldest);
        }
        let known = Arc::<Known>::default();
        state.order.push_back(owner.clone());
        state.known.insert(owner.clone(), Arc::clone(&known));
        known
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_kept_apart_and_their_number_is_bounded() {
        let owners = Owners::default();
        let owner = |remote: &str, user| Owner { remote: remote.into(), user };
        let first = owners.known(&owner("ship", 0));
        assert!(Arc::ptr_eq(&first, &owners.known(&owner("ship", 0))));
        assert!(!Arc::ptr_eq(&first, &owners.known(&owner("polar", 0))));
        for user in 1..=USERS as u64 {
            owners.known(&owner("ship", user));
        }
        assert!(!Arc::ptr_eq(&first, &owners.known(&owner("ship", 0))), "the oldest was forgotten");
        let state = owners.0.lock().unwrap();
        assert_eq!((state.known.len(), state.order.len()), (USERS, USERS));
    }
}
