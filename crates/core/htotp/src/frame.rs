//! Frames: type, length, value, both numbers as variable-length integers. A type with its lowest bit set
//! is critical: an end that does not know it closes the carrier. Others are skipped (docs/htotp.md,
//! "Frames"). A `DATA` frame's value is handed on in the pieces in which it arrives.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::fields::{SectionError, codec};
use crate::varint;

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
    pub const REQUEST: u64 = 0x11;
    pub const DATA: u64 = 0x13;
    pub const TRAILERS: u64 = 0x15;
    pub const RESPONSE: u64 = 0x17;
    pub const INFORMATIONAL: u64 = 0x19;
    pub const PROMISE: u64 = 0x1b;
    pub const FAILURE: u64 = 0x1d;
    pub const PUSH: u64 = 0x21;
    pub const TUNNEL: u64 = 0x31;
    pub const TUNNEL_OPENED: u64 = 0x33;
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
    /// Updates, backups.
    Background = 5,
}

impl Class {
    fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Class::Expedited,
            1 => Class::Interactive,
            2 => Class::Web,
            3 => Class::Streaming,
            4 => Class::Bulk,
            _ => Class::Background,
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

/// How a body's bytes are coded on the hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Coding {
    /// As they are.
    #[default]
    Identity = 0,
    /// One zstd frame.
    Zstd = 1,
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
    Unwanted(u64),
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
    Failure(Failure),
    Push {
        promise: u64,
    },
    Tunnel {
        tunnel: u64,
        user: u64,
        class: Class,
        host: String,
        port: u16,
    },
    TunnelOpened,
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
}

impl Frame {
    /// The type number.
    pub fn kind(&self) -> u64 {
        match self {
            Frame::Hello(_) => kind::HELLO,
            Frame::Settings(_) => kind::SETTINGS,
            Frame::Ping(_) => kind::PING,
            Frame::Pong(_) => kind::PONG,
            Frame::Saved(_) => kind::SAVED,
            Frame::Retire(_) => kind::RETIRE,
            Frame::Drain => kind::DRAIN,
            Frame::Unwanted(_) => kind::UNWANTED,
            Frame::Request { .. } => kind::REQUEST,
            Frame::Data(_) => kind::DATA,
            Frame::Trailers(_) => kind::TRAILERS,
            Frame::Response { .. } => kind::RESPONSE,
            Frame::Informational(_) => kind::INFORMATIONAL,
            Frame::Promise { .. } => kind::PROMISE,
            Frame::Failure(_) => kind::FAILURE,
            Frame::Push { .. } => kind::PUSH,
            Frame::Tunnel { .. } => kind::TUNNEL,
            Frame::TunnelOpened => kind::TUNNEL_OPENED,
        }
    }

    /// The frame in bytes.
    pub fn encode(&self) -> Bytes {
        let mut value = Vec::new();
        self.put_value(&mut value);
        let mut out = BytesMut::with_capacity(value.len() + 6);
        varint::put(&mut out, self.kind());
        varint::put(&mut out, value.len() as u64);
        out.put_slice(&value);
        out.freeze()
    }

    fn put_value(&self, out: &mut Vec<u8>) {
        match self {
            Frame::Hello(hello) => {
                varint::put(out, hello.versions.len() as u64);
                hello.versions.iter().for_each(|version| varint::put(out, *version));
                varint::put(out, hello.epoch);
                codec::put_string(hello.profile.as_bytes(), out);
                codec::put_string(hello.agent.as_bytes(), out);
            }
            Frame::Settings(settings) => settings.iter().for_each(|(id, value)| {
                varint::put(out, *id);
                varint::put(out, *value);
            }),
            Frame::Ping(n)
            | Frame::Pong(n)
            | Frame::Saved(n)
            | Frame::Retire(n)
            | Frame::Unwanted(n)
            | Frame::Push { promise: n } => {
                varint::put(out, *n);
            }
            Frame::Drain | Frame::TunnelOpened => {}
            Frame::Request { exchange, user, class, priority, resume, section } => {
                varint::put(out, *exchange);
                varint::put(out, *user);
                out.push(flags(*class, *priority, resume.is_some()));
                if let Some(resume) = resume {
                    varint::put(out, resume.offset);
                    out.extend_from_slice(&resume.prefix);
                }
                out.extend_from_slice(section);
            }
            Frame::Data(bytes) | Frame::Trailers(bytes) | Frame::Informational(bytes) => {
                out.extend_from_slice(bytes)
            }
            Frame::Response { coding, resumed, section } => {
                out.push((*coding as u8) << 1 | u8::from(resumed.is_some()));
                if let Some(offset) = resumed {
                    varint::put(out, *offset);
                }
                out.extend_from_slice(section);
            }
            Frame::Promise { promise, priority, section } => {
                varint::put(out, *promise);
                out.push(flags(Class::Web, *priority, false));
                out.extend_from_slice(section);
            }
            Frame::Failure(failure) => {
                out.push(failure.side as u8);
                out.put_u16(failure.status);
                codec::put_string(failure.token.as_bytes(), out);
                codec::put_string(failure.detail.as_bytes(), out);
            }
            Frame::Tunnel { tunnel, user, class, host, port } => {
                varint::put(out, *tunnel);
                varint::put(out, *user);
                out.push(flags(*class, Priority::default(), false));
                codec::put_string(host.as_bytes(), out);
                out.put_u16(*port);
            }
        }
    }

    /// Reads the value of a frame; `Ok(None)` for an unknown type that may be skipped.
    fn decode(kind: u64, mut value: Bytes) -> Result<Option<Frame>, FrameError> {
        if !known(kind) {
            return if kind & 1 == 1 { Err(FrameError::UnknownCritical(kind)) } else { Ok(None) };
        }
        let frame = Self::read_value(kind, &mut value).ok_or(FrameError::Malformed(kind))?;
        if value.has_remaining() {
            return Err(FrameError::Malformed(kind));
        }
        Ok(Some(frame))
    }

    fn read_value(kind: u64, value: &mut Bytes) -> Option<Frame> {
        Some(match kind {
            kind::HELLO => {
                let count = varint::take(value)?;
                if count > 64 {
                    return None;
                }
                let versions = (0..count).map(|_| varint::take(value)).collect::<Option<Vec<_>>>()?;
                let epoch = varint::take(value)?;
                Frame::Hello(Hello { versions, epoch, profile: text(value)?, agent: text(value)? })
            }
            kind::SETTINGS => {
                let mut settings = Vec::new();
                while value.has_remaining() {
                    settings.push((varint::take(value)?, varint::take(value)?));
                }
                Frame::Settings(settings)
            }
            kind::PING => Frame::Ping(varint::take(value)?),
            kind::PONG => Frame::Pong(varint::take(value)?),
            kind::SAVED => Frame::Saved(varint::take(value)?),
            kind::RETIRE => Frame::Retire(varint::take(value)?),
            kind::UNWANTED => Frame::Unwanted(varint::take(value)?),
            kind::PUSH => Frame::Push { promise: varint::take(value)? },
            kind::DRAIN => Frame::Drain,
            kind::TUNNEL_OPENED => Frame::TunnelOpened,
            kind::REQUEST => {
                let (exchange, user) = (varint::take(value)?, varint::take(value)?);
                let (class, priority, resumes) = read_flags(value)?;
                let resume = if resumes { Some(read_resume(value)?) } else { None };
                Frame::Request { exchange, user, class, priority, resume, section: rest(value) }
            }
            kind::TRAILERS => Frame::Trailers(rest(value)),
            kind::INFORMATIONAL => Frame::Informational(rest(value)),
            kind::RESPONSE => {
                let flags = byte(value)?;
                let coding = match flags >> 1 {
                    0 => Coding::Identity,
                    1 => Coding::Zstd,
                    _ => return None,
                };
                let resumed = if flags & 1 == 1 { Some(varint::take(value)?) } else { None };
                Frame::Response { coding, resumed, section: rest(value) }
            }
            kind::PROMISE => {
                let promise = varint::take(value)?;
                let (_, priority, _) = read_flags(value)?;
                Frame::Promise { promise, priority, section: rest(value) }
            }
            kind::FAILURE => {
                let side = match byte(value)? {
                    0 => Side::User,
                    1 => Side::Link,
                    _ => Side::Origin,
                };
                let status = (value.remaining() >= 2).then(|| value.get_u16())?;
                Frame::Failure(Failure { side, status, token: text(value)?, detail: text(value)? })
            }
            kind::TUNNEL => {
                let (tunnel, user) = (varint::take(value)?, varint::take(value)?);
                let (class, _, _) = read_flags(value)?;
                let host = text(value)?;
                let port = (value.remaining() >= 2).then(|| value.get_u16())?;
                Frame::Tunnel { tunnel, user, class, host, port }
            }
            _ => return None,
        })
    }
}

fn known(kind: u64) -> bool {
    matches!(
        kind,
        kind::HELLO | kind::SETTINGS
            ..=kind::DRAIN
                | kind::UNWANTED
                | kind::REQUEST
                | kind::TRAILERS
                | kind::RESPONSE
                | kind::INFORMATIONAL
                | kind::PROMISE
                | kind::FAILURE
                | kind::PUSH
                | kind::TUNNEL
                | kind::TUNNEL_OPENED
    )
}

fn flags(class: Class, priority: Priority, resumes: bool) -> u8 {
    (class as u8) << 5 | (priority.urgency & 7) << 2 | u8::from(priority.incremental) << 1 | u8::from(resumes)
}

fn read_flags(value: &mut Bytes) -> Option<(Class, Priority, bool)> {
    let flags = byte(value)?;
    let priority = Priority { urgency: flags >> 2 & 7, incremental: flags & 2 == 2 };
    Some((Class::from_bits(flags >> 5), priority, flags & 1 == 1))
}

fn read_resume(value: &mut Bytes) -> Option<Resume> {
    let offset = varint::take(value)?;
    let prefix = (value.remaining() >= 32).then(|| value.split_to(32))?;
    Some(Resume { offset, prefix: <[u8; 32]>::try_from(&prefix[..]).ok()? })
}

fn byte(value: &mut Bytes) -> Option<u8> {
    value.has_remaining().then(|| value.get_u8())
}

fn text(value: &mut Bytes) -> Option<String> {
    String::from_utf8(codec::take_string(value).ok()?.to_vec()).ok()
}

fn rest(value: &mut Bytes) -> Bytes {
    value.split_to(value.remaining())
}

/// Cuts a stream into frames, whatever the pieces in which it arrives.
#[derive(Default)]
pub struct FrameReader {
    held: BytesMut,
    /// Bytes of the current `DATA` frame, or of a frame being skipped, that are still to come.
    passing: u64,
    skipping: bool,
}

impl FrameReader {
    /// Takes the next frame off the front of `input`; `None` when `input` is used up.
    ///
    /// # Errors
    /// The stream is malformed; the reader must not be used again.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Frame>, FrameError> {
        loop {
            if self.passing > 0 {
                if input.is_empty() {
                    return Ok(None);
                }
                let length = self.passing.min(input.len() as u64);
                self.passing -= length;
                let piece = input.split_to(length as usize);
                if self.skipping {
                    continue;
                }
                return Ok(Some(Frame::Data(piece)));
            }
            self.skipping = false;
            let Some((kind, length)) = self.header(input) else { return Ok(None) };
            if kind == kind::DATA || (!known(kind) && kind & 1 == 0) {
                self.held.clear();
                self.passing = length;
                self.skipping = kind != kind::DATA;
                continue;
            }
            if length > LARGEST {
                return Err(FrameError::TooLong(kind));
            }
            let Some(value) = self.value(length as usize, input) else { return Ok(None) };
            if let Some(frame) = Frame::decode(kind, value)? {
                return Ok(Some(frame));
            }
        }
    }

    /// True between frames, where a stream may end.
    pub fn is_between(&self) -> bool {
        self.held.is_empty() && self.passing == 0
    }

    /// Type and length; they stay in `held` until the value is whole.
    fn header(&mut self, input: &mut Bytes) -> Option<(u64, u64)> {
        loop {
            let mut view = &self.held[..];
            if let (Some(kind), Some(length)) = (varint::take(&mut view), varint::take(&mut view)) {
                return Some((kind, length));
            }
            if input.is_empty() {
                return None;
            }
            self.held.put_u8(input.get_u8());
        }
    }

    fn value(&mut self, length: usize, input: &mut Bytes) -> Option<Bytes> {
        let mut view = &self.held[..];
        let whole = view.len();
        varint::take(&mut view)?;
        varint::take(&mut view)?;
        let header = whole - view.len();
        let missing = header + length - self.held.len();
        if self.held.len() == header && input.len() >= length {
            self.held.clear();
            return Some(input.split_to(length));
        }
        let taken = missing.min(input.len());
        self.held.extend_from_slice(&input.split_to(taken));
        if taken < missing {
            return None;
        }
        let mut frame = self.held.split();
        frame.advance(header);
        Some(frame.freeze())
    }
}

/// Header of a `DATA` frame that carries `length` bytes.
pub fn data_header(length: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(9);
    varint::put(&mut out, kind::DATA);
    varint::put(&mut out, length as u64);
    out.freeze()
}

/// For fuzzing: any bytes are frames or are refused, and their split does not matter.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let mut reader = FrameReader::default();
    let mut input = Bytes::copy_from_slice(data);
    while let Ok(Some(frame)) = reader.next(&mut input) {
        let _ = frame.encode();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..80).prop_map(Bytes::from);
        let priority =
            (0u8..8, any::<bool>()).prop_map(|(urgency, incremental)| Priority { urgency, incremental });
        let resume = proptest::option::of(
            (0..varint::MAX, any::<[u8; 32]>()).prop_map(|(offset, prefix)| Resume { offset, prefix }),
        );
        let class = (0u8..6).prop_map(Class::from_bits);
        prop_oneof![
            (
                proptest::collection::vec(0..varint::MAX, 0..5),
                0..varint::MAX,
                "[a-z0-9 -]{0,20}",
                "[a-z/0-9.]{0,20}"
            )
                .prop_map(|(versions, epoch, profile, agent)| Frame::Hello(Hello {
                    versions,
                    epoch,
                    profile,
                    agent
                })),
            proptest::collection::vec((0..99u64, 0..varint::MAX), 0..6).prop_map(Frame::Settings),
            (0..varint::MAX).prop_map(Frame::Ping),
            (0..varint::MAX).prop_map(Frame::Saved),
            Just(Frame::Drain),
            (0..varint::MAX, 0..999u64, class.clone(), priority.clone(), resume, bytes.clone()).prop_map(
                |(exchange, user, class, priority, resume, section)| Frame::Request {
                    exchange,
                    user,
                    class,
                    priority,
                    resume,
                    section
                }
            ),
            bytes.clone().prop_filter("empty DATA has no piece", |b| !b.is_empty()).prop_map(Frame::Data),
            bytes.clone().prop_map(Frame::Trailers),
            (any::<bool>(), proptest::option::of(0..varint::MAX), bytes.clone()).prop_map(
                |(zstd, resumed, section)| {
                    Frame::Response {
                        coding: if zstd { Coding::Zstd } else { Coding::Identity },
                        resumed,
                        section,
                    }
                }
            ),
            (0..varint::MAX, priority, bytes).prop_map(|(promise, priority, section)| Frame::Promise {
                promise,
                priority,
                section
            }),
            (any::<u16>(), "[a-z_]{0,30}", "\\PC{0,40}").prop_map(|(status, token, detail)| {
                Frame::Failure(Failure { side: Side::Origin, status, token, detail })
            }),
            (0..varint::MAX, 0..99u64, class, "[a-z.]{1,30}", any::<u16>()).prop_map(
                |(tunnel, user, class, host, port)| Frame::Tunnel { tunnel, user, class, host, port }
            ),
        ]
    }

    /// Reads all frames of `stream`, given in pieces of the sizes in `cuts`; joins pieces of DATA.
    fn read(stream: &[u8], cuts: &[usize]) -> Vec<Frame> {
        let (mut reader, mut all, mut rest, mut turn) =
            (FrameReader::default(), Vec::<Frame>::new(), stream, 0);
        let mut open_data = false;
        while !rest.is_empty() {
            let length = cuts.get(turn).copied().unwrap_or(rest.len()).clamp(1, rest.len());
            turn += 1;
            let mut piece = Bytes::copy_from_slice(&rest[..length]);
            rest = &rest[length..];
            while let Some(frame) = reader.next(&mut piece).unwrap() {
                match (all.last_mut(), frame) {
                    (Some(Frame::Data(before)), Frame::Data(more)) if open_data => {
                        *before = [&before[..], &more].concat().into();
                    }
                    (_, frame) => all.push(frame),
                }
                open_data = reader.passing > 0;
            }
        }
        assert!(reader.is_between());
        all
    }

    proptest! {
        #[test]
        fn frames_come_back_whatever_the_split(all in proptest::collection::vec(frames(), 1..8), cuts in proptest::collection::vec(1usize..40, 0..200)) {
            let stream: Vec<u8> = all.iter().flat_map(|frame| frame.encode().to_vec()).collect();
            prop_assert_eq!(read(&stream, &cuts), all);
        }

        #[test]
        fn any_bytes_are_frames_or_refused(data in proptest::collection::vec(any::<u8>(), 0..400)) {
            fuzz(&data);
        }
    }

    #[test]
    fn an_unknown_frame_is_skipped_and_an_unknown_critical_one_refused() {
        let mut reader = FrameReader::default();
        let mut stream = Bytes::from_static(&[0x3e, 2, 9, 9, 0x04, 1, 7]);
        assert_eq!(reader.next(&mut stream), Ok(Some(Frame::Ping(7))));
        let mut stream = Bytes::from_static(&[0x3f, 0]);
        assert_eq!(reader.next(&mut stream), Err(FrameError::UnknownCritical(0x3f)));
    }

    #[test]
    fn an_endless_frame_is_refused_before_it_is_kept() {
        let mut head = BytesMut::new();
        varint::put(&mut head, kind::REQUEST);
        varint::put(&mut head, LARGEST + 1);
        assert_eq!(FrameReader::default().next(&mut head.freeze()), Err(FrameError::TooLong(kind::REQUEST)));
    }
}
