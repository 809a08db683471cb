//! What is known of responses that remotes hold: of what such a response is, and how it was asked for. A remote tells of what it
//! has answered by itself by number; by this it is known what that was. Bounded; pure.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use farhop_models::Needs;
use url::Url;

/// Responses that are known; what was noted the longest ago goes first.
const MOST: usize = 8_192;
/// Longer URLs are not learned either.
const LONGEST: usize = 1024;

/// What a response is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) url: Url,
    pub(super) needs: Needs,
    /// It may be given to anyone.
    pub(super) anyones: bool,
}

/// See the module. By the remote, and the fingerprint under which it holds a response.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    known: HashMap<(Arc<str>, u64), Arc<Kind>>,
    oldest: VecDeque<(Arc<str>, u64)>,
}

impl Kinds {
    /// This remote holds `kind` under one of these fingerprints, if it does.
    pub(super) fn note(&mut self, remote: &Arc<str>, fingerprints: impl Iterator<Item = u64>, kind: Kind) {
        if kind.url.as_str().len() > LONGEST {
            return;
        }
        let kind = Arc::new(kind);
        for fingerprint in fingerprints {
            let key = (Arc::clone(remote), fingerprint);
            if self.known.insert(key.clone(), Arc::clone(&kind)).is_none() {
                self.oldest.push_back(key);
            }
        }
        while self.oldest.len() > MOST {
            let Some(oldest) = self.oldest.pop_front() else { break };
            self.known.remove(&oldest);
        }
    }

    /// What this remote holds under this fingerprint.
    pub(super) fn of(&self, remote: &Arc<str>, fingerprint: u64) -> Option<Arc<Kind>> {
        self.known.get(&(Arc::clone(remote), fingerprint)).cloned()
    }

    /// Forgets all.
    pub(super) fn forget(&mut self) {
        *self = Kinds::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_page::{Destination, Mode};

    fn kind(path: &str) -> Kind {
        let url = Url::parse("http://site.test/").unwrap().join(path).unwrap();
        Kind { url, needs: Needs::new(Destination::Script, Mode::NoCors), anyones: true }
    }

    #[test]
    fn what_was_noted_last_is_known_of_its_remote_alone() {
        let (mut kinds, ship, polar) = (Kinds::default(), Arc::from("ship"), Arc::from("polar"));
        kinds.note(&ship, [1, 2].into_iter(), kind("/a"));
        kinds.note(&ship, [2].into_iter(), kind("/b"));
        assert_eq!(kinds.of(&ship, 1).as_deref(), Some(&kind("/a")));
        assert_eq!(kinds.of(&ship, 2).as_deref(), Some(&kind("/b")));
        assert_eq!((kinds.of(&ship, 3), kinds.of(&polar, 1)), (None, None));
        kinds.note(&ship, [3].into_iter(), kind(&"x".repeat(LONGEST)));
        assert_eq!(kinds.of(&ship, 3), None);
    }

    #[test]
    fn what_is_known_is_bounded() {
        let (mut kinds, ship) = (Kinds::default(), Arc::from("ship"));
        for number in 0..MOST as u64 + 5 {
            kinds.note(&ship, [number].into_iter(), kind("/a"));
        }
        assert_eq!((kinds.known.len(), kinds.oldest.len()), (MOST, MOST));
        assert!(kinds.of(&ship, 4).is_none() && kinds.of(&ship, 5).is_some());
        kinds.forget();
        assert!(kinds.known.is_empty() && kinds.oldest.is_empty());
    }
}
