//! Whose a thing is: all state of ground is kept apart by remote and user. What outlives an exchange and belongs to a
//! user is kept here, bounded.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use farhop_bundle::NeverUnasked;

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

/// What is remembered of users.
#[derive(Default)]
pub(crate) struct Owners(Mutex<State>);

#[derive(Default)]
struct State {
    never: HashMap<Owner, Arc<Mutex<NeverUnasked>>>,
    order: VecDeque<Owner>,
}

impl Owners {
    /// The URLs that are not fetched unasked for this user.
    pub(crate) fn never_unasked(&self, owner: &Owner) -> Arc<Mutex<NeverUnasked>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(never) = state.never.get(owner) {
            return Arc::clone(never);
        }
        if state.order.len() >= USERS
            && let Some(oldest) = state.order.pop_front()
        {
            state.never.remove(&oldest);
        }
        let never = Arc::new(Mutex::new(NeverUnasked::new(URLS)));
        state.order.push_back(owner.clone());
        state.never.insert(owner.clone(), Arc::clone(&never));
        never
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_kept_apart_and_their_number_is_bounded() {
        let owners = Owners::default();
        let owner = |remote: &str, user| Owner { remote: remote.into(), user };
        let first = owners.never_unasked(&owner("ship", 0));
        assert!(Arc::ptr_eq(&first, &owners.never_unasked(&owner("ship", 0))));
        assert!(!Arc::ptr_eq(&first, &owners.never_unasked(&owner("polar", 0))));
        for user in 1..=USERS as u64 {
            owners.never_unasked(&owner("ship", user));
        }
        assert!(!Arc::ptr_eq(&first, &owners.never_unasked(&owner("ship", 0))), "the oldest was forgotten");
        let state = owners.0.lock().unwrap();
        assert_eq!((state.never.len(), state.order.len()), (USERS, USERS));
    }
}
