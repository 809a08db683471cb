//! The round trips to those who are connected with, as the kernel measures them. What follows from them is `core/tuning`'s.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_tuning::Trips;
use tokio::net::TcpStream;

/// Gathers them. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct TripMeter(Arc<Mutex<Trips>>);

impl TripMeter {
    /// A connection is up: takes the round trip of its handshake into account, where the kernel could measure it.
    pub fn measure(&self, connection: &TcpStream) {
        if let Some(trip) = round_trip(connection) {
            self.lock().take(trip);
        }
    }

    /// What was measured so far.
    pub fn trips(&self) -> Trips {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Trips> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The round trip as TCP knows it. It knows none of a handshake in which something was sent twice.
pub fn round_trip(connection: &TcpStream) -> Option<Duration> {
    farhop_netdev::tcp_round_trip(connection).ok().filter(|trip| !trip.is_zero())
}
