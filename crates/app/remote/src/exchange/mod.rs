//! The life of one request at the remote: looked up, asked across the hop if need be, and answered. How an answer gets to
//! the client is [`delivery`]'s, what is told of it in the end [`told`]'s.

mod delivery;
mod told;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use farhop_bundle::Eagerness;
use farhop_events::{AnsweredFrom, Crossing, Event, ExchangeId, Side};
use farhop_freshness::{Handling, is_error};
use farhop_front::{Head, Protocol, RequestBody, Responder};
use http::StatusCode;
use tokio::time::Instant;

use crate::Remote;
use crate::answers::{PROMISED, Trouble, forward, tell_handling};
use crate::ask::{Asked, Asking, NotAnswered, Progress};
use crate::auth::Pass;
use crate::collapse::{Leading, Outcome, look_up_together};
use crate::completing::Completed;
use crate::course::Course;
use crate::held::{self, Confirmed, HeldAnswer, Stale};
use crate::kept::CutShort;
use crate::lookup::{Found, Meanwhile};
use crate::request::Fetch;
use crate::revalidate;
use crate::section::Section;
use crate::under_way::UnderWay;
use crate::users::User;
use crate::websocket::Switched;
use delivery::{Delivery, from_promise};

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
    /// How much ground is to fetch beside it.
    pub(crate) eagerness: Eagerness,
    /// What came of its answer before a carrier was lost.
    pub(crate) cut_short: CutShort,
}

impl Exchange {
    /// Answers the request.
    pub(crate) async fn answer(mut self, remote: Arc<Remote>, body: RequestBody, mut responder: Responder) {
        let (_under_way, eagerness) = UnderWay::begin(&remote, &self);
        self.eagerness = eagerness;
        let (found, leading) = tokio::select! {
            // What is held is found at once, without a look at the client.
            biased;
            found = look_up_together(&remote, &self) => found,
            _ = responder.departure() => return Answer::ClientGone.finish(self, &remote, responder).await,
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
            Found::Failed(trouble) => self.fail(&remote, responder, trouble).await,
            Found::Unsatisfiable => {
                let detail = "only a stored answer was asked for, and none is held";
                let trouble =
                    Trouble::new(StatusCode::GATEWAY_TIMEOUT, Side::User, "http_request_denied", detail);
                self.fail(&remote, responder, trouble).await;
            }
            Found::Ask { why, field, held } => {
                let asker = Asker { responder: &mut responder, leading: leading.as_ref() };
                let mut answer = self.ask(&remote, why, field, held, Some(body), asker).await;
                if let Answer::Trouble(trouble) = &answer
                    && self.is_strange(&remote, trouble)
                {
                    let asker = Asker { responder: &mut responder, leading: leading.as_ref() };
                    let (why, held) = (Crossing::Undiscovered, Meanwhile::default());
                    answer = self.ask(&remote, why, None, held, None, asker).await;
                }
                if let Some(leading) = leading {
                    leading.settle(answer.outcome());
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
        let asker = Asker::alone(&mut responder);
        let (why, held) = (Crossing::PromiseWithdrawn, Meanwhile::default());
        let answer = self.ask(&remote, why, None, held, Some(body), asker).await;
        answer.finish(self, &remote, responder).await;
    }

    /// Asks until there is an answer, or none can come.
    async fn ask(
        &self,
        remote: &Arc<Remote>,
        why: Crossing,
        field: Option<String>,
        held: Meanwhile,
        body: Option<RequestBody>,
        asker: Asker<'_>,
    ) -> Answer {
        let Meanwhile { stale, beginning } = held;
        self.crosses(remote, why, field);
        // What differs from what is held is less than what differs from what the client has.
        let is_held = stale.is_some() || beginning.is_some();
        let mut head = if is_held { self.fetch.head.clone() } else { self.fetch.with_dictionary() };
        let mut beginning = beginning.filter(|beginning| beginning.ask_for_rest(&mut head));
        let mut validates = stale.as_ref().filter(|stale| stale.make_conditional(&mut head));
        let requested_at = SystemTime::now();
        let mut asking = Asking::new(remote, self, head);
        // What a client says after it has asked for another protocol is not a body.
        if let Some(body) = body.filter(|_| !self.fetch.head.upgrades()) {
            asking.upload(body);
        }
        let stands_in = stale.as_ref();
        let mut instead = stands_in.and_then(|stale| stale.answer(&self.fetch, AnsweredFrom::Stale));
        let on_error = instead.is_some() && stale.as_ref().is_some_and(Stale::stands_in_for_errors);
        if on_error {
            asking.keep_no_error();
        }
        loop {
            let progress = tokio::select! {
                progress = asking.progress() => progress,
                () = asker.departure() => return Answer::ClientGone,
                () = needed(remote, stale.as_ref().filter(|_| instead.is_some())) => {
                    if let Some(answer) = instead.take() {
                        return Answer::Held(answer);
                    }
                    continue;
                }
            };
            if let Ok(Progress::Asked(_) | Progress::Switched(_)) = &progress {
                self.heard_from(remote);
            }
            match progress {
                Ok(Progress::Informed(mut head)) => {
                    self.keep_here(&mut head.fields);
                    // A client that has gone is noticed where its answer is written.
                    let _ = asker
                        .responder
                        .informational(Head { status: head.status, fields: head.fields })
                        .await;
                }
                Ok(Progress::Asked(asked)) if asked.head.status == StatusCode::NOT_MODIFIED => {
                    let Some(stale) = validates else { return Answer::Asked(asked, why) };
                    let (user, held) = (self.user.id, &stale.held);
                    match held::confirm(remote, user, &self.fetch, held, &asked.head, requested_at).await {
                        Confirmed::Held(held) => {
                            let answer = stale.answer_as(held, &self.fetch, AnsweredFrom::Validated);
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
                            instead = instead.filter(|answer| !answer.is_contradicted_by(&asked.head));
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
                Ok(Progress::Asked(asked)) => {
                    if let Some(stale) = validates {
                        held::give_up(remote, &self.fetch.url, &stale.held, &asked.head).await;
                    }
                    let Some(beginning) = beginning.take() else { return Answer::Asked(asked, why) };
                    let is_refused = beginning.is_refused_by(&asked.head);
                    match beginning.complete(&self.fetch, asked, requested_at) {
                        Ok(completed) => return Answer::Completed(completed, why),
                        // It has changed: the client's own request is needed after all.
                        Err(_) if is_refused => {
                            asking = Asking::new(remote, self, self.fetch.head.clone());
                        }
                        Err(asked) => return Answer::Asked(*asked, why),
                    }
                }
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
        remote.holdouts().crosses(self.id);
        remote.desk().books().crossed(self.id, &self.user, request, (why, field), remote.now());
    }

    /// Carries a WebSocket to its end.
    async fn converse(self, remote: &Arc<Remote>, responder: Responder, switched: Switched) {
        let mut delivery = Delivery::new(AnsweredFrom::Asked, StatusCode::SWITCHING_PROTOCOLS);
        delivery.first_byte_ms = self.elapsed_ms();
        let within_http2 = responder.protocol() == Protocol::Http2;
        remote.bus().emit(Event::WebsocketOpened { exchange: self.id, within_http2 });
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

    fn elapsed_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// Who waits for what is asked for.
struct Asker<'a> {
    responder: &'a mut Responder,
    /// Lets others wait for it as well.
    leading: Option<&'a Leading>,
}

impl<'a> Asker<'a> {
    fn alone(responder: &'a mut Responder) -> Self {
        Asker { responder, leading: None }
    }

    /// Completes when the client has left, and nobody else waits.
    async fn departure(&self) {
        // One that merely closed its sending side may still read: it is given the grace of the settings.
        self.responder.departure().await;
        if let Some(leading) = self.leading {
            leading.unfollowed().await;
        }
    }
}

/// Completes when what is held is to answer instead of waiting for the link any longer.
async fn needed(remote: &Remote, stale: Option<&Stale>) {
    match stale {
        Some(stale) => stale.until_needed(remote).await,
        None => std::future::pending().await,
    }
}

/// What asking came to.
enum Answer {
    Asked(Asked, Crossing),
    Held(HeldAnswer),
    Completed(Completed, Crossing),
    Switched(Switched),
    Trouble(Trouble),
    ClientGone,
}

impl Answer {
    /// What others have of it who wait for it.
    fn outcome(&self) -> Outcome {
        match self {
            Answer::Asked(asked, _) => asked.outcome,
            Answer::Held(answer) => answer.outcome(),
            Answer::Completed(..) | Answer::Switched(_) | Answer::Trouble(_) | Answer::ClientGone => {
                Outcome::Unknown
            }
        }
    }

    async fn finish(self, exchange: Exchange, remote: &Arc<Remote>, responder: Responder) {
        match self {
            Answer::Asked(Asked { mut head, reader, stored, .. }, why) => {
                let why = forward(why);
                let handling = Handling::Forwarded { why, status: None, stored, collapsed: false };
                tell_handling(&mut head, handling);
                let reader = Section::whole(reader);
                exchange.deliver(remote, responder, &head, reader, AnsweredFrom::Asked).await;
            }
            Answer::Held(answer) => {
                if let Err((exchange, mut responder)) = answer.deliver(exchange, remote, responder).await {
                    // What is held cannot be read any more: the origin's own answer is needed, which nothing held stands in for.
                    let why = Crossing::PromiseWithdrawn;
                    let asker = Asker::alone(&mut responder);
                    let answer = exchange.ask(remote, why, None, Meanwhile::default(), None, asker).await;
                    Box::pin(answer.finish(exchange, remote, responder)).await;
                }
            }
            Answer::Completed(Completed { mut head, body, stored }, why) => {
                let status = Some(StatusCode::PARTIAL_CONTENT).filter(|status| *status != head.status);
                let (why, status) = (forward(why), status.map(|status| status.as_u16()));
                tell_handling(&mut head, Handling::Forwarded { why, status, stored, collapsed: false });
                exchange.deliver(remote, responder, &head, body, AnsweredFrom::Asked).await;
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
