//! Clients that leave without a word: when they have seen a certificate, or before they have asked anything. Apps that
//! pin a key do so, each time; browsers do when another connection to the host was quicker. What tells them apart is
//! that a browser goes on with that other one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::host::Host;
use crate::learned::Place;
use crate::moment::Moment;

/// How often a client must leave a host, going on never, to count as one that distrusts it.
const ENOUGH: u32 = 3;
/// For how long it counts that a client left, or went on.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Most that is held.
const MOST: usize = 4096;

/// What a client left, or went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The handshake: most clients judge the certificate in it.
    Handshake,
    /// The first request: some judge it when the handshake is over.
    FirstRequest,
}

/// What was seen of a client at one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Left(u32),
    WentOn,
}

/// Who left where lately. It is in memory only.
#[derive(Debug, Clone, Default)]
pub struct Leavers {
    seen: BTreeMap<(Place, Stage), (Seen, Moment)>,
}

impl Leavers {
    /// Notes that `client` left without a word; whether that makes it one that distrusts the host. To be asked a moment
    /// after it left, when its other connections have had the time to go on.
    pub fn left(&mut self, stage: Stage, (client, host, port): (IpAddr, &Host, u16), now: Moment) -> bool {
        let key = (place(client, host, port), stage);
        let times = match self.lately(&key, now) {
            Some(Seen::WentOn) => return false,
            Some(Seen::Left(times)) => times + 1,
            None => 1,
        };
        if times >= ENOUGH {
            self.seen.remove(&key);
            return true;
        }
        self.note(key, Seen::Left(times), now);
        false
    }

    /// Notes that `client` went through `stage`.
    pub fn went_on(&mut self, stage: Stage, (client, host, port): (IpAddr, &Host, u16), now: Moment) {
        self.note((place(client, host, port), stage), Seen::WentOn, now);
    }

    fn lately(&self, key: &(Place, Stage), now: Moment) -> Option<Seen> {
        let (seen, at) = self.seen.get(key)?;
        (at.after(REMEMBERED) > now).then_some(*seen)
    }

    fn note(&mut self, key: (Place, Stage), seen: Seen, now: Moment) {
        if self.seen.len() >= MOST && !self.seen.contains_key(&key) {
            self.seen.retain(|_, (_, at)| at.after(REMEMBERED) > now);
            let oldest = self.seen.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest.filter(|_| self.seen.len() >= MOST) {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(key, (seen, now));
    }
}

fn place(client: IpAddr, host: &Host, port: u16) -> Place {
    Place { client: Some(client.to_canonical()), host: host.clone(), port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stage::{FirstRequest, Handshake};

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const START: Moment = Moment(1_800_000_000);

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    #[test]
    fn who_leaves_a_host_over_and_over_distrusts_it() {
        let (mut leavers, a, b) = (Leavers::default(), host("a.example"), host("b.example"));
        assert!(!leavers.left(Handshake, (CLIENT, &a, 443), START));
        assert!(!leavers.left(Handshake, (CLIENT, &b, 443), START), "another host");
        assert!(!leavers.left(Handshake, (CLIENT, &a, 8443), START), "another port");
        assert!(!leavers.left(Handshake, (CLIENT, &a, 443), START));
        assert!(leavers.left(Handshake, (CLIENT, &a, 443), START));
        assert!(!leavers.left(Handshake, (CLIENT, &a, 443), START), "it is learned, and counted anew");
    }

    #[test]
    fn a_browser_that_needs_one_connection_of_six_does_not() {
        let (mut leavers, host) = (Leavers::default(), host("a.example"));
        leavers.left(Handshake, (CLIENT, &host, 443), START);
        leavers.left(Handshake, (CLIENT, &host, 443), START);
        leavers.went_on(Handshake, (CLIENT, &host, 443), START);
        assert!((0..10).all(|_| !leavers.left(Handshake, (CLIENT, &host, 443), START)));
        let later = START.after(REMEMBERED);
        let left: Vec<_> = (0..3).map(|_| leavers.left(Handshake, (CLIENT, &host, 443), later)).collect();
        assert_eq!(left, [false, false, true], "it may have lost its trust");
    }

    #[test]
    fn who_goes_through_handshakes_and_never_asks_distrusts_too() {
        let (mut leavers, host) = (Leavers::default(), host("a.example"));
        let mut left = || {
            leavers.went_on(Handshake, (CLIENT, &host, 443), START);
            leavers.left(FirstRequest, (CLIENT, &host, 443), START)
        };
        assert_eq!([left(), left(), left()], [false, false, true]);
        leavers.went_on(FirstRequest, (CLIENT, &host, 443), START);
        assert!((0..10).all(|_| !leavers.left(FirstRequest, (CLIENT, &host, 443), START)));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_lapses() {
        let mut leavers = Leavers::default();
        for n in 0..2 * MOST {
            let host = host(&format!("h{n}.example"));
            leavers.went_on(Handshake, (CLIENT, &host, 443), Moment(START.0 + n as u64 / 4));
        }
        assert_eq!(leavers.seen.len(), MOST);
        let last = host(&format!("h{}.example", 2 * MOST - 1));
        assert!((0..5).all(|_| !leavers.left(Handshake, (CLIENT, &last, 443), START)), "the newest are kept");
    }
}
