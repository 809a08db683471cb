//! How much may still come of bodies for which nobody waits: what is nearly here is finished, so that it need not come again. A page
//! that is left has many that are nearly here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that still come so, of all bodies together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finishing(Arc<AtomicU64>);

/// The part of one body; it is given back when this is dropped.
pub(crate) struct Share {
    of: Finishing,
    bytes: u64,
}

impl Finishing {
    /// Lets a body be finished that lacks so many `bytes`, unless that would be more than `most` with the others.
    pub(crate) fn share(&self, bytes: u64, most: u64) -> Option<Share> {
        let more = |taken: u64| taken.checked_add(bytes).filter(|all| *all <= most);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Share { of: self.clone(), bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_finished_together_is_bounded() {
        let finishing = Finishing::default();
        let first = finishing.share(60, 100).unwrap();
        assert!(finishing.share(50, 100).is_none());
        let second = finishing.share(40, 100).unwrap();
        drop(first);
        assert!(finishing.share(60, 100).is_some() && finishing.share(61, 100).is_none());
        drop(second);
        assert!(finishing.share(100, 100).is_some());
    }
}
