//! Where something ends that somebody waits for: a head, a small object, the last piece of a large one. QUIC's packets do not
//! show it; whoever gave QUIC the bytes says so, and the packets that leave next are counted off. It does not decide what is
//! repaired.

use std::collections::VecDeque;

/// Ends that may be waited for at a time; further ones are treated like anything else.
const MOST: usize = 64;
/// What QUIC puts around the bytes of a stream in a full packet (RFC 9000 §17.3.1, §19.8): flags, connection id, packet
/// number, tag of the AEAD; type, id, offset and length of the frame.
const AROUND: usize = 1 + 8 + 2 + 16 + 8;

/// One that is to come.
#[derive(Debug, Clone, Copy)]
struct End {
    /// Bytes of streams until then.
    bytes: usize,
    urgent: bool,
}

/// One that has been sent, or several together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Number of the packet with which it began.
    pub(crate) first: u32,
    /// Whether it goes before others.
    pub(crate) urgent: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    coming: VecDeque<End>,
    /// Number of the packet with which the next one to come begins.
    began: u32,
    ended: Option<Ended>,
}

impl Ends {
    /// The next `bytes` of streams, from packet number `next` on if nothing else is waited for, have an end.
    pub(crate) fn expect(&mut self, next: u32, bytes: usize, urgent: bool) {
        if bytes == 0 || self.coming.len() >= MOST {
            return;
        }
        if self.coming.is_empty() {
            self.began = next;
        }
        self.coming.push_back(End { bytes, urgent });
    }

    /// Packet number `number`, of `len` bytes, is on its way.
    pub(crate) fn sent(&mut self, number: u32, len: usize) {
        let mut bytes = len.saturating_sub(AROUND);
        while let Some(end) = self.coming.front_mut() {
            if end.bytes > bytes {
                end.bytes -= bytes;
                return;
            }
            bytes -= end.bytes;
            let earlier = self.ended.unwrap_or(Ended { first: self.began, urgent: false });
            self.ended = Some(Ended { first: earlier.first, urgent: earlier.urgent || end.urgent });
            self.coming.pop_front();
            // What follows may share the packet.
            self.began = if bytes > 0 { number } else { number.wrapping_add(1) };
        }
    }

    /// What has ended and is not settled.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Nothing more is to be done for what has ended.
    pub(crate) fn settle(&mut self) {
        self.ended = None;
    }

    /// Forgets all, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        *self = Ends::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_in_the_packet_that_brings_its_last_byte() {
        let mut ends = Ends::default();
        ends.expect(u32::MAX, 2_000, false);
        ends.sent(u32::MAX, 1_035);
        assert_eq!(ends.ended(), None);
        ends.sent(0, 1_035);
        assert_eq!(ends.ended(), Some(Ended { first: u32::MAX, urgent: false }));
        ends.settle();
        ends.sent(1, 1_035);
        assert_eq!(ends.ended(), None);
    }

    #[test]
    fn ends_follow_each_other_and_those_of_one_packet_are_one() {
        let mut ends = Ends::default();
        for (bytes, urgent) in [(400, false), (400, true), (1_000, false)] {
            ends.expect(5, bytes, urgent);
        }
        ends.sent(5, 1_035);
        assert_eq!(ends.ended(), Some(Ended { first: 5, urgent: true }));
        ends.settle();
        ends.sent(6, 1_035);
        assert_eq!(ends.ended(), Some(Ended { first: 5, urgent: false }), "it began in the packet before");
    }

    #[test]
    fn acknowledgements_count_for_nothing_and_what_waits_is_bounded() {
        let mut ends = Ends::default();
        for _ in 0..1_000 {
            ends.expect(0, 1, false);
        }
        ends.expect(0, 0, true);
        assert_eq!(ends.coming.len(), MOST);
        ends.sent(0, AROUND);
        assert_eq!(ends.ended(), None);
        ends.sent(1, AROUND + MOST);
        assert_eq!((ends.ended().is_some(), ends.coming.len()), (true, 0));
    }
}
