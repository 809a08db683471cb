//! Who asks: a user is the authenticated name, else the client's address. On the hop each is a number.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use farhop_store::Repository;

/// Users known by their numbers. One who was away while so many others asked gets a new number, unless a disk has kept it,
/// and what was held for the old one is nobody's.
const MOST: usize = 4096;

/// A user of this remote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct User {
    /// Small, so that it costs a byte or two on the hop. Never another's.
    pub(crate) id: u64,
    /// For events, promises and choices. No name that a user can have reads as an address, so the two never meet.
    pub(crate) name: Arc<str>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Who {
    Address(IpAddr),
    Name(Arc<str>),
}

/// The users seen of late.
pub(crate) struct Users {
    state: Mutex<State>,
    /// Gives numbers.
    repository: Arc<dyn Repository>,
}

#[derive(Default)]
struct State {
    /// Each with its last use.
    known: HashMap<Who, (User, u64)>,
    by_use: BTreeMap<u64, Who>,
    clock: u64,
}

impl Users {
    /// Nobody yet. Who comes gets the number by which `repository` holds what is its own.
    pub(crate) fn new(repository: Arc<dyn Repository>) -> Users {
        Users { state: Mutex::default(), repository }
    }

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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        state.clock += 1;
        let (user, used) = state.known.entry(who.clone()).or_insert_with(|| {
            let name = name();
            (User { id: self.repository.user(&name), name }, 0)
        });
        state.by_use.remove(used);
        state.by_use.insert(state.clock, who);
        *used = state.clock;
        let user = user.clone();
        if state.known.len() > MOST
            && let Some((_, away)) = state.by_use.pop_first()
        {
            state.known.remove(&away);
        }
        user
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_store::{Budget, Store};

    fn users() -> Users {
        Users::new(Arc::new(Store::in_memory(Budget::new(0))))
    }

    #[test]
    fn a_name_is_one_user_from_everywhere_and_an_address_is_another() {
        let users = users();
        let anna = users.named(&"anna".into());
        assert_eq!(users.named(&"anna".into()), anna);
        let address = users.at("10.0.0.1".parse().unwrap());
        assert_eq!(users.at("::ffff:10.0.0.1".parse().unwrap()), address);
        assert_ne!(address.id, anna.id);
        assert_ne!(users.named(&"ben".into()).id, anna.id);
    }

    #[test]
    fn who_was_away_the_longest_is_forgotten_and_no_number_is_given_twice() {
        let users = users();
        let at = |host: u32| users.at(std::net::Ipv4Addr::from(host).into());
        let (first, second) = (at(0), at(1));
        let mut last = second.id;
        for host in 2..=MOST as u32 {
            assert_eq!(at(0), first, "it asks all the time");
            let new = at(host);
            assert!(new.id > last);
            last = new.id;
        }
        assert_eq!(at(0), first);
        assert!(at(1).id > last, "forgotten");
        let state = users.state.lock().unwrap();
        assert_eq!((state.known.len(), state.by_use.len()), (MOST, MOST));
    }
}
