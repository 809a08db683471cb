//! What is known of a path, and from where: settings before measurements, measurements before assumptions. No sizes are
//! decided here.

use std::time::Duration;

use farhop_units::BitRate;
use serde::{Deserialize, Serialize};

use crate::{End, Measured};

/// The rate to be ready for in either direction where none is set: what GEO services sell today.
pub const ASSUMED_RATE: BitRate = BitRate::mbit(50);
/// The round trip to be ready for before one is measured: a geostationary satellite's.
pub const ASSUMED_ROUND_TRIP: Duration = Duration::from_millis(600);

/// What settings say of the long hop, at one end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set {
    /// The end that is tuned.
    pub end: End,
    /// Round-trip time of the empty path.
    pub round_trip: Option<Duration>,
    /// Rate of ground → remote.
    pub forward: Option<BitRate>,
    /// Rate of remote → ground.
    pub return_: Option<BitRate>,
    /// Losses may be made good by repairs beneath the carrier, so that one which seems lost may still come.
    pub repairs: bool,
}

impl Set {
    /// The rate of what this end sends.
    pub fn sending(&self) -> Option<BitRate> {
        match self.end {
            End::Ground => self.forward,
            End::Remote => self.return_,
        }
    }

    /// The rate of what it receives.
    pub fn receiving(&self) -> Option<BitRate> {
        Set { end: self.end.opposite(), ..*self }.sending()
    }
}

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Settings, a named profile among them.
    Set,
    /// The path itself.
    Measured,
    /// Nobody knows yet.
    Assumed,
    /// It is the same on every path.
    Fixed,
}

/// A number and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact<T> {
    /// The number.
    pub value: T,
    /// Who says so.
    pub source: Source,
}

/// The best that is known of a path, seen from one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Round-trip time of the empty path.
    pub round_trip: Fact<Duration>,
    /// The rate to be ready for of what this end sends. A smaller one was measured, maybe.
    pub sending: Fact<BitRate>,
    /// The same of what it receives.
    pub receiving: Fact<BitRate>,
    /// The rate that what this end sends has reached so far; the one to be ready for where none has been seen.
    pub reached: Fact<BitRate>,
    /// The rate of what it receives, where that is set: a path that has merely never brought more may be able to, so that nobody spares
    /// it for what was seen.
    pub answered: Option<Fact<BitRate>>,
}

impl Path {
    /// From what is set and what is measured.
    pub fn new(set: &Set, measured: &Measured) -> Path {
        let (set_rtt, seen) = (set.round_trip, measured.round_trip.map(|seen| seen.least));
        let sending = ready_for(set.sending(), measured.sending);
        Path {
            round_trip: match (set_rtt, seen) {
                (Some(value), _) => Fact { value, source: Source::Set },
                (None, Some(value)) => Fact { value, source: Source::Measured },
                (None, None) => Fact { value: ASSUMED_ROUND_TRIP, source: Source::Assumed },
            },
            sending,
            receiving: ready_for(set.receiving(), measured.receiving),
            reached: reached(set.sending(), measured.sending).unwrap_or(sending),
            answered: reached(set.receiving(), None),
        }
    }

    /// The larger rate.
    pub(crate) fn quicker(&self) -> Fact<BitRate> {
        if self.sending.value > self.receiving.value { self.sending } else { self.receiving }
    }
}

/// A rate as it is set or has been seen.
fn reached(set: Option<BitRate>, seen: Option<BitRate>) -> Option<Fact<BitRate>> {
    let set = set.map(|value| Fact { value, source: Source::Set });
    set.or(seen.map(|value| Fact { value, source: Source::Measured }))
}

/// A rate seen below the assumed one may be all that was asked for.
fn ready_for(set: Option<BitRate>, seen: Option<BitRate>) -> Fact<BitRate> {
    match (set, seen) {
        (Some(value), _) => Fact { value, source: Source::Set },
        (None, Some(value)) if value > ASSUMED_RATE => Fact { value, source: Source::Measured },
        (None, _) => Fact { value: ASSUMED_RATE, source: Source::Assumed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RoundTrip;

    const NOTHING: Set =
        Set { end: End::Remote, round_trip: None, forward: None, return_: None, repairs: false };

    #[test]
    fn settings_win_and_what_is_seen_wins_over_what_is_assumed() {
        let seen = Measured {
            round_trip: Some(RoundTrip { least: Duration::from_millis(40), spread: Duration::ZERO }),
            receiving: Some(BitRate::mbit(200)),
            sending: Some(BitRate::mbit(2)),
            ..Measured::default()
        };
        let path = Path::new(&NOTHING, &seen);
        assert_eq!(path.round_trip, Fact { value: Duration::from_millis(40), source: Source::Measured });
        assert_eq!(path.receiving, Fact { value: BitRate::mbit(200), source: Source::Measured });
        assert_eq!(path.sending, Fact { value: ASSUMED_RATE, source: Source::Assumed });
        assert_eq!(path.reached, Fact { value: BitRate::mbit(2), source: Source::Measured });
        assert_eq!(path.answered, None);
        assert_eq!(Path::new(&NOTHING, &Measured::default()).answered, None);
        let set =
            Set { return_: Some(BitRate::mbit(1)), round_trip: Some(Duration::from_secs(1)), ..NOTHING };
        let path = Path::new(&set, &seen);
        assert_eq!(path.sending, Fact { value: BitRate::mbit(1), source: Source::Set });
        assert_eq!(path.round_trip, Fact { value: Duration::from_secs(1), source: Source::Set });
    }
}
