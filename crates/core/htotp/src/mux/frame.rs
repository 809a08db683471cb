//! What one lane carries: frames of type, length and value as everywhere in HTOTP (docs/htotp.md, "Over
//! TCP"), of which an odd type that is not known ends the carrier and an even one is skipped.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::Id;
use crate::varint;

/// No frame's value is longer.
pub const LARGEST: u64 = 64 * 1024;

/// Type numbers.
pub mod kind {
    #![allow(missing_docs)]
    pub const BEGIN: u64 = 0x01;
    pub const JOIN: u64 = 0x03;
    pub const DATA: u64 = 0x05;
    pub const LAST: u64 = 0x07;
    pub const RESET: u64 = 0x09;
    pub const STOP: u64 = 0x0b;
    pub const WINDOW: u64 = 0x0d;
    pub const TOTAL: u64 = 0x0f;
    pub const STREAMS: u64 = 0x11;
    pub const CLOSE: u64 = 0x13;

    /// Every type, with its name in docs/htotp.md.
    pub const ALL: &[(u64, &str)] = &[
        (BEGIN, "BEGIN"),
        (JOIN, "JOIN"),
        (DATA, "DATA"),
        (LAST, "LAST"),
        (RESET, "RESET"),
        (STOP, "STOP"),
        (WINDOW, "WINDOW"),
        (TOTAL, "TOTAL"),
        (STREAMS, "STREAMS"),
        (CLOSE, "CLOSE"),
    ];
}

/// What an end takes unread, and how many streams its peer may have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Bytes on one stream.
    pub stream: u64,
    /// Bytes on all streams together.
    pub total: u64,
    /// Streams both ways.
    pub both: u64,
    /// Streams one way.
    pub one: u64,
}

impl Windows {
    /// What holds until the peer has said more, and the least that it may say.
    pub const LEAST: Windows = Windows { stream: 256 << 10, total: 4 << 20, both: 1024, one: 1024 };

    fn is_enough(&self) -> bool {
        let least = Windows::LEAST;
        self.stream >= least.stream
            && self.total >= least.total
            && self.both >= least.both
            && self.one >= least.one
    }
}

/// A frame, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Frame {
    /// The first of the first lane, from each end.
    Begin(Windows),
    /// The first of each further lane, from the remote: which carrier it belongs to.
    Join([u8; 32]),
    /// Bytes of a stream; the first frame of a stream opens it.
    Data { stream: Id, bytes: Bytes },
    /// The last bytes of a stream, possibly none.
    Last { stream: Id, bytes: Bytes },
    /// The sender gives its side up.
    Reset { stream: Id, code: u64 },
    /// The receiver wants no more.
    Stop { stream: Id, code: u64 },
    /// So many bytes may be sent on a stream, from its beginning.
    Window { stream: Id, limit: u64 },
    /// So many bytes may be sent on all streams, from the carrier's beginning.
    Total(u64),
    /// So many streams may be opened, from the carrier's beginning.
    Streams { both: u64, one: u64 },
    /// The carrier ends.
    Close { code: u64, reason: String },
}

/// Why bytes on a lane are no frames, or frames that may not be; ends the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MuxError {
    /// A critical type that is not known.
    #[error("unknown critical frame {0:#x} on a lane")]
    UnknownCritical(u64),
    /// Longer than [`LARGEST`].
    #[error("frame {0:#x} on a lane is longer than 64 KiB")]
    TooLong(u64),
    /// The value is not what its type asks for.
    #[error("malformed frame {0:#x} on a lane")]
    Malformed(u64),
    /// A frame where it may not stand.
    #[error("frame {0:#x} does not belong there on a lane")]
    Misplaced(u64),
    /// Bytes beyond a window.
    #[error("peer sends more than the windows of its streams allow")]
    Overrun,
    /// Streams beyond the number allowed.
    #[error("peer opens more streams than it may")]
    TooManyStreams,
}

/// Cuts a lane into frames, whatever the pieces in which it arrives.
#[derive(Debug, Default)]
pub struct FrameReader(BytesMut);

impl FrameReader {
    /// Adds what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// The lane is malformed; the reader must not be used again.
    pub fn take(&mut self) -> Result<Option<Frame>, MuxError> {
        loop {
            let mut view = &self.0[..];
            let (Some(kind), Some(length)) = (varint::take(&mut view), varint::take(&mut view)) else {
                return Ok(None);
            };
            if length > LARGEST {
                return Err(MuxError::TooLong(kind));
            }
            if (view.len() as u64) < length {
                return Ok(None);
            }
            let header = self.0.len() - view.len();
            self.0.advance(header);
            let value = self.0.split_to(length as usize).freeze();
            match decode(kind, value) {
                Some(frame) => return Ok(Some(frame)),
                None if kind & 1 == 0 => {}
                None if kind::ALL.iter().any(|(known, _)| *known == kind) => {
                    return Err(MuxError::Malformed(kind));
                }
                None => return Err(MuxError::UnknownCritical(kind)),
            }
        }
    }

    /// What has not been read.
    pub fn into_rest(self) -> BytesMut {
        self.0
    }
}

/// `None` when it is malformed or not known.
fn decode(kind: u64, mut value: Bytes) -> Option<Frame> {
    let mut number = || varint::take(&mut value);
    let frame = match kind {
        kind::BEGIN => {
            let windows = Windows { stream: number()?, total: number()?, both: number()?, one: number()? };
            windows.is_enough().then_some(Frame::Begin(windows))?
        }
        kind::JOIN => Frame::Join(std::mem::take(&mut value)[..].try_into().ok()?),
        kind::DATA => Frame::Data { stream: Id(number()?), bytes: std::mem::take(&mut value) },
        kind::LAST => Frame::Last { stream: Id(number()?), bytes: std::mem::take(&mut value) },
        kind::RESET => Frame::Reset { stream: Id(number()?), code: number()? },
        kind::STOP => Frame::Stop { stream: Id(number()?), code: number()? },
        kind::WINDOW => Frame::Window { stream: Id(number()?), limit: number()? },
        kind::TOTAL => Frame::Total(number()?),
        kind::STREAMS => Frame::Streams { both: number()?, one: number()? },
        kind::CLOSE => {
            let code = number()?;
            Frame::Close { code, reason: String::from_utf8_lossy(&std::mem::take(&mut value)).into_owned() }
        }
        _ => return None,
    };
    value.is_empty().then_some(frame)
}

impl Frame {
    /// The type number.
    pub fn kind(&self) -> u64 {
        match self {
            Frame::Begin(_) => kind::BEGIN,
            Frame::Join(_) => kind::JOIN,
            Frame::Data { .. } => kind::DATA,
            Frame::Last { .. } => kind::LAST,
            Frame::Reset { .. } => kind::RESET,
            Frame::Stop { .. } => kind::STOP,
            Frame::Window { .. } => kind::WINDOW,
            Frame::Total(_) => kind::TOTAL,
            Frame::Streams { .. } => kind::STREAMS,
            Frame::Close { .. } => kind::CLOSE,
        }
    }

    /// Appends the frame.
    pub fn put(&self, out: &mut BytesMut) {
        match self {
            Frame::Begin(w) => put(out, self.kind(), &[w.stream, w.total, w.both, w.one], &[]),
            Frame::Join(id) => put(out, self.kind(), &[], id),
            Frame::Data { stream, bytes } | Frame::Last { stream, bytes } => {
                put(out, self.kind(), &[stream.0], bytes);
            }
            Frame::Reset { stream, code } | Frame::Stop { stream, code } => {
                put(out, self.kind(), &[stream.0, *code], &[]);
            }
            Frame::Window { stream, limit } => put(out, self.kind(), &[stream.0, *limit], &[]),
            Frame::Total(limit) => put(out, self.kind(), &[*limit], &[]),
            Frame::Streams { both, one } => put(out, self.kind(), &[*both, *one], &[]),
            Frame::Close { code, reason } => put(out, self.kind(), &[*code], reason.as_bytes()),
        }
    }

    /// The frame as bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.put(&mut out);
        out.freeze()
    }
}

fn put(out: &mut BytesMut, kind: u64, numbers: &[u64], rest: &[u8]) {
    varint::put(out, kind);
    let length = numbers.iter().map(|number| varint::size(*number)).sum::<usize>() + rest.len();
    varint::put(out, length as u64);
    numbers.iter().for_each(|number| varint::put(out, *number));
    out.put_slice(rest);
}

/// Appends the header of a `DATA` or `LAST` frame whose `length` bytes follow.
pub(super) fn put_data_header(out: &mut BytesMut, last: bool, stream: Id, length: usize) {
    varint::put(out, if last { kind::LAST } else { kind::DATA });
    varint::put(out, (varint::size(stream.0) + length) as u64);
    varint::put(out, stream.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let number = || 0..=varint::MAX;
        let bytes = || proptest::collection::vec(any::<u8>(), 0..80).prop_map(Bytes::from);
        let least = Windows::LEAST;
        prop_oneof![
            (number(), number(), number(), number()).prop_map(move |(stream, total, both, one)| {
                Frame::Begin(Windows {
                    stream: stream.max(least.stream),
                    total: total.max(least.total),
                    both: both.max(least.both),
                    one: one.max(least.one),
                })
            }),
            any::<[u8; 32]>().prop_map(Frame::Join),
            (number(), bytes()).prop_map(|(id, bytes)| Frame::Data { stream: Id(id), bytes }),
            (number(), bytes()).prop_map(|(id, bytes)| Frame::Last { stream: Id(id), bytes }),
            (number(), number()).prop_map(|(id, code)| Frame::Reset { stream: Id(id), code }),
            (number(), number()).prop_map(|(id, code)| Frame::Stop { stream: Id(id), code }),
            (number(), number()).prop_map(|(id, limit)| Frame::Window { stream: Id(id), limit }),
            number().prop_map(Frame::Total),
            (number(), number()).prop_map(|(both, one)| Frame::Streams { both, one }),
            (number(), "\\PC{0,40}").prop_map(|(code, reason)| Frame::Close { code, reason }),
        ]
    }

    proptest! {
        #[test]
        fn frames_come_back_whatever_the_split(all in proptest::collection::vec(frames(), 1..8), piece in 1usize..40) {
            let lane: Vec<u8> = all.iter().flat_map(|frame| frame.encode().to_vec()).collect();
            let (mut reader, mut read) = (FrameReader::default(), Vec::new());
            for piece in lane.chunks(piece) {
                reader.push(piece);
                while let Some(frame) = reader.take().unwrap() {
                    read.push(frame);
                }
            }
            prop_assert_eq!(read, all);
            prop_assert!(reader.into_rest().is_empty());
        }
    }

    fn read(bytes: &[u8]) -> Result<Option<Frame>, MuxError> {
        let mut reader = FrameReader::default();
        reader.push(bytes);
        reader.take()
    }

    #[test]
    fn what_is_not_known_is_skipped_or_refused_by_its_lowest_bit() {
        assert_eq!(read(&[0x3e, 2, 9, 9, 0x0f, 1, 7]), Ok(Some(Frame::Total(7))));
        assert_eq!(read(&[0x3f, 0]), Err(MuxError::UnknownCritical(0x3f)));
    }

    #[test]
    fn what_is_malformed_is_refused_before_it_is_kept() {
        assert_eq!(read(&[0x0f, 2, 7, 7]), Err(MuxError::Malformed(0x0f)), "a byte too many");
        assert_eq!(read(&[0x03, 1, 7]), Err(MuxError::Malformed(0x03)), "an id too short");
        assert_eq!(read(&[0x01, 4, 1, 1, 1, 1]), Err(MuxError::Malformed(0x01)), "windows below the least");
        let mut endless = BytesMut::new();
        varint::put(&mut endless, kind::DATA);
        varint::put(&mut endless, LARGEST + 1);
        assert_eq!(read(&endless), Err(MuxError::TooLong(kind::DATA)));
    }
}
