//! By what a client came in, and whether it could again. No I/O.

use crate::passwords::{Account, Passwords};

/// By what a client came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Its connection was caught, where nobody can be asked who they are.
    Caught,
    /// Nobody had to prove who they are.
    Open,
    /// By this name and its password.
    Account(Account),
}

impl Pass {
    /// Whether it would be good where these are the users; `None` where nobody has to prove who they are.
    pub(super) fn is_good(&self, users: Option<&Passwords>) -> bool {
        match (self, users) {
            (Pass::Caught, _) | (_, None) => true,
            (Pass::Open, Some(_)) => false,
            (Pass::Account(account), Some(users)) => users.has(account),
        }
    }
}
