//! Who asks: a user is the authenticated name, else the client's address. On the hop each is a number.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// A user of this remote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct User {
    /// Small, so that it costs a byte or two on the hop. Lasts as long as the process.
    pub(crate) id: u64,
    /// For events, promises and choices. No name that a user can have reads as an address, so the two never meet.
    pub(crate) name: Arc<str>,
}

#[derive(PartialEq, Eq, Hash)]
enum Who {
    Address(IpAddr),
    Name(Arc<str>),
}

/// The users seen so far.
#[derive(Default)]
pub(crate) struct Users(Mutex<HashMap<Who, User>>);

impl Users {
    /// The user at `address`; an IPv4 address is the same user however it is written.
    pub(crate) fn at(&self, address: IpAddr) -> User {
        let address = address.to_canonical();
        self.known(Who::Address(address), || address.to_string().into())
    }

    /// The user who has proved to be `name`, wherever from.
    pub(crate) fn named(&self, name: &Arc<str>) -> User {
        self.known(Who::Name(Arc::clone(name)), || Arc::clone(name))
    }

    fn known(&self, who: Who, name: impl FnOnce() -> Arc<str>) -> User {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = users.len() as u64 + 1;
        users.entry(who).or_insert_with(|| User { id: next, name: name() }).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_user_from_everywhere_and_an_address_is_another() {
        let users = Users::default();
        let anna = users.named(&"anna".into());
        assert_eq!(users.named(&"anna".into()), anna);
        let address = users.at("10.0.0.1".parse().unwrap());
        assert_eq!(users.at("::ffff:10.0.0.1".parse().unwrap()), address);
        assert_ne!(address.id, anna.id);
        assert_ne!(users.named(&"ben".into()).id, anna.id);
    }
}
