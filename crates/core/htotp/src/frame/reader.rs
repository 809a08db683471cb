//! Cuts a stream into frames. A `DATA` frame's value is handed on in the pieces in which it arrives; any other
//! frame is kept until it is whole.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{Frame, FrameError, LARGEST, kind};
use crate::varint;

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
            if kind == kind::DATA || (!kind::is_known(kind) && kind & 1 == 0) {
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

    /// Bytes kept until their frame is whole.
    pub fn held(&self) -> usize {
        self.held.len()
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
            // Copied: heads are kept for long, and a slice would keep the whole packet alive.
            return Some(Bytes::copy_from_slice(&input.split_to(length)));
        }
        let taken = missing.min(input.len());
        self.held.extend_from_slice(&input.split_to(taken));
        if taken < missing {
            return None;
        }
        // `split` would leave the allocation with the reader for as long as the stream lasts.
        let mut frame = std::mem::take(&mut self.held);
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

/// For fuzzing: any bytes are frames or are refused, their split does not matter, and frames come back.
#[doc(hidden)]
pub fn fuzz(data: &[u8]) {
    let whole = read_in_pieces(data, data.len());
    assert_eq!(read_in_pieces(data, 1), whole, "the split matters");
    for frame in whole.0 {
        if let Frame::Data(_) = frame {
            continue;
        }
        // Numbers and flags may be written in more than one way; what is written again means the same.
        let mut again = frame.encode();
        if again.len() as u64 <= LARGEST {
            assert_eq!(FrameReader::default().next(&mut again), Ok(Some(frame)));
        }
    }
}

/// All frames, with the pieces of `DATA` joined, and what ended them.
fn read_in_pieces(data: &[u8], piece: usize) -> (Vec<Frame>, Option<FrameError>) {
    let (mut reader, mut all) = (FrameReader::default(), Vec::new());
    let mut body = BytesMut::new();
    for piece in data.chunks(piece.max(1)) {
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            match reader.next(&mut input) {
                Ok(Some(Frame::Data(bytes))) => body.extend_from_slice(&bytes),
                Ok(Some(frame)) => {
                    if !body.is_empty() {
                        all.push(Frame::Data(body.split().freeze()));
                    }
                    all.push(frame);
                }
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    (all, None)
}

#[cfg(test)]
mod tests {
    use super::super::{
        Class, Coding, Failure, Hello, PathReport, Priority, Resume, Side, Tunnel, Validating, Verdict,
    };
    use super::*;
    use crate::mirror::{BodyHash, Bound, Entry, HeldBody, Position, Validators, Word};
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn frames() -> impl Strategy<Value = Frame> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..80).prop_map(Bytes::from);
        let priority =
            (0u8..8, any::<bool>()).prop_map(|(urgency, incremental)| Priority { urgency, incremental });
        let resume = proptest::option::of(
            (0..varint::MAX, any::<[u8; 32]>()).prop_map(|(offset, prefix)| Resume { offset, prefix }),
        );
        let class = (0u8..6).prop_map(Class::from_bits);
        let codings = prop_oneof![
            Just(Coding::Identity),
            Just(Coding::Zstd),
            Just(Coding::Brotli),
            Just(Coding::Gzip),
            any::<[u8; 16]>().prop_map(|hash| Coding::Dictionary(BodyHash(hash))),
            any::<[u8; 16]>().prop_map(|hash| Coding::Delta(BodyHash(hash)))
        ];
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
            (0..varint::MAX, 0..9u64).prop_map(|(promise, more)| Frame::Unwanted { promise, more }),
            (0..varint::MAX, 0..9u64).prop_map(|(promise, more)| Frame::Used { promise, more }),
            (0..varint::MAX, proptest::collection::vec((0..varint::MAX, 0..varint::MAX), 0..5))
                .prop_map(|(page, entries)| Frame::Answered { page, entries }),
            (0..varint::MAX, priority.clone())
                .prop_map(|(promise, priority)| Frame::Wanted { promise, priority }),
            (0..varint::MAX, priority.clone())
                .prop_map(|(exchange, priority)| Frame::Reorder { exchange, priority }),
            (0..varint::MAX, "[!-~]{0,40}").prop_map(|(user, connection)| Frame::Left { user, connection }),
            (0..varint::MAX, 0..varint::MAX)
                .prop_map(|(user, hundredths)| Frame::Weight { user, hundredths }),
            Just(Frame::Drain),
            proptest::collection::vec((0..varint::MAX, 0..varint::MAX), 0..9).prop_map(Frame::Taken),
            (0..varint::MAX, 0..varint::MAX, 0..varint::MAX)
                .prop_map(|(carrier, exchange, position)| { Frame::Rejoin { carrier, exchange, position } }),
            prop_oneof![
                (0..varint::MAX).prop_map(Verdict::GoesOn),
                Just(Verdict::NotKept),
                Just(Verdict::NeverCame)
            ]
            .prop_map(Frame::Rejoined),
            (0..varint::MAX, 0..varint::MAX)
                .prop_map(|(arriving, lost)| Frame::Path(PathReport { arriving, lost })),
            (any::<[u8; 16]>(), 0..varint::MAX)
                .prop_map(|(hash, length)| Frame::Dictionary { hash: BodyHash(hash), length }),
            Just(Frame::Mirror(Word::Reset)),
            proptest::collection::vec((0..varint::MAX, 0..99u64, any::<u64>()), 0..9).prop_map(|all| {
                let entry = |(number, user, fingerprint): (u64, u64, u64)| Entry {
                    number,
                    user: user.checked_sub(1),
                    bound: Bound::default(),
                    fresh_s: number / 7,
                    fingerprint,
                };
                Frame::Mirror(Word::Stored(all.into_iter().map(entry).collect()))
            }),
            proptest::collection::vec(0..varint::MAX, 0..9).prop_map(|all| Frame::Mirror(Word::Evicted(all))),
            proptest::collection::vec((0..varint::MAX, "\\PC{0,40}", 0..varint::MAX), 0..9).prop_map(|all| {
                let validators = |(number, tag, modified): (u64, String, u64)| Validators {
                    number,
                    tag: tag.into(),
                    modified,
                };
                Frame::Mirror(Word::Validators(all.into_iter().map(validators).collect()))
            }),
            proptest::collection::vec(any::<u32>(), 0..20)
                .prop_map(|sums| Frame::Mirror(Word::Summary(sums))),
            (0..varint::MAX, 0..varint::MAX, any::<bool>()).prop_map(|(log, next, heard)| {
                let position = Position { log, next };
                if heard { Frame::Heard(position) } else { Frame::Mirror(Word::Log(position)) }
            }),
            (0..varint::MAX, proptest::collection::vec(0..varint::MAX, 0..9))
                .prop_map(|(of, buckets)| Frame::Differ { of, buckets }),
            (0..varint::MAX, 0..varint::MAX, 0..varint::MAX).prop_map(|(promise, entry, request)| {
                Frame::Validating(Validating { promise, entry, request })
            }),
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
            (codings, proptest::option::of(0..varint::MAX), bytes.clone())
                .prop_map(|(coding, resumed, section)| Frame::Response { coding, resumed, section }),
            (any::<bool>(), proptest::collection::vec((0..varint::MAX, any::<[u8; 16]>()), 0..9)).prop_map(
                |(holds, all)| {
                    let body =
                        |(user, hash): (u64, _)| HeldBody { user: user.checked_sub(1), hash: BodyHash(hash) };
                    let bodies = all.into_iter().map(body).collect();
                    Frame::Mirror(if holds { Word::Holds(bodies) } else { Word::Lacks(bodies) })
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
            (0..varint::MAX, "https?", "[a-z.]{1,30}", any::<u16>())
                .prop_map(|(user, scheme, host, port)| Frame::Prepare { user, scheme, host, port }),
            (
                0..varint::MAX,
                0..99u64,
                class,
                "[a-z.]{1,30}",
                any::<u16>(),
                any::<Option<IpAddr>>(),
                any::<bool>()
            )
                .prop_map(|(tunnel, user, class, host, port, client, marked)| {
                    Frame::Tunnel(Tunnel { tunnel, user, class, host, port, client, marked })
                }),
            Just(Frame::Urgent),
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
