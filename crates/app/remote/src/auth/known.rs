//! Credentials that were checked a short while ago. Holds no password, only digests under a key that nobody else knows, so
//! that a look neither tells by its time how near a guess is nor leaves anything to steal that is worth a hash. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use super::credentials::Credentials;
use crate::passwords::Account;

/// A page with 250 resources costs one hash; a user who was removed is out after this at the latest.
const LASTS: Duration = Duration::from_secs(600);
/// Most held at a time.
const MOST: usize = 1024;

/// What stands for a name and password.
pub(super) type Digest = [u8; 32];

/// Checked credentials, by digest.
pub(super) struct Known {
    key: [u8; 32],
    checked: HashMap<Digest, Checked>,
}

struct Checked {
    account: Account,
    until: Duration,
}

impl Known {
    /// Knows nothing yet; `key` is to be random.
    pub(super) fn new(key: [u8; 32]) -> Known {
        Known { key, checked: HashMap::new() }
    }

    /// What stands for these credentials.
    pub(super) fn digest(&self, credentials: &Credentials) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        // A name holds no colon, so that no two pairs are one text.
        hasher.update(credentials.name.as_bytes()).update(b":").update(credentials.password.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// Whose they are, where they were checked; `now` since the process began.
    pub(super) fn find(&self, digest: &Digest, now: Duration) -> Option<Account> {
        self.checked.get(digest).filter(|it| it.until > now).map(|it| it.account.clone())
    }

    /// Notes that they were checked.
    pub(super) fn keep(&mut self, digest: Digest, account: Account, now: Duration) {
        if self.checked.len() >= MOST {
            self.checked.retain(|_, it| it.until > now);
        }
        if self.checked.len() >= MOST
            && let Some(oldest) =
                self.checked.iter().min_by_key(|(_, it)| it.until).map(|(digest, _)| *digest)
        {
            self.checked.remove(&oldest);
        }
        self.checked.insert(digest, Checked { account, until: now + LASTS });
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.checked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(name: &str, password: &str) -> Credentials {
        Credentials { name: name.into(), password: password.into() }
    }

    #[test]
    fn what_was_checked_is_known_for_a_while_and_nothing_else_is() {
        let (mut known, anna) = (Known::new([7; 32]), Account::of("anna"));
        let right = known.digest(&credentials("anna", "secret"));
        known.keep(right, anna.clone(), Duration::ZERO);
        assert_eq!(known.find(&right, LASTS - Duration::from_nanos(1)), Some(anna.clone()));
        assert_eq!(known.find(&right, LASTS), None);
        for (name, password) in
            [("anna", "Secret"), ("anna", "secret "), ("Anna", "secret"), ("ann", "asecret")]
        {
            let other = known.digest(&credentials(name, password));
            assert_eq!(known.find(&other, Duration::ZERO), None, "{name} {password}");
        }
        known.clear();
        assert_eq!(known.find(&right, Duration::ZERO), None);
    }

    #[test]
    fn another_key_gives_other_digests() {
        let it = credentials("anna", "secret");
        assert_ne!(Known::new([1; 32]).digest(&it), Known::new([2; 32]).digest(&it));
    }

    #[test]
    fn no_more_than_so_many_are_held_and_the_oldest_go_first() {
        let (mut known, anna) = (Known::new([7; 32]), Account::of("anna"));
        let digests: Vec<_> =
            (0..=MOST).map(|number| known.digest(&credentials("anna", &number.to_string()))).collect();
        for (second, digest) in (0..).zip(&digests) {
            known.keep(*digest, anna.clone(), Duration::from_millis(second));
        }
        assert_eq!(known.checked.len(), MOST);
        let now = Duration::from_secs(2);
        assert_eq!(known.find(&digests[0], now), None);
        assert!(known.find(&digests[1], now).is_some() && known.find(&digests[MOST], now).is_some());
    }
}
