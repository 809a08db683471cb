//! A set of hosts, found by their suffixes: a look takes as long as the name has labels, however many are in the set.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::host::Host;
use crate::pattern::Form;

/// Hosts named by patterns.
#[derive(Debug, Clone, Default)]
pub struct HostSet {
    all: bool,
    addresses: HashSet<IpAddr>,
    names: HashMap<Box<str>, Reach>,
}

/// What of a name is in the set.
#[derive(Debug, Clone, Copy, Default)]
struct Reach {
    itself: bool,
    below: bool,
}

impl HostSet {
    /// Adds what `form` names.
    pub fn add(&mut self, form: &Form) {
        let (host, itself, below) = match form {
            Form::All => {
                self.all = true;
                return;
            }
            Form::Exactly(host) => (host, true, false),
            Form::AndBelow(host) => (host, true, true),
            Form::Below(host) => (host, false, true),
        };
        match host {
            Host::Address(address) => drop(self.addresses.insert(*address)),
            Host::Name(name) => {
                let reach = self.names.entry(name.clone()).or_default();
                reach.itself |= itself;
                reach.below |= below;
            }
        }
    }

    /// Whether `host` is in the set.
    pub fn contains(&self, host: &Host) -> bool {
        let mut suffixes = host.suffixes();
        let itself = match host {
            Host::Address(address) => self.addresses.contains(address),
            Host::Name(_) => {
                suffixes.next().and_then(|name| self.names.get(name)).is_some_and(|reach| reach.itself)
            }
        };
        self.all || itself || suffixes.any(|above| self.names.get(above).is_some_and(|reach| reach.below))
    }
}

impl<'a> FromIterator<&'a Form> for HostSet {
    fn from_iter<I: IntoIterator<Item = &'a Form>>(forms: I) -> Self {
        let mut set = HostSet::default();
        forms.into_iter().for_each(|form| set.add(form));
        set
    }
}
