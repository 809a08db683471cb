//! What all files of the corpus have in common: blocks of marked lines, and text with escapes and places to fill.

use std::fmt::Display;

/// A case as it is written.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    pub(super) rule: &'static str,
    /// Each with its mark.
    pub(super) lines: Vec<(char, &'static str)>,
}

/// The blocks of one file.
///
/// # Panics
/// The text is not in the notation.
pub(super) fn blocks(text: &'static str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut group = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            group = title;
        } else if let Some(indented) = line.strip_prefix("  ") {
            let block = blocks.last_mut().unwrap_or_else(|| panic!("'{line}' belongs to no case"));
            let (mark, written) = indented.split_at(1);
            block
                .lines
                .push((mark.chars().next().unwrap_or(' '), written.strip_prefix(' ').unwrap_or(written)));
        } else if !line.is_empty() {
            let named = line.strip_suffix(']').and_then(|line| line.split_once(" ["));
            let (name, rule) = named.unwrap_or_else(|| panic!("'{line}' names no rule"));
            blocks.push(Block { group, name, rule, lines: Vec::new() });
        }
    }
    blocks
}

/// How a side ends after its bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Not: it waits for what comes.
    #[default]
    Open,
    /// In peace, in its direction.
    Closed,
    /// With a reset.
    Reset,
}

/// Bytes with places for the origins' addresses, which are known only when a case is run.
#[derive(Debug, Default, Clone)]
pub(super) struct Text {
    parts: Vec<Part>,
    pub(super) end: End,
}

#[derive(Debug, Clone)]
enum Part {
    Bytes(Vec<u8>),
    Origin,
    Other,
}

impl Text {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The bytes, with the address of the case's origin and that of the one that nobody may be led to.
    pub(super) fn bytes(&self, origin: impl Display, other: impl Display) -> Vec<u8> {
        let part = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.clone(),
            Part::Origin => origin.to_string().into_bytes(),
            Part::Other => other.to_string().into_bytes(),
        };
        self.parts.iter().flat_map(part).collect()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(Part::Bytes(bytes.to_vec())),
        }
    }

    /// Adds written text, escapes and braces resolved; `true` when it ends in a line end left out.
    pub(super) fn add(&mut self, written: &str) -> bool {
        let mut rest = written.chars();
        while let Some(c) = rest.next() {
            match c {
                '\\' => match rest.next() {
                    None => return true,
                    Some(escaped) => self.push(&[escape(escaped, &mut rest)]),
                },
                '{' => {
                    let inside: String = rest.by_ref().take_while(|&c| c != '}').collect();
                    self.add_braced(&inside);
                }
                c => self.push(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        false
    }

    fn add_braced(&mut self, inside: &str) {
        match inside {
            "a" => self.parts.push(Part::Origin),
            "b" => self.parts.push(Part::Other),
            "GET" => drop(self.add(r"GET http://{a}/x HTTP/1.1\r\nHost: {a}")),
            "POST" => drop(self.add(r"POST http://{a}/x HTTP/1.1\r\nHost: {a}")),
            "end" => self.end = End::Closed,
            "reset" => self.end = End::Reset,
            _ => {
                let (count, repeated) = inside.split_once('*').unwrap_or_else(|| panic!("{{{inside}}}?"));
                let mut once = Text::default();
                once.add(repeated);
                let count = count.parse().unwrap_or_else(|_| panic!("{{{inside}}} has no count"));
                self.parts.extend(std::iter::repeat_n(once.parts, count).flatten());
            }
        }
    }
}

impl From<&str> for Text {
    fn from(written: &str) -> Text {
        let mut text = Text::default();
        text.add(written);
        text
    }
}

fn escape(escaped: char, rest: &mut std::str::Chars<'_>) -> u8 {
    match escaped {
        'r' => b'\r',
        'n' => b'\n',
        't' => b'\t',
        '0' => 0,
        '\\' => b'\\',
        'x' => {
            let digits: String = rest.take(2).collect();
            u8::from_str_radix(&digits, 16).unwrap_or_else(|_| panic!("\\x{digits} is no byte"))
        }
        other => panic!("\\{other} stands for nothing"),
    }
}
