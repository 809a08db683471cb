//! How many bytes a page may still be sent unasked. Bodies of known length reserve theirs before they begin, so that
//! none is cut that could have been left to the browser whole. A guess of unknown length has a bound besides, until the
//! browser asks for it. Pure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What is left for a page. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<AtomicU64>);

/// One body's share.
#[derive(Debug)]
pub(crate) struct Share {
    allowance: Allowance,
    reserved: u64,
    bound: Option<Bound>,
}

/// What one body may take, while it is not `lifted`.
#[derive(Debug)]
struct Bound {
    left: u64,
    lifted: Arc<AtomicBool>,
}

/// Nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsedUp {
    #[error("the page's budget of unasked bytes is used up")]
    Page,
    #[error("a guess may not be so long")]
    Guess,
    #[error("the page's budget of bytes for guesses is used up")]
    Guesses,
}

impl Allowance {
    /// For a page that may be sent so many bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Allowance(Arc::new(AtomicU64::new(bytes)))
    }

    /// Whether anything is left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// The share of a body of this length; of one of unknown length, which takes as it goes.
    ///
    /// # Errors
    /// Less than that is left.
    pub(crate) fn share(&self, length: Option<u64>) -> Result<Share, UsedUp> {
        let reserved = length.unwrap_or(0);
        self.take(reserved)?;
        Ok(Share { allowance: self.clone(), reserved, bound: None })
    }

    fn take(&self, bytes: u64) -> Result<(), UsedUp> {
        let taken = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| UsedUp::Page)
    }
}

impl Share {
    /// It takes `most` bytes and no more, until that is `lifted`.
    pub(crate) fn bind(&mut self, most: u64, lifted: Arc<AtomicBool>) {
        self.bound = Some(Bound { left: most, lifted });
    }

    /// So many bytes are sent.
    ///
    /// # Errors
    /// They are more than were reserved and more than is left, or beyond the bound.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), UsedUp> {
        let bytes = bytes as u64;
        if let Some(bound) = self.bound.as_mut().filter(|bound| !bound.lifted.load(Relaxed)) {
            bound.left = bound.left.checked_sub(bytes).ok_or(UsedUp::Guess)?;
        }
        let beyond = bytes.saturating_sub(self.reserved);
        self.allowance.take(beyond)?;
        self.reserved -= bytes - beyond;
        Ok(())
    }
}

impl Drop for Share {
    /// What was squeezed out is free for others.
    fn drop(&mut self) {
        self.allowance.0.fetch_add(self.reserved, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_is_sent_unasked_ends_with_its_budget() {
        let allowance = Allowance::new(10);
        let mut share = allowance.share(None).unwrap();
        assert_eq!((share.spend(8), share.spend(3), share.spend(2)), (Ok(()), Err(UsedUp::Page), Ok(())));
        assert!(allowance.is_used_up());
    }

    #[test]
    fn a_known_length_is_reserved_and_what_is_not_needed_given_back() {
        let allowance = Allowance::new(10);
        let mut share = allowance.share(Some(8)).unwrap();
        assert!(allowance.share(Some(3)).is_err());
        share.spend(2).unwrap();
        drop(share);
        assert!(allowance.share(Some(8)).is_ok());
    }

    #[test]
    fn a_bound_holds_until_it_is_lifted() {
        let (allowance, lifted) = (Allowance::new(100), Arc::new(AtomicBool::new(false)));
        let mut share = allowance.share(None).unwrap();
        share.bind(10, Arc::clone(&lifted));
        assert_eq!((share.spend(8), share.spend(3), share.spend(2)), (Ok(()), Err(UsedUp::Guess), Ok(())));
        lifted.store(true, Relaxed);
        assert_eq!((share.spend(80), share.spend(11)), (Ok(()), Err(UsedUp::Page)));
    }

    #[test]
    fn a_body_that_decodes_to_more_than_its_length_takes_the_rest_as_it_goes() {
        let allowance = Allowance::new(10);
        let mut share = allowance.share(Some(4)).unwrap();
        assert_eq!((share.spend(6), share.spend(4), share.spend(1)), (Ok(()), Ok(()), Err(UsedUp::Page)));
    }
}
