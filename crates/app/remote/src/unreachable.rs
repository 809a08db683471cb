//! Hosts to which ground could not connect a moment ago. A client's CONNECT is answered before ground has connected, so
//! that nothing of its first round trip is lost; when ground then fails, the client can only be cut off. It will ask again:
//! then it is told why. So is who asks for what ground had promised and could not fetch for that reason.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use crate::answers::Trouble;
use crate::users::User;

/// How long a failure is remembered.
const FOR: Duration = Duration::from_secs(30);
/// How many are.
const MOST: usize = 1024;

/// See the module.
#[derive(Default)]
pub(crate) struct Unreachable {
    hosts: Table<(String, u16)>,
    /// By carrier, since another ground may reach it, and user.
    promised: Table<(u64, Arc<str>, Url)>,
}

impl Unreachable {
    /// Ground failed to connect, for this reason.
    pub(crate) fn note(&self, host: &str, port: u16, trouble: Trouble, now: Instant) {
        self.hosts.note((host.to_ascii_lowercase(), port), trouble, now);
    }

    /// Why ground failed to connect there lately, if it did.
    pub(crate) fn why(&self, host: &str, port: u16, now: Instant) -> Option<Trouble> {
        self.hosts.why(&(host.to_ascii_lowercase(), port), now)
    }

    /// Ground failed to connect for what it had promised to this user on this carrier.
    pub(crate) fn note_promised(&self, carrier: u64, user: &User, url: &Url, trouble: Trouble, now: Instant) {
        self.promised.note((carrier, Arc::clone(&user.name), url.clone()), trouble, now);
    }

    /// Why it did, if what was promised is asked for or answered now: who asks once more has ground try again.
    pub(crate) fn take_promised(
        &self,
        carrier: u64,
        user: &User,
        url: &Url,
        now: Instant,
    ) -> Option<Trouble> {
        let taken = self.promised.lock().remove(&(carrier, Arc::clone(&user.name), url.clone()));
        taken.filter(|(at, _)| now.duration_since(*at) < FOR).map(|(_, trouble)| trouble)
    }
}

/// What went wrong of late, by what it was tried for.
struct Table<K>(Mutex<HashMap<K, (Instant, Trouble)>>);

impl<K> Default for Table<K> {
    fn default() -> Self {
        Table(Mutex::default())
    }
}

impl<K: Eq + Hash> Table<K> {
    fn note(&self, key: K, trouble: Trouble, now: Instant) {
        let mut all = self.lock();
        if all.len() >= MOST {
            all.retain(|_, (at, _)| now.duration_since(*at) < FOR);
        }
        if all.len() < MOST {
            all.insert(key, (now, trouble));
        }
    }

    fn why(&self, key: &K, now: Instant) -> Option<Trouble> {
        let all = self.lock();
        let (at, trouble) = all.get(key)?;
        (now.duration_since(*at) < FOR).then(|| trouble.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, (Instant, Trouble)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_for_half_a_minute_and_only_of_its_host_and_port() {
        let (unreachable, now) = (Unreachable::default(), Instant::now());
        unreachable.note("Gone.test", 443, Trouble::lost(), now);
        let later = now + Duration::from_secs(29);
        assert_eq!(unreachable.why("gone.test", 443, later), Some(Trouble::lost()));
        assert_eq!(unreachable.why("gone.test", 8443, later), None);
        assert_eq!(unreachable.why("gone.test", 443, now + FOR), None);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_makes_room_as_it_ages() {
        let (unreachable, now) = (Unreachable::default(), Instant::now());
        for port in 0..2 * MOST as u16 {
            unreachable.note("gone.test", port, Trouble::lost(), now);
        }
        assert_eq!(unreachable.hosts.lock().len(), MOST);
        unreachable.note("new.test", 1, Trouble::lost(), now + FOR);
        assert_eq!(unreachable.hosts.lock().len(), 1);
    }
}
