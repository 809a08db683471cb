//! A reader of HTTP/1.1 that takes only what RFC 9112 has a sender write: one reading or none. It is the judge's, and shares
//! no code with what is judged.

/// A message, whole.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// The three parts of the first line; what follows the status is one.
    pub(super) start: [String; 3],
    /// Names in lower case, values byte by byte as characters.
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<(String, String)>,
    /// Bytes that it took.
    pub(super) length: usize,
}

impl Message {
    /// The values of a field, in order.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        values(&self.fields, name)
    }

    /// Whether a comma-separated field has this item.
    pub(super) fn lists(&self, name: &str, item: &str) -> bool {
        self.values(name).flat_map(|value| value.split(',')).any(|has| has.trim().eq_ignore_ascii_case(item))
    }
}

/// What is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'a> {
    Request,
    /// The response to this method, from a connection that has `ended` or not.
    Response {
        method: &'a str,
        ended: bool,
    },
}

/// The message at the front of `bytes`; `None` while it is incomplete.
///
/// # Errors
/// What stands there has no reading, or two.
pub(super) fn read(bytes: &[u8], kind: Kind<'_>) -> Result<Option<Message>, String> {
    let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let mut lines = lines(&bytes[..end])?.into_iter();
    let start = start(&lines.next().unwrap_or_default(), kind)?;
    let fields = lines.map(|line| field(&line)).collect::<Result<Vec<_>, _>>()?;
    let framing = framing(&start, &fields, kind)?;
    let mut message = Message { start, fields, body: Vec::new(), trailers: Vec::new(), length: end + 4 };
    let rest = &bytes[end + 4..];
    match framing {
        Framing::Length(length) => {
            let Some(body) = rest.get(..length) else { return Ok(None) };
            message.body = body.to_vec();
            message.length += length;
        }
        Framing::Chunked => match chunks(rest, &mut message)? {
            Some(length) => message.length += length,
            None => return Ok(None),
        },
        Framing::UntilClose => {
            if !matches!(kind, Kind::Response { ended: true, .. }) {
                return Ok(None);
            }
            message.body = rest.to_vec();
            message.length += rest.len();
        }
    }
    Ok(Some(message))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The lines between CRLFs, which hold no control byte but the tab.
fn lines(mut bytes: &[u8]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    loop {
        let end = find(bytes, b"\r\n").unwrap_or(bytes.len());
        let (line, rest) = bytes.split_at(end);
        if let Some(byte) = line.iter().find(|byte| byte.is_ascii_control() && **byte != b'\t') {
            return Err(format!("byte {byte:#04x} in the line '{}'", String::from_utf8_lossy(line)));
        }
        found.push(line.iter().map(|&byte| char::from(byte)).collect());
        match rest.get(2..) {
            Some(rest) => bytes = rest,
            None => return Ok(found),
        }
    }
}

fn start(line: &str, kind: Kind<'_>) -> Result<[String; 3], String> {
    let parts: Vec<String> = line.splitn(3, ' ').map(str::to_owned).collect();
    let [first, second, third] =
        <[String; 3]>::try_from(parts).map_err(|_| format!("the first line is '{line}'"))?;
    let fits = match kind {
        Kind::Request => {
            is_token(&first)
                && !second.is_empty()
                && second.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
                && third == "HTTP/1.1"
        }
        Kind::Response { .. } => {
            first == "HTTP/1.1" && second.len() == 3 && second.bytes().all(|byte| byte.is_ascii_digit())
        }
    };
    if fits { Ok([first, second, third]) } else { Err(format!("the first line is '{line}'")) }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn field(line: &str) -> Result<(String, String), String> {
    match line.split_once(':') {
        Some((name, value)) if is_token(name) => {
            Ok((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()))
        }
        _ => Err(format!("the field line '{line}'")),
    }
}

fn values<'a>(fields: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    fields.iter().filter(move |(has, _)| has == name).map(|(_, value)| value.as_str())
}

enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// RFC 9112 §6, without any of its leniencies.
fn framing(start: &[String; 3], fields: &[(String, String)], kind: Kind<'_>) -> Result<Framing, String> {
    let lengths: Vec<&str> = values(fields, "content-length").collect();
    let codings: Vec<&str> = values(fields, "transfer-encoding").collect();
    if let Kind::Response { method, .. } = kind {
        let status = start[1].as_str();
        let never = status.starts_with('1') || status == "204";
        if never && !(lengths.is_empty() && codings.is_empty()) {
            return Err(format!("a {status} that says where a body ends"));
        }
        if never || status == "304" || method == "HEAD" || (method == "CONNECT" && status.starts_with('2')) {
            return Ok(Framing::Length(0));
        }
    }
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) if matches!(kind, Kind::Request) => Ok(Framing::Length(0)),
        ([], []) if values(fields, "connection").any(|value| value == "close") => Ok(Framing::UntilClose),
        ([], []) => Err("a response on a connection that stays says nothing of its end".into()),
        ([length], []) => match length.parse::<usize>() {
            Ok(bytes) if bytes.to_string() == *length => Ok(Framing::Length(bytes)),
            _ => Err(format!("content-length '{length}'")),
        },
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
        _ => Err(format!("content-length {lengths:?} with transfer-encoding {codings:?}")),
    }
}

/// Takes chunks and trailers into `message`; the bytes that they are, or `None` while some are missing.
fn chunks(bytes: &[u8], message: &mut Message) -> Result<Option<usize>, String> {
    let mut at = 0;
    loop {
        let Some(end) = find(&bytes[at..], b"\r\n") else { return Ok(None) };
        let line = String::from_utf8_lossy(&bytes[at..at + end]).into_owned();
        let digits =
            !line.is_empty() && line.len() <= 16 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = usize::from_str_radix(&line, 16).ok().filter(|_| digits);
        let size = size.ok_or_else(|| format!("the chunk line '{line}'"))?;
        at += end + 2;
        if size == 0 {
            break;
        }
        let Some(chunk) = at.checked_add(size).and_then(|end| bytes.get(at..end)) else { return Ok(None) };
        message.body.extend_from_slice(chunk);
        match bytes.get(at + size..at + size + 2) {
            None => return Ok(None),
            Some(b"\r\n") => at += size + 2,
            Some(other) => return Err(format!("{other:?} after a chunk of {size} bytes")),
        }
    }
    if bytes[at..].starts_with(b"\r\n") {
        return Ok(Some(at + 2));
    }
    let Some(end) = find(&bytes[at..], b"\r\n\r\n") else { return Ok(None) };
    for line in lines(&bytes[at..at + end])? {
        let (name, value) = field(&line)?;
        if ["content-length", "transfer-encoding", "host", "trailer"].contains(&name.as_str()) {
            return Err(format!("the trailer '{line}'"));
        }
        message.trailers.push((name, value));
    }
    Ok(Some(at + end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<Option<Message>, String> {
        read(text.as_bytes(), Kind::Request)
    }

    #[test]
    fn whole_messages_are_read_and_incomplete_ones_waited_for() {
        let text = "PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\nGET";
        let whole = request(text).unwrap().unwrap();
        assert_eq!((whole.body.as_slice(), whole.length), (b"abc".as_slice(), text.len() - 3));
        assert_eq!(whole.trailers, [("x".to_owned(), "y".to_owned())]);
        for cut in 0..text.len() - 3 {
            assert!(request(&text[..cut]).unwrap().is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn what_a_lenient_reader_would_take_is_wrong() {
        let line = "GET /x HTTP/1.1\r\nHost: a\r\n";
        for rest in [
            "X : y\r\n\r\n",
            "X: y\r\n z\r\n\r\n",
            "X: y\nZ: z\r\n\r\n",
            "X: y\rz\r\n\r\n",
            "X: \0\r\n\r\n",
            "Content-Length: +1\r\n\r\na",
            "Content-Length: 01\r\n\r\na",
            "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na",
            "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n",
        ] {
            assert!(request(&format!("{line}{rest}")).is_err(), "{rest:?}");
        }
        for first in ["GET  /x HTTP/1.1", "GET /x HTTP/1.0", "GET /x y HTTP/1.1", "GET /x", "G T /x HTTP/1.1"]
        {
            assert!(request(&format!("{first}\r\n\r\n")).is_err(), "{first:?}");
        }
    }

    #[test]
    fn responses_end_where_method_status_and_fields_say() {
        let body = |text: &str, method: &str, ended: bool| {
            read(text.as_bytes(), Kind::Response { method, ended })
                .map(|read| read.map(|message| message.body))
        };
        let sized = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(body(sized, "GET", false), Ok(Some(b"ok".to_vec())));
        assert_eq!(body(sized, "HEAD", false), Ok(Some(Vec::new())));
        let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok";
        assert_eq!(body(closing, "GET", false), Ok(None));
        assert_eq!(body(closing, "GET", true), Ok(Some(b"ok".to_vec())));
        assert!(body("HTTP/1.1 200 OK\r\n\r\nok", "GET", true).is_err());
        assert!(body("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "GET", true).is_err());
        assert!(body("HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "GET", true).is_err());
    }
}
