//! gzip (RFC 1952) as browsers read it: the first member, whatever follows it, its checksum included.

use crate::stage::{SqueezeError, Stage, Stepped};
use flate2::{Decompress, FlushDecompress, Status};

const NAME: &str = "gzip";
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// RFC 1952 §2.3.1: flags of the parts of a header that have a length of their own.
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// Parts of a member, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Ten fixed bytes, of which so many have come.
    Fixed(usize),
    ExtraLength,
    Extra(usize),
    Name,
    Comment,
    HeaderCrc(usize),
    Data,
    /// What follows is ignored.
    Done,
}

pub(crate) struct Gzip {
    part: Part,
    flags: u8,
    /// Bytes of a length that came in pieces.
    held: [u8; 2],
    held_len: usize,
    inflate: Decompress,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Gzip { part: Part::Fixed(0), flags: 0, held: [0; 2], held_len: 0, inflate: Decompress::new(false) }
    }

    /// The part that follows `part` in this member's header.
    fn after(&self, part: Part) -> Part {
        let has = |flag: u8| self.flags & flag != 0;
        match part {
            Part::Fixed(_) if has(HAS_EXTRA) => Part::ExtraLength,
            Part::Fixed(_) | Part::Extra(_) if has(HAS_NAME) => Part::Name,
            Part::Fixed(_) | Part::Extra(_) | Part::Name if has(HAS_COMMENT) => Part::Comment,
            Part::HeaderCrc(_) => Part::Data,
            _ if has(HAS_CRC) => Part::HeaderCrc(2),
            _ => Part::Data,
        }
    }

    fn header_byte(&mut self, byte: u8) -> Result<(), SqueezeError> {
        self.part = match self.part {
            Part::Fixed(at) => {
                let fits = match at {
                    0 | 1 => byte == MAGIC[at],
                    2 => byte == 8,        // RFC 1952 §2.3.1: deflate is the only method
                    3 => byte & 0xe0 == 0, // reserved flags MUST be zero
                    _ => true,
                };
                if !fits {
                    return Err(SqueezeError::invalid(NAME, "no gzip header"));
                }
                if at == 3 {
                    self.flags = byte;
                }
                if at == 9 { self.after(Part::Fixed(at)) } else { Part::Fixed(at + 1) }
            }
            Part::ExtraLength => {
                self.held[self.held_len] = byte;
                self.held_len += 1;
                if self.held_len < 2 {
                    Part::ExtraLength
                } else {
                    self.held_len = 0;
                    match usize::from(u16::from_le_bytes([self.held[0], self.held[1]])) {
                        0 => self.after(Part::Extra(0)),
                        length => Part::Extra(length),
                    }
                }
            }
            Part::Extra(1) => self.after(Part::Extra(0)),
            Part::Extra(left) => Part::Extra(left - 1),
            Part::Name | Part::Comment if byte != 0 => self.part,
            Part::HeaderCrc(2) => Part::HeaderCrc(1),
            part => self.after(part),
        };
        if self.part == Part::Data {
            self.inflate.reset(false);
        }
        Ok(())
    }
}

impl Stage for Gzip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Stepped, SqueezeError> {
        let mut read = 0;
        while read < input.len() {
            match self.part {
                Part::Data => {
                    let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
                    let status = self
                        .inflate
                        .decompress(&input[read..], output, FlushDecompress::None)
                        .map_err(|error| SqueezeError::invalid(NAME, error))?;
                    read += (self.inflate.total_in() - before_in) as usize;
                    let written = (self.inflate.total_out() - before_out) as usize;
                    if status == Status::StreamEnd {
                        self.part = Part::Done;
                    }
                    if written > 0 || status != Status::StreamEnd {
                        return Ok(Stepped { read, written });
                    }
                }
                Part::Done => read = input.len(),
                _ => {
                    self.header_byte(input[read])?;
                    read += 1;
                }
            }
        }
        if self.part == Part::Data {
            // All input is used up, but the window may hold output that did not fit before.
            let before = self.inflate.total_out();
            self.inflate
                .decompress(&[], output, FlushDecompress::None)
                .map_err(|error| SqueezeError::invalid(NAME, error))?;
            let written = (self.inflate.total_out() - before) as usize;
            return Ok(Stepped { read, written });
        }
        Ok(Stepped { read, written: 0 })
    }

    fn is_complete(&self) -> bool {
        self.part == Part::Done
    }

    fn may_break_off(&self) -> bool {
        true
    }
}
