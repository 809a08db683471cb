//! Requests for what is on its way to somebody else already: they wait for its head instead of asking a second time, and are
//! answered from the repository if anyone may have it. RFC 9111 §4 calls that collapsing requests. Here is only for whom one
//! waits, how long, and where it was worth while; what came answers by the repository's rules, as it would a moment later.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use farhop_bundle::Likeness;
use farhop_events::{AnsweredFrom, Crossing};
use farhop_freshness::{ResponseDirectives, Scope, Stored, Verdict};
use farhop_store::Partition;
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::Remote;
use crate::course::Course;
use crate::exchange::Exchange;
use crate::held::{HeldAnswer, Stale};
use crate::lookup::{Found, look_up};
use crate::priority;
use crate::request::Fetch;

/// The shortest wait, however short the way: an origin needs a moment, too.
const LEAST: Duration = Duration::from_millis(100);
/// Round trips after a request was sent for which others wait for its head. One is what it takes; who waited in vain for two
/// has lost one, as long as nobody knows better.
const ROUND_TRIPS: u32 = 2;
/// URLs, and kinds of what sites have, of which it is remembered whether anyone may have it.
const MOST_LEARNT: usize = 16 * 1024;

/// A request that may wait for others, or they for it.
#[derive(Clone)]
pub(crate) struct Wish {
    likeness: Arc<Likeness>,
    /// Of what kind it is, among all that its site has.
    kind: Arc<str>,
}

impl Wish {
    /// Of a GET without content; `None` if it waits for nobody and nobody for it.
    pub(crate) fn of(url: &Url, request: &HeaderMap) -> Option<Wish> {
        Some(Wish { likeness: Likeness::of(url, request)?.into(), kind: kind(url, request) })
    }

    fn of_fetch(fetch: &Fetch) -> Option<Wish> {
        // What is coded with a dictionary of the client's is no answer to others.
        let may_wait =
            fetch.head.method == Method::GET && fetch.dictionary.is_none() && fetch.may_be_answered_here();
        may_wait.then(|| Wish::of(&fetch.url, &fetch.head.fields)).flatten()
    }
}

/// What browsers want it for or, where they do not say, the ending of its name.
fn kind(url: &Url, request: &HeaderMap) -> Arc<str> {
    let wanted_for = request.get("sec-fetch-dest").and_then(|value| value.to_str().ok());
    let name = url.path().rsplit('/').next().unwrap_or_default();
    wanted_for.or(name.rsplit_once('.').map(|(_, ending)| ending)).unwrap_or_default().into()
}

/// What is known of the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is in the repository, fresh, for anyone whom its `Vary` lets have it.
    Anyones,
    /// It is for nobody else.
    Own,
    /// There is none, or it says nothing of the next one.
    Unknown,
}

impl Outcome {
    /// Of a response that came for `request` and is found in the repository from now on, if it has a place there.
    pub(crate) fn of(status: StatusCode, request: &HeaderMap, kept: Option<(Partition, &Stored)>) -> Outcome {
        match kept {
            Some((Partition::Shared, head))
                if head.verdict(&Method::GET, request, Scope::Shared, SystemTime::now())
                    == Verdict::Fresh =>
            {
                Outcome::Anyones
            }
            // Of an origin that fails the next answer may be another.
            _ if status.is_server_error() => Outcome::Unknown,
            _ => Outcome::Own,
        }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Collapsing {
    state: Mutex<State>,
    hasher: RandomState,
}

#[derive(Default)]
struct State {
    /// What is on its way and has no head yet; of several alike the last.
    leaders: HashMap<Arc<Likeness>, Leader>,
    /// By the hash of a URL, or of a site and a kind of what it has.
    learnt: HashMap<u64, Worth>,
    next: u64,
}

struct Leader {
    number: u64,
    since: Instant,
    /// Told when the head is here, or none will come.
    settled: Arc<watch::Sender<Outcome>>,
    course: Arc<Course>,
}

/// Whether it is worth while to wait for somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    Yes,
    No,
    /// Anyone might have had it, but not who had waited: it depends on something that differs.
    Differs,
}

/// How a request that nothing answers goes on.
enum Joined {
    /// It asks; others may wait for it.
    Leads(Leading),
    /// It waits.
    Follows(Following),
}

/// A request under way for which others may wait, until this is dropped.
pub(crate) struct Leading {
    collapsing: Arc<Collapsing>,
    wish: Wish,
    number: u64,
    settled: Arc<watch::Sender<Outcome>>,
    outcome: Outcome,
}

struct Following {
    settled: watch::Receiver<Outcome>,
    since: Instant,
    course: Arc<Course>,
}

impl Collapsing {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where nothing like it was sent within `patience`, or that is known to help nobody, it leads.
    fn join(self: &Arc<Self>, wish: Wish, course: &Arc<Course>, now: Instant, patience: Duration) -> Joined {
        let mut state = self.lock();
        let leader = state.leaders.get(&wish.likeness).filter(|leader| leader.since + patience > now);
        if let Some(leader) = leader.filter(|_| self.is_worth_while(&state, &wish)) {
            let (settled, course) = (leader.settled.subscribe(), Arc::clone(&leader.course));
            return Joined::Follows(Following { settled, since: leader.since, course });
        }
        let number = state.next;
        state.next += 1;
        let settled = Arc::new(watch::Sender::new(Outcome::Unknown));
        let leader = Leader { number, since: now, settled: Arc::clone(&settled), course: Arc::clone(course) };
        state.leaders.insert(Arc::clone(&wish.likeness), leader);
        let collapsing = Arc::clone(self);
        Joined::Leads(Leading { collapsing, wish, number, settled, outcome: Outcome::Unknown })
    }

    /// Others may wait for a request that is under way without their knowing; `None` where they wait for another.
    pub(crate) fn lead(
        self: &Arc<Self>,
        wish: Wish,
        course: &Arc<Course>,
        patience: Duration,
    ) -> Option<Leading> {
        match self.join(wish, course, Instant::now(), patience) {
            Joined::Leads(leading) => Some(leading),
            Joined::Follows(_) => None,
        }
    }

    fn is_worth_while(&self, state: &State, wish: &Wish) -> bool {
        let [url, site] = self.places(wish);
        let known = state.learnt.get(&url).or_else(|| state.learnt.get(&site));
        known.is_none_or(|worth| *worth == Worth::Yes)
    }

    /// Under which what is learnt of it is found: of itself, and of all of its kind at its site.
    fn places(&self, wish: &Wish) -> [u64; 2] {
        let url = wish.likeness.url();
        [self.hasher.hash_one(url), self.hasher.hash_one((url.origin().ascii_serialization(), &wish.kind))]
    }

    fn learn(&self, wish: &Wish, worth: Worth) {
        let mut state = self.lock();
        if state.learnt.len() + 2 > MOST_LEARNT {
            state.learnt.clear();
        }
        let [url, site] = self.places(wish);
        // Anyone may have it, and still not those who ask for it here.
        if !(worth == Worth::Yes && state.learnt.get(&url) == Some(&Worth::Differs)) {
            state.learnt.insert(url, worth);
        }
        if worth != Worth::Differs {
            state.learnt.insert(site, worth);
        }
    }
}

impl Leading {
    /// The head is here.
    pub(crate) fn settle(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Completes when nobody waits for it.
    pub(crate) async fn unfollowed(&self) {
        self.settled.closed().await;
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        match self.outcome {
            Outcome::Anyones => self.collapsing.learn(&self.wish, Worth::Yes),
            Outcome::Own => self.collapsing.learn(&self.wish, Worth::No),
            Outcome::Unknown => {}
        }
        let mut state = self.collapsing.lock();
        // Another may lead by now.
        if state.leaders.get(&self.wish.likeness).is_some_and(|leader| leader.number == self.number) {
            state.leaders.remove(&self.wish.likeness);
        }
        drop(state);
        self.settled.send_replace(self.outcome);
    }
}

/// Looks a request up, after waiting for what is on its way to somebody else if that may answer it, too. With what has to be
/// asked for all the same comes what lets others wait for it; not for who has waited: those go all at once.
pub(crate) async fn look_up_together(remote: &Remote, exchange: &Exchange) -> (Found, Option<Leading>) {
    let found = look_up(remote, exchange).await;
    let Some(wish) = may_follow(&found).then(|| Wish::of_fetch(&exchange.fetch)).flatten() else {
        return (found, None);
    };
    let patience = patience(remote);
    let joined = remote.collapsing().join(wish.clone(), &exchange.course, Instant::now(), patience);
    let following = match joined {
        Joined::Leads(leading) => return (found, Some(leading)),
        Joined::Follows(following) => following,
    };
    let outcome = following.over(remote, &exchange.fetch.head.fields, patience).await;
    match look_up(remote, exchange).await {
        Found::Held { mut answer, doubtful } => {
            answer.came_for_another();
            (Found::Held { answer, doubtful }, None)
        }
        found => {
            if outcome == Outcome::Anyones {
                remote.collapsing().learn(&wish, Worth::Differs);
            }
            (found, None)
        }
    }
}

/// How long after it was sent a request is waited for.
pub(crate) fn patience(remote: &Remote) -> Duration {
    let measured = remote.uplink().now().and_then(|carrier| carrier.hop.rtt()).unwrap_or_default();
    (measured.max(remote.plan().rtt) * ROUND_TRIPS).max(LEAST)
}

impl Following {
    /// Waits, no longer than for so long after the request was sent; gives what came of it by then.
    async fn over(mut self, remote: &Remote, request: &HeaderMap, patience: Duration) -> Outcome {
        self.course.hurry(remote, priority::of_request(request));
        match timeout_at(self.since + patience, self.settled.changed()).await {
            Ok(_) => *self.settled.borrow(),
            Err(_) => Outcome::Unknown,
        }
    }
}

/// Whether what somebody else is sent might answer in place of asking: nothing is held, or what anyone may have has become stale.
fn may_follow(found: &Found) -> bool {
    match found {
        Found::Ask { why, field, held } => match &held.stale {
            Some(stale) => *why == Crossing::Stale && field.is_none() && may_be_renewed(stale),
            None => true,
        },
        _ => false,
    }
}

/// Whether who has it confirmed makes it fresh for others.
fn may_be_renewed(stale: &Stale) -> bool {
    let Stale { held, validates, .. } = stale;
    *validates
        && held.partition == Partition::Shared
        && !ResponseDirectives::of(&held.head.fields).no_cache
        && !held.head.lifetime(Scope::Shared).is_zero()
}

impl HeldAnswer {
    /// What has been confirmed, or is here, for whoever waits for it.
    pub(crate) fn outcome(&self) -> Outcome {
        let is_fresh = self.held.head.is_fresh(Scope::Shared, SystemTime::now());
        match self.from {
            AnsweredFrom::Validated if self.held.partition == Partition::Shared && is_fresh => {
                Outcome::Anyones
            }
            AnsweredFrom::Validated => Outcome::Own,
            _ => Outcome::Unknown,
        }
    }
}
