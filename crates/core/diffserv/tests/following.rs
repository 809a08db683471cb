//! A link that changes and a modem with a queue behind what follows it, in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use farhop_diffserv::{Bounds, Follower};
use farhop_units::{BitRate, Bytes};

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
        let bounds =
            Bounds { least: BitRate::kbit(64), most: BitRate::kbit(512), queue: Duration::from_millis(30) };
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
