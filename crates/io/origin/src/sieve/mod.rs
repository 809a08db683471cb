//! What an origin sends on an HTTP/2 connection, frame by frame, before the h2 crate, which takes more than RFC 9113 §8.1.1 lets
//! anyone forward and less than it lets origins send. Frames pass as they came, all but two:
//!
//! - a field block with a field that may not be where it is has one more, for which the crate resets the stream; one that
//!   can't be read is interrupted, for which it ends the connection;
//! - DATA frames that carry nothing go no further: the crate ends a connection over a hundred in its life.
//!
//! All else that breaks a rule is left to the crate. Pure.

mod fuzz;

pub use fuzz::fuzz_frames;

use bytes::{Buf, BufMut, BytesMut};
use farhop_front::frames::flag::{END_HEADERS, END_STREAM};
use farhop_front::frames::hpack::{self, Decoder, Field};
use farhop_front::frames::kind::{CONTINUATION, DATA, HEADERS};
use farhop_front::frames::{Empties, FRAME_HEADER, Frame, LONGEST_FRAME, write_frame};
use std::collections::BTreeSet;
use std::time::Instant;

/// A longer block is taken for a flood, as multiples of the largest head.
const FLOOD: usize = 4;
/// Streams of which is known that what comes next are trailers. Of those that were given up here nobody says that they are over.
const REMEMBERED: usize = 4096;
/// See the module.
#[derive(Debug)]
pub(crate) struct Sieve {
    decoder: Decoder,
    /// The largest head, in bytes.
    most: usize,
    /// Bytes of a frame yet to pass.
    passing: usize,
    block: Option<Block>,
    /// Streams whose final head has come and whose end has not.
    begun: BTreeSet<u32>,
    empties: Empties,
    answers: u64,
}

/// A field block, not all of which has come.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends_stream: bool,
    bytes: Vec<u8>,
}

enum Section {
    Proper,
    Malformed,
    /// What follows can't be understood either.
    Unreadable,
}

impl Sieve {
    /// For a connection from its first byte on, with heads of at most `most` bytes.
    pub(crate) fn new(most: usize) -> Sieve {
        Sieve {
            decoder: Decoder::new(),
            most,
            passing: 0,
            block: None,
            begun: BTreeSet::new(),
            empties: Empties::default(),
            answers: 0,
        }
    }

    /// How many final heads have come since this was last asked.
    pub(crate) fn take_answers(&mut self) -> u64 {
        std::mem::take(&mut self.answers)
    }

    /// How many bytes at the front of what came pass as they are.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut passed = 0;
        loop {
            let count = self.passing.min(bytes.len() - passed);
            self.passing -= count;
            passed += count;
            let Some(frame) = Frame::read(&bytes[passed..]) else { return passed };
            if self.is_read(&frame) {
                return passed;
            }
            if frame.ends_stream() {
                self.end(frame.stream);
            }
            if frame.kind == DATA && frame.length > 0 {
                self.empties.forgive();
            }
            self.passing = FRAME_HEADER + frame.length;
        }
    }

    /// Takes what it can from the front of `came`, which came by `now`, and puts what is to be handed on at the end of `out`.
    pub(crate) fn handle(&mut self, came: &mut BytesMut, out: &mut BytesMut, now: Instant) {
        loop {
            let passed = self.pass(came);
            out.put_slice(&came[..passed]);
            came.advance(passed);
            let Some(frame) = Frame::read(came).filter(|frame| came.len() >= FRAME_HEADER + frame.length)
            else {
                return;
            };
            came.advance(FRAME_HEADER);
            let content = came.split_to(frame.length);
            if frame.kind != DATA {
                self.take(&frame, &content, out);
            } else if !self.empties.handle(now) {
                // A flood is for the crate to count.
                write_frame(DATA, frame.flags, frame.stream, &content, out);
            }
        }
    }

    /// Whether a frame is looked into, and does not just pass.
    fn is_read(&self, frame: &Frame) -> bool {
        match frame.kind {
            HEADERS => frame.length <= LONGEST_FRAME,
            CONTINUATION => {
                let continues = self.block.as_ref().is_some_and(|block| block.stream == frame.stream);
                continues && frame.length <= LONGEST_FRAME
            }
            // Where data may be.
            DATA => frame.carries_nothing() && self.begun.contains(&frame.stream),
            _ => false,
        }
    }

    /// Takes a frame of a field block, whole.
    fn take(&mut self, frame: &Frame, content: &[u8], out: &mut BytesMut) {
        match (&mut self.block, frame.kind) {
            (Some(block), CONTINUATION) => block.bytes.extend_from_slice(content),
            (block, _) => {
                *block = frame.fragment(content).map(|(bytes, _)| Block {
                    stream: frame.stream,
                    ends_stream: frame.flags & END_STREAM != 0,
                    bytes: bytes.to_vec(),
                });
            }
        }
        let is_flood =
            self.block.as_ref().is_some_and(|block| block.bytes.len() > self.most.saturating_mul(FLOOD));
        let section = match self.block.take() {
            _ if is_flood => Section::Unreadable,
            Some(block) if frame.flags & END_HEADERS != 0 => self.judge(&block),
            block => {
                self.block = block;
                Section::Proper
            }
        };
        if let Section::Proper = section {
            return write_frame(frame.kind, frame.flags, frame.stream, content, out);
        }
        write_frame(frame.kind, frame.flags & !END_HEADERS, frame.stream, content, out);
        if let Section::Malformed = section {
            // RFC 9113 §8.2.2.
            let mut more = BytesMut::new();
            hpack::write(b"connection", b"close", &mut more);
            write_frame(CONTINUATION, END_HEADERS, frame.stream, &more, out);
        } else {
            // RFC 9113 §6.10: a block that is interrupted ends the connection, whatever the crate makes of its bytes.
            write_frame(DATA, 0, 0, &[], out);
        }
    }

    fn judge(&mut self, block: &Block) -> Section {
        let is_trailers = self.begun.contains(&block.stream);
        let (mut is_proper, mut is_informational) = (true, false);
        let decoded = self.decoder.decode(&block.bytes, |field| {
            is_proper = is_proper && is_allowed(&field, is_trailers);
            is_informational = is_informational || (field.name == ":status" && field.value.starts_with(b"1"));
        });
        self.answers += u64::from(!is_trailers && !is_informational);
        if block.ends_stream {
            self.end(block.stream);
        } else if !is_informational {
            self.begun.insert(block.stream);
            if self.begun.len() > REMEMBERED {
                self.begun.pop_first();
            }
        }
        match decoded {
            Err(_) => Section::Unreadable,
            Ok(()) if is_proper => Section::Proper,
            Ok(()) => Section::Malformed,
        }
    }

    fn end(&mut self, stream: u32) {
        self.begun.remove(&stream);
        self.empties.forgive();
    }
}

/// Whether a response may have this field, as far as the h2 crate does not know.
fn is_allowed(Field { name, value }: &Field, is_trailers: bool) -> bool {
    // RFC 9113 §8.2.1.
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let in_place = match &name[..] {
        // RFC 9113 §8.3.2.
        b":status" => !is_trailers,
        // RFC 9110 §6.5.1.
        b"content-length" => !is_trailers,
        // RFC 9113 §8.1 and §8.3.
        name => !name.starts_with(b":"),
    };
    in_place && !is_blank(value.first()) && !is_blank(value.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: (&str, &str) = (":status", "200");

    fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
        let mut frame = BytesMut::new();
        write_frame(kind, flags, stream, content, &mut frame);
        frame.to_vec()
    }

    fn block(fields: &[(&str, &str)]) -> BytesMut {
        let mut block = BytesMut::new();
        fields.iter().for_each(|(name, value)| hpack::write(name.as_bytes(), value.as_bytes(), &mut block));
        block
    }

    fn head(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
        frame(HEADERS, flags, stream, &block(fields))
    }

    /// What becomes of `bytes` that come in pieces of this size.
    fn sieved(bytes: &[u8], size: usize) -> Vec<u8> {
        let (mut sieve, mut came, mut out) = (Sieve::new(1000), BytesMut::new(), BytesMut::new());
        for piece in bytes.chunks(size) {
            came.extend_from_slice(piece);
            sieve.handle(&mut came, &mut out, Instant::now());
        }
        out.to_vec()
    }

    const SIZES: [usize; 4] = [1, 7, 100, usize::MAX];

    #[test]
    fn what_is_proper_passes_as_it_came_but_for_data_without_data() {
        let proper = |nothing: &[u8]| {
            [
                frame(4, 0, 0, b""),
                head(1, END_HEADERS, &[(":status", "103"), ("link", "</a>")]),
                head(3, 0, &[OK]),
                frame(CONTINUATION, END_HEADERS, 3, &block(&[("x", "y z")])),
                head(1, END_HEADERS, &[OK, ("content-length", "5"), ("empty", "")]),
                nothing.repeat(3),
                frame(DATA, 0, 1, b"hello"),
                nothing.repeat(200),
                frame(6, 0, 0, b"12345678"),
                head(1, END_HEADERS | END_STREAM, &[("x-sum", "1")]),
                frame(DATA, END_STREAM, 3, b""),
                // Where no data may be.
                frame(DATA, 0, 3, b""),
                frame(DATA, 0, 5, b""),
            ]
            .concat()
        };
        for size in SIZES {
            assert_eq!(sieved(&proper(&frame(DATA, 0, 1, b"")), size), proper(&[]), "in pieces of {size}");
        }
    }

    #[test]
    fn a_field_that_may_not_be_where_it_is_has_one_behind_it_that_resets_the_stream() {
        let refusal = frame(CONTINUATION, END_HEADERS, 1, &block(&[("connection", "close")]));
        for fields in [&[OK, (":path", "/")][..], &[OK, ("x", " y")], &[OK, ("x", "y\t")], &[OK, ("x", " ")]]
        {
            for size in SIZES {
                let refused = [head(1, END_STREAM, fields), refusal.clone()].concat();
                assert_eq!(sieved(&head(1, END_STREAM | END_HEADERS, fields), size), refused, "{fields:?}");
            }
        }
        let begun = head(1, END_HEADERS, &[OK]);
        for field in [OK, (":path", "/"), ("content-length", "5"), ("x", " y")] {
            let trailed = [begun.clone(), head(1, END_STREAM | END_HEADERS, &[field])].concat();
            let refused = [begun.clone(), head(1, END_STREAM, &[field]), refusal.clone()].concat();
            assert_eq!(sieved(&trailed, usize::MAX), refused, "{field:?}");
        }
    }

    #[test]
    fn what_is_kept_of_a_head_counts_for_the_next() {
        // A literal that is to be kept, and its number.
        let kept = [block(&[OK]).to_vec(), b"\x40\x05:path\x01/".to_vec()].concat();
        let named = [block(&[OK]).to_vec(), vec![0xbe]].concat();
        let came = [frame(HEADERS, 5, 1, &kept), frame(HEADERS, 5, 3, &named)].concat();
        assert!(sieved(&came, usize::MAX).ends_with(&block(&[("connection", "close")])));
    }

    #[test]
    fn blocks_that_cannot_be_read_or_have_no_end_are_interrupted() {
        let interruption = frame(DATA, 0, 0, &[]);
        for block in [&[0xff; 9][..], b"\x02"] {
            let interrupted = [frame(HEADERS, END_STREAM, 1, block), interruption.clone()].concat();
            assert_eq!(sieved(&frame(HEADERS, END_STREAM | END_HEADERS, 1, block), usize::MAX), interrupted);
        }
        let endless = [head(1, 0, &[OK]), frame(CONTINUATION, 0, 1, &[b'x'; 5000])].concat();
        assert!(sieved(&endless, usize::MAX).ends_with(&interruption));
    }

    #[test]
    fn any_bytes_are_sieved_alike_in_any_pieces() {
        // Frames of all kinds with anything in them, from a generator of numbers (Knuth's MMIX).
        let mut state = 7u64;
        let mut number = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..500 {
            let frames: Vec<u8> = (0..8)
                .flat_map(|_| {
                    let content: Vec<u8> = (0..number(40)).map(|_| number(256) as u8).collect();
                    frame(number(11) as u8, number(64) as u8, number(4) as u32, &content)
                })
                .collect();
            fuzz_frames(&frames);
        }
    }
}
