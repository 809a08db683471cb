//! Takes a body out of the bytes that follow a head, however they are split. Pure.
//!
//! ```text
//! Length ──────────────────────────────► Ended
//! ChunkLine ─► ChunkData ─► ChunkEnd ┐    ▲
//!     ▲  └──────────────────────┐    │    │
//!     └─────────────────────────│────┘    │
//!                               └► Trailers
//! ```

use super::chunk::{self, LONGEST_CHUNK_LINE};
use super::framing::Framing;
use super::scan::{HeadScanner, Section};
use super::{HeadLimits, Refusal};
use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;

/// Chunk lines of one body may carry this many bytes beside their sizes; a sender with more of them wants
/// to keep a parser busy.
const MOST_EXTENSION_BYTES: usize = 16 * 1024;

/// One step of decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// Some bytes of the body, never empty.
    Data(Bytes),
    /// The body is complete. Bytes left in the buffer belong to the next message.
    End(HeaderMap),
    /// Nothing can be said before more bytes arrive.
    NeedMore,
}

#[derive(Debug)]
enum State {
    Length(u64),
    UntilClose,
    ChunkLine,
    ChunkData(u64),
    ChunkEnd,
    Trailers(HeadScanner),
    Ended,
}

/// Decodes one body. Call [`BodyDecoder::decode`] until it needs more, add bytes, and at the end of the
/// connection ask [`BodyDecoder::end_of_input`].
#[derive(Debug)]
pub struct BodyDecoder {
    state: State,
    limits: HeadLimits,
    extension_bytes: usize,
}

impl BodyDecoder {
    /// A decoder for the body that the next byte begins; trailers are held to `limits`.
    pub fn new(framing: Framing, limits: HeadLimits) -> Self {
        let state = match framing {
            Framing::None => State::Ended,
            Framing::Length(bytes) => State::Length(bytes),
            Framing::Chunked => State::ChunkLine,
            Framing::UntilClose => State::UntilClose,
        };
        BodyDecoder { state, limits, extension_bytes: 0 }
    }

    /// Whether the last byte of the body has been taken.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Takes the next piece of the body from the front of `buffer`.
    ///
    /// # Errors
    /// Chunks or trailers out of their grammar. The decoder is then of no more use.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Decoded, Refusal> {
        loop {
            match &mut self.state {
                State::Ended => return Ok(Decoded::End(HeaderMap::new())),
                State::UntilClose if buffer.is_empty() => return Ok(Decoded::NeedMore),
                State::UntilClose => return Ok(Decoded::Data(buffer.split().freeze())),
                State::Length(rest) => {
                    let Some(data) = take(buffer, rest) else { return Ok(Decoded::NeedMore) };
                    if *rest == 0 {
                        self.state = State::Ended;
                    }
                    return Ok(Decoded::Data(data));
                }
                State::ChunkLine => {
                    let Some(size) = self.chunk_line(buffer)? else { return Ok(Decoded::NeedMore) };
                    self.state = match size {
                        0 => State::Trailers(HeadScanner::new(Section::Trailers)),
                        size => State::ChunkData(size),
                    };
                }
                State::ChunkData(rest) => {
                    let Some(data) = take(buffer, rest) else { return Ok(Decoded::NeedMore) };
                    if *rest == 0 {
                        self.state = State::ChunkEnd;
                    }
                    return Ok(Decoded::Data(data));
                }
                State::ChunkEnd => match (buffer.first(), buffer.get(1)) {
                    (Some(b'\r'), Some(b'\n')) => {
                        buffer.advance(2);
                        self.state = State::ChunkLine;
                    }
                    (None, _) | (Some(b'\r'), None) => return Ok(Decoded::NeedMore),
                    _ => return Err(Refusal::ChunkEnd),
                },
                State::Trailers(scanner) => {
                    let Some(range) = scanner.scan(buffer, &self.limits)? else {
                        return Ok(Decoded::NeedMore);
                    };
                    let section = buffer.split_to(range.end);
                    let trailers = chunk::parse_trailers(&section, &self.limits)?;
                    self.state = State::Ended;
                    return Ok(Decoded::End(trailers));
                }
            }
        }
    }

    /// Takes a whole chunk line; its size, or `None` while it is incomplete.
    fn chunk_line(&mut self, buffer: &mut BytesMut) -> Result<Option<u64>, Refusal> {
        let end = buffer.iter().take(LONGEST_CHUNK_LINE).position(|&byte| byte == b'\n');
        let Some(end) = end else {
            let too_long = buffer.len() >= LONGEST_CHUNK_LINE;
            return if too_long { Err(Refusal::ChunkExtension) } else { Ok(None) };
        };
        let line = buffer.split_to(end + 1);
        let Some(line) = line.strip_suffix(b"\r\n") else { return Err(Refusal::BareLf) };
        if line.contains(&b'\r') {
            return Err(Refusal::BareCr);
        }
        let size = chunk::parse_line(line)?;
        self.extension_bytes += line.iter().skip_while(|byte| byte.is_ascii_hexdigit()).count();
        if self.extension_bytes > MOST_EXTENSION_BYTES {
            return Err(Refusal::ChunkExtension);
        }
        Ok(Some(size))
    }

    /// Says whether the body may end here because the connection did.
    ///
    /// # Errors
    /// Bytes are missing: the message is incomplete (RFC 9112 §8).
    pub fn end_of_input(&mut self) -> Result<(), Refusal> {
        match self.state {
            State::Ended => Ok(()),
            State::UntilClose => {
                self.state = State::Ended;
                Ok(())
            }
            _ => Err(Refusal::BodyIncomplete),
        }
    }
}

/// At most `rest` bytes from the front of `buffer`, counted off; `None` when there are none.
fn take(buffer: &mut BytesMut, rest: &mut u64) -> Option<Bytes> {
    if buffer.is_empty() {
        return None;
    }
    let length = usize::try_from(*rest).unwrap_or(usize::MAX).min(buffer.len());
    *rest -= length as u64;
    Some(buffer.split_to(length).freeze())
}
