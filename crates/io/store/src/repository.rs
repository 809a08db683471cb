//! Responses held: which there are, which answers a request, which go when room is needed. Bodies may still
//! be arriving while they are read. Whether a response may be stored or used is `farhop_freshness`'s word.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use farhop_freshness::{Scope, Stored};
use http::HeaderMap;
use tokio::sync::broadcast;

use crate::body::{Body, Budget};

/// Variants of one URL that are held at a time (by `Vary`).
const VARIANTS: usize = 8;
/// Invalidations that are remembered, for what was asked for before them and arrives after.
const INVALIDATIONS: usize = 1024;
/// What an entry costs besides its body, and each of its fields besides its name and value.
const OVERHEAD: u64 = 1024;
const FIELD: u64 = 104;

/// A future as a repository returns it: memory answers at once, a disk would not.
pub type Eventually<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whose responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Partition {
    /// Everyone's: only what RFC 9111 lets a shared cache keep.
    Shared,
    /// One user's own.
    User(u64),
}

impl Partition {
    /// By which rules its responses are judged.
    pub fn scope(self) -> Scope {
        match self {
            Partition::Shared => Scope::Shared,
            Partition::User(_) => Scope::Private,
        }
    }
}

/// A response as it is held.
#[derive(Debug, Clone)]
pub struct Held {
    /// Names this entry.
    pub id: u64,
    /// Whose it is.
    pub partition: Partition,
    /// Its head.
    pub head: Arc<Stored>,
    /// Its body, perhaps still arriving.
    pub body: Body,
}

/// What changed; ground's mirror follows these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A response is held from now on, or its head was renewed.
    Stored {
        /// Names the entry.
        id: u64,
        /// Whose.
        partition: Partition,
        /// What it answers.
        url: Arc<str>,
    },
    /// It is held no longer.
    Evicted {
        /// Names the entry.
        id: u64,
        /// Whose.
        partition: Partition,
        /// What it answered.
        url: Arc<str>,
        /// Bytes of its body.
        bytes: u64,
    },
}

/// Where responses are held.
pub trait Repository: Send + Sync + 'static {
    /// Responses to GET `url` whose `Vary` matches `request`, newest first.
    fn find<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        request: &'a HeaderMap,
    ) -> Eventually<'a, Vec<Held>>;
    /// Holds a response; what it replaces goes. The body may still be arriving; when it breaks the entry goes. One that was
    /// asked for before its URL was invalidated is not held: its number names nothing.
    fn store<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        head: Stored,
        body: Body,
    ) -> Eventually<'a, u64>;
    /// Puts a new head (after a 304) in place of the old.
    fn freshen<'a>(&'a self, id: u64, head: Stored) -> Eventually<'a, ()>;
    /// Drops every variant of `url`, in every partition.
    fn invalidate<'a>(&'a self, url: &'a str) -> Eventually<'a, ()>;
    /// Drops one entry.
    fn evict(&self, id: u64) -> Eventually<'_, ()>;
    /// Drops everything.
    fn clear(&self) -> Eventually<'_, ()>;
    /// The entry of this number, and what it answers.
    fn entry(&self, id: u64) -> Eventually<'_, Option<(Arc<str>, Held)>>;
    /// The numbers of all entries, newest first.
    fn newest(&self) -> Eventually<'_, Vec<u64>>;
    /// Every store and evict from now on.
    fn changes(&self) -> broadcast::Receiver<Change>;
}

struct Entry {
    url: Arc<str>,
    held: Held,
    used: u64,
}

impl Entry {
    /// Bytes that it takes besides its body.
    fn cost(&self) -> u64 {
        let head = &self.held.head;
        let fields = head.fields.iter().chain(&head.nominated);
        let fields = fields.map(|(name, value)| FIELD + (name.as_str().len() + value.len()) as u64);
        OVERHEAD + self.url.len() as u64 + fields.sum::<u64>()
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<u64, Entry>,
    by_url: HashMap<(Partition, Arc<str>), Vec<u64>>,
    /// Last use → entry: the first has been unused longest.
    by_use: BTreeMap<u64, u64>,
    /// Bytes of all entries besides their bodies.
    costs: u64,
    /// Oldest first.
    invalidated: VecDeque<(SystemTime, Arc<str>)>,
    next: u64,
    clock: u64,
}

/// Changes that a listener may fall behind before it misses some; room for each is kept, 72 bytes. It is a whole page's.
const CHANGES: usize = 512;

/// A repository in memory, bounded by its budget; what was unused longest goes first.
pub struct Memory {
    state: Mutex<State>,
    budget: Arc<Budget>,
    changes: broadcast::Sender<Change>,
}

impl Memory {
    /// A repository that shares `budget` with the bodies it is given.
    pub fn new(budget: Arc<Budget>) -> Self {
        Memory { state: Mutex::default(), budget, changes: broadcast::Sender::new(CHANGES) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, change: Change) {
        // Nobody may be listening.
        let _ = self.changes.send(change);
    }

    fn remove(&self, state: &mut State, id: u64) {
        let Some(entry) = state.entries.remove(&id) else { return };
        state.by_use.remove(&entry.used);
        state.costs -= entry.cost();
        let key = (entry.held.partition, Arc::clone(&entry.url));
        if let Some(ids) = state.by_url.get_mut(&key) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                state.by_url.remove(&key);
            }
        }
        let bytes = entry.held.body.written();
        self.announce(Change::Evicted { id, partition: entry.held.partition, url: entry.url, bytes });
    }

    /// Makes room until an eighth of the budget is free for what arrives.
    fn make_room(&self, state: &mut State) {
        let most = self.budget.most();
        while self.budget.used() + state.costs > most - most / 8 {
            let Some((_, id)) = state.by_use.first_key_value().map(|(used, id)| (*used, *id)) else { break };
            self.remove(state, id);
        }
    }
}

impl Repository for Memory {
    fn find<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        request: &'a HeaderMap,
    ) -> Eventually<'a, Vec<Held>> {
        let mut state = self.lock();
        let state = &mut *state;
        let ids = state.by_url.get(&(partition, Arc::from(url))).cloned().unwrap_or_default();
        let mut found = Vec::new();
        for id in ids.into_iter().rev() {
            let Some(entry) = state.entries.get_mut(&id) else { continue };
            if entry.held.body.is_broken() || !entry.held.body.can_be_joined() {
                self.remove(state, id);
                continue;
            }
            if entry.held.head.answers(request) {
                state.clock += 1;
                state.by_use.remove(&entry.used);
                entry.used = state.clock;
                state.by_use.insert(entry.used, id);
                found.push(entry.held.clone());
            }
        }
        Box::pin(std::future::ready(found))
    }

    fn store<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        head: Stored,
        body: Body,
    ) -> Eventually<'a, u64> {
        let mut state = self.lock();
        let state = &mut *state;
        self.make_room(state);
        let url: Arc<str> = url.into();
        let id = state.next;
        state.next += 1;
        state.clock += 1;
        if state.invalidated.iter().any(|(at, own)| *own == url && head.requested_at <= *at) {
            return Box::pin(std::future::ready(id));
        }
        let key = (partition, Arc::clone(&url));
        let same: Vec<u64> = state
            .by_url
            .get(&key)
            .into_iter()
            .flatten()
            .copied()
            .filter(|other| state.entries.get(other).is_some_and(|e| e.held.head.nominated == head.nominated))
            .collect();
        for old in same {
            self.remove(state, old);
        }
        if let Some(oldest) =
            state.by_url.get(&key).filter(|ids| ids.len() >= VARIANTS).and_then(|ids| ids.first().copied())
        {
            self.remove(state, oldest);
        }
        let held = Held { id, partition, head: Arc::new(head), body };
        state.by_use.insert(state.clock, id);
        let entry = Entry { url: Arc::clone(&url), held, used: state.clock };
        state.costs += entry.cost();
        state.entries.insert(id, entry);
        state.by_url.entry(key).or_default().push(id);
        self.announce(Change::Stored { id, partition, url });
        Box::pin(std::future::ready(id))
    }

    fn freshen<'a>(&'a self, id: u64, head: Stored) -> Eventually<'a, ()> {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(entry) = state.entries.get_mut(&id) {
            state.costs -= entry.cost();
            entry.held.head = Arc::new(head);
            state.costs += entry.cost();
            let (partition, url) = (entry.held.partition, Arc::clone(&entry.url));
            self.announce(Change::Stored { id, partition, url });
        }
        Box::pin(std::future::ready(()))
    }

    fn invalidate<'a>(&'a self, url: &'a str) -> Eventually<'a, ()> {
        let mut state = self.lock();
        let ids: Vec<u64> = state.entries.iter().filter(|(_, e)| &*e.url == url).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.remove(&mut state, id));
        state.invalidated.push_back((SystemTime::now(), url.into()));
        if state.invalidated.len() > INVALIDATIONS {
            state.invalidated.pop_front();
        }
        Box::pin(std::future::ready(()))
    }

    fn evict(&self, id: u64) -> Eventually<'_, ()> {
        self.remove(&mut self.lock(), id);
        Box::pin(std::future::ready(()))
    }

    fn clear(&self) -> Eventually<'_, ()> {
        let mut state = self.lock();
        let ids: Vec<u64> = state.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| self.remove(&mut state, id));
        Box::pin(std::future::ready(()))
    }

    fn entry(&self, id: u64) -> Eventually<'_, Option<(Arc<str>, Held)>> {
        let state = self.lock();
        let found = state.entries.get(&id).map(|entry| (Arc::clone(&entry.url), entry.held.clone()));
        Box::pin(std::future::ready(found))
    }

    fn newest(&self) -> Eventually<'_, Vec<u64>> {
        let mut ids: Vec<u64> = self.lock().entries.keys().copied().collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Box::pin(std::future::ready(ids))
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderValue, StatusCode};
    fn head(vary: Option<&'static str>, request: &HeaderMap) -> Stored {
        let mut fields = HeaderMap::new();
        fields.insert("cache-control", HeaderValue::from_static("max-age=60"));
        if let Some(vary) = vary {
            fields.insert("vary", HeaderValue::from_static(vary));
        }
        Stored::new(request, StatusCode::OK, &fields, SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH)
    }

    fn accepting(language: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::header::ACCEPT_LANGUAGE, HeaderValue::from_static(language))])
    }

    #[tokio::test]
    async fn variants_answer_the_requests_that_their_vary_matches() {
        let budget = Budget::new(1 << 20);
        let memory = Memory::new(Arc::clone(&budget));
        let (german, french) = (accepting("de"), accepting("fr"));
        for request in [&german, &french] {
            memory
                .store(
                    Partition::Shared,
                    "http://a.test/",
                    head(Some("accept-language"), request),
                    Body::whole(&budget, Bytes::from_static(b"x")),
                )
                .await;
        }
        assert_eq!(memory.find(Partition::Shared, "http://a.test/", &german).await.len(), 1);
        assert!(memory.find(Partition::Shared, "http://a.test/", &accepting("it")).await.is_empty());
    }

    #[tokio::test]
    async fn a_user_never_sees_what_is_held_for_another() {
        let budget = Budget::new(1 << 20);
        let memory = Memory::new(Arc::clone(&budget));
        let none = HeaderMap::new();
        memory
            .store(
                Partition::User(1),
                "http://a.test/",
                head(None, &none),
                Body::whole(&budget, Bytes::from_static(b"x")),
            )
            .await;
        for partition in [Partition::User(2), Partition::Shared] {
            assert!(memory.find(partition, "http://a.test/", &none).await.is_empty());
        }
    }

    #[tokio::test]
    async fn what_was_unused_longest_goes_first_and_is_announced() {
        let budget = Budget::new(100_000);
        let memory = Memory::new(Arc::clone(&budget));
        let none = HeaderMap::new();
        let mut changes = memory.changes();
        for n in 0..8 {
            let body = Body::whole(&budget, Bytes::from(vec![0; 20_000]));
            memory.store(Partition::Shared, &format!("http://a.test/{n}"), head(None, &none), body).await;
            memory.find(Partition::Shared, "http://a.test/0", &none).await;
        }
        assert!(budget.used() <= 100_000);
        assert_eq!(
            memory.find(Partition::Shared, "http://a.test/0", &none).await.len(),
            1,
            "used all the time"
        );
        assert!(memory.find(Partition::Shared, "http://a.test/1", &none).await.is_empty());
        let mut evicted = 0;
        while let Ok(change) = changes.try_recv() {
            evicted += usize::from(matches!(change, Change::Evicted { bytes: 20_000, .. }));
        }
        assert!(evicted >= 4, "{evicted}");
    }

    #[tokio::test]
    async fn what_was_asked_for_before_an_invalidation_and_arrives_after_it_is_not_held() {
        let budget = Budget::new(1 << 20);
        let memory = Memory::new(Arc::clone(&budget));
        let none = HeaderMap::new();
        let asked = |at: SystemTime| Stored { requested_at: at, ..head(None, &none) };
        let store = |url: &'static str, at| {
            let body = Body::whole(&budget, Bytes::from_static(b"x"));
            memory.store(Partition::User(1), url, asked(at), body)
        };
        let found = async |url| memory.find(Partition::User(1), url, &none).await.len();
        let before = SystemTime::now();
        store("http://a.test/", before).await;
        memory.invalidate("http://a.test/").await;
        let outdated = store("http://a.test/", before).await;
        assert!(found("http://a.test/").await == 0 && memory.entry(outdated).await.is_none());
        store("http://a.test/other", before).await;
        store("http://a.test/", SystemTime::now() + std::time::Duration::from_millis(1)).await;
        assert_eq!((found("http://a.test/other").await, found("http://a.test/").await), (1, 1));
        for number in 0..2 * INVALIDATIONS {
            memory.invalidate(&format!("http://b.test/{number}")).await;
        }
        assert_eq!(memory.lock().invalidated.len(), INVALIDATIONS);
    }

    #[tokio::test]
    async fn heads_count_as_bodies_do() {
        let budget = Budget::new(100_000);
        let memory = Memory::new(Arc::clone(&budget));
        let none = HeaderMap::new();
        let mut long = head(None, &none);
        long.fields.insert("x-long", HeaderValue::from_bytes(&[b'x'; 20_000]).unwrap());
        for n in 0..8 {
            let body = Body::whole(&budget, Bytes::from_static(b"x"));
            memory.store(Partition::Shared, &format!("http://a.test/{n}"), long.clone(), body).await;
        }
        let held = memory.newest().await;
        assert!((1..=5).contains(&held.len()), "{held:?}");
        for id in held {
            memory.freshen(id, head(None, &none)).await;
        }
        memory.clear().await;
        assert_eq!(memory.lock().costs, 0);
    }

    #[tokio::test]
    async fn a_body_that_broke_is_not_found_again() {
        let budget = Budget::new(1 << 20);
        let memory = Memory::new(Arc::clone(&budget));
        let none = HeaderMap::new();
        let (intake, body) = Body::new(&budget, 1000);
        memory.store(Partition::Shared, "http://a.test/", head(None, &none), body).await;
        assert_eq!(
            memory.find(Partition::Shared, "http://a.test/", &none).await.len(),
            1,
            "while it arrives"
        );
        drop(intake);
        assert!(memory.find(Partition::Shared, "http://a.test/", &none).await.is_empty());
    }
}
