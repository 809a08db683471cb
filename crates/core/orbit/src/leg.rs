//! One direction of a link as numbers: what it is made of, from sender to receiver. No behaviour: `direction` acts on these.

use farhop_units::{BitRate, Bytes};
use std::sync::Arc;
use std::time::Duration;

use crate::{Loss, OnDemand, Profile, Schedule, Steps, Trace, Wifi};

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Leg {
    /// One-way propagation delay by satellite.
    pub delay: Duration,
    /// Rate of the serialiser, in bits of packet; `None` for a link that takes no time to send. Where the [`Leg::supply`]
    /// varies this is its mean.
    pub rate: Option<BitRate>,
    /// Bytes that may wait for a serialiser, the packet being sent included. Without a rate nothing waits.
    pub queue: Bytes,
    /// Random loss on the satellite: it strikes after the serialiser.
    pub loss: Loss,
    /// How the queue is kept.
    pub discipline: Discipline,
    /// What the serialiser can send when.
    pub supply: Supply,
    /// A service plan's limit: what exceeds it is dropped before it reaches the queue.
    pub policer: Option<Policer>,
    /// Most additional delay by satellite, uniform from zero; no packet overtakes another by it.
    pub jitter: Duration,
    /// Packets that others overtake.
    pub reordering: Option<Reordering>,
    /// Outages and handovers.
    pub schedule: Schedule,
    /// The stretch between the sender and the queue.
    pub before: Segment,
    /// The stretch between the satellite and the receiver.
    pub after: Segment,
}

/// A stretch on the ground, without queue or rate of its own but for those of a wireless LAN.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// One-way delay.
    pub delay: Duration,
    /// Most additional delay, uniform from zero; no packet overtakes another by it.
    pub jitter: Duration,
    /// Random loss.
    pub loss: Loss,
    /// A wireless LAN that is crossed first.
    pub wifi: Option<Wifi>,
}

/// What the serialiser can send when.
#[derive(Debug, Clone, PartialEq)]
pub enum Supply {
    /// [`Leg::rate`], always.
    Steady,
    /// Rates that change at known times: steps of adaptive coding and modulation, a fade.
    Steps(Arc<Steps>),
    /// Opportunities that someone recorded.
    Trace(Arc<Trace>),
    /// Slots given on demand. [`Leg::queue`] is each terminal's, and drop-tail.
    OnDemand(Arc<OnDemand>),
}

/// How a queue before a serialiser is kept. All hold [`Leg::queue`] at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// What finds no room is dropped.
    DropTail,
    /// As [`Discipline::DropTail`], and what finds more than this waiting is marked (RFC 3168 §5) if its sender knows marks.
    Mark(Bytes),
    /// Controlled delay, RFC 8289.
    CoDel(CoDel),
}

/// The parameters of RFC 8289.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// The standing delay that is accepted (§4.4: 5 to 10 % of the interval).
    pub target: Duration,
    /// For how long it must be exceeded: about a round trip (§4.3).
    pub interval: Duration,
    /// Marks instead of dropping what its sender allows to be marked.
    pub ecn: bool,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// What may pass in the long run.
    pub rate: BitRate,
    /// What may pass at once.
    pub burst: Bytes,
}

/// Packets that are held up while others pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reordering {
    /// The share of packets, `0.0..=1.0`.
    pub share: f64,
    /// How long each is held up.
    pub by: Duration,
}

impl Segment {
    /// A stretch without effect.
    pub const NONE: Segment =
        Segment { delay: Duration::ZERO, jitter: Duration::ZERO, loss: Loss::NONE, wifi: None };
}

impl Leg {
    /// A direction that neither delays, limits nor loses.
    pub const fn transparent() -> Self {
        Leg {
            delay: Duration::ZERO,
            rate: None,
            queue: Profile::SMALLEST_QUEUE,
            loss: Loss::NONE,
            discipline: Discipline::DropTail,
            supply: Supply::Steady,
            policer: None,
            jitter: Duration::ZERO,
            reordering: None,
            schedule: Schedule::NOTHING,
            before: Segment::NONE,
            after: Segment::NONE,
        }
    }

    /// From sender to receiver, for a packet that neither waits nor takes time to send, without jitter.
    pub fn one_way(&self) -> Duration {
        self.before.delay + self.schedule.delay(Duration::ZERO).unwrap_or(self.delay) + self.after.delay
    }

    /// The share of full-sized packets that is lost at random in the long run, on the satellite or on the ground.
    pub fn loss_share(&self) -> f64 {
        let shares = [&self.before.loss, &self.loss, &self.after.loss].map(|loss| loss.share(Bytes(1500)));
        shares.into_iter().fold(0.0, |lost, share| lost + share - lost * share)
    }

    /// The rate that a sender can count on whenever it sends; `None` where there is none or it varies.
    pub fn contract(&self) -> Option<BitRate> {
        self.rate.filter(|_| self.supply == Supply::Steady && self.policer.is_none())
    }
}
