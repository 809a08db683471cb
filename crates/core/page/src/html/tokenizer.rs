//! Cuts HTML into tags and text, in pieces of any size (HTML, §13.2.5 "Tokenization"). What an element means for the
//! text that follows (raw text, foreign content) its caller says between two tokens.

use super::find;
use super::tag::{Pair, Tag};
use crate::markup::attributes::Attributes;
use std::borrow::Cow;

/// A named character reference is no longer than this.
const LONGEST_ENTITY: usize = 40;

/// The elements whose content is text up to their end tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Script {
    Plain,
    /// After `<!--`.
    Escaped,
    /// After `<!--` and `<script`: the next `</script` does not end the element.
    Double,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Data,
    Tag,
    /// Name of the raw text element that is open.
    Raw(&'static str, Script),
    /// `fresh` until bytes of its beginning were let go.
    Comment {
        fresh: bool,
    },
    /// `<!doctype`, `<?` and what else ends with the next `>`.
    Bogus,
    CData,
}

/// What a document is made of.
#[derive(Debug)]
pub(crate) enum Token<'a> {
    Start(StartTag<'a>),
    /// An end tag: its lower-case name and where its `<` stands.
    End(&'a str, u64),
    /// A piece of text, character references as written and none cut.
    Text(&'a str),
    /// A piece of raw text or of a CDATA section.
    Raw(&'a str),
}

/// A start tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTag<'a> {
    /// Lower case.
    pub(crate) name: &'a str,
    /// Where its `<` stands in the text of the document, in bytes.
    pub(crate) offset: u64,
    pub(crate) self_closing: bool,
    text: &'a str,
    /// Values that have character references, decoded.
    decoded: &'a str,
    pairs: &'a [Pair],
}

impl<'a> StartTag<'a> {
    /// Lower-case names and values with character references decoded; each name once.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let tag = *self;
        self.pairs.iter().map(move |pair| (&tag.text[pair.name.clone()], tag.value_of(pair)))
    }

    fn value_of(&self, pair: &Pair) -> &'a str {
        let text = if pair.decoded { self.decoded } else { self.text };
        &text[pair.value.clone()]
    }
}

impl Attributes for StartTag<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        let bytes = self.text.as_bytes();
        let named =
            |pair: &&Pair| pair.name.len() == name.len() && bytes[pair.name.clone()] == *name.as_bytes();
        self.pairs.iter().find(named).map(|pair| self.value_of(pair))
    }
}

enum Step {
    Again,
    Wait,
    Text(usize),
    Raw(usize),
    Tag(usize),
}

/// See the module. Give text with [`feed`](Tokenizer::feed), then take tokens until there is none.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    buffer: String,
    /// Place of the buffer's first byte in the document.
    base: u64,
    /// First byte that belongs to no token yet.
    start: usize,
    /// Where the search for the end of the current piece goes on.
    at: usize,
    state: State,
    tag: Tag,
    tag_offset: u64,
    /// See [`StartTag`].
    decoded: String,
    /// Whether CDATA sections exist where the next token starts.
    pub(crate) foreign: bool,
    ended: bool,
}

impl Tokenizer {
    pub(crate) fn new(max_attribute: usize) -> Self {
        Tokenizer {
            buffer: String::new(),
            base: 0,
            start: 0,
            at: 0,
            state: State::Data,
            tag: Tag::new(max_attribute),
            tag_offset: 0,
            decoded: String::new(),
            foreign: false,
            ended: false,
        }
    }

    /// The next piece of the document.
    pub(crate) fn feed(&mut self, text: &str) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.base += self.start as u64;
            self.at -= self.start;
            self.start = 0;
        }
        if self.state == State::Tag && self.tag.is_fat() {
            let cut = self.tag.shrink();
            self.base += cut.len() as u64;
            self.buffer.drain(cut);
        }
        self.buffer.push_str(text);
    }

    /// No more text comes; what is held back comes out as tokens. An incomplete tag is none.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// The start tag just taken makes what follows raw text up to the end tag of `name`.
    pub(crate) fn raw_text(&mut self, name: &'static str) {
        self.state = State::Raw(name, Script::Plain);
    }

    /// The next token, or `None` until more is fed.
    pub(crate) fn next(&mut self) -> Option<Token<'_>> {
        loop {
            let step = match self.state {
                State::Data => self.data(),
                State::Tag => {
                    self.tag.read(&self.buffer.as_bytes()[self.start..]).map_or(Step::Wait, Step::Tag)
                }
                State::Raw(name, script) => self.raw(name, script),
                State::Comment { fresh } => self.comment(fresh),
                State::Bogus => self.bogus(),
                State::CData => self.cdata(),
            };
            let start = self.start;
            match step {
                Step::Again => {}
                Step::Wait => return None,
                Step::Text(end) => {
                    self.start = end;
                    self.at = self.at.max(end);
                    return Some(Token::Text(&self.buffer[start..end]));
                }
                Step::Raw(end) => {
                    self.start = end;
                    self.at = self.at.max(end);
                    return Some(Token::Raw(&self.buffer[start..end]));
                }
                Step::Tag(length) => return Some(self.complete(start, length)),
            }
        }
    }

    fn complete(&mut self, start: usize, length: usize) -> Token<'_> {
        self.start = start + length;
        self.at = self.start;
        self.state = State::Data;
        let tag = &mut self.tag;
        self.decoded.clear();
        if (tag.capitals || !tag.pairs.is_empty())
            && let Some(text) = self.buffer.get_mut(start..start + length)
        {
            // All places lie between ASCII characters.
            if tag.capitals {
                text[tag.name.clone()].make_ascii_lowercase();
                tag.pairs.iter().for_each(|pair| text[pair.name.clone()].make_ascii_lowercase());
            }
            // Most tags have no character reference anywhere, and no NUL, which stands for nothing (HTML, §13.2.5.36).
            if !tag.pairs.is_empty() && memchr::memchr2(b'&', 0, text.as_bytes()).is_some() {
                for pair in &mut tag.pairs {
                    let said = &text[pair.value.clone()];
                    let said = match said.contains('\0') {
                        true => Cow::Owned(said.replace('\0', "\u{fffd}")),
                        false => Cow::Borrowed(said),
                    };
                    if let Cow::Owned(value) = htmlize::unescape_attribute(said) {
                        let from = self.decoded.len();
                        self.decoded.push_str(&value);
                        (pair.value, pair.decoded) = (from..self.decoded.len(), true);
                    }
                }
            }
        }
        let tag = &self.tag;
        let text = &self.buffer[start..start + length];
        let name = &text[tag.name.clone()];
        if tag.closing {
            return Token::End(name, self.tag_offset);
        }
        let (offset, self_closing) = (self.tag_offset, tag.self_closing);
        Token::Start(StartTag { name, offset, self_closing, text, decoded: &self.decoded, pairs: &tag.pairs })
    }

    fn data(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        // One tag right behind the other, or behind the text that was given last: nothing to search.
        let open = match bytes.get(self.at) {
            Some(b'<') => Some(self.at),
            _ => find(b'<', &bytes[self.at..]).map(|found| self.at + found),
        };
        let Some(open) = open else {
            self.at = bytes.len();
            return match self.end_of_text() {
                end if end > self.start => Step::Text(end),
                _ => Step::Wait,
            };
        };
        let rest = &bytes[open..];
        let next = match rest {
            [_, b'a'..=b'z' | b'A'..=b'Z', ..] => {
                self.tag.begin(1, false);
                State::Tag
            }
            [_, b'/', b'a'..=b'z' | b'A'..=b'Z', ..] => {
                self.tag.begin(2, true);
                State::Tag
            }
            [_, b'!', ..] if rest.starts_with(b"<!--") => State::Comment { fresh: true },
            [_, b'!', ..] if self.foreign && rest.starts_with(b"<![CDATA[") => State::CData,
            [_] | [_, b'/'] if !self.ended => return self.wait_at(open),
            [_, b'!', ..]
                if !self.ended
                    && (b"<!--".starts_with(rest) || (self.foreign && b"<![CDATA[".starts_with(rest))) =>
            {
                return self.wait_at(open);
            }
            [_, b'!' | b'?' | b'/', _, ..] | [_, b'!' | b'?'] => State::Bogus,
            _ => {
                // A `<` of the text.
                self.at = open + 1;
                return Step::Again;
            }
        };
        self.at = open;
        if open > self.start {
            // The tag comes next; the text before it first.
            return Step::Text(open);
        }
        self.tag_offset = self.base + open as u64;
        self.state = next;
        if next == State::CData {
            self.start = open + b"<![CDATA[".len();
            self.at = self.start;
        }
        Step::Again
    }

    /// Text before `open` can go, what starts there needs more bytes.
    fn wait_at(&mut self, open: usize) -> Step {
        self.at = open;
        if open > self.start { Step::Text(open) } else { Step::Wait }
    }

    /// Up to where text can be told without cutting a character reference.
    fn end_of_text(&self) -> usize {
        let bytes = self.buffer.as_bytes();
        let tail = bytes.len().saturating_sub(LONGEST_ENTITY).max(self.start);
        match memchr::memrchr(b'&', &bytes[tail..]) {
            Some(at) if !self.ended => {
                let reference = &bytes[tail + at + 1..];
                let open = reference.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
                if open { tail + at } else { bytes.len() }
            }
            _ => bytes.len(),
        }
    }

    fn raw(&mut self, name: &'static str, script: Script) -> Step {
        let bytes = self.buffer.as_bytes();
        let mut at = self.at;
        let mut script = script;
        let is_script = name == "script";
        loop {
            let found = match script {
                Script::Plain => memchr::memchr(b'<', &bytes[at..]),
                _ => memchr::memchr2(b'<', b'-', &bytes[at..]),
            };
            self.state = State::Raw(name, script);
            let Some(found) = found else {
                self.at = bytes.len();
                return if self.at > self.start { Step::Raw(self.at) } else { Step::Wait };
            };
            at += found;
            let rest = &bytes[at..];
            // Enough to tell `</script>`, `<!--`, `<script>` and `-->` from what only looks like them.
            if rest.len() < name.len() + 3 && !self.ended {
                self.at = at;
                return if at > self.start { Step::Raw(at) } else { Step::Wait };
            }
            if rest.starts_with(b"</") && names(&rest[2..], name) {
                if script != Script::Double {
                    self.state = State::Data;
                    self.at = at;
                    return if at > self.start { Step::Raw(at) } else { Step::Again };
                }
                script = Script::Escaped;
            } else if is_script && script == Script::Plain && rest.starts_with(b"<!--") {
                script = Script::Escaped;
                at += 1; // its dashes may be those of `-->`
            } else if script == Script::Escaped && rest[0] == b'<' && names(&rest[1..], name) {
                script = Script::Double;
            } else if script != Script::Plain && rest.starts_with(b"-->") {
                script = Script::Plain;
            }
            at += 1;
        }
    }

    fn comment(&mut self, fresh: bool) -> Step {
        let bytes = self.buffer.as_bytes();
        // In `<!-->` the dashes that open it close it, too; in `<!--!>` they do not.
        let (dashes, bang) = if fresh { (self.start + 2, self.start + 4) } else { (self.start, self.start) };
        let mut at = self.at.max(dashes);
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'>', rest)) {
            at += found;
            let ends = |mark: &[u8], from: usize| from + mark.len() <= at && bytes[..at].ends_with(mark);
            if ends(b"--", dashes) || ends(b"--!", bang) {
                self.start = at + 1;
                self.at = self.start;
                self.state = State::Data;
                return Step::Again;
            }
            at += 1;
        }
        self.at = bytes.len();
        let from = last_characters(&self.buffer, 3);
        if from > self.start + 8 {
            self.start = from;
            self.state = State::Comment { fresh: false };
        }
        Step::Wait
    }

    fn bogus(&mut self) -> Step {
        match memchr::memchr(b'>', &self.buffer.as_bytes()[self.start..]) {
            Some(found) => {
                self.start += found + 1;
                self.at = self.start;
                self.state = State::Data;
                Step::Again
            }
            None => {
                self.start = self.buffer.len();
                self.at = self.start;
                Step::Wait
            }
        }
    }

    fn cdata(&mut self) -> Step {
        match memchr::memmem::find(&self.buffer.as_bytes()[self.start..], b"]]>") {
            Some(0) => {
                self.start += 3;
                self.at = self.start;
                self.state = State::Data;
                Step::Again
            }
            Some(found) => Step::Raw(self.start + found),
            None if self.ended => Step::Wait,
            None => match last_characters(&self.buffer, 2) {
                end if end > self.start => Step::Raw(end),
                _ => Step::Wait,
            },
        }
    }
}

/// Whether the tag name `name` stands there in full.
fn names(bytes: &[u8], name: &str) -> bool {
    bytes.len() > name.len()
        && bytes[..name.len()].eq_ignore_ascii_case(name.as_bytes())
        && matches!(bytes[name.len()], b' ' | b'\n' | b'\t' | b'\r' | b'\x0c' | b'/' | b'>')
}

/// Where the last bytes start, `count` of them or a few more.
fn last_characters(text: &str, count: usize) -> usize {
    text.floor_char_boundary(text.len().saturating_sub(count))
}
