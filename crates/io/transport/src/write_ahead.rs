//! How much may be written into a carrier before it is acknowledged. On a clean link: what the
//! congestion window can use and 50 ms, so that later and more urgent writes are not stuck behind
//! earlier ones. For some round trips after a loss: twice that, since a stream's bytes behind a hole
//! stay counted until the hole is filled; without the room 1 % of random loss takes a third of the
//! rate. It must not write anything itself.

use std::time::Duration;

use farhop_units::Bytes;
use quinn::Connection;

use crate::path::{End, PathPlan};

/// A hole is noticed after one round trip and filled after two; one more for the acknowledgement.
const ROUND_TRIPS: u32 = 3;
/// Losses matter by the round trip, so looking more often than this is a waste.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(25);

/// Sets the send window of one connection as losses come and go.
#[derive(Debug)]
pub struct WriteAhead {
    clean: Bytes,
    hold: Duration,
    interval: Duration,
    next_look: Duration,
    lost: u64,
    roomy_until: Option<Duration>,
}

impl WriteAhead {
    /// For the connection of `end` on a path like `plan`, made with that plan's parameters.
    pub fn new(plan: &PathPlan, end: End) -> Self {
        WriteAhead {
            clean: plan.send_window(end),
            hold: (ROUND_TRIPS * plan.rtt).max(4 * SHORTEST_INTERVAL),
            interval: (plan.rtt / 8).max(SHORTEST_INTERVAL),
            next_look: Duration::ZERO,
            lost: 0,
            roomy_until: None,
        }
    }

    /// Call whenever the driver is awake anyway, with its clock.
    pub fn adapt(&mut self, now: Duration, connection: &Connection) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + self.interval;
        if let Some(window) = self.change(now, connection.stats().path.lost_packets) {
            connection.set_send_window(window.0);
        }
    }

    /// The new window when it changes, given how many packets were lost so far.
    fn change(&mut self, now: Duration, lost: u64) -> Option<Bytes> {
        if lost > self.lost {
            self.lost = lost;
            let was_clean = self.roomy_until.replace(now + self.hold).is_none();
            return was_clean.then_some(Bytes(2 * self.clean.0));
        }
        self.roomy_until.take_if(|until| *until <= now).map(|_| self.clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_orbit::Profile;

    #[test]
    fn room_is_made_at_the_first_loss_and_taken_back_after_three_clean_round_trips() {
        let plan = PathPlan::for_profile(&Profile::named("geo-hylas2").unwrap());
        let mut ahead = WriteAhead::new(&plan, End::Ground);
        let clean = plan.send_window(End::Ground);
        let at = |ms| Duration::from_millis(ms);
        assert_eq!(ahead.change(at(0), 0), None);
        assert_eq!(ahead.change(at(100), 2), Some(Bytes(2 * clean.0)));
        assert_eq!(ahead.change(at(1000), 3), None, "already roomy, held longer");
        assert_eq!(ahead.change(at(2900), 3), None);
        assert_eq!(ahead.change(at(2950), 3), Some(clean));
        assert_eq!(ahead.change(at(3000), 3), None);
        assert_eq!(ahead.change(at(3100), 4), Some(Bytes(2 * clean.0)));
    }
}
