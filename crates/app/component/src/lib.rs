//! What a component is: a protocol's proxy in two halves, one beside the users and one near the internet, as BACOPT has
//! them (Davern, Nashid Islam, Sreenan, 2012, §3). Here are the two traits, and the list of the components that there
//! are; the halves themselves are the ends'. How one is added: docs/components.md.

mod ceilings;
mod datagrams;
mod talk;

pub use ceilings::{class, keep_to};
pub use datagrams::Datagrams;
use farhop_htotp::frame::{Class, Tunnel};
use farhop_transport::hop::Incoming;
pub use talk::{Once, answer, ask, hear};
use tokio::task::JoinSet;

/// Pages: requests, promises, pushes and the mirror of what is held.
pub const HTTP: Component = Component {
    name: "http",
    events: &[
        "request_accepted",
        "request_crossed",
        "websocket_opened",
        "answered",
        "failed",
        "promised",
        "promise_ended",
        "stored",
        "evicted",
    ],
};
/// TCP connections, carried as they are.
pub const TCP: Component = Component {
    name: "tcp",
    events: &["request_accepted", "request_crossed", "tunnel_opened", "answered", "failed"],
};
/// Flows of UDP, carried as datagrams.
pub const UDP: Component = Component { name: "udp", events: &["flow_opened", "flow_trouble", "flow_ended"] };
/// Names: what was answered once answers again.
pub const DNS: Component =
    Component { name: "dns", events: &["name_answered", "name_crossed", "name_failed"] };

/// Dictionaries that ground has trained, for who makes pages of them.
pub const DICTIONARIES: Component =
    Component { name: "dictionaries", events: &["dictionary_trained", "dictionary_sent"] };

/// All of them.
pub const ALL: &[&Component] = &[&HTTP, &TCP, &UDP, &DNS, &DICTIONARIES];

/// One of the things that Farhop does for a protocol.
#[derive(Debug, PartialEq, Eq)]
pub struct Component {
    /// What settings, `status` and the two halves call it.
    pub name: &'static str,
    /// What it tells: names of events, as in docs/events.md.
    pub events: &'static [&'static str],
}

/// No port of TCP: a tunnel there leads to the component that its host names, and to no address.
const WITHIN: u16 = 0;

impl Component {
    /// What its remote half asks for to speak with its ground half: a stream in both directions. HTOTP sees a tunnel, so it
    /// has a class, is carried over carriers that are lost, and fails with a reason at a ground that has no such component.
    pub fn tunnel(&self, number: u64, user: u64, class: Class) -> Tunnel {
        Tunnel::to(number, user, class, self.name, WITHIN)
    }

    /// Whether it is its ground half that is asked for.
    pub fn is_asked(&self, asked: &Tunnel) -> bool {
        is_within(asked) && asked.host == self.name
    }
}

/// Whether a component of ground is asked for, and not a way out to the internet.
pub fn is_within(asked: &Tunnel) -> bool {
    asked.port == WITHIN
}

/// The half beside the users: it begins things, since its clients do. `Remote` and `Carrier` are the end and one of its
/// carriers.
pub trait RemoteHalf<Remote, Carrier>: Send + Sync {
    /// Whose half it is.
    fn component(&self) -> &'static Component;

    /// The remote is up: takes clients from now on, in tasks that end with the remote.
    fn start(&self, remote: &Remote, tasks: &mut JoinSet<()>);

    /// Takes what ground has begun on a carrier, or gives it back if it is another's. Must not wait.
    fn take(&self, remote: &Remote, carrier: &Carrier, incoming: Incoming) -> Option<Incoming> {
        let _ = (remote, carrier);
        Some(incoming)
    }
}

/// The half near the internet: it serves what remotes begin.
pub trait GroundHalf<Carrier>: Send + Sync {
    /// Whose half it is.
    fn component(&self) -> &'static Component;

    /// Takes what the remote has begun on a carrier, or gives it back if it is another's. Must not wait.
    fn take(&self, carrier: &Carrier, incoming: Incoming) -> Option<Incoming>;
}

/// Offers something to each half in turn; gives back what none takes.
pub fn offer<T: ?Sized>(
    halves: &[Box<T>],
    incoming: Incoming,
    take: impl Fn(&T, Incoming) -> Option<Incoming>,
) -> Option<Incoming> {
    halves.iter().try_fold(incoming, |incoming, half| take(half, incoming))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_events::Event;
    use std::collections::BTreeSet;

    #[test]
    fn what_components_say_that_they_tell_are_events() {
        let declared: BTreeSet<&str> = Event::DECLARED.iter().map(|(name, _)| *name).collect();
        for component in ALL {
            for event in component.events {
                assert!(declared.contains(event), "{} tells no {event}", component.name);
            }
        }
        let names: BTreeSet<&str> = ALL.iter().map(|component| component.name).collect();
        assert_eq!(names.len(), ALL.len(), "two have one name");
    }

    #[test]
    fn a_tunnel_leads_to_one_component_or_to_none() {
        let asked = DNS.tunnel(1, 0, Class::Interactive);
        assert!(DNS.is_asked(&asked) && !HTTP.is_asked(&asked) && is_within(&asked));
        let outwards = Tunnel::to(1, 0, Class::Web, DNS.name, 53);
        assert!(!DNS.is_asked(&outwards) && !is_within(&outwards));
    }

    struct Drains(bool);

    impl GroundHalf<()> for Drains {
        fn component(&self) -> &'static Component {
            &HTTP
        }

        fn take(&self, (): &(), incoming: Incoming) -> Option<Incoming> {
            match incoming {
                Incoming::Drain if self.0 => None,
                other => Some(other),
            }
        }
    }

    #[test]
    fn what_one_half_leaves_is_offered_to_the_next() {
        let halves =
            |last| -> [Box<dyn GroundHalf<()>>; 2] { [Box::new(Drains(false)), Box::new(Drains(last))] };
        let left = |last| offer(&halves(last), Incoming::Drain, |half, it| half.take(&(), it)).is_some();
        assert!(left(false) && !left(true));
    }
}
