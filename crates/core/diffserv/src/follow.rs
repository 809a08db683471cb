//! A rate that stays a little below that of a link which changes: rain, another modulation, capacity granted on demand. A queue in
//! the modem shows in the round trip, and who sees one sends less until it is gone; who sees none while sending at its rate
//! sends a little more. So do `sqm-autorate` and `cake-autorate` (OpenWrt), in whose terms this is: base, load, bufferbloat. How far
//! two echoes are pulled apart on their way says what the link carried between them (Keshav, 1991, packet pairs), so that
//! one step is enough.
//!
//! Pure: it is handed the time, what has left, and round trips of small packets that do not wait here.

use std::collections::VecDeque;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

/// The least round trip of so long is that of the empty path: ten minutes outlast a download.
const BASE_OVER: Duration = Duration::from_secs(600);
/// It is kept as the least of each minute.
const BASE_STEP: Duration = Duration::from_secs(60);
/// What leaves is counted over so long: one packet more or less shows little then.
const LOAD_OVER: Duration = Duration::from_secs(1);
/// Samples in a row that have to be late: one alone is a superframe, or somebody's processor.
const LATE: u32 = 2;
/// What is late for so long at the least rate waits for nothing that left here: the path has become longer.
const LONGER: Duration = Duration::from_secs(10);
/// Below so much of its rate nobody knows whether more would have gone.
const LOADED: f64 = 0.75;
/// Of what the link was found to carry.
const BELOW: f64 = 0.95;
/// What is added each second while there is no queue; ever more by each second since the last step, up to the last.
const AHEAD: (f64, f64, f64) = (0.005, 0.0015, 0.05);
/// A queue is to be gone by then, as far as at least so much of the rate still leaves.
const DRAINED_IN: f64 = 2.0;
const AT_LEAST: f64 = 0.4;
/// Echoes that come so close tell nothing of what went between them.
const APART: Duration = Duration::from_millis(50);

/// Between which rates, and what counts as a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Never less, whatever the round trip says.
    pub least: BitRate,
    /// Never more: what there is at best.
    pub most: BitRate,
    /// Round trip beyond the least that is a queue in the modem, and not its own unrest.
    pub queue: Duration,
}

/// The rate of a link, followed.
#[derive(Debug, Clone)]
pub struct Follower {
    bounds: Bounds,
    rate: f64,
    /// The least round trip of each of the last minutes, with its beginning.
    least: VecDeque<(Duration, Duration)>,
    /// What has left until when, of late.
    left: VecDeque<(Duration, u64)>,
    late: u32,
    /// Since when it has been late at the least rate.
    in_vain: Option<Duration>,
    /// What left before then left at another rate.
    stepped: Duration,
    /// What the link was found to carry, to go on a little below when its queue is gone.
    found: Option<f64>,
    /// The last echo: when it came, and its round trip.
    last: Option<(Duration, Duration)>,
}

impl Follower {
    /// Begins at the most.
    pub fn new(bounds: Bounds) -> Follower {
        Follower {
            bounds,
            rate: bounds.most.0 as f64,
            least: VecDeque::new(),
            left: VecDeque::new(),
            late: 0,
            in_vain: None,
            stepped: Duration::ZERO,
            found: None,
            last: None,
        }
    }

    /// The rate to send at now.
    pub fn rate(&self) -> BitRate {
        BitRate(self.rate as u64)
    }

    /// The least round trip, if there was one.
    pub fn base(&self) -> Option<Duration> {
        self.least.iter().map(|(_, least)| *least).min()
    }

    /// All that has left by `now`, counted from any beginning.
    pub fn handle_left(&mut self, now: Duration, all: Bytes) {
        // Counters begin anew with what they count.
        if self.left.back().is_some_and(|(_, before)| all.0 < *before) {
            self.left.clear();
        }
        self.left.push_back((now, all.0));
        while self.left.len() > 2 && self.left[1].0 + LOAD_OVER <= now {
            self.left.pop_front();
        }
    }

    /// A round trip that came to its end at `now`; the rate from now on.
    pub fn handle_round_trip(&mut self, now: Duration, round_trip: Duration) -> BitRate {
        let base = self.note(now, round_trip);
        let before = self.last.replace((now, round_trip));
        let passed = before.map_or(Duration::ZERO, |(then, _)| now.saturating_sub(then)).min(LOAD_OVER);
        let queue = round_trip.saturating_sub(base);
        self.late = if queue > self.bounds.queue { self.late + 1 } else { 0 };
        let load = self.load();
        if self.late >= LATE {
            if let Some(carried) = before.and_then(|before| self.carried(before, (now, round_trip))) {
                self.rate = carried * (1.0 - queue.as_secs_f64() / DRAINED_IN).max(AT_LEAST);
                (self.found, self.stepped) = (Some(carried), now);
            }
        } else if self.late == 0 {
            if let Some(found) = self.found.take() {
                (self.rate, self.stepped) = (self.rate.max(found * BELOW), now);
            } else if load.is_some_and(|load| load >= LOADED * self.rate) {
                let (first, more, most) = AHEAD;
                let since = now.saturating_sub(self.stepped).as_secs_f64();
                self.rate *= 1.0 + (first + more * since).min(most) * passed.as_secs_f64();
            }
        }
        self.rate = self.rate.clamp(self.bounds.least.0 as f64, self.bounds.most.0 as f64);
        if self.late == 0 || self.rate() > self.bounds.least {
            self.in_vain = None;
        } else if now >= self.in_vain.get_or_insert(now).saturating_add(LONGER) {
            self.least.clear();
            (self.late, self.in_vain) = (0, None);
        }
        self.rate()
    }

    fn note(&mut self, now: Duration, round_trip: Duration) -> Duration {
        match self.least.back_mut() {
            Some((since, least)) if now < *since + BASE_STEP => *least = (*least).min(round_trip),
            _ => self.least.push_back((now, round_trip)),
        }
        while self.least.front().is_some_and(|(since, _)| *since + BASE_OVER < now) {
            self.least.pop_front();
        }
        self.base().unwrap_or(round_trip)
    }

    /// What the link carried between two echoes, in bits/s: what left in the time between their departures, which it took the time
    /// between their arrivals for. `None` where they left at another rate than now, or nothing left: then the queue is not of
    /// what leaves here.
    fn carried(&self, before: (Duration, Duration), after: (Duration, Duration)) -> Option<f64> {
        let arrivals = after.0.checked_sub(before.0).filter(|time| *time >= APART)?;
        let since = before.0.checked_sub(before.1).filter(|since| *since >= self.stepped)?;
        let departures = after.0.saturating_sub(after.1).checked_sub(since)?;
        let load = self.load().filter(|load| *load > 0.0)?;
        Some(load * departures.as_secs_f64() / arrivals.as_secs_f64())
    }

    /// What has left of late, in bits/s.
    fn load(&self) -> Option<f64> {
        let (&(since, before), &(until, after)) = (self.left.front()?, self.left.back()?);
        let time = until.checked_sub(since).filter(|time| !time.is_zero())?;
        Some((after - before) as f64 * 8.0 / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(10);
    const BASE: Duration = Duration::from_millis(600);

    /// A modem with a queue behind what sends at the follower's rate, or less.
    struct Link {
        follower: Follower,
        now: Duration,
        /// Bits that wait in the modem.
        waiting: f64,
        sent: f64,
        carried: f64,
        /// Round trips under way: when each is there, and what it was.
        under_way: VecDeque<(Duration, Duration)>,
        worst: Duration,
    }

    impl Link {
        fn new() -> Link {
            let bounds = Bounds {
                least: BitRate::kbit(64),
                most: BitRate::kbit(512),
                queue: Duration::from_millis(30),
            };
            Link {
                follower: Follower::new(bounds),
                now: Duration::ZERO,
                waiting: 0.0,
                sent: 0.0,
                carried: 0.0,
                under_way: VecDeque::new(),
                worst: Duration::ZERO,
            }
        }

        /// Carries at `rate` for `time`, with so much wanted.
        fn run(&mut self, time: Duration, rate: BitRate, wanted: BitRate) {
            let end = self.now + time;
            (self.carried, self.worst) = (0.0, Duration::ZERO);
            let mut steps = 0u32;
            while self.now < end {
                self.now += STEP;
                steps += 1;
                let leaves = self.follower.rate().0.min(wanted.0) as f64 * STEP.as_secs_f64();
                self.sent += leaves;
                self.waiting += leaves;
                let goes = self.waiting.min(rate.0 as f64 * STEP.as_secs_f64());
                self.waiting -= goes;
                self.carried += goes;
                let queue = Duration::from_secs_f64(self.waiting / rate.0 as f64);
                self.worst = self.worst.max(queue);
                // A probe each half second.
                if steps.is_multiple_of(50) {
                    self.follower.handle_left(self.now, Bytes((self.sent / 8.0) as u64));
                    self.under_way.push_back((self.now + BASE + queue, BASE + queue));
                }
                while self.under_way.front().is_some_and(|(at, _)| *at <= self.now) {
                    if let Some((_, round_trip)) = self.under_way.pop_front() {
                        self.follower.handle_round_trip(self.now, round_trip);
                    }
                }
            }
        }

        fn used(&self, time: Duration, rate: BitRate) -> f64 {
            self.carried / (rate.0 as f64 * time.as_secs_f64())
        }
    }

    const MINUTE: Duration = Duration::from_secs(60);
    const PLENTY: BitRate = BitRate::mbit(10);

    #[test]
    fn a_link_that_becomes_slower_is_followed_and_its_queue_goes() {
        let mut link = Link::new();
        link.run(MINUTE, BitRate::kbit(540), PLENTY);
        assert_eq!(link.follower.rate(), BitRate::kbit(512), "there is no queue");
        let half = BitRate::kbit(256);
        link.run(MINUTE, half, PLENTY);
        link.run(MINUTE, half, PLENTY);
        assert!(link.worst < Duration::from_millis(120), "a queue of {:?} after a minute", link.worst);
        assert!(link.used(MINUTE, half) > 0.85, "{} of it is used", link.used(MINUTE, half));
    }

    #[test]
    fn a_link_that_becomes_faster_is_used_again() {
        let mut link = Link::new();
        link.run(2 * MINUTE, BitRate::kbit(200), PLENTY);
        link.run(MINUTE, BitRate::kbit(540), PLENTY);
        link.run(MINUTE, BitRate::kbit(540), PLENTY);
        assert!(link.used(MINUTE, BitRate::kbit(512)) > 0.9, "{}", link.used(MINUTE, BitRate::kbit(512)));
    }

    #[test]
    fn without_a_load_nothing_is_learnt_of_the_rate() {
        let mut link = Link::new();
        link.run(2 * MINUTE, BitRate::kbit(200), PLENTY);
        let rate = link.follower.rate();
        link.run(MINUTE, BitRate::kbit(540), BitRate::kbit(20));
        assert!(link.follower.rate().0.abs_diff(rate.0) < rate.0 / 10, "{} was {rate}", link.follower.rate());
    }

    #[test]
    fn one_late_packet_is_no_queue_and_the_bounds_hold() {
        let mut link = Link::new();
        link.run(MINUTE, BitRate::kbit(540), PLENTY);
        let now = link.now;
        assert_eq!(link.follower.handle_round_trip(now, 2 * BASE), BitRate::kbit(512));
        assert_eq!(link.follower.handle_round_trip(now + STEP, BASE), BitRate::kbit(512));
        // A link that is all but cut is none to be measured.
        link.run(5 * MINUTE, BitRate::kbit(8), PLENTY);
        assert!((64_000..72_000).contains(&link.follower.rate().0), "{}", link.follower.rate());
    }

    #[test]
    fn a_path_that_has_become_longer_is_believed_in_time() {
        let mut link = Link::new();
        link.run(MINUTE, BitRate::kbit(540), PLENTY);
        let (mut follower, mut left) = (link.follower, 10_000_000);
        for second in 61..400 {
            let now = Duration::from_secs(second);
            left += follower.rate().0 / 8;
            follower.handle_left(now, Bytes(left));
            follower.handle_round_trip(now, BASE + Duration::from_millis(100));
        }
        assert_eq!(follower.base(), Some(BASE + Duration::from_millis(100)));
        assert!(follower.rate() >= BitRate::kbit(400), "{}", follower.rate());
    }
}
