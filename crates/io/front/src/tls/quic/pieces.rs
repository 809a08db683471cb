//! A hello put together from pieces in any order, as browsers send theirs on purpose.

use std::ops::Range;

/// The longest hello that is put together: with keys for a time after quantum computers browsers' have some 2,000 bytes.
const LONGEST: usize = 4096;
/// The most gaps between pieces: a hello in more of them at a time is nobody's.
const MOST_RANGES: usize = 64;

/// Bytes of a hello, some of which are not there yet.
#[derive(Default)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Which are there: in order, apart from each other.
    there: Vec<Range<usize>>,
}

impl Pieces {
    /// A piece that stands so far from the beginning; `None` where that is more than a hello, or too much is missing between.
    pub(super) fn add(&mut self, at: usize, piece: &[u8]) -> Option<()> {
        let mut own = at..at.checked_add(piece.len()).filter(|end| *end <= LONGEST)?;
        if own.is_empty() {
            return Some(());
        }
        if self.bytes.len() < own.end {
            self.bytes.resize(own.end, 0);
        }
        self.bytes[own.clone()].copy_from_slice(piece);
        // It becomes one with what it touches.
        self.there.retain(|other| {
            let touches = other.start <= own.end && own.start <= other.end;
            if touches {
                own = own.start.min(other.start)..own.end.max(other.end);
            }
            !touches
        });
        let place = self.there.partition_point(|other| other.start < own.start);
        self.there.insert(place, own);
        (self.there.len() <= MOST_RANGES).then_some(())
    }

    /// What is there from the first byte on.
    pub(super) fn beginning(&self) -> &[u8] {
        match self.there.first() {
            Some(first) if first.start == 0 => &self.bytes[first.clone()],
            _ => &[],
        }
    }
}
