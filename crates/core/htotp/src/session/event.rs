//! What a session tells its app, and what it tells its carrier to do.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::frame::{
    Class, Coding, Failure, FrameError, Hello, PathReport, Priority, Resume, Tunnel, Validating, Verdict,
};
use crate::head::{RequestHead, ResponseHead};
use crate::mirror::{BodyHash, Position, Word};
use crate::scheduler::StreamId;

/// Which way a stream carries bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Both ways.
    Both,
    /// From its opener.
    One,
}

/// How a carrier ranks what it has not sent yet: by class, then by urgency; higher goes first.
pub(super) fn rank(class: Class, urgency: u8) -> i32 {
    -(class as i32 * 8 + i32::from(urgency))
}

/// What has at least this rank is urgent: whatever is of a class before pages, and of pages what stands above the urgency
/// that a request has by default (3, RFC 9218 §4.1).
pub const URGENT: i32 = -(Class::Web as i32 * 8 + 2);

/// To be done on the carrier, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Open a stream of the carrier for this id.
    Open(StreamId, Direction),
    /// Write these; then report [`super::Session::handle_written`].
    Write {
        /// Whose.
        stream: StreamId,
        /// In order.
        segments: Vec<Bytes>,
        /// End the stream after them.
        end: bool,
        /// Higher goes first within what the carrier itself has not sent.
        priority: i32,
        /// Nothing more of the stream waits: a head, a small object or the end of one is whole with these.
        drains: bool,
    },
    /// Send this beside the streams; the carrier may lose it.
    Datagram(Bytes),
    /// Abandon the sending side.
    Reset(StreamId, u64),
    /// Ask the peer to stop sending.
    Stop(StreamId, u64),
    /// Ask the peer's end of the carrier for an acknowledgement, now, whatever is under way: that was probably lost in an
    /// outage, and holds up nothing that is sent from now on. The peer reports [`super::Session::handle_probe`].
    Probe,
}

/// Reset and stop codes.
pub mod code {
    /// Nobody wants it any more.
    pub const CANCELLED: u64 = 0x10;
    /// The body cannot be finished.
    pub const INCOMPLETE: u64 = 0x11;
    /// The connection behind the tunnel, or behind what switched protocols, was reset.
    pub const RESET: u64 = 0x12;
}

/// What happened.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Event {
    /// The peer introduced itself.
    Hello(Hello),
    /// Ground: a request.
    Asked {
        stream: StreamId,
        exchange: u64,
        user: u64,
        class: Class,
        priority: Priority,
        resume: Option<Resume>,
        head: RequestHead,
    },
    /// Remote: a 1xx head.
    Informed {
        stream: StreamId,
        head: ResponseHead,
    },
    /// Remote: the response head, on an exchange or a push.
    Answered {
        stream: StreamId,
        head: ResponseHead,
        coding: Coding,
        resumed: Option<u64>,
    },
    /// Remote: a response to this request will come unasked.
    Promised {
        stream: StreamId,
        promise: u64,
        priority: Priority,
        head: RequestHead,
    },
    /// Remote: the origin is asked whether this entry is still right; a push of this number says what comes of that.
    Validating {
        stream: StreamId,
        validating: Validating,
    },
    /// Remote: the promised response begins.
    Pushed {
        stream: StreamId,
        promise: u64,
    },
    /// Ground: the remote does not want these, of which some may never have been promised.
    Unwanted {
        promises: RangeInclusive<u64>,
    },
    /// Ground: these have answered requests; some may never have been promised.
    Used {
        promises: RangeInclusive<u64>,
    },
    /// Ground: of what the page of this exchange asked for, these entries of the mirror have answered, each so many milliseconds
    /// after the page was asked for.
    AnsweredHere {
        page: u64,
        entries: Vec<(u64, u64)>,
    },
    /// Ground: the user's browser asks for this promise, which is not whole yet.
    Wanted {
        promise: u64,
        priority: Priority,
    },
    /// Ground: the user's client is about to ask this host.
    Prepare {
        user: u64,
        scheme: String,
        host: String,
        port: u16,
    },
    /// Ground: the user's client has ended this connection.
    Left {
        user: u64,
        connection: String,
    },
    /// Ground: a tunnel has shown that it is of this class.
    Classed {
        stream: StreamId,
        class: Class,
    },
    /// Ground: what the remote says of what it holds.
    Mirror(Word),
    /// Remote: how far ground has heard the mirror's log, on carriers before this one.
    Heard(Position),
    /// Remote: of so many buckets of the mirror's summary these differ.
    Differ {
        of: u64,
        buckets: Vec<u64>,
    },
    /// Remote: ground has a trained dictionary that is worth having, which crosses in so many bytes.
    Dictionary {
        hash: BodyHash,
        length: u64,
    },
    /// Remote: a push that was held back until its promise came can be read on.
    Released {
        stream: StreamId,
    },
    /// Part of a body or of a tunnel.
    Body {
        stream: StreamId,
        bytes: Bytes,
    },
    Trailers {
        stream: StreamId,
        fields: HeaderMap,
    },
    /// The peer's side of the stream is complete.
    Ended {
        stream: StreamId,
    },
    /// Remote: there is no (whole) answer.
    Failed {
        stream: StreamId,
        failure: Failure,
    },
    /// The peer abandoned its side.
    Reset {
        stream: StreamId,
        code: u64,
    },
    /// The peer wants no more of this side.
    Stopped {
        stream: StreamId,
        code: u64,
    },
    /// Ground: a tunnel is wanted.
    TunnelAsked {
        stream: StreamId,
        asked: Tunnel,
    },
    /// Remote: it stands.
    TunnelOpened {
        stream: StreamId,
    },
    /// The next byte of a tunnel is urgent.
    Urgent {
        stream: StreamId,
    },
    /// Ground: the remote wants to go on here with what was under way on a carrier that is lost to it.
    Rejoin {
        stream: StreamId,
        carrier: u64,
        exchange: u64,
        /// How far ground's side was heard.
        position: u64,
    },
    /// Remote: whether it goes on. After [`Verdict::NeverCame`] it may be begun anew on the same stream, else it is over.
    Rejoined {
        stream: StreamId,
        verdict: Verdict,
    },
    /// The peer has heard this end's side of an exchange or tunnel up to `position`.
    Taken {
        exchange: u64,
        position: u64,
    },
    /// What was queued on the stream fell below half of [`super::ROOM`].
    Drained {
        stream: StreamId,
    },
    /// What the peer tells of its side of the path.
    PathReported(PathReport),
    /// A ping came back after this long.
    Pong(Duration),
    /// The peer accepts no more exchanges and ends soon.
    Drain,
    /// Remote: nothing is heard, though asked. The carrier may come back.
    Silent,
    /// Remote: a peer that was silent is heard again.
    Back {
        silence: Duration,
    },
    /// Remote: nothing was heard for too long.
    Dead,
    /// The peer broke the protocol: close the carrier.
    Broken(FrameError),
}
