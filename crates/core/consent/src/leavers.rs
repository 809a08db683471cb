//! Clients that see a certificate and leave without a word. Apps that pin a key do so, each time; browsers do when
//! another connection to the host was quicker. What tells them apart is that a browser has trusted the host before or
//! does so soon.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::host::Host;
use crate::learned::Place;
use crate::moment::Moment;

/// How often a client must leave a host, trusting it never, to count as one that distrusts it. Browsers open up to six
/// connections at once, but leave the others only when one is trusted.
const ENOUGH: u32 = 3;
/// For how long it counts that a client left, or trusted.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Most places held.
const MOST: usize = 4096;

/// What was seen of a client at one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Left(u32),
    Trusted,
}

/// Who left where lately. It is in memory only.
#[derive(Debug, Clone, Default)]
pub struct Leavers {
    seen: BTreeMap<Place, (Seen, Moment)>,
}

impl Leavers {
    /// Notes that `client` left a handshake without a word; whether that makes it one that distrusts the host.
    pub fn left(&mut self, (client, host, port): (IpAddr, &Host, u16), now: Moment) -> bool {
        let place = place(client, host, port);
        let times = match self.lately(&place, now) {
            Some(Seen::Trusted) => return false,
            Some(Seen::Left(times)) => times + 1,
            None => 1,
        };
        if times >= ENOUGH {
            self.seen.remove(&place);
            return true;
        }
        self.note(place, Seen::Left(times), now);
        false
    }

    /// Notes that `client` completed a handshake.
    pub fn trusted(&mut self, (client, host, port): (IpAddr, &Host, u16), now: Moment) {
        self.note(place(client, host, port), Seen::Trusted, now);
    }

    fn lately(&self, place: &Place, now: Moment) -> Option<Seen> {
        let (seen, at) = self.seen.get(place)?;
        (at.after(REMEMBERED) > now).then_some(*seen)
    }

    fn note(&mut self, place: Place, seen: Seen, now: Moment) {
        if self.seen.len() >= MOST && !self.seen.contains_key(&place) {
            self.seen.retain(|_, (_, at)| at.after(REMEMBERED) > now);
            let oldest = self.seen.iter().min_by_key(|(_, (_, at))| *at).map(|(place, _)| place.clone());
            if let Some(oldest) = oldest.filter(|_| self.seen.len() >= MOST) {
                self.seen.remove(&oldest);
            }
        }
        self.seen.insert(place, (seen, now));
    }
}

fn place(client: IpAddr, host: &Host, port: u16) -> Place {
    Place { client: Some(client.to_canonical()), host: host.clone(), port }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const START: Moment = Moment(1_800_000_000);

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    #[test]
    fn who_leaves_a_host_over_and_over_distrusts_it() {
        let (mut leavers, a, b) = (Leavers::default(), host("a.example"), host("b.example"));
        assert!(!leavers.left((CLIENT, &a, 443), START));
        assert!(!leavers.left((CLIENT, &b, 443), START), "another host");
        assert!(!leavers.left((CLIENT, &a, 8443), START), "another port");
        assert!(!leavers.left((CLIENT, &a, 443), START));
        assert!(leavers.left((CLIENT, &a, 443), START));
        assert!(!leavers.left((CLIENT, &a, 443), START), "it is learned, and counted anew");
    }

    #[test]
    fn a_browser_that_needs_one_connection_of_six_does_not() {
        let (mut leavers, host) = (Leavers::default(), host("a.example"));
        leavers.left((CLIENT, &host, 443), START);
        leavers.left((CLIENT, &host, 443), START);
        leavers.trusted((CLIENT, &host, 443), START);
        for _ in 0..10 {
            assert!(!leavers.left((CLIENT, &host, 443), START));
        }
        let later = START.after(REMEMBERED);
        let left: Vec<_> = (0..3).map(|_| leavers.left((CLIENT, &host, 443), later)).collect();
        assert_eq!(left, [false, false, true], "it may have lost its trust");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_lapses() {
        let mut leavers = Leavers::default();
        for n in 0..2 * MOST {
            leavers.trusted((CLIENT, &host(&format!("h{n}.example")), 443), Moment(START.0 + n as u64 / 4));
        }
        assert_eq!(leavers.seen.len(), MOST);
        let last = host(&format!("h{}.example", 2 * MOST - 1));
        assert!((0..5).all(|_| !leavers.left((CLIENT, &last, 443), START)), "the newest are kept");
    }
}
