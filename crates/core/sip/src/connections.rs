//! SIP on connections (RFC 3261 §18) as it is overheard: segments may pass twice, in another order than they were sent in, or
//! not at all, and a connection may be older than whoever hears it.
//!
//! ```text
//!           SYN, or a segment that begins with a message
//!  (none) ───────────────────────────────────────────────▶ followed ──▶ messages
//!    ▲                                                        │
//!    └── FIN, RST, no SIP, what is missing does not come ─────┘
//! ```
//!
//! Who is no longer followed is again from the next segment on that begins with a message, as nearly each message does.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::framing::Framing;
use crate::message;
use crate::segment::Segment;

/// Directions of connections that are followed at a time; a further one takes the place of the one that has been silent for longest.
const MOST_WAYS: usize = 512;
/// What is kept of one direction while something before it is missing: more than the longest message, …
const MOST_AHEAD: usize = 24 * 1024;
/// … in so many pieces.
const MOST_PIECES: usize = 64;
/// What has not been sent again after so long passes another way, or was overlooked here.
const PATIENCE: Duration = Duration::from_secs(10);
/// Numbers further from those that are due are of another connection between the same ends: of signalling never so much is under way.
const FAR: u32 = 1 << 24;

/// The connections that pass by.
#[derive(Debug, Default)]
pub struct Connections {
    ways: HashMap<(SocketAddr, SocketAddr), Way>,
}

/// One direction of a connection.
#[derive(Debug)]
struct Way {
    framing: Framing,
    /// The number of the byte that comes next.
    next: u32,
    /// What has passed before its turn, with the number of its first byte.
    ahead: Vec<(u32, Vec<u8>)>,
    /// Since when something has been missing, where something is ahead.
    since: Duration,
    heard: Duration,
}

impl Connections {
    /// Takes a segment that has passed at `now`, and gives each message that is whole by it to `take`: of a long one its beginning.
    /// Whether its connection was followed and is none of SIP's, or some of it was missed.
    pub fn handle_segment(
        &mut self,
        now: Duration,
        segment: &Segment<'_>,
        mut take: impl FnMut(&[u8]),
    ) -> bool {
        let ends = (segment.from, segment.to);
        if segment.resets {
            self.ways.remove(&ends);
            self.ways.remove(&(segment.to, segment.from));
            return false;
        }
        let is_known = self.ways.get(&ends).is_some_and(|way| !way.is_of_another(segment));
        if segment.opens || !is_known {
            self.ways.remove(&ends);
            if !segment.opens && !message::begins(segment.content) {
                return false;
            }
            self.make_room();
        }
        let way = self.ways.entry(ends).or_insert_with(|| Way::new(segment.number, now));
        way.heard = now;
        let is_followed = way.handle(now, segment.number, segment.content, &mut take);
        let last = segment.number.wrapping_add(segment.content.len() as u32);
        if !is_followed || (segment.ends && way.next == last) {
            self.ways.remove(&ends);
        }
        !is_followed
    }

    fn make_room(&mut self) {
        if self.ways.len() >= MOST_WAYS
            && let Some(ends) = self.ways.iter().min_by_key(|(_, way)| way.heard).map(|(ends, _)| *ends)
        {
            self.ways.remove(&ends);
        }
    }
}

impl Way {
    fn new(next: u32, now: Duration) -> Way {
        Way { framing: Framing::default(), next, ahead: Vec::new(), since: now, heard: now }
    }

    /// By how much a number is before what is due (negative) or behind it.
    fn distance(&self, number: u32) -> i32 {
        number.wrapping_sub(self.next).cast_signed()
    }

    /// Between the same ends, and yet another one, whose beginning has not passed here.
    fn is_of_another(&self, segment: &Segment<'_>) -> bool {
        self.distance(segment.number).unsigned_abs() > FAR
    }

    /// Whether it can be followed further.
    fn handle(&mut self, now: Duration, number: u32, content: &[u8], take: &mut impl FnMut(&[u8])) -> bool {
        if content.is_empty() {
            return true;
        }
        if self.distance(number) > 0 {
            return self.keep(now, number, content, take);
        }
        if !self.read(number, content, take) {
            return false;
        }
        self.catch_up(now, take)
    }

    /// Reads what of this has not passed before.
    fn read(&mut self, number: u32, content: &[u8], take: &mut impl FnMut(&[u8])) -> bool {
        let before = self.distance(number).unsigned_abs() as usize;
        if let Some(new) = content.get(before..) {
            self.next = self.next.wrapping_add(new.len() as u32);
            self.framing.handle_bytes(new, take);
        }
        !self.framing.is_over()
    }

    /// Reads what was ahead as far as nothing is missing.
    fn catch_up(&mut self, now: Duration, take: &mut impl FnMut(&[u8])) -> bool {
        while let Some(at) = self.ahead.iter().position(|(number, _)| self.distance(*number) <= 0) {
            let (number, content) = self.ahead.swap_remove(at);
            self.since = now;
            if !self.read(number, &content, take) {
                return false;
            }
        }
        true
    }

    /// Keeps what comes before its turn, until what is missing has come or is no longer waited for.
    fn keep(&mut self, now: Duration, number: u32, content: &[u8], take: &mut impl FnMut(&[u8])) -> bool {
        if self.ahead.is_empty() {
            self.since = now;
        }
        let is_patient = now < self.since.saturating_add(PATIENCE);
        let is_again = self.ahead.iter().any(|(it, kept)| *it == number && kept.len() >= content.len());
        if is_patient && is_again {
            return true;
        }
        self.ahead.push((number, content.to_vec()));
        if !is_patient && !self.pass_over(now, take) {
            return false;
        }
        // Each time at least one piece goes.
        while self.is_crowded() {
            if !self.pass_over(now, take) {
                return false;
            }
        }
        true
    }

    /// More is ahead than is kept.
    fn is_crowded(&self) -> bool {
        let kept: usize = self.ahead.iter().map(|(_, content)| content.len()).sum();
        kept > MOST_AHEAD || self.ahead.len() > MOST_PIECES
    }

    /// Goes on behind what is missing, with the first piece that begins with a message.
    fn pass_over(&mut self, now: Duration, take: &mut impl FnMut(&[u8])) -> bool {
        let begins = self.ahead.iter().filter(|(_, content)| message::begins(content));
        let first = begins.min_by_key(|(number, _)| self.distance(*number)).map(|(number, _)| *number);
        let Some(first) = first else { return false };
        (self.framing, self.next, self.since) = (Framing::default(), first, now);
        let next = self.next;
        self.ahead.retain(|(number, _)| number.wrapping_sub(next).cast_signed() >= 0);
        self.catch_up(now, take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn message(call: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        format!("INVITE sip:b SIP/2.0\r\nCall-ID: {call}\r\nCSeq: 1 INVITE\r\nl: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    fn segment(number: u32, content: &[u8]) -> Segment<'_> {
        Segment {
            from: "10.0.0.1:40000".parse().unwrap(),
            to: "10.0.0.2:5060".parse().unwrap(),
            number,
            opens: false,
            ends: false,
            resets: false,
            content,
        }
    }

    #[derive(Default)]
    struct Heard {
        connections: Connections,
        messages: Vec<Vec<u8>>,
    }

    impl Heard {
        fn at(&mut self, now: Duration, segment: Segment<'_>) -> bool {
            self.connections.handle_segment(now, &segment, |it| self.messages.push(it.to_vec()))
        }

        fn hear(&mut self, number: u32, content: &[u8]) {
            assert!(!self.at(NOW, segment(number, content)), "{number}");
        }
    }

    #[test]
    fn whatever_the_order_in_which_segments_pass_messages_are_whole_and_come_once() {
        let messages =
            [message("a", "v=0\r\nINVITE sip:x SIP/2.0\r\n"), message("b", ""), message("c", "xyz")];
        let text = messages.concat();
        // Numbers wrap in the middle of it.
        let first = u32::MAX - 90;
        let pieces: Vec<(u32, &[u8])> = (0..).step_by(37).zip(text.chunks(37)).collect();
        for seed in 0..500u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = move |below: usize| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random % below as u64) as usize
            };
            // Each passes once or twice, in any order.
            let mut order: Vec<usize> =
                (0..pieces.len()).chain((0..pieces.len()).filter(|_| next(3) == 0)).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, next(at + 1));
            }
            let mut heard = Heard::default();
            heard.at(NOW, Segment { opens: true, ..segment(first, b"") });
            for at in order {
                heard.hear(first.wrapping_add(pieces[at].0), pieces[at].1);
            }
            assert_eq!(heard.messages, messages, "seed {seed}");
        }
    }

    #[test]
    fn a_connection_older_than_its_observer_is_followed_from_its_next_message_on() {
        let mut heard = Heard::default();
        heard.hear(70, b"the rest of a body");
        heard.hear(88, b"\r\n\r\n");
        assert!(heard.connections.ways.is_empty());
        let (one, two) = (message("a", "body"), message("b", ""));
        heard.hear(92, &one[..40]);
        heard.hear(132, &one[40..]);
        heard.hear(92 + one.len() as u32, &two);
        assert_eq!(heard.messages, [one, two]);
    }

    #[test]
    fn what_is_sent_again_in_other_pieces_is_read_once() {
        let (one, two) = (message("a", "body"), message("b", ""));
        let mut heard = Heard::default();
        heard.hear(0, &one[..30]);
        heard.hear(0, &[one.as_slice(), &two[..5]].concat());
        heard.hear(10, &one[10..30]);
        heard.hear(one.len() as u32 - 3, &[&one[one.len() - 3..], &two].concat());
        // TCP asks whether the other end is there by a byte that it has (RFC 9293 §3.8.4).
        heard.hear((one.len() + two.len()) as u32 - 1, b"\n");
        assert_eq!(heard.messages, [one, two]);
    }

    #[test]
    fn what_does_not_come_is_passed_over() {
        let (one, two, three) = (message("a", "body"), message("b", ""), message("c", ""));
        let behind = one.len() as u32;
        let mut heard = Heard::default();
        heard.hear(0, &one[..30]);
        heard.hear(40, &one[40..]);
        heard.hear(behind, &two);
        assert!(heard.messages.is_empty());
        // Its sender would have sent it again by now.
        assert!(!heard.at(NOW + PATIENCE, segment(behind + two.len() as u32, &three)));
        assert_eq!(heard.messages, [two.clone(), three.clone()]);
        // Nothing that is kept begins with a message.
        heard.hear(5_000, b"x");
        assert!(heard.at(NOW + 2 * PATIENCE, segment(6_000, b"y")));
        assert!(heard.connections.ways.is_empty());
        // As long as it is missing nothing grows.
        heard.hear(0, &one[..30]);
        let (mut at, full) = (1_000, [b'x'; 1_000]);
        while !heard.at(NOW, segment(at, &full)) {
            at += 1_000;
            assert!(at < 30_000);
        }
    }

    #[test]
    fn however_large_the_pieces_no_more_is_kept_ahead_than_so_much() {
        let mut heard = Heard::default();
        heard.at(NOW, Segment { opens: true, ..segment(0, b"") });
        // Small ones that begin with a message, and large ones behind them.
        let (small, large) = (b"INVITE sip:b SIP/2.0\r\n", vec![b'x'; 60_000]);
        for at in 0..60 {
            heard.at(NOW, segment(100 + 100 * at, small));
        }
        for at in 0..60 {
            heard.at(NOW, segment(100_000 + 100_000 * at, &large));
            let kept = heard.connections.ways.values().flat_map(|way| &way.ahead);
            assert!(kept.map(|(_, content)| content.len()).sum::<usize>() <= MOST_AHEAD);
        }
    }

    #[test]
    fn what_is_none_of_sips_is_told_once_and_not_followed() {
        let mut heard = Heard::default();
        heard.at(NOW, Segment { opens: true, ..segment(1, b"") });
        assert!(heard.at(NOW, segment(1, b"\x16\x03\x01\x02\x00")));
        for number in 2..100 {
            heard.hear(number * 5, b"\x17\x03\x03\x02\x00");
        }
        assert!(heard.connections.ways.is_empty() && heard.messages.is_empty());
    }

    #[test]
    fn another_connection_between_the_same_ends_begins_anew() {
        let mut heard = Heard::default();
        for (number, end) in
            [(0, "fin"), (3_000_000_000, "reset"), (100, "missed"), (2_000_000_100, "missed")]
        {
            let one = message(end, "");
            // The last message of the one before was not whole.
            heard.hear(number, &one);
            heard.hear(number + one.len() as u32, b"BYE sip:b SIP/2.0\r\n");
            let last = segment(number + one.len() as u32 + 19, b"Via");
            match end {
                "fin" => heard.at(NOW, Segment { ends: true, ..last }),
                "reset" => heard.at(NOW, Segment { resets: true, ..last }),
                _ => false,
            };
            assert_eq!(heard.messages.pop(), Some(one));
        }
    }

    #[test]
    fn no_more_than_so_many_are_followed_and_those_that_speak_stay() {
        let (mut heard, one) = (Heard::default(), message("a", "body"));
        heard.hear(0, &one[..40]);
        for port in 0..2_000u16 {
            let now = NOW + Duration::from_millis(u64::from(port));
            let from = SocketAddr::from(([10, 0, 0, 9], port));
            heard.at(now, Segment { from, ..segment(0, &one[..40]) });
            heard.at(now, segment(40, &one[40..41]));
            assert!(heard.connections.ways.len() <= MOST_WAYS);
        }
        heard.at(NOW * 2, segment(41, &one[41..]));
        assert_eq!(heard.messages, [one]);
    }
}
