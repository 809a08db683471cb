//! Whether a remote is to have a dictionary: what it would have been spared with it is counted, and once that is what the
//! dictionary costs, it is offered. So what is never used again is never sent, and what is sent has cost at most twice what
//! knowing all in advance would have (the ski rental problem).

use std::collections::BTreeMap;
use std::hash::Hash;

use farhop_htotp::mirror::BodyHash;

/// Bytes that an offer, the request for it, and the word that it is held cost beside the dictionary.
const WORDS: u64 = 96;

/// Accounts that are kept; the oldest go first.
const MOST: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// So many bytes would have been spared.
    Missed(u64),
    Offered,
    Held,
}

/// What remotes have of dictionaries, and what they miss.
#[derive(Debug)]
pub struct Accounts<R> {
    all: std::collections::HashMap<(R, BodyHash), (u64, Standing)>,
    by_age: BTreeMap<u64, (R, BodyHash)>,
    next: u64,
}

impl<R> Default for Accounts<R> {
    fn default() -> Self {
        Accounts { all: Default::default(), by_age: BTreeMap::new(), next: 0 }
    }
}

impl<R: Hash + Eq + Clone> Accounts<R> {
    /// Whether the remote has said that it holds the dictionary.
    pub fn is_held(&self, remote: &R, dictionary: BodyHash) -> bool {
        self.all.get(&(remote.clone(), dictionary)).is_some_and(|(_, standing)| *standing == Standing::Held)
    }

    /// With this dictionary, which crosses in `cost` bytes, a body would have taken so many less. Whether the dictionary is
    /// to be offered now.
    #[must_use]
    pub fn handle_missed(&mut self, remote: &R, dictionary: BodyHash, spared: u64, cost: u64) -> bool {
        let Standing::Missed(before) = self.standing(remote, dictionary) else { return false };
        let missed = before.saturating_add(spared);
        let is_worth_it = missed >= cost.saturating_add(WORDS);
        self.put(remote, dictionary, if is_worth_it { Standing::Offered } else { Standing::Missed(missed) });
        is_worth_it
    }

    /// The remote says that it holds it.
    pub fn handle_holds(&mut self, remote: &R, dictionary: BodyHash) {
        self.put(remote, dictionary, Standing::Held);
    }

    /// The remote says that it does not, or no longer.
    pub fn handle_lacks(&mut self, remote: &R, dictionary: BodyHash) {
        if self.all.contains_key(&(remote.clone(), dictionary)) {
            self.put(remote, dictionary, Standing::Missed(0));
        }
    }

    /// The remote is on another carrier: what was offered may be lost, and what it holds it says anew.
    pub fn handle_carrier(&mut self, remote: &R) {
        let its: Vec<BodyHash> =
            self.all.keys().filter(|(of, _)| of == remote).map(|(_, hash)| *hash).collect();
        for hash in its {
            if self.standing(remote, hash) == Standing::Offered {
                self.put(remote, hash, Standing::Missed(0));
            }
        }
    }

    fn standing(&self, remote: &R, dictionary: BodyHash) -> Standing {
        self.all.get(&(remote.clone(), dictionary)).map_or(Standing::Missed(0), |(_, standing)| *standing)
    }

    fn put(&mut self, remote: &R, dictionary: BodyHash, standing: Standing) {
        let key = (remote.clone(), dictionary);
        self.next += 1;
        if let Some((before, _)) = self.all.insert(key.clone(), (self.next, standing)) {
            self.by_age.remove(&before);
        }
        self.by_age.insert(self.next, key);
        while self.all.len() > MOST
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.all.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: BodyHash = BodyHash([1; BodyHash::LENGTH]);
    const TWO: BodyHash = BodyHash([2; BodyHash::LENGTH]);

    #[test]
    fn a_dictionary_is_offered_once_it_would_have_paid_and_used_once_it_is_held() {
        let mut accounts = Accounts::default();
        for _ in 0..10 {
            assert!(!accounts.handle_missed(&"ship", ONE, 1000, 10_000));
        }
        assert!(!accounts.handle_missed(&"other", ONE, 10_000, 10_000), "each remote by itself");
        assert!(!accounts.handle_missed(&"ship", TWO, 10_000, 10_000), "each dictionary by itself");
        assert!(accounts.handle_missed(&"ship", ONE, WORDS, 10_000));
        assert!(!accounts.handle_missed(&"ship", ONE, 99_000, 10_000), "it is offered once");
        assert!(!accounts.is_held(&"ship", ONE));
        accounts.handle_holds(&"ship", ONE);
        assert!(accounts.is_held(&"ship", ONE) && !accounts.is_held(&"other", ONE));
        assert!(!accounts.handle_missed(&"ship", ONE, 99_000, 10_000));
    }

    #[test]
    fn what_is_lacked_has_to_pay_anew_and_an_offer_does_not_outlive_its_carrier() {
        let mut accounts = Accounts::default();
        assert!(accounts.handle_missed(&"ship", ONE, 20_000, 10_000));
        accounts.handle_carrier(&"ship");
        assert!(!accounts.handle_missed(&"ship", ONE, 1, 10_000));
        assert!(accounts.handle_missed(&"ship", ONE, 20_000, 10_000));
        accounts.handle_holds(&"ship", ONE);
        accounts.handle_carrier(&"ship");
        assert!(accounts.is_held(&"ship", ONE), "the remote is the same, and says what has changed");
        accounts.handle_lacks(&"ship", ONE);
        assert!(!accounts.is_held(&"ship", ONE));
        assert!(accounts.handle_missed(&"ship", ONE, 20_000, 10_000));
        accounts.handle_lacks(&"ship", TWO);
        assert_eq!(accounts.all.len(), 1, "what nobody knows is not kept");
    }

    #[test]
    fn what_is_kept_of_remotes_is_bounded() {
        let mut accounts = Accounts::default();
        for remote in 0..MOST as u32 + 100 {
            accounts.handle_holds(&remote, ONE);
        }
        assert_eq!((accounts.all.len(), accounts.by_age.len()), (MOST, MOST));
        assert!(!accounts.is_held(&0, ONE) && accounts.is_held(&(MOST as u32), ONE));
    }

    proptest! {
        #[test]
        fn what_is_sent_costs_at_most_what_was_missed(costs in 0u64..50_000, gains in proptest::collection::vec(0u64..5_000, 0..100)) {
            let mut accounts = Accounts::default();
            let (mut missed, mut sent) = (0, false);
            for gain in gains {
                missed += if sent { 0 } else { gain };
                sent |= accounts.handle_missed(&0, ONE, gain, costs);
            }
            prop_assert_eq!(sent, missed >= costs + WORDS && missed > 0);
        }
    }
}
