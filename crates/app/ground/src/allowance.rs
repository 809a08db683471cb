//! How many bytes a page may still be sent unasked. Bodies of known length reserve theirs before they begin, so that
//! none is cut that could have been left to the browser whole. Pure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is left for a page. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<AtomicU64>);

/// One body's share.
#[derive(Debug)]
pub(crate) struct Share {
    allowance: Allowance,
    reserved: u64,
}

/// Nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the page's budget of unasked bytes is used up")]
pub(crate) struct UsedUp;

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
        Ok(Share { allowance: self.clone(), reserved })
    }

    fn take(&self, bytes: u64) -> Result<(), UsedUp> {
        let taken = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| UsedUp)
    }
}

impl Share {
    /// So many bytes are sent.
    ///
    /// # Errors
    /// They are more than were reserved and more than is left.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<(), UsedUp> {
        let bytes = bytes as u64;
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
        assert_eq!((share.spend(8), share.spend(3), share.spend(2)), (Ok(()), Err(UsedUp), Ok(())));
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
    fn a_body_that_decodes_to_more_than_its_length_takes_the_rest_as_it_goes() {
        let allowance = Allowance::new(10);
        let mut share = allowance.share(Some(4)).unwrap();
        assert_eq!((share.spend(6), share.spend(4), share.spend(1)), (Ok(()), Ok(()), Err(UsedUp)));
    }
}
