//! The book of promises at the remote end: which promise answers which request, and for how long.
//!
//! ```text
//!   promise ──► open ──head──► known ──complete──► whole ──10 s──► lapsed
//!                 │              │                   │
//!                 └──────────────┴── lost, left, answered once (if uncacheable)
//! ```
//! A cacheable promise leaves the book when it is whole: the repository has it then.
//! Times are `Duration`s since any fixed start and must not run backwards. Bodies are not held here.

use crate::loads::{LoadId, Loads};
use crate::matching::{Mismatch, compare, compare_always, is_navigation, passes_caches_by, wants_anew};
use farhop_freshness::{ResponseDirectives, Scope, Stored, shareable};
use http::header::HeaderMap;
use http::{Method, StatusCode};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use url::Url;

/// How long a whole, uncacheable promise waits to be asked for (DESIGN.md, "never a wrong byte").
const LAPSE: Duration = Duration::from_secs(10);

/// A promise, by the number its carrier gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PromiseId(pub u64);

/// What to do with a browser's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This promise answers it: send what is there, the rest as it arrives.
    Promise(PromiseId),
    /// Ask across the hop.
    Ask(WhyAsk),
}

/// Why no promise answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyAsk {
    /// Nothing was promised under this URL to this user.
    NotPromised,
    /// Only GET is promised.
    Method,
    /// A promise differs in this field.
    Field(Mismatch),
    /// A promise that answers once would answer, but the request may come from a page opened since.
    OtherLoad,
    /// A promise would answer, but has answered before and may do so only once.
    Spent,
}

/// A promise that the loss of the carrier broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Which.
    pub id: PromiseId,
    /// Whether a request was being answered from it, which must now ask (and skip what it has already passed on).
    pub answering: bool,
}

#[derive(Debug)]
struct Promise {
    user: Arc<str>,
    load: LoadId,
    url: Url,
    request: Arc<HeaderMap>,
    /// Set once the response's head is known and a shared cache could reuse it: the head, and until when.
    reusable: Option<(Stored, Duration)>,
    answered: bool,
    whole_at: Option<Duration>,
}

/// All promises of one remote.
#[derive(Debug, Default)]
pub struct Promises {
    open: BTreeMap<PromiseId, Promise>,
    by_url: HashMap<(Arc<str>, Url), Vec<PromiseId>>,
    loads: Loads,
    max_per_user: usize,
    max: usize,
}

impl Promises {
    /// A book that holds at most `max` promises, and at most `max_per_user` for each user.
    pub fn new(max_per_user: usize, max: usize) -> Self {
        Promises { max_per_user, max, ..Promises::default() }
    }

    /// A request for a document by `user` starts load `load`. Returns the promises that end with it at once: those of earlier
    /// loads of the same document, but for what any shared cache could reuse. The page that `Referer` names may be left
    /// with it, which [`Promises::leave`] finds out. Requests that are no navigation change nothing, nor does what was
    /// promised as a frame's document.
    pub fn begin_load(
        &mut self,
        user: &Arc<str>,
        load: LoadId,
        url: &Url,
        request: &HeaderMap,
    ) -> Vec<PromiseId> {
        let url = without_fragment(url);
        // Over plain HTTP a frame's document is asked for like a page; but pages are not promised.
        if !is_navigation(request)
            || self.loads.is_frame(user, &url, request)
            || self.is_promised(user, &url, request)
            || self.loads.is_led(user, &url, request)
        {
            return Vec::new();
        }
        let ended = self.loads.begin(user, load, url, request);
        self.end_all(ended)
    }

    /// The load whose document a redirect has led to `url`, if this request of `user` goes on there: to be asked before
    /// [`Promises::begin_load`], and told once.
    pub fn led_to(&mut self, user: &Arc<str>, url: &Url, request: &HeaderMap) -> Option<LoadId> {
        self.loads.led_to(user, &without_fragment(url), request)
    }

    /// `exchange` begins at `now`, a request of `user` for `url`, after its [`Promises::begin_load`] if it is a navigation.
    pub fn asks(&mut self, exchange: u64, user: &str, url: &Url, request: &HeaderMap, now: Duration) {
        self.loads.asks(exchange, user, &without_fragment(url), request, now);
    }

    /// What answers the document of `load`, at `url`, goes to the browser at `now`, and will be shown: no redirect, no
    /// download.
    pub fn shown(&mut self, load: LoadId, url: &Url, now: Duration) {
        self.loads.shown(load, &without_fragment(url), now);
    }

    /// `exchange` has ended at `now`, answered or not. To be called for each of which [`Promises::asks`] was told.
    pub fn settled(&mut self, exchange: u64, now: Duration) {
        self.loads.settled(exchange, now);
    }

    /// The promises that end with the pages which users have left, as is clear by `now`: the next document is shown, and
    /// the page has nothing under way and has asked for nothing for a while. What any shared cache could reuse is kept
    /// for another page of the same origin.
    pub fn leave(&mut self, now: Duration) -> Vec<PromiseId> {
        let left = self.loads.left(now);
        self.end_all(left)
    }

    /// The document of `load` is at `to`, to which a redirect leads from `from`: what is asked for from there, and the
    /// document itself, belongs to it.
    pub fn moved(&mut self, load: LoadId, from: &Url, to: &Url) {
        self.loads.moved(load, &without_fragment(from), without_fragment(to));
    }

    /// A request for something of `load` was given up: if nothing else is under way for it, and nothing comes for a while, its page is
    /// closed, as [`Promises::leave`] finds out.
    pub fn doubt(&mut self, load: LoadId) {
        self.loads.doubt(load);
    }

    /// Whether any shared cache could reuse what answers the promise, as far as its head has come.
    pub fn is_reusable(&self, id: PromiseId) -> bool {
        self.open.get(&id).is_some_and(|promise| promise.reusable.is_some())
    }

    /// Whether exactly this was promised, and will be answered so: it is of a page that is open, and opens none.
    fn is_promised(&self, user: &Arc<str>, url: &Url, request: &HeaderMap) -> bool {
        let ids = self.by_url.get(&(Arc::clone(user), url.clone())).map(Vec::as_slice).unwrap_or_default();
        ids.iter()
            .filter_map(|id| self.open.get(id))
            .any(|promise| !promise.is_spent() && compare(&promise.request, request).is_ok())
    }

    /// The origin is asked about what is held at `url`, for the page of `load`: if a redirect leads its document there, or it is
    /// a `document` and a frame asks for it, that is still this page's.
    pub fn note_validated(&mut self, load: LoadId, url: &Url, document: bool) {
        self.loads.note_validated(load, without_fragment(url), document);
    }

    /// The page of `load` is gone: its exchange failed, or its user is. Returns the promises that end with it.
    pub fn end_load(&mut self, load: LoadId) -> Vec<PromiseId> {
        self.end(load, false)
    }

    fn end_all(&mut self, loads: Vec<(LoadId, bool)>) -> Vec<PromiseId> {
        loads.into_iter().flat_map(|(load, keep_reusable)| self.end(load, keep_reusable)).collect()
    }

    fn end(&mut self, load: LoadId, keep_reusable: bool) -> Vec<PromiseId> {
        self.loads.end(load);
        // One that is being sent to a client belongs to that request now, whichever page is open.
        self.remove_where(|promise| {
            promise.load == load && !promise.answered && !(keep_reusable && promise.reusable.is_some())
        })
    }

    /// Whether the page of `load` is taken to be open.
    pub fn is_open(&self, load: LoadId) -> bool {
        self.loads.contains(load)
    }

    /// The load to which belongs what is promised along with the answer to exchange `load`, a request of `user`: its own
    /// if it asks for a document, else that of the page that asks.
    pub fn load_of(&self, load: LoadId, user: &str, url: &Url, request: &HeaderMap) -> LoadId {
        if self.loads.contains(load) {
            return load;
        }
        self.loads.asking(user, &without_fragment(url), request).unwrap_or(load)
    }

    /// Takes down that ground promised `request` on `url` to `user`, for `load`. `false` if the book is full, for this
    /// user or at all: the promise is to be cancelled.
    #[must_use]
    pub fn promise(
        &mut self,
        id: PromiseId,
        user: &Arc<str>,
        load: LoadId,
        url: Url,
        request: impl Into<Arc<HeaderMap>>,
    ) -> bool {
        let held = self.open.values().filter(|promise| promise.user == *user).count();
        if held >= self.max_per_user || self.open.len() >= self.max || self.open.contains_key(&id) {
            return false;
        }
        self.by_url.entry((Arc::clone(user), url.clone())).or_default().push(id);
        let (user, request) = (Arc::clone(user), request.into());
        if is_navigation(&request) {
            self.loads.note_frame(load, &url, &request);
        }
        let promise = Promise { user, load, url, request, reusable: None, answered: false, whole_at: None };
        self.open.insert(id, promise);
        true
    }

    /// The head of a promised response has arrived, at `now` (`wall` on the clock), which was not asked for before `asked_at`.
    /// Returns whether any shared cache could reuse it, so that it may go to the shared repository.
    pub fn head(
        &mut self,
        id: PromiseId,
        status: StatusCode,
        response: &HeaderMap,
        now: Duration,
        (asked_at, wall): (SystemTime, SystemTime),
    ) -> bool {
        let Some(promise) = self.open.get_mut(&id) else { return false };
        // Who passes caches by will not be answered by the repository either.
        let secure = promise.url.scheme() == "https";
        if passes_caches_by(&promise.request) || !shareable(secure, &promise.request, status, response) {
            return false;
        }
        let stored = Stored::new(&promise.request, status, response, asked_at, wall);
        let left = stored.lifetime(Scope::Shared).saturating_sub(stored.age(wall));
        let said = ResponseDirectives::of(response);
        if left.is_zero() || said.wants_validation() || !said.private_fields.is_empty() {
            return false;
        }
        promise.reusable = Some((stored, now.saturating_add(left)));
        true
    }

    /// The last byte has arrived at `now`. A promise that any shared cache could reuse for so long leaves the book (`true`): the
    /// repository answers from now on. Any other may be asked for during the next 10 s, unless it has answered.
    pub fn complete(&mut self, id: PromiseId, now: Duration) -> bool {
        let Some(promise) = self.open.get_mut(&id) else { return false };
        promise.whole_at = Some(now);
        // What would be stale before its page asks for it is kept for that.
        let lasts = |until: &Duration| now.saturating_add(LAPSE) <= *until;
        let cacheable = promise.reusable.as_ref().is_some_and(|(_, until)| lasts(until));
        if cacheable || promise.answered {
            self.remove(id);
        }
        cacheable
    }

    /// Ground withdrew the promise, or its stream failed.
    pub fn withdraw(&mut self, id: PromiseId) {
        self.remove(id);
    }

    /// Which promise, if any, answers this request of `user`. Not to be called for a request that has content.
    pub fn ask(
        &mut self,
        user: &Arc<str>,
        method: &Method,
        url: &Url,
        request: &HeaderMap,
        now: Duration,
    ) -> Answer {
        if method != Method::GET {
            return Answer::Ask(WhyAsk::Method);
        }
        let key = (Arc::clone(user), without_fragment(url));
        let mut why = WhyAsk::NotPromised;
        for id in self.by_url.get(&key).map(Vec::as_slice).unwrap_or_default() {
            let Some(promise) = self.open.get_mut(id) else { continue };
            let own = self.loads.is_of(promise.load, user, &key.1, request);
            match promise.answers(request, own, now) {
                Ok(()) => {
                    promise.answered = true;
                    return Answer::Promise(*id);
                }
                Err(reason) => why = reason,
            }
        }
        Answer::Ask(why)
    }

    /// Promises whose time is over at `now`; they are forgotten, and what was kept of them can go.
    pub fn lapse(&mut self, now: Duration) -> Vec<PromiseId> {
        self.remove_where(|promise| promise.lapses_at().is_some_and(|at| at <= now))
    }

    /// When [`Promises::lapse`] has something to do next.
    pub fn next_wakeup(&self) -> Option<Duration> {
        self.open.values().filter_map(Promise::lapses_at).min()
    }

    /// A carrier is lost: no promise of `its` that is not whole can be kept. Whole ones still answer.
    pub fn carrier_lost(&mut self, its: impl Fn(PromiseId) -> bool) -> Vec<Lost> {
        let broken: Vec<Lost> = self
            .open
            .iter()
            .filter(|(id, promise)| promise.whole_at.is_none() && its(**id))
            .map(|(id, promise)| Lost { id: *id, answering: promise.answered })
            .collect();
        for lost in &broken {
            self.remove(lost.id);
        }
        broken
    }

    /// Promises in the book.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether the book is empty.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn remove_where(&mut self, mut doomed: impl FnMut(&Promise) -> bool) -> Vec<PromiseId> {
        let ids: Vec<PromiseId> =
            self.open.iter().filter(|(_, promise)| doomed(promise)).map(|(id, _)| *id).collect();
        for id in &ids {
            self.remove(*id);
        }
        ids
    }

    fn remove(&mut self, id: PromiseId) {
        let Some(promise) = self.open.remove(&id) else { return };
        let key = (promise.user, promise.url);
        if let Some(ids) = self.by_url.get_mut(&key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_url.remove(&key);
            }
        }
    }
}

impl Promise {
    /// `own` says that the request is of the page load that this was promised for.
    fn answers(&self, request: &HeaderMap, own: bool, now: Duration) -> Result<(), WhyAsk> {
        if !own && wants_anew(&self.request, request) {
            return Err(WhyAsk::OtherLoad);
        }
        match &self.reusable {
            // RFC 9111 §4: what a shared cache may reuse may differ in fields that Vary does not name.
            Some((stored, until)) if now < *until && stored.answers(request) => {
                compare_always(&self.request, request).map_err(WhyAsk::Field)
            }
            reusable => {
                compare(&self.request, request).map_err(WhyAsk::Field)?;
                // Equal in every field. Once, unless it may be reused.
                let fresh = reusable.as_ref().is_some_and(|(_, until)| now < *until);
                match self.answered {
                    _ if fresh => Ok(()),
                    true => Err(WhyAsk::Spent),
                    false if own => Ok(()),
                    false => Err(WhyAsk::OtherLoad),
                }
            }
        }
    }

    /// It has answered, and does so once.
    fn is_spent(&self) -> bool {
        self.answered && self.reusable.is_none()
    }

    fn lapses_at(&self) -> Option<Duration> {
        self.whole_at.map(|whole| whole.saturating_add(LAPSE))
    }
}

fn without_fragment(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    url
}
