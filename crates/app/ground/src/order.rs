//! In which order promises are kept: by render urgency, then as they were found, with a bound on those under way, in all
//! and to one origin. What waits here can still be overtaken; what waits for a connection of the client cannot, and
//! would stand ahead of what the browser asks for itself. Pure.

use std::collections::{BTreeMap, HashMap};

/// Jobs that wait, and how many are under way.
#[derive(Debug)]
pub(crate) struct Order<J> {
    /// By urgency; within it first what was asked for, then the rest as it was found.
    waiting: BTreeMap<(u8, i64), (String, J)>,
    found: i64,
    hurried: i64,
    under_way: HashMap<String, usize>,
    total: usize,
}

impl<J> Default for Order<J> {
    fn default() -> Self {
        Order { waiting: BTreeMap::new(), found: 0, hurried: 0, under_way: HashMap::new(), total: 0 }
    }
}

/// How many jobs may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// In all.
    pub(crate) total: usize,
    /// To one origin.
    pub(crate) origin: usize,
}

impl<J> Order<J> {
    /// Adds a job of this urgency (0 first) to this origin.
    pub(crate) fn add(&mut self, urgency: u8, origin: String, job: J) {
        self.waiting.insert((urgency, self.found), (origin, job));
        self.found += 1;
    }

    /// The job that `is` tells, if it still waits, is wanted at this urgency: it goes before all others of it.
    pub(crate) fn hurry(&mut self, urgency: u8, is: impl Fn(&J) -> bool) {
        let found = self.waiting.iter().find(|(_, (_, job))| is(job)).map(|(rank, _)| *rank);
        if let Some((before, rank)) = found
            && let Some(job) = self.waiting.remove(&(before, rank))
        {
            self.hurried += 1;
            self.waiting.insert((urgency.min(before), i64::MIN + self.hurried), job);
        }
    }

    /// The next job that may begin, and its origin, to be given to [`Order::ended`].
    pub(crate) fn begin(&mut self, limits: Limits) -> Option<(String, J)> {
        if self.total >= limits.total {
            return None;
        }
        let is_free = |origin: &String| self.under_way.get(origin).is_none_or(|count| *count < limits.origin);
        let rank = *self.waiting.iter().find(|(_, (origin, _))| is_free(origin))?.0;
        let (origin, job) = self.waiting.remove(&rank)?;
        *self.under_way.entry(origin.clone()).or_default() += 1;
        self.total += 1;
        Some((origin, job))
    }

    /// A job to this origin has ended.
    pub(crate) fn ended(&mut self, origin: &str) {
        self.total = self.total.saturating_sub(1);
        if let Some(count) = self.under_way.get_mut(origin) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { total: 3, origin: 2 };

    #[test]
    fn the_more_urgent_goes_first_then_the_earlier_found() {
        let mut order = Order::default();
        for (urgency, job) in [(4, "image"), (1, "style"), (4, "second image"), (7, "icon")] {
            order.add(urgency, job.into(), job);
        }
        let begun: Vec<_> =
            std::iter::from_fn(|| order.begin(Limits { total: 9, origin: 9 })).map(|it| it.1).collect();
        assert_eq!(begun, ["style", "image", "second image", "icon"]);
    }

    #[test]
    fn what_is_asked_for_goes_before_others_of_its_urgency() {
        let mut order = Order::default();
        for (urgency, job) in [(2, "font"), (4, "image"), (4, "asked for"), (6, "lazy, asked for")] {
            order.add(urgency, job.into(), job);
        }
        order.hurry(4, |job| *job == "asked for");
        order.hurry(4, |job| *job == "lazy, asked for");
        order.hurry(4, |job| *job == "not here");
        let begun: Vec<_> =
            std::iter::from_fn(|| order.begin(Limits { total: 9, origin: 9 })).map(|it| it.1).collect();
        assert_eq!(begun, ["font", "asked for", "lazy, asked for", "image"]);
    }

    #[test]
    fn a_busy_origin_is_passed_over_until_something_of_it_has_ended() {
        let mut order = Order::default();
        for job in 0..3 {
            order.add(1, "busy".into(), job);
        }
        order.add(5, "other".into(), 3);
        let begun: Vec<_> = std::iter::from_fn(|| order.begin(LIMITS)).map(|it| it.1).collect();
        assert_eq!(begun, [0, 1, 3]);
        order.ended("other");
        assert!(order.begin(LIMITS).is_none());
        order.ended("busy");
        assert_eq!(order.begin(LIMITS), Some(("busy".into(), 2)));
    }
}
