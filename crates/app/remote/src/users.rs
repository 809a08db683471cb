//! Who asks: a user is the authenticated name, else the client's address. On the hop each is a number.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// A user of this remote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct User {
    /// Small, so that it costs a byte or two on the hop. Lasts as long as the process.
    pub(crate) id: u64,
    /// For events and promises.
    pub(crate) name: Arc<str>,
}

/// The users seen so far.
#[derive(Default)]
pub(crate) struct Users(Mutex<HashMap<IpAddr, User>>);

impl Users {
    /// The user at `address`; an IPv4 address is the same user however it is written.
    pub(crate) fn at(&self, address: IpAddr) -> User {
        let address = address.to_canonical();
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = users.len() as u64 + 1;
        users.entry(address).or_insert_with(|| User { id: next, name: address.to_string().into() }).clone()
    }
}
