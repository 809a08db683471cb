//! What was invalidated of late, for what was asked for before and comes after (RFC 9111 §4.4). Bounded: of what is forgotten it
//! is known when the last of it was, and nothing that was asked for by then is taken for right. The caller passes the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

/// URLs of which it is remembered.
pub(crate) const INVALIDATIONS: usize = 4096;

/// See the module.
#[derive(Default)]
pub(crate) struct Invalidations {
    /// When each was invalidated last.
    of: HashMap<Arc<str>, Told>,
    /// By when they were told of: the first goes first.
    order: BTreeMap<u64, Arc<str>>,
    /// The last invalidation of all that are forgotten.
    forgotten: Option<SystemTime>,
    next: u64,
}

#[derive(Clone, Copy)]
struct Told {
    number: u64,
    at: SystemTime,
}

impl Invalidations {
    /// What was asked for of this URL until now is not to be held.
    pub(crate) fn note(&mut self, url: Arc<str>, at: SystemTime) {
        self.next += 1;
        let told = Told { number: self.next, at };
        if let Some(before) = self.of.insert(Arc::clone(&url), told) {
            self.order.remove(&before.number);
        }
        self.order.insert(told.number, url);
        if self.order.len() > INVALIDATIONS
            && let Some((_, url)) = self.order.pop_first()
            && let Some(gone) = self.of.remove(&url)
        {
            self.forgotten = self.forgotten.max(Some(gone.at));
        }
    }

    /// Whether what was asked for at `requested_at` may be of before an invalidation of its URL.
    pub(crate) fn is_outdated(&mut self, url: &str, requested_at: SystemTime, now: SystemTime) -> bool {
        let own = self.of.get_mut(url).map(|told| &mut told.at);
        let times = own.into_iter().chain(&mut self.forgotten);
        times.fold(false, |is_outdated, at| {
            // Where the clock has gone back, nobody knows of what was asked for until now; of what comes later everyone does.
            *at = now.min(*at);
            is_outdated || requested_at <= *at || requested_at > now
        })
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    #[test]
    fn what_was_asked_for_before_its_url_was_invalidated_is_outdated_and_what_comes_after_is_not() {
        let mut invalidations = Invalidations::default();
        invalidations.note("a".into(), at(10));
        let mut outdated = |url: &str, asked| invalidations.is_outdated(url, at(asked), at(30));
        assert!(outdated("a", 9) && outdated("a", 10) && !outdated("a", 11));
        assert!(!outdated("b", 9));
    }

    #[test]
    fn what_is_forgotten_makes_doubtful_whatever_was_asked_for_before_it() {
        let mut invalidations = Invalidations::default();
        invalidations.note("a".into(), at(10));
        // The same one again and again takes no room.
        (0..2 * INVALIDATIONS).for_each(|_| invalidations.note("b".into(), at(11)));
        assert_eq!((invalidations.len(), invalidations.forgotten), (2, None));
        (0..INVALIDATIONS).for_each(|number| invalidations.note(format!("{number}").into(), at(12)));
        assert_eq!((invalidations.len(), invalidations.forgotten), (INVALIDATIONS, Some(at(11))));
        let mut outdated = |url: &str, asked| invalidations.is_outdated(url, at(asked), at(30));
        assert!(outdated("a", 9) && outdated("never", 9) && outdated("never", 11) && !outdated("never", 12));
    }

    #[test]
    fn a_clock_that_has_gone_back_makes_nothing_doubtful_for_long() {
        let mut invalidations = Invalidations::default();
        (0..=INVALIDATIONS).for_each(|number| invalidations.note(format!("{number}").into(), at(1000)));
        for url in ["1", "never"] {
            assert!(invalidations.is_outdated(url, at(9), at(20)), "{url}");
            assert!(invalidations.is_outdated(url, at(999), at(20)), "{url}: it may have been before");
            assert!(!invalidations.is_outdated(url, at(21), at(22)), "{url}");
        }
    }
}
