//! Whose a thing is: all state of ground is kept apart by remote and user. What outlives an exchange and belongs to a
//! user is kept here, bounded and in memory only.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_bundle::{Cookies, NeverUnasked};
use farhop_page::Viewport;
use tokio::time::Instant;
use url::Url;

/// Users of whom something is remembered, and bytes of that; the one that was away the longest goes first.
const USERS: usize = 1024;
const BYTES: usize = 32 << 20;
/// A user who is away for so long is forgotten. What a browser holds it shows again as it asks.
const AWAY: Duration = Duration::from_secs(6 * 3600);
/// URLs remembered for a user.
const URLS: usize = 256;
/// Browsers whose screens are remembered for a user, and the longest name of one.
const SCREENS: usize = 8;
const AGENT: usize = 512;

/// A user of a remote. The number means nothing at another remote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// The remote's name in the settings.
    pub(crate) remote: Arc<str>,
    /// HTOTP's UserId.
    pub(crate) user: u64,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.remote, self.user)
    }
}

/// What is known of one user.
pub(crate) struct Known {
    never: Mutex<NeverUnasked>,
    cookies: Mutex<Cookies>,
    /// By `User-Agent`, the one learnt last at the end.
    screens: Mutex<VecDeque<(Box<str>, Viewport)>>,
    /// A request within TLS was seen.
    shows_secure: AtomicBool,
}

impl Default for Known {
    fn default() -> Self {
        let never = Mutex::new(NeverUnasked::new(URLS));
        let (cookies, screens, shows_secure) = Default::default();
        Known { never, cookies, screens, shows_secure }
    }
}

impl Known {
    /// The URLs that are not fetched unasked.
    pub(crate) fn never(&self) -> MutexGuard<'_, NeverUnasked> {
        lock(&self.never)
    }

    /// What the user's browsers hold and send.
    pub(crate) fn cookies(&self) -> MutexGuard<'_, Cookies> {
        lock(&self.cookies)
    }

    /// The user asks for `url`.
    pub(crate) fn shown(&self, url: &Url) {
        self.shows_secure.fetch_or(url.scheme() == "https", Relaxed);
    }

    /// Whether a request for `url` will be seen: those within TLS are where the user's connections are looked into.
    pub(crate) fn shows(&self, url: &Url) -> bool {
        url.scheme() != "https" || self.shows_secure.load(Relaxed)
    }

    /// The screen of the user's browser that is called this: as it was learnt, else as it is assumed.
    pub(crate) fn screen(&self, agent: &str) -> Viewport {
        let screens = lock(&self.screens);
        let learnt = screens.iter().find(|(own, _)| **own == *agent).map(|(_, screen)| screen.clone());
        learnt.unwrap_or_else(|| Viewport::assumed(agent))
    }

    /// What the browser that is called this asks for has shown its screen.
    pub(crate) fn learn_screen(&self, agent: &str, screen: &Viewport) {
        let mut screens = lock(&self.screens);
        screens.retain(|(own, _)| **own != *agent);
        if agent.len() <= AGENT {
            screens.push_back((agent.into(), screen.clone()));
        }
        if screens.len() > SCREENS {
            screens.pop_front();
        }
    }

    /// Bytes that it takes, about.
    fn size(&self) -> usize {
        let screens: usize =
            lock(&self.screens).iter().map(|(agent, _)| agent.len() + size_of::<Viewport>()).sum();
        size_of::<Self>() + self.never().size() + self.cookies().size() + screens
    }
}

/// What is remembered of users.
pub(crate) struct Owners {
    state: Mutex<State>,
    most_users: usize,
    most_bytes: usize,
}

#[derive(Default)]
struct State {
    users: HashMap<Owner, Remembered>,
    /// Last use → user.
    by_use: BTreeMap<(Instant, u64), Owner>,
    clock: u64,
    bytes: usize,
}

#[derive(Default)]
struct Remembered {
    known: Arc<Known>,
    /// Of two at one time, the later has the larger number.
    used: Option<(Instant, u64)>,
    /// Bytes, when it was last used.
    size: usize,
}

impl Default for Owners {
    fn default() -> Self {
        Owners { state: Mutex::default(), most_users: USERS, most_bytes: BYTES }
    }
}

impl Owners {
    /// What is known of this user, who asks for something.
    pub(crate) fn known(&self, owner: &Owner) -> Arc<Known> {
        self.known_at(owner, Instant::now())
    }

    fn known_at(&self, owner: &Owner, now: Instant) -> Arc<Known> {
        let mut state = lock(&self.state);
        let state = &mut *state;
        state.clock += 1;
        let user = state.users.entry(owner.clone()).or_default();
        if let Some(used) = user.used.replace((now, state.clock)) {
            state.by_use.remove(&used);
        }
        state.by_use.insert((now, state.clock), owner.clone());
        // What has been learnt since is weighed now: users who stay away learn nothing.
        let size = user.known.size();
        state.bytes = state.bytes + size - user.size;
        user.size = size;
        let known = Arc::clone(&user.known);
        while let Some(oldest) = state.by_use.first_entry() {
            let is_away = now.duration_since(oldest.key().0) >= AWAY;
            let is_full = state.users.len() > self.most_users
                || (state.bytes > self.most_bytes && state.users.len() > 1);
            if !is_away && !is_full {
                break;
            }
            let oldest = oldest.remove();
            let forgotten = state.users.remove(&oldest).map_or(0, |user| user.size);
            state.bytes -= forgotten;
        }
        known
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screens_of_a_users_browsers_are_learnt_one_by_one_and_bounded() {
        let known = Known::default();
        let wide = Viewport { width: 1920.0, height: 950.0, density: 1.0, touch: false, dark: true };
        known.learn_screen("desktop", &wide);
        assert_eq!(known.screen("desktop"), wide);
        assert_eq!(known.screen("other"), Viewport::default());
        assert!(known.screen("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)").width < 500.0);
        for number in 0..SCREENS {
            known.learn_screen(&number.to_string(), &wide);
        }
        assert_eq!(
            known.screen("desktop"),
            Viewport::default(),
            "the one learnt the longest ago is forgotten"
        );
        known.learn_screen(&"a".repeat(AGENT + 1), &wide);
        assert_eq!(lock(&known.screens).len(), SCREENS);
    }
    use http::{HeaderMap, header};
    use std::time::SystemTime;
    use url::Url;

    fn owner(remote: &str, user: u64) -> Owner {
        Owner { remote: remote.into(), user }
    }

    #[test]
    fn users_are_kept_apart_and_their_number_is_bounded() {
        let owners = Owners::default();
        let first = owners.known(&owner("ship", 0));
        assert!(Arc::ptr_eq(&first, &owners.known(&owner("ship", 0))));
        assert!(!Arc::ptr_eq(&first, &owners.known(&owner("polar", 0))));
        for user in 1..USERS as u64 {
            owners.known(&owner("ship", user));
            assert!(Arc::ptr_eq(&first, &owners.known(&owner("ship", 0))), "it is in use");
        }
        for user in USERS as u64..2 * USERS as u64 {
            owners.known(&owner("ship", user));
        }
        assert!(!Arc::ptr_eq(&first, &owners.known(&owner("ship", 0))), "it was away the longest");
        let state = owners.state.lock().unwrap();
        assert_eq!((state.users.len(), state.by_use.len()), (USERS, USERS));
    }

    #[test]
    fn who_is_away_for_long_is_forgotten_when_anybody_asks() {
        let (owners, start) = (Owners::default(), Instant::now());
        let at = |user, hours| owners.known_at(&owner("ship", user), start + AWAY / 6 * hours);
        let first = Arc::downgrade(&at(0, 0));
        at(1, 1);
        at(0, 2);
        at(2, 7);
        assert!(first.upgrade().is_some(), "5 hours");
        assert_eq!(lock(&owners.state).users.len(), 2);
        at(2, 8);
        assert!(first.upgrade().is_none());
        let state = owners.state.lock().unwrap();
        assert_eq!((state.users.len(), state.by_use.len()), (1, 1));
        assert_eq!(state.bytes, state.users.values().map(|user| user.size).sum::<usize>());
    }

    #[test]
    fn what_users_bring_is_bounded_together() {
        let owners = Owners { most_bytes: 100_000, ..Owners::default() };
        let browse = |user| {
            let known = owners.known(&owner("ship", user));
            let url = Url::parse("http://site.test/").unwrap();
            let cookie = format!("a={}", "x".repeat(30_000)).parse().unwrap();
            let accept = "text/html,*/*;q=0.8".parse().unwrap();
            let upgrade = (header::UPGRADE_INSECURE_REQUESTS, "1".parse().unwrap());
            let fields = HeaderMap::from_iter([(header::COOKIE, cookie), (header::ACCEPT, accept), upgrade]);
            known.cookies().note_request(&url, &fields, SystemTime::UNIX_EPOCH);
            // What a request has taught is weighed with the next.
            owners.known(&owner("ship", user))
        };
        let first = browse(0);
        let others: Vec<_> = (1..5).map(browse).collect();
        assert!(Arc::ptr_eq(&others[3], &owners.known(&owner("ship", 4))));
        assert!(!Arc::ptr_eq(&first, &owners.known(&owner("ship", 0))), "it had to make room");
        let state = owners.state.lock().unwrap();
        let sizes: usize = state.users.values().map(|user| user.size).sum();
        assert!(state.bytes == sizes && sizes <= 100_000, "{sizes}");
    }
}
