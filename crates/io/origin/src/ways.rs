//! What is known of the ways that answers take: the round trips to origins, which their connections measure, and the rate at
//! which answers go on, which others say. Windows and timers follow ([`crate::Settings`]); the arithmetic is `core/tuning`'s.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use farhop_front::TripMeter;
use farhop_tuning::{Room, Trips};
use farhop_units::BitRate;
use tokio::net::TcpStream;

/// See the module. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Ways(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    trips: TripMeter,
    /// In bits per second; zero before anyone has said it.
    rate: AtomicU64,
    askers: AtomicUsize,
}

/// Unused connections that are kept for anyone, and for each of many who ask: six are what a page opens to its origin, and a few
/// more go elsewhere.
const KEPT: usize = 512;
const KEPT_EACH: usize = 8;

impl Ways {
    /// Answers go on at this rate at least, from now on. Several go on at the same time, so the quickest way counts.
    pub fn carry(&self, rate: BitRate) {
        self.0.rate.fetch_max(rate.0, Relaxed);
    }

    /// So many ask at the moment, each with users of its own.
    pub fn serve(&self, askers: usize) {
        self.0.askers.store(askers, Relaxed);
    }

    /// How many unused connections are worth keeping for those who ask. Were it fewer, each of a thousand would find its own
    /// closed for another's, and origins (and the system, which remembers closed ones for a minute) be asked for new ones all the time.
    pub(crate) fn kept(&self) -> usize {
        KEPT.max(KEPT_EACH * self.0.askers.load(Relaxed))
    }

    /// The round trips to origins.
    pub fn trips(&self) -> Trips {
        self.0.trips.trips()
    }

    /// A connection is up: takes the round trip of its handshake into account, where the kernel could measure it.
    pub(crate) fn measure(&self, connection: &TcpStream) {
        self.0.trips.measure(connection);
    }

    /// The room for answers of an origin to which the round trip is `trip`; none before anyone has said where they go on.
    pub(crate) fn room(&self, trip: Option<Duration>) -> Option<Room> {
        let rate = self.0.rate.load(Relaxed);
        (rate > 0).then(|| Room::for_origin(BitRate(rate), trip))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_kept_where_many_ask() {
        let ways = Ways::default();
        assert_eq!(ways.kept(), 512);
        ways.clone().serve(1000);
        assert_eq!(ways.kept(), 8000);
        ways.serve(3);
        assert_eq!(ways.kept(), 512);
    }
}
