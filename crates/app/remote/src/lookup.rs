//! What answers a request without crossing, if anything does: a promise, or the repository.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::{PRIVATE_TO, PromiseId, WhyAsk, not_modified, sameness, unfamiliar};
use farhop_events::{AnsweredFrom, Crossing};
use farhop_freshness::{
    Fallback, Part, Reply, RequestDirectives, Scope, Stored, Verdict, Why, select, shareable, storable,
};
use farhop_htotp::ResponseHead;
use farhop_store::{Body, Held, Partition};
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode};
use tokio::time::Instant;
use url::Url;

use crate::Remote;
use crate::answers::Trouble;
use crate::completing::Beginning;
use crate::desk::{Answering, Promised};
use crate::exchange::Exchange;
use crate::held::{HeldAnswer, Stale};
use crate::parts::Found as FoundPart;
use crate::promising;
use crate::request::Fetch;
use crate::users::User;

/// The number of what has none in the repository.
pub(crate) const NO_ENTRY: u64 = u64::MAX;

/// How a request is answered.
pub(crate) enum Found {
    /// From the repository; if that is `doubtful`, the origin is to be asked about it besides.
    Held { answer: HeldAnswer, doubtful: bool },
    /// By what was promised.
    Promised { head: Arc<ResponseHead>, body: Body, early: bool },
    /// With 304: the client holds what was promised already.
    Unchanged { head: ResponseHead, early: bool },
    /// With why ground could not reach the origin when it fetched what it had promised, a moment ago.
    Failed(Trouble),
    /// Only a stored answer was wanted, and there is none.
    Unsatisfiable,
    /// By asking, with what is held of it.
    Ask { why: Crossing, field: Option<String>, held: Meanwhile },
}

/// What is held of what is asked for all the same.
#[derive(Default)]
pub(crate) struct Meanwhile {
    /// It answers once the origin has confirmed it, or where it does not answer.
    pub(crate) stale: Option<Stale>,
    /// Only what comes behind it has to cross.
    pub(crate) beginning: Option<Beginning>,
}

impl From<Option<Stale>> for Meanwhile {
    fn from(stale: Option<Stale>) -> Meanwhile {
        Meanwhile { stale, beginning: None }
    }
}

/// Looks a request up. Waits for the head of a promise that answers it, and for what the origin says of what is held where
/// ground is asking already.
pub(crate) async fn look_up(remote: &Remote, exchange: &Exchange) -> Found {
    let mut found = look(remote, exchange).await;
    if let Some(awaited) = found.stale().and_then(|held| remote.validating().awaited(held.id)) {
        let wanted = awaited.wanted(&exchange.fetch.head.fields);
        promising::tell_wanted(remote, exchange.course.promised(wanted.0, Some(wanted)));
        awaited.over().await;
        found = look(remote, exchange).await;
    }
    let Some(entry) = found.stale().map(|held| held.id) else { return found };
    // What has to be validated whenever it is used was, for this.
    let Exchange { user, fetch, .. } = exchange;
    let page = remote.desk().page_of(exchange.id, user, &fetch.url, &fetch.head.fields);
    let asked = (entry, sameness(&fetch.head.fields));
    if !remote.validating().take_confirmed(asked, user, page, remote.now()) {
        return found;
    }
    let held = remote.repository().entry(entry).await.map(|(_, held)| held);
    match held.and_then(|held| HeldAnswer::to(fetch, held, AnsweredFrom::Validated)) {
        Some(answer) => {
            let head = &answer.held.head;
            remote.desk().answered(page, &fetch.url, head.status, &head.fields, remote.now());
            Found::Held { answer, doubtful: false }
        }
        None => found,
    }
}

impl Found {
    /// What is held and answers as soon as it is validated; nothing where the client wants the origin's own word.
    fn stale(&self) -> Option<&Held> {
        match self {
            Found::Ask { why: Crossing::Stale, field: None, held } => {
                let stale = held.stale.as_ref().filter(|stale| stale.validates && stale.part.is_none());
                stale.map(|stale| &stale.held)
            }
            _ => None,
        }
    }
}

/// Why a request crosses of which nobody at ground knew.
fn unforeseen(fields: &HeaderMap) -> Crossing {
    if farhop_bundle::is_navigation(fields) { Crossing::Navigation } else { Crossing::Undiscovered }
}

async fn look(remote: &Remote, exchange: &Exchange) -> Found {
    let Exchange { user, fetch, course, caught_at, .. } = exchange;
    let exchange = exchange.id;
    let fields = &fetch.head.fields;
    if !fetch.may_be_answered_here() {
        let why = match (fetch.head.upgrades(), fetch.has_body) {
            (true, _) => Crossing::Upgrade,
            (false, true) => Crossing::Method,
            (false, false) => unforeseen(fields),
        };
        return Found::Ask { why, field: None, held: Meanwhile::default() };
    }
    let asked = remote.desk().ask((exchange, user), &fetch.head.method, &fetch.url, fields, remote.now());
    let (mut why, mut field) = (unforeseen(fields), None);
    match asked {
        Ok(Answering { promise, wire, mut promised, wanted }) => {
            promising::tell_wanted(remote, course.promised(wire, wanted));
            let early = matches!(&*promised.borrow(), Promised::Coming { body, .. } if body.is_whole());
            // The desk drops its end when a promise ends: then what was last seen holds.
            let _ = promised.wait_for(|state| !matches!(state, Promised::Awaited)).await;
            let state = promised.borrow().clone();
            if let Promised::Coming { head, body } = &state
                && !body.is_broken()
                && let Some(head) = unchanged(remote, user, promise, fetch, head)
            {
                remote.desk().needs_no_body(exchange);
                return Found::Unchanged { head, early };
            }
            match state {
                Promised::Coming { head, body } if body.can_be_joined() && !body.is_broken() => {
                    return Found::Promised { head, body, early };
                }
                Promised::Coming { .. } => {}
                _ if remote.uplink().now().is_none() => why = Crossing::PromiseLost,
                _ => why = Crossing::PromiseWithdrawn,
            }
        }
        Err(WhyAsk::Field(mismatch)) => {
            why = Crossing::Mismatch;
            field = Some(mismatch.0.as_str().to_owned());
        }
        Err(WhyAsk::Spent) => why = Crossing::Spent,
        Err(WhyAsk::OtherLoad) => why = Crossing::OtherLoad,
        Err(WhyAsk::NotPromised) => {
            let unkept = remote.desk().books().unkept(exchange, user, &fetch.url, fields);
            why = unkept.unwrap_or(why);
        }
        Err(WhyAsk::Method) => {}
    }
    let mut meanwhile = Meanwhile::default();
    if matches!(fetch.head.method, Method::GET | Method::HEAD) {
        match in_repository(remote, user.id, &fetch.head.method, fetch.url.as_str(), fields).await {
            Stocked::Answer { answer, doubtful } => {
                let head = &answer.held.head;
                remote.desk().answered(exchange, &fetch.url, head.status, &head.fields, remote.now());
                return Found::Held { answer, doubtful };
            }
            Stocked::Unsatisfiable => return Found::Unsatisfiable,
            Stocked::Stale { held, reason } => {
                // But for the field that differs, a promise would have answered.
                if field.is_none() {
                    why = reason;
                }
                meanwhile = held;
            }
            Stocked::Nothing => {
                if let Some(name) = differs_from_what_came(remote, user, fetch).await {
                    (why, field) = (Crossing::Mismatch, Some(name));
                }
            }
        }
    } else {
        why = Crossing::Method;
    }
    // RFC 9111 §5.2.1.7.
    if RequestDirectives::of(fields).only_if_cached {
        return Found::Unsatisfiable;
    }
    // Whatever becomes of this request, its answer is newer than what is remembered.
    let carrier = remote.uplink().now().map(|carrier| carrier.generation);
    let trouble = carrier
        .and_then(|carrier| remote.unreachable().take_promised(carrier, user, &fetch.url, Instant::now()));
    // For what belongs to a page, to ask again takes a round trip and comes to the same. What is held may stand in for errors, and where
    // a client's connection was caught, the address that it led to may answer.
    if matches!(fetch.head.method, Method::GET | Method::HEAD)
        && field.is_none()
        && meanwhile.stale.is_none()
        && caught_at.is_none()
        && !RequestDirectives::of(fields).no_cache
        && !farhop_bundle::is_navigation(fields)
        && let Some(trouble) = trouble
    {
        return Found::Failed(trouble);
    }
    Found::Ask { why, field, held: meanwhile }
}

/// The 304 that a promised response makes of this request, if it does. A body that nobody will want then is stopped.
fn unchanged(
    remote: &Remote,
    user: &User,
    promise: PromiseId,
    fetch: &Fetch,
    head: &ResponseHead,
) -> Option<ResponseHead> {
    let asked = &fetch.head.fields;
    let now = SystemTime::now();
    let fields = not_modified(asked, head.status, &head.fields, now)?;
    // What is kept nowhere answers no second request; what is to be validated at each use is the browser's to hold, and its
    // body, sent again at every visit, would hold up the heads that come after it.
    let partition = partition_for(user.id, &fetch.url, asked, head.status, &head.fields);
    let answers_again = partition.is_some_and(|partition| {
        let stored = Stored::new(asked, head.status, &head.fields, now, now);
        stored.verdict(&Method::GET, &HeaderMap::new(), partition.scope(), now) == Verdict::Fresh
    });
    if !answers_again {
        remote.desk().head_was_enough(promise, remote.now());
    }
    Some(ResponseHead { status: StatusCode::NOT_MODIFIED, fields })
}

/// The field in which a request differs from a promise that is whole and held, if there is one.
async fn differs_from_what_came(remote: &Remote, user: &User, fetch: &Fetch) -> Option<String> {
    let stored = remote.desk().handed_over(user, &fetch.url)?;
    let (_, held) = remote.repository().entry(stored).await?;
    let names = depends_on(held.partition, &held.head)?;
    let asked = &fetch.head.fields;
    let differs = |name: &&HeaderName| held.head.nominated.get(*name) != asked.get(*name);
    names.iter().find(differs).map(|name| name.as_str().to_owned())
}

/// What the repository says to a request.
pub(crate) enum Stocked {
    Answer { answer: HeldAnswer, doubtful: bool },
    Unsatisfiable,
    Stale { held: Meanwhile, reason: Crossing },
    Nothing,
}

/// Looks into what is held for this user and for all.
pub(crate) async fn in_repository(
    remote: &Remote,
    user: u64,
    method: &Method,
    url: &str,
    fields: &HeaderMap,
) -> Stocked {
    let now = SystemTime::now();
    let mut found = Vec::new();
    for partition in [Partition::User(user), Partition::Shared] {
        found.extend(remote.repository().find(partition, url, fields).await);
    }
    found.retain(|held| is_bound_alike(held.partition, &held.head, fields));
    select(&mut found, |held| &held.head);
    let mut best = Stocked::Nothing;
    for held in found {
        let stocked = judge(method, fields, held, now, remote.soon());
        if matches!(stocked, Stocked::Answer { .. }) {
            return stocked;
        }
        if matches!(best, Stocked::Nothing) {
            best = stocked;
        }
    }
    // What is held of other ranges may answer where what is held of all may not.
    match (in_parts(remote, user, method, url, fields, now), best) {
        (parts @ Stocked::Answer { .. }, _) | (parts, Stocked::Nothing) => parts,
        (_, best) => best,
    }
}

/// What came for other ranges: it answers where what is asked for now lies within it (RFC 9111 §3.3), or is asked about.
fn in_parts(
    remote: &Remote,
    user: u64,
    method: &Method,
    url: &str,
    fields: &HeaderMap,
    now: SystemTime,
) -> Stocked {
    let (mut stale, mut beginning, mut is_held) = (None, None, false);
    if method != Method::GET {
        return Stocked::Nothing;
    }
    let parts = [Partition::User(user), Partition::Shared].map(|held| remote.parts().find(held, url, fields));
    let mut parts: Vec<FoundPart> = parts.into_iter().flatten().collect();
    parts.retain(|part| is_bound_alike(part.partition, &part.head, fields));
    select(&mut parts, |part| &part.head);
    for found in parts {
        let FoundPart { partition, head, body, range, complete } = found;
        let (held, part) = (Held { id: NO_ENTRY, partition, head, body }, Part { range, complete });
        let verdict = held.head.verdict(method, fields, partition.scope(), now);
        let reply = held.head.reply(method, fields, Some(complete));
        let lies_within = matches!(&reply, Reply::Part(asked, _) if part.has(asked));
        match verdict {
            Verdict::Fresh if lies_within => {
                let answer = HeldAnswer::new(held, reply, AnsweredFrom::Repository);
                return Stocked::Answer { answer: answer.of_part(&part), doubtful: false };
            }
            // RFC 9111 §4.3.1, §4.3.2: a part is asked about for a range that it has alone.
            Verdict::Validate { why: Why::Stale | Why::ResponseNoCache, fallback } if lies_within => {
                stale.get_or_insert(Stale { held, part: Some(part), validates: true, fallback });
            }
            // Who gives it at once would have to ask about it behind the client's back, and there is no other way to a part's validators.
            Verdict::Revalidate if lies_within => {
                let fallback = Fallback::Disconnected;
                stale.get_or_insert(Stale { held, part: Some(part), validates: true, fallback });
            }
            _ => {
                is_held |= verdict == Verdict::Fresh && matches!(reply, Reply::Part(..) | Reply::Whole);
                beginning = beginning.or_else(|| Beginning::of(fields, &held, &part, &reply, verdict));
            }
        }
    }
    match stale {
        Some(stale) => Stocked::Stale { held: Some(stale).into(), reason: Crossing::Stale },
        None if is_held || beginning.is_some() => {
            Stocked::Stale { held: Meanwhile { stale: None, beginning }, reason: Crossing::Range }
        }
        None => Stocked::Nothing,
    }
}

/// Whether a part of what is still arriving is sooner here if it is asked for: more than `soon` bytes come before it.
fn is_far_ahead(held: &Held, part: &Range<u64>, soon: u64) -> bool {
    !held.body.is_whole() && part.start.saturating_sub(held.body.written()) > soon
}

/// What an entry that fits says to a request. Of what is arriving, `soon` bytes come in no more time than asking takes.
fn judge(method: &Method, fields: &HeaderMap, held: Held, now: SystemTime, soon: u64) -> Stocked {
    let verdict = held.head.verdict(method, fields, held.partition.scope(), now);
    let (why, fallback) = match verdict {
        Verdict::Fresh | Verdict::Revalidate => {
            let doubtful = verdict == Verdict::Revalidate;
            return match reply(method, fields, &held) {
                Some(Reply::Part(part, _)) if is_far_ahead(&held, &part, soon) => {
                    Stocked::Stale { held: Meanwhile::default(), reason: Crossing::Range }
                }
                Some(reply) => {
                    let answer = HeldAnswer::new(held, reply, AnsweredFrom::Repository);
                    Stocked::Answer { answer, doubtful }
                }
                None if fields.contains_key(header::RANGE) => {
                    Stocked::Stale { held: Meanwhile::default(), reason: Crossing::Range }
                }
                None => Stocked::Stale { held: Meanwhile::default(), reason: Crossing::Reload },
            };
        }
        Verdict::Unsatisfiable => return Stocked::Unsatisfiable,
        Verdict::Validate { why, fallback } => (why, fallback),
    };
    let reason = match why {
        Why::RequestNoCache | Why::RequestAge => Crossing::Reload,
        _ => Crossing::Stale,
    };
    if matches!(why, Why::Method | Why::Authorization) {
        return Stocked::Stale { held: Meanwhile::default(), reason };
    }
    let validates = method == Method::GET && held.body.is_whole();
    let stale = Stale { held, part: None, validates, fallback };
    Stocked::Stale { held: Some(stale).into(), reason }
}

/// How what is held answers a request; `None` where its conditions are the origin's to evaluate, or where it asks for a part
/// of what is still arriving and may be of any length.
pub(crate) fn reply(method: &Method, request: &HeaderMap, held: &Held) -> Option<Reply> {
    let said = || held.head.fields.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    let length = if held.body.is_whole() { Some(held.body.written()) } else { said() };
    if length.is_none() && request.contains_key(header::RANGE) {
        return None;
    }
    Some(held.head.reply(method, request, length)).filter(|reply| *reply != Reply::ForOrigin)
}

/// Where a response to `url` may be kept: in the shared store if RFC 9111 allows, else in the user's own, else nowhere.
pub(crate) fn partition_for(
    user: u64,
    url: &Url,
    request: &HeaderMap,
    status: StatusCode,
    response: &HeaderMap,
) -> Option<Partition> {
    if shareable(url.scheme() == "https", request, status, response) {
        return Some(Partition::Shared);
    }
    let own = storable(&Method::GET, request, status, response, Scope::Private);
    own.is_ok().then_some(Partition::User(user))
}

/// Request fields that a held answer stays bound to, whatever its `Vary` names, of those in which it was asked for or is
/// asked for now. A page that asks with another `Origin` may be given other permissions (CORS).
fn bound_to(partition: Partition, fields: &HeaderMap) -> Vec<HeaderName> {
    match partition {
        Partition::Shared => vec![header::ORIGIN],
        Partition::User(_) => PRIVATE_TO.iter().chain(unfamiliar(fields)).cloned().collect(),
    }
}

/// Whether what is held came for a request with the same values in the fields that it is bound to.
pub(crate) fn is_bound_alike(partition: Partition, head: &Stored, asked: &HeaderMap) -> bool {
    if partition == Partition::Shared {
        return head.is_for_origin_of(asked);
    }
    let came_for = &head.nominated;
    let mut names = [came_for, asked].into_iter().flat_map(|fields| bound_to(partition, fields));
    names.all(|name| came_for.get_all(&name).iter().eq(asked.get_all(&name).iter()))
}

/// Request fields that a held answer depends on; `None` when nothing can be asked in the same words.
pub(crate) fn depends_on(partition: Partition, head: &Stored) -> Option<Vec<HeaderName>> {
    let mut names = bound_to(partition, &head.nominated);
    if partition == Partition::Shared && !head.is_bound_to_origin() {
        names.clear();
    }
    if head.is_bound_to_cookies() && !names.contains(&header::COOKIE) {
        names.push(header::COOKIE);
    }
    for value in head.fields.get_all(header::VARY) {
        for name in value.to_str().ok()?.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            // `*` is no name: such a response answers nothing.
            names.push(name.parse().ok().filter(|_| name != "*")?);
        }
    }
    Some(names)
}

/// The head to keep in `partition`, with what it stays bound to.
pub(crate) fn to_store(
    partition: Partition,
    request: &HeaderMap,
    head: &ResponseHead,
    requested_at: SystemTime,
) -> Stored {
    let mut stored = Stored::new(request, head.status, &head.fields, requested_at, SystemTime::now());
    for name in bound_to(partition, request) {
        stored.nominated.remove(&name);
        for value in request.get_all(&name) {
            stored.nominated.append(name.clone(), value.clone());
        }
    }
    stored.kept_by(partition.scope())
}
