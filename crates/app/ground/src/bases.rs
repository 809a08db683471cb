//! Texts that remotes were sent, kept so that what has changed of one, or is made like one, can cross as what differs
//! (docs/htotp.md, "Deltas"). Only what a remote has said that it holds is a base; what was one user's is never
//! another's. In memory, bounded; what a remote holds that was sent before this process began, or has left the memory, is
//! taken up again from the store on disk as it is needed (`kin`). Pure but for its lock.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_squeeze::can_be_base;
use serde_json::{Value, json};

use crate::shape::{Address, likeness};

/// Texts kept, whatever their length; each counts so many bytes besides, and those of its URL.
const MOST: usize = 8_192;
const OVERHEAD: usize = 512;
/// What is shorter is not worth a word of the remote's.
const SMALLEST: usize = 512;
/// Versions kept of a URL for the same users; the remote may hold several, by the fields of requests.
const VERSIONS: usize = 4;
/// Hashes of what remotes hold for everyone and nothing is known of here; the oldest go first. About 100 B each.
const UNKNOWN: usize = 8_192;
/// Texts that are looked at for the one that is most alike; the newest.
const LOOKED_AT: usize = 32;

/// A remote, for as long as it remembers what it holds and numbers its users alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    pub(crate) remote: Arc<str>,
    pub(crate) epoch: u64,
}

/// For whom a text is, and what it answers.
#[derive(Debug, Clone)]
pub(crate) struct Purpose {
    pub(crate) memory: Memory,
    /// The user that it was given to, or everyone.
    pub(crate) owner: Option<u64>,
    pub(crate) address: Address,
    /// Type and subtype.
    pub(crate) media: Arc<str>,
}

/// What a text may be sent against.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) hash: BodyHash,
    pub(crate) body: Bytes,
}

struct Kept {
    purpose: Purpose,
    hash: BodyHash,
    body: Bytes,
    /// For whom the remote holds it, once it has said so.
    held: Option<Option<u64>>,
}

impl Kept {
    fn size(&self) -> usize {
        self.body.len() + OVERHEAD + 2 * self.purpose.address.url().len()
    }

    /// Whether `user` may be sent something against it: it was this user's or everyone's, here and at the remote.
    fn serves(&self, user: u64) -> bool {
        let is_for = |owner: Option<u64>| owner.is_none_or(|owner| owner == user);
        is_for(self.purpose.owner) && self.held.is_some_and(is_for)
    }
}

/// See the module.
pub(crate) struct Bases {
    state: Mutex<State>,
    /// Bytes of texts that are being sent and will be kept.
    arriving: AtomicUsize,
}

struct State {
    most: usize,
    bytes: usize,
    next: u64,
    kept: BTreeMap<u64, Kept>,
    by_hash: HashMap<(Memory, BodyHash), Vec<u64>>,
    /// By the shape of the address: those of a URL are among them.
    by_shape: HashMap<(Memory, String), Vec<u64>>,
    unknown: Unknown,
}

/// Texts that remotes hold for everyone and that are not here: this process has not sent them, or not lately.
#[derive(Default)]
struct Unknown {
    told: HashSet<(Memory, BodyHash)>,
    order: VecDeque<(Memory, BodyHash)>,
}

impl Unknown {
    fn add(&mut self, text: (Memory, BodyHash)) {
        if !self.told.insert(text.clone()) {
            return;
        }
        self.order.push_back(text);
        if self.order.len() > UNKNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
        }
    }

    fn remove(&mut self, text: &(Memory, BodyHash)) -> bool {
        let was_told = self.told.remove(text);
        if was_told {
            self.order.retain(|known| known != text);
        }
        was_told
    }

    fn retain(&mut self, stays: impl Fn(&Memory) -> bool) {
        self.order.retain(|(memory, _)| stays(memory));
        self.told.retain(|(memory, _)| stays(memory));
    }
}

impl Bases {
    /// Keeps so many bytes.
    pub(crate) fn new(most: u64) -> Bases {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let state = State {
            most,
            bytes: 0,
            next: 0,
            kept: BTreeMap::new(),
            by_hash: HashMap::new(),
            by_shape: HashMap::new(),
            unknown: Default::default(),
        };
        Bases { state: Mutex::new(state), arriving: AtomicUsize::new(0) }
    }

    /// Counts bytes that are on their way and will be kept; `false` where there is no room for so many.
    pub(crate) fn expect(&self, bytes: usize) -> bool {
        self.arriving.fetch_add(bytes, Relaxed) + bytes <= self.lock().most
    }

    /// So many do not arrive any more, or have arrived.
    pub(crate) fn expect_no_more(&self, bytes: usize) {
        self.arriving.fetch_sub(bytes, Relaxed);
    }

    /// Keeps so many from now on.
    pub(crate) fn set(&self, most: u64) {
        let mut state = self.lock();
        state.most = usize::try_from(most).unwrap_or(usize::MAX);
        state.fit();
    }

    /// Whether anything is kept at all.
    pub(crate) fn is_on(&self) -> bool {
        self.lock().most > 0
    }

    /// A text was sent whole.
    pub(crate) fn keep(&self, purpose: Purpose, body: Bytes) {
        if body.len() < SMALLEST || !can_be_base(&body) {
            return;
        }
        let hash = BodyHash::of(&body);
        self.lock().keep(purpose, hash, body);
    }

    /// Whether a remote holds texts of which this ground knows nothing, which may be this one's last version: none is kept.
    pub(crate) fn misses(&self, purpose: &Purpose) -> bool {
        let state = self.lock();
        let shape = (purpose.memory.clone(), purpose.address.shape().to_owned());
        let is_its = |id: &u64| {
            state.kept.get(id).is_some_and(|kept| {
                kept.held.is_some() && kept.purpose.address.url() == purpose.address.url()
            })
        };
        let is_known = state.by_shape.get(&shape).is_some_and(|ids| ids.iter().any(is_its));
        state.most > 0 && !is_known && !state.unknown.told.is_empty()
    }

    /// A remote has begun to remember. What anyone may have it may hold from its earlier life, which it will say; whose the rest
    /// was is not known any more.
    pub(crate) fn arrived(&self, memory: &Memory) {
        let is_earlier = |of: &Memory| of.remote == memory.remote && of.epoch != memory.epoch;
        let mut state = self.lock();
        state.unknown.retain(|of| !is_earlier(of));
        let earlier = state.kept.iter().filter(|(_, kept)| is_earlier(&kept.purpose.memory));
        let earlier: Vec<u64> = earlier.map(|(id, _)| *id).collect();
        let earlier: Vec<_> = earlier.into_iter().filter_map(|id| state.forget(id)).collect();
        for Kept { purpose, hash, body, .. } in earlier {
            if purpose.owner.is_none() {
                let told = (memory.clone(), hash);
                let is_held = state.unknown.remove(&told);
                state.keep(Purpose { memory: memory.clone(), ..purpose }, hash, body);
                if is_held {
                    state.holds(memory, HeldBody { user: None, hash });
                }
            }
        }
    }

    /// Keeps what anyone may have and an earlier process has sent, if the remote has said that it holds it.
    pub(crate) fn take_up(&self, purpose: Purpose, body: Bytes) {
        let hash = BodyHash::of(&body);
        let mut state = self.lock();
        let key = (purpose.memory.clone(), hash);
        if can_be_base(&body) && state.unknown.remove(&key) {
            let memory = purpose.memory.clone();
            state.keep(purpose, hash, body);
            state.holds(&memory, HeldBody { user: None, hash });
        }
    }

    /// What a remote says of what it holds.
    pub(crate) fn hear(&self, memory: &Memory, word: &Word) {
        let mut state = self.lock();
        match word {
            Word::Holds(bodies) => bodies.iter().for_each(|body| state.holds(memory, *body)),
            Word::Lacks(bodies) => bodies.iter().for_each(|body| state.lacks(memory, *body)),
            Word::Reset
            | Word::Log(_)
            | Word::Summary(_)
            | Word::Stored(_)
            | Word::Validators(_)
            | Word::Evicted(_) => {}
        }
    }

    /// The best base for what `user` is about to be sent: what this URL answered last, else what answered the URL that is
    /// most like it.
    pub(crate) fn base(&self, purpose: &Purpose, user: u64) -> Option<Base> {
        let state = self.lock();
        let shape = (purpose.memory.clone(), purpose.address.shape().to_owned());
        let alike = state.by_shape.get(&shape)?.iter().rev().filter_map(|id| state.kept.get(id));
        let alike = alike.filter(|kept| kept.serves(user) && kept.purpose.media == purpose.media);
        let judged = alike.take(LOOKED_AT).map(|kept| {
            let (its, this) = (&kept.purpose.address, &purpose.address);
            ((its.url() == this.url(), likeness(its, this)), kept)
        });
        // Of equals the first, which is the newest.
        let best = judged.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
        Some(Base { hash: best.1.hash, body: best.1.body.clone() })
    }

    /// For `status`: how much is kept, how much of it is known to be held, and what more is.
    pub(crate) fn status(&self) -> Value {
        let state = self.lock();
        let held = state.kept.values().filter(|kept| kept.held.is_some()).count();
        json!({ "kept": state.kept.len(), "held": held, "bytes": state.bytes, "unknown": state.unknown.told.len() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, purpose: Purpose, hash: BodyHash, body: Bytes) {
        let shape = (purpose.memory.clone(), purpose.address.shape().to_owned());
        let is_same_kind = |kept: &Kept| {
            kept.purpose.owner == purpose.owner && kept.purpose.address.url() == purpose.address.url()
        };
        let of_shape = self.by_shape.get(&shape).map_or(&[][..], Vec::as_slice);
        let versions: Vec<u64> =
            of_shape.iter().filter(|id| self.kept.get(*id).is_some_and(is_same_kind)).copied().collect();
        let mut held = None;
        let same = versions.iter().find(|id| self.kept.get(*id).is_some_and(|kept| kept.hash == hash));
        if let Some(same) = same {
            held = self.forget(*same).and_then(|kept| kept.held);
        } else if versions.len() >= VERSIONS {
            self.forget(versions[0]);
        }
        let id = self.next;
        self.next += 1;
        let kept = Kept { purpose, hash, body, held };
        self.bytes += kept.size();
        self.by_hash.entry((kept.purpose.memory.clone(), hash)).or_default().push(id);
        self.by_shape.entry(shape).or_default().push(id);
        self.kept.insert(id, kept);
        self.fit();
    }

    fn fit(&mut self) {
        while (self.bytes > self.most || self.kept.len() > MOST)
            && let Some((oldest, _)) = self.kept.first_key_value()
            && let Some(Kept { purpose, hash, held, .. }) = self.forget(*oldest)
        {
            // The store on disk may have it when it is needed.
            if purpose.owner.is_none() && held == Some(None) {
                self.unknown.add((purpose.memory, hash));
            }
        }
    }

    fn forget(&mut self, id: u64) -> Option<Kept> {
        let kept = self.kept.remove(&id)?;
        self.bytes -= kept.size();
        let memory = &kept.purpose.memory;
        strike(&mut self.by_hash, &(memory.clone(), kept.hash), id);
        strike(&mut self.by_shape, &(memory.clone(), kept.purpose.address.shape().to_owned()), id);
        Some(kept)
    }

    fn holds(&mut self, memory: &Memory, body: HeldBody) {
        let key = (memory.clone(), body.hash);
        let ids = self.by_hash.get(&key).cloned().unwrap_or_default();
        if ids.is_empty() && body.user.is_none() {
            self.unknown.add(key);
        }
        for id in ids {
            let Some(kept) = self.kept.get_mut(&id) else { continue };
            // What is another user's says nothing of this one's, even if it is equal.
            let is_its =
                kept.purpose.owner.is_none() || body.user.is_none() || kept.purpose.owner == body.user;
            if is_its && kept.held != Some(None) {
                kept.held = Some(body.user);
            }
        }
    }

    fn lacks(&mut self, memory: &Memory, body: HeldBody) {
        let key = (memory.clone(), body.hash);
        if body.user.is_none() {
            self.unknown.remove(&key);
        }
        let ids = self.by_hash.get(&key).cloned().unwrap_or_default();
        for id in ids {
            // The same may come again, or be held by then.
            if let Some(kept) = self.kept.get_mut(&id).filter(|kept| kept.held == Some(body.user)) {
                kept.held = None;
            }
        }
    }
}

fn strike<K: std::hash::Hash + Eq>(index: &mut HashMap<K, Vec<u64>>, key: &K, id: u64) {
    if let Some(ids) = index.get_mut(key) {
        ids.retain(|other| *other != id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn memory(epoch: u64) -> Memory {
        Memory { remote: "ship".into(), epoch }
    }

    fn purpose(owner: Option<u64>, path: &str) -> Purpose {
        let url = format!("http://site.test{path}");
        Purpose { memory: memory(1), owner, address: Address::of(&url), media: "text/html".into() }
    }

    fn text(word: &str) -> Bytes {
        word.repeat(SMALLEST).into()
    }

    fn holds(bases: &Bases, user: Option<u64>, word: &str) {
        bases.hear(&memory(1), &Word::Holds(vec![HeldBody { user, hash: BodyHash::of(&text(word)) }]));
    }

    fn base(bases: &Bases, user: u64, path: &str) -> Option<Bytes> {
        bases.base(&purpose(Some(user), path), user).map(|base| base.body)
    }

    #[test]
    fn a_text_is_a_base_once_the_remote_has_said_that_it_holds_it_and_no_more_when_it_lacks_it() {
        let bases = Bases::new(MB);
        bases.keep(purpose(None, "/"), text("a"));
        assert!(base(&bases, 1, "/").is_none());
        holds(&bases, None, "b");
        assert!(base(&bases, 1, "/").is_none());
        holds(&bases, None, "a");
        assert_eq!(base(&bases, 1, "/"), Some(text("a")));
        let body = HeldBody { user: None, hash: BodyHash::of(&text("a")) };
        bases.hear(&memory(2), &Word::Lacks(vec![body]));
        assert!(base(&bases, 1, "/").is_some(), "another said so");
        bases.hear(&memory(1), &Word::Lacks(vec![body]));
        assert!(base(&bases, 1, "/").is_none());
        // It was given up as one entry and is held as another.
        holds(&bases, None, "a");
        assert!(base(&bases, 1, "/").is_some());
    }

    #[test]
    fn nothing_of_one_users_private_body_is_ever_a_base_for_another() {
        let bases = Bases::new(MB);
        bases.keep(purpose(Some(1), "/"), text("a"));
        for told in [Some(2), Some(1), None] {
            holds(&bases, told, "a");
            assert!(base(&bases, 2, "/").is_none(), "{told:?}");
        }
        assert!(base(&bases, 1, "/").is_some());
        // What may be anyone's counts as one user's where the remote holds it so.
        bases.keep(purpose(None, "/b"), text("b"));
        holds(&bases, Some(1), "b");
        assert!(base(&bases, 1, "/b").is_some() && base(&bases, 2, "/b").is_none());
        // Equal bytes that were given to both are each one's own.
        bases.keep(purpose(Some(2), "/"), text("a"));
        assert!(base(&bases, 2, "/").is_none(), "the remote has not said so");
        holds(&bases, Some(2), "a");
        assert_eq!(base(&bases, 2, "/"), Some(text("a")));
        assert!(base(&bases, 3, "/").is_none());
    }

    #[test]
    fn another_remote_or_the_same_after_a_restart_has_none_of_it() {
        let bases = Bases::new(MB);
        bases.keep(purpose(None, "/"), text("a"));
        holds(&bases, None, "a");
        let restarted = Purpose { memory: memory(2), ..purpose(None, "/") };
        let other = Purpose { memory: Memory { remote: "other".into(), epoch: 1 }, ..purpose(None, "/") };
        assert!(bases.base(&restarted, 1).is_none() && bases.base(&other, 1).is_none());
    }

    #[test]
    fn what_anyone_may_have_of_a_remotes_earlier_life_is_a_base_once_it_says_so_and_the_rest_is_gone() {
        let bases = Bases::new(MB);
        let other = Memory { remote: "other".into(), epoch: 1 };
        bases.keep(purpose(None, "/"), text("a"));
        bases.keep(purpose(Some(1), "/own"), text("b"));
        bases.keep(Purpose { memory: other.clone(), ..purpose(None, "/") }, text("a"));
        holds(&bases, None, "a");
        holds(&bases, Some(1), "b");
        holds(&bases, None, "c");
        let is_base = |memory: &Memory, path| {
            let purpose = Purpose { memory: memory.clone(), ..purpose(None, path) };
            bases.base(&purpose, 1).is_some()
        };
        let kept = || (bases.status()["kept"].as_u64(), bases.status()["unknown"].as_u64());
        bases.arrived(&memory(1));
        assert!(is_base(&memory(1), "/") && is_base(&memory(1), "/own"), "another carrier of the same life");
        bases.arrived(&memory(2));
        // What is one user's is no other's who has that number now.
        assert_eq!(kept(), (Some(2), Some(0)));
        assert!(!is_base(&memory(2), "/") && !is_base(&memory(1), "/"), "it has not said that it holds it");
        for user in [Some(1), None] {
            let bodies = ["a", "b"].map(|word| HeldBody { user, hash: BodyHash::of(&text(word)) });
            bases.hear(&memory(2), &Word::Holds(bodies.to_vec()));
            assert!(!is_base(&memory(2), "/own"));
        }
        assert!(is_base(&memory(2), "/") && !is_base(&other, "/"));
    }

    #[test]
    fn what_has_left_the_memory_is_taken_up_again_as_long_as_the_remote_holds_it() {
        let url = "http://site.test/00".len();
        let bases = Bases::new(2 * (SMALLEST + OVERHEAD + 2 * url) as u64);
        bases.keep(purpose(None, "/00"), text("a"));
        bases.keep(purpose(Some(1), "/01"), text("b"));
        holds(&bases, None, "a");
        holds(&bases, Some(1), "b");
        for (path, word) in [("/02", "c"), ("/03", "d"), ("/04", "e")] {
            bases.keep(purpose(None, path), text(word));
        }
        // Of one user's, and what no remote holds, nothing is known any more.
        assert_eq!((bases.status()["kept"].as_u64(), bases.status()["unknown"].as_u64()), (Some(2), Some(1)));
        assert!(bases.misses(&purpose(None, "/00")));
        bases.take_up(purpose(None, "/01"), text("b"));
        bases.take_up(purpose(None, "/00"), text("a"));
        assert_eq!(base(&bases, 2, "/00"), Some(text("a")));
        assert!(!bases.lock().kept.values().any(|kept| kept.purpose.address.url().ends_with("/01")));
    }

    #[test]
    fn the_last_version_goes_before_the_page_most_alike_and_that_before_the_newest() {
        let bases = Bases::new(MB);
        for (path, word) in [
            ("/news/1-first", "a"),
            ("/news/2-second", "b"),
            ("/news/2-secret", "c"),
            ("/news/1-first", "d"),
            ("/news/9-else", "e"),
        ] {
            bases.keep(purpose(None, path), text(word));
            holds(&bases, None, word);
        }
        assert_eq!(base(&bases, 1, "/news/1-first"), Some(text("d")));
        assert_eq!(base(&bases, 1, "/news/2-secrets"), Some(text("c")));
        assert_eq!(base(&bases, 1, "/news/7-other"), Some(text("e")));
        assert_eq!(base(&bases, 1, "/about/us"), None);
        let styles = Purpose { media: "text/css".into(), ..purpose(None, "/news/1-first") };
        assert!(bases.base(&styles, 1).is_none());
        let elsewhere = Address::of("http://else.test/news/1-first");
        assert!(bases.base(&Purpose { address: elsewhere, ..purpose(None, "/") }, 1).is_none());
    }

    #[test]
    fn what_a_remote_holds_from_before_is_taken_up_again_and_nothing_else() {
        let bases = Bases::new(MB);
        bases.take_up(purpose(None, "/"), text("a"));
        assert!(!bases.misses(&purpose(None, "/")) && base(&bases, 1, "/").is_none(), "nobody holds it");
        holds(&bases, Some(1), "a");
        assert!(!bases.misses(&purpose(None, "/")), "it is one user's");
        holds(&bases, None, "a");
        assert!(bases.misses(&purpose(None, "/")));
        let restarted = Purpose { memory: memory(2), ..purpose(None, "/") };
        bases.take_up(restarted, text("a"));
        bases.take_up(purpose(None, "/"), text("b"));
        assert!(base(&bases, 1, "/").is_none(), "another remote's, and another text");
        bases.take_up(purpose(None, "/"), text("a"));
        assert_eq!(base(&bases, 1, "/"), Some(text("a")));
        assert!(!bases.misses(&purpose(None, "/")));
        bases.hear(&memory(1), &Word::Lacks(vec![HeldBody { user: None, hash: BodyHash::of(&text("a")) }]));
        assert!(base(&bases, 1, "/").is_none());
    }

    #[test]
    fn what_remotes_hold_and_nothing_is_known_of_is_bounded() {
        let bases = Bases::new(MB);
        for number in 0..UNKNOWN + 10 {
            holds(&bases, None, &format!("{number:05}"));
        }
        holds(&bases, None, &format!("{:05}", UNKNOWN + 9));
        let state = bases.lock();
        assert_eq!((state.unknown.told.len(), state.unknown.order.len()), (UNKNOWN, UNKNOWN));
        drop(state);
        bases.take_up(purpose(None, "/"), text("00000"));
        assert!(base(&bases, 1, "/").is_none(), "it was told the longest ago");
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        let url = "http://site.test/00".len();
        let bases = Bases::new(20 * (2 * SMALLEST + OVERHEAD + 2 * url) as u64);
        for number in 0..100 {
            bases.keep(purpose(None, &format!("/{number:02}")), text(&format!("{number:02}")));
            holds(&bases, None, &format!("{number:02}"));
        }
        assert_eq!(bases.lock().kept.len(), 20);
        assert!(base(&bases, 1, "/99").is_some_and(|body| body == text("99")));
        bases.set(0);
        assert!(!bases.is_on());
        let state = bases.lock();
        assert!(state.kept.is_empty() && state.by_hash.is_empty() && state.by_shape.is_empty());
        assert_eq!(state.bytes, 0);
    }

    #[test]
    fn versions_of_a_url_are_few_and_the_same_again_is_no_other() {
        let bases = Bases::new(MB);
        for word in ["a", "b", "b", "c", "d", "e", "f"] {
            bases.keep(purpose(None, "/"), text(word));
        }
        assert_eq!(bases.lock().kept.len(), VERSIONS);
        holds(&bases, None, "f");
        bases.keep(purpose(None, "/"), text("f"));
        assert_eq!(base(&bases, 1, "/"), Some(text("f")), "it is known to be held");
    }
}
