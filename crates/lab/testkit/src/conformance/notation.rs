//! The cases of HTTP/1.1 as the corpus has them (`corpora/conformance/README.md` says how). Nothing is sent here.

use super::text::{End, Text, blocks};

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
    /// Whether both sides send it byte by byte.
    pub(super) in_pieces: bool,
}

impl Case {
    /// What it is called among all.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.group, self.name)
    }

    /// The method of its first request.
    pub(super) fn method(&self) -> String {
        let bytes = self.client.bytes("", "");
        bytes.iter().take_while(|byte| byte.is_ascii_alphabetic()).map(|&byte| char::from(byte)).collect()
    }

    /// What must happen, in the corpus's words.
    pub(super) fn wanted(&self) -> String {
        self.wants.iter().map(Want::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// In the corpus's words.
impl std::fmt::Display for Want {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words)?;
        self.details.iter().try_for_each(|detail| write!(f, " {}", detail.words))
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
    pub(super) words: &'static str,
}

/// See [`Detail`]; names of fields are in lower case.
#[derive(Debug)]
pub(super) enum DetailKind {
    With(String, Text),
    Without(String),
    Trailer(String, Text),
    Body(Text),
}

/// The cases of one file of the corpus.
///
/// # Panics
/// The text is not in the notation.
pub(super) fn parse(text: &'static str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for block in blocks(text) {
        let client = Text::default();
        let mut case = Case {
            group: block.group,
            name: block.name,
            rule: block.rule,
            client,
            origin: None,
            wants: Vec::new(),
            in_pieces: false,
        };
        for (mark, written) in block.lines {
            add_line(&mut case, mark, written);
        }
        assert!(!case.wants.is_empty(), "'{}' wants nothing", case.name);
        if case.client.is_empty() {
            case.client.add(r"{GET}\r\n\r\n");
        }
        cases.push(case);
    }
    cases
}

fn add_line(case: &mut Case, mark: char, written: &'static str) {
    let side = match mark {
        '>' => &mut case.client,
        '<' => case.origin.get_or_insert_with(Text::default),
        '=' => return case.wants.push(want(written)),
        '+' => {
            let want = case.wants.last_mut().unwrap_or_else(|| panic!("'{written}' is of nothing wanted"));
            return want.details.push(detail(written));
        }
        _ => panic!("'{mark}' is no mark"),
    };
    let ends_open = side.add(written);
    if !ends_open && side.end == End::Open {
        side.push(b"\r\n");
    }
}

pub(super) fn want(words: &'static str) -> Want {
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

pub(super) fn detail(words: &'static str) -> Detail {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    let field = || {
        let (name, value) = rest.split_once(": ").unwrap_or_else(|| panic!("'{words}': what field?"));
        (name.to_ascii_lowercase(), Text::from(value))
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
        "body" => DetailKind::Body(rest.into()),
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
        let [a, b] = ["127.0.0.1:80", "127.0.0.2:80"];
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
