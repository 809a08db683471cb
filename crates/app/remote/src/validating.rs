//! What is held and stale, and what ground asks the origin about before any browser wants it: requests for it wait for what
//! comes of that. Once confirmed it answers; else they are asked.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use farhop_events::ExchangeId;
use farhop_freshness::named_by_vary;
use farhop_htotp::frame::Priority;
use farhop_htotp::{ResponseHead, frame};
use farhop_store::{Held, Partition};
use farhop_transport::hop::{Arrival, Receiver};
use http::{HeaderMap, StatusCode, header};
use tokio::sync::watch;
use url::Url;

use crate::Remote;
use crate::arriving::{self, Early};
use crate::desk::Wire;
use crate::held::{renew, renew_named};
use crate::lookup::depends_on;
use crate::priority;
use crate::promising::Page;
use crate::users::User;

/// Entries that are asked about, or were a moment ago.
const MOST: usize = 8192;
/// How long what was confirmed answers the page that it was confirmed for, though it is not fresh (DESIGN.md, "never a wrong
/// byte": like a promise that answers once).
const LAPSE: Duration = Duration::from_secs(10);

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Awaited,
    /// What is held is right, since then.
    Confirmed(Duration),
    /// Nothing: ask.
    Unknown,
}

/// For whom ground asks.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) user: User,
    pub(crate) client: IpAddr,
    /// The exchange of the document that needs it.
    pub(crate) page: ExchangeId,
    /// When the request was sent that it asks for.
    pub(crate) asked_at: SystemTime,
}

struct Asked {
    entry: u64,
    /// What ground asks with ([`sameness`]).
    request: u64,
    asker: Asker,
    outcome: watch::Sender<Outcome>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Validating(Mutex<HashMap<Wire, Asked>>);

/// Says when it is known what came of asking.
pub(crate) struct Awaited {
    wire: Wire,
    outcome: watch::Receiver<Outcome>,
}

impl Awaited {
    /// A browser asks for it, in a request with these fields: what ground has to hear, which may hold its question back until
    /// then.
    pub(crate) fn wanted(&self, request: &HeaderMap) -> (Wire, Priority) {
        (self.wire, priority::of_request(request))
    }

    /// Completes when it is known.
    pub(crate) async fn over(mut self) {
        // An end that is gone has nothing more to say.
        let _ = self.outcome.wait_for(|outcome| *outcome != Outcome::Awaited).await;
    }
}

impl Validating {
    fn lock(&self) -> MutexGuard<'_, HashMap<Wire, Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ground asks about `entry`; `false` if too much is asked about.
    fn begin(&self, asking: Wire, (entry, request): (u64, u64), asker: Asker, now: Duration) -> bool {
        let mut asked = self.lock();
        if asked.len() >= MOST {
            asked.retain(|_, one| one.is_of_use(now));
        }
        if asked.len() >= MOST {
            return false;
        }
        let (outcome, _) = watch::channel(Outcome::Awaited);
        asked.insert(asking, Asked { entry, request, asker, outcome });
        true
    }

    /// For whom ground asks under this number, while that is not answered.
    pub(crate) fn asker(&self, wire: Wire) -> Option<Asker> {
        let asked = self.lock();
        let one = asked.get(&wire).filter(|one| *one.outcome.borrow() == Outcome::Awaited)?;
        Some(one.asker.clone())
    }

    /// Whether ground is asking about `entry`.
    pub(crate) fn awaited(&self, entry: u64) -> Option<Awaited> {
        let asked = self.lock();
        let mut own = asked.iter().filter(|(_, one)| one.entry == entry);
        let (wire, awaited) = own.find(|(_, one)| *one.outcome.borrow() == Outcome::Awaited)?;
        Some(Awaited { wire: *wire, outcome: awaited.outcome.subscribe() })
    }

    fn settle(&self, wire: Wire, outcome: Outcome) {
        let mut asked = self.lock();
        if let Some(one) = asked.get(&wire) {
            one.outcome.send_replace(outcome);
        }
        if outcome == Outcome::Unknown {
            asked.remove(&wire);
        }
    }

    /// Whether `entry` was just confirmed for this page of this user, of which each confirmation tells once; `request` has to be the
    /// one that ground asked with, since the origin may have another answer to any other.
    pub(crate) fn take_confirmed(
        &self,
        (entry, request): (u64, u64),
        user: &User,
        page: ExchangeId,
        now: Duration,
    ) -> bool {
        let mut asked = self.lock();
        asked.retain(|_, one| one.is_of_use(now));
        let is_own = |one: &Asked| {
            let asker = &one.asker;
            (one.entry, one.request) == (entry, request)
                && asker.page == page
                && asker.user.name == user.name
                && one.is_confirmed()
        };
        let own = asked.iter().find(|(_, one)| is_own(one)).map(|(wire, _)| *wire);
        own.is_some_and(|wire| asked.remove(&wire).is_some())
    }

    /// What ground was asking on the carrier of this generation nobody will hear.
    pub(crate) fn carrier_lost(&self, generation: u64) {
        self.lock().retain(|(own, _), one| *own != generation || one.is_confirmed());
    }
}

impl Asked {
    fn is_confirmed(&self) -> bool {
        matches!(*self.outcome.borrow(), Outcome::Confirmed(_))
    }

    fn is_of_use(&self, now: Duration) -> bool {
        match *self.outcome.borrow() {
            Outcome::Awaited => true,
            Outcome::Confirmed(at) => now < at + LAPSE,
            Outcome::Unknown => false,
        }
    }
}

impl Page {
    /// Ground asks about `entry`, for this page. Taken down before any byte that comes after it can be read by a browser,
    /// unless nothing that may answer this user is held under that number.
    pub(crate) async fn validating(&self, frame::Validating { promise, entry, request }: frame::Validating) {
        let (remote, wire) = (self.remote(), self.wire(promise));
        let asker = self.asker();
        let held = remote.repository().entry(entry).await;
        let is_own = |held: &Held| match held.partition {
            Partition::Shared => true,
            Partition::User(user) => user == asker.user.id,
        };
        let held = held.filter(|(_, held)| is_own(held));
        let known = held.and_then(|(url, held)| Some((Url::parse(&url).ok()?, is_document(&held))));
        let page = asker.page;
        let Some((url, document)) =
            known.filter(|_| remote.validating().begin(wire, (entry, request), asker, remote.now()))
        else {
            remote.desk().refuse(wire);
            return crate::promising::tell_unwanted(remote);
        };
        remote.desk().note_validated(page, &url, document);
        let receiver = remote.desk().take_orphan(wire);
        if let Some(receiver) = receiver {
            begin(self.clone(), promise, receiver);
        }
    }
}

/// Whether it is what a window or a frame shows.
pub(crate) fn is_document(held: &Held) -> bool {
    let media = held.head.fields.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = media.and_then(|media| media.split(';').next()).unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml"].iter().any(|document| media.eq_ignore_ascii_case(document))
}

/// Takes in what came of asking, in a task of its own.
pub(crate) fn begin(page: Page, promise: u64, receiver: Receiver) {
    tokio::spawn(async move { hear(&page, page.wire(promise), receiver).await });
}

async fn hear(page: &Page, wire: Wire, mut receiver: Receiver) {
    let remote = page.remote();
    // RFC 9111 §4.2.3: ground has asked meanwhile.
    let requested_at = page.asker().asked_at;
    let head = loop {
        match arriving::early(&mut receiver).await {
            Early::Head { head, .. } => break Some(head),
            Early::Promised(offer) => page.promised(offer).await,
            Early::Validating(validating) => page.validating(validating).await,
            Early::Informed(_) => {}
            Early::Failed(_) | Early::Lost => break None,
        }
    };
    let entry = remote.validating().lock().get(&wire).map(|asked| asked.entry);
    let confirmed = match (entry, head) {
        (Some(entry), Some(head)) => confirm(remote, page.asker().user.id, entry, &head, requested_at).await,
        _ => false,
    };
    let outcome = if confirmed { Outcome::Confirmed(remote.now()) } else { Outcome::Unknown };
    remote.validating().settle(wire, outcome);
    // Read to its end: who stops it would say so, across the hop.
    while matches!(receiver.next().await, Arrival::Body(_) | Arrival::Trailers(_)) {}
}

/// Takes a 304 in that answers ground's question about `entry` in the name of `user`; `false` if it confirms nothing.
async fn confirm(
    remote: &Arc<Remote>,
    user: u64,
    entry: u64,
    head: &ResponseHead,
    requested_at: SystemTime,
) -> bool {
    let Some((url, held)) = remote.repository().entry(entry).await else { return false };
    let Ok(url) = Url::parse(&url) else { return false };
    let is_whole = held.body.is_whole() && !held.body.is_broken();
    if head.status != StatusCode::NOT_MODIFIED || !is_whole {
        return false;
    }
    // What ground asked with is known of the fields that the entry depends on, where it is the same, and of no others.
    let Some(names) = depends_on(held.partition, &held.head) else { return false };
    if !named_by_vary(&head.fields).is_some_and(|named| named.iter().all(|name| names.contains(name))) {
        return false;
    }
    let asked = held.head.nominated.clone();
    let is_known = |other: &Held| {
        let depends = depends_on(other.partition, &other.head);
        other.id != entry && depends.is_some_and(|depends| depends.iter().all(|name| names.contains(name)))
    };
    renew_named(remote, user, (&url, &asked), &head.fields, requested_at, is_known).await;
    if !held.head.is_freshened_by(&head.fields) {
        return false;
    }
    let mut fresh = (*held.head).clone();
    fresh.freshen(&asked, &head.fields, requested_at, SystemTime::now());
    // For which page ground asked is not known where that made no difference.
    if fresh.is_bound_to_origin() && !held.head.is_bound_to_origin() {
        return false;
    }
    renew(remote, user, &url, &asked, held.id, held.partition, fresh).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: Wire = (1, 7);

    fn asker(name: &str, page: u64) -> Asker {
        Asker {
            user: User { id: 3, name: name.into() },
            client: IpAddr::from([127, 0, 0, 1]),
            page: ExchangeId(page),
            asked_at: SystemTime::UNIX_EPOCH,
        }
    }

    fn second(at: u64) -> Duration {
        Duration::from_secs(at)
    }

    #[test]
    fn what_was_confirmed_answers_its_own_page_once_and_not_for_long() {
        let (validating, own) = (Validating::default(), asker("anna", 5));
        let confirmed = |number| {
            assert!(validating.begin((1, number), (9, 4), own.clone(), second(0)));
            assert!(validating.awaited(9).is_some() && validating.asker((1, number)).is_some());
            validating.settle((1, number), Outcome::Confirmed(second(1)));
        };
        let take =
            |asker: &Asker, entry, at| validating.take_confirmed(entry, &asker.user, asker.page, second(at));
        let (entry, other) = ((9, 4), (9, 5));
        confirmed(1);
        assert!(validating.awaited(9).is_none() && validating.asker((1, 1)).is_none());
        assert!(!take(&asker("berta", 5), entry, 2) && !take(&asker("anna", 6), entry, 2));
        assert!(!take(&own, (8, 4), 2) && !take(&own, other, 2), "of another entry, and to another request");
        assert!(take(&own, entry, 2) && !take(&own, entry, 2));
        confirmed(2);
        assert!(!take(&own, entry, 11));
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_nothing_came_of_it_or_the_carrier_is_lost() {
        let validating = Validating::default();
        for lose in [false, true] {
            assert!(validating.begin(WIRE, (9, 4), asker("anna", 5), second(0)));
            let awaited = validating.awaited(9).unwrap();
            if lose {
                validating.carrier_lost(WIRE.0);
            } else {
                validating.settle(WIRE, Outcome::Unknown);
            }
            awaited.over().await;
            assert!(validating.awaited(9).is_none());
        }
    }

    #[test]
    fn no_more_is_taken_down_than_there_is_room_for() {
        let validating = Validating::default();
        for number in 0..MOST as u64 {
            assert!(validating.begin((1, number), (number, 4), asker("anna", 5), second(0)));
        }
        assert!(!validating.begin((2, 0), (9, 4), asker("anna", 5), second(0)));
        validating.settle((1, 0), Outcome::Unknown);
        assert!(validating.begin((2, 0), (9, 4), asker("anna", 5), second(0)));
    }
}
