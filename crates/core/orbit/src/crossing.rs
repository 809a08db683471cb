//! A stretch without queue or rate, acted on: what it loses, and when the rest comes out of it.

use farhop_units::Bytes;
use std::time::Duration;

use crate::loss::Channel;
use crate::{Rng, Segment};

/// A [`Segment`] in use.
#[derive(Debug)]
pub(crate) struct Crossing {
    channel: Channel,
    timing: Rng,
    /// When the last packet came out.
    last: Duration,
}

impl Crossing {
    pub(crate) fn new(mut seeds: Rng) -> Self {
        Crossing { channel: Channel::new(seeds.fork()), timing: seeds, last: Duration::ZERO }
    }

    /// When a packet comes out that goes in at `at`; `None` if it is lost.
    pub(crate) fn cross(&mut self, segment: &Segment, at: Duration, size: Bytes) -> Option<Duration> {
        if self.channel.loses(&segment.loss, size) {
            return None;
        }
        let out = at + segment.delay + self.timing.up_to(segment.jitter);
        self.last = self.last.max(out);
        Some(self.last)
    }

    /// Lets packets out before those that went in earlier, as after a change of the segment.
    pub(crate) fn forget_order(&mut self) {
        self.last = Duration::ZERO;
    }
}
