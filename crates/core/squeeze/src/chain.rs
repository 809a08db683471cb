//! A text that streams against a base, for as long as that takes fewer bytes than the text does by itself. What is better off
//! alone from somewhere on begins a frame of its own there, which refers to the end of what came before it: so it takes what it
//! would have taken alone, within a quarter of a percent, and what was saved until then stays saved.

use bytes::{Bytes, BytesMut};
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter};

use crate::hop::{
    DICTIONARY, Encoder, LEAST_DELTA_LEVEL, NAME, UNKNOWN_WINDOW_LOG, can_be_base, context, delta_window_log,
    run,
};
use crate::stage::{SqueezeError, Stage, Stepped};
use crate::zstd_stage::Zstd;

/// Bytes at the end of what came that the next frame refers to: as many as a text of unknown length refers back over by itself.
const TAIL: usize = 1 << UNKNOWN_WINDOW_LOG;

/// What has to be saved at the beginning for a base to be used, and what may not be lost of that again: the first frame's end and the
/// codes that the second one has to say anew take less.
const LEAST_SAVED: usize = 384;
const RESERVE: usize = 256;
/// Below this level, which is for times without time, nothing is coded twice.
const LEAST_LEVEL: i32 = 3;

/// The last [`TAIL`] bytes of a text.
#[derive(Debug, Default)]
struct Tail(BytesMut);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        // Moved along once in a while, not with every piece.
        if self.0.len() + bytes.len() > 2 * TAIL {
            let gone = (self.0.len() + bytes.len() - TAIL).min(self.0.len());
            self.0 = BytesMut::from(&self.0[gone..]);
        }
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
    }

    fn bytes(&self) -> &[u8] {
        let bytes = &self.0[self.0.len().saturating_sub(TAIL)..];
        // zstd would take it for a trained dictionary.
        if bytes.starts_with(&DICTIONARY) { &bytes[1..] } else { bytes }
    }
}

/// Frames of a text at most, of which a reader sets up each anew: encoders here make two.
const MOST_FRAMES: u8 = 16;

/// Codes a text that is still coming against a base that its reader has.
pub struct DeltaEncoder {
    /// The frame under way.
    frame: CCtx<'static>,
    /// What the text takes by itself; none once it goes by itself.
    alone: Option<Encoder>,
    /// Bytes that it has taken so far, and would have taken by itself while that was known, with the base's name.
    taken: usize,
    by_itself: usize,
    /// The most that was saved so far.
    most_saved: usize,
    tail: Tail,
    level: i32,
    /// Something of the frame under way has come out.
    is_open: bool,
}

impl std::fmt::Debug for DeltaEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeltaEncoder").field("taken", &self.taken).field("saved", &self.saved()).finish()
    }
}

impl DeltaEncoder {
    /// An encoder against `base` at `level`, and what `beginning` becomes, the first bytes of the text; `name` bytes are what it takes
    /// to say which base it is. `None` where that does not save enough to go on with it.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`]: it cannot be a base, or there is no memory.
    pub fn begin(
        base: &[u8],
        beginning: &[u8],
        level: i32,
        name: usize,
    ) -> Result<Option<(Self, Bytes)>, SqueezeError> {
        if !can_be_base(base) {
            return Err(SqueezeError::Codec(NAME));
        }
        if level < LEAST_LEVEL {
            return Ok(None);
        }
        let frame = frame(base, level.clamp(LEAST_DELTA_LEVEL, 19), delta_window_log(base.len()))?;
        let alone = Some(Encoder::new(level, None)?);
        let mut encoder = DeltaEncoder {
            frame,
            alone,
            taken: name,
            by_itself: 0,
            most_saved: 0,
            tail: Tail::default(),
            level,
            is_open: false,
        };
        let coded = encoder.chunk(beginning)?;
        let pays = encoder.alone.is_some() && encoder.saved() >= LEAST_SAVED;
        Ok(pays.then_some((encoder, coded)))
    }

    /// Codes `chunk` so that the result decodes to all that was put in so far.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`].
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<Bytes, SqueezeError> {
        if chunk.is_empty() {
            return Ok(Bytes::new());
        }
        self.open()?;
        let coded = run(&mut self.frame, chunk, ZSTD_EndDirective::ZSTD_e_flush)?;
        self.is_open = true;
        let Some(alone) = &mut self.alone else { return Ok(coded) };
        self.tail.push(chunk);
        self.by_itself += alone.chunk(chunk)?.len();
        self.taken += coded.len();
        self.most_saved = self.most_saved.max(self.saved());
        // Half of what was saved stays for what the rest may take more than by itself.
        if self.by_itself >= self.taken + RESERVE.max(self.most_saved / 2) {
            return Ok(coded);
        }
        let end = run(&mut self.frame, &[], ZSTD_EndDirective::ZSTD_e_end)?;
        self.taken += end.len();
        (self.alone, self.is_open) = (None, false);
        Ok([coded, end].concat().into())
    }

    /// Codes the last bytes, which may be none, and ends the text; with how many bytes fewer than by itself it has taken, as far as
    /// it went against the base.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`].
    pub fn finish(mut self, rest: &[u8]) -> Result<(Bytes, usize), SqueezeError> {
        if rest.is_empty() && !self.is_open {
            return Ok((Bytes::new(), self.saved()));
        }
        self.open()?;
        let coded = run(&mut self.frame, rest, ZSTD_EndDirective::ZSTD_e_end)?;
        if let Some(alone) = self.alone.take() {
            self.taken += coded.len();
            self.by_itself += alone.finish(rest)?.len();
        }
        Ok((coded, self.saved()))
    }

    /// Whether the rest goes by itself, and nothing remembers the base any more.
    pub fn is_alone(&self) -> bool {
        // Until the next frame has begun, the one before it has its memory.
        self.alone.is_none() && self.is_open
    }

    fn saved(&self) -> usize {
        self.by_itself.saturating_sub(self.taken)
    }

    /// Begins the frame in which the text goes on by itself, if it is time for that.
    fn open(&mut self) -> Result<(), SqueezeError> {
        if self.alone.is_none() && !self.is_open {
            self.frame = frame(self.tail.bytes(), self.level.clamp(1, 19), UNKNOWN_WINDOW_LOG)?;
            self.tail = Tail::default();
        }
        Ok(())
    }
}

/// A frame that refers to these bytes, and has a checksum: the result is held.
fn frame(dictionary: &[u8], level: i32, window_log: u32) -> Result<CCtx<'static>, SqueezeError> {
    let further = [
        // The hint sizes the tables; without it zstd takes them as small as what the frame refers to, whatever follows.
        CParameter::SrcSizeHint(1 << window_log),
        CParameter::ChecksumFlag(true),
    ];
    let mut context = context(level, window_log, &further)?;
    context.load_dictionary(dictionary).map_err(|_| SqueezeError::Codec(NAME))?;
    Ok(context)
}

/// Frames one after the other, of which the first refers to a base and each that follows to the end of what came before it.
pub(crate) struct Chain {
    frame: Zstd,
    frames: u8,
    tail: Tail,
}

impl Chain {
    /// Refuses frames with a window beyond 2^`window_log` bytes.
    pub(crate) fn new(base: &[u8], window_log: u32) -> Result<Self, SqueezeError> {
        Ok(Chain { frame: Zstd::against(base, window_log)?, frames: 1, tail: Tail::default() })
    }
}

impl Stage for Chain {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stepped, SqueezeError> {
        if self.frame.is_complete() && !input.is_empty() {
            if self.frames == MOST_FRAMES {
                return Err(SqueezeError::invalid(NAME, "it has too many frames"));
            }
            self.frames += 1;
            self.frame = Zstd::against(self.tail.bytes(), UNKNOWN_WINDOW_LOG)?;
        }
        let stepped = self.frame.step(input, output)?;
        self.tail.push(&output[..stepped.written]);
        Ok(stepped)
    }

    fn is_complete(&self) -> bool {
        self.frame.is_complete()
    }
}

/// Bytes that a reader keeps besides of what came.
pub(crate) const TAIL_MEMORY: usize = 2 * TAIL;
