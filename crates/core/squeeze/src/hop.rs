//! zstd as it crosses the long hop: flushed with every chunk, so that the far end can show each byte as soon as it has
//! arrived, and with windows that keep a stream's memory modest. And what crosses as its origin coded it, undone there.

use crate::PIECE;
use crate::brotli_stage::Brotli;
use crate::chain::{Chain, TAIL_MEMORY};
use crate::dictionary::{is_dictionary, window_log};
use crate::gzip_stage::Gzip;
use crate::stage::{SqueezeError, Stage, piece};
use crate::zstd_stage::Zstd;
use bytes::{Buf, Bytes, BytesMut};
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// Windows on the hop are at most 2^20 bytes: most text files are smaller, and each open stream costs that much at
/// both ends.
pub const HOP_WINDOW_LOG: u32 = 20;

/// Windows of what crosses in its origin's Brotli are at most 2^22 bytes, as encoders have them unless they are told otherwise.
pub const BROTLI_WINDOW_LOG: u32 = 22;

/// Windows over a base and what is coded against it are at most 2^21 bytes: both as large as they may be. Those over a
/// smaller base are smaller.
pub const DELTA_WINDOW_LOG: u32 = 21;

/// And at least 2^16, which is what a short base costs.
const LEAST_DELTA_WINDOW_LOG: u32 = 16;

/// Largest body in bytes that serves as a base, and that is coded against one: each costs its decoder that much memory.
pub const LARGEST_BASE: usize = 1 << 20;

/// Below this level zstd remembers too little of a base to find what is equal. Where much is, it is quick all the same.
pub(crate) const LEAST_DELTA_LEVEL: i32 = 6;

/// With these bytes begins what zstd takes for a trained dictionary and not for a text (RFC 8878 §5).
pub(crate) const DICTIONARY: [u8; 4] = 0xec30_a437_u32.to_le_bytes();

/// Window for bodies of unknown length.
pub(crate) const UNKNOWN_WINDOW_LOG: u32 = 18;

pub(crate) const NAME: &str = "zstd";

/// Compresses one body for the hop.
pub struct Encoder {
    context: CCtx<'static>,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").field("memory", &self.memory()).finish()
    }
}

impl Encoder {
    /// An encoder at `level` (1 to 19), for a body of `length` bytes if that is known: a short body then takes less
    /// memory.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`] if the codec cannot be set up.
    pub fn new(level: i32, length: Option<u64>) -> Result<Self, SqueezeError> {
        let bits = |length: u64| (u64::BITS - length.leading_zeros()).clamp(10, HOP_WINDOW_LOG);
        // A body of unknown length is mostly a small page made on the fly, and hundreds may be open at once.
        let window_log = length.map_or(UNKNOWN_WINDOW_LOG, bits);
        let further = [
            // The hint sizes the tables; without it every level takes those for endless input.
            CParameter::SrcSizeHint(1 << window_log),
            // The hop's own framing guards against loss; a checksum would cost four bytes per body.
            CParameter::ChecksumFlag(false),
        ];
        Ok(Encoder { context: context(level.clamp(1, 19), window_log, &further)? })
    }

    /// Compresses `chunk` and flushes: the result decodes to all that was put in so far.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`].
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<Bytes, SqueezeError> {
        if chunk.is_empty() {
            return Ok(Bytes::new());
        }
        run(&mut self.context, chunk, ZSTD_EndDirective::ZSTD_e_flush)
    }

    /// Compresses the last bytes, which may be none, and ends the stream.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`].
    pub fn finish(mut self, rest: &[u8]) -> Result<Bytes, SqueezeError> {
        run(&mut self.context, rest, ZSTD_EndDirective::ZSTD_e_end)
    }

    /// Bytes that the encoder holds.
    pub fn memory(&self) -> usize {
        self.context.sizeof()
    }
}

/// What codes one frame, whose head does not tell the body's length: the hop does.
///
/// # Errors
/// [`SqueezeError::Codec`].
pub(crate) fn context(
    level: i32,
    window_log: u32,
    further: &[CParameter],
) -> Result<CCtx<'static>, SqueezeError> {
    let mut context = CCtx::try_create().ok_or(SqueezeError::Codec(NAME))?;
    let always = [
        CParameter::CompressionLevel(level),
        CParameter::WindowLog(window_log),
        CParameter::ContentSizeFlag(false),
    ];
    for setting in always.iter().chain(further) {
        context.set_parameter(*setting).map_err(|_| SqueezeError::Codec(NAME))?;
    }
    Ok(context)
}

/// Puts a chunk through an encoder and gives all that comes out, as `directive` has it.
pub(crate) fn run(
    context: &mut CCtx<'static>,
    chunk: &[u8],
    directive: ZSTD_EndDirective,
) -> Result<Bytes, SqueezeError> {
    let mut input = InBuffer::around(chunk);
    let mut output = BytesMut::with_capacity(chunk.len() / 3 + 64);
    let mut piece = [0; 4096];
    loop {
        let mut target = OutBuffer::around(&mut piece[..]);
        let left = context
            .compress_stream2(&mut target, &mut input, directive)
            .map_err(|_| SqueezeError::Codec(NAME))?;
        let written = target.pos();
        output.extend_from_slice(&piece[..written]);
        // Zero: everything put in is out (zstd manual, ZSTD_compressStream2).
        if left == 0 && input.pos() == chunk.len() {
            return Ok(output.freeze());
        }
    }
}

/// Decodes one body from the hop, in pieces of at most [`PIECE`] bytes; used like [`crate::Decoder`].
pub struct HopDecoder {
    stage: Box<dyn Stage>,
    input: Bytes,
}

impl std::fmt::Debug for HopDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HopDecoder").field("waiting", &self.input.len()).finish()
    }
}

impl Default for HopDecoder {
    fn default() -> Self {
        HopDecoder::of(Zstd::new(HOP_WINDOW_LOG))
    }
}

impl HopDecoder {
    fn of(stage: impl Stage + 'static) -> Self {
        HopDecoder { stage: Box::new(stage), input: Bytes::new() }
    }

    /// For a body in the Brotli of its origin.
    pub fn brotli() -> Self {
        HopDecoder::of(Brotli::new())
    }

    /// For a body in the gzip of its origin.
    pub fn gzip() -> Self {
        HopDecoder::of(Gzip::new())
    }

    /// For a body that was coded by [`compress_against`] this base, or by a [`DeltaEncoder`](crate::DeltaEncoder).
    ///
    /// # Errors
    /// [`SqueezeError::Codec`]: it cannot be a base, or there is no memory.
    pub fn against(base: &[u8]) -> Result<Self, SqueezeError> {
        if !can_be_base(base) {
            return Err(SqueezeError::Codec(NAME));
        }
        Ok(HopDecoder::of(Chain::new(base, delta_window_log(base.len()))?))
    }

    /// For a body that was coded by [`compress_with`](crate::compress_with) this trained dictionary.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`]: it is none, or there is no memory.
    pub fn with_dictionary(dictionary: &[u8]) -> Result<Self, SqueezeError> {
        if !is_dictionary(dictionary) {
            return Err(SqueezeError::Codec(NAME));
        }
        Ok(HopDecoder::of(Zstd::against(dictionary, window_log())?))
    }

    /// Gives the next chunk, when [`pull`](HopDecoder::pull) has given `None`.
    pub fn feed(&mut self, chunk: Bytes) {
        self.input =
            if self.input.is_empty() { chunk } else { [&self.input[..], &chunk[..]].concat().into() };
    }

    /// The next piece, or `None` when more input is needed.
    ///
    /// # Errors
    /// [`SqueezeError::Invalid`].
    pub fn pull(&mut self) -> Result<Option<Bytes>, SqueezeError> {
        let mut output = BytesMut::zeroed(PIECE);
        loop {
            let stepped = self.stage.step(&self.input, &mut output)?;
            if self.stage.window() > 1 << BROTLI_WINDOW_LOG {
                return Err(SqueezeError::invalid(self.stage.name(), "its window is too large"));
            }
            self.input.advance(stepped.read);
            if stepped.written > 0 {
                return Ok(Some(piece(output, stepped.written)));
            }
            if stepped.read == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether the stream has come to its end, so that the body is whole. In a coding of which browsers take what came, it may end
    /// anywhere.
    pub fn is_complete(&self) -> bool {
        (self.stage.is_complete() || self.stage.may_break_off()) && self.input.is_empty()
    }
}

/// Compresses a whole small body at once.
///
/// # Errors
/// [`SqueezeError::Codec`].
pub fn compress(body: &[u8], level: i32) -> Result<Bytes, SqueezeError> {
    Encoder::new(level, Some(body.len() as u64))?.finish(body)
}

/// Whether these bytes may serve as a base.
pub fn can_be_base(base: &[u8]) -> bool {
    !base.is_empty() && base.len() <= LARGEST_BASE && !base.starts_with(&DICTIONARY)
}

/// The largest window over a base of so many bytes: four to eight times as much.
pub(crate) fn delta_window_log(base: usize) -> u32 {
    let bits = usize::BITS - base.saturating_mul(4).leading_zeros();
    bits.clamp(LEAST_DELTA_WINDOW_LOG, DELTA_WINDOW_LOG)
}

/// Bytes that [`HopDecoder::against`] a base of so many takes, with the base itself, or with what a further frame refers to.
pub fn delta_memory(base: usize) -> usize {
    let further = 2 << UNKNOWN_WINDOW_LOG;
    ((1 << delta_window_log(base)) + 2 * base).max(further) + TAIL_MEMORY
}

/// Compresses a whole body against a base that its reader has, as a frame with a checksum of what it decodes to.
///
/// # Errors
/// [`SqueezeError::TooLarge`] for the body, [`SqueezeError::Codec`].
pub fn compress_against(base: &[u8], body: &[u8], level: i32) -> Result<Bytes, SqueezeError> {
    if body.len() > LARGEST_BASE {
        return Err(SqueezeError::TooLarge(LARGEST_BASE));
    }
    if !can_be_base(base) {
        return Err(SqueezeError::Codec(NAME));
    }
    let length = (base.len() + body.len()) as u64;
    let window_log = (u64::BITS - length.leading_zeros()).clamp(10, delta_window_log(base.len()));
    // The result is held, so a fault of whatever kind must not stay: four bytes say that it is none.
    let further = [CParameter::ChecksumFlag(true)];
    let mut context = context(level.clamp(LEAST_DELTA_LEVEL, 19), window_log, &further)?;
    context.ref_prefix(base).map_err(|_| SqueezeError::Codec(NAME))?;
    let mut output = Vec::with_capacity(zstd::zstd_safe::compress_bound(body.len()));
    context.compress2(&mut output, body).map_err(|_| SqueezeError::Codec(NAME))?;
    output.shrink_to_fit();
    Ok(output.into())
}

/// Decodes a whole small body, of at most `limit` bytes.
///
/// # Errors
/// [`SqueezeError::TooLarge`], [`SqueezeError::Invalid`] or [`SqueezeError::Truncated`].
pub fn decompress(body: Bytes, limit: usize) -> Result<Bytes, SqueezeError> {
    let mut decoder = HopDecoder::default();
    decoder.feed(body);
    let mut whole = BytesMut::new();
    while let Some(piece) = decoder.pull()? {
        if whole.len() + piece.len() > limit {
            return Err(SqueezeError::TooLarge(limit));
        }
        whole.extend_from_slice(&piece);
    }
    if decoder.is_complete() { Ok(whole.freeze()) } else { Err(SqueezeError::Truncated(NAME)) }
}
