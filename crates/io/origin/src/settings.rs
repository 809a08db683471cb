//! Limits and patience towards origins. Values only; the settings crate reads them from files.

use farhop_units::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Informational responses before the final one that can't be meant in earnest: the exchange ends.
pub(crate) const FLOOD: usize = 256;

/// What an origin is granted.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Connections at once to one origin for one user; browsers use six.
    pub connections: usize,
    /// How long a request waits for one of them.
    pub queue_timeout: Duration,
    /// How long looking up a name may take.
    pub resolve_timeout: Duration,
    /// How long all attempts to connect may take together.
    pub connect_timeout: Duration,
    /// How long an address is tried before the next one is tried beside it (RFC 8305 §5).
    pub attempt_delay: Duration,
    /// How long a TLS handshake may take.
    pub tls_timeout: Duration,
    /// How long an origin may take to begin its answer, counted from the last byte of the request that it took.
    pub first_byte_timeout: Duration,
    /// How long an origin may pause within a body.
    pub body_timeout: Duration,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// Unused connections that are kept at a time, of all users together; beyond, the one unused the longest is closed.
    pub kept: usize,
    /// Connections opened ahead of any request that may wait at once for their first one, of all users together.
    pub prepared: usize,
    /// How long one of them waits.
    pub prepared_timeout: Duration,
    /// Bytes of one HTTP/2 stream that an origin may send ahead of their reader.
    pub stream_window: Bytes,
    /// The same for all streams of a connection. Streams beyond those that can each fill their window get another
    /// connection, so that readers who wait never hold back those who don't.
    pub connection_window: Bytes,
    /// What both have grown to since.
    pub grown: Windows,
    /// Bytes of a response head, and of trailers.
    pub head: Bytes,
    /// Field lines of a response head.
    pub fields: usize,
    /// Informational responses before the final one that are passed on; of more nothing is heard.
    pub informational: usize,
}

/// HTTP/2 windows that grow while a client runs; connections from then on have them. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Windows(Arc<[AtomicU64; 2]>);

impl Windows {
    /// Lets a stream and a connection have at least so much.
    pub fn grow(&self, stream: Bytes, connection: Bytes) {
        self.0[0].fetch_max(stream.0, Relaxed);
        self.0[1].fetch_max(connection.0, Relaxed);
    }
}

impl Settings {
    /// With no more patience than this for an origin that is silent.
    pub(crate) fn with_patience(&self, patience: Duration) -> Settings {
        Settings {
            first_byte_timeout: self.first_byte_timeout.min(patience),
            body_timeout: self.body_timeout.min(patience),
            ..self.clone()
        }
    }

    /// The windows of a stream and of a connection, as they are now.
    pub(crate) fn windows(&self) -> (Bytes, Bytes) {
        let [stream, connection] = self.grown.0.each_ref().map(|grown| Bytes(grown.load(Relaxed)));
        (self.stream_window.max(stream), self.connection_window.max(connection))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            connections: 6,
            queue_timeout: Duration::from_secs(60),
            resolve_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(20),
            attempt_delay: Duration::from_millis(250),
            tls_timeout: Duration::from_secs(20),
            // What Firefox allows. Long polls are answered within it.
            first_byte_timeout: Duration::from_secs(300),
            // Browsers have no bound at all: an event stream is quiet until something happens. Whether the origin is there still is
            // asked of its TCP.
            body_timeout: Duration::from_secs(3600),
            idle_timeout: Duration::from_secs(60),
            kept: 512,
            prepared: 64,
            prepared_timeout: Duration::from_secs(15),
            // 80 Mbit/s from an origin 100 ms away.
            stream_window: Bytes(1024 * 1024),
            connection_window: Bytes(32 * 1024 * 1024),
            grown: Windows::default(),
            head: Bytes(64 * 1024),
            fields: 256,
            informational: 16,
        }
    }
}
