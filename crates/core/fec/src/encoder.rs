//! The sending half of the code: the last packets, and sums of them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::symbol::{LENGTH, Symbol, coefficient};
use crate::wire::Repair;

/// Packets that a repair covers at most. A sum costs in proportion, and what is older than so many packets is rarely
/// missing still.
pub const WINDOW: usize = 128;

#[derive(Debug, Default)]
struct Kept {
    symbol: Symbol,
    len: usize,
    sent: Duration,
}

/// See the module.
#[derive(Debug)]
pub struct Encoder {
    /// Oldest first, with consecutive sequence numbers.
    window: VecDeque<Kept>,
    /// Sequence number after that of the newest.
    next: u32,
    /// The number of the next repair.
    number: u8,
    sum: Symbol,
}

impl Encoder {
    /// An empty window, with `next` the number of the first packet.
    pub fn new(next: u32) -> Self {
        Encoder { window: VecDeque::new(), next, number: 0, sum: Symbol::default() }
    }

    /// Takes in a packet that was sent at `now`. A gap in the numbers empties the window first: what was sent in between
    /// was not kept, and may not be covered.
    pub fn push(&mut self, now: Duration, sequence: u32, packet: &[u8]) {
        if sequence != self.next {
            self.window.clear();
        }
        let oldest = if self.window.len() >= WINDOW { self.window.pop_front() } else { None };
        let mut kept = oldest.unwrap_or_default();
        kept.symbol.fill(packet);
        (kept.len, kept.sent) = (packet.len(), now);
        self.window.push_back(kept);
        self.next = sequence.wrapping_add(1);
    }

    /// Drops what was sent before `time`.
    pub fn forget(&mut self, time: Duration) {
        while self.window.pop_front_if(|kept| kept.sent < time).is_some() {}
        if self.window.is_empty() {
            // An idle carrier holds nothing.
            self.window = VecDeque::new();
        }
    }

    /// When the oldest packet was sent.
    pub fn oldest(&self) -> Option<Duration> {
        self.window.front().map(|kept| kept.sent)
    }

    /// Packets in the window.
    pub fn len(&self) -> usize {
        self.window.len()
    }

    /// True if no packet is in the window.
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Bytes that the sum of the next repair will have.
    pub fn sum_len(&self) -> usize {
        self.window.iter().map(|kept| LENGTH + kept.len).max().unwrap_or(0)
    }

    /// The next repair, over the whole window; `None` if that is empty.
    pub fn repair(&mut self, loud: bool) -> Option<Repair<'_>> {
        let count = u8::try_from(self.window.len()).ok().filter(|count| *count > 0)?;
        let first = self.next.wrapping_sub(u32::from(count));
        let number = self.number;
        self.number = (number + 1) % 128;
        let numbered = (0..).map(|index| coefficient(number, first.wrapping_add(index)));
        let terms: Vec<(u8, &Symbol)> = numbered.zip(self.window.iter().map(|kept| &kept.symbol)).collect();
        self.sum = Symbol::default();
        self.sum.add(&terms);
        let len = self.sum_len();
        Some(Repair { first, count, number, loud, sum: self.sum.bytes(len) })
    }
}
