//! What the unit tests of the controllers share: events of a path with 600 ms and packets of 1,200 bytes.

use std::time::Duration;

use farhop_units::Bytes;

use crate::{Ack, Controller, Loss};

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

/// The window in packets after each of `rounds` round trips in which all of it is acknowledged, the first of them `first` round
/// trips after the epoch.
pub(crate) fn packets_after_rounds(controller: &mut impl Controller, first: u64, rounds: u64) -> Vec<u64> {
    let play_one = |number: u64| {
        let packets = controller.window().0 / 1200;
        for packet in 0..packets {
            let now = RTT * number as u32 + RTT * packet as u32 / packets as u32;
            controller.on_ack(&Ack { now, sent: now.saturating_sub(RTT), ..ack_at(0) });
        }
        controller.window().0 / 1200
    };
    (first..first + rounds).map(play_one).collect()
}
