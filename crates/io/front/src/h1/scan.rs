//! Finds the end of a head while its bytes arrive and refuses at the first byte that makes its lines
//! ambiguous. Pure: it neither parses fields nor reads a socket.

use super::Refusal;
use farhop_units::Bytes;
use std::ops::Range;

/// Bounds of what a head may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// All bytes of the head, its empty line included.
    pub head: Bytes,
    /// Bytes of the request target.
    pub target: Bytes,
    /// Field lines.
    pub fields: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits { head: Bytes(64 * 1024), target: Bytes(32 * 1024), fields: 256 }
    }
}

/// What is read: decides how the first line is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// A request head: empty lines before it are skipped.
    Request,
    /// A response head.
    Response,
    /// The trailers of a chunked body: an empty line at once ends them.
    Trailers,
}

/// Room in the first line for method, version and two spaces beside the target.
const REQUEST_LINE_REST: usize = 64;
/// RFC 9112 §2.2: at least one empty line before a request is to be ignored.
const LEADING_EMPTY_LINES: usize = 4;

/// Goes over the bytes of one head once, however they are split.
///
/// Call [`HeadScanner::scan`] with the buffer that starts at the head whenever it has grown.
#[derive(Debug)]
pub struct HeadScanner {
    section: Section,
    position: usize,
    start: usize,
    line_start: usize,
    lines: usize,
    after_cr: bool,
}

impl HeadScanner {
    /// A scanner for the head that the next byte begins.
    pub fn new(section: Section) -> Self {
        HeadScanner { section, position: 0, start: 0, line_start: 0, lines: 0, after_cr: false }
    }

    /// Whether a byte other than leading empty lines has been seen.
    pub fn begun(&self) -> bool {
        self.position > self.start
    }

    /// Where the head lies in `buffer` (its final empty line included), or `None` when more bytes are needed.
    ///
    /// # Errors
    /// The bytes so far cannot become an unambiguous head, or exceed `limits`.
    pub fn scan(&mut self, buffer: &[u8], limits: &HeadLimits) -> Result<Option<Range<usize>>, Refusal> {
        while let Some(&byte) = buffer.get(self.position) {
            let line_length = self.position - self.line_start - usize::from(self.after_cr);
            self.position += 1;
            match (self.after_cr, byte) {
                (true, b'\n') => {
                    self.after_cr = false;
                    if self.end_line(line_length, limits)? {
                        return Ok(Some(self.start..self.position));
                    }
                }
                (true, _) => return Err(Refusal::BareCr),
                (false, b'\r') => self.after_cr = true,
                // RFC 9112 §2.2 lets a recipient take a single LF as a line end. Two that disagree on it
                // can be set against each other, so this one does not.
                (false, b'\n') => return Err(Refusal::BareLf),
                (false, _) => self.line_byte(byte, line_length, limits)?,
            }
            if (self.position - self.start) as u64 > limits.head.0 {
                return Err(Refusal::HeadTooLarge);
            }
        }
        Ok(None)
    }

    /// Takes the end of a line; `true` when it ends the head.
    fn end_line(&mut self, line_length: usize, limits: &HeadLimits) -> Result<bool, Refusal> {
        self.line_start = self.position;
        if line_length > 0 {
            self.lines += 1;
            let first_line = usize::from(self.section != Section::Trailers);
            if self.lines > limits.fields + first_line {
                return Err(Refusal::TooManyFields);
            }
            return Ok(false);
        }
        if self.section == Section::Request && self.lines == 0 {
            if self.position > 2 * LEADING_EMPTY_LINES {
                return Err(Refusal::RequestLine);
            }
            self.start = self.position;
            return Ok(false);
        }
        Ok(true)
    }

    /// Takes a byte that is part of a line.
    fn line_byte(&self, byte: u8, line_length: usize, limits: &HeadLimits) -> Result<(), Refusal> {
        if byte == 0x7f || (byte < 0x20 && byte != b'\t') {
            return Err(Refusal::ControlByte);
        }
        let first_line = self.lines == 0 && self.section != Section::Trailers;
        if line_length == 0 && (byte == b' ' || byte == b'\t') {
            // RFC 9112 §5.2: a server refuses obs-fold; §2.2: also whitespace before the first field.
            return Err(if first_line { Refusal::RequestLine } else { Refusal::ObsFold });
        }
        let longest = limits.target.0.saturating_add(REQUEST_LINE_REST as u64);
        if first_line && self.section == Section::Request && line_length as u64 >= longest {
            return Err(Refusal::TargetTooLong);
        }
        Ok(())
    }
}
