//! One step of one coding: the shape that all decoders here share.

use crate::PIECE;
use bytes::{Bytes, BytesMut};

/// Why a body cannot be decoded or encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqueezeError {
    /// The bytes are not in this coding.
    #[error("the body is not valid {coding}: {detail}")]
    Invalid {
        /// Name of the coding.
        coding: &'static str,
        /// What the decoder says.
        detail: String,
    },
    /// The body ended in the middle.
    #[error("the body ends in the middle of its {0} stream")]
    Truncated(&'static str),
    /// More output than the caller allows.
    #[error("the body decodes to more than {0} bytes")]
    TooLarge(usize),
    /// The codec gave up, for want of memory.
    #[error("the {0} codec cannot go on")]
    Codec(&'static str),
}

impl SqueezeError {
    pub(crate) fn invalid(coding: &'static str, detail: impl ToString) -> Self {
        SqueezeError::Invalid { coding, detail: detail.to_string() }
    }
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stepped {
    /// Input bytes used up.
    pub(crate) read: usize,
    /// Output bytes written.
    pub(crate) written: usize,
}

/// A decoder of one coding. After its stream has ended it uses up and ignores whatever follows, as browsers do.
pub(crate) trait Stage: Send {
    fn name(&self) -> &'static str;

    /// Decodes from `input` into `output`. A step that neither reads nor writes needs more input.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stepped, SqueezeError>;

    /// Whether the stream is complete, so that the body may end here.
    fn is_complete(&self) -> bool;

    /// Whether browsers take a body that ends in the middle for what came of it.
    fn may_break_off(&self) -> bool {
        false
    }

    /// Bytes that its stream may refer back over, once it has said so.
    fn window(&self) -> usize {
        0
    }
}

/// The first `written` bytes of `output`. A small piece does not keep the memory of a large one for as long as it is held.
pub(crate) fn piece(mut output: BytesMut, written: usize) -> Bytes {
    if written < PIECE / 2 {
        return Bytes::copy_from_slice(&output[..written]);
    }
    output.truncate(written);
    output.freeze()
}
