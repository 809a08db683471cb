//! Undoes the codings of a body, in bounded pieces.

use crate::PIECE;
use crate::brotli_stage::Brotli;
use crate::deflate_stage::Deflate;
use crate::gzip_stage::Gzip;
use crate::named_stage::{NamedCoding, NamedStage};
use crate::stage::{SqueezeError, Stage, piece};
use crate::zstd_stage::Zstd;
use bytes::{Buf, Bytes, BytesMut};

/// RFC 9659 §3: zstd in HTTP needs no larger window than 8 MB.
const HTTP_ZSTD_WINDOW_LOG: u32 = 23;

/// Codings that are undone for one body; more than this is an attack, not a body.
const MAX_CHAIN: usize = 3;

/// A content coding (RFC 9110 §8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `gzip` or `x-gzip`.
    Gzip,
    /// `deflate`.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`.
    Zstd,
}

/// A `Content-Encoding` that is not undone here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("content coding '{0}' is not known here")]
pub struct UnknownCoding(pub String);

/// The codings in a `Content-Encoding` value, in the order they were applied; `identity` is left out.
///
/// # Errors
/// The first coding that is not known, or a chain of more than three.
pub fn parse_codings(value: &str) -> Result<Vec<Coding>, UnknownCoding> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    let codings: Vec<Coding> = names
        .filter(|name| !name.eq_ignore_ascii_case("identity"))
        .map(|name| match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Ok(Coding::Gzip),
            "deflate" => Ok(Coding::Deflate),
            "br" => Ok(Coding::Brotli),
            "zstd" => Ok(Coding::Zstd),
            _ => Err(UnknownCoding(name.to_owned())),
        })
        .collect::<Result<_, _>>()?;
    if codings.len() > MAX_CHAIN { Err(UnknownCoding(value.to_owned())) } else { Ok(codings) }
}

/// A streaming decoder.
///
/// [`feed`](Decoder::feed) a chunk, [`pull`](Decoder::pull) until it gives `None`, feed the next; after the last chunk
/// call [`end`](Decoder::end) and pull once more until `None`. Nothing is decoded before it is pulled, so whoever pulls
/// sets the pace.
pub struct Decoder {
    /// Outermost coding first.
    stages: Vec<Link>,
    output: Bytes,
    ended: bool,
    /// Some byte has come in: a body without any is empty, not truncated.
    began: bool,
    /// Bytes of the coded body that were used up, without those after its end.
    used: u64,
}

/// A coding and the input that waits for it.
struct Link {
    stage: Box<dyn Stage>,
    input: Bytes,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.stages.iter().map(|link| link.stage.name()).collect();
        f.debug_struct("Decoder").field("stages", &names).field("ended", &self.ended).finish()
    }
}

impl Decoder {
    /// Undoes `codings`, given in the order they were applied. Without any, bodies pass through.
    pub fn new(codings: &[Coding]) -> Self {
        let stage = |coding: &Coding| -> Box<dyn Stage> {
            match coding {
                Coding::Gzip => Box::new(Gzip::new()),
                Coding::Deflate => Box::new(Deflate::new()),
                Coding::Brotli => Box::new(Brotli::new()),
                Coding::Zstd => Box::new(Zstd::new(HTTP_ZSTD_WINDOW_LOG)),
            }
        };
        // RFC 9110 §8.4: listed in the order applied, so undone from the last.
        let stages =
            codings.iter().rev().map(|coding| Link { stage: stage(coding), input: Bytes::new() }).collect();
        Decoder { stages, output: Bytes::new(), ended: false, began: false, used: 0 }
    }

    /// Undoes a coding with this dictionary, whose SHA-256 hash the body has to name.
    ///
    /// # Errors
    /// [`SqueezeError::Codec`]: it cannot be a dictionary, or there is no memory.
    pub fn against(coding: NamedCoding, dictionary: &[u8], hash: &[u8; 32]) -> Result<Self, SqueezeError> {
        let stage = Box::new(NamedStage::new(coding, dictionary, hash)?);
        let stages = vec![Link { stage, input: Bytes::new() }];
        Ok(Decoder { stages, output: Bytes::new(), ended: false, began: false, used: 0 })
    }

    /// Gives the next chunk of the coded body. To be called when [`pull`](Decoder::pull) has given `None`; an earlier
    /// chunk that is still there is kept in front.
    pub fn feed(&mut self, chunk: Bytes) {
        self.began |= !chunk.is_empty();
        let slot = self.stages.first_mut().map_or(&mut self.output, |link| &mut link.input);
        if slot.is_empty() {
            *slot = chunk;
        } else {
            *slot = [&slot[..], &chunk[..]].concat().into();
        }
    }

    /// Bytes of the coded body that what was pulled so far took, and no more: what follows a coding's end is not counted.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Bytes over which the outermost coding refers back, once something was pulled; it holds as many at most. 0 where it
    /// does not say.
    pub fn window(&self) -> usize {
        self.stages.first().map_or(0, |link| link.stage.window())
    }

    /// No more chunks will come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The next piece of the decoded body, at most [`PIECE`] bytes and never empty. `None`: more input is needed, or,
    /// after [`end`](Decoder::end), the body is complete.
    ///
    /// # Errors
    /// [`SqueezeError::Invalid`], and [`SqueezeError::Truncated`] if the body ended too early in a coding of which browsers
    /// want all. Pieces before it were right as far as they went.
    pub fn pull(&mut self) -> Result<Option<Bytes>, SqueezeError> {
        if self.stages.is_empty() {
            let piece = self.output.split_to(self.output.len().min(PIECE));
            return Ok(Some(piece).filter(|piece| !piece.is_empty()));
        }
        match self.produce(self.stages.len() - 1)? {
            Some(piece) => Ok(Some(piece)),
            None if !self.ended || !self.began => Ok(None),
            None => {
                match self.stages.iter().find(|link| !link.stage.is_complete() && !link.stage.may_break_off())
                {
                    Some(link) => Err(SqueezeError::Truncated(link.stage.name())),
                    None => Ok(None),
                }
            }
        }
    }

    /// One piece out of the stage at `at`, drawing on the stages before it.
    fn produce(&mut self, at: usize) -> Result<Option<Bytes>, SqueezeError> {
        let mut output = BytesMut::zeroed(PIECE);
        loop {
            let link = &mut self.stages[at];
            let was_complete = link.stage.is_complete();
            let stepped = link.stage.step(&link.input, &mut output)?;
            link.input.advance(stepped.read);
            if at == 0 && !was_complete {
                self.used += stepped.read as u64;
            }
            if stepped.written > 0 {
                return Ok(Some(piece(output, stepped.written)));
            }
            if stepped.read > 0 && !link.input.is_empty() {
                continue;
            }
            let before = if at == 0 { None } else { self.produce(at - 1)? };
            let Some(more) = before else {
                // Whatever read something last may still have output in it, but only if it wrote nothing now.
                if stepped.read > 0 {
                    continue;
                }
                return Ok(None);
            };
            let link = &mut self.stages[at];
            link.input =
                if link.input.is_empty() { more } else { [&link.input[..], &more[..]].concat().into() };
        }
    }
}
