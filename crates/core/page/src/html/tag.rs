//! One tag, read byte by byte so that it can be cut anywhere: its name and where its attributes lie.
//! All places are relative to the tag's `<`.

use super::find;
use std::ops::Range;

/// Attributes read of one tag; more are dropped.
const MAX_ATTRIBUTES: usize = 128;
/// Bytes of a tag that are kept at most while it is not complete; attributes beyond it are dropped.
const MAX_TAG: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Name,
    BeforeAttribute,
    AttributeName,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
}

/// An attribute; a bare one has an empty value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
    /// The value stands elsewhere, with character references decoded.
    pub(super) decoded: bool,
}

/// A tag on its way.
#[derive(Debug)]
pub(super) struct Tag {
    state: State,
    /// Where reading goes on.
    at: usize,
    /// An end tag.
    pub(super) closing: bool,
    pub(super) self_closing: bool,
    /// There are capital letters among its names, perhaps.
    pub(super) capitals: bool,
    pub(super) name: Range<usize>,
    pub(super) pairs: Vec<Pair>,
    current: Pair,
    /// Bytes of the current attribute were let go: it is too long to be of use.
    lost: bool,
    /// Bytes of the attributes kept.
    kept: usize,
    max_attribute: usize,
}

impl Tag {
    pub(super) fn new(max_attribute: usize) -> Self {
        Tag {
            state: State::Name,
            at: 0,
            closing: false,
            self_closing: false,
            capitals: false,
            name: 0..0,
            pairs: Vec::new(),
            current: Pair::default(),
            lost: false,
            kept: 0,
            max_attribute,
        }
    }

    /// A tag begins, whose name starts at `name`.
    pub(super) fn begin(&mut self, name: usize, closing: bool) {
        self.state = State::Name;
        self.at = name;
        self.name = name..name;
        self.closing = closing;
        self.self_closing = false;
        self.capitals = false;
        self.pairs.clear();
        self.lost = false;
        self.kept = 0;
    }

    /// Reads on in `bytes`, which start with the tag's `<`. `Some(end)` when the tag is complete, just behind its `>`.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(&byte) = bytes.get(self.at) {
            let space = matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0c');
            match self.state {
                State::Name => {
                    if self.skip(bytes, ENDS_TAG_NAME) {
                        self.name.end = self.at;
                        self.state = State::BeforeAttribute;
                    }
                }
                State::BeforeAttribute => match byte {
                    b'>' => {
                        self.self_closing = self.at > 0 && bytes[self.at - 1] == b'/';
                        return Some(self.at + 1);
                    }
                    b'/' => self.at += 1,
                    _ if space => self.at += 1,
                    _ => {
                        // An `=` here is part of the name (HTML, "before attribute name state").
                        self.capitals |= byte.is_ascii_uppercase();
                        self.current = Pair { name: self.at..self.at, ..Pair::default() };
                        self.state = State::AttributeName;
                        self.at += 1;
                    }
                },
                State::AttributeName => {
                    if self.skip(bytes, ENDS_NAME) {
                        self.current.name.end = self.at;
                        self.state = State::AfterName;
                    }
                }
                State::AfterName => match byte {
                    b'=' => {
                        self.at += 1;
                        self.state = State::BeforeValue;
                    }
                    _ if space => self.at += 1,
                    _ => {
                        let end = self.current.name.end;
                        self.record(bytes, end..end);
                    }
                },
                State::BeforeValue => match byte {
                    b'"' | b'\'' => {
                        self.at += 1;
                        self.current.value.start = self.at;
                        self.state = State::Quoted(byte);
                    }
                    b'>' => self.record(bytes, self.at..self.at),
                    _ if space => self.at += 1,
                    _ => {
                        self.current.value.start = self.at;
                        self.state = State::Unquoted;
                    }
                },
                State::Quoted(quote) => match find(quote, &bytes[self.at..]) {
                    Some(length) => {
                        let end = self.at + length;
                        self.at = end + 1;
                        self.record(bytes, self.current.value.start..end);
                        // `a="b"/>`: the slash decides, not what stands in the quotes.
                        if bytes.get(self.at) == Some(&b'>') {
                            return Some(self.at + 1);
                        }
                    }
                    None => self.at = bytes.len(),
                },
                State::Unquoted => {
                    if self.skip(bytes, ENDS_VALUE) {
                        self.record(bytes, self.current.value.start..self.at);
                        // A slash before it belongs to the value.
                        if bytes[self.at] == b'>' {
                            return Some(self.at + 1);
                        }
                    }
                }
            }
        }
        None
    }

    /// Goes on to the next byte of this class, if it is there.
    fn skip(&mut self, bytes: &[u8], class: u8) -> bool {
        let mut passed = 0;
        for &byte in &bytes[self.at..] {
            let own = CLASSES[usize::from(byte)];
            if own & class != 0 {
                break;
            }
            passed |= own;
            self.at += 1;
        }
        self.capitals |= passed & CAPITAL != 0;
        self.at < bytes.len()
    }

    fn record(&mut self, bytes: &[u8], value: Range<usize>) {
        self.state = State::BeforeAttribute;
        self.current.value = value;
        let lost = std::mem::take(&mut self.lost);
        let length = self.current.name.len() + self.current.value.len();
        if lost
            || length > self.max_attribute
            || self.kept + length > MAX_TAG
            || self.pairs.len() >= MAX_ATTRIBUTES
        {
            return;
        }
        let name = &bytes[self.current.name.clone()];
        // HTML, "attribute name state": of several with one name the first counts.
        if self
            .pairs
            .iter()
            .any(|pair| pair.name.len() == name.len() && bytes[pair.name.clone()].eq_ignore_ascii_case(name))
        {
            return;
        }
        self.kept += length;
        self.pairs.push(self.current.clone());
    }

    /// Whether so many bytes of an incomplete tag are held that [`shrink`](Tag::shrink) should let some go.
    pub(super) fn is_fat(&self) -> bool {
        self.at > 2 * MAX_TAG
    }

    /// Lets go what will not be used; the bytes to remove. Called between two reads, when all bytes have been read.
    pub(super) fn shrink(&mut self) -> Range<usize> {
        if self.state == State::Name {
            // No element has such a name; the first letter is one byte.
            let cut = self.name.start + 1..self.at;
            self.at = cut.start;
            return cut;
        }
        let kept = self.pairs.last().map_or(self.name.end, |pair| pair.value.end.max(pair.name.end));
        let in_attribute = !matches!(self.state, State::BeforeAttribute);
        let start = if in_attribute { self.current.name.start } else { self.at };
        if in_attribute && self.at - start > self.max_attribute {
            self.lost = true;
            self.current = Pair { name: kept..kept, value: kept..kept, decoded: false };
            let cut = kept..self.at;
            self.at = kept;
            return cut;
        }
        let cut = kept..start;
        let by = cut.len();
        self.at -= by;
        if in_attribute {
            self.current.name = self.current.name.start - by..self.current.name.end.saturating_sub(by);
            self.current.value.start = self.current.value.start.saturating_sub(by);
        }
        cut
    }
}

/// What ends a tag's name, an attribute's name, and a value without quotes.
const ENDS_TAG_NAME: u8 = 1;
const ENDS_NAME: u8 = 2;
const ENDS_VALUE: u8 = 4;
const CAPITAL: u8 = 8;

/// Of which of these each byte is.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut letter = b'A';
    while letter <= b'Z' {
        classes[letter as usize] = CAPITAL;
        letter += 1;
    }
    let mut at = 0;
    let enders = b" \n\t\r\x0c>/=";
    while at < enders.len() {
        classes[enders[at] as usize] = match enders[at] {
            b'/' => ENDS_TAG_NAME | ENDS_NAME,
            b'=' => ENDS_NAME,
            _ => ENDS_TAG_NAME | ENDS_NAME | ENDS_VALUE,
        };
        at += 1;
    }
    classes
};
