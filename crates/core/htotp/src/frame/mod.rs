//! Frames: type, length, value, both numbers as variable-length integers. A type with its lowest bit set
//! is critical: an end that does not know it closes the carrier. Others are skipped (docs/htotp.md,
//! "Frames"). Here are the words; `value` writes and reads them, `reader` cuts a stream into them.

mod reader;
mod value;

use std::net::IpAddr;

use bytes::Bytes;

use crate::fields::SectionError;
use crate::mirror::{BodyHash, Position, Word};

pub use reader::{FrameReader, data_header, fuzz};

/// A frame other than `DATA` may not be longer.
pub const LARGEST: u64 = 1 << 20;

/// Type numbers.
pub mod kind {
    #![allow(missing_docs)]
    pub const HELLO: u64 = 0x01;
    pub const SETTINGS: u64 = 0x03;
    pub const PING: u64 = 0x04;
    pub const PONG: u64 = 0x06;
    pub const SAVED: u64 = 0x05;
    pub const RETIRE: u64 = 0x07;
    pub const DRAIN: u64 = 0x08;
    pub const UNWANTED: u64 = 0x0a;
    pub const WANTED: u64 = 0x0c;
    pub const PREPARE: u64 = 0x0e;
    pub const TAKEN: u64 = 0x10;
    pub const REORDER: u64 = 0x12;
    pub const LEFT: u64 = 0x14;
    pub const WEIGHT: u64 = 0x16;
    pub const REQUEST: u64 = 0x11;
    pub const DATA: u64 = 0x13;
    pub const TRAILERS: u64 = 0x15;
    pub const RESPONSE: u64 = 0x17;
    pub const INFORMATIONAL: u64 = 0x19;
    pub const PROMISE: u64 = 0x1b;
    pub const VALIDATING: u64 = 0x1c;
    pub const FAILURE: u64 = 0x1d;
    pub const PUSH: u64 = 0x21;
    pub const REJOIN: u64 = 0x23;
    pub const REJOINED: u64 = 0x25;
    pub const TUNNEL: u64 = 0x31;
    pub const URGENT: u64 = 0x32;
    pub const TUNNEL_OPENED: u64 = 0x33;
    pub const CLASS: u64 = 0x34;
    pub const MIRROR: u64 = 0x41;
    pub const STORED: u64 = 0x43;
    pub const EVICTED: u64 = 0x45;
    pub const VALIDATORS: u64 = 0x46;
    pub const LOG: u64 = 0x48;
    pub const SUMMARY: u64 = 0x4a;
    pub const HEARD: u64 = 0x4c;
    pub const DIFFER: u64 = 0x4e;
    pub const USED: u64 = 0x50;
    pub const ANSWERED: u64 = 0x52;
    pub const PATH: u64 = 0x58;
    pub const HOLDS: u64 = 0x60;
    pub const LACKS: u64 = 0x62;
    pub const DICTIONARY: u64 = 0x64;

    /// Every type that this version knows, with its name in docs/htotp.md.
    pub const ALL: &[(u64, &str)] = &[
        (HELLO, "HELLO"),
        (SETTINGS, "SETTINGS"),
        (PING, "PING"),
        (SAVED, "SAVED"),
        (PONG, "PONG"),
        (RETIRE, "RETIRE"),
        (DRAIN, "DRAIN"),
        (UNWANTED, "UNWANTED"),
        (WANTED, "WANTED"),
        (PREPARE, "PREPARE"),
        (TAKEN, "TAKEN"),
        (REORDER, "REORDER"),
        (LEFT, "LEFT"),
        (WEIGHT, "WEIGHT"),
        (REQUEST, "REQUEST"),
        (DATA, "DATA"),
        (TRAILERS, "TRAILERS"),
        (RESPONSE, "RESPONSE"),
        (INFORMATIONAL, "INFORMATIONAL"),
        (PROMISE, "PROMISE"),
        (VALIDATING, "VALIDATING"),
        (FAILURE, "FAILURE"),
        (PUSH, "PUSH"),
        (REJOIN, "REJOIN"),
        (REJOINED, "REJOINED"),
        (TUNNEL, "TUNNEL"),
        (URGENT, "URGENT"),
        (TUNNEL_OPENED, "TUNNEL_OPENED"),
        (CLASS, "CLASS"),
        (MIRROR, "MIRROR"),
        (STORED, "STORED"),
        (EVICTED, "EVICTED"),
        (VALIDATORS, "VALIDATORS"),
        (LOG, "LOG"),
        (SUMMARY, "SUMMARY"),
        (HEARD, "HEARD"),
        (DIFFER, "DIFFER"),
        (USED, "USED"),
        (ANSWERED, "ANSWERED"),
        (PATH, "PATH"),
        (HOLDS, "HOLDS"),
        (LACKS, "LACKS"),
        (DICTIONARY, "DICTIONARY"),
    ];

    /// True for a type that this version knows.
    pub fn is_known(kind: u64) -> bool {
        ALL.iter().any(|(known, _)| *known == kind)
    }
}

/// Numbers of `SETTINGS`.
pub mod setting {
    /// Ground, 1: it takes tunnels that are marked.
    pub const MARKED_TUNNELS: u64 = 2;
    /// Ground, 1: it makes use of being told which bodies the remote holds.
    pub const BODIES: u64 = 3;
    /// Ground, 1: it remembers the mirror's log beyond the carrier, and says `HEARD`.
    pub const LOG_KEPT: u64 = 4;
    /// Either end, 1: it makes headers of a flow's datagrams whole again that were made small.
    pub const SMALL_HEADERS: u64 = 5;
    /// Ground, 1: it makes use of being told of pages that the remote answers by itself.
    pub const HELD_PAGES: u64 = 6;
    /// The remote, 1: it undoes the codings that origins use, [`Coding::Brotli`](super::Coding::Brotli) and
    /// [`Coding::Gzip`](super::Coding::Gzip).
    pub const ORIGINS_CODINGS: u64 = 7;
    /// The remote, 1: it reads [`Coding::Delta`](super::Coding::Delta) of several frames, each of which after the first refers to the
    /// end of what came before it.
    pub const CHAINED_DELTAS: u64 = 8;
}

/// DiffServ-like class of an exchange or tunnel; the scheduler serves lower values first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Class {
    /// Voice and what keeps the carrier alive.
    Expedited = 0,
    /// A person waits for each answer: terminals, games.
    Interactive = 1,
    /// Pages.
    #[default]
    Web = 2,
    /// Video and audio with a play rate.
    Streaming = 3,
    /// Downloads.
    Bulk = 4,
    /// What nobody waits for: updates, and whatever is neither of the next two.
    Background = 5,
    /// Backups.
    Backups = 6,
    /// Peer to peer.
    PeerToPeer = 7,
}

impl Class {
    /// How many there are: the last one's number and one.
    pub const COUNT: usize = Class::PeerToPeer as usize + 1;

    pub(crate) fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Class::Expedited,
            1 => Class::Interactive,
            2 => Class::Web,
            3 => Class::Streaming,
            4 => Class::Bulk,
            5 => Class::Background,
            6 => Class::Backups,
            _ => Class::PeerToPeer,
        }
    }
}

/// RFC 9218: urgency 0 (first) to 7 and whether a part of the body is of use by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority {
    /// 0 is served first.
    pub urgency: u8,
    /// Shares with others of its urgency instead of going in turn.
    pub incremental: bool,
}

impl Default for Priority {
    /// RFC 9218 §4: urgency 3, not incremental.
    fn default() -> Self {
        Priority { urgency: 3, incremental: false }
    }
}

/// Asks for a body from where it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// Bytes of the decoded body that were delivered.
    pub offset: u64,
    /// BLAKE3 hash of these bytes.
    pub prefix: [u8; 32],
}

/// What becomes of an exchange or tunnel whose carrier was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on; so much of the remote's side has come.
    GoesOn(u64),
    /// It was begun, or may have been, and cannot go on.
    NotKept,
    /// Nothing of it ever came, nor will: it may be begun as if for the first time.
    NeverCame,
}

/// How a body's bytes are coded on the hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// As they are.
    #[default]
    Identity,
    /// One zstd frame.
    Zstd,
    /// One zstd frame that refers to this trained dictionary, which the remote holds.
    Dictionary(BodyHash),
    /// One zstd frame that refers to this body, which the remote holds.
    Delta(BodyHash),
    /// Brotli, as the origin coded it. Only for a remote that has said that it undoes it.
    Brotli,
    /// gzip, as the origin coded it. The same.
    Gzip,
}

/// The side at which an exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Side {
    /// The user's client.
    User = 0,
    /// The long hop.
    Link = 1,
    /// The origin, or the way from ground to it.
    Origin = 2,
}

/// Why there is no (whole) answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Where.
    pub side: Side,
    /// What a gateway answers: 403, 502, 504.
    pub status: u16,
    /// RFC 9209 §2.3 error type.
    pub token: String,
    /// One line for people.
    pub detail: String,
}

/// What both ends say first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hello {
    /// Versions spoken, best first.
    pub versions: Vec<u64>,
    /// Changes whenever this end has forgotten what it held.
    pub epoch: u64,
    /// The link profile this end was set up for; empty when measured.
    pub profile: String,
    /// Program and version, for people.
    pub agent: String,
}

/// A tunnel as the remote asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tunnel {
    /// Its number.
    pub tunnel: u64,
    /// Whose it is.
    pub user: u64,
    /// Its class.
    pub class: Class,
    /// Where it leads: a name or an address, …
    pub host: String,
    /// … and a port.
    pub port: u16,
    /// The address of the client, if ground is to connect in its name.
    pub client: Option<IpAddr>,
    /// Its bytes are in `DATA` frames, among which [`Frame::Urgent`] may stand. The session says whether they are.
    pub marked: bool,
}

impl Tunnel {
    /// One for which ground connects as itself.
    pub fn to(tunnel: u64, user: u64, class: Class, host: &str, port: u16) -> Tunnel {
        Tunnel { tunnel, user, class, host: host.into(), port, client: None, marked: false }
    }
}

/// What an end tells the other of its side of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathReport {
    /// The largest recent rate at which what the other sent has arrived, in bit/s.
    pub arriving: u64,
    /// Of ten thousand packets that this end sent, how many were lost.
    pub lost: u64,
}

/// What the origin is asked about for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validating {
    /// The push of this number says what comes of it.
    pub promise: u64,
    /// The entry of the mirror.
    pub entry: u64,
    /// The request that it is asked for, in a number by which the remote knows it again, below 2^62.
    pub request: u64,
}

/// A frame, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Frame {
    Hello(Hello),
    Settings(Vec<(u64, u64)>),
    Ping(u64),
    Pong(u64),
    Saved(u64),
    Retire(u64),
    Drain,
    /// This promise, and as many that follow it.
    Unwanted {
        promise: u64,
        more: u64,
    },
    Wanted {
        promise: u64,
        priority: Priority,
    },
    /// This promise, and as many that follow it.
    Used {
        promise: u64,
        more: u64,
    },
    /// Each entry with the milliseconds from the request for the page on.
    Answered {
        page: u64,
        entries: Vec<(u64, u64)>,
    },
    Prepare {
        user: u64,
        scheme: String,
        host: String,
        port: u16,
    },
    Reorder {
        exchange: u64,
        priority: Priority,
    },
    Left {
        user: u64,
        connection: String,
    },
    /// What a user has of each class, in hundredths of what others have.
    Weight {
        user: u64,
        hundredths: u64,
    },
    Request {
        exchange: u64,
        user: u64,
        class: Class,
        priority: Priority,
        resume: Option<Resume>,
        section: Bytes,
    },
    /// A piece of a `DATA` frame.
    Data(Bytes),
    Trailers(Bytes),
    Response {
        coding: Coding,
        resumed: Option<u64>,
        section: Bytes,
    },
    Informational(Bytes),
    Promise {
        promise: u64,
        priority: Priority,
        section: Bytes,
    },
    /// The origin is asked about this entry of the mirror; the push of this promise says what comes of that.
    Validating(Validating),
    Failure(Failure),
    Push {
        promise: u64,
    },
    /// How far the peer's side of exchanges and tunnels has come: their numbers and positions.
    Taken(Vec<(u64, u64)>),
    /// Asks for an exchange or tunnel of a lost carrier, of which so much of ground's side has come.
    Rejoin {
        carrier: u64,
        exchange: u64,
        position: u64,
    },
    Rejoined(Verdict),
    Tunnel(Tunnel),
    TunnelOpened,
    /// The next byte of a marked tunnel is urgent.
    Urgent,
    /// A marked tunnel has shown that it is of this class.
    Class(Class),
    Mirror(Word),
    /// How far ground has heard the mirror's log.
    Heard(Position),
    /// Of so many buckets of a summary, these differ from what ground knows.
    Differ {
        of: u64,
        buckets: Vec<u64>,
    },
    Path(PathReport),
    /// Ground has this dictionary, which crosses in so many bytes.
    Dictionary {
        hash: BodyHash,
        length: u64,
    },
}

/// Why bytes are no frame; ends the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A critical type that this version does not know.
    #[error("unknown critical frame {0:#x}")]
    UnknownCritical(u64),
    /// Longer than [`LARGEST`].
    #[error("frame {0:#x} is longer than 1 MiB")]
    TooLong(u64),
    /// The value is not what its type asks for.
    #[error("malformed frame {0:#x}")]
    Malformed(u64),
    /// A frame where it may not stand.
    #[error("frame {0:#x} does not belong here")]
    Misplaced(u64),
    /// The stream ends inside a frame or before its message is whole.
    #[error("stream ends inside a message")]
    Truncated,
    /// A field section is malformed.
    #[error(transparent)]
    Section(#[from] SectionError),
    /// No common version.
    #[error("peer speaks no version of HTOTP that this end knows")]
    Version,
    /// More bytes wait for the rest of their frames than any honest peer leaves.
    #[error("peer leaves too many frames unfinished")]
    Unfinished,
    /// What this end has to say on the control stream is not taken.
    #[error("peer does not read its control stream")]
    Unread,
}
