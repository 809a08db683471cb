//! What a load gave: object by object, connection by connection. Times count from the beginning of the load. Pure.

use std::time::Duration;

/// What came of one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectResult {
    /// Its URL.
    pub url: String,
    /// When what names it had arrived so far; zero for the document.
    pub wanted: Option<Duration>,
    /// When its request was written, or its push promised; the last time where it was asked for more than once.
    pub start: Option<Duration>,
    /// When the first byte of its answer was there.
    pub first_byte: Option<Duration>,
    /// When the last one was.
    pub end: Option<Duration>,
    /// Bytes of its body as they crossed, content coding included.
    pub bytes: u64,
    /// The connection that brought it: its place in [`Loaded::connections`].
    pub connection: Option<usize>,
    /// Whether it was pushed.
    pub pushed: bool,
    /// How often it was asked for.
    pub requests: u32,
    /// What is wrong with it; none where every byte is the original's.
    pub fault: Option<String>,
}

/// What one connection did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectionResult {
    /// Scheme, host and port of the origin it was made for.
    pub origin: String,
    /// When it was begun.
    pub opened: Duration,
    /// When it could be used, handshakes included; none where it never could.
    pub ready: Option<Duration>,
    /// Whether its TLS session was resumed; none without TLS.
    pub resumed: Option<bool>,
    /// Whether the server took what went along with the first flight.
    pub early: bool,
    /// Answers that came over it.
    pub objects: u32,
    /// Bytes handed to the transport, TLS included.
    pub sent: u64,
    /// Bytes that came from it.
    pub received: u64,
    /// What it broke by while it was in use; none where it ended in order.
    pub fault: Option<String>,
}

/// What a load gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loaded {
    /// In the order of the page's graph.
    pub objects: Vec<ObjectResult>,
    /// In the order in which they were begun.
    pub connections: Vec<ConnectionResult>,
    /// When the last object was there; none where one is missing or wrong.
    pub time: Option<Duration>,
    /// When the document, its style sheets and the scripts that block it were complete: the first at which a browser could
    /// paint; none where one of them is missing.
    pub blocking: Option<Duration>,
    /// Pushes that were reset, or that answered nothing.
    pub pushes_refused: u32,
}

impl Loaded {
    /// When the document's first byte was there.
    pub fn first_byte(&self) -> Option<Duration> {
        self.objects.first()?.first_byte
    }

    /// Connections that brought something.
    pub fn connections_used(&self) -> usize {
        self.connections.iter().filter(|connection| connection.objects > 0).count()
    }

    /// What went wrong, one line each: what did not come, and connections that broke, though others brought what was left.
    pub fn faults(&self) -> Vec<String> {
        let missing = |object: &ObjectResult| Some(format!("{}: {}", object.url, object.fault.as_ref()?));
        let broken = |connection: &ConnectionResult| {
            Some(format!("{}: its connection broke: {}", connection.origin, connection.fault.as_ref()?))
        };
        let missing = self.objects.iter().filter_map(missing);
        missing.chain(self.connections.iter().filter_map(broken)).collect()
    }

    /// Requests written, those that were repeated included.
    pub fn requests(&self) -> u32 {
        self.objects.iter().map(|object| object.requests).sum()
    }
}
