//! Messages on a connection (RFC 3261 §18.3): one behind the other, each as long as its head says.

use crate::body;
use crate::message::LONGEST;

/// One direction of a connection: what has come of a message that is not whole.
#[derive(Debug, Default)]
pub struct Framing {
    bytes: Vec<u8>,
    /// So much of a long message is still to come, and is not read.
    rest: usize,
    /// It is none of SIP's, or where its next message begins can't be told.
    is_over: bool,
}

impl Framing {
    /// Takes what comes next, and gives each message that is whole to `take`: of a long one its beginning.
    pub fn handle_bytes(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) {
        while !self.is_over && !bytes.is_empty() {
            let passed = self.rest.min(bytes.len());
            (self.rest, bytes) = (self.rest - passed, &bytes[passed..]);
            let (fits, after) = bytes.split_at(bytes.len().min(LONGEST - self.bytes.len()));
            self.bytes.extend_from_slice(fits);
            bytes = after;
            while self.cut(&mut take) {}
        }
    }

    /// Where its next message begins can't be told: nothing of it is read any more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes the first message off, if it is whole or there is no room for more of it.
    fn cut(&mut self, take: &mut impl FnMut(&[u8])) -> bool {
        // RFC 3261 §7.5, RFC 5626 §4.4.1: empty lines before a message say nothing, or that the connection is there.
        let begin = self.bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.bytes.drain(..begin);
        let Some(first) = self.bytes.first() else { return false };
        let is_full = self.bytes.len() >= LONGEST;
        let (head, body) = body::split(&self.bytes);
        let is_head = head.len() < self.bytes.len();
        let length = is_head.then(|| content_length(head)).flatten();
        let ends_at = length.and_then(|length| (self.bytes.len() - body.len()).checked_add(length));
        let Some(ends_at) = ends_at else {
            // Methods and versions begin with a letter: TLS and others are known by that.
            if is_head || is_full || !first.is_ascii_alphabetic() {
                *self = Framing { is_over: true, ..Framing::default() };
            }
            return false;
        };
        if ends_at > self.bytes.len() && !is_full {
            return false;
        }
        let here = ends_at.min(self.bytes.len());
        take(&self.bytes[..here]);
        self.bytes.drain(..here);
        self.rest = ends_at - here;
        true
    }
}

/// RFC 3261 §20.14: over connections every message has it.
fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let fields = body::lines(head).skip(1).filter_map(body::field);
    let mut lengths = fields.filter(|(name, _)| name == "content-length" || name == "l");
    lengths.next()?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(method: &str, body: &str) -> String {
        format!(
            "{method} sip:b@example.org SIP/2.0\r\nCall-ID: a\r\nCSeq: 1 {method}\r\nl: {}\r\n\r\n{body}",
            body.len()
        )
    }

    fn taken(pieces: &[&[u8]]) -> Vec<String> {
        let (mut framing, mut taken) = (Framing::default(), Vec::new());
        for piece in pieces {
            framing.handle_bytes(piece, |it| taken.push(String::from_utf8(it.to_vec()).unwrap()));
        }
        taken
    }

    #[test]
    fn messages_are_told_apart_whatever_the_pieces_in_which_they_come() {
        let messages = [message("INVITE", "v=0\r\n\r\nINVITE"), message("ACK", ""), message("BYE", "x")];
        let text = format!("\r\n{}{}\r\n\r\n{}", messages[0], messages[1], messages[2]);
        for size in 1..text.len() + 1 {
            let pieces: Vec<_> = text.as_bytes().chunks(size).collect();
            assert_eq!(taken(&pieces), messages, "in pieces of {size}");
        }
    }

    #[test]
    fn of_a_long_message_the_beginning_is_read_and_the_next_one_whole() {
        let long = message("MESSAGE", &"x".repeat(100_000));
        let text = [long.clone(), message("BYE", "")].concat();
        for size in [1_000, LONGEST, 200_000] {
            let taken = taken(&text.as_bytes().chunks(size).collect::<Vec<_>>());
            assert_eq!(taken, [long[..LONGEST].to_owned(), message("BYE", "")], "in pieces of {size}");
        }
    }

    #[test]
    fn what_has_no_end_that_can_be_told_is_not_followed() {
        let endless = "INVITE ".repeat(10_000);
        for begin in [
            "\u{16}\u{3}\u{1}",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "INVITE sip:a SIP/2.0\r\nCall-ID: a\r\n\r\n",
            "INVITE sip:a SIP/2.0\r\nContent-Length: -1\r\n\r\n",
            "INVITE sip:a SIP/2.0\r\nContent-Length: 18446744073709551615\r\n\r\n",
            &endless,
        ] {
            let (mut framing, bye) = (Framing::default(), message("BYE", ""));
            for piece in [begin, &bye] {
                framing.handle_bytes(piece.as_bytes(), |it| panic!("{begin}: {it:?}"));
            }
            assert!(framing.is_over && framing.bytes.capacity() == 0, "{begin}");
        }
    }
}
