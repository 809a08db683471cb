//! What the unit tests of the controllers share: events of a path with 600 ms and packets of 1,200 bytes.

use std::time::Duration;

use farhop_units::Bytes;

use crate::{Ack, Loss};

pub(crate) const RTT: Duration = Duration::from_millis(600);

/// A packet acknowledged at `now_ms`, a round trip after it was sent.
pub(crate) fn ack_at(now_ms: u64) -> Ack {
    let now = Duration::from_millis(now_ms);
    Ack {
        now,
        sent: now.saturating_sub(RTT),
        bytes: Bytes(1200),
        in_flight: Bytes(0),
        app_limited: false,
        min_rtt: Some(RTT),
        rtt: RTT,
    }
}

/// A packet sent at `sent_ms` and missed at `now_ms`.
pub(crate) fn loss_at(now_ms: u64, sent_ms: u64) -> Loss {
    let at = Duration::from_millis;
    Loss { now: at(now_ms), sent: at(sent_ms), bytes: Bytes(1200), persistent: false }
}
