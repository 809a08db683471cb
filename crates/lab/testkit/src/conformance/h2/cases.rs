//! The cases of HTTP/2 as the corpus has them: frames by name, fields line by line.

use super::super::notation::{Detail, detail};
use super::super::text::{Block, blocks};
use super::script::Script;

/// A case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) block: Block,
    /// Whether the client begins as RFC 9113 §3.4 says.
    pub(super) preface: bool,
    frames: Script,
    pub(super) wants: Vec<Want>,
}

/// Something that must happen.
#[derive(Debug)]
pub(super) struct Want {
    pub(super) stream: u32,
    pub(super) act: Act,
    pub(super) details: Vec<Detail>,
    words: &'static str,
}

/// What happens.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// The request is handed on, whole, and answered.
    Forwarded { method: String, target: String },
    /// The proxy answers by itself with this status.
    Answered(u16),
    /// The stream is reset with this error, the connection goes on.
    Reset(String),
    /// The connection is ended with this error.
    Ended(String),
}

impl Case {
    /// What it is called among all.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.block.group, self.block.name)
    }

    /// What must happen, in the corpus's words.
    pub(super) fn wanted(&self) -> String {
        let words = self.wants.iter().map(|want| {
            let details: String = want.details.iter().map(|detail| format!(" {}", detail.words)).collect();
            format!("{}{details}", want.words)
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// What may have been handed on before the connection ended: ordinary requests that were whole.
    pub(super) fn whole_requests(&self) -> usize {
        let is_whole = |(mark, written): &&(char, &str)| {
            *mark == '>' && written.starts_with("GET ") && !written.ends_with("unfinished")
        };
        self.block.lines.iter().filter(is_whole).count()
    }

    /// What the client sends behind its preface.
    pub(super) fn bytes(&self, authority: &str) -> Vec<u8> {
        self.frames.bytes(authority, 1)
    }
}

/// The cases of HTTP/2, in the order of the table.
///
/// # Panics
/// The corpus is not in its notation.
pub(super) fn cases() -> Vec<Case> {
    blocks(include_str!("../../../corpora/conformance/h2.txt")).into_iter().map(case).collect()
}

fn case(block: Block) -> Case {
    let mut case = Case { block, preface: true, frames: Script::default(), wants: Vec::new() };
    for (mark, written) in case.block.lines.clone() {
        match mark {
            '>' if written == "no preface" => case.preface = false,
            '>' => case.frames.frame(written),
            ':' => case.frames.field(written),
            '=' => case.wants.push(want(written)),
            '+' => {
                let want =
                    case.wants.last_mut().unwrap_or_else(|| panic!("'{written}' is of nothing wanted"));
                want.details.push(detail(written));
            }
            _ => panic!("'{mark}' is no mark"),
        }
    }
    assert!(!case.wants.is_empty(), "'{}' wants nothing", case.block.name);
    case
}

fn want(words: &'static str) -> Want {
    let mut parts: Vec<&str> = words.split(' ').collect();
    let stream = parts[0].parse().ok();
    if stream.is_some() {
        parts.remove(0);
    }
    let act = match parts.as_slice() {
        ["forwarded", method, target] => {
            Act::Forwarded { method: (*method).to_owned(), target: (*target).to_owned() }
        }
        ["answered", status] => {
            Act::Answered(status.parse().unwrap_or_else(|_| panic!("'{words}': what status?")))
        }
        ["reset", error] => Act::Reset((*error).to_owned()),
        ["ended", error] => Act::Ended((*error).to_owned()),
        _ => panic!("'{words}' is nothing that happens"),
    };
    Want { stream: stream.unwrap_or(1), act, details: Vec::new(), words }
}
