//! Limits and patience towards origins. Values only; the settings crate reads them from files.

use crate::ways::Ways;
use farhop_tuning::Room;
use farhop_units::Bytes;
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
    /// How long looking up a name may take, all attempts to connect together, and a TLS handshake, each; none: as the round
    /// trips to origins have it.
    pub connect_timeout: Option<Duration>,
    /// How long an address is tried before the next one is tried beside it (RFC 8305 §5); none: as they have it.
    pub attempt_delay: Option<Duration>,
    /// How long an origin may take to begin its answer, counted from the last byte of the request that it took.
    pub first_byte_timeout: Duration,
    /// How long an origin may pause within a body.
    pub body_timeout: Duration,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// Unused connections that are kept at a time, of all users together; beyond, the one unused the longest is closed. None: as
    /// many as those who ask give reason for.
    pub kept: Option<usize>,
    /// Connections opened ahead of any request that may wait at once for their first one, of all users together.
    pub prepared: usize,
    /// How long one of them waits.
    pub prepared_timeout: Duration,
    /// Bytes of one HTTP/2 stream that an origin may send ahead of their reader.
    pub stream_window: Bytes,
    /// The same for all streams of a connection. Streams beyond those that can each fill their window get another
    /// connection, so that readers who wait never hold back those who don't.
    pub connection_window: Bytes,
    /// What is known of the ways that answers take, by which both may be more.
    pub ways: Ways,
    /// Bytes of a request body that are kept, until its response begins, for the case that it has to be sent again.
    pub upload: Bytes,
    /// The same of all request bodies together.
    pub uploads: Bytes,
    /// Bytes of a response head, and of trailers.
    pub head: Bytes,
    /// Field lines of a response head.
    pub fields: usize,
    /// Informational responses before the final one that are passed on; of more nothing is heard.
    pub informational: usize,
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

    /// The HTTP/2 windows for an origin to which the round trip is `trip`, as they fit now.
    pub(crate) fn room(&self, trip: Option<Duration>) -> Room {
        let least = Room { stream: self.stream_window, connection: self.connection_window };
        self.ways.room(trip).map_or(least, |room| Room {
            stream: room.stream.max(least.stream),
            connection: room.connection.max(least.connection),
        })
    }

    /// How many unused connections are kept.
    pub(crate) fn kept(&self) -> usize {
        self.kept.unwrap_or_else(|| self.ways.kept())
    }

    /// How long a name, a connection and a TLS handshake are each waited for.
    pub(crate) fn connect_timeout(&self) -> Duration {
        self.connect_timeout.unwrap_or_else(|| self.ways.trips().connect_timeout())
    }

    /// How long an address is tried before the next one is tried beside it.
    pub(crate) fn attempt_delay(&self) -> Duration {
        self.attempt_delay.unwrap_or_else(|| self.ways.trips().attempt_delay())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            connections: 6,
            queue_timeout: Duration::from_secs(60),
            connect_timeout: None,
            attempt_delay: None,
            // What Firefox allows. Long polls are answered within it.
            first_byte_timeout: Duration::from_secs(300),
            // Browsers have no bound at all: an event stream is quiet until something happens. Whether the origin is there still is
            // asked of its TCP.
            body_timeout: Duration::from_secs(3600),
            idle_timeout: Duration::from_secs(60),
            kept: None,
            prepared: 64,
            prepared_timeout: Duration::from_secs(15),
            stream_window: Bytes(1024 * 1024),
            connection_window: Bytes(32 * 1024 * 1024),
            ways: Ways::default(),
            // Whoever refuses a request does so before it has taken much: the windows that servers give are of this size.
            upload: Bytes(1024 * 1024),
            uploads: Bytes(32 * 1024 * 1024),
            head: Bytes(64 * 1024),
            fields: 256,
            informational: 16,
        }
    }
}
