//! `dcb` and `dcz` (RFC 9842 §4, §5): Brotli and zstd with a dictionary that client and server have, which the stream
//! names first.

use crate::brotli_stage::Brotli;
use crate::hop::DICTIONARY;
use crate::stage::{SqueezeError, Stage, Stepped};
use crate::zstd_stage::Zstd;

/// RFC 9842 §5: windows are at most 8 MB, or 1.25 times the dictionary, which is at most 4 MB here.
const ZSTD_WINDOW_LOG: u32 = 23;

/// What a stream begins with, before the hash of its dictionary.
const BROTLI_MAGIC: &[u8] = &[0xff, 0x44, 0x43, 0x42];
const ZSTD_MAGIC: &[u8] = &[0x5e, 0x2a, 0x4d, 0x18, 0x20, 0x00, 0x00, 0x00];

/// A content coding with a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedCoding {
    /// `dcb`.
    Brotli,
    /// `dcz`.
    Zstd,
}

impl NamedCoding {
    /// The coding of this name.
    pub fn named(name: &str) -> Option<NamedCoding> {
        let is = |one: &str| name.trim().eq_ignore_ascii_case(one);
        if is("dcb") { Some(NamedCoding::Brotli) } else { is("dcz").then_some(NamedCoding::Zstd) }
    }

    fn name(self) -> &'static str {
        match self {
            NamedCoding::Brotli => "dcb",
            NamedCoding::Zstd => "dcz",
        }
    }
}

/// See the module.
pub(crate) struct NamedStage {
    coding: NamedCoding,
    /// What is still to come before the stream itself.
    head: Vec<u8>,
    inner: Box<dyn Stage>,
}

impl NamedStage {
    pub(crate) fn new(
        coding: NamedCoding,
        dictionary: &[u8],
        hash: &[u8; 32],
    ) -> Result<NamedStage, SqueezeError> {
        // zstd would not take it for plain content.
        if dictionary.is_empty() || dictionary.starts_with(&DICTIONARY) {
            return Err(SqueezeError::Codec(coding.name()));
        }
        let (magic, inner): (_, Box<dyn Stage>) = match coding {
            NamedCoding::Brotli => (BROTLI_MAGIC, Box::new(Brotli::against(dictionary))),
            NamedCoding::Zstd => (ZSTD_MAGIC, Box::new(Zstd::against(dictionary, ZSTD_WINDOW_LOG)?)),
        };
        // Taken from its end.
        let head = magic.iter().chain(hash).rev().copied().collect();
        Ok(NamedStage { coding, head, inner })
    }
}

impl Stage for NamedStage {
    fn name(&self) -> &'static str {
        self.coding.name()
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stepped, SqueezeError> {
        let mut read = 0;
        while let Some(expected) = self.head.last() {
            match input.get(read) {
                None => return Ok(Stepped { read, written: 0 }),
                Some(byte) if byte == expected => read += 1,
                Some(_) => return Err(SqueezeError::invalid(self.name(), "it names another dictionary")),
            }
            self.head.pop();
        }
        if read > 0 {
            return Ok(Stepped { read, written: 0 });
        }
        self.inner.step(input, output)
    }

    fn is_complete(&self) -> bool {
        self.head.is_empty() && self.inner.is_complete()
    }
}
