//! Who waits for whom on a link that is full, in virtual time: users, classes, tunnels and pages.

#![allow(clippy::unwrap_used)] // helpers of tests count as tests

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Priority};
use farhop_htotp::scheduler::{Pace, Place, Scheduler, StreamId};
use farhop_units::{BitRate, Bytes as ByteCount};

const START: Duration = Duration::ZERO;

fn place(class: Class, user: u64, urgency: u8, incremental: bool) -> Place {
    Place { class, user, priority: Priority { urgency, incremental }, asked: true }
}

/// Opens a stream with `size` bytes queued.
fn fill(scheduler: &mut Scheduler, id: u64, place: Place, size: usize) -> StreamId {
    scheduler.open(StreamId(id), place);
    scheduler.enqueue(StreamId(id), Bytes::from(vec![0; size]));
    StreamId(id)
}

/// Sends what may be sent at this moment.
fn drain(scheduler: &mut Scheduler, now: Duration) {
    while let Some(grant) = scheduler.poll_grant(now) {
        scheduler.written(grant.stream);
    }
}

/// The forward link of geo-hylas2.
const RATE: BitRate = BitRate::mbit(8);

/// What competes on a link, in virtual time.
struct Race {
    scheduler: Scheduler,
    now: Duration,
    /// Streams that always have something to send.
    endless: Vec<StreamId>,
}

impl Race {
    fn new() -> Race {
        let pace = Pace { rate: Some(RATE), ..Pace::default() };
        Race { scheduler: Scheduler::new(START, pace), now: START, endless: Vec::new() }
    }

    fn endless(&mut self, id: u64, place: Place, is_tunnel: bool) {
        self.scheduler.open(StreamId(id), place);
        if is_tunnel {
            self.scheduler.watch(StreamId(id));
        }
        self.endless.push(StreamId(id));
    }

    /// Goes on until `done`; the bytes of each stream meanwhile.
    fn until(&mut self, done: impl Fn(&Race) -> bool) -> HashMap<u64, usize> {
        let mut sent = HashMap::new();
        while !done(self) {
            for id in &self.endless {
                while self.scheduler.queued(*id) < 256 * 1024 {
                    self.scheduler.enqueue(*id, Bytes::from(vec![0; 16 * 1024]));
                }
            }
            while let Some(grant) = self.scheduler.poll_grant(self.now) {
                let size: usize = grant.segments.iter().map(Bytes::len).sum();
                *sent.entry(grant.stream.0).or_default() += size;
                self.scheduler.written(grant.stream);
            }
            let next = self.scheduler.next_wakeup(self.now).unwrap();
            self.now = next.max(self.now + Duration::from_micros(100));
        }
        sent
    }

    fn pass(&mut self, time: Duration) -> HashMap<u64, usize> {
        let end = self.now + time;
        self.until(|race| race.now >= end)
    }

    /// How long a page of 500 kB of this user takes, in multiples of what it takes alone.
    fn page(&mut self, id: u64, user: u64) -> f64 {
        const SIZE: u64 = 500_000;
        let asked = self.now;
        // A document, then what it needs, in browsers' urgencies.
        let parts = [(0, 1), (1, 2), (2, 3), (3, 4)].map(|(urgency, tenths)| {
            let part = fill(
                &mut self.scheduler,
                id * 10 + u64::from(urgency),
                place(Class::Web, user, urgency, false),
                (SIZE / 10 * tenths) as usize,
            );
            self.scheduler.finish(part);
            part
        });
        self.until(|race| parts.iter().all(|part| race.scheduler.queued(*part) == 0));
        let alone = RATE.time_for(ByteCount(SIZE)).as_secs_f64() / 0.95;
        (self.now - asked).as_secs_f64() / alone
    }
}

#[test]
fn one_greedy_user_does_not_slow_another_users_page() {
    let mut race = Race::new();
    // Twenty downloads as HTTP, all of the most urgent kind.
    for id in 0..20 {
        race.endless(id, place(Class::Web, 1, 0, false), false);
    }
    race.pass(Duration::from_secs(1));
    let beside = race.page(100, 2);
    assert!(beside <= 2.1, "half of the link is its own: {beside}");
    // Once they are seen to be downloads, nothing of it is theirs.
    race.pass(Duration::from_secs(250));
    let beside = race.page(101, 2);
    assert!(beside <= 1.2, "{beside}");
}

#[test]
fn one_bulk_tunnel_does_not_slow_the_same_users_page() {
    let mut race = Race::new();
    race.endless(1, place(Class::Web, 1, 3, true), true);
    race.pass(Duration::from_secs(3));
    let beside = race.page(100, 1);
    assert!(beside <= 1.2, "{beside}");
    // Nor does one that was said to be bulk from the start.
    let mut race = Race::new();
    race.endless(1, place(Class::Bulk, 1, 3, true), true);
    let beside = race.page(100, 1);
    assert!(beside <= 1.2, "{beside}");
}

#[test]
fn a_tunnel_that_pauses_is_at_its_place_again() {
    let mut race = Race::new();
    race.endless(1, place(Class::Web, 1, 3, true), true);
    race.pass(Duration::from_secs(1));
    assert_eq!(race.scheduler.rank(StreamId(1)), Some((Class::Web, 3)));
    race.pass(Duration::from_secs(2));
    assert_eq!(race.scheduler.rank(StreamId(1)), Some((Class::Web, 7)));
    race.pass(Duration::from_secs(8));
    assert_eq!(race.scheduler.rank(StreamId(1)), Some((Class::Bulk, 7)));
    race.endless.clear();
    while race.scheduler.queued(StreamId(1)) > 0 {
        race.now += Duration::from_millis(100);
        drain(&mut race.scheduler, race.now);
    }
    let mut later = |time| {
        race.now += time;
        race.scheduler.enqueue(StreamId(1), Bytes::from_static(b"a keystroke"));
        drain(&mut race.scheduler, race.now);
        race.scheduler.rank(StreamId(1)).unwrap()
    };
    assert_eq!(later(Duration::from_secs(1)), (Class::Bulk, 7), "a second is no pause");
    assert_eq!(later(Duration::from_secs(2)), (Class::Web, 3));
}

#[test]
fn what_has_a_class_of_its_own_keeps_it_however_much_it_sends() {
    // What keeps the carrier alive keeps to no pace, and is none that sends on and on.
    for class in [Class::Interactive, Class::Streaming, Class::Background] {
        let mut race = Race::new();
        race.endless(1, place(class, 1, 3, true), true);
        race.pass(Duration::from_secs(20));
        assert_eq!(race.scheduler.rank(StreamId(1)), Some((class, 3)));
    }
}

#[test]
fn what_is_behind_a_class_that_never_ends_has_a_twentieth_and_nothing_of_voice() {
    let sent = |first: Class| {
        let mut race = Race::new();
        race.endless(1, place(first, 1, 3, true), false);
        race.endless(2, place(Class::Bulk, 1, 3, true), false);
        race.endless(3, place(Class::Background, 1, 3, true), false);
        let sent = race.pass(Duration::from_secs(7));
        let all: usize = sent.values().sum();
        [2, 3].map(|id| sent.get(&id).map_or(0.0, |had| *had as f64 / all as f64))
    };
    for share in sent(Class::Web) {
        assert!((0.02..=0.03).contains(&share), "{share}");
    }
    assert_eq!(sent(Class::Expedited), [0.0, 0.0]);
}

#[test]
fn users_share_by_their_weights() {
    let mut race = Race::new();
    race.scheduler.set_weight(2, 300);
    race.scheduler.set_weight(3, 50);
    for user in 1..=3 {
        race.endless(user, place(Class::Bulk, user, 3, true), false);
    }
    let sent = race.pass(Duration::from_secs(60));
    let all: usize = sent.values().sum();
    for (user, share) in [(1, 1.0 / 4.5), (2, 3.0 / 4.5), (3, 0.5 / 4.5)] {
        let had = sent[&user] as f64 / all as f64;
        assert!((had / share - 1.0).abs() < 0.03, "user {user} had {had} and not {share}");
    }
    race.scheduler.set_weight(2, 100);
    race.scheduler.set_weight(3, 100);
    let sent = race.pass(Duration::from_secs(60));
    assert!(sent.values().all(|had| had.abs_diff(sent[&1]) < sent[&1] / 30), "{sent:?}");
}
