//! One direction of the link: queue → serialiser → (loss) → air → out.
//!
//! The fixed-rate queue needs no queue object: `busy`, the moment at which the serialiser will have sent
//! all it accepted, says how much waits. Capacity that varies in time (grants, fades) replaces only
//! `serialise`; what the caller sees stays.

use farhop_units::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

use crate::{Counters, Leg, Rng};

/// Why a packet will not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The queue had no room for it.
    Queue,
    /// Lost at random on the link.
    Loss,
    /// The link was cut.
    Cut,
}

/// What became of a packet offered to the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Under way; it leaves the far end at `due` unless the link is cut by then.
    UnderWay {
        /// When it arrives.
        due: Duration,
    },
    /// It will not arrive.
    Dropped(DropReason),
}

/// A packet that leaves the far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit<P> {
    /// When the model wants it out; a live caller compares this with its clock.
    pub due: Duration,
    /// Its size as handed in.
    pub size: Bytes,
    /// The packet.
    pub packet: P,
}

/// One direction of a satellite link. See the crate's documentation for the calling order.
#[derive(Debug)]
pub struct Direction<P> {
    leg: Leg,
    /// The serialiser has sent everything accepted so far at this time.
    busy: Duration,
    /// Packets between acceptance and delivery; `due` never falls from front to back.
    air: VecDeque<Transmit<P>>,
    /// Since when the link is cut.
    cut: Option<Duration>,
    loss: Rng,
    counters: Counters,
}

impl<P> Direction<P> {
    /// An idle direction. Equal seeds and equal inputs give equal outputs.
    pub fn new(leg: Leg, seed: u64) -> Self {
        Direction {
            leg,
            busy: Duration::ZERO,
            air: VecDeque::new(),
            cut: None,
            loss: Rng::new(seed),
            counters: Counters::default(),
        }
    }

    /// Offers a packet of `size` that reaches the link at `now`.
    pub fn handle_packet(&mut self, now: Duration, size: Bytes, packet: P) -> Fate {
        if self.cut.is_some() {
            self.counters.cut_drops.add(size);
            return Fate::Dropped(DropReason::Cut);
        }
        let Some(sent) = self.serialise(now, size) else {
            self.counters.queue_drops.add(size);
            return Fate::Dropped(DropReason::Queue);
        };
        self.counters.sent.add(size);
        // Loss strikes after the serialiser: a lost packet has cost its capacity.
        if self.loss.chance(self.leg.loss) {
            self.counters.loss_drops.add(size);
            return Fate::Dropped(DropReason::Loss);
        }
        let due = sent + self.leg.delay;
        self.air.push_back(Transmit { due, size, packet });
        Fate::UnderWay { due }
    }

    /// When the packet's last bit leaves the serialiser; `None` if the queue has no room.
    fn serialise(&mut self, now: Duration, size: Bytes) -> Option<Duration> {
        let Some(rate) = self.leg.rate else {
            return Some(now);
        };
        let start = self.busy.max(now);
        let backlog = rate.bytes_in(start - now) + size;
        if backlog > self.leg.queue {
            return None;
        }
        self.counters.queue_peak = self.counters.queue_peak.max(backlog);
        self.busy = start.saturating_add(rate.time_for(size));
        Some(self.busy)
    }

    /// The next packet due by `now`; call until it gives `None`.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Transmit<P>> {
        loop {
            let transmit = self.air.pop_front_if(|first| first.due <= now)?;
            // Due before the cut but polled late: it had already arrived.
            if self.cut.is_some_and(|since| transmit.due > since) {
                self.counters.cut_drops.add(transmit.size);
                continue;
            }
            self.counters.delivered.add(transmit.size);
            return Some(transmit);
        }
    }

    /// When [`Direction::poll_transmit`] has something to do next.
    pub fn next_wakeup(&self) -> Option<Duration> {
        self.air.front().map(|first| first.due)
    }

    /// Cuts the link: what is offered from now on, and what would arrive before it is restored, is lost.
    pub fn cut(&mut self, now: Duration) {
        self.cut.get_or_insert(now);
    }

    /// Ends a cut. Packets whose arrival fell into it are gone.
    pub fn restore(&mut self, now: Duration) {
        let Some(since) = self.cut.take() else {
            return;
        };
        let counters = &mut self.counters;
        self.air.retain(|flight| {
            let lost = flight.due > since && flight.due <= now;
            if lost {
                counters.cut_drops.add(flight.size);
            }
            !lost
        });
    }

    /// Whether the link is cut.
    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Goes over to another leg while packets are under way. None overtakes another: what is under way
    /// arrives no later than a packet sent now over the new leg, and the queue is let go.
    pub fn switch(&mut self, now: Duration, leg: Leg) {
        self.leg = leg;
        self.busy = self.busy.min(now);
        let latest = now + leg.delay;
        for flight in &mut self.air {
            flight.due = flight.due.min(latest);
        }
    }

    /// The leg in force.
    pub fn leg(&self) -> &Leg {
        &self.leg
    }

    /// Packets accepted and neither delivered nor lost so far.
    pub fn under_way(&self) -> usize {
        self.air.len()
    }

    /// Counters since the start or the last [`Direction::take_counters`].
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Reads the counters and starts them afresh.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}
