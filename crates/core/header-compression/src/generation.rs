//! Which setting up of a context a packet stands on. Numbers come again: here it is seen to that the other end has forgotten the
//! earlier one by then.

use std::collections::VecDeque;
use std::time::Duration;

use crate::GENERATIONS;

/// An end that has heard nothing of a generation for so long has forgotten it. Whole headers come more often.
pub(crate) const FORGOTTEN: Duration = Duration::from_secs(15);
/// The number of one that is over comes again after so long at the earliest: what the hop holds up for the rest of it does no harm.
const AGAIN: Duration = Duration::from_secs(30);

/// The generation of one context, and when the ones before were over.
#[derive(Debug, Clone, Default)]
pub(crate) struct Generation {
    number: u8,
    over: VecDeque<Duration>,
}

impl Generation {
    pub(crate) fn number(&self) -> u8 {
        self.number
    }

    /// Goes on to the next; `false` where its number is not free yet.
    pub(crate) fn advance(&mut self, now: Duration) -> bool {
        if self.over.len() == usize::from(GENERATIONS) {
            if self.over.front().is_some_and(|over| now.saturating_sub(*over) < AGAIN) {
                return false;
            }
            self.over.pop_front();
        }
        self.over.push_back(now);
        self.number = (self.number + 1) & GENERATIONS;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_again_when_the_other_end_has_long_forgotten_it() {
        let mut generation = Generation::default();
        let mut over = [None; 32];
        for now in (0..200_000).step_by(20).map(Duration::from_millis) {
            let before = usize::from(generation.number());
            if generation.advance(now) {
                over[before] = Some(now);
                let number = usize::from(generation.number());
                assert!(number != before && over[number].is_none_or(|over| now >= over + 2 * FORGOTTEN));
            }
        }
        assert!(over.iter().all(Option::is_some), "all numbers were used");
    }
}
