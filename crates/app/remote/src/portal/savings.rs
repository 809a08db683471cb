//! What each user was spared, counted as answers end. In memory; no I/O.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use farhop_events::AnsweredFrom;

use crate::users::User;

/// What was answered to one user since the proxy was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Savings {
    /// Answers.
    pub(crate) answers: u64,
    /// Body bytes of them.
    pub(crate) bytes: u64,
    /// Answers for which nothing had to cross the satellite link any more: held, or promised and there already.
    pub(crate) at_once: u64,
    /// Answers that were on their way before they were asked for.
    pub(crate) ahead: u64,
    /// Body bytes that had crossed for an earlier request.
    pub(crate) bytes_held: u64,
}

/// Users that are counted; beyond, who was answered least is forgotten.
const MOST: usize = 10_000;

/// The savings of all users.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<HashMap<u64, Savings>>);

impl Ledger {
    /// An answer has ended.
    pub(crate) fn answered(&self, user: &User, from: AnsweredFrom, bytes: u64) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= MOST && !users.contains_key(&user.id) {
            let least = users.iter().min_by_key(|(_, savings)| savings.answers).map(|(id, _)| *id);
            least.and_then(|id| users.remove(&id));
        }
        let savings = users.entry(user.id).or_default();
        savings.answers += 1;
        savings.bytes += bytes;
        match from {
            AnsweredFrom::Repository => {
                savings.at_once += 1;
                savings.bytes_held += bytes;
            }
            AnsweredFrom::Validated => savings.bytes_held += bytes,
            AnsweredFrom::PromiseEarly => savings.at_once += 1,
            AnsweredFrom::PromiseOnTheWay => savings.ahead += 1,
            AnsweredFrom::Asked | AnsweredFrom::Remote => {}
        }
    }

    /// One user's.
    pub(crate) fn of(&self, user: &User) -> Savings {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&user.id).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_savings_of_their_own() {
        let user = |id| User { id, name: format!("10.0.0.{id}").into() };
        let ledger = Ledger::default();
        for (from, bytes) in [
            (AnsweredFrom::Asked, 100),
            (AnsweredFrom::Repository, 10),
            (AnsweredFrom::PromiseEarly, 20),
            (AnsweredFrom::PromiseOnTheWay, 30),
            (AnsweredFrom::Validated, 5),
        ] {
            ledger.answered(&user(1), from, bytes);
        }
        let expected = Savings { answers: 5, bytes: 165, at_once: 2, ahead: 1, bytes_held: 15 };
        assert_eq!(ledger.of(&user(1)), expected);
        assert_eq!(ledger.of(&user(2)), Savings::default());
    }

    #[test]
    fn of_too_many_users_the_least_answered_is_forgotten() {
        let user = |id| User { id, name: "u".into() };
        let ledger = Ledger::default();
        for id in [0, 0, 1].into_iter().chain(2..MOST as u64).chain(2..=MOST as u64) {
            ledger.answered(&user(id), AnsweredFrom::Asked, 1);
        }
        assert_eq!(ledger.of(&user(0)).answers, 2);
        assert_eq!(ledger.of(&user(1)).answers, 0);
        assert_eq!(ledger.of(&user(MOST as u64)).answers, 1);
    }
}
