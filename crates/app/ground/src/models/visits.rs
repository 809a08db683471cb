//! Visits that go on: what each page has asked for so far, and what was promised to it and has not been used yet. Bounded,
//! and over after half a minute. Told the time; pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use farhop_bundle::referrer_policy;
use farhop_events::ExchangeId;
use farhop_htotp::ResponseHead;
use farhop_models::{Asked, Needs, Policies, User, Visit};
use farhop_page::{Destination, Hint, Initiator, ReferrerPolicy, Source};
use http::header::{self, HeaderMap, HeaderName};
use tokio::time::Instant;
use url::{Position, Url};

use super::Made;
use super::kinds::Kind;
use super::seen::Seen;
use crate::owner::Owner;

/// How long what is asked for belongs to a visit.
pub(super) const KEPT: Duration = Duration::from_secs(30);
/// What was promised for so long and not used is not asked for: the remote lets it lapse after ten seconds, and tells of
/// uses every second.
const SETTLED: Duration = Duration::from_secs(15);
/// A page that was answered so long ago is taken to be left when its user opens another of its origin: what it has shown by then
/// teaches that one.
const SHOWN: Duration = Duration::from_secs(4);
/// Visits of all users together; the oldest end first.
const MOST: usize = 256;
/// Resources of each, as many as a page may name (`[bundle] hints`).
const RESOURCES: usize = 2_000;
/// What is remembered of them in all visits together, and of their promises; some hundred bytes each. Beyond it nothing is noted.
const ALL: usize = 200_000;

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
    /// Promised, and neither used nor settled; since when, and in whose name.
    pending: BTreeMap<Url, (Instant, Option<Url>)>,
    /// Named, and held by the remote: how it is asked for if it is, and since when.
    named: BTreeMap<Url, (Needs, Instant)>,
    /// The documents in its frames, and what they have named: that is asked for in their name, which is not foreseen.
    framed: BTreeSet<Url>,
    /// The numbers of its promises.
    promises: Vec<u64>,
    /// Since when the page is here, or it is known what came in its place: learned only then.
    answered: Option<Instant>,
    /// It was left and is learned. What is asked for in its name is not another's.
    is_left: bool,
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
    /// A visit begins. Gives those that are over with it: earlier ones of the same page, those that were left for it, and what
    /// there is no room for.
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
        let is_left = |open: &Open| {
            open.owner == *owner
                && !open.is_left
                && open.answered.is_some_and(|at| at + SHOWN <= now)
                && open.visit.page.origin() == page.origin()
                // Over plain HTTP, where requests for frames do not say so.
                && !open.framed.contains(&page)
        };
        for place in 0..self.open.len() {
            if self.open.get(place).is_some_and(is_left) {
                ended.extend(self.leave(place, now));
            }
        }
        while self.open.len() >= MOST || (!self.open.is_empty() && self.noted() + RESOURCES > ALL) {
            ended.extend(self.open.pop_front().and_then(|open| self.close(open, now)));
        }
        self.open.push_back(Open {
            owner: owner.clone(),
            exchange,
            began: now,
            visit: Visit::new(user, page),
            asked: BTreeMap::new(),
            pending: BTreeMap::new(),
            named: BTreeMap::new(),
            framed: BTreeSet::new(),
            promises: Vec::new(),
            answered: None,
            is_left: false,
        });
        ended
    }

    /// The visit at this place was left: it is over, but known until its time.
    fn leave(&mut self, place: usize, now: Instant) -> Option<Visit> {
        let open = self.open.get_mut(place)?;
        open.is_left = true;
        let left = Open {
            owner: open.owner.clone(),
            visit: open.visit.clone(),
            asked: open.asked.clone(),
            pending: open.pending.clone(),
            named: std::mem::take(&mut open.named),
            framed: BTreeSet::new(),
            promises: std::mem::take(&mut open.promises),
            is_left: false,
            exchange: open.exchange,
            began: open.began,
            answered: open.answered,
        };
        self.close(left, now)
    }

    /// What is remembered of all visits and their promises.
    fn noted(&self) -> usize {
        self.open.iter().map(Open::noted).sum::<usize>() + self.promises.len()
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
        let Open { owner, began, mut visit, asked, pending, named, promises, answered, is_left, .. } = open;
        // Of what is younger it is not known yet whether it was of use.
        let is_settled = |promise: &Promise| began + promise.asked.delay + SETTLED <= now;
        for promise in promises {
            let promise = self.promises.remove(&(Arc::clone(&owner.remote), promise));
            if let Some(Promise { used, .. }) =
                promise.filter(|it| it.asked.foreseen && it.sent && is_settled(it))
            {
                visit.sent += 1;
                visit.used += u32::from(used);
            }
        }
        let pending = pending.into_iter().map(|(url, (since, _))| (url, since));
        let open = pending.chain(named.into_iter().map(|(url, (_, since))| (url, since)));
        let young = open.filter(|(_, since)| *since + SETTLED > now).map(|(url, _)| url);
        visit.unknown.extend(young);
        visit.unknown.retain(|url| !asked.contains_key(url));
        visit.asked = asked.into_values().collect();
        (answered.is_some() && !is_left).then_some(visit)
    }

    fn of(&mut self, owner: &Owner, exchange: ExchangeId) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.exchange == exchange && open.owner == *owner && !open.is_left)
    }

    /// The same, where there is room to note more of it.
    fn with_room(&mut self, owner: &Owner, exchange: ExchangeId) -> Option<&mut Open> {
        if self.noted() >= ALL {
            return None;
        }
        self.of(owner, exchange)
    }

    /// See [`super::PageModels::answered`].
    pub(super) fn answered(
        &mut self,
        owner: &Owner,
        exchange: ExchangeId,
        response: Option<&ResponseHead>,
        now: Instant,
    ) {
        let Some(open) = self.of(owner, exchange) else { return };
        open.answered = Some(now);
        let Some(response) = response else { return };
        let content = texts(&response.fields, &header::CONTENT_SECURITY_POLICY);
        let referrer = referrer_policy(&response.fields).map(|policy| policy.as_str().to_owned());
        open.visit.policies = Some(Policies { referrer, content });
    }

    /// See [`super::PageModels::tells`].
    pub(super) fn tells(&mut self, owner: &Owner, exchange: ExchangeId, policy: Option<ReferrerPolicy>) {
        if let Some(policies) = self.of(owner, exchange).and_then(|open| open.visit.policies.as_mut()) {
            policies.referrer = policy.map(|policy| policy.as_str().to_owned());
        }
    }

    /// See [`super::PageModels::named`].
    pub(super) fn names(&mut self, owner: &Owner, exchange: ExchangeId, made: &Made<'_>, now: Instant) {
        let open = self.with_room(owner, exchange).filter(|open| open.named.len() < RESOURCES);
        let Some(open) = open else { return };
        if open.follows(made) {
            open.named.entry(made.url.clone()).or_insert_with(|| (needs(made.hint, made.urgency), now));
        }
    }

    /// See [`super::PageModels::unseen`].
    pub(super) fn unseen(&mut self, owner: &Owner, exchange: ExchangeId, url: &Url) {
        if let Some(open) = self.with_room(owner, exchange)
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
        let open = self.with_room(owner, exchange).filter(|open| open.promises.len() < RESOURCES);
        let Some(open) = open else { return };
        if !open.follows(made) {
            return;
        }
        let needs = needs(made.hint, made.urgency);
        open.pending.insert(made.url.clone(), (now, needs.initiator.clone()));
        open.promises.push(promise);
        let (url, delay) = (made.url.clone(), now - open.began);
        let foreseen = is_foreseen(made.hint);
        let asked = Asked { url, needs, delay, anyones: false, foreseen, unkept: false };
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
        let Seen { url, referer, mut needs, anyones, unkept } = seen;
        let Some(referer) = referer else { return };
        if referer[Position::BeforePath..] == *"/" {
            // The origin alone: of whatever page it is, no more of it is told.
            needs.referrer_policy = Some(ReferrerPolicy::StrictOrigin);
        }
        let own = || {
            self.open
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, open)| open.owner == *owner && at < open.began + KEPT)
        };
        let going_on = || own().filter(|(_, open)| !open.is_left);
        let named = own().find(|(_, open)| open.visit.page == referer).map(|(place, _)| (place, false));
        let of_part = || going_on().find(|(_, open)| open.knows(&referer)).map(|(place, _)| (place, true));
        let of_site = || {
            // A file of its site; or the origin alone, where a policy cuts what is told.
            let is_file = referer.path().rsplit('/').next().is_some_and(|name| name.contains('.'));
            let near = going_on().find(|(_, open)| open.visit.page.origin() == referer.origin());
            // What a page that was left goes on asking for before the next one is there is not that one's.
            let is_late = own().any(|(_, open)| open.is_left && open.knows(&referer));
            near.filter(|(_, open)| !is_late || open.answered.is_some_and(|at| at <= unheard))
                .map(|(place, _)| (place, is_file))
                .filter(|_| is_file || referer.path() == "/")
        };
        let Some((place, by_part)) = named.or_else(of_part).or_else(of_site) else { return };
        if by_part {
            needs.initiator = Some(referer);
        }
        let has_room = self.noted() < ALL;
        let is_meant = |open: &&mut Open| open.visit.page != url && !open.is_left && has_room;
        let Some(open) = self.open.get_mut(place).filter(is_meant) else { return };
        if needs.initiator.as_ref().is_some_and(|by| open.framed.contains(by)) {
            return;
        }
        // What was promised in time and is asked for all the same was promised in other words: it was of no use.
        if let Some((_, name)) = open.pending.get(&url).filter(|(since, _)| *since <= unheard) {
            if unkept && *name != needs.initiator {
                open.visit.otherwise.insert(url);
            }
            return;
        }
        let delay = at.saturating_duration_since(open.began);
        open.note(Asked { url, needs, delay, anyones, foreseen: false, unkept });
    }

    /// The browser has asked for a document in a frame of one of the pages, which perhaps a script has put there: what is asked for in
    /// its name is its own.
    pub(super) fn framed(&mut self, owner: &Owner, mut url: Url, at: Instant) {
        url.set_fragment(None);
        let goes_on = |open: &&mut Open| open.owner == *owner && !open.is_left && at < open.began + KEPT;
        for open in self.open.iter_mut().filter(goes_on).filter(|open| open.framed.len() < RESOURCES) {
            open.framed.insert(url.clone());
        }
    }

    /// See [`super::PageModels::answered_here`].
    pub(super) fn answered_here(
        &mut self,
        carrier: &Arc<str>,
        exchange: ExchangeId,
        kind: &Kind,
        after: Duration,
    ) {
        let is_it =
            |open: &&mut Open| open.exchange == exchange && open.owner.remote == *carrier && !open.is_left;
        if self.noted() >= ALL {
            return;
        }
        let Some(open) = self.open.iter_mut().find(is_it) else { return };
        if open.visit.page == kind.url || after > KEPT {
            return;
        }
        self.answered += 1;
        let Kind { url, needs, anyones } = kind.clone();
        // What crossed for another page may have been told more of that than of this one.
        let needs = match open.named.remove(&url) {
            Some((named, _)) => named,
            None if open.framed.contains(&url) => return,
            None => needs,
        };
        // How it is asked for is known from when it crossed.
        open.note(Asked { url, needs, delay: after, anyones, foreseen: true, unkept: false });
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
    /// What is remembered of it, but for its promises.
    fn noted(&self) -> usize {
        let Open { asked, pending, named, framed, visit, .. } = self;
        asked.len() + pending.len() + named.len() + framed.len() + visit.unknown.len() + visit.otherwise.len()
    }

    fn note(&mut self, asked: Asked) {
        if self.asked.len() < RESOURCES {
            self.visit.unknown.remove(&asked.url);
            self.asked.entry(asked.url.clone()).or_insert(asked);
        }
    }

    /// Whether what is made of a hint can be foreseen, so that it would be asked for in the same words.
    fn follows(&mut self, made: &Made<'_>) -> bool {
        let Made { hint, url, by, .. } = made;
        let is_frame =
            matches!(hint.destination, Destination::Frame | Destination::Object | Destination::Embed);
        if (is_frame || by.is_framed) && self.framed.len() < RESOURCES {
            self.framed.insert((*url).clone());
        }
        // To what the document's own styles name, browsers tell of it by different rules.
        let is_styled = matches!(
            hint.source,
            Source::Rule | Source::RulePart | Source::FontFace | Source::StyleAttribute
        ) && hint.initiator == Initiator::Document;
        let is_usual = by.referrer_policy.is_none_or(|policy| policy == ReferrerPolicy::default());
        !by.is_framed && (is_usual || !is_styled)
    }

    /// Whether this is a part of the page.
    fn knows(&self, url: &Url) -> bool {
        self.asked.contains_key(url) || self.pending.contains_key(url) || self.visit.unknown.contains(url)
    }
}

/// What a promise says of its request.
pub(super) fn needs(hint: &Hint, urgency: u8) -> Needs {
    let initiator = match &hint.initiator {
        Initiator::Document => None,
        Initiator::Sheet(url) | Initiator::Module(url) => Some(url.clone()),
    };
    let referrer_policy = hint.referrer_policy;
    let needs = Needs::new(hint.destination, hint.mode);
    Needs { initiator, referrer_policy, urgency: Some(urgency), ..needs }
}

fn texts(fields: &HeaderMap, name: &HeaderName) -> Vec<String> {
    fields.get_all(name).iter().filter_map(|value| Some(value.to_str().ok()?.to_owned())).collect()
}

/// Whether the hint is one that visits have taught.
fn is_foreseen(hint: &Hint) -> bool {
    matches!(hint.source, Source::OwnVisits | Source::OthersVisits)
}

#[cfg(test)]
mod tests;
