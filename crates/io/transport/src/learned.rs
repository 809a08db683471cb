//! What the carriers of this process have measured of the way to each peer, so that the next one begins with sizes that fit.
//! Sizes only: what the congestion controllers have found is `memory`'s. Clones are the same.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farhop_tuning::{Measured, Parameters, Path, Set};

/// More peers than a ground has remotes; beyond it the one that was heard of the longest ago goes.
pub(crate) const MOST_PEERS: usize = 4096;

/// See the module's text.
#[derive(Debug, Clone, Default)]
pub struct Learned(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// With the number of the note.
    peers: HashMap<IpAddr, (u64, Measured)>,
    notes: u64,
    /// The largest that any peer was offered: sessions may be resumed from any address.
    offered: Option<Parameters>,
}

impl Learned {
    /// What is known of the way to `peer`.
    pub fn of(&self, peer: IpAddr) -> Measured {
        self.lock().peers.get(&peer.to_canonical()).map(|(_, measured)| *measured).unwrap_or_default()
    }

    /// The sizes with which the next carrier to `peer` begins, on a path of which so much is set.
    pub(crate) fn sizes(&self, set: &Set, peer: IpAddr) -> Parameters {
        let fit = Parameters::new(set, &Path::new(set, &self.of(peer)));
        let mut state = self.lock();
        let sizes = state.offered.map_or(fit, |offered| fit.offering(&offered));
        state.offered = Some(sizes);
        sizes
    }

    /// This is what is known from now on.
    pub(crate) fn note(&self, peer: IpAddr, measured: Measured) {
        let mut state = self.lock();
        state.notes += 1;
        let note = state.notes;
        state.peers.insert(peer.to_canonical(), (note, measured));
        if state.peers.len() > MOST_PEERS
            && let Some(oldest) = state.peers.iter().min_by_key(|(_, (note, _))| *note).map(|(peer, _)| *peer)
        {
            state.peers.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::BitRate;

    #[test]
    fn the_last_word_counts_and_the_oldest_goes_when_there_are_too_many() {
        let learned = Learned::default();
        let peer = |number: u32| IpAddr::from(number.to_be_bytes());
        let rate = |mbit| Measured { receiving: Some(BitRate::mbit(mbit)), ..Measured::default() };
        for number in 0..=MOST_PEERS as u32 {
            learned.note(peer(number), rate(1));
        }
        learned.note(peer(7), rate(2));
        assert_eq!([0, 7, 8].map(|number| learned.of(peer(number))), [Measured::default(), rate(2), rate(1)]);
    }
}
