//! Auto-tuning: from what is measured of the long hop, and what settings say of it, to the windows, limits and timers
//! that fit it, each with its reason in a sentence. Pure: running totals and the time come in ([`Tuner::observe`]), and
//! what the peer reports ([`Tuner::hear`]); [`Parameters`] come out, and reports for the peer ([`Tuner::poll_report`]).
//!
//! What settings say wins over what is measured, and what is measured over what is assumed of a path that nobody knows.
//! A rate that was seen is no limit, since it may be all that was asked for: windows stay large enough for the assumed
//! rate, and grow with what is seen beyond it. That costs nothing on slow links, which cannot fill them.

mod decision;
mod known;
mod measure;
mod neighbours;
mod parameters;
mod reasons;
mod timers;
mod tuner;

pub use decision::{Applies, Decision, Figures, Sending, Told, Value};
pub use known::{ASSUMED_RATE, ASSUMED_ROUND_TRIP, Fact, Path, Set, Source};
pub use measure::{Measured, Meter, RoundTrip, Share, Totals};
pub use neighbours::Room;
pub use parameters::{MOST, MOST_STREAMS, Parameters, WRITE_AHEAD};
pub use reasons::{repairs, time_in_words};
pub use timers::{Liveness, Trips};
pub use tuner::{Report, Tuner};

/// Which end of the long hop this is; it decides which direction is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// Sends on the forward link.
    Ground,
    /// Sends on the return link.
    Remote,
}

impl End {
    /// The other one.
    #[must_use]
    pub fn opposite(self) -> End {
        match self {
            End::Ground => End::Remote,
            End::Remote => End::Ground,
        }
    }
}
