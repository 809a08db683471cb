//! What a class never exceeds, whatever is left over: token buckets, one for each class that has a ceiling. What waits for one
//! stands aside, so that it holds up nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use farhop_units::BitRate;

use super::pace::{LARGEST_GRANT, SMALLEST_GRANT};
use super::turns::Who;
use crate::frame::Class;

/// What a class may save up, and send in one go.
const SAVED: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Default)]
pub(super) struct Ceilings {
    buckets: BTreeMap<Class, Bucket>,
    /// Streams and flows with something to send whose class may not.
    aside: BTreeSet<Who>,
}

struct Bucket {
    rate: BitRate,
    tokens: f64,
    filled: Duration,
}

impl Ceilings {
    /// These and no others, from now on.
    pub(super) fn set(&mut self, now: Duration, ceilings: &[(Class, BitRate)]) {
        self.buckets.retain(|class, _| ceilings.iter().any(|(other, _)| other == class));
        for (class, rate) in ceilings {
            let new = Bucket { rate: *rate, tokens: piece(*rate) as f64, filled: now };
            let bucket = self.buckets.entry(*class).or_insert(new);
            bucket.refill(now);
            bucket.rate = *rate;
        }
    }

    /// Those that stood aside and need not any more.
    pub(super) fn take_back(&mut self, now: Duration, class: impl Fn(Who) -> Option<Class>) -> Vec<Who> {
        if self.aside.is_empty() {
            return Vec::new();
        }
        self.buckets.values_mut().for_each(|bucket| bucket.refill(now));
        let (buckets, aside) = (&self.buckets, &mut self.aside);
        let opened =
            |who: &Who| class(*who).and_then(|class| buckets.get(&class)).is_none_or(Bucket::is_worth_it);
        let back: Vec<Who> = aside.iter().copied().filter(|who| opened(who)).collect();
        back.iter().for_each(|who| {
            aside.remove(who);
        });
        back
    }

    /// Whether this class has had what it may for now.
    pub(super) fn is_used_up(&mut self, now: Duration, class: Class) -> bool {
        let Some(bucket) = self.buckets.get_mut(&class) else { return false };
        bucket.refill(now);
        bucket.tokens <= 0.0
    }

    /// Puts a stream or a flow aside.
    pub(super) fn put_aside(&mut self, who: Who) {
        self.aside.insert(who);
    }

    /// Whether it stands aside.
    pub(super) fn is_aside(&self, who: Who) -> bool {
        self.aside.contains(&who)
    }

    /// It stands aside no more, whatever its class may.
    pub(super) fn forget(&mut self, who: Who) {
        self.aside.remove(&who);
    }

    /// Bytes that this class sends in one go at the most.
    pub(super) fn piece(&self, class: Class) -> usize {
        self.buckets.get(&class).map_or(LARGEST_GRANT, |bucket| piece(bucket.rate))
    }

    /// So many bytes of this class are sent.
    pub(super) fn take(&mut self, class: Class, bytes: usize) {
        if let Some(bucket) = self.buckets.get_mut(&class) {
            bucket.tokens -= bytes as f64;
        }
    }

    /// When the first of those aside may go on.
    pub(super) fn next_wakeup(
        &self,
        now: Duration,
        class: impl Fn(Who) -> Option<Class>,
    ) -> Option<Duration> {
        let classes: BTreeSet<Class> = self.aside.iter().filter_map(|who| class(*who)).collect();
        let waits =
            classes.iter().map(|class| self.buckets.get(class).map_or(Some(now), |bucket| bucket.due(now)));
        waits.flatten().min()
    }
}

impl Bucket {
    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.tokens = (self.tokens + passed * self.rate.0 as f64 / 8.0).min(piece(self.rate) as f64);
    }

    /// A packet's worth, so that nobody is woken for less.
    fn is_worth_it(&self) -> bool {
        self.tokens >= wanted(self.rate)
    }

    fn due(&self, now: Duration) -> Option<Duration> {
        let left = (wanted(self.rate) - self.tokens).max(0.0) * 8.0 / self.rate.0 as f64;
        // A rate of nothing never allows anything.
        let wait = Duration::try_from_secs_f64(left).ok()?;
        // Rounded up: who comes a nanosecond early would come for nothing.
        Some(now.max(self.filled.checked_add(wait)?.checked_add(Duration::from_nanos(1))?))
    }
}

fn piece(rate: BitRate) -> usize {
    (rate.bytes_in(SAVED).0 as usize).clamp(SMALLEST_GRANT, LARGEST_GRANT)
}

fn wanted(rate: BitRate) -> f64 {
    piece(rate) as f64 / 4.0
}
