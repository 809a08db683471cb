//! Stands before the h2 crate, which ends a whole connection over one field that nobody may send: what RFC 9113 §8.1.1
//! calls a malformed request is an error of its stream. Field blocks are read here and handed on as plain literals, a
//! malformed one as one that the crate resets its stream for, and a `:path` with what clients leave bare in it encoded, which
//! the crate would take for malformed. Only frames and blocks that can't be read, and those of streams that their client has
//! ended, end the connection, each with the error code that RFC 9113 has for it, where the crate has one for all. DATA frames that carry nothing go no further. On the way the priorities that clients announce ahead of a request (RFC 9218 §7.1) become its own, and those
//! that they give to one that is open are put aside for whoever answers it. Pure.
//!
//! ```text
//! frame ─► passing (as it is) ─► frame
//!   └────► field block, over several frames ─► frame
//! ```

mod fuzz;

pub use fuzz::fuzz_frames;

use crate::frames::flag::{ACK, END_HEADERS, END_STREAM};
use crate::frames::hpack::{self, Decoder, Field};
use crate::frames::kind::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PING, PRIORITY_UPDATE, RST_STREAM, SETTINGS, STREAM_PRIORITY,
    WINDOW_UPDATE,
};
use crate::frames::{Empties, FRAME_HEADER, Frame, LONGEST_FRAME, write_frame};
use crate::h1::encode_bare;
use ::h2::Reason;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Instant;

const PREFACE: usize = 24;
/// A longer block is taken for a flood, as multiples of the largest field section.
const FLOOD: usize = 4;
/// Frames of one block. Honest clients fill them.
const MOST_FRAMES: usize = 256;
/// A longer priority is none. The two parameters that there are (RFC 9218 §4) take six bytes.
const LONGEST_PRIORITY: usize = 256;

/// Streams that are known to have been ended by the client, and runs of numbers that it has passed over. Of what lies further
/// back the h2 crate judges.
const REMEMBERED: usize = 64;
/// RFC 9113 §6.5.2 and §6.9.1: windows are no larger.
const LARGEST_WINDOW: u32 = 0x7fff_ffff;

/// SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2).
const INITIAL_WINDOW_SIZE: u16 = 4;

/// See the module.
pub(super) struct Sieve {
    decoder: Decoder,
    /// The largest field section, in bytes (RFC 9113 §6.5.2).
    most: usize,
    /// How many streams there may be whose priority is known before they are.
    streams: usize,
    /// Bytes yet to be passed on as they are.
    passing: usize,
    block: Option<Block>,
    /// The last stream that the client has opened.
    last: u32,
    priorities: BTreeMap<u32, Bytes>,
    /// What was said of open streams, in turn.
    reordered: Vec<(u32, Bytes)>,
    /// Streams on which the client has ended or given up what it sends, the latest last.
    ended: VecDeque<u32>,
    /// Numbers of streams that the client has passed over, which can't be opened any more.
    skipped: VecDeque<Range<u32>>,
    empties: Empties,
    doomed: Option<Reason>,
}

/// A field block, not all of which has come.
struct Block {
    stream: u32,
    ends_stream: bool,
    /// Its stream is said to depend on itself.
    hangs_on_itself: bool,
    bytes: BytesMut,
    frames: usize,
}

/// What became of a block.
enum Section {
    Proper(BytesMut),
    /// Larger than this end is willing to take, and how much it would.
    TooLarge(usize),
    Malformed,
}

impl Sieve {
    /// For a connection from its preface on, whose field sections take at most `most` bytes and that has at most
    /// `streams` streams.
    pub(super) fn new(most: usize, streams: usize) -> Sieve {
        Sieve {
            decoder: Decoder::new(),
            most,
            streams,
            passing: PREFACE,
            block: None,
            last: 0,
            priorities: BTreeMap::new(),
            reordered: Vec::new(),
            ended: VecDeque::new(),
            skipped: VecDeque::new(),
            empties: Empties::default(),
            doomed: None,
        }
    }

    /// How many bytes come next that are handed on as they are.
    pub(super) fn passing(&self) -> usize {
        self.passing
    }

    /// That many of them went another way.
    pub(super) fn passed(&mut self, bytes: usize) {
        self.passing -= bytes;
    }

    /// What the client has said of streams that it has opened, and may have ended, since this was last asked.
    pub(super) fn take_reordered(&mut self) -> Vec<(u32, Bytes)> {
        std::mem::take(&mut self.reordered)
    }

    /// Why the connection is to end once what was handed on has been read; nothing is handed on after that.
    pub(super) fn doomed(&self) -> Option<Reason> {
        self.doomed
    }

    /// Takes what it can from the front of `came`, which came by `now`, and puts what is to be handed on at the end of `out`.
    pub(super) fn handle(&mut self, came: &mut BytesMut, out: &mut BytesMut, now: Instant) {
        while !came.is_empty() {
            if self.doomed.is_some() {
                return came.clear();
            }
            if self.passing > 0 {
                let count = self.passing.min(came.len());
                out.put_slice(&came[..count]);
                came.advance(count);
                self.passing -= count;
                continue;
            }
            let Some(frame) = Frame::read(came) else { return };
            if let Err(reason) = self.admit(&frame) {
                self.doom(reason);
            } else if self.leaves_out(&frame, now) {
                came.advance(FRAME_HEADER);
            } else if !self.is_read(&frame) {
                if frame.ends_stream() {
                    self.end(frame.stream);
                }
                if frame.kind == DATA && frame.length > 0 {
                    self.empties.forgive();
                }
                self.passing = FRAME_HEADER + frame.length;
            } else if came.len() < FRAME_HEADER + frame.length {
                return;
            } else {
                came.advance(FRAME_HEADER);
                let content = came.split_to(frame.length);
                if let Err(reason) = self.take(&frame, content, out) {
                    self.doom(reason);
                }
            }
        }
    }

    /// Judges a frame by its head alone.
    fn admit(&self, frame: &Frame) -> Result<(), Reason> {
        let follows = match &self.block {
            Some(block) => frame.kind == CONTINUATION && frame.stream == block.stream,
            None => frame.kind != CONTINUATION,
        };
        if !follows {
            // RFC 9113 §6.2 and §6.10.
            return Err(Reason::PROTOCOL_ERROR);
        }
        if frame.kind == DATA && self.ended.contains(&frame.stream) {
            // RFC 9113 §5.1.
            return Err(Reason::STREAM_CLOSED);
        }
        // RFC 9113 §4.2, and what §6 says of each kind.
        let fits = match frame.kind {
            STREAM_PRIORITY => frame.length == 5,
            RST_STREAM | WINDOW_UPDATE => frame.length == 4,
            SETTINGS if frame.flags & ACK != 0 => frame.length == 0,
            SETTINGS => frame.length.is_multiple_of(6),
            PING => frame.length == 8,
            GOAWAY => frame.length >= 8,
            PRIORITY_UPDATE => frame.length >= 4,
            _ => true,
        };
        if fits && frame.length <= LONGEST_FRAME { Ok(()) } else { Err(Reason::FRAME_SIZE_ERROR) }
    }

    /// Whether a frame goes no further: the h2 crate ends a connection over a hundred that carry nothing. Of those on streams where
    /// none may be, and of a flood, it judges.
    fn leaves_out(&mut self, frame: &Frame, now: Instant) -> bool {
        let is_open = frame.stream % 2 == 1 && frame.stream <= self.last && self.expect(frame.stream).is_ok();
        frame.carries_nothing() && is_open && self.empties.handle(now)
    }

    /// Whether a frame is looked into, and not just passed on.
    fn is_read(&self, frame: &Frame) -> bool {
        match frame.kind {
            HEADERS | CONTINUATION | PRIORITY_UPDATE | SETTINGS => true,
            STREAM_PRIORITY | WINDOW_UPDATE => (1..=self.last).contains(&frame.stream),
            _ => false,
        }
    }

    /// Takes a frame that is not just passed on, whole. An error ends the connection.
    fn take(&mut self, frame: &Frame, content: BytesMut, out: &mut BytesMut) -> Result<(), Reason> {
        match frame.kind {
            PRIORITY_UPDATE => self.prioritize(frame, content),
            STREAM_PRIORITY => {
                if let Some(priority) = former(&content) {
                    self.reordered.push((frame.stream, priority));
                }
                write_frame(STREAM_PRIORITY, 0, frame.stream, &content, out);
                Ok(())
            }
            SETTINGS => {
                let is_too_large = |setting: &[u8]| match setting {
                    [high, low, value @ ..] if u16::from_be_bytes([*high, *low]) == INITIAL_WINDOW_SIZE => {
                        Bytes::copy_from_slice(value).get_u32() > LARGEST_WINDOW
                    }
                    _ => false,
                };
                // RFC 9113 §6.5.2.
                if content.chunks_exact(6).any(is_too_large) {
                    return Err(Reason::FLOW_CONTROL_ERROR);
                }
                write_frame(SETTINGS, frame.flags, frame.stream, &content, out);
                Ok(())
            }
            WINDOW_UPDATE => {
                // RFC 9113 §6.9: to grow by nothing is an error of the stream, not of the connection as for the h2 crate.
                match (&content[..]).get_u32() & LARGEST_WINDOW {
                    0 => write_block(frame.stream, true, malformed(), out),
                    _ => write_frame(WINDOW_UPDATE, 0, frame.stream, &content, out),
                }
                Ok(())
            }
            HEADERS => {
                // RFC 9113 §5.1.1: clients have the odd numbers.
                let fragment = frame.fragment(&content).filter(|_| frame.stream % 2 == 1);
                let (bytes, dependency) = fragment.ok_or(Reason::PROTOCOL_ERROR)?;
                let (stream, ends_stream, bytes) =
                    (frame.stream, frame.flags & END_STREAM != 0, BytesMut::from(bytes));
                let hangs_on_itself = dependency == Some(stream);
                self.block = Some(Block { stream, ends_stream, hangs_on_itself, bytes, frames: 1 });
                self.proceed(frame, out)
            }
            _ => {
                let block = self.block.as_mut().ok_or(Reason::PROTOCOL_ERROR)?;
                block.frames += 1;
                block.bytes.extend_from_slice(&content);
                self.proceed(frame, out)
            }
        }
    }

    /// Hands a block on if it is complete.
    fn proceed(&mut self, frame: &Frame, out: &mut BytesMut) -> Result<(), Reason> {
        let block = self.block.take().ok_or(Reason::PROTOCOL_ERROR)?;
        if block.bytes.len() > self.most.saturating_mul(FLOOD) || block.frames > MOST_FRAMES {
            return Err(Reason::ENHANCE_YOUR_CALM);
        }
        if frame.flags & END_HEADERS == 0 {
            self.block = Some(block);
            return Ok(());
        }
        // What comes on a stream that is there already is trailers.
        let opens = block.stream > self.last;
        if !opens {
            self.expect(block.stream)?;
        }
        let priority = if opens { self.open(block.stream) } else { None };
        if block.ends_stream {
            self.end(block.stream);
        }
        // RFC 9113 §4.3.
        let section = self.section(&block.bytes, opens, priority).ok_or(Reason::COMPRESSION_ERROR)?;
        let (ends_stream, fields) = match section {
            // RFC 7540 §5.3.1, as the h2 crate has it for PRIORITY. Nobody needs it to be otherwise.
            _ if block.hangs_on_itself => (true, malformed()),
            Section::Proper(fields) => (block.ends_stream, fields),
            Section::TooLarge(most) if opens => (block.ends_stream, too_large(most)),
            Section::TooLarge(_) | Section::Malformed => (true, malformed()),
        };
        write_block(block.stream, ends_stream, fields, out);
        Ok(())
    }

    /// Whether fields may come on a stream whose number is not beyond the last.
    fn expect(&self, stream: u32) -> Result<(), Reason> {
        if self.ended.contains(&stream) {
            // RFC 9113 §5.1.
            return Err(Reason::STREAM_CLOSED);
        }
        // RFC 9113 §5.1.1.
        let is_skipped = self.skipped.iter().any(|run| run.contains(&stream));
        if is_skipped { Err(Reason::PROTOCOL_ERROR) } else { Ok(()) }
    }

    /// The client sends nothing more on a stream.
    fn end(&mut self, stream: u32) {
        self.empties.forgive();
        remember(&mut self.ended, stream);
    }

    /// The client opens a stream; gives the priority that it has announced for it.
    fn open(&mut self, stream: u32) -> Option<Bytes> {
        if stream > self.last + 2 {
            remember(&mut self.skipped, self.last + 1..stream);
        }
        self.last = stream;
        // RFC 9113 §5.1.1: those before it can't be opened any more.
        self.priorities = self.priorities.split_off(&stream);
        self.priorities.remove(&stream)
    }

    /// The fields of a block as literals; `None` if they can't be read. Only what `opens` a stream has pseudo-fields (RFC
    /// 9113 §8.1).
    fn section(&mut self, block: &[u8], opens: bool, priority: Option<Bytes>) -> Option<Section> {
        let (mut fields, mut size, mut is_proper) = (BytesMut::new(), 0usize, true);
        let most = self.most;
        let mut put = |mut field: Field| {
            if field.name == ":path"
                && let Cow::Owned(encoded) = encode_bare(&field.value)
            {
                field.value = encoded.into();
            }
            size = size.saturating_add(field.size());
            is_proper = is_proper && is_allowed(&field) && (opens || !field.name.starts_with(b":"));
            // A few bytes can stand for very many.
            if is_proper && size < most {
                hpack::write(&field.name, &field.value, &mut fields);
            }
        };
        let is_said = priority.is_some();
        let decoded = self.decoder.decode(block, |field| {
            if !(is_said && field.name == "priority") {
                put(field);
            }
        });
        decoded.ok()?;
        if let Some(value) = priority {
            put(Field { name: Bytes::from_static(b"priority"), value });
        }
        Some(match (is_proper, size < most) {
            (false, _) => Section::Malformed,
            (true, true) => Section::Proper(fields),
            (true, false) => Section::TooLarge(most),
        })
    }

    /// RFC 9218 §7.1: the prioritized stream, and its Priority.
    fn prioritize(&mut self, frame: &Frame, mut content: BytesMut) -> Result<(), Reason> {
        let stream = content.get_u32() & 0x7fff_ffff;
        if frame.stream != 0 || stream == 0 {
            return Err(Reason::PROTOCOL_ERROR);
        }
        if content.len() > LONGEST_PRIORITY || HeaderValue::from_bytes(&content).is_err() {
            return Ok(());
        }
        // Copied, so that a few bytes don't hold what came with them.
        let priority = Bytes::copy_from_slice(&content);
        if stream <= self.last {
            self.reordered.push((stream, priority));
        } else if self.priorities.len() < self.streams || self.priorities.contains_key(&stream) {
            self.priorities.insert(stream, priority);
        }
        Ok(())
    }

    /// Nothing more of this connection can be understood.
    fn doom(&mut self, reason: Reason) {
        self.doomed = Some(reason);
        self.block = None;
    }
}

/// Keeps the latest.
fn remember<T>(among: &mut VecDeque<T>, item: T) {
    if among.len() == REMEMBERED {
        among.pop_front();
    }
    among.push_back(item);
}

/// The Priority that a PRIORITY frame of former days stands for, if it is one of Chromium's, which has no other word for a
/// change of mind: its streams hang on one another, all exclusively, and the weights 256, 220, 183, 147, … of the frames are
/// the urgencies 0, 1, 2, 3, … of its own `Priority` fields. What it changes the mind about are images: incremental.
fn former(content: &[u8]) -> Option<Bytes> {
    let [dependency, _, _, _, weight] = content.try_into().ok()?;
    let is_exclusive = dependency & 0x80 != 0;
    let urgency = ((255 - u32::from(weight)) * 7 + 127) / 255;
    is_exclusive.then(|| Bytes::from(format!("u={urgency}, i")))
}

/// Whether the h2 crate takes this field, or resets only its stream for it. For the others it ends the connection.
fn is_allowed(Field { name, value }: &Field) -> bool {
    match &name[..] {
        b":method" => Method::from_bytes(value).is_ok(),
        // The crate would leave out a fragment, which nobody sends (RFC 9113 §8.3.1).
        b":path" => value.is_ascii() && !value.contains(&b'#'),
        b":scheme" | b":authority" | b":protocol" => std::str::from_utf8(value).is_ok(),
        b":status" => StatusCode::from_bytes(value).is_ok(),
        name => HeaderName::from_lowercase(name).is_ok() && HeaderValue::from_bytes(value).is_ok(),
    }
}

/// A section for which the h2 crate resets a stream (RFC 9113 §8.2.2), whatever it is a part of.
fn malformed() -> BytesMut {
    let mut fields = BytesMut::new();
    hpack::write(b"connection", b"close", &mut fields);
    fields
}

/// A section for which the h2 crate answers 431: as large as it may not be.
fn too_large(most: usize) -> BytesMut {
    let mut fields = BytesMut::new();
    hpack::write(b"x", &vec![b'x'; most], &mut fields);
    fields
}

fn write_block(stream: u32, ends_stream: bool, mut fields: BytesMut, out: &mut BytesMut) {
    let (mut kind, mut flags) = (HEADERS, if ends_stream { END_STREAM } else { 0 });
    loop {
        let content = fields.split_to(fields.len().min(LONGEST_FRAME));
        if fields.is_empty() {
            return write_frame(kind, flags | END_HEADERS, stream, &content, out);
        }
        write_frame(kind, flags, stream, &content, out);
        (kind, flags) = (CONTINUATION, 0);
    }
}
