//! A SIP message, as far as an observer needs it.

use std::fmt;

/// Head and body of no call are larger; what is beyond is not read.
const LONGEST: usize = 16 * 1024;
/// Lines of a head that are read.
const MOST_LINES: usize = 200;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // RFC 3261 §13, §15, §9, §13.2.2.4; RFC 3311
pub enum Method {
    Invite,
    Ack,
    Bye,
    Cancel,
    Update,
    Prack,
    /// One that begins and ends no call.
    Other,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request.
    Request,
    /// A response with its status code, 100 to 699.
    Response(u16),
}

/// A SIP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its method; of a response, that of its request (`CSeq`, RFC 3261 §8.1.1.5).
    pub method: Method,
    /// The call that it is of (`Call-ID`, RFC 3261 §8.1.1.4): printable, without blanks.
    pub call_id: &'a str,
    /// Its body where that is SDP; else nothing.
    pub sdp: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// Reads a datagram's content; `None` where it is no message of a call.
    pub fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        let (head, body) = split(bytes);
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.split('\n').map(|line| line.trim_end_matches('\r')).take(MOST_LINES);
        let kind = first_line(lines.next()?)?;
        let (mut call_id, mut method, mut is_sdp, mut length) = (None, None, false, None);
        for line in lines {
            // RFC 3261 §7.3.1: blanks may stand before the colon. A folded line continues one that is not asked for.
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            // §7.3.3: names have a compact form.
            match name.trim_end().to_ascii_lowercase().as_str() {
                "call-id" | "i" => call_id = call_id.or(Some(value)),
                "cseq" => method = method.or_else(|| sequence(value)),
                "content-type" | "c" => {
                    let kind = value.split(';').next().unwrap_or_default().trim();
                    is_sdp = kind.eq_ignore_ascii_case("application/sdp");
                }
                "content-length" | "l" => length = value.parse::<usize>().ok(),
                _ => {}
            }
        }
        let call_id = call_id.filter(|it| is_call_id(it))?;
        let body = &body[..length.unwrap_or(body.len()).min(body.len())];
        let sdp = if is_sdp { std::str::from_utf8(body).ok() } else { None };
        Some(Message { kind, method: method?, call_id, sdp })
    }
}

/// The head, and what is behind its empty line.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let ends = [&b"\r\n\r\n"[..], b"\n\n"];
    let found = ends.iter().filter_map(|end| {
        let at = bytes.windows(end.len()).position(|it| it == *end)?;
        Some((at, at + end.len()))
    });
    match found.min() {
        Some((head, body)) => (&bytes[..head], &bytes[body..]),
        None => (bytes, &[]),
    }
}

fn first_line(line: &str) -> Option<Kind> {
    if let Some(rest) = line.strip_prefix("SIP/2.0 ") {
        let code = rest.get(..3).filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()))?;
        return code.parse().ok().filter(|code| (100..700).contains(code)).map(Kind::Response);
    }
    line.ends_with(" SIP/2.0").then_some(Kind::Request)
}

/// `314159 INVITE`.
fn sequence(value: &str) -> Option<Method> {
    let mut words = value.split_whitespace();
    words.next()?.parse::<u32>().ok()?;
    // RFC 3261 §7.1: methods are in capitals.
    Some(match words.next()? {
        "INVITE" => Method::Invite,
        "ACK" => Method::Ack,
        "BYE" => Method::Bye,
        "CANCEL" => Method::Cancel,
        "UPDATE" => Method::Update,
        "PRACK" => Method::Prack,
        _ => Method::Other,
    })
}

fn is_call_id(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Invite => "INVITE",
            Method::Ack => "ACK",
            Method::Bye => "BYE",
            Method::Cancel => "CANCEL",
            Method::Update => "UPDATE",
            Method::Prack => "PRACK",
            Method::Other => "another method",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_responses_are_read_in_either_form() {
        let text = "INVITE sip:bob@biloxi.example SIP/2.0\r\nVia: SIP/2.0/UDP pc33;branch=z9\r\nCall-ID : a84b4c76e66710\r\n\
                    CSeq: 314159 INVITE\r\nContent-Type: application/sdp; charset=utf-8\r\nContent-Length: 5\r\n\r\nv=0\r\nmore";
        let message = Message::read(text.as_bytes()).unwrap();
        assert_eq!(
            (message.kind, message.method, message.call_id),
            (Kind::Request, Method::Invite, "a84b4c76e66710")
        );
        assert_eq!(message.sdp, Some("v=0\r\n"));
        let text = "SIP/2.0 200 OK\ni: x@y\nCSEQ: 1 BYE\n\n";
        let message = Message::read(text.as_bytes()).unwrap();
        assert_eq!((message.kind, message.method, message.sdp), (Kind::Response(200), Method::Bye, None));
    }

    #[test]
    fn what_is_no_message_of_a_call_is_passed_over() {
        for text in [
            "",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\r\n",
            "INVITE sip:a SIP/2.0\r\nCSeq: 1 INVITE\r\n\r\n",
            "INVITE sip:a SIP/2.0\r\nCall-ID: a\r\n\r\n",
            "INVITE sip:a SIP/2.0\r\nCall-ID: a b\r\nCSeq: 1 INVITE\r\n\r\n",
            "SIP/2.0 2000\r\nCall-ID: a\r\nCSeq: x INVITE\r\n\r\n",
            "SIP/2.0 099 x\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\r\n",
        ] {
            assert_eq!(Message::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Message::read(&[0xff; 100]), None);
    }
}
