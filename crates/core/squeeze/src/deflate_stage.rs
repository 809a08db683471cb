//! `deflate`: zlib (RFC 1950) as the standard says, or raw deflate (RFC 1951) as some servers send.

use crate::stage::{SqueezeError, Stage, Stepped};
use flate2::{Decompress, FlushDecompress, Status};

const NAME: &str = "deflate";

pub(crate) struct Deflate {
    /// The first byte, until the second tells which format it is.
    first: Option<u8>,
    inflate: Option<Decompress>,
    /// The held first byte was given to the decompressor.
    first_is_given: bool,
    complete: bool,
}

impl Deflate {
    pub(crate) fn new() -> Self {
        Deflate { first: None, inflate: None, first_is_given: false, complete: false }
    }
}

/// RFC 1950 §2.2: method 8, and a multiple of 31 over both bytes.
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && (u16::from(first) * 256 + u16::from(second)) % 31 == 0
}

fn inflate(
    inflate: &mut Decompress,
    input: &[u8],
    output: &mut [u8],
) -> Result<(Stepped, bool), SqueezeError> {
    let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
    let status = inflate
        .decompress(input, output, FlushDecompress::None)
        .map_err(|error| SqueezeError::invalid(NAME, error))?;
    let read = (inflate.total_in() - before_in) as usize;
    let written = (inflate.total_out() - before_out) as usize;
    Ok((Stepped { read, written }, status == Status::StreamEnd))
}

impl Stage for Deflate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stepped, SqueezeError> {
        if self.complete {
            return Ok(Stepped { read: input.len(), written: 0 });
        }
        let mut skipped = 0;
        if self.first.is_none() {
            self.first = input.first().copied();
            skipped = input.len().min(1);
        }
        let rest = &input[skipped..];
        let Some(first) = self.first else { return Ok(Stepped { read: 0, written: 0 }) };
        let Some(decompress) = (match (&mut self.inflate, rest.first()) {
            (Some(known), _) => Some(known),
            (unknown, Some(second)) => Some(unknown.insert(Decompress::new(is_zlib(first, *second)))),
            (None, None) => None,
        }) else {
            return Ok(Stepped { read: skipped, written: 0 });
        };
        let mut written = 0;
        if !self.first_is_given {
            let (stepped, ended) = inflate(decompress, &[first], output)?;
            self.first_is_given = stepped.read == 1;
            self.complete = ended;
            written = stepped.written;
        }
        let (stepped, ended) = inflate(decompress, rest, &mut output[written..])?;
        self.complete |= ended;
        Ok(Stepped { read: skipped + stepped.read, written: written + stepped.written })
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn may_break_off(&self) -> bool {
        true
    }
}
