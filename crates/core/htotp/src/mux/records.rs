//! How long the TLS records of a lane are. None is of use before its last byte has come, so that one which does not fit
//! into a window of TCP's holds up all that is in it for a round trip, what is most urgent first.

use std::time::Duration;

use farhop_units::BitRate;

/// The first: with what TLS puts around it, 22 bytes, it fits into a segment at an MTU of 1,400. A connection that begins, or begins
/// again when it was idle, may send no more than three (RFC 5681 §3.1, §4.1).
const FIRST: usize = 1_300;
/// A record is at most this part of what was sent before it without a pause: so much the window has grown by then, and all but
/// that part of what has come can be read.
const PART: usize = 4;
/// The most that a record holds (RFC 8446 §5.1). Short ones take half a percent more of the link, and processor time.
const FULL: usize = 16 * 1024;
/// What is taken cannot be overtaken any more, and what is urgent may share a record with what is not: it takes no longer to
/// cross than this …
const LINK_TIME: Duration = Duration::from_millis(10);
/// … or than so much does.
const SHORT: usize = 3_900;

/// How long they may be on this carrier once much was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Longest(usize);

impl Longest {
    /// Nothing is known of the link.
    pub(super) const UNKNOWN: Longest = Longest(SHORT);

    /// On a link of this rate.
    pub(super) fn at(rate: BitRate) -> Longest {
        Longest(usize::try_from(rate.bytes_in(LINK_TIME).0).unwrap_or(FULL))
    }
}

/// Bytes that one lane has sent since it last had nothing to send.
#[derive(Debug, Default)]
pub(super) struct Run {
    bytes: usize,
    /// It had nothing to send when it was last asked.
    drained: bool,
}

impl Run {
    /// Bytes that the next record may hold, of which each of so many `busy` lanes sends one at a time over the same link.
    pub(super) fn room(&self, longest: Longest, busy: usize) -> usize {
        let longest = (longest.0 / busy.max(1)).clamp(SHORT, FULL);
        (self.bytes / PART).clamp(FIRST, longest)
    }

    /// So many went into a record. None, twice in a row, is a pause: after the first time whoever fills the lane was asked, too, and has
    /// put in the next piece if there is one.
    pub(super) fn sent(&mut self, bytes: usize) {
        if bytes == 0 && self.drained {
            self.bytes = 0;
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.drained = bytes == 0;
    }
}
