//! The life of one request at the remote: looked up, asked across the hop if need be, and the answer streamed to
//! the client as it comes. When the carrier is lost under it, it goes on by asking again and comparing what the
//! client already has.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use bytes::Bytes;
use farhop_events::{AnsweredFrom, Crossing, Event, ExchangeId, Side};
use farhop_freshness::{Handling, is_error};
use farhop_front::{Departure, Head, RequestBody, Responder, ResponseBody};
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Resume;
use farhop_store::{Broken, Piece, Reader};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use crate::Remote;
use crate::answers::{PROMISED, Trouble, forward, tell_handling};
use crate::ask::{Asked, Asking, NotAnswered, Progress};
use crate::auth::Pass;
use crate::course::Course;
use crate::held::{self, Confirmed, HeldAnswer, Stale};
use crate::lookup::{Found, look_up};
use crate::portal::Given;
use crate::request::Fetch;
use crate::revalidate;
use crate::section::Section;
use crate::under_way::UnderWay;
use crate::users::User;
use crate::websocket::Switched;

/// What is known of an exchange from its beginning.
pub(crate) struct Exchange {
    pub(crate) id: ExchangeId,
    pub(crate) user: User,
    /// By what the client came in: what it holds open ends when that is good no more.
    pub(crate) pass: Pass,
    /// Where the user is.
    pub(crate) client: IpAddr,
    /// Where the client's connection led, if it was caught.
    pub(crate) caught_at: Option<IpAddr>,
    pub(crate) fetch: Arc<Fetch>,
    pub(crate) started: Instant,
    /// Body bytes taken from the client.
    pub(crate) uploaded: Arc<AtomicU64>,
    pub(crate) course: Arc<Course>,
}

/// What has been delivered of an answer.
struct Delivery {
    from: AnsweredFrom,
    status: StatusCode,
    bytes: u64,
    prefix: blake3::Hasher,
    first_byte_ms: u64,
    asked_again: bool,
    given: Given,
}

impl Exchange {
    /// Answers the request.
    pub(crate) async fn answer(mut self, remote: Arc<Remote>, body: RequestBody, mut responder: Responder) {
        let _under_way = UnderWay::begin(&remote, &self);
        let found = tokio::select! {
            found = look_up(&remote, &self) => found,
            () = reset(&responder) => return Answer::ClientGone.finish(self, &remote, responder).await,
        };
        match found {
            Found::Held { answer, doubtful } => {
                if doubtful {
                    revalidate::begin(&remote, &self, answer.held.clone());
                }
                if let Err((exchange, responder)) = answer.deliver(self, &remote, responder).await {
                    exchange.ask_after_all(remote, body, responder).await;
                }
            }
            Found::Unchanged { mut head, early } => {
                tell_handling(&mut head, PROMISED);
                self.deliver_empty(&remote, responder, &head, from_promise(early)).await
            }
            Found::Promised { head, body: promised, early } => {
                let from = from_promise(early);
                let mut head = (*head).clone();
                tell_handling(&mut head, PROMISED);
                match promised.reader().map(Section::whole) {
                    Some(reader) => self.deliver(&remote, responder, &head, reader, from).await,
                    None => self.ask_after_all(remote, body, responder).await,
                }
            }
            Found::Unsatisfiable => {
                let detail = "only a stored answer was asked for, and none is held";
                let trouble =
                    Trouble::new(StatusCode::GATEWAY_TIMEOUT, Side::User, "http_request_denied", detail);
                self.fail(&remote, responder, trouble).await;
            }
            Found::Ask { why, field, stale } => {
                let mut answer = self.ask(&remote, why, field, stale, Some(body), &mut responder).await;
                if let Answer::Trouble(trouble) = &answer
                    && self.is_strange(&remote, trouble)
                {
                    answer =
                        self.ask(&remote, Crossing::Undiscovered, None, None, None, &mut responder).await;
                }
                answer.finish(self, &remote, responder).await;
            }
        }
    }

    /// Where ground did not know the host of late, the address that the client's connection led to may answer.
    pub(crate) fn heed_strange(&mut self, remote: &Remote) {
        if let (Some(at), Some(host)) = (self.caught_at, self.fetch.url.host_str())
            && remote.strange().is(host, Instant::now())
        {
            self.fetch = Arc::new(self.fetch.or_at(at));
        }
    }

    /// Whether it is worth asking again, at the address that the client's connection led to, since ground does not know the host.
    /// What may not be said twice is said so the next time.
    fn is_strange(&mut self, remote: &Remote, trouble: &Trouble) -> bool {
        let is_new = self.fetch.head.sent_to().is_none() && trouble.token == "dns_error";
        let Some(host) = self.fetch.url.host_str().filter(|_| is_new && self.caught_at.is_some()) else {
            return false;
        };
        remote.strange().note(host, Instant::now());
        self.heed_strange(remote);
        self.fetch.is_repeatable() && !self.fetch.head.upgrades()
    }

    /// What would have answered outgrew the store, or was given up, between the look and the grasp.
    async fn ask_after_all(self, remote: Arc<Remote>, body: RequestBody, mut responder: Responder) {
        let answer =
            self.ask(&remote, Crossing::PromiseWithdrawn, None, None, Some(body), &mut responder).await;
        answer.finish(self, &remote, responder).await;
    }

    /// Asks until there is an answer, or none can come.
    async fn ask(
        &self,
        remote: &Arc<Remote>,
        why: Crossing,
        field: Option<String>,
        stale: Option<Stale>,
        body: Option<RequestBody>,
        responder: &mut Responder,
    ) -> Answer {
        self.crosses(remote, why, field);
        let mut head = self.fetch.head.clone();
        let mut validates = stale.as_ref().filter(|stale| stale.make_conditional(&mut head));
        let requested_at = SystemTime::now();
        let mut asking = Asking::new(remote, self, head);
        // What a client says after it has asked for another protocol is not a body.
        if let Some(body) = body.filter(|_| !self.fetch.head.upgrades()) {
            asking.upload(body);
        }
        let stands_in = stale.as_ref().map(|stale| stale.held.clone());
        let mut instead = stands_in.and_then(|held| HeldAnswer::to(&self.fetch, held, AnsweredFrom::Stale));
        let on_error = instead.is_some() && stale.as_ref().is_some_and(Stale::stands_in_for_errors);
        if on_error {
            asking.keep_no_error();
        }
        loop {
            let progress = tokio::select! {
                progress = asking.progress() => progress,
                // A client that merely closed its sending side may still read.
                () = reset(responder) => return Answer::ClientGone,
                () = needed(remote, stale.as_ref().filter(|_| instead.is_some())) => {
                    if let Some(answer) = instead.take() {
                        return Answer::Held(answer);
                    }
                    continue;
                }
            };
            match progress {
                Ok(Progress::Informed(head)) => {
                    // A client that has gone is noticed where its answer is written.
                    let _ = responder.informational(Head { status: head.status, fields: head.fields }).await;
                }
                Ok(Progress::Asked(asked)) if asked.head.status == StatusCode::NOT_MODIFIED => {
                    let Some(stale) = validates else { return Answer::Asked(asked, why) };
                    let (user, held) = (self.user.id, &stale.held);
                    match held::confirm(remote, user, &self.fetch, held, &asked.head, requested_at).await {
                        Confirmed::Held(held) => {
                            let answer = HeldAnswer::to(&self.fetch, held, AnsweredFrom::Validated);
                            let status = Some(asked.head.status);
                            return match answer {
                                Some(answer) => Answer::Held(answer.after(why, status)),
                                None => Answer::Asked(asked, why),
                            };
                        }
                        Confirmed::Client => return Answer::Asked(asked, why),
                        // The 304 is about something else: the client's own request is needed after all.
                        Confirmed::Neither => {
                            validates = None;
                            asking = Asking::new(remote, self, self.fetch.head.clone());
                        }
                    }
                }
                Ok(Progress::Asked(asked)) if on_error && is_error(asked.head.status) => {
                    let status = Some(asked.head.status);
                    return match instead {
                        Some(answer) => Answer::Held(answer.after(why, status)),
                        None => Answer::Asked(asked, why),
                    };
                }
                Ok(Progress::Asked(asked)) => return Answer::Asked(asked, why),
                Ok(Progress::Switched(switched)) => return Answer::Switched(switched),
                Err(NotAnswered::Trouble(trouble)) => {
                    let stands_in = stale.as_ref().is_some_and(|stale| stale.stands_in_for(&trouble));
                    let answer =
                        instead.filter(|_| stands_in).map(|answer| Answer::Held(answer.after(why, None)));
                    return answer.unwrap_or(Answer::Trouble(trouble));
                }
                Err(NotAnswered::Lost) if self.fetch.is_repeatable() => {}
                Err(NotAnswered::Lost) => return Answer::Trouble(Trouble::lost()),
            }
        }
    }

    pub(crate) fn crosses(&self, remote: &Remote, why: Crossing, field: Option<String>) {
        let request = &self.fetch.head.fields;
        remote.desk().books().crossed(self.id, &self.user, request, (why, field), remote.now());
    }

    pub(crate) async fn deliver_empty(
        self,
        remote: &Arc<Remote>,
        responder: Responder,
        head: &ResponseHead,
        from: AnsweredFrom,
    ) {
        let mut delivery = Delivery::new(from, head.status);
        delivery.first_byte_ms = self.elapsed_ms();
        let written = responder.start(client_head(head), Bytes::new()).await;
        let result = match written {
            Ok(body) => body.finish(None).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => self.answered(remote, &delivery),
            Err(error) => self.client_gone(remote, &delivery, &error.to_string()),
        }
    }

    /// Streams a body to the client as it comes, and goes on after a lost carrier.
    pub(crate) async fn deliver(
        self,
        remote: &Arc<Remote>,
        responder: Responder,
        head: &ResponseHead,
        mut reader: Section,
        from: AnsweredFrom,
    ) {
        let mut delivery = Delivery::new(from, head.status);
        delivery.given = Given::with(&head.fields);
        // What is here already goes out with the head, in one packet if it fits.
        let first = match reader.take() {
            Some(Ok(Piece::Data(bytes))) => bytes,
            Some(Ok(Piece::End(trailers))) => {
                // An empty body, complete: its end is read again below from nothing.
                return self.deliver_whole(remote, responder, head, trailers, delivery).await;
            }
            _ => Bytes::new(),
        };
        delivery.first_byte_ms = self.elapsed_ms();
        delivery.take(&first);
        let mut out = match responder.start(client_head(head), first).await {
            Ok(out) => out,
            Err(error) => return self.client_gone(remote, &delivery, &error.to_string()),
        };
        loop {
            let piece = tokio::select! {
                piece = reader.next() => piece,
                () = reset_body(&out) => return self.client_gone(remote, &delivery, "the client closed the connection"),
            };
            match piece {
                Ok(Piece::Data(bytes)) => {
                    delivery.take(&bytes);
                    if let Err(error) = out.send(bytes).await {
                        return self.client_gone(remote, &delivery, &error.to_string());
                    }
                }
                Ok(Piece::End(trailers)) => {
                    delivery.given.crossed += reader.take_crossed();
                    return match out.finish(trailers.as_ref()).await {
                        Ok(()) => self.answered(remote, &delivery),
                        Err(error) => self.client_gone(remote, &delivery, &error.to_string()),
                    };
                }
                Err(broken) if delivery.may_go_on(&broken) => {
                    delivery.given.crossed += reader.take_crossed();
                    match self.resume(remote, head, &delivery, &out).await {
                        Ok(rest) => reader = Section::whole(rest),
                        Err(why) => {
                            remote.bus().emit(Event::Aborted { exchange: self.id, why: why.clone() });
                            out.abort();
                            return self.broken(remote, &delivery, Side::Link, why);
                        }
                    }
                }
                Err(broken) => {
                    out.abort();
                    return self.broken(remote, &delivery, Side::Origin, broken.to_string());
                }
            }
        }
    }

    async fn deliver_whole(
        self,
        remote: &Arc<Remote>,
        responder: Responder,
        head: &ResponseHead,
        trailers: Option<HeaderMap>,
        mut delivery: Delivery,
    ) {
        delivery.first_byte_ms = self.elapsed_ms();
        let written = match responder.start(client_head(head), Bytes::new()).await {
            Ok(out) => out.finish(trailers.as_ref()).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => self.answered(remote, &delivery),
            Err(error) => self.client_gone(remote, &delivery, &error.to_string()),
        }
    }

    /// Asks for the rest of a body whose carrier was lost. The part that the client has is compared by hash at ground;
    /// the heads are compared here, since the client has the old one.
    async fn resume(
        &self,
        remote: &Arc<Remote>,
        before: &ResponseHead,
        delivery: &Delivery,
        out: &ResponseBody,
    ) -> Result<Reader, String> {
        if self.fetch.head.method != Method::GET || self.fetch.has_body {
            return Err("a request that may change something is not sent twice".into());
        }
        let resume = Resume { offset: delivery.bytes, prefix: *delivery.prefix.finalize().as_bytes() };
        loop {
            self.crosses(remote, Crossing::Resumed, None);
            let mut asking = Asking::new(remote, self, self.fetch.head.clone());
            let asked = tokio::select! {
                asked = asking.resume(resume) => asked,
                () = reset_body(out) => return Err("the client closed the connection".into()),
            };
            match asked {
                Ok(Asked { head, body, resumed, .. }) => {
                    if resumed != (resume.offset > 0).then_some(resume.offset) || !is_same(before, &head) {
                        return Err("the origin's answer has changed".into());
                    }
                    remote.bus().emit(Event::Resumed { exchange: self.id, skipped_bytes: resume.offset });
                    return body.reader().ok_or_else(|| "the rest is gone".into());
                }
                Err(NotAnswered::Lost) => {}
                Err(NotAnswered::Trouble(trouble)) => return Err(trouble.detail),
            }
        }
    }

    /// Carries a WebSocket to its end.
    async fn converse(self, remote: &Arc<Remote>, responder: Responder, switched: Switched) {
        let mut delivery = Delivery::new(AnsweredFrom::Asked, StatusCode::SWITCHING_PROTOCOLS);
        delivery.first_byte_ms = self.elapsed_ms();
        match switched.carry(remote, &self.pass, responder).await {
            Some(carried) => {
                delivery.bytes = carried.down;
                delivery.given.crossed = carried.down;
                self.uploaded.store(carried.up, Relaxed);
                self.answered(remote, &delivery);
            }
            None => self.client_gone(remote, &delivery, "the client closed the connection"),
        }
    }

    pub(crate) async fn fail(self, remote: &Arc<Remote>, mut responder: Responder, mut trouble: Trouble) {
        self.learn_from(remote, &mut responder, &mut trouble);
        let (head, page) = trouble.page(self.id);
        // The client may be gone too; the event says what failed first.
        let _ = responder.respond(head, page).await;
        remote.bus().emit(Event::Failed {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.fetch.head.method.to_string(),
            url: remote.bus().url(self.fetch.url.as_str()),
            side: trouble.side,
            error: trouble.detail,
            status: Some(trouble.status.as_u16()),
            bytes: 0,
        });
    }

    fn broken(&self, remote: &Remote, delivery: &Delivery, side: Side, error: String) {
        remote.bus().emit(Event::Failed {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.fetch.head.method.to_string(),
            url: remote.bus().url(self.fetch.url.as_str()),
            side,
            error,
            status: None,
            bytes: delivery.bytes,
        });
    }

    fn client_gone(&self, remote: &Remote, delivery: &Delivery, error: &str) {
        self.broken(remote, delivery, Side::User, error.to_owned());
    }

    fn answered(&self, remote: &Remote, delivery: &Delivery) {
        remote.ledger().answered(&self.user, delivery.from, delivery.bytes, &delivery.given);
        remote.bus().emit(Event::Answered {
            exchange: self.id,
            user: self.user.name.to_string(),
            method: self.fetch.head.method.to_string(),
            url: remote.bus().url(self.fetch.url.as_str()),
            status: delivery.status.as_u16(),
            from: delivery.from,
            bytes: delivery.bytes,
            upload_bytes: self.uploaded.load(Relaxed),
            first_byte_ms: delivery.first_byte_ms,
            total_ms: self.elapsed_ms(),
        });
    }

    fn elapsed_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// Completes when what is held is to answer instead of waiting for the link any longer.
async fn needed(remote: &Remote, stale: Option<&Stale>) {
    match stale {
        Some(stale) => stale.until_needed(remote).await,
        None => std::future::pending().await,
    }
}

fn from_promise(early: bool) -> AnsweredFrom {
    if early { AnsweredFrom::PromiseEarly } else { AnsweredFrom::PromiseOnTheWay }
}

/// What asking came to.
enum Answer {
    Asked(Asked, Crossing),
    Held(HeldAnswer),
    Switched(Switched),
    Trouble(Trouble),
    ClientGone,
}

impl Answer {
    async fn finish(self, exchange: Exchange, remote: &Arc<Remote>, responder: Responder) {
        match self {
            Answer::Asked(Asked { mut head, body, stored, .. }, why) => match body.reader() {
                Some(reader) => {
                    drop(body);
                    let why = forward(why);
                    let handling = Handling::Forwarded { why, status: None, stored, collapsed: false };
                    tell_handling(&mut head, handling);
                    let reader = Section::whole(reader);
                    exchange.deliver(remote, responder, &head, reader, AnsweredFrom::Asked).await;
                }
                None => drop(responder),
            },
            Answer::Held(answer) => {
                if let Err((_, responder)) = answer.deliver(exchange, remote, responder).await {
                    drop(responder);
                }
            }
            Answer::Switched(switched) => exchange.converse(remote, responder, switched).await,
            Answer::Trouble(trouble) => exchange.fail(remote, responder, trouble).await,
            Answer::ClientGone => {
                let delivery = Delivery::new(AnsweredFrom::Remote, StatusCode::OK);
                exchange.client_gone(remote, &delivery, "the client closed the connection");
            }
        }
    }
}

impl Delivery {
    fn new(from: AnsweredFrom, status: StatusCode) -> Self {
        Delivery {
            from,
            status,
            bytes: 0,
            prefix: blake3::Hasher::new(),
            first_byte_ms: 0,
            asked_again: false,
            given: Given::default(),
        }
    }

    /// A lost carrier comes back. A push that ground could not finish is asked for in the ordinary way, once.
    fn may_go_on(&mut self, broken: &Broken) -> bool {
        let promised = matches!(self.from, AnsweredFrom::PromiseEarly | AnsweredFrom::PromiseOnTheWay);
        match broken {
            Broken::Lost => true,
            Broken::Failed(_) | Broken::GivenUp => {
                promised && !std::mem::replace(&mut self.asked_again, true)
            }
        }
    }

    fn take(&mut self, bytes: &Bytes) {
        self.prefix.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

/// Completes when the client's connection breaks. A client that only closed its sending side may still read.
async fn reset(responder: &Responder) {
    if responder.departure().await == Departure::EndOfInput {
        std::future::pending::<()>().await;
    }
}

async fn reset_body(body: &ResponseBody) {
    if body.departure().await == Departure::EndOfInput {
        std::future::pending::<()>().await;
    }
}

fn client_head(head: &ResponseHead) -> Head {
    Head { status: head.status, fields: head.fields.clone() }
}

/// Whether a body that belongs to `again` may follow the head `before`. A length that only one of them tells is no
/// difference: a text may be coded in one go once and be streamed the next time.
fn is_same(before: &ResponseHead, again: &ResponseHead) -> bool {
    const DESCRIBE: [HeaderName; 5] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_RANGE, ETAG, LAST_MODIFIED];
    let values = |head: &ResponseHead, name: &HeaderName| -> Vec<HeaderValue> {
        head.fields.get_all(name).iter().cloned().collect()
    };
    let length = |head: &ResponseHead| head.fields.get(CONTENT_LENGTH).cloned();
    let lengths_agree = match (length(before), length(again)) {
        (Some(before), Some(again)) => before == again,
        _ => true,
    };
    before.status == again.status
        && lengths_agree
        && DESCRIBE.iter().all(|name| values(before, name) == values(again, name))
}
