//! The notation of the corpus (`corpora/conformance/README.md` says it), made into cases. Nothing is sent here.

use std::net::SocketAddr;

/// What stands between two blank lines of the corpus.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    /// Where it is said what must happen.
    pub(super) rule: &'static str,
    /// What the client sends.
    pub(super) client: Text,
    /// What the origin answers; none leaves it to an honest one.
    pub(super) origin: Option<Text>,
    pub(super) wants: Vec<Want>,
}

impl Case {
    /// What it is called among all.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.group, self.name)
    }

    /// The method of its first request.
    pub(super) fn method(&self) -> String {
        let nowhere = SocketAddr::from(([0; 4], 0));
        let bytes = self.client.bytes(nowhere, nowhere);
        bytes.iter().take_while(|byte| byte.is_ascii_alphabetic()).map(|&byte| char::from(byte)).collect()
    }

    /// What must happen, in the corpus's words.
    pub(super) fn wanted(&self) -> String {
        let words = self.wants.iter().map(|want| {
            let details: String = want.details.iter().map(|detail| format!(" {}", detail.words)).collect();
            format!("{}{details}", want.words)
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

/// Something that must happen, after what is wanted before it.
#[derive(Debug)]
pub(super) struct Want {
    pub(super) act: Act,
    pub(super) details: Vec<Detail>,
    words: &'static str,
}

/// What happens to a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// This request comes to the origin, whole and with one reading, and its answer to the client.
    Forwarded { method: String, target: String },
    /// The same inside a tunnel that was opened for the client: byte for byte.
    Tunnelled { method: String, target: String },
    /// The proxy answers by itself and the connection can go on.
    Answered(u16),
    /// The proxy answers by itself and closes; nothing comes to any origin.
    Refused(u16),
    /// What came to the origin never ends as if it were whole; the proxy answers and closes.
    Broken(u16),
    /// The proxy closes without a word.
    Closed,
    /// An informational response is passed on.
    Informed(u16),
    /// The origin's response is passed on, whole.
    Passed(u16),
    /// The origin's response begins and is seen to be cut short, or the proxy answers instead.
    Cut(u16),
    /// The proxy answers instead of the origin, of which the client gets no byte.
    Failed(u16),
}

/// What more must be true of a message that was passed on.
#[derive(Debug)]
pub(super) struct Detail {
    pub(super) kind: DetailKind,
    words: &'static str,
}

/// See [`Detail`]; names of fields are in lower case.
#[derive(Debug)]
pub(super) enum DetailKind {
    With(String, Text),
    Without(String),
    Trailer(String, Text),
    Body(Text),
}

/// How a side ends after its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Not: it waits for what comes.
    Open,
    /// In peace, in its direction.
    Closed,
    /// With a reset.
    Reset,
}

/// Bytes with places for the origins' addresses, which are known only when a case is run.
#[derive(Debug, Clone)]
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
    fn new() -> Text {
        Text { parts: Vec::new(), end: End::Open }
    }

    /// The bytes, with the address of the case's origin and that of the one that nobody may be led to.
    pub(super) fn bytes(&self, origin: SocketAddr, other: SocketAddr) -> Vec<u8> {
        let part = |part: &Part| match part {
            Part::Bytes(bytes) => bytes.clone(),
            Part::Origin => origin.to_string().into_bytes(),
            Part::Other => other.to_string().into_bytes(),
        };
        self.parts.iter().flat_map(part).collect()
    }

    fn push(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(Part::Bytes(bytes.to_vec())),
        }
    }

    /// Adds written text, escapes and braces resolved; `true` when it ends in a line end left out.
    fn add(&mut self, written: &str) -> bool {
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
                let mut once = Text::new();
                once.add(repeated);
                let count = count.parse().unwrap_or_else(|_| panic!("{{{inside}}} has no count"));
                self.parts.extend(std::iter::repeat_n(once.parts, count).flatten());
            }
        }
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

/// The cases of one file of the corpus.
///
/// # Panics
/// The text is not in the notation.
pub(super) fn parse(text: &'static str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut group = "";
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            group = title;
        } else if let Some(indented) = line.strip_prefix("  ") {
            let case = cases.last_mut().unwrap_or_else(|| panic!("'{line}' belongs to no case"));
            add_line(case, indented);
        } else if !line.is_empty() {
            let named = line.strip_suffix(']').and_then(|line| line.split_once(" ["));
            let (name, rule) = named.unwrap_or_else(|| panic!("'{line}' names no rule"));
            let client = Text::new();
            cases.push(Case { group, name, rule, client, origin: None, wants: Vec::new() });
        }
    }
    for case in &mut cases {
        assert!(!case.wants.is_empty(), "'{}' wants nothing", case.name);
        if case.client.parts.is_empty() {
            case.client.add(r"{GET}\r\n\r\n");
        }
    }
    cases
}

fn add_line(case: &mut Case, line: &'static str) {
    let (mark, written) = line.split_at(1);
    let written = written.strip_prefix(' ').unwrap_or(written);
    let side = match mark {
        ">" => &mut case.client,
        "<" => case.origin.get_or_insert_with(Text::new),
        "=" => return case.wants.push(want(written)),
        "+" => {
            let want = case.wants.last_mut().unwrap_or_else(|| panic!("'{line}' is of nothing wanted"));
            return want.details.push(detail(written));
        }
        _ => panic!("'{line}' begins with no mark"),
    };
    let ends_open = side.add(written);
    if !ends_open && side.end == End::Open {
        side.push(b"\r\n");
    }
}

fn want(words: &'static str) -> Want {
    let mut parts = words.split(' ');
    let (verb, first, second) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let status =
        || first.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("'{words}': what status?"));
    let request = || match (first, second) {
        (Some(method), Some(target)) => (method.to_owned(), target.to_owned()),
        _ => panic!("'{words}': what request?"),
    };
    let act = match verb {
        "forwarded" => {
            let (method, target) = request();
            Act::Forwarded { method, target }
        }
        "tunnelled" => {
            let (method, target) = request();
            Act::Tunnelled { method, target }
        }
        "answered" => Act::Answered(status()),
        "refused" => Act::Refused(status()),
        "broken" => Act::Broken(status()),
        "closed" => Act::Closed,
        "informed" => Act::Informed(status()),
        "passed" => Act::Passed(status()),
        "cut" => Act::Cut(status()),
        "failed" => Act::Failed(status()),
        _ => panic!("'{words}' is nothing that happens"),
    };
    Want { act, details: Vec::new(), words }
}

fn detail(words: &'static str) -> Detail {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    let field = || {
        let (name, value) = rest.split_once(": ").unwrap_or_else(|| panic!("'{words}': what field?"));
        let mut text = Text::new();
        text.add(value);
        (name.to_ascii_lowercase(), text)
    };
    let kind = match verb {
        "with" => {
            let (name, value) = field();
            DetailKind::With(name, value)
        }
        "without" => DetailKind::Without(rest.to_ascii_lowercase()),
        "trailer" => {
            let (name, value) = field();
            DetailKind::Trailer(name, value)
        }
        "body" => {
            let mut text = Text::new();
            text.add(rest);
            DetailKind::Body(text)
        }
        _ => panic!("'{words}' is nothing that can be true of a message"),
    };
    Detail { kind, words }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r"# Samples

A fold [RFC 9112 §5.2]
  > {GET}
  > X: a\r
  > \x20{3*b}
  >
  > no end\
  < HTTP/1.1 200 OK{end}
  = forwarded GET /x
  + with x: {a}
  = closed
";

    #[test]
    fn text_becomes_the_bytes_that_it_stands_for() {
        let cases = parse(SAMPLE);
        let [a, b] = ["127.0.0.1:80", "127.0.0.2:80"].map(|text| text.parse().unwrap());
        let case = &cases[0];
        assert_eq!((case.group, case.name, case.rule), ("Samples", "A fold", "RFC 9112 §5.2"));
        let bytes = case.client.bytes(a, b);
        let wanted: &[u8] =
            b"GET http://127.0.0.1:80/x HTTP/1.1\r\nHost: 127.0.0.1:80\r\nX: a\r\r\n bbb\r\n\r\nno end";
        assert_eq!(String::from_utf8(bytes).unwrap(), String::from_utf8_lossy(wanted));
        let origin = case.origin.as_ref().unwrap();
        assert_eq!((origin.bytes(a, b).as_slice(), origin.end), (b"HTTP/1.1 200 OK".as_slice(), End::Closed));
        assert_eq!(case.wanted(), "forwarded GET /x with x: {a}; closed");
        assert_eq!(case.wants[1].act, Act::Closed);
    }
}
