//! Asks across the hop: sends the request and its body, takes informational heads and promises, and gives the head of
//! the answer with a body that fills as it comes. Knows nothing of clients but where 1xx heads go.

use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::Eagerness;
use farhop_events::Side;
use farhop_freshness::Part;
use farhop_front::RequestBody;
use farhop_htotp::frame::Resume;
use farhop_htotp::head::{RECEIVED, UNASKED, usual_version, version_name};
use farhop_htotp::session::Ask;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_store::Reader;
use farhop_transport::hop::{Receiver, Sender};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use crate::Remote;
use crate::answers::Trouble;
use crate::arriving::{self, Early};
use crate::bodies::{self, Decoding};
use crate::collapse::Outcome;
use crate::exchange::Exchange;
use crate::held;
use crate::kept::{Begun, Kept, Place};
use crate::lookup::{partition_for, to_store};
use crate::parts::Coming;
use crate::priority;
use crate::promising::Page;
use crate::stock;
use crate::uplink::Carrier;
use crate::upload::Uploading;
use crate::websocket::{self, Switched};

/// An answer that has begun.
pub(crate) struct Asked {
    pub(crate) head: ResponseHead,
    /// Of its body, from the beginning.
    pub(crate) reader: Reader,
    pub(crate) resumed: Option<u64>,
    /// It is held from now on.
    pub(crate) stored: bool,
    /// What that means for whoever waits for it.
    pub(crate) outcome: Outcome,
}

/// Why there is none.
pub(crate) enum NotAnswered {
    /// For a reason that the client is told.
    Trouble(Trouble),
    /// The carrier was lost: nobody knows what became of the request.
    Lost,
}

/// One request on its way.
pub(crate) struct Asking<'a> {
    remote: &'a Arc<Remote>,
    exchange: &'a Exchange,
    head: RequestHead,
    body: Option<RequestBody>,
    upload: Option<Uploading>,
    crossing: Option<Crossed>,
    keeps_no_error: bool,
    /// Since when it has waited for a carrier that was silent or has ended.
    waiting: Option<Instant>,
}

/// What there is of a request that has been sent.
struct Crossed {
    carrier: Carrier,
    /// The way up, where bytes may go both ways once another protocol is spoken.
    sender: Option<Sender>,
    receiver: Receiver,
    page: Page,
    /// Promises on its stream since the last informational head: what ground asks for because of the answer.
    promised: Vec<u64>,
    requested_at: SystemTime,
}

/// What comes of asking.
pub(crate) enum Progress {
    /// A 1xx head for the client.
    Informed(ResponseHead),
    /// The answer.
    Asked(Asked),
    /// Another protocol is spoken from here on, as was asked for.
    Switched(Switched),
}

impl<'a> Asking<'a> {
    pub(crate) fn new(remote: &'a Arc<Remote>, exchange: &'a Exchange, mut head: RequestHead) -> Self {
        if exchange.eagerness != Eagerness::All {
            head.fields.insert(UNASKED, HeaderValue::from_static(exchange.eagerness.as_str()));
        }
        let version = exchange.fetch.version;
        if version != usual_version(&head.scheme) {
            head.fields.insert(RECEIVED, HeaderValue::from_static(version_name(version)));
        }
        Asking {
            remote,
            exchange,
            head,
            body: None,
            upload: None,
            crossing: None,
            keeps_no_error: false,
            waiting: None,
        }
    }

    /// What is held answers in place of an error of the origin, and stays held.
    pub(crate) fn keep_no_error(&mut self) {
        self.keeps_no_error = true;
    }

    /// The request has this body.
    pub(crate) fn upload(&mut self, body: RequestBody) {
        self.body = Some(body);
    }

    /// Asks for the rest of a body; 1xx heads are of no use then.
    pub(crate) async fn resume(&mut self, resume: Resume) -> Result<Asked, NotAnswered> {
        self.send((resume.offset > 0).then_some(resume)).await?;
        loop {
            if let Progress::Asked(asked) = self.progress().await? {
                return Ok(asked);
            }
        }
    }

    /// The next thing that comes of asking. After [`NotAnswered::Lost`] it asks anew.
    pub(crate) async fn progress(&mut self) -> Result<Progress, NotAnswered> {
        let mut crossed = match self.crossing.take() {
            Some(crossed) => crossed,
            None => {
                self.send(None).await?;
                self.crossing.take().ok_or(NotAnswered::Lost)?
            }
        };
        let mut is_plain = false;
        loop {
            let early = tokio::select! {
                // What ground says to a request that breaks off says less than why it does.
                biased;
                trouble = broken(&mut self.upload) => return Err(NotAnswered::Trouble(trouble)),
                early = arriving::early(&mut crossed.receiver) => early,
            };
            match early {
                Early::Informed(head) => {
                    crossed.promised.clear();
                    self.crossing = Some(crossed);
                    return Ok(Progress::Informed(head));
                }
                Early::Promised(offer) => {
                    crossed.promised.push(offer.promise);
                    crossed.page.promised(offer).await;
                }
                Early::Validating(validating) => crossed.page.validating(validating).await,
                Early::Failed(failure) => return Err(NotAnswered::Trouble(Trouble::from_ground(&failure))),
                Early::Lost if crossed.carrier.hop.closed().is_none() => {
                    let detail = "the far end gave this exchange up";
                    let trouble =
                        Trouble::new(StatusCode::BAD_GATEWAY, Side::Ground, "proxy_internal_error", detail);
                    return Err(NotAnswered::Trouble(trouble));
                }
                Early::Lost => {
                    let hop = &crossed.carrier.hop;
                    self.waiting = hop.silent().borrow().or(hop.ended());
                    return Err(NotAnswered::Lost);
                }
                Early::Head { head, .. } if head.status == StatusCode::SWITCHING_PROTOCOLS => {
                    let Crossed { sender, receiver, .. } = crossed;
                    // The session lets 101 answer nothing else.
                    let sender = sender.ok_or(NotAnswered::Lost)?;
                    return Ok(Progress::Switched(Switched { head, sender, receiver }));
                }
                Early::Head { head, coding, resumed } => {
                    let (hop, user) = (&crossed.carrier.hop, self.exchange.user.id);
                    let Some(decoding) = bodies::decoding(self.remote, hop, user, coding).await else {
                        if !self.exchange.fetch.is_repeatable() {
                            return Err(NotAnswered::Lost);
                        }
                        if std::mem::replace(&mut is_plain, true) {
                            let detail = "the far end codes against what it was told is not here";
                            let error = "proxy_internal_error";
                            let trouble = Trouble::new(StatusCode::BAD_GATEWAY, Side::Ground, error, detail);
                            return Err(NotAnswered::Trouble(trouble));
                        }
                        // Two streams must not have one number.
                        drop(crossed);
                        self.send(Some(bodies::plainly())).await?;
                        crossed = self.crossing.take().ok_or(NotAnswered::Lost)?;
                        continue;
                    };
                    let resumed = resumed.filter(|offset| *offset > 0);
                    if let Some(mut unused) = crossed.sender.take() {
                        unused.finish(None);
                    }
                    let (reader, stored, outcome) = self.receive(crossed, &head, resumed, decoding).await;
                    return Ok(Progress::Asked(Asked { head, reader, resumed, stored, outcome }));
                }
            }
        }
    }

    /// Sends the request as soon as there is a carrier.
    async fn send(&mut self, resume: Option<Resume>) -> Result<(), NotAnswered> {
        let since = self.waiting.take().unwrap_or_else(Instant::now);
        let deadline = since + self.remote.outage();
        let upgrades = self.head.upgrades();
        let (uplink, is_repeatable) =
            (self.remote.uplink(), self.exchange.fetch.is_repeatable() && !upgrades);
        let carrier = match is_repeatable {
            true => uplink.early_carrier(deadline).await,
            false => uplink.carrier(deadline).await,
        };
        let Some(carrier) = carrier else {
            return Err(NotAnswered::Trouble(Trouble::no_carrier()));
        };
        let exchange = self.exchange.id.0;
        let first = if upgrades { websocket::PRIORITY } else { priority::of_request(&self.head.fields) };
        let port = if self.head.scheme == "https" { 443 } else { 80 };
        let ask = Ask {
            exchange,
            user: self.exchange.user.id,
            class: self.remote.rules().of_request(
                self.exchange.client,
                &self.head.authority,
                port,
                &self.head.fields,
            ),
            priority: self.exchange.course.asked(&carrier.hop, exchange, first),
            resume,
        };
        let requested_at = SystemTime::now();
        let (sender, receiver) = carrier.hop.ask(ask, &self.head);
        let sender = if upgrades { Some(sender) } else { self.send_body(sender) };
        let page = Page::new(self.remote, self.exchange, &carrier, requested_at);
        self.crossing = Some(Crossed { carrier, sender, receiver, page, promised: Vec::new(), requested_at });
        Ok(())
    }

    /// Starts the upload, which takes the sender; without a body the request ends at once.
    fn send_body(&mut self, mut sender: Sender) -> Option<Sender> {
        match self.body.take() {
            None => sender.finish(None),
            Some(body) => {
                let uploaded = Arc::clone(&self.exchange.uploaded);
                let length =
                    self.head.fields.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
                let expected = self.remote.expect(length);
                self.upload = Some(Uploading::begin(body, sender, uploaded, expected));
            }
        }
        None
    }

    /// Lets the body fill in the background, into the repository too where it may be kept: then `true`, with what others have of it.
    async fn receive(
        &mut self,
        crossed: Crossed,
        head: &ResponseHead,
        resumed: Option<u64>,
        decoding: Decoding,
    ) -> (Reader, bool, Outcome) {
        let Crossed { carrier, receiver, page, promised, requested_at, .. } = crossed;
        let remote = self.remote;
        let fetch = &self.exchange.fetch;
        remote.desk().answered(self.exchange.id, &fetch.url, head.status, &head.fields, remote.now());
        for url in farhop_freshness::invalidated(&self.head.method, &fetch.url, head.status, &head.fields) {
            remote.repository().invalidate(url.as_str()).await;
            remote.parts().invalidate(url.as_str(), SystemTime::now());
            remote.desk().invalidate(&url, (carrier.generation, &promised), remote.now());
        }
        let user = self.exchange.user.id;
        if head.status == StatusCode::OK && fetch.head.method == Method::HEAD && fetch.may_be_answered_here()
        {
            held::described(remote, user, fetch, head, requested_at).await;
        }
        if fetch.head.method == Method::GET && fetch.may_be_answered_here() {
            let asked = (&fetch.url, &fetch.head.fields);
            held::heard(remote, user, asked, head, requested_at).await;
        }
        // What is known to be too long for memory only passes, and ends with its client; the disk may keep it meanwhile. So it may what
        // turns out to be.
        let length =
            head.fields.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let settings = remote.settings();
        let fits = length.is_none_or(|length| length <= settings.repository.entry.0);
        // The rest of what was cut short is kept with what came before, which ground has compared with what it fetched.
        let (slot, begun) = self.exchange.cut_short.next(resumed);
        // A part is kept as one of the whole, and one that is all of it as that.
        let part = Part::of(head.status, &head.fields).filter(|_| self.head.fields.contains_key(RANGE));
        let is_all = |part: &Part| {
            part.range == (0..part.complete) && length.is_some_and(|length| length == part.complete)
        };
        let is_long = !fits
            && (head.status != StatusCode::PARTIAL_CONTENT || part.as_ref().is_some_and(is_all))
            && length.is_some_and(|length| length <= settings.store.entry.0);
        // An event stream is never whole, and would be taken for nobody when its client has left.
        let is_kept = (fits || is_long)
            && !is_event_stream(&head.fields)
            && fetch.head.method == Method::GET
            && fetch.may_be_answered_here()
            && (resumed.is_none() || (begun.is_some() && part.as_ref().is_none_or(is_all)))
            && !(self.keeps_no_error && farhop_freshness::is_error(head.status));
        let whole = part
            .as_ref()
            .map(|part| ResponseHead { status: StatusCode::OK, fields: part.of_whole(&head.fields) });
        let head = whole.as_ref().unwrap_or(head);
        let partition = is_kept
            .then(|| partition_for(user, &fetch.url, &fetch.head.fields, head.status, &head.fields))
            .flatten();
        let crossed = begun.as_ref().map_or(0, Begun::crossed);
        let is_in_memory = fits && !begun.as_ref().is_some_and(Begun::is_long);
        let limit = if partition.is_some() && is_in_memory { settings.repository.entry.0 } else { 0 };
        let (mut intake, body) = arriving::body(remote.budget(), limit);
        // Before anyone else can find it: where memory is short, what others have read of it is let go.
        let mut reader = body.reader().expect("what has just begun has its beginning");
        let (mut place, mut coming, mut before) = (Place::Nowhere, None, begun);
        let mut outcome = Outcome::of(head.status, &fetch.head.fields, None);
        if let Some(partition) = partition {
            let entry = to_store(partition, &fetch.head.fields, head, requested_at);
            let url = fetch.url.as_str();
            match part {
                Some(_) if !entry.has_strong_validator() => {}
                Some(part) if !is_all(&part) => coming = Coming::new(partition, url, &entry, part),
                _ if !is_in_memory => {
                    let keeping = match before.take().map(Begun::take_long) {
                        Some(Ok(keeping)) => keeping.goes_on(partition, &entry),
                        other => {
                            before = other.and_then(Result::err);
                            remote.repository().keep_passing(partition, url, &entry, user)
                        }
                    };
                    // Others find it from now on, and follow it on disk.
                    if let Some(mut keeping) = keeping
                        && (keeping.offered().is_some() || keeping.offer())
                    {
                        outcome = Outcome::of(head.status, &fetch.head.fields, Some((partition, &entry)));
                        place = Place::Passing(keeping.into());
                        remote.parts().forget(url);
                    }
                }
                _ => {
                    outcome = Outcome::of(head.status, &fetch.head.fields, Some((partition, &entry)));
                    let whole = length.filter(|_| head.status == StatusCode::OK);
                    let whole = whole.map(|complete| Part { range: 0..complete, complete });
                    coming = whole.and_then(|whole| Coming::new(partition, url, &entry, whole));
                    place = Place::Held(remote.repository().store(partition, url, entry, body.clone()).await);
                    remote.parts().forget(url);
                }
            }
        }
        let is_held = matches!(place, Place::Held(_));
        // What is nowhere else is wanted, whoever waits for it.
        let alone = coming.is_some().then(|| body.clone()).filter(|_| !is_held);
        let is_stored = alone.is_some() || !matches!(place, Place::Nowhere);
        let aside = intake.abandon();
        let mut kept = Kept::at(place, slot, crossed).of_length(length);
        if let Some(before) = before {
            kept.begin_with(before, &mut intake, remote, user).await;
            reader.skip(if is_held { resumed.unwrap_or_default() } else { 0 });
        }
        // The upload goes on for as long as the answer does.
        let upload = self.upload.take();
        let (remote, peer) = (Arc::clone(remote), carrier.peer);
        tokio::spawn(async move {
            let _upload = upload;
            let carried = arriving::carry(receiver, decoding, intake, kept, &page).await;
            let is_broken = carried.is_err();
            match carried {
                Ok(Some(stored)) => stock::tell_stored(&remote, stored).await,
                Ok(None) => {}
                Err(why) => tracing::debug!(target: "farhop", "a body from {peer} ended early: {why}"),
            }
            // What has come of the whole is a part of it.
            if let Some(coming) = coming.filter(|_| alone.is_some() || is_broken) {
                coming.keep(&remote, aside.body()).await;
            }
        });
        (reader, is_stored, outcome)
    }
}

/// Whether a response is one of server-sent events.
fn is_event_stream(fields: &HeaderMap) -> bool {
    let kind = fields.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Resolves when there is an upload that breaks.
async fn broken(upload: &mut Option<Uploading>) -> Trouble {
    match upload {
        Some(upload) => upload.broken().await,
        None => std::future::pending().await,
    }
}
