//! Numbers of users that outlive the process: what was kept for one is found by nobody else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::index::USERS;

/// Who has which number. A number is written down with the first entry that is kept for it.
#[derive(Debug)]
pub(super) struct Numbers(Mutex<State>);

#[derive(Debug)]
struct State {
    by_name: HashMap<u128, u64>,
    names: HashMap<u64, u128>,
    next: u64,
}

impl Numbers {
    /// Goes on from what was written down.
    pub(super) fn new(by_name: HashMap<u128, u64>, next: u64) -> Numbers {
        let names = by_name.iter().map(|(name, number)| (*number, *name)).collect();
        Numbers(Mutex::new(State { by_name, names, next: next.max(1) }))
    }

    /// The number of the user of this name.
    pub(super) fn number(&self, name: u128) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = state.by_name.get(&name) {
            return *number;
        }
        let number = state.next;
        state.next += 1;
        // Who comes when so many are known has a number for now; nothing is kept for it.
        if state.by_name.len() < USERS {
            state.by_name.insert(name, number);
            state.names.insert(number, name);
        }
        number
    }

    /// The name of the user of this number, unless so many are known that it is not.
    pub(super) fn name(&self, number: u64) -> Option<u128> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).names.get(&number).copied()
    }
}
