//! Cuts JavaScript into tokens, in pieces of any size: enough to tell code from comments, strings, templates and
//! regular expressions (ECMA-262, §12). Whether a `/` divides or begins a regular expression is told from the token
//! before it; after `)` from what stood before its `(`, after `}` from whether its `{` began a block or an object.
//! That errs where only a full parser could tell (a division after a function expression's body): such a line is
//! read wrongly up to its end at most.

mod text;

use super::unescape::unescape;
use std::borrow::Cow;

/// A string, word or regular expression longer than this many bytes has no meaning here.
const MAX_TOKEN: usize = 2048;
/// Brackets open within each other; deeper code is not read.
const MAX_DEPTH: usize = 4096;

/// One token; what is of no interest is `Value` or `Mark`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    /// A string or a template without substitutions, escapes undone.
    Text(Cow<'a, str>),
    /// A number, a regular expression, a template with substitutions or a string too long.
    Value,
    /// Punctuation, one byte at a time.
    Mark(u8),
}

/// What an open bracket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// `(`; true after `if`, `for`, `while` and `with`: a statement follows its `)`.
    Round(bool),
    Square,
    Block,
    Object,
    /// `${`
    Substitution,
}

impl Bracket {
    fn is_brace(self) -> bool {
        matches!(self, Bracket::Block | Bracket::Object | Bracket::Substitution)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    BlockComment,
    /// Inside a string that is too long.
    Long(u8),
    /// Inside a template that is more than a little text.
    Template,
}

/// The token before, as far as it matters for `/` and `{`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The end of an operand: `/` divides.
    Operand,
    /// An operator or the like: an operand follows, `{` begins an object.
    Operator,
    /// A statement follows: `{` begins a block.
    Statement,
    /// `if`, `for`, `while`, `with`.
    Head,
}

/// See the module. Give text with [`feed`](Lexer::feed), then take tokens until there is none.
#[derive(Debug)]
pub(crate) struct Lexer {
    buffer: String,
    at: usize,
    /// The byte before the buffer.
    passed: u8,
    state: State,
    before: Before,
    open: Vec<Bracket>,
    /// Braces among them.
    braces: usize,
    ended: bool,
    lost: bool,
}

enum Step {
    Again,
    Wait,
    Word(usize, usize),
    Text(usize, usize),
    Value,
    Mark(u8),
}

impl Lexer {
    pub(crate) fn new() -> Self {
        Lexer {
            buffer: String::new(),
            at: 0,
            passed: 0,
            state: State::Code,
            before: Before::Statement,
            open: Vec::new(),
            braces: 0,
            ended: false,
            lost: false,
        }
    }

    /// The next piece of the script.
    pub(crate) fn feed(&mut self, text: &str) {
        if let Some(last) = self.at.checked_sub(1) {
            self.passed = self.buffer.as_bytes()[last];
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        if !self.lost {
            self.buffer.push_str(text);
        }
    }

    /// No more text comes.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the next token stands in braces: a block, a function, an object, a substitution.
    pub(crate) fn is_nested(&self) -> bool {
        self.braces > 0
    }

    /// The next token, or `None` until more is fed.
    pub(crate) fn next(&mut self) -> Option<Token<'_>> {
        loop {
            let step = match self.state {
                State::Code => self.code(),
                State::LineComment => self.skip_line(),
                State::BlockComment => self.skip_comment(),
                State::Long(quote) => self.skip_string(quote),
                State::Template => self.template(),
            };
            return Some(match step {
                Step::Again => continue,
                Step::Wait => return None,
                Step::Word(start, end) => Token::Word(&self.buffer[start..end]),
                Step::Text(start, end) => Token::Text(unescape(&self.buffer[start..end])),
                Step::Value => Token::Value,
                Step::Mark(byte) => Token::Mark(byte),
            });
        }
    }

    fn code(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        let mut at = self.at;
        while bytes.get(at).is_some_and(|byte| CLASS[usize::from(*byte)] == SPACE) {
            at += 1;
        }
        self.at = at;
        let Some(&byte) = bytes.get(at) else { return Step::Wait };
        match CLASS[usize::from(byte)] {
            WORD => self.word(),
            DIGIT => self.number(),
            _ => match byte {
                b'"' | b'\'' => self.string(byte),
                b'`' => {
                    self.at += 1;
                    self.whole_template()
                }
                b'/' => self.slash(),
                _ => self.mark(byte),
            },
        }
    }

    fn word(&mut self) -> Step {
        let bytes = self.buffer.as_bytes();
        let start = self.at;
        let rest = &bytes[start..];
        let length = rest.iter().position(|byte| CLASS[usize::from(*byte)] < WORD).unwrap_or(rest.len());
        if length == rest.len() && length <= MAX_TOKEN && !self.ended {
            return Step::Wait;
        }
        self.at = start + length;
        self.before = match &bytes[start..self.at] {
            b"if" | b"for" | b"while" | b"with" => Before::Head,
            b"else" | b"do" | b"try" | b"finally" => Before::Statement,
            b"return" | b"typeof" | b"case" | b"in" | b"instanceof" | b"new" | b"void" | b"delete"
            | b"throw" | b"yield" | b"await" | b"of" | b"default" | b"extends" => Before::Operator,
            _ => Before::Operand,
        };
        Step::Word(start, self.at)
    }

    fn number(&mut self) -> Step {
        let rest = &self.buffer.as_bytes()[self.at..];
        let length = rest
            .iter()
            .position(|byte| CLASS[usize::from(*byte)] < WORD && *byte != b'.')
            .unwrap_or(rest.len());
        if length == rest.len() && length <= MAX_TOKEN && !self.ended {
            return Step::Wait;
        }
        self.at += length;
        self.before = Before::Operand;
        Step::Value
    }

    /// The byte before the mark that was just taken, however the text was cut.
    fn byte_before(&self) -> u8 {
        self.at.checked_sub(2).map_or(self.passed, |before| self.buffer.as_bytes()[before])
    }

    fn mark(&mut self, byte: u8) -> Step {
        self.at += 1;
        let before = self.before;
        self.before = match byte {
            b'(' => {
                self.push(Bracket::Round(before == Before::Head));
                Before::Operator
            }
            b'[' => {
                self.push(Bracket::Square);
                Before::Operator
            }
            b'{' => {
                let object = before == Before::Operator;
                self.push(if object { Bracket::Object } else { Bracket::Block });
                Before::Statement
            }
            b')' => match self.pop() {
                Some(Bracket::Round(true)) => Before::Statement,
                _ => Before::Operand,
            },
            b']' => {
                self.pop();
                Before::Operand
            }
            b'}' => match self.pop() {
                Some(Bracket::Substitution) => {
                    self.state = State::Template;
                    Before::Operator
                }
                Some(Bracket::Object) => Before::Operand,
                _ => Before::Statement,
            },
            b';' => Before::Statement,
            // `=>`: a block may follow, or an operand.
            b'>' if self.byte_before() == b'=' => Before::Statement,
            // `x++ / y`: as `/` after `++x` divides as well, both are.
            b'+' | b'-' if before == Before::Operator && self.byte_before() == byte => Before::Operand,
            // `.5`, `...`, `#private`, `@decorator` and everything that is no ASCII leave an operand to come.
            _ => Before::Operator,
        };
        Step::Mark(byte)
    }

    fn push(&mut self, bracket: Bracket) {
        if self.open.len() >= MAX_DEPTH {
            // No one writes that: read no further.
            self.lost = true;
            self.at = self.buffer.len();
            return;
        }
        self.open.push(bracket);
        self.braces += usize::from(bracket.is_brace());
    }

    fn pop(&mut self) -> Option<Bracket> {
        let bracket = self.open.pop()?;
        self.braces -= usize::from(bracket.is_brace());
        Some(bracket)
    }
}

const SPACE: u8 = 0;
const PUNCTUATION: u8 = 1;
const WORD: u8 = 2;
const DIGIT: u8 = 3;

/// What a byte can begin; [`WORD`] and above go on a word.
static CLASS: [u8; 256] = {
    let mut class = [PUNCTUATION; 256];
    let mut byte = 0;
    while byte < 256 {
        class[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => SPACE,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80..=0xFF => WORD,
            b'0'..=b'9' => DIGIT,
            _ => PUNCTUATION,
        };
        byte += 1;
    }
    class
};
