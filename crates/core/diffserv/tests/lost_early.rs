//! An overloaded class in virtual time: what has the highest drop precedence is lost first, and the others keep a short queue.

use std::time::Duration;

use farhop_diffserv::{Counted, Early, Losses};
use farhop_units::{BitRate, Bytes};

const PACKET: u64 = 1000;
const STEP: Duration = Duration::from_millis(1);
/// How often it is counted.
const SAMPLE: u32 = 100;

/// A plain FIFO that is served at a rate, before which packets are dropped early.
struct Queue {
    rate: BitRate,
    guaranteed: BitRate,
    /// Bytes; what has no room is lost.
    room: u64,
    early: Early,
}

/// What became of a precedence's packets: how many there were, and how many were lost.
#[derive(Default, Clone, Copy, Debug)]
struct Fate {
    sent: u32,
    lost: u32,
}

impl Fate {
    fn share(self) -> f64 {
        f64::from(self.lost) / f64::from(self.sent.max(1))
    }
}

impl Queue {
    fn new(kbit: u64) -> Queue {
        let rate = BitRate::kbit(kbit);
        let room = rate.bytes_in(Duration::from_millis(300)).0.max(8 * 1514);
        Queue { rate, guaranteed: BitRate(rate.0 / 4), room, early: Early::default() }
    }

    /// Offered rates by precedence in kbit/s, for so many seconds; what became of each after the first two, and the mean wait then.
    fn run(&mut self, offered: [u64; 3], seconds: u32) -> ([Fate; 3], Duration) {
        let mut fates = [Fate::default(); 3];
        let (mut waiting, mut credit, mut left) = (0u64, 0.0, 0u64);
        let (mut due, mut coin, mut seen) = ([0.0; 3], [0.0; 3], [0u64; 3]);
        let (mut losses, mut waits) = (Losses::default(), Vec::new());
        for step in 0..seconds * 1000 {
            let counts = step >= 2000;
            for (precedence, rate) in offered.into_iter().enumerate() {
                due[precedence] += rate as f64 / 8.0; // bytes in a millisecond
                while due[precedence] >= PACKET as f64 {
                    due[precedence] -= PACKET as f64;
                    seen[precedence] += PACKET;
                    // Evenly, in place of at random.
                    coin[precedence] +=
                        [0.0, f64::from(losses.medium), f64::from(losses.high)][precedence] / 100.0;
                    let is_early = coin[precedence] >= 1.0;
                    coin[precedence] -= if is_early { 1.0 } else { 0.0 };
                    let is_lost = is_early || waiting + PACKET > self.room;
                    waiting += if is_lost { 0 } else { PACKET };
                    fates[precedence].sent += u32::from(counts);
                    fates[precedence].lost += u32::from(counts && is_lost);
                }
            }
            credit += self.rate.0 as f64 / 8e3;
            while credit >= PACKET as f64 && waiting >= PACKET {
                (waiting, credit, left) = (waiting - PACKET, credit - PACKET as f64, left + PACKET);
            }
            credit = credit.min(2.0 * PACKET as f64);
            if step % SAMPLE == 0 {
                let counted = Counted {
                    left: Bytes(left),
                    waiting: Bytes(waiting),
                    medium: Bytes(seen[1]),
                    high: Bytes(seen[2]),
                };
                losses = self.early.handle(STEP * step, self.guaranteed, counted);
            }
            if counts {
                waits.push(self.rate.time_for(Bytes(waiting)));
            }
        }
        (fates, waits.iter().sum::<Duration>() / waits.len() as u32)
    }
}

#[test]
fn precedence_three_is_lost_before_two_and_two_before_one() {
    // kbit/s of the class, then of precedences 1 to 3; which of them lose.
    for (rate, offered, expected) in [
        (1000, [300, 300, 300], [0.0, 0.0, 0.0]),
        (1000, [500, 300, 800], [0.0, 0.0, 0.75]),
        (1000, [600, 800, 800], [0.0, 0.5, 1.0]),
        (1000, [0, 0, 4000], [0.0, 0.0, 0.75]),
        (8000, [6000, 1000, 8000], [0.0, 0.0, 0.875]),
        (256, [100, 60, 200], [0.0, 0.0, 0.52]),
        (1000, [0, 2000, 0], [0.0, 0.5, 0.0]),
    ] {
        let (fates, wait) = Queue::new(rate).run(offered, 20);
        for (fate, expected) in fates.iter().zip(expected) {
            let close = if expected == 0.0 { 0.02 } else { 0.08 };
            assert!(
                (fate.share() - expected).abs() <= close,
                "{rate} {offered:?}: {fates:?}, not {expected}"
            );
        }
        assert!(wait < Duration::from_millis(200), "{rate} {offered:?}: {wait:?}");
    }
}

#[test]
fn what_is_over_is_lost_no_more() {
    let mut queue = Queue::new(1000);
    queue.run([500, 0, 2000], 10);
    assert!(queue.early.losses().high > 50);
    let (fates, _) = queue.run([500, 0, 300], 10);
    assert_eq!((fates[2].lost, queue.early.losses()), (0, Losses::default()));
}

#[test]
fn counters_that_begin_anew_change_nothing() {
    let mut queue = Queue::new(1000);
    queue.run([500, 0, 2000], 10);
    let before = queue.early.losses();
    let anew = queue.early.handle(Duration::from_secs(11), queue.guaranteed, Counted::default());
    assert_eq!(anew, before);
}
