//! Visits that go on: what each page has asked for so far, and what was promised to it and has not been used yet. Bounded,
//! and over after half a minute. Told the time; pure.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use farhop_events::ExchangeId;
use farhop_htotp::ResponseHead;
use farhop_models::{Asked, Needs, User, Visit};
use farhop_page::{Hint, Initiator, Source};
use http::header::{self, HeaderMap, HeaderName};
use tokio::time::Instant;
use url::Url;

use super::Made;
use super::kinds::Kind;
use super::seen::Seen;
use crate::owner::Owner;

/// How long what is asked for belongs to a visit.
pub(super) const KEPT: Duration = Duration::from_secs(30);
/// What was promised for so long and not used is not asked for: the remote lets it lapse after ten seconds, and tells of
/// uses every second.
const SETTLED: Duration = Duration::from_secs(15);
/// Visits of all users together, and resources of each; of visits the oldest end first.
const MOST: usize = 256;
const RESOURCES: usize = 600;

/// See the module.
#[derive(Default)]
pub(super) struct Visits {
    open: VecDeque<Open>,
    /// By carrier and number.
    promises: BTreeMap<(Arc<str>, u64), Promise>,
    /// Uses of which remotes have told.
    uses: u64,
    /// Answers of their own of which remotes have told.
    answered: u64,
}

struct Open {
    owner: Owner,
    exchange: ExchangeId,
    began: Instant,
    visit: Visit,
    asked: BTreeMap<Url, Asked>,
    /// Promised, and neither used nor settled; since when.
    pending: BTreeMap<Url, Instant>,
    /// The numbers of its promises.
    promises: Vec<u64>,
    /// Learned only if the page came, or if it is known what came in its place.
    answered: bool,
}

/// A promise to a visit.
struct Promise {
    owner: Owner,
    exchange: ExchangeId,
    asked: Asked,
    sent: bool,
    used: bool,
}

impl Visits {
    /// A visit begins. Gives those that are over with it: earlier ones of the same page, and what there is no room for.
    pub(super) fn begin(
        &mut self,
        owner: &Owner,
        user: User,
        exchange: ExchangeId,
        page: &Url,
        now: Instant,
    ) -> Vec<Visit> {
        let mut page = page.clone();
        page.set_fragment(None);
        let mut ended = self.over(now);
        let is_again =
            |open: &Open| open.owner == *owner && (open.visit.page == page || open.exchange == exchange);
        while let Some(place) = self.open.iter().position(is_again) {
            ended.extend(self.open.remove(place).and_then(|open| self.close(open, now)));
        }
        if self.open.len() >= MOST {
            ended.extend(self.open.pop_front().and_then(|open| self.close(open, now)));
        }
        self.open.push_back(Open {
            owner: owner.clone(),
            exchange,
            began: now,
            visit: Visit::new(user, page),
            asked: BTreeMap::new(),
            pending: BTreeMap::new(),
            promises: Vec::new(),
            answered: false,
        });
        ended
    }

    /// Those that are over by `now`.
    pub(super) fn over(&mut self, now: Instant) -> Vec<Visit> {
        let mut ended = Vec::new();
        while self.open.front().is_some_and(|open| open.began + KEPT <= now) {
            ended.extend(self.open.pop_front().and_then(|open| self.close(open, now)));
        }
        ended
    }

    fn close(&mut self, open: Open, now: Instant) -> Option<Visit> {
        let Open { owner, mut visit, asked, pending, promises, .. } = open;
        for promise in promises {
            let promise = self.promises.remove(&(Arc::clone(&owner.remote), promise));
            if let Some(Promise { used, .. }) =
                promise.filter(|promise| promise.asked.foreseen && promise.sent)
            {
                visit.sent += 1;
                visit.used += u32::from(used);
            }
        }
        let young = pending.into_iter().filter(|(_, since)| *since + SETTLED > now).map(|(url, _)| url);
        visit.unknown.extend(young);
        visit.asked = asked.into_values().collect();
        visit.unknown.retain(|url| visit.asked.iter().all(|asked| asked.url != *url));
        open.answered.then_some(visit)
    }

    fn of(&mut self, owner: &Owner, exchange: ExchangeId) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.exchange == exchange && open.owner == *owner)
    }

    /// See [`super::PageModels::answered`].
    pub(super) fn answered(&mut self, owner: &Owner, exchange: ExchangeId, response: Option<&ResponseHead>) {
        let Some(open) = self.of(owner, exchange) else { return };
        open.answered = true;
        let Some(response) = response else { return };
        let all = |name: HeaderName| texts(&response.fields, &name);
        open.visit.policies.referrer = all(header::REFERRER_POLICY).pop();
        open.visit.policies.content = all(header::CONTENT_SECURITY_POLICY);
    }

    /// See [`super::PageModels::unseen`].
    pub(super) fn unseen(&mut self, owner: &Owner, exchange: ExchangeId, url: &Url) {
        if let Some(open) = self.of(owner, exchange)
            && open.visit.unknown.len() < RESOURCES
        {
            open.visit.unknown.insert(url.clone());
        }
    }

    /// See [`super::PageModels::promised`].
    pub(super) fn promised(
        &mut self,
        owner: &Owner,
        exchange: ExchangeId,
        promise: u64,
        made: &Made<'_>,
        now: Instant,
    ) {
        let Some(open) = self.of(owner, exchange).filter(|open| open.promises.len() < RESOURCES) else {
            return;
        };
        open.pending.insert(made.url.clone(), now);
        open.promises.push(promise);
        let (url, delay) = (made.url.clone(), now - open.began);
        let foreseen = is_foreseen(made.hint);
        let asked = Asked { url, needs: needs(made), delay, anyones: false, foreseen };
        let promised = Promise { owner: owner.clone(), exchange, asked, sent: false, used: false };
        self.promises.insert((Arc::clone(&owner.remote), promise), promised);
    }

    /// See [`super::PageModels::sent`].
    pub(super) fn sent(&mut self, carrier: &Arc<str>, number: u64, anyones: bool) {
        let Some(promise) = self.promises.get_mut(&(Arc::clone(carrier), number)) else { return };
        (promise.sent, promise.asked.anyones) = (true, anyones);
        let (owner, exchange, url) = (promise.owner.clone(), promise.exchange, promise.asked.url.clone());
        let asked = self.of(&owner, exchange).and_then(|open| open.asked.get_mut(&url));
        if let Some(asked) = asked {
            asked.anyones = anyones;
        }
    }

    /// See [`super::PageModels::used`].
    pub(super) fn used(&mut self, carrier: &Arc<str>, promises: RangeInclusive<u64>) {
        let mut noted = Vec::new();
        for (_, promise) in self.named(carrier, promises).filter(|(_, promise)| !promise.used) {
            promise.used = true;
            noted.push((promise.owner.clone(), promise.exchange, promise.asked.clone()));
        }
        self.uses += noted.len() as u64;
        for (owner, exchange, asked) in noted {
            let Some(open) = self.of(&owner, exchange) else { continue };
            open.pending.remove(&asked.url);
            open.note(asked);
        }
    }

    /// See [`super::PageModels::unwanted`].
    pub(super) fn unwanted(&mut self, carrier: &Arc<str>, promises: RangeInclusive<u64>) {
        let named = self.named(carrier, promises).filter(|(_, promise)| !promise.used && !promise.sent);
        let unseen: Vec<_> = named
            .map(|(_, promise)| (promise.owner.clone(), promise.exchange, promise.asked.url.clone()))
            .collect();
        for (owner, exchange, url) in unseen {
            let Some(open) = self.of(&owner, exchange) else { continue };
            open.pending.remove(&url);
            open.visit.unknown.insert(url);
        }
    }

    /// Of a run of numbers those that were promised. A run may be as long as a remote says.
    fn named(
        &mut self,
        carrier: &Arc<str>,
        promises: RangeInclusive<u64>,
    ) -> impl Iterator<Item = (&(Arc<str>, u64), &mut Promise)> {
        let (first, last) = promises.into_inner();
        let run = (Arc::clone(carrier), first)..=(Arc::clone(carrier), last.max(first));
        self.promises.range_mut(run)
    }

    /// See [`super::PageModels::crossed`]. It was asked for `at` a time when what was promised later than `unheard` may not
    /// have been heard of yet.
    pub(super) fn crossed(&mut self, owner: &Owner, seen: Seen, at: Instant, unheard: Instant) {
        let Seen { url, referer, mut needs, anyones } = seen;
        let Some(referer) = referer else { return };
        let own = || {
            self.open
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, open)| open.owner == *owner && at < open.began + KEPT)
        };
        let named = own().find(|(_, open)| open.visit.page == referer).map(|(place, _)| (place, false));
        let of_part = || own().find(|(_, open)| open.knows(&referer)).map(|(place, _)| (place, true));
        let of_site = || {
            // A file of its site; or the origin alone, where a policy cuts what is told.
            let is_file = referer.path().rsplit('/').next().is_some_and(|name| name.contains('.'));
            let near = own().find(|(_, open)| open.visit.page.origin() == referer.origin());
            near.map(|(place, _)| (place, is_file)).filter(|_| is_file || referer.path() == "/")
        };
        let Some((place, by_part)) = named.or_else(of_part).or_else(of_site) else { return };
        if by_part {
            needs.initiator = Some(referer);
        }
        let Some(open) = self.open.get_mut(place).filter(|open| open.visit.page != url) else { return };
        // What was promised in time and is asked for all the same was promised in other words: it was of no use.
        if open.pending.get(&url).is_some_and(|since| *since <= unheard) {
            return;
        }
        let delay = at.saturating_duration_since(open.began);
        open.note(Asked { url, needs, delay, anyones, foreseen: false });
    }

    /// See [`super::PageModels::answered_here`].
    pub(super) fn answered_here(
        &mut self,
        carrier: &Arc<str>,
        exchange: ExchangeId,
        kind: &Kind,
        after: Duration,
    ) {
        let is_it = |open: &&mut Open| open.exchange == exchange && open.owner.remote == *carrier;
        let Some(open) = self.open.iter_mut().find(is_it) else { return };
        if open.visit.page == kind.url || after > KEPT {
            return;
        }
        self.answered += 1;
        let Kind { url, needs, anyones } = kind.clone();
        // How it is asked for is known from when it crossed.
        open.note(Asked { url, needs, delay: after, anyones, foreseen: true });
    }

    /// Ends all visits without learning from them.
    pub(super) fn forget(&mut self) {
        self.open.clear();
        self.promises.clear();
    }

    /// Visits that go on.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Answers of their own of which remotes have told, as far as it was known of what.
    pub(super) fn answered_by_remotes(&self) -> u64 {
        self.answered
    }

    /// Uses of which remotes have told.
    pub(super) fn uses(&self) -> u64 {
        self.uses
    }
}

impl Open {
    fn note(&mut self, asked: Asked) {
        if self.asked.len() < RESOURCES {
            self.visit.unknown.remove(&asked.url);
            self.asked.entry(asked.url.clone()).or_insert(asked);
        }
    }

    /// Whether this is a part of the page.
    fn knows(&self, url: &Url) -> bool {
        self.asked.contains_key(url) || self.pending.contains_key(url) || self.visit.unknown.contains(url)
    }
}

/// What a promise says of its request.
pub(super) fn needs(made: &Made<'_>) -> Needs {
    let initiator = match &made.hint.initiator {
        Initiator::Document => None,
        Initiator::Sheet(url) | Initiator::Module(url) => Some(url.clone()),
    };
    Needs { initiator, urgency: Some(made.urgency), ..Needs::new(made.hint.destination, made.hint.mode) }
}

fn texts(fields: &HeaderMap, name: &HeaderName) -> Vec<String> {
    fields.get_all(name).iter().filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect()
}

/// Whether the hint is one that visits have taught.
fn is_foreseen(hint: &Hint) -> bool {
    matches!(hint.source, Source::OwnVisits | Source::OthersVisits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_page::{Destination, Mode};
    use http::StatusCode;

    const PAGE: ExchangeId = ExchangeId(5);

    fn owner(user: u64) -> Owner {
        Owner { remote: "ship#1".into(), user }
    }

    fn user(number: u64) -> User {
        User { remote: "ship".into(), epoch: 1, number }
    }

    fn url(path: &str) -> Url {
        Url::parse("http://site.test/").unwrap().join(path).unwrap()
    }

    struct World {
        visits: Visits,
        start: Instant,
    }

    impl World {
        fn new() -> World {
            let (mut visits, start) = (Visits::default(), Instant::now());
            assert!(visits.begin(&owner(1), user(1), PAGE, &url("/"), start).is_empty());
            let response = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
            visits.answered(&owner(1), PAGE, Some(&response));
            World { visits, start }
        }

        fn promise(&mut self, number: u64, path: &str, source: Source) {
            let hint = Hint::new(url(path), Destination::Script, Mode::NoCors, source);
            let made = Made { hint: &hint, url: &url(path), urgency: 3 };
            self.visits.promised(&owner(1), PAGE, number, &made, self.start);
        }

        fn cross(&mut self, path: &str, referer: &str, after_s: u64) {
            let at = self.start + Duration::from_secs(after_s);
            let needs = Needs::new(Destination::Script, Mode::NoCors);
            let seen = Seen { url: url(path), referer: Some(url(referer)), needs, anyones: true };
            self.visits.crossed(&owner(1), seen, at, at);
        }

        /// The visit that ends when the page is loaded again after so long.
        fn again(&mut self, after_s: u64) -> Visit {
            let at = self.start + Duration::from_secs(after_s);
            let mut ended = self.visits.begin(&owner(1), user(1), ExchangeId(6), &url("/"), at);
            assert_eq!(ended.len(), 1);
            ended.pop().unwrap()
        }
    }

    fn asked(visit: &Visit) -> Vec<&str> {
        visit.asked.iter().map(|asked| asked.url.path()).collect()
    }

    #[test]
    fn what_crosses_and_what_is_used_was_asked_for() {
        let mut world = World::new();
        world.promise(1, "/used.js", Source::Script);
        world.promise(2, "/young.js", Source::Script);
        world.promise(3, "/unwanted.js", Source::Script);
        world.cross("/a.js", "/", 1);
        world.cross("/b.js", "/a.js", 1);
        world.visits.used(&"ship#1".into(), 0..=1);
        world.visits.unwanted(&"ship#1".into(), 3..=u64::MAX);
        world.visits.used(&"ship#2".into(), 2..=2);
        let visit = world.again(3);
        assert_eq!(asked(&visit), ["/a.js", "/b.js", "/used.js"]);
        let unknown: Vec<_> = visit.unknown.iter().map(Url::path).collect();
        assert_eq!(unknown, ["/unwanted.js", "/young.js"]);
        assert_eq!(visit.asked[1].needs.initiator, Some(url("/a.js")));
        assert!(world.visits.promises.is_empty());
    }

    #[test]
    fn what_was_sent_and_is_not_used_in_time_was_sent_in_vain() {
        let mut world = World::new();
        for (number, path) in [(1, "/used.js"), (2, "/vain.js"), (3, "/not-sent.js")] {
            world.promise(number, path, Source::OwnVisits);
        }
        world.promise(4, "/of-the-page.js", Source::Script);
        for number in [1, 2, 4] {
            world.visits.sent(&"ship#1".into(), number, true);
        }
        world.visits.used(&"ship#1".into(), 1..=1);
        let visit = world.again(20);
        assert_eq!((visit.sent, visit.used), (2, 1));
        assert!(visit.unknown.is_empty() && asked(&visit) == ["/used.js"]);
    }

    #[test]
    fn what_was_promised_in_other_words_than_it_is_asked_for_was_of_no_use() {
        let mut world = World::new();
        world.promise(1, "/a.js", Source::OwnVisits);
        world.cross("/a.js", "/", 2);
        assert!(asked(&world.again(20)).is_empty());
        // But what the browser could not have heard of yet was asked for.
        let mut world = World::new();
        world.promise(1, "/a.js", Source::OwnVisits);
        let needs = Needs::new(Destination::Script, Mode::NoCors);
        let seen = Seen { url: url("/a.js"), referer: Some(url("/")), needs, anyones: true };
        let before = world.start.checked_sub(Duration::from_millis(1)).unwrap();
        world.visits.crossed(&owner(1), seen, world.start, before);
        assert_eq!(asked(&world.again(20)), ["/a.js"]);
    }

    #[test]
    fn requests_of_others_of_other_pages_and_of_later_teach_nothing() {
        let mut world = World::new();
        world.cross("/late.js", "/", 31);
        world.cross("/elsewhere.js", "/other/page", 1);
        let needs = Needs::new(Destination::Script, Mode::NoCors);
        let seen = Seen { url: url("/others.js"), referer: Some(url("/")), needs, anyones: true };
        world.visits.crossed(&owner(2), seen, world.start, world.start);
        assert!(asked(&world.again(20)).is_empty());
    }

    #[test]
    fn a_page_that_never_came_teaches_nothing_and_time_ends_visits() {
        let (mut visits, start) = (Visits::default(), Instant::now());
        visits.begin(&owner(1), user(1), PAGE, &url("/"), start);
        assert!(visits.over(start + KEPT).is_empty() && visits.len() == 0);
        visits.begin(&owner(1), user(1), PAGE, &url("/"), start);
        visits.answered(&owner(1), PAGE, None);
        assert!(visits.over(start + KEPT / 2).is_empty());
        assert_eq!(visits.over(start + KEPT).len(), 1);
    }

    #[test]
    fn visits_and_promises_are_bounded() {
        let (mut visits, start) = (Visits::default(), Instant::now());
        for number in 0..MOST as u64 + 20 {
            visits.begin(&owner(number), user(number), PAGE, &url("/"), start);
        }
        assert_eq!(visits.len(), MOST);
        let hint = |number: usize| {
            Hint::new(url(&format!("/{number}")), Destination::Image, Mode::NoCors, Source::Image)
        };
        for number in 0..RESOURCES + 20 {
            let (hint, of) = (hint(number), owner(MOST as u64));
            visits.promised(
                &of,
                PAGE,
                number as u64,
                &Made { hint: &hint, url: &hint.url, urgency: 4 },
                start,
            );
        }
        assert_eq!(visits.promises.len(), RESOURCES);
        visits.forget();
        assert!(visits.promises.is_empty() && visits.len() == 0);
    }
}
