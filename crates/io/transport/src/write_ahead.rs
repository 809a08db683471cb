//! How much may be written into a carrier before it is acknowledged. On a clean link: what the
//! congestion window can use and 50 ms, so that later and more urgent writes are not stuck behind
//! earlier ones. For some round trips after a loss: twice that, since a stream's bytes behind a hole
//! stay counted until the hole is filled; without the room 1 % of random loss takes a third of the
//! rate. It must not write anything itself.

use std::time::Duration;

use farhop_congestion::Phase;
use farhop_htotp::scheduler::Pace;
use farhop_tuning::{Measured, WRITE_AHEAD};
use farhop_units::Bytes;
use quinn::Connection;

use crate::congestion::{self, Driven};
use crate::path::{End, PathPlan};

/// A hole is noticed after one round trip and filled after two; one more for the acknowledgement.
const ROUND_TRIPS: u32 = 3;
/// Losses matter by the round trip, so looking more often than this is a waste.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(25);

/// Less is no use even on the slowest path.
const SMALLEST: Bytes = Bytes(64 << 10);
/// A window is set anew when it has changed by more than this part of it.
const STEP: u64 = 16;

/// Sets the send window of one connection as its congestion window and its losses change, and says how fast it may be
/// written to.
#[derive(Debug)]
pub struct WriteAhead {
    clean: Bytes,
    /// It is never more than this.
    most: Bytes,
    /// What the connection was last told.
    set: Bytes,
    hold: Duration,
    interval: Duration,
    next_look: Duration,
    lost: u64,
    room: Option<Room>,
    pace: Option<Pace>,
}

/// Room beside what is lost and still counts.
#[derive(Debug, Clone, Copy)]
struct Room {
    until: Duration,
    /// How often the clean window.
    times: u64,
}

impl WriteAhead {
    /// For the connection of `end` on a path like `plan`, made with that plan's parameters.
    pub fn new(plan: &PathPlan, end: End) -> Self {
        let clean = plan.send_window(end);
        WriteAhead {
            clean,
            most: plan.parameters(end, &Measured::default()).send_most,
            set: clean,
            hold: (ROUND_TRIPS * plan.rtt).max(4 * SHORTEST_INTERVAL),
            interval: (plan.rtt / 8).max(SHORTEST_INTERVAL),
            next_look: Duration::ZERO,
            lost: 0,
            room: None,
            pace: None,
        }
    }

    /// Call whenever the driver is awake anyway, with its clock; gives the pace of writes when it changes.
    pub fn adapt(&mut self, now: Duration, connection: &Connection) -> Option<Pace> {
        if now < self.next_look {
            return None;
        }
        self.next_look = now + self.interval;
        let path = connection.stats().path;
        let driven = congestion::driven(connection)?;
        // Before a path is known its window may jump at any time: what the plan gives is kept until then.
        if driven.phase != Phase::Reconnaissance {
            self.clean = clean(&driven, path.rtt).min(self.most);
        }
        if let Some(window) = self.change(now, path.lost_packets) {
            connection.set_send_window(window.0);
        }
        let pace = Pace { rate: driven.pacing, ..Pace::default() };
        (self.pace.replace(pace) != Some(pace)).then_some(pace)
    }

    /// From now on it is never more than `most`.
    pub fn set_most(&mut self, most: Bytes) {
        self.most = most;
    }

    /// What may be written ahead now.
    pub fn window(&self) -> Bytes {
        self.set
    }

    /// What was written before an outage counts until it is acknowledged, twice the clean window at the most: makes room
    /// beside it.
    pub fn wake(&mut self, now: Duration, connection: &Connection) {
        self.room = Some(Room { until: now + self.hold, times: 3 });
        self.set = Bytes(3 * self.clean.0);
        connection.set_send_window(self.set.0);
    }

    /// The new window when it changes, given how many packets were lost so far.
    fn change(&mut self, now: Duration, lost: u64) -> Option<Bytes> {
        if lost > self.lost {
            self.lost = lost;
            let times = self.room.map_or(2, |room| room.times);
            self.room = Some(Room { until: now + self.hold, times });
        } else {
            self.room.take_if(|room| room.until <= now);
        }
        let wanted = Bytes(self.room.map_or(1, |room| room.times) * self.clean.0);
        (wanted.0.abs_diff(self.set.0) > self.set.0 / STEP).then(|| {
            self.set = wanted;
            wanted
        })
    }
}

/// What the congestion window can use, before it has grown again, and 50 ms of it.
fn clean(driven: &Driven, rtt: Duration) -> Bytes {
    let usable = if driven.is_searching { 2 * driven.window.0 } else { driven.window.0 };
    let ahead = match driven.pacing {
        Some(rate) => rate.bytes_in(WRITE_AHEAD).0,
        None => {
            (driven.window.0 as f64 * WRITE_AHEAD.as_secs_f64() / rtt.max(WRITE_AHEAD).as_secs_f64()) as u64
        }
    };
    Bytes(usable + ahead).max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_congestion::Choice;
    use farhop_orbit::Profile;
    use farhop_units::BitRate;

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

    #[test]
    fn a_window_that_may_double_is_kept_fed_and_one_that_stands_is_not_flooded() {
        let rtt = Duration::from_millis(500);
        let standing = Driven {
            choice: Choice::Bbr,
            phase: Phase::Normal,
            window: Bytes(500_000),
            pacing: None,
            is_searching: false,
        };
        assert_eq!(clean(&standing, rtt), Bytes(550_000));
        assert_eq!(clean(&Driven { is_searching: true, ..standing }, rtt), Bytes(1_050_000));
        let paced = Driven { pacing: Some(BitRate::mbit(8)), ..standing };
        assert_eq!(clean(&paced, rtt), Bytes(550_000));
    }
}
