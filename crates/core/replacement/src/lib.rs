//! What a full store gives up first. Each response has a worth, what is worth least goes first, and worth counts what the
//! long hop would have to do again: GreedyDual-Size-Frequency (L. Cherkasova, "Improving WWW Proxies Performance with
//! Greedy-Dual-Size-Frequency Caching Policy", HPL-98-69R1, 1998, equation 2), whose cost of a miss is here the time that
//! the link takes to bring the response across. It must not know files or databases; the order of what is held is its
//! caller's to keep.

use std::cmp::Ordering;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

/// Uses beyond this make nothing dearer: what all asked for last year must be able to go.
const MOST_USES: u32 = 1_000;
/// What cannot be validated when it is stale, and is stale sooner than this, is gone before anybody asks for it again.
const SHORTEST: Duration = Duration::from_secs(10);

/// How dear it is to lose a response: larger is dearer. Never negative, never infinite, so that it can be ordered and
/// written down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worth(f64);

impl Worth {
    /// A number of the same order, to be written down.
    pub fn to_bits(self) -> u64 {
        // The bits of floats that are not negative are ordered as they are (IEEE 754 §5.10).
        self.0.to_bits()
    }

    /// What [`to_bits`](Self::to_bits) gave; nothing for bits that it never gives.
    pub fn from_bits(bits: u64) -> Option<Worth> {
        let value = f64::from_bits(bits);
        (value.is_finite() && !value.is_sign_negative()).then_some(Worth(value))
    }
}

impl Eq for Worth {}

impl PartialOrd for Worth {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Worth {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What the long hop takes to bring a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Until the first byte.
    pub round_trip: Duration,
    /// At which the bytes follow.
    pub rate: BitRate,
}

impl Link {
    /// Time to bring a response again of which so many bytes, coded as they were, have crossed.
    pub fn cost(&self, crossed: Bytes) -> Duration {
        let bits = crossed.0.saturating_mul(8) as f64;
        self.round_trip + Duration::from_secs_f64(bits / self.rate.0.max(1) as f64)
    }
}

/// What is known of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// How often it has been asked for, counting the time it came.
    pub uses: u32,
    /// What it would take to bring it again: [`Link::cost`].
    pub cost: Duration,
    /// Room that it takes.
    pub size: Bytes,
}

/// The policy: what everything is worth from now on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replacement {
    /// `L` of the paper: the worth of what went last. What comes or is used now starts from it, so that what is not used
    /// any more is overtaken.
    age: Worth,
}

impl Default for Replacement {
    fn default() -> Self {
        Replacement { age: Worth(0.0) }
    }
}

impl Replacement {
    /// The policy as it was when its [`age`](Self::age) was written down.
    pub fn aged(age: Worth) -> Self {
        Replacement { age }
    }

    /// What [`aged`](Self::aged) needs.
    pub fn age(&self) -> Worth {
        self.age
    }

    /// What a response is worth now that it came or was used: `L + F × C / S`.
    pub fn worth(&self, response: &Response) -> Worth {
        let uses = f64::from(response.uses.clamp(1, MOST_USES));
        let per_byte = response.cost.as_secs_f64() / response.size.0.max(1) as f64;
        Worth((self.age.0 + uses * per_byte).min(f64::MAX))
    }

    /// What was worth the least has gone, or was not even taken in: everything else has aged by it.
    pub fn handle_gone(&mut self, worth: Worth) {
        self.age = self.age.max(worth);
    }
}

/// Whether a response can answer anything later: it stays fresh for a while, or can be validated when it is not.
pub fn can_answer_again(fresh: Duration, has_validator: bool) -> bool {
    has_validator || fresh >= SHORTEST
}
