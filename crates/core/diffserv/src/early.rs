//! How much of what has a higher drop precedence is dropped before it waits (RFC 2597 §2, active queue management): none while the
//! queue of its class is short; then as much as leaves the others room, all of precedence 3 before any of 2. What has precedence 1 is left
//! to the queue itself.
//!
//! What an assured class has of the link changes with what the others send, so that no rate can be named beforehand. It is measured:
//! what has left while packets waited. What came in besides that is too much, and a queue longer than it should be is taken off over
//! [`DRAINED_IN`].
//!
//! Pure: it is handed the time, and what was counted.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

/// The queue that is left standing: less would cost rate whenever a sample comes late, and a leaf that keeps each flow's queue short
/// (fq_codel over half a second) is not meddled with.
const STANDING: Duration = Duration::from_millis(75);
/// And at the least, since on slow links a packet takes as long.
const STANDING_AT_LEAST: Bytes = Bytes(3 * 1514);
/// What is longer is gone after this long, or after two samples.
const DRAINED_IN: f64 = 0.3;
const DRAINED_IN_SAMPLES: f64 = 2.0;
/// A sample in which less has left, in less time, says nothing yet: it is a few packets more or less.
const ENOUGH: Bytes = Bytes(10 * 1514);
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// Of what a sample says, so much counts at once: samples are short, and packets come in bursts.
const WEIGHT: f64 = 0.5;
/// Less is none.
const LEAST: f64 = 0.01;

/// What was counted of a class, from any beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// What has left.
    pub left: Bytes,
    /// What waits now.
    pub waiting: Bytes,
    /// What came with drop precedence 2, dropped or not.
    pub medium: Bytes,
    /// The same with 3.
    pub high: Bytes,
}

/// Hundredths of the packets of a drop precedence that are dropped before they wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Of precedence 2.
    pub medium: u8,
    /// Of precedence 3.
    pub high: u8,
}

/// What is dropped early of a class.
#[derive(Debug, Clone, Default)]
pub struct Early {
    before: Option<(Duration, Counted)>,
    medium: f64,
    high: f64,
}

impl Losses {
    /// Whether anything is dropped.
    pub fn are_any(self) -> bool {
        self != Losses::default()
    }
}

impl Early {
    /// What is to be dropped from now on, by what was counted at `now` of a class that has this rate whatever the others do.
    pub fn handle(&mut self, now: Duration, guaranteed: BitRate, counted: Counted) -> Losses {
        let (then, before) = *self.before.get_or_insert((now, counted));
        let time = now.saturating_sub(then);
        let grown = |of: fn(&Counted) -> Bytes| of(&counted).0.checked_sub(of(&before).0);
        let all = (grown(|it| it.left), grown(|it| it.medium), grown(|it| it.high));
        let (Some(left), Some(medium), Some(high)) = all else {
            // Counters begin anew with the rules that they are in.
            self.before = Some((now, counted));
            return self.losses();
        };
        if time.is_zero() || (left < ENOUGH.0 && time < LONG_ENOUGH) {
            return self.losses();
        }
        self.before = Some((now, counted));
        let time = time.as_secs_f64();
        let (left, medium, high) = (left as f64 / time, medium as f64 / time, high as f64 / time);
        let waiting = counted.waiting.0 as f64;
        let admitted = (left + (waiting - before.waiting.0 as f64) / time).max(0.0);
        let low = (admitted - medium * (1.0 - self.medium) - high * (1.0 - self.high)).max(0.0);
        // Bytes in a second.
        let served = left.max(guaranteed.0 as f64 / 8.0);
        let standing = (served * STANDING.as_secs_f64()).max(STANDING_AT_LEAST.0 as f64);
        let room = (served + (standing - waiting) / DRAINED_IN.max(DRAINED_IN_SAMPLES * time)).max(0.0);
        let too_much = low + medium + high - room;
        self.high = smoothed(self.high, part(too_much, high));
        self.medium = smoothed(self.medium, part(too_much - high, medium));
        self.losses()
    }

    /// What is dropped now.
    pub fn losses(&self) -> Losses {
        let hundredths = |part: f64| (part * 100.0).round().clamp(0.0, 100.0) as u8;
        Losses { medium: hundredths(self.medium), high: hundredths(self.high) }
    }
}

/// Which part of `of` has to go for `too_much` to be gone; where there is none of it, whether it would have to.
fn part(too_much: f64, of: f64) -> f64 {
    if too_much <= 0.0 {
        0.0
    } else if too_much >= of {
        1.0
    } else {
        too_much / of
    }
}

fn smoothed(before: f64, now: f64) -> f64 {
    let part = before + (now - before) * WEIGHT;
    if part < LEAST { 0.0 } else { part }
}
