//! Towards whom datagrams go in halves, and for how long. An outage and a path that carries large datagrams no more look
//! alike to who hears nothing; so after a wait that was too long what is large goes in halves for a while, and for twice as
//! long when silence comes back as soon as that is over. It does not decide when waiting has been too long: `wake` does.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use farhop_fec::halves::{LARGEST_WHOLE, halve};
use quinn::AsyncUdpSocket;
use quinn::udp::Transmit;

use super::{FecSocket, canonical, lock};

/// The first time: what was lost is sent again within two round trips, and acknowledged within three.
const ROUND_TRIPS: u32 = 4;
const SHORTEST: Duration = Duration::from_secs(2);
/// A large datagram now and then finds out whether the path carries it again.
const LONGEST: Duration = Duration::from_secs(600);
/// What another header of UDP over IPv4, and two of halves, add to a packet of QUIC's usual size.
const SHARE: f64 = 0.025;

/// See the module's text. The time is tokio's.
#[derive(Debug, Default)]
pub(crate) struct Halving {
    terms: Mutex<HashMap<SocketAddr, Term>>,
    number: AtomicU16,
}

#[derive(Debug, Clone, Copy)]
struct Term {
    until: Instant,
    long: Duration,
    /// QUIC's largest packet: what is longer is its search for a larger one, which must fail where the path is narrow.
    mtu: usize,
    rtt: Duration,
}

impl Term {
    /// How long after its end silence means that the path is as narrow as before.
    fn is_remembered(&self, now: Instant) -> bool {
        now < self.until + self.long.max(SHORTEST) + self.rtt * ROUND_TRIPS
    }
}

impl Halving {
    /// What is sent to `addr` goes in halves from now on: QUIC's packets up to its `mtu`, and what the repair layer makes
    /// of them.
    pub(crate) fn begin(&self, now: Instant, addr: SocketAddr, rtt: Duration, mtu: u16) {
        let mut terms = lock(&self.terms);
        terms.retain(|_, term| term.is_remembered(now));
        let term = terms.entry(canonical(addr));
        let first = Term { until: now, long: Duration::ZERO, mtu: 0, rtt };
        let term = term.or_insert(first);
        if term.until <= now {
            term.long = (term.long * 2).max(rtt * ROUND_TRIPS).clamp(SHORTEST, LONGEST);
        }
        (term.until, term.mtu, term.rtt) = (now + term.long, mtu.into(), rtt);
    }

    /// Whether QUIC's packets of this length go to `addr` in halves.
    fn covers(&self, now: Instant, addr: SocketAddr, len: usize) -> bool {
        let terms = lock(&self.terms);
        !terms.is_empty()
            && terms.get(&canonical(addr)).is_some_and(|term| now < term.until && len <= term.mtu)
    }

    /// Bytes that halves add to each byte that is sent to `addr`.
    pub(crate) fn share(&self, addr: SocketAddr) -> f64 {
        if self.covers(now(), addr, 0) { SHARE } else { 0.0 }
    }

    /// Sends each large datagram of `transmit` in halves.
    fn send(&self, socket: &dyn AsyncUdpSocket, transmit: &Transmit<'_>) -> io::Result<()> {
        let stride = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let one =
            |contents: &[u8]| socket.try_send(&Transmit { contents, segment_size: None, ..transmit.clone() });
        for (index, datagram) in transmit.contents.chunks(stride).enumerate() {
            let sent = if datagram.len() > LARGEST_WHOLE {
                let number = self.number.fetch_add(1, Ordering::Relaxed);
                let [first, second] = halve(datagram, number);
                one(&first).map(|()| one(&second).ok())
            } else {
                one(datagram).map(Some)
            };
            match sent {
                Err(error) if index == 0 => return Err(error),
                // What a socket has no room for after it took the beginning is lost like any datagram.
                Ok(None) | Err(_) => break,
                Ok(Some(())) => {}
            }
        }
        Ok(())
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl FecSocket {
    /// Puts datagrams on the wire that carry packets of that length, whole or in halves.
    pub(super) fn put(&self, transmit: &Transmit<'_>, packet: usize) -> io::Result<()> {
        let stride = transmit.segment_size.unwrap_or(transmit.contents.len());
        if stride > LARGEST_WHOLE && self.halving.covers(now(), transmit.destination, packet) {
            return self.halving.send(&*self.inner, transmit);
        }
        self.inner.try_send(transmit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(600);

    fn addr(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn it_lasts_some_round_trips_and_covers_nothing_but_that_peers_packets() {
        let (halving, now) = (Halving::default(), Instant::now());
        assert!(!halving.covers(now, addr(1), 1400));
        halving.begin(now, addr(1), RTT, 1443);
        assert!(halving.covers(now + RTT * 3, addr(1), 1443));
        assert!(!halving.covers(now + RTT * 4, addr(1), 1443));
        assert!(!halving.covers(now, addr(2), 1443));
        assert!(!halving.covers(now, addr(1), 1444), "a search for more");
    }

    #[test]
    fn silence_soon_after_it_makes_it_last_twice_as_long_and_later_silence_does_not() {
        let (halving, now) = (Halving::default(), Instant::now());
        let begin = |at: u64| {
            let at = now + Duration::from_secs(at);
            halving.begin(at, addr(1), RTT / 10, 1443);
            lock(&halving.terms)[&addr(1)].until - at
        };
        let seconds = Duration::from_secs;
        assert_eq!([begin(0), begin(1), begin(4)], [seconds(2), seconds(2), seconds(4)]);
        assert_eq!([begin(9), begin(18)], [seconds(8), seconds(16)]);
        assert_eq!(begin(18 + 16 + 17), seconds(2));
    }

    #[test]
    fn who_is_heard_again_leaves_nothing_behind() {
        let (halving, now) = (Halving::default(), Instant::now());
        for port in 0..100 {
            halving.begin(now + Duration::from_secs(u64::from(port) * 10), addr(port), RTT, 1443);
        }
        assert_eq!(lock(&halving.terms).len(), 1);
    }
}
