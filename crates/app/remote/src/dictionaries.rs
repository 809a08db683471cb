//! The dictionaries component beside the users: takes the dictionaries that ground offers, keeps some of them, and tells
//! ground which. In memory: where they are gone they have to pay anew.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use farhop_component::{Component, DICTIONARIES, RemoteHalf, ask};
use farhop_htotp::frame::Class;
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_squeeze::{LARGEST_DICTIONARY, decompress, is_dictionary};
use farhop_transport::hop::{Hop, Incoming};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Remote;
use crate::components::Attended;

/// Bytes of all that are kept; those go first that were not used for the longest.
const MOST: usize = 4 << 20;
/// Nobody's number among users: dictionaries are everyone's.
const EVERYONE: u64 = 0;
/// Looks for ground's settings come less and less often, in case it has none.
const LOOK: Duration = Duration::from_millis(200);
const LONGEST_LOOK: Duration = Duration::from_secs(60);

/// Those that are held.
pub(crate) struct Dictionaries {
    /// The one that was used last is the last.
    held: Mutex<VecDeque<(BodyHash, Bytes)>>,
    changed: watch::Sender<()>,
}

impl Default for Dictionaries {
    fn default() -> Self {
        Dictionaries { held: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Dictionaries {
    /// The dictionary of this name.
    pub(crate) fn find(&self, hash: BodyHash) -> Option<Bytes> {
        let mut held = self.lock();
        let at = held.iter().position(|(of, _)| *of == hash)?;
        let found = held.remove(at)?;
        let bytes = found.1.clone();
        held.push_back(found);
        Some(bytes)
    }

    /// None is held any more.
    pub(crate) fn clear(&self) {
        self.lock().clear();
        self.changed.send_replace(());
    }

    fn keep(&self, hash: BodyHash, bytes: Bytes) {
        let mut held = self.lock();
        held.retain(|(of, _)| *of != hash);
        held.push_back((hash, bytes));
        while held.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > MOST {
            held.pop_front();
        }
        drop(held);
        self.changed.send_replace(());
    }

    fn names(&self) -> HashSet<BodyHash> {
        self.lock().iter().map(|(hash, _)| *hash).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(BodyHash, Bytes)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells ground what is held, until it is dropped with the carrier.
pub(crate) async fn keep(remote: &Remote, hop: &Hop) -> Infallible {
    let mut look = LOOK;
    // What goes on with the mirror's log of an earlier carrier has to come first.
    while !(hop.takes_bodies() && hop.mirror_begun()) {
        tokio::time::sleep(look).await;
        look = (look * 2).min(LONGEST_LOOK);
    }
    let dictionaries = remote.dictionaries();
    let mut changed = dictionaries.changed.subscribe();
    let mut told = HashSet::new();
    loop {
        changed.mark_unchanged();
        let held = dictionaries.names();
        let words =
            |names: Vec<BodyHash>| names.into_iter().map(|hash| HeldBody { user: None, hash }).collect();
        let gone: Vec<BodyHash> = told.difference(&held).copied().collect();
        if !gone.is_empty() {
            hop.tell_mirror(Word::Lacks(words(gone)));
        }
        let new: Vec<BodyHash> = held.difference(&told).copied().collect();
        if !new.is_empty() {
            hop.tell_mirror(Word::Holds(words(new)));
        }
        told = held;
        if changed.changed().await.is_err() {
            // The remote outlives every carrier.
            std::future::pending::<()>().await;
        }
    }
}

/// The remote's half of the component.
pub(crate) struct Half;

impl RemoteHalf<Arc<Remote>, Attended> for Half {
    fn component(&self) -> &'static Component {
        &DICTIONARIES
    }

    fn start(&self, _: &Arc<Remote>, _: &mut JoinSet<()>) {}

    fn take(&self, remote: &Arc<Remote>, attended: &Attended, incoming: Incoming) -> Option<Incoming> {
        let Incoming::Dictionary { hash, length } = incoming else { return Some(incoming) };
        if length <= LARGEST_DICTIONARY as u64 && !remote.dictionaries().names().contains(&hash) {
            let (remote, hop) = (Arc::clone(remote), attended.carrier.hop.clone());
            tokio::spawn(async move { fetch(&remote, &hop, hash).await });
        }
        None
    }
}

/// Asks for a dictionary, behind all that someone waits for, and keeps it if it is what was offered.
async fn fetch(remote: &Remote, hop: &Hop, hash: BodyHash) -> Option<()> {
    let tunnel = DICTIONARIES.tunnel(remote.next_exchange().0, EVERYONE, Class::Background);
    let coded = ask(hop, tunnel, Bytes::copy_from_slice(&hash.0), LARGEST_DICTIONARY).await?;
    let bytes = decompress(coded.into(), LARGEST_DICTIONARY).ok()?;
    if is_dictionary(&bytes) && BodyHash::of(&bytes) == hash {
        remote.dictionaries().keep(hash, bytes);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dictionary(number: u8) -> (BodyHash, Bytes) {
        let bytes = Bytes::from(vec![number; LARGEST_DICTIONARY]);
        (BodyHash::of(&bytes), bytes)
    }

    #[test]
    fn what_is_held_is_bounded_and_what_was_not_used_goes_first() {
        let held = Dictionaries::default();
        let (used, bytes) = dictionary(255);
        held.keep(used, bytes.clone());
        for number in 0..200 {
            let (hash, bytes) = dictionary(number);
            held.keep(hash, bytes);
            assert!(held.find(used).is_some());
        }
        assert_eq!(held.find(used), Some(bytes));
        assert_eq!(held.names().len(), MOST / LARGEST_DICTIONARY);
        assert!(held.find(dictionary(0).0).is_none() && held.find(dictionary(199).0).is_some());
        held.clear();
        assert!(held.names().is_empty());
    }

    #[test]
    fn the_same_again_is_held_once() {
        let held = Dictionaries::default();
        let (hash, bytes) = dictionary(1);
        (0..3).for_each(|_| held.keep(hash, bytes.clone()));
        assert_eq!(held.lock().len(), 1);
    }
}
