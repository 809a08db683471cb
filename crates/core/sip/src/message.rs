//! A SIP message, as far as an observer needs it.

use std::fmt;

use crate::body;

/// Head and body of no call are larger; what is beyond is not read.
pub(crate) const LONGEST: usize = 16 * 1024;
/// Of tags no more is kept; usual ones have ten letters.
const LONGEST_TAG: usize = 255;
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
    /// Which request of its sender's in this call it is or answers (the same line): ACK and CANCEL bear the number of their INVITE.
    pub number: u32,
    /// The tags of who sent that request and of whom it was for (`From`, `To`, RFC 3261 §19.3); empty where there is none.
    pub from: &'a str,
    /// As above.
    pub to: &'a str,
    /// The call that it is of (`Call-ID`, RFC 3261 §8.1.1.4): printable, without blanks.
    pub call_id: &'a str,
    /// Its body, or the part of it, that is SDP; else nothing.
    pub sdp: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// Reads a datagram's content, or what [`Framing`](crate::Framing) tells apart; `None` where it is no message of a call.
    pub fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        // RFC 3261 §7.5: empty lines before a message say nothing.
        let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
        let bytes = &bytes[begin..];
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        let (head, body) = body::split(bytes);
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = body::lines(head).take(MOST_LINES);
        let kind = first_line(lines.next()?)?;
        let (mut call_id, mut sequence, mut length) = (None, None, None);
        let (mut from, mut to, mut content_type) = ("", "", "");
        for line in lines {
            let Some((name, value)) = body::field(line) else { continue };
            // §7.3.3: names have a compact form.
            match name.as_str() {
                "call-id" | "i" => call_id = call_id.or(Some(value)),
                "cseq" => sequence = sequence.or_else(|| numbered(value)),
                "from" | "f" => from = tag(value),
                "to" | "t" => to = tag(value),
                "content-type" | "c" => content_type = value,
                "content-length" | "l" => length = value.parse::<usize>().ok(),
                _ => {}
            }
        }
        let call_id = call_id.filter(|it| is_call_id(it))?;
        let (number, method) = sequence?;
        let body = &body[..length.unwrap_or(body.len()).min(body.len())];
        Some(Message { kind, method, number, from, to, call_id, sdp: body::sdp(content_type, body) })
    }
}

/// Whether these bytes begin with a message, its first line whole.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let bytes = &bytes[begin..];
    let end = bytes.iter().take(LONGEST).position(|byte| *byte == b'\n');
    let line = end.and_then(|end| std::str::from_utf8(&bytes[..end]).ok());
    line.is_some_and(|line| first_line(line.trim_end_matches('\r')).is_some())
}

fn first_line(line: &str) -> Option<Kind> {
    // RFC 3261 §7.1: read in whatever letters.
    let is_version = |word: &str| word.eq_ignore_ascii_case("SIP/2.0");
    if let Some((_, rest)) = line.split_once(' ').filter(|(first, _)| is_version(first)) {
        let code = rest.get(..3).filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()))?;
        return code.parse().ok().filter(|code| (100..700).contains(code)).map(Kind::Response);
    }
    line.rsplit_once(' ').is_some_and(|(_, last)| is_version(last)).then_some(Kind::Request)
}

/// `314159 INVITE`.
fn numbered(value: &str) -> Option<(u32, Method)> {
    let mut words = value.split_whitespace();
    let number = words.next()?.parse().ok()?;
    // RFC 3261 §7.1: methods are in capitals.
    let method = match words.next()? {
        "INVITE" => Method::Invite,
        "ACK" => Method::Ack,
        "BYE" => Method::Bye,
        "CANCEL" => Method::Cancel,
        "UPDATE" => Method::Update,
        "PRACK" => Method::Prack,
        _ => Method::Other,
    };
    Some((number, method))
}

/// `"Bob" <sip:bob@biloxi.example>;tag=a6c85cf`; one that is too long is as good as none.
fn tag(value: &str) -> &str {
    let parameters = value.rsplit_once('>').map_or(value, |(_, after)| after);
    let tags = parameters.split(';').filter_map(|it| it.split_once('='));
    let mut tags = tags.filter(|(name, _)| name.trim().eq_ignore_ascii_case("tag"));
    tags.next().map(|(_, tag)| tag.trim()).filter(|tag| tag.len() <= LONGEST_TAG).unwrap_or_default()
}

fn is_call_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
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
        let text = "INVITE sip:bob@biloxi.example SIP/2.0\r\nVia: SIP/2.0/UDP pc33;branch=z9\r\n\
                    From: \"A <b>\" <sip:a@x;tag=no>;x=y; Tag=19\r\nTo: sip:bob@x\r\nCall-ID : a84b4c76e66710\r\n\
                    CSeq: 314159 INVITE\r\nContent-Type: application/sdp; charset=utf-8\r\nContent-Length: 5\r\n\r\nv=0\r\nmore";
        let message = Message::read(text.as_bytes()).unwrap();
        assert_eq!(
            (message.kind, message.method, message.call_id),
            (Kind::Request, Method::Invite, "a84b4c76e66710")
        );
        assert_eq!(message.sdp, Some("v=0\r\n"));
        assert_eq!((message.number, message.from, message.to), (314_159, "19", ""));
        let text = "sip/2.0 200 OK\ni: x@y\nf: <sip:a>;tag=1\nt: <sip:b>;tag=2\nCSEQ: 1 BYE\n\n";
        let message = Message::read(text.as_bytes()).unwrap();
        assert_eq!((message.from, message.to), ("1", "2"));
        assert_eq!((message.kind, message.method, message.sdp), (Kind::Response(200), Method::Bye, None));
    }

    #[test]
    fn empty_lines_before_a_message_say_nothing() {
        let text = "\r\n\r\n\nINVITE sip:a SIP/2.0\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\r\n";
        assert_eq!(Message::read(text.as_bytes()).unwrap().call_id, "a");
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
            "INVITE sip:a xSIP/2.0\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\r\n",
            "SIP/2.0 099 x\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\n\r\n",
        ] {
            assert_eq!(Message::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Message::read(&[0xff; 100]), None);
    }
}
