//! Frames as the corpus has them: by name, with fields line by line.

use super::super::text::Text;
use super::wire::{self, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS};

/// What one side sends.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<Sent>);

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

impl Script {
    /// Adds a frame.
    ///
    /// # Panics
    /// It is not in the notation.
    pub(super) fn frame(&mut self, written: &'static str) {
        self.0.push(sent(written));
    }

    /// Adds a field to the last frame.
    ///
    /// # Panics
    /// It is none, or there is no frame.
    pub(super) fn field(&mut self, written: &'static str) {
        let frame = self.0.last_mut().unwrap_or_else(|| panic!("'{written}' is in no frame"));
        let (name, value) = written
            .split_once(": ")
            .or(written.strip_suffix(':').map(|name| (name, "")))
            .unwrap_or_else(|| panic!("'{written}' is no field"));
        frame.fields.push((name.into(), value.into()));
    }

    /// All of it, for the origin `authority`, what is of stream 1 as of stream `first`.
    pub(super) fn bytes(&self, authority: &str, first: u32) -> Vec<u8> {
        self.0.iter().flat_map(|sent| sent.bytes(authority, first)).collect()
    }
}

impl Sent {
    fn bytes(&self, authority: &str, first: u32) -> Vec<u8> {
        let text = |text: &Text| text.bytes(authority, "b.example");
        if self.raw {
            return text(&self.payload);
        }
        let block = self.fields.iter().flat_map(|(name, value)| wire::field(&text(name), &text(value)));
        let payload: Vec<u8> = text(&self.payload).into_iter().chain(block).collect();
        // Of the whole connection stay those that are.
        let stream = if self.stream == 0 { 0 } else { self.stream + first - 1 };
        wire::frame(self.kind, self.flags, stream, &payload)
    }
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
        "RESPONSE" => sent.fields = vec![(":status".into(), "200".into())],
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
