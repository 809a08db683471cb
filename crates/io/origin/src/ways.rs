//! What is known of the ways that answers take: the round trips to origins, which their connections measure, and the rate at
//! which answers go on, which others say. Windows and timers follow ([`crate::Settings`]); the arithmetic is `core/tuning`'s.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_tuning::{Room, Trips};
use farhop_units::BitRate;
use tokio::net::TcpStream;

/// See the module. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Ways(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    trips: Mutex<Trips>,
    /// In bits per second; zero before anyone has said it.
    rate: AtomicU64,
}

impl Ways {
    /// Answers go on at this rate at least, from now on. Several go on at the same time, so the quickest way counts.
    pub fn carry(&self, rate: BitRate) {
        self.0.rate.fetch_max(rate.0, Relaxed);
    }

    /// The round trips to origins.
    pub fn trips(&self) -> Trips {
        *self.lock()
    }

    /// A connection is up: takes the round trip of its handshake into account, where the kernel could measure it.
    pub(crate) fn measure(&self, connection: &TcpStream) {
        if let Some(trip) = round_trip(connection) {
            self.lock().take(trip);
        }
    }

    /// The room for answers of an origin to which the round trip is `trip`; none before anyone has said where they go on.
    pub(crate) fn room(&self, trip: Option<Duration>) -> Option<Room> {
        let rate = self.0.rate.load(Relaxed);
        (rate > 0).then(|| Room::for_origin(BitRate(rate), trip))
    }

    fn lock(&self) -> MutexGuard<'_, Trips> {
        self.0.trips.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The round trip as TCP knows it. It knows none of a handshake in which something was sent twice.
pub(crate) fn round_trip(connection: &TcpStream) -> Option<Duration> {
    farhop_netdev::tcp_round_trip(connection).ok().filter(|trip| !trip.is_zero())
}
