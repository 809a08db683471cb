//! What a stream shows of itself by how much it sends: nobody says of a tunnel whether it is a conversation or a download.
//!
//! ```text
//!            [`LONG`] of link time in a row              [`LARGE`] in a row
//!   short ──────────────────────────────▶ long ───────────────────────────▶ large
//!     ▲    (tunnels)              behind the user's own    │    a class below pages
//!     └──────────────── nothing to send for [`PAUSE`] ─────┴──────────────────┘
//! ```

use std::time::Duration;

use farhop_units::BitRate;

use super::Place;
use crate::frame::Class;

/// A user's page does not wait for what is longer than this; within it a page inside a tunnel is mostly there.
const LONG: Duration = Duration::from_secs(2);
/// The same where nobody knows what the link takes; and bounds of it.
const LONG_WITHOUT_RATE: u64 = 1_000_000;
const LONGEST: (u64, u64) = (64_000, 4_000_000);
/// The classifier's "large downloads" (`core/diffserv`): beyond it nothing is a page any more.
const LARGE: u64 = 8_000_000;
/// Two seconds without anything to send, and what comes next is something else.
const PAUSE: Duration = Duration::from_secs(2);
/// Behind all that a user's pages ask for (RFC 9218 §4.1: 7 is the last).
const LAST_URGENCY: u8 = 7;

/// How far it has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Stage {
    #[default]
    Short,
    Long,
    Large,
}

/// What a stream has sent without a pause.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spree {
    sent: u64,
    last: Duration,
    /// Whether what it carries is unknown, so that [`Stage::Long`] counts for it.
    pub(super) is_unknown: bool,
}

impl Spree {
    /// Of what nobody can say what it carries.
    pub(super) fn unknown() -> Spree {
        Spree { is_unknown: true, ..Spree::default() }
    }

    /// It has sent so much more at `now`, over a link that takes about `rate`.
    pub(super) fn sent(&mut self, now: Duration, bytes: u64, rate: Option<BitRate>) -> Stage {
        self.sent = self.sent.saturating_add(bytes);
        self.last = now;
        let long = rate.map_or(LONG_WITHOUT_RATE, |rate| rate.bytes_in(LONG).0).clamp(LONGEST.0, LONGEST.1);
        match self.sent {
            LARGE.. => Stage::Large,
            sent if self.is_unknown && sent >= long => Stage::Long,
            _ => Stage::Short,
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.sent > 0
    }

    /// It has something to send again; whether that is after a pause.
    pub(super) fn goes_on(&mut self, now: Duration) -> bool {
        let is_over = self.sent > 0 && now.saturating_sub(self.last) >= PAUSE;
        if is_over {
            self.sent = 0;
        }
        is_over
    }
}

impl Stage {
    /// Where a stream that is to be at `place` stands at this stage. What has a class of its own keeps it.
    pub(super) fn place(self, place: Place) -> Place {
        let mut place = place;
        if place.class == Class::Web && self >= Stage::Long {
            place.priority.urgency = LAST_URGENCY;
            if self == Stage::Large {
                place.class = Class::Bulk;
            }
        }
        place
    }
}
