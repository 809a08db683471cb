//! A stretch on the ground, acted on: what it loses, and when the rest comes out of it.

use farhop_units::Bytes;
use std::time::Duration;

use crate::direction::DropReason;
use crate::loss::Channel;
use crate::wifi::Station;
use crate::{Rng, Segment};

/// A [`Segment`] in use.
#[derive(Debug)]
pub(crate) struct Crossing {
    channel: Channel,
    timing: Rng,
    station: Station,
    /// When the last packet came out.
    last: Duration,
}

impl Crossing {
    pub(crate) fn new(mut seeds: Rng) -> Self {
        // Of its own, and drawn from none of the others, which a seed had before.
        let station = Station::new(Rng::new(!seeds.clone().next_u64()));
        Crossing { channel: Channel::new(seeds.fork()), timing: seeds, station, last: Duration::ZERO }
    }

    /// When a packet comes out that goes in at `at`, or why it never does.
    pub(crate) fn cross(
        &mut self,
        segment: &Segment,
        at: Duration,
        size: Bytes,
    ) -> Result<Duration, DropReason> {
        if self.channel.loses(&segment.loss, size) {
            return Err(DropReason::Loss);
        }
        let over = match &segment.wifi {
            Some(wifi) => self.station.cross(wifi, at, size)?,
            None => at,
        };
        let out = over + segment.delay + self.timing.up_to(segment.jitter);
        self.last = self.last.max(out);
        Ok(self.last)
    }

    /// Lets packets out before those that went in earlier, as after a change of the segment.
    pub(crate) fn forget_order(&mut self) {
        self.last = Duration::ZERO;
        self.station.forget();
    }
}
