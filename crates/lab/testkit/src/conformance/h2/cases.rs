//! The cases of HTTP/2 as the corpus has them: frames by name, fields line by line.

use super::super::notation::{Detail, detail};
use super::super::text::{Block, Text, blocks};
use super::wire::{self, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS};

/// A case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) block: Block,
    /// Whether the client begins as RFC 9113 §3.4 says.
    pub(super) preface: bool,
    frames: Vec<Sent>,
    pub(super) wants: Vec<Want>,
}

/// A frame to send.
#[derive(Debug)]
struct Sent {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Text,
    fields: Vec<(Text, Text)>,
    /// Not a frame at all: bytes as they are.
    raw: bool,
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

    /// What the client sends behind its preface.
    pub(super) fn bytes(&self, authority: &str) -> Vec<u8> {
        self.frames.iter().flat_map(|sent| sent.bytes(authority)).collect()
    }
}

impl Sent {
    fn bytes(&self, authority: &str) -> Vec<u8> {
        let text = |text: &Text| text.bytes(authority, "b.example");
        if self.raw {
            return text(&self.payload);
        }
        let block = self.fields.iter().flat_map(|(name, value)| wire::field(&text(name), &text(value)));
        let payload: Vec<u8> = text(&self.payload).into_iter().chain(block).collect();
        wire::frame(self.kind, self.flags, self.stream, &payload)
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
    let mut case = Case { block, preface: true, frames: Vec::new(), wants: Vec::new() };
    for (mark, written) in case.block.lines.clone() {
        match mark {
            '>' if written == "no preface" => case.preface = false,
            '>' => case.frames.push(sent(written)),
            ':' => {
                let frame = case.frames.last_mut().unwrap_or_else(|| panic!("'{written}' is in no frame"));
                let (name, value) = written
                    .split_once(": ")
                    .or(written.strip_suffix(':').map(|name| (name, "")))
                    .unwrap_or_else(|| panic!("'{written}' is no field"));
                frame.fields.push((name.into(), value.into()));
            }
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

fn sent(written: &'static str) -> Sent {
    let mut words = written.splitn(3, ' ');
    let name = words.next().unwrap_or_default();
    let mut sent = Sent {
        kind: HEADERS,
        flags: END_HEADERS,
        stream: 0,
        payload: Text::default(),
        fields: Vec::new(),
        raw: false,
    };
    if name == "bytes" {
        sent.raw = true;
        sent.payload = written.split_once(' ').map_or("", |(_, bytes)| bytes).into();
        return sent;
    }
    let stream = words.next().and_then(|text| text.parse().ok());
    sent.stream = stream.unwrap_or_else(|| panic!("'{written}' names no stream"));
    let rest = words.next().unwrap_or_default();
    let pseudo = |fields: [(&str, &str); 4]| fields.map(|(name, value)| (name.into(), value.into())).to_vec();
    let request =
        |method| pseudo([(":method", method), (":scheme", "https"), (":authority", "{a}"), (":path", "/x")]);
    match name {
        "GET" => {
            sent.flags |= END_STREAM;
            sent.fields = request("GET");
        }
        "POST" => sent.fields = request("POST"),
        "HEADERS" => {}
        "DATA" => (sent.kind, sent.flags) = (DATA, 0),
        "CONTINUATION" => sent.kind = CONTINUATION,
        _ => panic!("'{name}' is no frame"),
    }
    for word in rest.split(' ').filter(|word| !word.is_empty()) {
        match word {
            "end" => sent.flags |= END_STREAM,
            "unfinished" => sent.flags &= !END_HEADERS,
            _ => sent.payload.push(&Text::from(word).bytes("", "")),
        }
    }
    sent
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
