//! A return link whose capacity is given out on demand, as DVB-RCS does (ETSI EN 301 790 §6.6, EN 301 545-2 §9, TS 101 545-3):
//! terminals ask the network control centre, which gives each the slots of every superframe. Here are the numbers; `terminal`
//! asks, `centre` gives, `frames` sends.
//!
//! ```text
//!   superframe   k            …            k + L              L = ⌈control round ÷ superframe⌉
//!   terminal     asks for what waits       sends in the slots that it was given
//!   centre               hears, gives ───► table of slots
//! ```

mod centre;
mod frames;
mod terminal;

use farhop_units::{BitRate, Bytes};
use std::time::Duration;

pub(crate) use frames::Frames;

/// A return link shared on demand.
#[derive(Debug, Clone, PartialEq)]
pub struct OnDemand {
    /// How long a superframe is: slots are given for one at a time.
    pub superframe: Duration,
    /// All that the link's terminals may send together.
    pub capacity: BitRate,
    /// What a slot holds. Capacity is given in whole slots.
    pub slot: Bytes,
    /// What each fragment of a packet costs within its slot.
    pub header: Bytes,
    /// From the beginning of the superframe in which a terminal asks to when its answer can be in force: to the centre and
    /// back, and what the centre takes.
    pub control_round: Duration,
    /// What each terminal is entitled to.
    pub entitlement: Entitlement,
    /// Superframes after which a rate that is not asked for again is no longer given.
    pub rbdc_timeout: u32,
    /// How requests get to the centre.
    pub signalling: Signalling,
    /// Terminals of ours: packets say which is theirs ([`crate::Label::terminal`]).
    pub terminals: u16,
    /// Terminals of others, who ask for capacity too.
    pub others: Option<Others>,
}

/// The categories of capacity that a terminal may have (EN 301 790 §6.6.1), given in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entitlement {
    /// Constant rate assignment: given always, unasked.
    pub cra: BitRate,
    /// Rate-based dynamic capacity: at most this rate, guaranteed while it is asked for.
    pub rbdc: BitRate,
    /// Volume-based dynamic capacity: what is left is given to those who ask for bytes.
    pub volume: Volume,
    /// Free capacity assignment: what still is left is given unasked.
    pub fca: bool,
}

/// How volumes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    /// Not at all.
    None,
    /// VBDC: each request adds to those before it.
    Added,
    /// A-VBDC: each request stands for all those before it, so that none can be lost for long.
    Absolute,
}

/// How requests get to the centre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signalling {
    /// The probability that a request is lost on its way.
    pub loss: f64,
    /// Slots for requests in each superframe, which terminals without slots of their own pick at random: what picks the same one is
    /// lost (EN 301 545-2 §9: slotted Aloha). `None` gives each terminal its own.
    pub contention: Option<u32>,
    /// What a request takes of the link, for which the slots for requests are kept free in each superframe, used or not. Where
    /// terminals contend for these, who has slots of its own sends it there, beside its packets (EN 301 790 §6.6.2: mini-slots and
    /// DULM).
    pub size: Bytes,
}

/// Load by other terminals, in packets of 1,000 bytes at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Others {
    /// How many.
    pub terminals: u16,
    /// What each sends on average.
    pub rate: BitRate,
}

/// Why a return link cannot be shared as it is described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemandError {
    /// A superframe of no time, or too many slots in it.
    #[error("a superframe takes 1 ms to 1 s and has 1 to 10000 slots, and this one has {0}")]
    Slots(u128),
    /// A slot that holds nothing.
    #[error("a slot has room for its fragments' headers and 1 byte at least")]
    Slot,
    /// More is promised than there is.
    #[error("the constant rates of all terminals are more than the capacity")]
    Constant,
    /// Nobody can ever send.
    #[error("a terminal is entitled to nothing: give it 'cra', 'rbdc', 'vbdc' or 'fca'")]
    Nothing,
}

/// One request, in the units of the centre.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    /// Slots in each superframe.
    Rate(u32),
    /// Bytes more.
    Add(u64),
    /// Bytes in all.
    Absolute(u64),
    /// Bytes that a terminal will need before it asks itself, says who is beside the centre, so many superframes ago; in place of what
    /// was said before.
    Foretold(u64, u64),
}

impl OnDemand {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), DemandError> {
        let slots = self.slots();
        if !(1..=10_000).contains(&slots)
            || self.superframe < Duration::from_millis(1)
            || self.superframe > Duration::from_secs(1)
        {
            return Err(DemandError::Slots(slots));
        }
        if self.slot <= self.header {
            return Err(DemandError::Slot);
        }
        let nanos = self.superframe.as_nanos();
        let constant = u128::from(self.entitlement.cra.0) * u128::from(self.all()) * nanos;
        let reserved = u128::from(self.reserved()) * 8 * 1_000_000_000;
        if constant.saturating_add(reserved) > u128::from(self.capacity.0) * nanos {
            return Err(DemandError::Constant);
        }
        let Entitlement { cra, rbdc, volume, fca } = self.entitlement;
        if cra.0 == 0 && self.slots_of(rbdc) == 0 && volume == Volume::None && !fca {
            return Err(DemandError::Nothing);
        }
        Ok(())
    }

    /// Superframes from a request to its answer.
    pub fn round(&self) -> u64 {
        let frames = self.control_round.as_nanos().div_ceil(self.superframe.as_nanos().max(1));
        u64::try_from(frames).unwrap_or(u64::MAX).max(1)
    }

    /// The first superframe whose slots can still be given by what the centre itself is told at `now`; `way` is the terminal's way to
    /// the centre, which is spared.
    fn soonest(&self, now: Duration, way: Duration) -> u64 {
        let table = now.saturating_add(self.control_round.saturating_sub(way));
        u64::try_from(table.as_nanos().div_ceil(self.superframe.as_nanos().max(1))).unwrap_or(u64::MAX)
    }

    /// Every terminal, ours and those of others.
    fn all(&self) -> u64 {
        u64::from(self.terminals.max(1)) + self.others.map_or(0, |others| u64::from(others.terminals))
    }

    /// Bytes of a superframe that are kept free for requests.
    fn reserved(&self) -> u64 {
        self.signalling.contention.map_or(self.all(), u64::from).saturating_mul(self.signalling.size.0)
    }

    /// Slots of a superframe that packets may have.
    fn slots(&self) -> u128 {
        self.slots_of(self.capacity).saturating_sub(self.reserved().div_ceil(self.slot.0.max(1)).into())
    }

    /// What so many requests take of the slots of a terminal that has some in this superframe.
    fn beside(&self, requests: usize) -> u64 {
        let size = if self.signalling.contention.is_some() { self.signalling.size.0 } else { 0 };
        size.saturating_mul(requests as u64)
    }

    /// Whole slots of this rate in a superframe.
    fn slots_of(&self, rate: BitRate) -> u128 {
        u128::from(rate.0) * self.superframe.as_nanos() / self.slot_cost()
    }

    /// A slot in bits × nanoseconds per second: what a rate saves up for one.
    fn slot_cost(&self) -> u128 {
        (u128::from(self.slot.0) * 8 * 1_000_000_000).max(1)
    }

    /// What a slot carries where one fragment fills it.
    fn payload(&self) -> u64 {
        self.slot.0.saturating_sub(self.header.0).max(1)
    }
}
