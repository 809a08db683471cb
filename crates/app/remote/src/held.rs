//! Answers from what is held: at once, once the origin has confirmed it, or instead of what asking came to.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use farhop_bundle::opens_page;
use farhop_events::{AnsweredFrom, Crossing, Side};
use farhop_freshness::{Fallback, Handling, Part, Reply, Stored, Validated, Validation};
use farhop_front::Responder;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_store::{Held, Partition};
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::Remote;
use crate::answers::{PROMISED, Trouble, forward, from_repository, tell_handling};
use crate::exchange::Exchange;
use crate::lookup::{NO_ENTRY, is_bound_alike, partition_for, reply};
use crate::opened;
use crate::parts::Renewal;
use crate::request::Fetch;
use crate::section::Section;
use crate::validating::is_document;

/// What is held and must not be sent as it is, beside a request that crosses.
#[derive(Debug)]
pub(crate) struct Stale {
    pub(crate) held: Held,
    /// Which bytes that is, where it is not all.
    pub(crate) part: Option<Part>,
    /// A 304 would make it fresh again.
    pub(crate) validates: bool,
    /// When it is sent all the same.
    pub(crate) fallback: Fallback,
}

impl Stale {
    /// Adds to a request the conditions under which a 304 confirms what is held; `false` if none will.
    pub(crate) fn make_conditional(&self, head: &mut RequestHead) -> bool {
        self.validates && self.held.head.make_conditional(&mut head.fields)
    }

    /// How it answers this request once it may.
    pub(crate) fn answer(&self, fetch: &Fetch, from: AnsweredFrom) -> Option<HeldAnswer> {
        self.answer_as(self.held.clone(), fetch, from)
    }

    /// The same with another head.
    pub(crate) fn answer_as(&self, held: Held, fetch: &Fetch, from: AnsweredFrom) -> Option<HeldAnswer> {
        let Some(part) = &self.part else { return HeldAnswer::to(fetch, held, from) };
        match held.head.reply(&fetch.head.method, &fetch.head.fields, Some(part.complete)) {
            Reply::Part(asked, _) if !part.has(&asked) => None,
            reply @ (Reply::Part(..) | Reply::NotModified) => {
                Some(HeldAnswer::new(held, reply, from).of_part(part))
            }
            _ => None,
        }
    }

    /// Whether it answers in place of this.
    pub(crate) fn stands_in_for(&self, trouble: &Trouble) -> bool {
        // An origin that cannot prove who it is, or that the browser has to speak with itself, is no origin that failed: the user
        // is told, and not one byte of it is shown.
        if trouble.is_for_the_browser() {
            return false;
        }
        let least = match trouble.side {
            Side::Link => Fallback::Disconnected,
            // RFC 5861 §4: what would result in one of these statuses counts as an error.
            _ if farhop_freshness::is_error(trouble.status) => Fallback::Error,
            _ => return false,
        };
        self.fallback >= least
    }

    /// Whether it answers in place of an error of the origin.
    pub(crate) fn stands_in_for_errors(&self) -> bool {
        self.fallback == Fallback::Error
    }

    /// Completes when the link has been down for so long that this answers (RFC 9111 §4.2.4: the cache is disconnected).
    pub(crate) async fn until_needed(&self, remote: &Remote) {
        let patience = match self.fallback {
            Fallback::Never => std::future::pending().await,
            Fallback::Disconnected => remote.settings().timeouts.stale,
            // The origin has agreed.
            Fallback::Error => Duration::ZERO,
        };
        remote.uplink().down_for(patience).await;
    }
}

/// What is held, as it is sent to a client.
pub(crate) struct HeldAnswer {
    pub(crate) held: Held,
    /// Where in the whole what is held begins.
    pub(crate) begins: u64,
    pub(crate) reply: Reply,
    pub(crate) from: AnsweredFrom,
    /// What became of asking, where that was tried.
    pub(crate) asked: Option<Handling>,
}

impl HeldAnswer {
    /// What is held, in this form.
    pub(crate) fn new(held: Held, reply: Reply, from: AnsweredFrom) -> HeldAnswer {
        HeldAnswer { held, begins: 0, reply, from, asked: None }
    }

    /// The same of what is only these bytes of the whole.
    pub(crate) fn of_part(self, part: &Part) -> HeldAnswer {
        HeldAnswer { begins: part.range.start, ..self }
    }

    /// How what is held answers this request, if it does.
    pub(crate) fn to(fetch: &Fetch, held: Held, from: AnsweredFrom) -> Option<HeldAnswer> {
        let reply = reply(&fetch.head.method, &fetch.head.fields, &held)?;
        Some(HeldAnswer::new(held, reply, from))
    }

    /// The same after asking for this reason has come to this status.
    pub(crate) fn after(mut self, why: Crossing, status: Option<StatusCode>) -> HeldAnswer {
        let status = status.map(|status| status.as_u16());
        self.asked = Some(Handling::Forwarded { why: forward(why), status, stored: false, collapsed: false });
        self
    }

    /// It came for somebody else, for whom this request has waited.
    pub(crate) fn came_for_another(&mut self) {
        self.asked = Some(PROMISED);
    }

    /// Whether this request, or what was promised for it, has crossed.
    fn has_crossed(&self) -> bool {
        self.asked.is_some_and(|asked| asked != PROMISED)
    }

    /// Whether the origin has said since that there is something else now.
    pub(crate) fn is_contradicted_by(&self, told: &ResponseHead) -> bool {
        self.held.head.is_contradicted_by(told.status, &told.fields, SystemTime::now())
    }

    /// Whether a browser shows it as a page, or the same that it holds itself.
    fn shows_a_page(&self, fetch: &Fetch) -> bool {
        opens_page(&fetch.head.method, &fetch.head.fields)
            && is_document(&self.held)
            && self.from == AnsweredFrom::Repository
            && matches!(self.reply, Reply::Whole | Reply::NotModified)
    }

    /// The body as far as it is sent, if any is. `None` where it cannot be read any more.
    fn body(&self) -> Option<Option<Section>> {
        match &self.reply {
            Reply::Whole => self.held.body.reader().map(Section::whole).map(Some),
            Reply::Part(range, _) => {
                let range = range.start - self.begins..range.end - self.begins;
                self.held.body.reader().map(|reader| Some(Section::part(reader, &range)))
            }
            Reply::NotModified | Reply::Unsatisfiable(_) | Reply::ForOrigin => Some(None),
        }
    }

    /// Sends it; gives everything back where it cannot be read any more.
    pub(crate) async fn deliver(
        self,
        exchange: Exchange,
        remote: &Arc<Remote>,
        responder: Responder,
    ) -> Result<(), (Exchange, Responder)> {
        let is_whole = self.held.body.is_whole();
        let Some(mut body) = self.body() else { return Err((exchange, responder)) };
        if body.is_some() && self.held.body.is_broken() {
            return Err((exchange, responder));
        }
        // What is whole is here at once, or damaged on disk: as long as the client has nothing of it, the origin's own answer is
        // as good, whatever that is by now.
        if let Some(body) = body.as_mut().filter(|_| is_whole)
            && body.begin().await.is_err()
        {
            return Err((exchange, responder));
        }
        let validation = match self.from {
            AnsweredFrom::Validated => Validation::Done,
            _ => Validation::None,
        };
        let mut head = from_repository(&self.held.head, &self.reply, validation);
        let hit = || Handling::hit(&self.held.head, self.held.partition.scope(), SystemTime::now());
        tell_handling(&mut head, self.asked.unwrap_or_else(hit));
        if self.from == AnsweredFrom::Repository {
            remote.desk().used_from_repository(self.held.id, remote.now());
        }
        // What has crossed ground has seen.
        if !self.has_crossed() && self.held.id != NO_ENTRY {
            let (user, fetch) = (&exchange.user, &exchange.fetch);
            let page = remote.desk().page_of(exchange.id, user, &fetch.url, &fetch.head.fields);
            if page != exchange.id {
                remote.desk().answered_here(page, self.held.id, remote.now());
            } else if self.shows_a_page(fetch) && !remote.doubts().are_of(self.held.id, exchange.id) {
                opened::tell(remote, &exchange, &self.held);
            }
        }
        match body {
            Some(body) => exchange.deliver(remote, responder, &head, body, self.from).await,
            None => exchange.deliver_empty(remote, responder, &head, self.from).await,
        }
        Ok(())
    }
}

/// What a 304 to `fetch`, sent as `Stale::make_conditional` made it, says of what is held and of what the client holds.
pub(crate) enum Confirmed {
    /// What is held is right.
    Held(Held),
    /// What the client holds is right.
    Client,
    /// Neither can be said.
    Neither,
}

/// Takes a 304 in (RFC 9111 §4.3.4).
pub(crate) async fn confirm(
    remote: &Remote,
    user: u64,
    fetch: &Fetch,
    held: &Held,
    not_modified: &ResponseHead,
    requested_at: SystemTime,
) -> Confirmed {
    let (request, now) = (&fetch.head.fields, SystemTime::now());
    match held.head.validated_by(request, &not_modified.fields, requested_at, now) {
        Validated::Stored(fresh) => {
            // What it names was renewed when it was heard.
            if !held.head.is_named_by(&not_modified.fields) {
                let fresh = (*fresh).clone();
                match held.id {
                    NO_ENTRY => renew_parts(remote, user, &fetch.url, request, held.partition, |head| {
                        (head.nominated == held.head.nominated).then(|| fresh.clone())
                    }),
                    id => {
                        renew(remote, user, &fetch.url, request, id, held.partition, fresh).await;
                    }
                }
            }
            let held = Held { head: Arc::new(*fresh), ..held.clone() };
            Confirmed::Held(held)
        }
        Validated::Client => Confirmed::Client,
        Validated::Neither => Confirmed::Neither,
    }
}

/// A renewed head takes the place of the old one, unless it forbids to be kept there: then the entry goes, and this gives
/// `false`.
pub(crate) async fn renew(
    remote: &Remote,
    user: u64,
    url: &Url,
    request: &HeaderMap,
    id: u64,
    partition: Partition,
    fresh: Stored,
) -> bool {
    let may_stay = may_stay(user, url, request, partition, &fresh);
    if may_stay {
        remote.repository().freshen(id, fresh.kept_by(partition.scope())).await;
    } else {
        remote.repository().evict(id).await;
    }
    may_stay
}

/// The same of parts: `renewed` gives the head that takes the place of one, if any does.
fn renew_parts(
    remote: &Remote,
    user: u64,
    url: &Url,
    request: &HeaderMap,
    partition: Partition,
    renewed: impl Fn(&Stored) -> Option<Stored>,
) {
    remote.parts().renew(partition, url.as_str(), |head| match renewed(head) {
        None => Renewal::None,
        Some(fresh) if may_stay(user, url, request, partition, &fresh) => {
            Renewal::By(fresh.kept_by(partition.scope()).into())
        }
        Some(_) => Renewal::Forbidden,
    });
}

/// Whether what has this head may be kept in `partition`.
fn may_stay(user: u64, url: &Url, request: &HeaderMap, partition: Partition, head: &Stored) -> bool {
    let allowed = partition_for(user, url, request, head.status, &head.fields);
    allowed.is_some_and(|allowed| allowed == partition || allowed == Partition::Shared)
}

/// A 304 to `request`, sent at `requested_at`, has come: all that is held in either store, answers this request and has the
/// strong validator that it names is renewed, whichever of it was asked about (RFC 9111 §4.3.4), but for what `is_meant` leaves
/// out.
pub(crate) async fn renew_named(
    remote: &Remote,
    user: u64,
    (url, request): (&Url, &HeaderMap),
    not_modified: &HeaderMap,
    requested_at: SystemTime,
    is_meant: impl Fn(&Held) -> bool,
) {
    let renewed = |head: &Stored| {
        // What was asked for later knows better, but for what a clock has dated that was wrong.
        let now = SystemTime::now();
        let may_be_older = head.requested_at <= requested_at || head.requested_at > now;
        (may_be_older && head.is_named_by(not_modified)).then(|| {
            let mut fresh = head.clone();
            fresh.freshen(request, not_modified, requested_at, now);
            fresh
        })
    };
    for partition in [Partition::User(user), Partition::Shared] {
        for held in remote.repository().find(partition, url.as_str(), request).await {
            let is_whole = held.body.is_whole() && !held.body.is_broken();
            let may_be_meant = is_whole && is_bound_alike(partition, &held.head, request) && is_meant(&held);
            if let Some(fresh) = renewed(&held.head).filter(|_| may_be_meant) {
                renew(remote, user, url, request, held.id, partition, fresh).await;
            }
        }
        renew_parts(remote, user, url, request, partition, |head| {
            let may_be_meant = head.answers(request) && is_bound_alike(partition, head, request);
            renewed(head).filter(|_| may_be_meant)
        });
    }
}

/// What is held was asked about, and this is no 304: where it is a full response, what is held is not suitable any more, even
/// if nothing takes its place (RFC 9111 §4.3.3).
pub(crate) async fn give_up(remote: &Remote, url: &Url, held: &Held, answer: &ResponseHead) {
    if answer.status.is_success() && answer.status != StatusCode::PARTIAL_CONTENT {
        match held.id {
            NO_ENTRY => remote
                .parts()
                .forget_where(held.partition, url.as_str(), |head| head.nominated == held.head.nominated),
            id => remote.repository().evict(id).await,
        }
    }
}

/// The origin has answered a GET, asked for at `requested_at`: what is held of it and is of another representation goes, in
/// whichever store it is and however fresh (RFC 9111 §3.4, §4.3.3), and what a 304 names is renewed.
pub(crate) async fn heard(
    remote: &Remote,
    user: u64,
    (url, request): (&Url, &HeaderMap),
    head: &ResponseHead,
    requested_at: SystemTime,
) {
    let now = SystemTime::now();
    for partition in [Partition::User(user), Partition::Shared] {
        let is_wrong = |held: &Stored| {
            // What was asked for later knows better, but for what a clock has dated that was wrong.
            (held.requested_at <= requested_at || held.requested_at > now)
                && held.answers(request)
                && is_bound_alike(partition, held, request)
                && held.is_contradicted_by(head.status, &head.fields, now)
        };
        for held in remote.repository().find(partition, url.as_str(), request).await {
            if is_wrong(&held.head) {
                remote.repository().evict(held.id).await;
            }
        }
        remote.parts().forget_where(partition, url.as_str(), is_wrong);
    }
    if head.status == StatusCode::NOT_MODIFIED {
        renew_named(remote, user, (url, request), &head.fields, requested_at, |_| true).await;
    }
}

/// A 200 to HEAD has come: what is held for a GET is renewed by it or, where it tells of something else, is stale and goes
/// (RFC 9111 §4.3.5).
pub(crate) async fn described(
    remote: &Remote,
    user: u64,
    fetch: &Fetch,
    head: &ResponseHead,
    requested_at: SystemTime,
) {
    debug_assert_eq!(fetch.head.method, Method::HEAD);
    // Parts are not worth comparing: HEAD is rare.
    remote.parts().forget(fetch.url.as_str());
    let request = &fetch.head.fields;
    for partition in [Partition::User(user), Partition::Shared] {
        for held in remote.repository().find(partition, fetch.url.as_str(), request).await {
            if !is_bound_alike(partition, &held.head, request) {
                continue;
            }
            let length = held.body.is_whole().then(|| held.body.written());
            if held.head.is_described_by(&head.fields, length) {
                let mut fresh = (*held.head).clone();
                fresh.freshen(request, &head.fields, requested_at, SystemTime::now());
                renew(remote, user, &fetch.url, request, held.id, partition, fresh).await;
            } else {
                remote.repository().evict(held.id).await;
            }
        }
    }
}
