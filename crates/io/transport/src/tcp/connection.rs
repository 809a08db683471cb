//! A carrier over TCP as its end knows it: whom it reaches, how far away, and why it ended. Its lanes are the driver's.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhop_htotp::mux::Mux;
use farhop_units::Bytes;
use tokio::sync::{mpsc, watch};

use super::Lane;
use crate::connection::Name;
use crate::identity::PublicKey;
use crate::quic::CarrierError;

/// See the module. Clones are the same carrier.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    addr: SocketAddr,
    name: Option<Name>,
    /// This end's key, and the peer's.
    own: PublicKey,
    peer: PublicKey,
    round_trip: AtomicU64,
    received: AtomicU64,
    acknowledged: AtomicU64,
    lanes: watch::Sender<usize>,
    ended: watch::Sender<Option<CarrierError>>,
    parts: Mutex<Option<Parts>>,
}

/// What the driver works on.
pub(crate) struct Parts {
    pub(crate) mux: Mux,
    pub(crate) first: Lane,
    /// Further lanes as they come; what waits in it when the driver ends is dropped with it. Boxed, since a channel keeps room
    /// for 32 of them.
    pub(crate) joining: mpsc::Receiver<Box<Lane>>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(addr: SocketAddr, own: PublicKey, peer: PublicKey, parts: Parts) -> Self {
        let round_trip = parts.first.round_trip().unwrap_or_default();
        let shared = Shared {
            addr,
            name: parts.first.name(),
            own,
            peer,
            round_trip: AtomicU64::new(round_trip.as_micros() as u64),
            received: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            lanes: watch::Sender::new(1),
            ended: watch::Sender::new(None),
            parts: Mutex::new(Some(parts)),
        };
        Connection(Arc::new(shared))
    }

    /// The peer.
    pub fn remote_address(&self) -> SocketAddr {
        self.0.addr
    }

    /// What both ends call it.
    pub(crate) fn name(&self) -> Option<Name> {
        self.0.name
    }

    /// The peer's key.
    pub fn peer_key(&self) -> PublicKey {
        self.0.peer
    }

    /// Round-trip time, as far as it is known.
    pub fn rtt(&self) -> Duration {
        Duration::from_micros(self.0.round_trip.load(Ordering::Relaxed))
    }

    /// Bytes received, without what TLS and TCP put around them.
    pub fn received(&self) -> Bytes {
        Bytes(self.0.received.load(Ordering::Relaxed))
    }

    /// Bytes that its peer's kernel has, without what TLS and TCP put around them; counted once a second.
    pub fn acknowledged(&self) -> Bytes {
        Bytes(self.0.acknowledged.load(Ordering::Relaxed))
    }

    /// How many lanes it has.
    pub fn lanes(&self) -> watch::Receiver<usize> {
        self.0.lanes.subscribe()
    }

    /// Why it ended, if it has.
    pub fn close_reason(&self) -> Option<CarrierError> {
        self.0.ended.borrow().clone()
    }

    /// Completes when it has ended.
    pub async fn closed(&self) -> CarrierError {
        let mut ended = self.0.ended.subscribe();
        // The sender lives as long as this handle.
        let reason = ended.wait_for(Option::is_some).await;
        reason
            .ok()
            .and_then(|reason| reason.clone())
            .unwrap_or(CarrierError::ClosedHere { addr: self.0.addr })
    }

    /// For the driver, once.
    pub(crate) fn take_parts(&self) -> Option<Parts> {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn set_rtt(&self, round_trip: Duration) {
        self.0.round_trip.store(round_trip.as_micros() as u64, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, received: usize) {
        self.0.received.fetch_add(received as u64, Ordering::Relaxed);
    }

    pub(crate) fn set_acknowledged(&self, bytes: u64) {
        self.0.acknowledged.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn set_lanes(&self, lanes: usize) {
        self.0.lanes.send_replace(lanes);
    }

    /// The first reason counts.
    pub(crate) fn end(&self, reason: CarrierError) {
        self.0.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(reason);
            is_first
        });
    }

    /// What an end of a lane means.
    pub(crate) fn explain(&self, error: &std::io::Error) -> CarrierError {
        CarrierError::explain_tcp(error, self.0.addr, self.0.own, Some(self.0.peer))
    }
}
