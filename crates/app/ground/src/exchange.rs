//! The HTTP component of ground: one request of a user, answered by its origin. The body's way is `delivery`'s, what
//! a page needs besides is `page`'s and `bundle`'s.

use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::{Eagerness, Noted, Urgency, is_navigation, opens_frame, opens_page};
use farhop_events::{Event, ExchangeId};
use farhop_htotp::frame::{Class, Failure, Priority, Resume};
use farhop_htotp::head::HeldPage;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_transport::hop::{Receiver, Sender};
use http::{HeaderMap, Method, StatusCode, Version, header};
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;

use crate::allowance::{Allowance, Share};
use crate::bundle::Bundle;
use crate::carrier::Carrier;
use crate::delivery::{Delivery, Undelivered};
use crate::dictionaries::Dictionaries;
use crate::failure;
use crate::head;
use crate::manifest::{self, Judged};
use crate::named::{Named, Shown};
use crate::origins::{Asked, Informed, OriginBody, Response};
use crate::owner::{Known, Owner};
use crate::page::{Page, is_document, is_page};
use crate::reading::Reading;
use crate::recent::Read;
use crate::stock::Former;
use crate::streaming::Viewing;
use crate::treatment::{Treatment, confirm_decoded, content_length, has_body, media_type, treatment};
use crate::upload::{self, Uploading};
use crate::variant::{self, Purpose};

/// RFC 9218 §4: most urgent, and of use in parts.
pub(crate) const DOCUMENT: Priority =
    Priority { urgency: Urgency::DOCUMENT.level, incremental: Urgency::DOCUMENT.incremental };

/// Someone waits for each event; a stream of them is never done, so none must wait for another.
const EVENTS: Priority = Priority { urgency: 1, incremental: true };

/// What is longer is a download of which nobody says how urgent it is: it yields to what else its user asks for, and
/// shares with others like it.
const LONG: u64 = 1 << 20;
const DOWNLOAD: Priority = Priority { urgency: 5, incremental: true };

/// A request that came over a carrier.
pub(crate) struct Exchange {
    pub(crate) carrier: Arc<Carrier>,
    pub(crate) id: ExchangeId,
    pub(crate) owner: Owner,
    pub(crate) resume: Option<Resume>,
    /// Without what the remote says of how much may be fetched for it.
    pub(crate) request: RequestHead,
    pub(crate) eagerness: Eagerness,
    /// The version of HTTP in which the remote has received it.
    pub(crate) version: Version,
    /// The remote answers it by itself, from this entry: only what goes with a page is wanted.
    pub(crate) held: Option<HeldPage>,
}

/// What the origin said before its response.
pub(crate) struct Early<'a> {
    pub(crate) known: &'a Arc<Known>,
    pub(crate) noted: Option<&'a Noted>,
    /// As far as earlier visits tell, or the first 103 response with `Link` fields.
    pub(crate) opened: Option<Opened>,
    /// That response was there. HTML, "process early hint headers": there is no second.
    pub(crate) informed: bool,
}

/// A page as far as it was told of before its response.
pub(crate) struct Opened {
    pub(crate) reading: Arc<Reading>,
    pub(crate) bundle: Arc<Bundle>,
    allowance: Allowance,
}

/// A response, and what happens to it on its way.
pub(crate) struct Answer {
    pub(crate) head: ResponseHead,
    pub(crate) treatment: Treatment,
    pub(crate) body: Option<OriginBody>,
    /// What was held of it here and is not right any more.
    pub(crate) former: Option<Former>,
}

/// Why there is no response.
enum Unanswered {
    Gone,
    Failed(Failure),
}

impl Exchange {
    /// Answers, whatever happens; ends at once when the remote wants nothing any more.
    pub(crate) async fn serve(self, sender: Sender, receiver: Receiver) {
        let started = Instant::now();
        if let Some(held) = self.held {
            return self.accompany(held, sender).await;
        }
        self.carrier.overtaken.asks(self.owner.user, &self.request, self.carrier.ground.now());
        if self.resume.is_some() && self.request.method != Method::GET {
            // What is not idempotent is never sent twice, and of the rest only GET has a body worth resuming.
            return self.fail(sender, failure::bad_request(400, "only a GET can be resumed"));
        }
        let known = self.carrier.ground.owners.known(&self.owner);
        let noted = self.note_request(&known);
        if self.request.upgrades() {
            return self
                .converse(sender, receiver, |fields| note_response(&known, noted.as_ref(), fields))
                .await;
        }
        let asking = self.asking_page();
        let noted_here = noted.as_ref().map(|(_, noted)| noted);
        let opened = noted_here.and_then(|noted| self.foresee(&known, noted, &sender));
        let mut early = Early { known: &known, noted: noted_here, opened, informed: false };
        // The body may still be on its way when the answer is; it is given up with the exchange.
        let (response, _uploading) = match self.ask(&sender, receiver, &mut early).await {
            Ok(answered) => answered,
            Err(Unanswered::Failed(failure)) => return self.fail(sender, failure),
            Err(Unanswered::Gone) => return,
        };
        note_response(&known, noted.as_ref(), &response.fields);
        let answer = self.treat(response);
        if let Some((_, noted)) = &noted {
            self.lead_on(&known, noted, &answer.head, &sender, Vec::new());
        }
        self.recall(&answer.head, &early, &sender);
        let document = self.page(&answer, early);
        self.teach(&answer.head, document.is_some(), started);
        if document.is_some() {
            // Whatever else the page brings, its document goes first.
            sender.reprioritize(DOCUMENT);
        }
        let page =
            document.or_else(|| asking.and_then(|asking| self.follow(asking, &known, &answer, &sender)));
        self.deliver(sender, answer, page, None, started).await;
    }

    async fn ask(
        &self,
        sender: &Sender,
        receiver: Receiver,
        early: &mut Early<'_>,
    ) -> Result<(Response, Uploading), Unanswered> {
        let (upload, uploading) = tokio::select! {
            biased;
            begun = upload::begin(receiver, &self.request) => begun.ok_or(Unanswered::Gone)?,
            _ = sender.gone() => return Err(Unanswered::Gone),
        };
        let (informed, mut informing) = mpsc::unbounded_channel();
        let means = self.carrier.means(&self.owner, false);
        let policy = means.policy;
        let request = variant::towards_origin(&self.request, Purpose::default(), policy, means.most);
        let (owner, exchange, version) = (&self.owner, self.id, self.version);
        let asked = Asked { owner, exchange, head: &request, version, upload, informed: Some(informed) };
        let fetch = self.carrier.ground.origins.fetch(asked);
        tokio::pin!(fetch);
        loop {
            tokio::select! {
                biased;
                Some(informed) = informing.recv() => self.inform(sender, informed, early),
                response = &mut fetch => {
                    while let Ok(informed) = informing.try_recv() {
                        self.inform(sender, informed, early);
                    }
                    return response.map(|response| (response, uploading)).map_err(Unanswered::Failed);
                }
                _ = sender.gone() => return Err(Unanswered::Gone),
            }
        }
    }

    /// Passes a 1xx response on (RFC 9110 §15.2), behind the promises of what it names: while the origin thinks, the
    /// link and its own connections are free.
    fn inform(&self, sender: &Sender, informed: Informed, early: &mut Early<'_>) {
        let head = head::towards_remote(informed.status, informed.fields, self.id);
        let hints = head.status == StatusCode::EARLY_HINTS && head.fields.contains_key(header::LINK);
        if hints && !early.informed && opens_page(&self.request.method, &self.request.fields) {
            early.informed = true;
            let opened = early.opened.take();
            early.opened = opened.or_else(|| self.open(&head, early.known, early.noted?));
            if let Some(opened) = &early.opened {
                opened.bundle.add(&opened.reading, opened.reading.links(&head.fields, true), sender);
            }
        }
        sender.inform(&head);
    }

    /// What happens to the response on its way.
    pub(crate) fn treat(&self, response: Response) -> Answer {
        let status = response.status;
        let mut head = head::towards_remote(status, response.fields, self.id);
        confirm_decoded(&self.request.fields, &mut head);
        variant::confirm(&self.request.fields, &mut head);
        let means = self.carrier.means(&self.owner, false);
        let Judged { manifest, left } = manifest::judged(&self.request, &head, means.most);
        if let Some((form, why)) = left {
            let (bus, exchange) = (&self.carrier.ground.bus, self.id);
            let (url, form) = (bus.url(&self.request.url()), form.as_str().into());
            bus.emit(Event::ManifestKept { exchange, url, form, why: why.into() });
        }
        let treatment = match manifest {
            Some(manifest) => Treatment::Manifest(manifest),
            None => treatment(&self.request, &head, Purpose::default(), means),
        };
        let body = has_body(&self.request.method, status).then_some(response.body);
        Answer { head, treatment, body, former: response.former }
    }

    /// Sends the answer; `share` is what may be sent of it where nobody has asked for it.
    pub(crate) async fn deliver(
        &self,
        sender: Sender,
        answer: Answer,
        page: Option<Page>,
        share: Option<Share>,
        started: Instant,
    ) {
        let Answer { head, treatment, body, former } = answer;
        let unasked = share.is_some();
        let ground = &self.carrier.ground;
        let status = head.status;
        if media_type(&head.fields) == "text/event-stream" {
            sender.reprioritize(EVENTS);
        } else if page.is_none()
            && !self.request.fields.contains_key("priority")
            && content_length(&head.fields).is_some_and(|length| length > LONG)
        {
            sender.reprioritize(DOWNLOAD);
        }
        let viewing = self.viewing(unasked, &head);
        if viewing.as_ref().is_some_and(|viewing| ground.streaming.is_media(viewing, &head.fields)) {
            sender.reclassify(Class::Streaming);
        }
        self.carrier.take_up(&self.request, former).await;
        let kin = self.carrier.kin(&self.owner, &self.request, &head, &treatment, self.resume.is_some());
        let delivery = Delivery {
            returning: ground.centre.expect(&self.carrier.remote, content_length(&head.fields)),
            ground,
            to: self.carrier.outlet(&self.owner),
            kin,
            head,
            request: &self.request.fields,
            treatment,
            body,
            rate: self.carrier.rate(),
            resume: self.resume,
            page,
            share,
            viewing,
        };
        let delivered = delivery.run(sender).await;
        if let Some(sent) = delivered.sent {
            Dictionaries::learn(ground, &self.carrier.hop, sent, delivered.crossed_bytes);
        }
        match delivered.outcome {
            Ok(()) => ground.bus.emit(Event::Fetched {
                exchange: self.id,
                unasked,
                url: ground.bus.url(&self.request.url()),
                status: status.as_u16(),
                origin_bytes: delivered.origin_bytes,
                crossed_bytes: delivered.crossed_bytes,
                spared_bytes: delivered.spared_bytes,
                taught: delivered.taught,
                total_ms: started.elapsed().as_millis() as u64,
            }),
            Err(Undelivered::Failed(failure)) if !unasked => {
                self.tell(&failure, true, delivered.crossed_bytes);
            }
            Err(_) => {}
        }
    }

    /// Who plays it, if someone may: a GET that was asked for.
    fn viewing(&self, unasked: bool, head: &ResponseHead) -> Option<Viewing> {
        let plays = [StatusCode::OK, StatusCode::PARTIAL_CONTENT].contains(&head.status);
        if unasked || self.request.method != Method::GET || !plays {
            return None;
        }
        let url = self.request.normalised()?;
        Some(Viewing::new(self.id, &self.owner, url))
    }

    /// Reads along, if the answer is a page.
    pub(crate) fn page(&self, answer: &Answer, early: Early<'_>) -> Option<Page> {
        let Answer { head, treatment, .. } = answer;
        if !is_page(&self.request, head) {
            return None;
        }
        let noted = early.noted?;
        let Opened { reading, bundle, allowance } = match early.opened {
            Some(opened) => {
                opened.reading.answer(&self.request, head, noted);
                opened
            }
            None => self.open(head, early.known, noted)?,
        };
        if let Some(url) = self.request.resource() {
            let read = Read { page: self.id, url: url.clone(), reading: Arc::clone(&reading), allowance };
            self.carrier.ground.recent.note(&self.owner, read, Instant::now());
            let before = self.carrier.opener(self.owner.user);
            let before =
                before.and_then(|opener| self.carrier.ground.pages.recall(&opener, Shown::Window, &url));
            before.into_iter().for_each(|before| reading.recall(before));
            self.remember(url, &reading);
        }
        Page::document(&bundle, reading, head, matches!(treatment, Treatment::Recode(_)))
    }

    /// A page that has not changed: what it named when it was last read is asked about or fetched, in the same flight.
    pub(crate) fn recall(&self, head: &ResponseHead, early: &Early<'_>, sender: &Sender) {
        if head.status != StatusCode::NOT_MODIFIED || !opens_page(&self.request.method, &self.request.fields)
        {
            return;
        }
        let (Some(noted), Some(url)) = (early.noted, self.request.resource()) else { return };
        let Some(opener) = self.carrier.opener(self.owner.user) else { return };
        let Some(before) = self.carrier.ground.pages.recall(&opener, Shown::Window, &url) else { return };
        let Some(confirmed) = before.confirmed_by(&head.fields) else { return };
        self.go_over(&before, &confirmed, (early, noted), sender);
    }

    /// The page is still what `before` was read in, with this head: what that named is asked about or fetched.
    pub(crate) fn go_over(
        &self,
        before: &Named,
        head: &ResponseHead,
        (early, noted): (&Early<'_>, &Noted),
        sender: &Sender,
    ) {
        let Some(url) = self.request.resource() else { return };
        let opened = match &early.opened {
            Some(Opened { reading, bundle, .. }) => {
                reading.answer(&self.request, head, noted);
                Some((Arc::clone(reading), Arc::clone(bundle)))
            }
            None => self.open(head, early.known, noted).map(|opened| (opened.reading, opened.bundle)),
        };
        let Some((reading, bundle)) = opened else { return };
        let models = &self.carrier.ground.models;
        models.answered(&self.owner, self.id, Some(head));
        bundle.add_again(&reading, reading.again(before), sender);
        models.tells(&self.owner, self.id, reading.referrer_policy());
        self.remember(url, &reading);
    }

    fn remember(&self, url: Url, reading: &Reading) {
        if let (Some(opener), Some(named)) = (self.carrier.opener(self.owner.user), reading.named()) {
            self.carrier.ground.pages.note(opener, Shown::Window, url, &named);
        }
    }

    /// A page that is answered with `head`; `None` where none is to be read.
    pub(crate) fn open(&self, head: &ResponseHead, known: &Arc<Known>, noted: &Noted) -> Option<Opened> {
        let settings = &self.carrier.ground.settings().bundle;
        if !settings.enabled || self.request.sent_to().is_some() || self.eagerness == Eagerness::Nothing {
            return None;
        }
        let reading = Arc::new(Reading::page(&self.request, head, noted, known, settings)?);
        if self.eagerness == Eagerness::Named {
            reading.leave_guesses();
        }
        let allowance = Allowance::new(settings.bytes.0);
        let url = self.request.url();
        let (allowance_of, is_late) = (allowance.clone(), self.held.is_some());
        let bundle = Bundle::new(&self.carrier, &self.owner, known, self.id, &url, allowance_of, is_late);
        Some(Opened { reading, bundle, allowance })
    }

    /// What the models learn of the answer to this request: of the page that it is, or that asks for it.
    pub(crate) fn teach(&self, head: &ResponseHead, is_page: bool, at: Instant) {
        let models = &self.carrier.ground.models;
        if opens_page(&self.request.method, &self.request.fields) {
            models.answered(&self.owner, self.id, is_page.then_some(head));
        } else {
            let (asked, rtt) = ((&self.request, head), self.carrier.connection.rtt());
            models.crossed(&self.owner, &self.carrier.remote, asked, at, rtt);
        }
    }

    /// The page that this is asked for, if it was read a moment ago.
    fn asking_page(&self) -> Option<(Read, Url)> {
        if self.request.method != Method::GET
            || is_navigation(&self.request.fields)
            || self.request.sent_to().is_some()
        {
            return None;
        }
        let read = self.carrier.ground.recent.page_of(&self.owner, &self.request.fields, Instant::now())?;
        let url = self.request.resource()?;
        read.reading.asked(&url, &self.request.fields);
        Some((read, url))
    }

    /// Promises what the page will probably ask for beside this, and reads along what it has asked for. As late as can
    /// be, so that what the browser has asked for meanwhile is not promised.
    fn follow(
        &self,
        asking: (Read, Url),
        known: &Arc<Known>,
        answer: &Answer,
        sender: &Sender,
    ) -> Option<Page> {
        let Answer { head, treatment, .. } = answer;
        let (Read { page, url: at, reading, allowance }, url) = asking;
        let decided = reading.read(|document| document.neighbours(&url));
        let is_there = head.status == StatusCode::OK;
        let part = is_there.then(|| reading.unforeseen(&url, &self.request.fields, head)).flatten();
        // Put there by a script, or not sent unasked: it sets a cookie.
        let is_frame = opens_frame(&self.request.fields) && is_document(head);
        let frame = is_frame.then(|| reading.asked_frame(&url, &self.request, head)).flatten();
        if decided.is_empty() && part.is_none() && frame.is_none() {
            return None;
        }
        let bundle = Bundle::new(&self.carrier, &self.owner, known, page, at.as_str(), allowance, false);
        bundle.add(&reading, decided, sender);
        let decoded = matches!(treatment, Treatment::Recode(_));
        if let Some(frame) = frame.map(Arc::new) {
            bundle.remember_frame(&frame, &url);
            return Page::document(&bundle, frame, head, decoded);
        }
        Page::part(&bundle, reading, part?, head, decoded)
    }

    /// What the request shows of the user's browser.
    pub(crate) fn note_request(&self, known: &Known) -> Option<(Url, Noted)> {
        let url = self.request.normalised()?;
        known.shown(&url);
        let noted = known.cookies().note_request(&url, &self.request.fields, SystemTime::now());
        Some((url, noted))
    }

    pub(crate) fn fail(&self, sender: Sender, failure: Failure) {
        self.tell(&failure, false, 0);
        sender.fail(failure);
    }

    fn tell(&self, failure: &Failure, answered: bool, bytes: u64) {
        let ground = &self.carrier.ground;
        ground.bus.emit(Event::Failed {
            exchange: self.id,
            user: self.owner.to_string(),
            method: self.request.method.to_string(),
            url: ground.bus.url(&self.request.url()),
            side: failure::side(failure),
            error: failure.to_string(),
            status: (!answered).then_some(failure.status),
            bytes,
        });
    }
}

/// What a response changes of what the user's browser holds.
fn note_response(known: &Known, noted: Option<&(Url, Noted)>, fields: &HeaderMap) {
    if let Some((url, noted)) = noted {
        known.cookies().note_response(noted, url, fields, SystemTime::now());
    }
}
