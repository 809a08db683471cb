//! Hosts that ground was told of a moment ago: a browser opens several connections to a host at once, and ground keeps
//! one connection ready for them, however often it hears of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a word to ground lasts: shorter than ground keeps the connection that it has made for it.
const FOR: Duration = Duration::from_secs(1);
/// How many words are remembered. Beyond it they are said again.
const MOST: usize = 1024;

/// Which carrier the word went on (its generation), of whose wish and for which host and port it was.
pub(crate) type Word = (u64, u64, String, u16);

/// See the module.
#[derive(Default)]
pub(crate) struct Announced(Mutex<HashMap<Word, Instant>>);

impl Announced {
    /// Whether ground should be told, since it was not lately; it counts as told from now on.
    pub(crate) fn is_news(&self, word: Word, now: Instant) -> bool {
        let mut all = self.lock();
        let lately = |at: &Instant| now.duration_since(*at) < FOR;
        if all.get(&word).is_some_and(lately) {
            return false;
        }
        if all.len() >= MOST {
            all.retain(|_, at| lately(at));
        }
        if all.len() < MOST {
            all.insert(word, now);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Word, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(carrier: u64, user: u64, host: &str, port: u16) -> Word {
        (carrier, user, host.into(), port)
    }

    #[test]
    fn ground_is_told_once_a_second_of_each_users_host_on_each_carrier() {
        let (announced, now) = (Announced::default(), Instant::now());
        let said = || word(1, 1, "a.test", 443);
        assert!(announced.is_news(said(), now));
        assert!(!announced.is_news(said(), now + FOR / 2));
        for other in [
            word(2, 1, "a.test", 443),
            word(1, 2, "a.test", 443),
            word(1, 1, "b.test", 443),
            word(1, 1, "a.test", 8443),
        ] {
            assert!(announced.is_news(other, now));
        }
        assert!(announced.is_news(said(), now + FOR));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_makes_room_as_it_ages() {
        let (announced, now) = (Announced::default(), Instant::now());
        for port in 0..2 * MOST as u16 {
            assert!(announced.is_news(word(1, 1, "a.test", port), now));
        }
        assert_eq!(announced.lock().len(), MOST);
        assert!(announced.is_news(word(1, 1, "b.test", 1), now + FOR));
        assert_eq!(announced.lock().len(), 1);
    }
}
