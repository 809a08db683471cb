//! What a listener may be told. Values only; the settings crate reads them from files.

use crate::h1::HeadLimits;
use crate::tls::Sessions;
use crate::trips::TripMeter;
use crate::windows::Windows;
use farhop_tuning::Room;
use farhop_units::Bytes;
use std::time::Duration;

/// Limits and patience towards clients.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bounds of request heads and trailers.
    pub head: HeadLimits,
    /// How long a connection may wait for its first or next request.
    pub idle_timeout: Duration,
    /// How long a request head may take from its first byte to its last, and a handshake; none: as the round trips to clients
    /// have it.
    pub head_timeout: Option<Duration>,
    /// How long a client may pause within a body that we are ready to take.
    pub body_timeout: Duration,
    /// How long a client may take no byte of a response that we have for it.
    pub write_timeout: Duration,
    /// How much of an unread request body is taken after its response, so that the connection can go on.
    pub drain: Bytes,
    /// How long a closing connection still listens, so that its last response isn't lost to a reset; none: as they have it.
    pub linger: Option<Duration>,
    /// The round trips to clients.
    pub trips: TripMeter,
    /// How long a client that sends nothing more is believed to be there while nothing is written to it. Where it is given an
    /// event stream, which nobody half-closed reads, 5 s at the most.
    pub half_close_grace: Duration,
    /// Connections served at once; further ones wait in the listen queue.
    pub connections: usize,
    /// How much of request bodies an HTTP/2 client may send before they are read; to be no less than bandwidth × delay of what
    /// the bodies go on to.
    pub windows: Windows,
    /// Requests of an HTTP/2 connection under way at once.
    pub streams: u32,
    /// What TLS connections have in common.
    pub sessions: Sessions,
    /// How this proxy names itself in `Proxy-Status` (RFC 9209 §2).
    pub name: String,
}

impl Settings {
    /// How long a request head, or a handshake, may take.
    pub fn head_timeout(&self) -> Duration {
        self.head_timeout.unwrap_or_else(|| self.trips.trips().head_timeout())
    }

    /// How long a closing connection still listens.
    pub fn linger(&self) -> Duration {
        self.linger.unwrap_or_else(|| self.trips.trips().linger())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            head: HeadLimits::default(),
            idle_timeout: Duration::from_secs(120),
            head_timeout: None,
            body_timeout: Duration::from_secs(120),
            write_timeout: Duration::from_secs(120),
            drain: Bytes(256 * 1024),
            linger: None,
            trips: TripMeter::default(),
            half_close_grace: Duration::from_secs(30),
            connections: 4096,
            windows: Windows::new(Room { stream: Bytes(4 << 20), connection: Bytes(16 << 20) }),
            streams: 256,
            sessions: Sessions::default(),
            name: "farhop".into(),
        }
    }
}
