//! One direction of the link: policer → stretch before → queue → serialiser → loss → air → stretch after → out.
//!
//! The fixed-rate drop-tail queue needs no queue object: `busy`, the moment at which the serialiser will have sent all it
//! accepted, says how much waits, and a packet's fate is known at once. All else goes through `queued`, event by event; what
//! the caller sees stays.

use farhop_units::{BitRate, Bytes};
use std::collections::VecDeque;
use std::time::Duration;

use crate::bucket::Bucket;
use crate::crossing::Crossing;
use crate::demand::Frames;
use crate::loss::Channel;
use crate::queued::Queued;
use crate::{Counters, Discipline, Leg, Rng, Supply};

/// Why a packet will not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// The queue had no room for it.
    Queue,
    /// It exceeded what the service plan lets through.
    Policer,
    /// Lost at random on the link.
    Loss,
    /// The link was cut, or is out by its schedule.
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
    /// On its way to a queue that decides later; counters and [`Direction::poll_transmit`] tell.
    Waiting,
    /// It will not arrive.
    Dropped(DropReason),
}

/// How urgent a packet is at a terminal that has a queue for each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Class {
    /// Real time: Expedited Forwarding (RFC 3246) and above.
    Expedited,
    /// Assured Forwarding (RFC 2597).
    Assured,
    /// Everything else.
    #[default]
    BestEffort,
}

impl Class {
    /// All, the most urgent first.
    pub const ALL: [Class; 3] = [Class::Expedited, Class::Assured, Class::BestEffort];
}

/// What the link reads off a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Label {
    /// Its class.
    pub class: Class,
    /// Which terminal sends it, where several share the link; counted from 0.
    pub terminal: u16,
    /// Whether it may be marked instead of dropped (RFC 3168 §5: ECT).
    pub ecn_capable: bool,
}

/// A packet that leaves the far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit<P> {
    /// When the model wants it out; a live caller compares this with its clock.
    pub due: Duration,
    /// Its size as handed in.
    pub size: Bytes,
    /// Whether a queue has marked it (RFC 3168 §5: CE): the caller, who knows its form, has to write that into it.
    pub marked: bool,
    /// The packet.
    pub packet: P,
}

/// A packet on its way through the link.
#[derive(Debug)]
pub(crate) struct Parcel<P> {
    pub(crate) size: Bytes,
    pub(crate) label: Label,
    pub(crate) marked: bool,
    pub(crate) packet: P,
}

/// What a queue has done with a packet.
#[derive(Debug)]
pub(crate) enum Outcome<P> {
    /// Its last bit left the serialiser.
    Sent { at: Duration, parcel: Parcel<P> },
    /// It was dropped.
    Dropped(Bytes),
}

/// What stands between the sender and the air.
#[derive(Debug)]
enum Line<P> {
    /// A fixed rate, or none: the serialiser has sent everything accepted so far at this time.
    Plain { busy: Duration },
    /// A queue that decides when a packet's turn comes.
    Queued(Box<Queued<P>>),
    /// Terminals that are given slots.
    Shared(Box<Frames<P>>),
}

impl<P> Line<P> {
    fn new(leg: &Leg, rng: Rng) -> Self {
        match (&leg.supply, leg.discipline, leg.rate) {
            (Supply::OnDemand(link), ..) => Line::Shared(Box::new(Frames::new(link, rng))),
            (Supply::Steady, Discipline::DropTail, _) | (Supply::Steady, _, None) => {
                Line::Plain { busy: Duration::ZERO }
            }
            _ => Line::Queued(Box::new(Queued::new(leg))),
        }
    }

    /// When something happens next in a queue.
    fn next(&self) -> Option<Duration> {
        match self {
            Line::Plain { .. } => None,
            Line::Queued(queued) => queued.next(),
            Line::Shared(frames) => frames.next(),
        }
    }

    /// Packets in a queue.
    fn len(&self) -> usize {
        match self {
            Line::Plain { .. } => 0,
            Line::Queued(queued) => queued.len(),
            Line::Shared(frames) => frames.len(),
        }
    }
}

/// One direction of a satellite link. See the crate's documentation for the calling order.
#[derive(Debug)]
pub struct Direction<P> {
    leg: Leg,
    policer: Bucket,
    before: Crossing,
    line: Line<P>,
    satellite: Channel,
    timing: Rng,
    after: Crossing,
    /// For the line.
    sharing: Rng,
    /// The latest arrival so far: without reordering no packet arrives before it.
    latest: Duration,
    /// Packets between serialiser and delivery; `due` never falls from front to back.
    air: VecDeque<Transmit<P>>,
    /// Since when the link is cut.
    cut: Option<Duration>,
    counters: Counters,
}

impl<P> Direction<P> {
    /// An idle direction. Equal seeds and equal inputs give equal outputs.
    pub fn new(leg: Leg, seed: u64) -> Self {
        // What came later draws from generators of its own, so that a seed loses the packets that it always lost.
        let mut others = Rng::new(!seed);
        Direction {
            policer: Bucket::default(),
            before: Crossing::new(others.fork()),
            satellite: Channel::new(Rng::new(seed)),
            timing: others.fork(),
            after: Crossing::new(others.fork()),
            line: Line::new(&leg, others.fork()),
            sharing: others,
            latest: Duration::ZERO,
            air: VecDeque::new(),
            cut: None,
            counters: Counters::default(),
            leg,
        }
    }

    /// Offers a packet of `size` that reaches the link at `now`.
    pub fn handle_packet(&mut self, now: Duration, size: Bytes, packet: P) -> Fate {
        self.handle_labelled(now, size, Label::default(), packet)
    }

    /// As [`Direction::handle_packet`], for a packet that says more of itself.
    pub fn handle_labelled(&mut self, now: Duration, size: Bytes, label: Label, packet: P) -> Fate {
        self.advance(now);
        if self.cut.is_some() {
            return self.drop(size, DropReason::Cut);
        }
        if self.leg.policer.as_ref().is_some_and(|policer| !self.policer.takes(policer, now, size)) {
            return self.drop(size, DropReason::Policer);
        }
        let at = match self.before.cross(&self.leg.before, now, size) {
            Ok(at) => at,
            Err(reason) => return self.drop(size, reason),
        };
        let parcel = Parcel { size, label, marked: false, packet };
        match &mut self.line {
            Line::Plain { .. } => {
                return match self.serialise(at, size) {
                    Some(sent) => self.launch(sent, parcel),
                    None => self.drop(size, DropReason::Queue),
                };
            }
            Line::Queued(queued) => queued.enter(at, parcel),
            Line::Shared(frames) => frames.enter(at, parcel),
        }
        self.advance(now);
        Fate::Waiting
    }

    /// Whoever knows that a terminal will soon have so much to send says so, and it may ask for the capacity ahead of the packets
    /// (TS 101 545-3 leaves that to the terminal's maker). Stands in place of what was announced for it before and counts for two
    /// control rounds; of no effect on other links.
    pub fn announce(&mut self, now: Duration, terminal: u16, bytes: Bytes) {
        self.advance(now);
        if let Line::Shared(frames) = &mut self.line {
            frames.announce(terminal, bytes);
        }
    }

    /// The same, said to the network control centre by who is beside it: the terminal's own way to the centre is spared, and its request
    /// cannot be lost. Counts where terminals are entitled to volumes.
    pub fn foretell(&mut self, now: Duration, terminal: u16, bytes: Bytes) {
        self.advance(now);
        let way = self.leg.delay;
        if let Line::Shared(frames) = &mut self.line {
            frames.foretell(now, way, terminal, bytes);
        }
    }

    /// What a terminal was given over the last control round, as packets see it; `None` where capacity is not given on demand.
    pub fn granted(&mut self, now: Duration, terminal: u16) -> Option<BitRate> {
        self.advance(now);
        match &self.line {
            Line::Shared(frames) => Some(frames.granted(terminal)),
            Line::Plain { .. } | Line::Queued(_) => None,
        }
    }

    /// When the packet's last bit leaves a plain serialiser; `None` if the queue has no room.
    fn serialise(&mut self, now: Duration, size: Bytes) -> Option<Duration> {
        let (Some(rate), Line::Plain { busy }) = (self.leg.rate, &mut self.line) else {
            return Some(now);
        };
        let start = (*busy).max(now);
        let backlog = rate.bytes_in(start - now) + size;
        if backlog > self.leg.queue {
            return None;
        }
        self.counters.queue_peak = self.counters.queue_peak.max(backlog);
        *busy = start.saturating_add(rate.time_for(size));
        Some(*busy)
    }

    /// Takes from the queue what its turn has come for by `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        loop {
            let (outcome, peak) = match &mut self.line {
                Line::Plain { .. } => return,
                Line::Queued(queued) => (queued.poll(now, &self.leg), queued.peak()),
                Line::Shared(frames) => {
                    let outcome = frames.poll(now, &self.leg);
                    self.counters.given += frames.given();
                    (outcome, frames.peak())
                }
            };
            self.counters.queue_peak = self.counters.queue_peak.max(peak);
            match outcome {
                Some(Outcome::Sent { parcel, .. }) if self.cut.is_some() => {
                    self.drop(parcel.size, DropReason::Cut);
                }
                Some(Outcome::Sent { at, parcel }) => {
                    self.launch(at, parcel);
                }
                Some(Outcome::Dropped(size)) => {
                    self.drop(size, DropReason::Queue);
                }
                None => return,
            }
        }
    }

    /// Sends what left the serialiser at `sent` through the air.
    fn launch(&mut self, sent: Duration, parcel: Parcel<P>) -> Fate {
        let Parcel { size, marked, packet, .. } = parcel;
        self.counters.sent.add(size);
        // Loss strikes after the serialiser: a lost packet has cost its capacity.
        if self.satellite.loses(&self.leg.loss, size) {
            return self.drop(size, DropReason::Loss);
        }
        let flown = sent
            .saturating_add(self.leg.schedule.delay(sent).unwrap_or(self.leg.delay))
            .saturating_add(self.timing.up_to(self.leg.jitter));
        if self.leg.schedule.is_out(sent) || self.leg.schedule.is_out(flown) {
            return self.drop(size, DropReason::Cut);
        }
        let landed = match self.after.cross(&self.leg.after, flown, size) {
            Ok(landed) => landed,
            Err(reason) => return self.drop(size, reason),
        };
        let late = self.leg.reordering.filter(|reordering| self.timing.chance(reordering.share));
        let due = match late {
            Some(reordering) => landed.saturating_add(reordering.by),
            None => {
                self.latest = self.latest.max(landed);
                self.latest
            }
        };
        let place = self.air.partition_point(|flight| flight.due <= due);
        self.air.insert(place, Transmit { due, size, marked, packet });
        Fate::UnderWay { due }
    }

    fn drop(&mut self, size: Bytes, reason: DropReason) -> Fate {
        let tally = match reason {
            DropReason::Queue => &mut self.counters.queue_drops,
            DropReason::Policer => &mut self.counters.policer_drops,
            DropReason::Loss => &mut self.counters.loss_drops,
            DropReason::Cut => &mut self.counters.cut_drops,
        };
        tally.add(size);
        Fate::Dropped(reason)
    }

    /// The next packet due by `now`; call until it gives `None`.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Transmit<P>> {
        self.advance(now);
        loop {
            let transmit = self.air.pop_front_if(|first| first.due <= now)?;
            // Due before the cut but polled late: it had already arrived.
            if self.cut.is_some_and(|since| transmit.due > since) {
                self.counters.cut_drops.add(transmit.size);
                continue;
            }
            self.counters.delivered.add(transmit.size);
            self.counters.marked += u64::from(transmit.marked);
            return Some(transmit);
        }
    }

    /// When [`Direction::poll_transmit`] has something to do next; it may then give nothing yet, and ask for a later time.
    pub fn next_wakeup(&self) -> Option<Duration> {
        // What leaves a queue is looked at when it can have arrived: nothing comes of it before, and packets may leave in many a slot.
        let soonest = self.leg.schedule.soonest().unwrap_or(self.leg.delay) + self.leg.after.delay;
        let queued = self.line.next().map(|at| at.saturating_add(soonest));
        self.air.front().map(|first| first.due).into_iter().chain(queued).min()
    }

    /// Cuts the link: what is offered from now on, what leaves a queue that decides late, and what would arrive before it is
    /// restored, is lost.
    pub fn cut(&mut self, now: Duration) {
        self.advance(now);
        self.cut.get_or_insert(now);
    }

    /// Ends a cut. Packets whose arrival fell into it are gone.
    pub fn restore(&mut self, now: Duration) {
        self.advance(now);
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
        self.advance(now);
        let latest = now + leg.one_way();
        for flight in &mut self.air {
            flight.due = flight.due.min(latest);
        }
        self.latest = self.latest.min(latest);
        self.before.forget_order();
        self.after.forget_order();
        let busy = match &self.line {
            Line::Plain { busy } => (*busy).min(now),
            Line::Queued(_) | Line::Shared(_) => now,
        };
        let mut line = Line::new(&leg, self.sharing.fork());
        if let Line::Plain { busy: fresh } = &mut line {
            *fresh = busy;
        }
        let waiting: Vec<Parcel<P>> = match std::mem::replace(&mut self.line, line) {
            Line::Plain { .. } => Vec::new(),
            Line::Queued(queued) => queued.release().collect(),
            Line::Shared(frames) => frames.release().collect(),
        };
        for Parcel { size, marked, packet, .. } in waiting {
            self.counters.sent.add(size);
            self.air.push_back(Transmit { due: latest, size, marked, packet });
        }
        self.leg = leg;
    }

    /// The leg in force.
    pub fn leg(&self) -> &Leg {
        &self.leg
    }

    /// Packets accepted and neither delivered nor lost so far.
    pub fn under_way(&self) -> usize {
        self.air.len() + self.line.len()
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
