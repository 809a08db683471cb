//! Hosts to which ground could not connect a moment ago. A client's CONNECT is answered before ground has connected, so
//! that nothing of its first round trip is lost; when ground then fails, the client can only be cut off. It will ask again:
//! then it is told why. So is who asks for what ground had promised and could not fetch for that reason.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::answers::Trouble;

/// How long a failure is remembered.
const FOR: Duration = Duration::from_secs(30);
/// How many are.
const MOST: usize = 1024;

/// See the module.
#[derive(Default)]
pub(crate) struct Unreachable(Mutex<HashMap<(String, u16), (Instant, Trouble)>>);

impl Unreachable {
    /// Ground failed to connect, for this reason.
    pub(crate) fn note(&self, host: &str, port: u16, trouble: Trouble, now: Instant) {
        let mut all = self.lock();
        if all.len() >= MOST {
            all.retain(|_, (at, _)| now.duration_since(*at) < FOR);
        }
        if all.len() < MOST {
            all.insert((host.to_ascii_lowercase(), port), (now, trouble));
        }
    }

    /// Why ground failed to connect there lately, if it did.
    pub(crate) fn why(&self, host: &str, port: u16, now: Instant) -> Option<Trouble> {
        let all = self.lock();
        let (at, trouble) = all.get(&(host.to_ascii_lowercase(), port))?;
        (now.duration_since(*at) < FOR).then(|| trouble.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, u16), (Instant, Trouble)>> {
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
        assert_eq!(unreachable.lock().len(), MOST);
        unreachable.note("new.test", 1, Trouble::lost(), now + FOR);
        assert_eq!(unreachable.lock().len(), 1);
    }
}
