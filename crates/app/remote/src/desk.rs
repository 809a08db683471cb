//! Promises at the remote: what ground said would come, what of it has come, and who waits for it. Which promise
//! answers which request is `farhop_bundle`'s rule; here are the bodies and the waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use farhop_bundle::{Answer, LoadId, PromiseId, Promises, WhyAsk};
use farhop_events::{Bus, Event, ExchangeId, PromiseEnd};
use farhop_htotp::ResponseHead;
use farhop_store::Body;
use farhop_transport::hop::Receiver;
use http::{HeaderMap, Method};
use tokio::sync::watch;
use url::Url;

use crate::users::User;

/// Promises that one user may have open at a time.
const PER_USER: usize = 4096;
/// Pushes whose promise has not been heard yet; more than this is not honest.
const MOST_ORPHANS: usize = 1024;
/// Unwanted promises that are remembered; each is forgotten when its push comes.
const MOST_UNWANTED: usize = 8192;

/// What is known of a promised response.
#[derive(Debug, Clone)]
pub(crate) enum Promised {
    /// Its head has not come yet.
    Awaited,
    /// It is coming, or here.
    Coming { head: Arc<ResponseHead>, body: Body },
    /// It will not come: ask.
    Gone,
}

struct Entry {
    url: Url,
    user: u64,
    request: HeaderMap,
    state: watch::Sender<Promised>,
    /// The push's number on its carrier.
    wire: (u64, u64),
    /// Its push has begun.
    pushed: bool,
    used: bool,
}

/// What whoever takes a promised response in needs to know of it.
pub(crate) struct Known {
    pub(crate) user: u64,
    pub(crate) url: Url,
    pub(crate) request: HeaderMap,
}

/// See the module.
pub(crate) struct Desk {
    book: Promises,
    entries: HashMap<PromiseId, Entry>,
    wire: HashMap<(u64, u64), PromiseId>,
    orphans: HashMap<(u64, u64), Receiver>,
    /// Cacheable promises that are whole: the repository answers for them, used or not.
    handed_over: HashMap<u64, HandedOver>,
    /// Promises that ended or were refused before their push came, oldest first: that push is not wanted.
    unwanted: VecDeque<(u64, u64)>,
    next: u64,
    bus: Bus,
}

struct HandedOver {
    promise: PromiseId,
    url: Url,
    bytes: u64,
    lapses: Duration,
}

/// Cacheable promises count as used when they are asked for within this time; later uses are the repository's.
const ACCOUNTED: Duration = Duration::from_secs(10);

impl Desk {
    pub(crate) fn new(bus: Bus) -> Self {
        Desk {
            book: Promises::new(PER_USER),
            entries: HashMap::new(),
            wire: HashMap::new(),
            orphans: HashMap::new(),
            handed_over: HashMap::new(),
            unwanted: VecDeque::new(),
            next: 0,
            bus,
        }
    }

    /// A document is asked for: what was promised to pages that this user leaves with it ends.
    pub(crate) fn begin_load(&mut self, user: &User, load: ExchangeId, url: &Url, request: &HeaderMap) {
        let left = self.book.begin_load(&user.name, LoadId(load.0), url, request);
        left.into_iter().for_each(|id| self.end(id, PromiseEnd::PageLeft));
    }

    /// Takes down a promise. Gives the push's receiver if it came before its promise; `None` twice when the promise
    /// is not wanted.
    pub(crate) fn promise(
        &mut self,
        wire: (u64, u64),
        user: &User,
        page: ExchangeId,
        url: Url,
        request: HeaderMap,
    ) -> Option<(PromiseId, Option<Receiver>)> {
        let id = PromiseId(self.next);
        self.next += 1;
        self.bus.emit(Event::Promised { promise: id.0, page, url: self.bus.url(url.as_str()) });
        let orphan = self.orphans.remove(&wire);
        if !self.book.promise(id, &user.name, LoadId(page.0), url.clone(), request.clone()) {
            let url = self.bus.url(url.as_str());
            self.bus.emit(Event::PromiseEnded {
                promise: id.0,
                url,
                end: PromiseEnd::Cancelled,
                bytes: 0,
                wasted_bytes: 0,
            });
            return None;
        }
        let (state, _) = watch::channel(Promised::Awaited);
        self.entries.insert(
            id,
            Entry { url, user: user.id, request, state, wire, pushed: orphan.is_some(), used: false },
        );
        self.wire.insert(wire, id);
        Some((id, orphan))
    }

    /// A push begins. Gives its promise; a push that is ahead of its promise is kept until that is heard.
    pub(crate) fn pushed(&mut self, wire: (u64, u64), receiver: Receiver) -> Option<(PromiseId, Receiver)> {
        if let Some(id) = self.wire.get(&wire) {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.pushed = true;
            }
            return Some((*id, receiver));
        }
        match self.unwanted.iter().position(|other| *other == wire) {
            Some(place) => drop(self.unwanted.remove(place)),
            None if self.orphans.len() < MOST_ORPHANS => drop(self.orphans.insert(wire, receiver)),
            None => {}
        }
        None
    }

    /// The head of a promised response is here; `None` when nobody wants it any more.
    pub(crate) fn head(
        &mut self,
        id: PromiseId,
        head: &Arc<ResponseHead>,
        body: Body,
        now: Duration,
    ) -> Option<Known> {
        let entry = self.entries.get_mut(&id)?;
        let wall = std::time::SystemTime::now();
        self.book.head(id, head.status, &head.fields, now, wall);
        entry.state.send_replace(Promised::Coming { head: Arc::clone(head), body });
        Some(Known { user: entry.user, url: entry.url.clone(), request: entry.request.clone() })
    }

    /// The last byte of a promised response is here. `stored` is its entry in the repository, if it has one.
    pub(crate) fn complete(&mut self, id: PromiseId, stored: Option<u64>, now: Duration) {
        let cacheable = self.book.complete(id, now);
        let Some(entry) = self.entries.get(&id) else { return };
        let answered = entry.used;
        let bytes = entry.bytes();
        if !cacheable && !answered {
            return; // It waits to be asked for.
        }
        let Some(entry) = self.forget(id) else { return };
        if answered {
            return; // Told when it was used.
        }
        if let Some(stored) = stored {
            let handed = HandedOver { promise: id, url: entry.url, bytes, lapses: now + ACCOUNTED };
            self.handed_over.insert(stored, handed);
        }
    }

    /// Ground took a promise back, or its stream broke.
    pub(crate) fn withdraw(&mut self, id: PromiseId) {
        self.book.withdraw(id);
        self.end(id, PromiseEnd::Withdrawn);
    }

    /// Which promise answers this request; whoever takes it watches it come.
    pub(crate) fn ask(
        &mut self,
        user: &User,
        method: &Method,
        url: &Url,
        request: &HeaderMap,
        now: Duration,
    ) -> Result<watch::Receiver<Promised>, WhyAsk> {
        match self.book.ask(&user.name, method, url, request, now) {
            Answer::Ask(why) => Err(why),
            Answer::Promise(id) => {
                let Some(entry) = self.entries.get_mut(&id) else { return Err(WhyAsk::NotPromised) };
                let watch = entry.state.subscribe();
                let bytes = entry.bytes();
                if !std::mem::replace(&mut entry.used, true) {
                    let url = self.bus.url(entry.url.as_str());
                    let end = PromiseEnd::Used;
                    self.bus.emit(Event::PromiseEnded { promise: id.0, url, end, bytes, wasted_bytes: 0 });
                }
                Ok(watch)
            }
        }
    }

    /// The repository has answered from `stored`, which may have been promised.
    pub(crate) fn used_from_repository(&mut self, stored: u64) {
        if let Some(HandedOver { promise, url, bytes, .. }) = self.handed_over.remove(&stored) {
            let url = self.bus.url(url.as_str());
            let end = PromiseEnd::Used;
            self.bus.emit(Event::PromiseEnded { promise: promise.0, url, end, bytes, wasted_bytes: 0 });
        }
    }

    /// Ends what nobody has asked for in time.
    pub(crate) fn lapse(&mut self, now: Duration) {
        for id in self.book.lapse(now) {
            self.end(id, PromiseEnd::Lapsed);
        }
        let over: Vec<u64> =
            self.handed_over.iter().filter(|(_, handed)| handed.lapses <= now).map(|(id, _)| *id).collect();
        for stored in over {
            if let Some(HandedOver { promise, url, bytes, .. }) = self.handed_over.remove(&stored) {
                let url = self.bus.url(url.as_str());
                let end = PromiseEnd::Lapsed;
                self.bus.emit(Event::PromiseEnded {
                    promise: promise.0,
                    url,
                    end,
                    bytes,
                    wasted_bytes: bytes,
                });
            }
        }
    }

    /// Ends every promise now, as when the lab wants its accounts settled.
    pub(crate) fn settle(&mut self) {
        self.lapse(Duration::MAX);
        let open: Vec<PromiseId> = self.entries.keys().copied().collect();
        for id in open {
            self.book.withdraw(id);
            self.end(id, PromiseEnd::Lapsed);
        }
    }

    /// The carrier is lost: what is not whole will not come.
    pub(crate) fn carrier_lost(&mut self, generation: u64) {
        self.orphans.retain(|(of, _), _| *of != generation);
        for lost in self.book.carrier_lost() {
            self.end(lost.id, PromiseEnd::Lost);
        }
        self.unwanted.retain(|(of, _)| *of != generation);
    }

    /// Open promises.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn end(&mut self, id: PromiseId, end: PromiseEnd) {
        let Some(entry) = self.forget(id) else { return };
        let bytes = entry.bytes();
        if matches!(*entry.state.borrow(), Promised::Awaited) {
            entry.state.send_replace(Promised::Gone);
        }
        if !entry.used {
            let url = self.bus.url(entry.url.as_str());
            self.bus.emit(Event::PromiseEnded { promise: id.0, url, end, bytes, wasted_bytes: bytes });
        }
    }

    fn forget(&mut self, id: PromiseId) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.wire.remove(&entry.wire);
        if !entry.pushed {
            self.refuse(entry.wire);
        }
        Some(entry)
    }

    /// The push of this promise is not wanted, whenever it comes.
    pub(crate) fn refuse(&mut self, wire: (u64, u64)) {
        if self.orphans.remove(&wire).is_none() {
            self.unwanted.push_back(wire);
            if self.unwanted.len() > MOST_UNWANTED {
                self.unwanted.pop_front();
            }
        }
    }
}

impl Entry {
    fn bytes(&self) -> u64 {
        match &*self.state.borrow() {
            Promised::Coming { body, .. } => body.written(),
            _ => 0,
        }
    }
}
