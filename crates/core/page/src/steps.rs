//! The work that one page may cause, counted: what a hostile page makes its reader do ends, whatever it nests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Steps of matching selectors that are left, some nanoseconds each. Clones share them: give the same to all documents
/// of one page, else each frame brings a budget of its own.
#[derive(Debug, Clone)]
pub struct Steps(Arc<AtomicI64>);

impl Steps {
    /// So many.
    pub fn new(steps: u32) -> Self {
        Steps(Arc::new(AtomicI64::new(steps.into())))
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Pays for so many; false if nothing was left before.
    pub(crate) fn pay(&self, steps: usize) -> bool {
        // Who is too late subtracts nothing, so that the count cannot wrap round.
        let price = u32::try_from(steps).unwrap_or(u32::MAX);
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 {
            // Paid for every part of a selector: a locked subtraction would cost more than the step. What two readers of
            // one page pay in the same instant may count once.
            self.0.store(left - i64::from(price), Ordering::Relaxed);
        }
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_what_is_left() {
        let steps = Steps::new(10);
        let other = steps.clone();
        assert!(steps.pay(4) && other.pay(4));
        assert_eq!(steps.left(), 2);
        assert!(other.pay(usize::MAX), "the last one may overdraw");
        assert!(!steps.pay(1) && !steps.pay(0));
        assert_eq!(other.left(), 0);
    }
}
