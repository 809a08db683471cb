//! Promises at the remote: what ground said would come, what of it has come, and who waits for it. Which promise
//! answers which request is `farhop_bundle`'s rule; here are the bodies and the waiting.

mod deserted;
mod handed_over;
mod loads;
mod told;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use farhop_bundle::{Answer, LoadId, PromiseId, Promises, WhyAsk};
use farhop_events::{Bus, ExchangeId, PromiseEnd};
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Priority;
use farhop_store::Body;
use farhop_transport::hop::Receiver;
use handed_over::{Handed, HandedOver};
use http::{HeaderMap, Method};
use tokio::sync::watch;
use told::note_used;
use url::Url;

use crate::books::{self, Books};
use crate::collapse::{Leading, Outcome};
use crate::priority;
use crate::users::User;

/// Promises that one user may have open at a time, and all of them.
const PER_USER: usize = 4096;
const MOST: usize = 16 * 1024;
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
    user: User,
    /// Where the user is.
    client: IpAddr,
    /// The exchange of the document that needs it, at whatever remove.
    page: ExchangeId,
    asked_at: SystemTime,
    priority: Priority,
    request: Arc<HeaderMap>,
    state: watch::Sender<Promised>,
    /// The push's number on its carrier.
    wire: Wire,
    /// Its push has begun.
    pushed: bool,
    used: bool,
    /// Its entry in the repository, where that may answer although the promise waits to be asked for in the very same words.
    stored: Option<u64>,
    /// Since when nobody takes it any more who was being answered with it.
    deserted: Option<Duration>,
    /// Lets others wait for it until it can be found in the repository.
    leading: Option<Leading>,
}

/// What whoever takes a promised response in needs to know of it.
pub(crate) struct Known {
    pub(crate) user: User,
    pub(crate) client: IpAddr,
    pub(crate) page: ExchangeId,
    /// See [`Made::asked_at`].
    pub(crate) asked_at: SystemTime,
    pub(crate) url: Url,
    pub(crate) request: Arc<HeaderMap>,
    /// Turns to [`Promised::Gone`] when nobody wants it any more.
    pub(crate) state: watch::Receiver<Promised>,
}

/// A promise as ground made it.
pub(crate) struct Made {
    /// Carrier and number.
    pub(crate) wire: Wire,
    /// Where the user is.
    pub(crate) client: IpAddr,
    /// The exchange of the document that needs it.
    pub(crate) page: ExchangeId,
    /// When the request was sent on whose stream it was promised: ground asks for it after that.
    pub(crate) asked_at: SystemTime,
    pub(crate) url: Url,
    pub(crate) request: Arc<HeaderMap>,
    pub(crate) priority: Priority,
    /// Lets others wait for it.
    pub(crate) leading: Option<Leading>,
}

/// Which promise answers a request.
pub(crate) struct Answering {
    pub(crate) promise: PromiseId,
    pub(crate) wire: Wire,
    pub(crate) promised: watch::Receiver<Promised>,
    /// To be told to ground: what it has not begun to send is waited for now.
    pub(crate) wanted: Option<(Wire, Priority)>,
}

/// A promise by its carrier and its number there.
pub(crate) type Wire = (u64, u64);

/// See the module.
pub(crate) struct Desk {
    book: Promises,
    books: Books,
    entries: HashMap<PromiseId, Entry>,
    wire: HashMap<Wire, PromiseId>,
    /// Exchanges that are being answered with promises.
    answering: HashMap<ExchangeId, PromiseId>,
    /// Pushes that are ahead of their promises, and since when.
    orphans: HashMap<Wire, (Receiver, Duration)>,
    /// Cacheable promises that are whole: the repository answers for them, used or not.
    handed_over: HandedOver,
    /// Promises that ended or were refused before their push came, oldest first: that push is not wanted.
    unwanted: VecDeque<Wire>,
    /// Those of them of which ground has not been told.
    untold: Vec<Wire>,
    /// Promises that have answered requests, of which ground has not been told.
    used: Vec<Wire>,
    /// What the repository has answered to pages, of which ground has not been told: the page, the entry, and how long after the
    /// page was asked for.
    answered_here: Vec<(ExchangeId, u64, Duration)>,
    /// Loads of pages, oldest first, left or not, and since when.
    begun: VecDeque<(LoadId, Duration)>,
    next: u64,
}

/// A promise that is lost on the way is there again after some round trips.
const LONGEST_ORPHAN: Duration = Duration::from_secs(30);

impl Desk {
    pub(crate) fn new(bus: Bus) -> Self {
        Desk {
            book: Promises::new(PER_USER, MOST),
            books: Books::new(bus),
            entries: HashMap::new(),
            wire: HashMap::new(),
            answering: HashMap::new(),
            orphans: HashMap::new(),
            handed_over: HandedOver::default(),
            unwanted: VecDeque::new(),
            begun: VecDeque::new(),
            untold: Vec::new(),
            used: Vec::new(),
            answered_here: Vec::new(),
            next: 0,
        }
    }

    /// Takes down a promise. Gives the push's receiver if it came before its promise; `None` twice when the promise
    /// is not wanted.
    pub(crate) fn promise(&mut self, user: &User, made: Made) -> Option<(PromiseId, Option<Receiver>)> {
        // What a stylesheet names may come when its page has been left.
        if self.is_left(LoadId(made.page.0)) {
            self.decline(&made);
            return None;
        }
        let id = self.number(&made);
        let Made { wire, client, page, asked_at, url, request, priority, leading } = made;
        if !self.book.promise(id, &user.name, LoadId(page.0), url.clone(), Arc::clone(&request)) {
            self.books
                .unused(&books::Entry { promise: id, page, url: &url, bytes: 0 }, PromiseEnd::Cancelled);
            self.refuse(wire);
            return None;
        }
        let orphan = self.orphans.remove(&wire).map(|(receiver, _)| receiver);
        let (state, _) = watch::channel(Promised::Awaited);
        let (user, pushed) = (user.clone(), orphan.is_some());
        let (used, deserted) = (false, None);
        let entry = Entry {
            url,
            user,
            client,
            page,
            asked_at,
            priority,
            request,
            state,
            wire,
            pushed,
            used,
            stored: None,
            deserted,
            leading,
        };
        self.entries.insert(id, entry);
        self.wire.insert(wire, id);
        Some((id, orphan))
    }

    fn number(&mut self, made: &Made) -> PromiseId {
        let id = PromiseId(self.next);
        self.next += 1;
        self.books.promised(id, made.page, &made.url);
        id
    }

    /// Takes down that a promise is not wanted.
    pub(crate) fn decline(&mut self, made: &Made) {
        let id = self.number(made);
        let entry = books::Entry { promise: id, page: made.page, url: &made.url, bytes: 0 };
        self.books.unused(&entry, PromiseEnd::Cancelled);
        self.refuse(made.wire);
    }

    /// A push begins. Gives its promise; a push that is ahead of its promise is kept until that is heard.
    pub(crate) fn pushed(
        &mut self,
        wire: Wire,
        receiver: Receiver,
        now: Duration,
    ) -> Option<(PromiseId, Receiver)> {
        if let Some(id) = self.wire.get(&wire) {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.pushed = true;
            }
            return Some((*id, receiver));
        }
        match self.unwanted.iter().position(|other| *other == wire) {
            Some(place) => drop(self.unwanted.remove(place)),
            None if self.orphans.len() < MOST_ORPHANS => drop(self.orphans.insert(wire, (receiver, now))),
            None => {}
        }
        None
    }

    /// A push that came before it was said what it is.
    pub(crate) fn take_orphan(&mut self, wire: Wire) -> Option<Receiver> {
        self.orphans.remove(&wire).map(|(receiver, _)| receiver)
    }

    /// What is known of a promise whose push has begun; `None` when nobody wants it any more.
    pub(crate) fn known(&self, id: PromiseId) -> Option<Known> {
        let entry = self.entries.get(&id)?;
        Some(Known {
            user: entry.user.clone(),
            client: entry.client,
            page: entry.page,
            asked_at: entry.asked_at,
            url: entry.url.clone(),
            request: Arc::clone(&entry.request),
            state: entry.state.subscribe(),
        })
    }

    /// The head of a promised response is here; `false` when nobody wants it any more.
    pub(crate) fn head(
        &mut self,
        id: PromiseId,
        head: &Arc<ResponseHead>,
        body: Body,
        now: Duration,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let wall = SystemTime::now();
        self.book.head(id, head.status, &head.fields, now, (entry.asked_at, wall));
        let (page, url) = (entry.page, entry.url.clone());
        entry.state.send_replace(Promised::Coming { head: Arc::clone(head), body });
        self.answered(page, &url, head.status, &head.fields, now);
        true
    }

    /// A promised response can be found in the repository from now on, if it has a place there.
    pub(crate) fn found_a_place(&mut self, id: PromiseId, outcome: Outcome) {
        if let Some(leading) = self.entries.get_mut(&id).and_then(|entry| entry.leading.take()) {
            leading.settle(outcome);
        }
    }

    /// The last byte of a promised response is here. `stored` is its entry in the repository, if it has one.
    pub(crate) fn complete(&mut self, id: PromiseId, stored: Option<u64>, now: Duration) {
        let cacheable = self.book.complete(id, now);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if !cacheable && !entry.used {
            // It waits to be asked for.
            entry.stored = stored;
            return;
        }
        let Some(entry) = self.forget(id) else { return };
        let bytes = entry.bytes();
        let Entry { user, page, url, wire, used, deserted, .. } = entry;
        let ended = books::Entry { promise: id, page, url: &url, bytes };
        match stored {
            _ if used && deserted.is_none() => {
                self.books.used_up(&ended, (!cacheable).then_some(PromiseEnd::Used), now);
            }
            Some(stored) => {
                let handed = Handed { promise: id, wire, user, page, url, bytes, given_up: used };
                if let Some(oldest) = self.handed_over.insert(stored, handed, now) {
                    self.handed_over_in_vain(&oldest, now);
                }
            }
            None if used => self.books.given_up(&ended, now),
            // The repository has let go of it meanwhile.
            None => self.books.unused(&ended, PromiseEnd::Lapsed),
        }
    }

    /// Nobody has asked the repository for it in time.
    fn handed_over_in_vain(&mut self, handed: &Handed, now: Duration) {
        match handed.given_up {
            true => self.books.given_up(&handed.entry(), now),
            false => self.books.unused(&handed.entry(), PromiseEnd::Lapsed),
        }
    }

    /// Ground took a promise back, or its stream broke.
    pub(crate) fn withdraw(&mut self, id: PromiseId, now: Duration) {
        self.book.withdraw(id);
        self.end(id, PromiseEnd::Withdrawn, now);
    }

    /// What was promised under `url`, to whomever, may be outdated by an answer: it answers nobody any more (RFC 9111
    /// §4.4). But for what was asked for after that answer: `since`, promises of this carrier.
    pub(crate) fn invalidate(&mut self, url: &Url, since: (u64, &[u64]), now: Duration) {
        let (generation, promises) = since;
        let is_newer = |(of, promise): Wire| of == generation && promises.contains(&promise);
        let outdated = self.entries.iter().filter(|(_, entry)| entry.url == *url && !is_newer(entry.wire));
        for id in outdated.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.book.withdraw(id);
            self.end(id, PromiseEnd::Cancelled, now);
        }
    }

    /// Which promise answers this request of `exchange`; whoever takes it watches it come.
    pub(crate) fn ask(
        &mut self,
        (exchange, user): (ExchangeId, &User),
        method: &Method,
        url: &Url,
        request: &HeaderMap,
        now: Duration,
    ) -> Result<Answering, WhyAsk> {
        match self.book.ask(&user.name, method, url, request, now) {
            Answer::Ask(why) => Err(why),
            Answer::Promise(id) => {
                let Some(entry) = self.entries.get_mut(&id) else { return Err(WhyAsk::NotPromised) };
                entry.deserted = None;
                self.answering.insert(exchange, id);
                let (wire, promised) = (entry.wire, entry.state.subscribe());
                let bytes = entry.bytes();
                let is_awaited = matches!(*promised.borrow(), Promised::Awaited);
                let wanted = (is_awaited && !entry.used)
                    .then(|| (wire, priority::of_what_is_asked(request, entry.priority)));
                if !std::mem::replace(&mut entry.used, true) {
                    let (page, url) = (entry.page, &entry.url);
                    self.books.used(&books::Entry { promise: id, page, url, bytes });
                    // Of the others it is told that they are wanted.
                    if wanted.is_none() {
                        note_used(&mut self.used, wire);
                    }
                }
                Ok(Answering { promise: id, wire, promised, wanted })
            }
        }
    }

    /// The head of a promise that answers once was all that its request wanted, and nobody else can use the body.
    pub(crate) fn head_was_enough(&mut self, id: PromiseId, now: Duration) {
        self.book.withdraw(id);
        let Some(entry) = self.forget(id) else { return };
        let used = books::Entry { promise: id, page: entry.page, url: &entry.url, bytes: entry.bytes() };
        // Whoever takes it in gives it up, which stops the push.
        entry.state.send_replace(Promised::Gone);
        self.books.used_up(&used, Some(PromiseEnd::Used), now);
    }

    /// The repository has answered from `stored`, which may have been promised.
    pub(crate) fn used_from_repository(&mut self, stored: u64, now: Duration) {
        if let Some(handed) = self.handed_over.take(stored) {
            if !handed.given_up {
                self.books.used(&handed.entry());
                note_used(&mut self.used, handed.wire);
            }
            self.books.used_up(&handed.entry(), None, now);
            return;
        }
        let mut waiting = self.entries.iter().filter(|(_, entry)| entry.stored == Some(stored));
        let Some(id) = waiting.next().map(|(id, _)| *id) else { return };
        self.book.withdraw(id);
        let Some(entry) = self.forget(id) else { return };
        let used = books::Entry { promise: id, page: entry.page, url: &entry.url, bytes: entry.bytes() };
        if !entry.used {
            self.books.used(&used);
            note_used(&mut self.used, entry.wire);
        }
        self.books.used_up(&used, None, now);
    }

    /// What the repository holds for a promise to `user` that nobody has asked for in the very same words.
    pub(crate) fn handed_over(&self, user: &User, url: &Url) -> Option<u64> {
        self.handed_over.find(user, url)
    }

    /// Ends what nobody has asked for in time and what was promised to pages that are left, and tells of the pages that
    /// are done.
    pub(crate) fn lapse(&mut self, now: Duration) {
        for id in self.book.leave(now) {
            self.end(id, PromiseEnd::PageLeft, now);
        }
        for id in self.book.lapse(now) {
            self.end(id, PromiseEnd::Lapsed, now);
        }
        self.give_up_deserted(now);
        // Its promise was lost with a stream that nobody read to its end: dropping the push stops it.
        self.orphans.retain(|_, (_, since)| *since + LONGEST_ORPHAN > now);
        for handed in self.handed_over.lapse(now).collect::<Vec<_>>() {
            self.handed_over_in_vain(&handed, now);
        }
        self.books.close(now, |page| self.book.is_open(LoadId(page.0)));
    }

    /// Ends every promise now, as when the lab wants its accounts settled.
    pub(crate) fn settle(&mut self) {
        let open: Vec<PromiseId> = self.entries.keys().copied().collect();
        for id in open {
            self.book.withdraw(id);
            self.end(id, PromiseEnd::Lapsed, Duration::ZERO);
        }
        self.lapse(Duration::MAX);
    }

    /// A carrier is lost: what is not whole of what was promised on it will not come. Another may have taken its place before.
    pub(crate) fn carrier_lost(&mut self, generation: u64, now: Duration) {
        self.orphans.retain(|(of, _), _| *of != generation);
        let its = |id: PromiseId| self.entries.get(&id).is_some_and(|entry| entry.wire.0 == generation);
        for lost in self.book.carrier_lost(its) {
            self.end(lost.id, PromiseEnd::Lost, now);
        }
        self.unwanted.retain(|(of, _)| *of != generation);
    }

    /// The books, for what crosses.
    pub(crate) fn books(&mut self) -> &mut Books {
        &mut self.books
    }

    /// Open promises.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn end(&mut self, id: PromiseId, end: PromiseEnd, now: Duration) {
        let Some(entry) = self.forget(id) else { return };
        let bytes = entry.bytes();
        let is_awaited = matches!(*entry.state.borrow(), Promised::Awaited);
        if is_awaited || !entry.used {
            // Whoever waits asks, and who takes it in gives it up.
            entry.state.send_replace(Promised::Gone);
        }
        let used = entry.used;
        let entry = books::Entry { promise: id, page: entry.page, url: &entry.url, bytes };
        match end {
            // It waited in vain to be asked for again: it answers once.
            PromiseEnd::Lapsed if used => self.books.used_up(&entry, Some(PromiseEnd::Used), now),
            _ if used => self.books.used_up(&entry, Some(end), now),
            _ => self.books.unused(&entry, end),
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
    pub(crate) fn refuse(&mut self, wire: Wire) {
        if self.orphans.remove(&wire).is_none() {
            self.untold.push(wire);
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

#[cfg(test)]
mod tests;
