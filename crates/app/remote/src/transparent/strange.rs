//! Names that ground's name servers do not know, while clients connect to what has them: their network has name servers of its own
//! (split DNS). What is asked of such a name by a connection that was caught may go to the address that its client found.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a name counts as unknown to ground. Ground looks it up all the same; the wish to go elsewhere costs what could be held.
const FOR: Duration = Duration::from_secs(600);
/// How many are remembered.
const MOST: usize = 1024;

/// See the module.
#[derive(Default)]
pub(crate) struct Strange(Mutex<HashMap<String, Instant>>);

impl Strange {
    /// Ground knows no address of `host`.
    pub(crate) fn note(&self, host: &str, now: Instant) {
        let mut all = self.lock();
        if all.len() >= MOST {
            all.retain(|_, at| now.duration_since(*at) < FOR);
        }
        if all.len() < MOST {
            all.insert(host.to_owned(), now);
        }
    }

    /// Whether it was so lately.
    pub(crate) fn is(&self, host: &str, now: Instant) -> bool {
        self.lock().get(host).is_some_and(|at| now.duration_since(*at) < FOR)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_strange_for_a_while_and_few_are_remembered() {
        let (strange, now) = (Strange::default(), Instant::now());
        strange.note("wiki.firm.example", now);
        assert!(strange.is("wiki.firm.example", now + FOR / 2));
        assert!(!strange.is("firm.example", now));
        assert!(!strange.is("wiki.firm.example", now + FOR));
        (0..2 * MOST).for_each(|number| strange.note(&format!("{number}.example"), now));
        assert_eq!(strange.lock().len(), MOST);
        strange.note("new.example", now + FOR);
        assert_eq!(strange.lock().len(), 1);
    }
}
