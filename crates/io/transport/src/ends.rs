//! Where something ends in what QUIC was given that somebody waits for, so that it is repaired first. The driver tells it, the
//! repair layer takes it; neither knows the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ends that may wait for the next packet.
const MOST: usize = 64;

/// Bytes of a stream that QUIC sends next, all there is of it for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) bytes: usize,
    pub(crate) urgent: bool,
}

/// Of one connection. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    /// Something is repaired at present: else nobody listens.
    wanted: AtomicBool,
    ends: Mutex<Vec<End>>,
}

impl Ends {
    /// Whether anyone takes them from now on.
    pub(crate) fn want(&self, wanted: bool) {
        self.0.wanted.store(wanted, Ordering::Relaxed);
    }

    /// QUIC was given this.
    pub(crate) fn tell(&self, end: End) {
        if self.0.wanted.load(Ordering::Relaxed) {
            let mut ends = self.lock();
            if ends.len() < MOST {
                ends.push(end);
            }
        }
    }

    /// What was told since.
    pub(crate) fn take(&self) -> Vec<End> {
        if self.0.wanted.load(Ordering::Relaxed) { std::mem::take(&mut *self.lock()) } else { Vec::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<End>> {
        // Nothing under this lock can be left half done.
        self.0.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_kept_while_somebody_takes_them_and_not_without_bound() {
        let (teller, taker) = (Ends::default(), Ends::default());
        let end = End { bytes: 500, urgent: true };
        teller.tell(end);
        assert!(teller.take().is_empty() && taker.take().is_empty());
        let taker = teller.clone();
        taker.want(true);
        (0..1_000).for_each(|_| teller.tell(end));
        assert_eq!(taker.take(), [end; MOST]);
        assert!(taker.take().is_empty(), "once");
    }
}
