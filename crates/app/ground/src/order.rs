//! In which order promises are kept: by render urgency, then as they were found, with a bound on those under way, in all
//! and to one origin. What waits here can still be overtaken; what waits for a connection of the client cannot, and
//! would stand ahead of what the browser asks for itself. Guesses come last and few at a time. Pure.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Jobs that wait, and how many are under way.
#[derive(Debug)]
pub(crate) struct Order<J> {
    /// By urgency; within it first what was asked for, then the rest as it was found.
    waiting: BTreeMap<(u8, i64), (String, J)>,
    /// Begun only when nothing else waits.
    guesses: VecDeque<(String, J)>,
    found: i64,
    hurried: i64,
    under_way: HashMap<String, usize>,
    guesses_under_way: usize,
    total: usize,
}

/// What a job that is under way takes up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    origin: String,
    guess: bool,
}

/// Guesses under way at a time: most are of no use, and the hop is for what is.
const MOST_GUESSES: usize = 2;

impl<J> Default for Order<J> {
    fn default() -> Self {
        Order {
            waiting: BTreeMap::new(),
            guesses: VecDeque::new(),
            found: 0,
            hurried: 0,
            under_way: HashMap::new(),
            guesses_under_way: 0,
            total: 0,
        }
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

    /// Adds a guess to this origin.
    pub(crate) fn add_guess(&mut self, origin: String, job: J) {
        self.guesses.push_back((origin, job));
    }

    /// The job that `is` tells, if it still waits, is wanted at this urgency: it goes before all others of it, and is no
    /// guess any more.
    pub(crate) fn hurry(&mut self, urgency: u8, is: impl Fn(&J) -> bool) {
        let found = self.waiting.iter().find(|(_, (_, job))| is(job)).map(|(rank, _)| *rank);
        let guessed = self.guesses.iter().position(|(_, job)| is(job));
        let hurried = match (found, guessed) {
            (Some(rank), _) => self.waiting.remove(&rank).map(|job| (urgency.min(rank.0), job)),
            (None, Some(at)) => self.guesses.remove(at).map(|job| (urgency, job)),
            (None, None) => None,
        };
        if let Some((urgency, job)) = hurried {
            self.hurried += 1;
            self.waiting.insert((urgency, i64::MIN + self.hurried), job);
        }
    }

    /// The job that `is` tells, if it still waits, is found to be of this urgency, and no guess.
    pub(crate) fn raise(&mut self, urgency: u8, is: impl Fn(&J) -> bool) {
        let later = self.waiting.iter().find(|((rank, _), (_, job))| *rank > urgency && is(job));
        let raised = match (later.map(|(rank, _)| *rank), self.guesses.iter().position(|(_, job)| is(job))) {
            (Some(rank), _) => self.waiting.remove(&rank),
            (None, Some(at)) => self.guesses.remove(at),
            (None, None) => None,
        };
        if let Some((origin, job)) = raised {
            self.add(urgency, origin, job);
        }
    }

    /// The next job that may begin, and what is to be given to [`Order::ended`].
    pub(crate) fn begin(&mut self, limits: Limits) -> Option<(Slot, J)> {
        if self.total >= limits.total {
            return None;
        }
        let is_free = |origin: &String| self.under_way.get(origin).is_none_or(|count| *count < limits.origin);
        let guess = self.waiting.is_empty();
        let (origin, job) = if !guess {
            let rank = *self.waiting.iter().find(|(_, (origin, _))| is_free(origin))?.0;
            self.waiting.remove(&rank)?
        } else if self.guesses_under_way < MOST_GUESSES {
            let at = self.guesses.iter().position(|(origin, _)| is_free(origin))?;
            self.guesses.remove(at)?
        } else {
            return None;
        };
        *self.under_way.entry(origin.clone()).or_default() += 1;
        self.guesses_under_way += usize::from(guess);
        self.total += 1;
        Some((Slot { origin, guess }, job))
    }

    /// A job has ended.
    pub(crate) fn ended(&mut self, slot: &Slot) {
        self.total = self.total.saturating_sub(1);
        self.guesses_under_way -= usize::from(slot.guess);
        if let Some(count) = self.under_way.get_mut(&slot.origin) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&slot.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { total: 3, origin: 2 };

    /// Nothing under way, and these found, each from an origin of its own.
    fn found<const N: usize>(jobs: [(u8, &'static str); N]) -> Order<&'static str> {
        let mut order = Order::default();
        for (urgency, job) in jobs {
            order.add(urgency, job.into(), job);
        }
        order
    }

    /// What is begun by so many at a time that nothing waits, in order.
    fn begun(mut order: Order<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| order.begin(Limits { total: 9, origin: 9 })).map(|it| it.1).collect()
    }

    #[test]
    fn the_more_urgent_goes_first_then_the_earlier_found() {
        let order = found([(4, "image"), (1, "style"), (4, "second image"), (7, "icon")]);
        assert_eq!(begun(order), ["style", "image", "second image", "icon"]);
    }

    #[test]
    fn what_is_asked_for_goes_before_others_of_its_urgency() {
        let mut order = found([(2, "font"), (4, "image"), (4, "asked for"), (6, "lazy, asked for")]);
        order.hurry(4, |job| *job == "asked for");
        order.hurry(4, |job| *job == "lazy, asked for");
        order.hurry(4, |job| *job == "not here");
        assert_eq!(begun(order), ["font", "asked for", "lazy, asked for", "image"]);
    }

    #[test]
    fn what_is_found_to_be_more_urgent_goes_after_others_of_its_urgency() {
        let mut order = found([(7, "named in a script"), (1, "style"), (4, "image")]);
        order.add_guess("guess".into(), "guess");
        order.raise(1, |job| *job == "guess");
        order.raise(4, |job| *job == "named in a script");
        order.raise(7, |job| *job == "image");
        assert_eq!(begun(order), ["style", "guess", "image", "named in a script"]);
    }

    #[test]
    fn a_busy_origin_is_passed_over_until_something_of_it_has_ended() {
        let mut order = Order::default();
        for job in 0..3 {
            order.add(1, "busy".into(), job);
        }
        order.add(5, "other".into(), 3);
        let begun: Vec<_> = std::iter::from_fn(|| order.begin(LIMITS)).collect();
        assert_eq!(begun.iter().map(|it| it.1).collect::<Vec<_>>(), [0, 1, 3]);
        order.ended(&begun[2].0);
        assert!(order.begin(LIMITS).is_none());
        order.ended(&begun[0].0);
        assert_eq!(order.begin(LIMITS).map(|it| it.1), Some(2));
    }

    #[test]
    fn guesses_are_two_at_a_time_and_only_when_nothing_else_waits() {
        let mut order = Order::default();
        for job in 0..4 {
            order.add_guess("busy".into(), job);
        }
        order.add(7, "busy".into(), 9);
        order.hurry(4, |job| *job == 3);
        let limits = Limits { total: 9, origin: 9 };
        let begun: Vec<_> = std::iter::from_fn(|| order.begin(limits)).collect();
        assert_eq!(begun.iter().map(|it| it.1).collect::<Vec<_>>(), [3, 9, 0, 1]);
        order.ended(&begun[0].0);
        assert!(order.begin(limits).is_none(), "what was asked for is no guess");
        order.ended(&begun[2].0);
        assert_eq!(order.begin(limits).map(|it| it.1), Some(2));
    }
}
