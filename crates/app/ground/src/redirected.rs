//! A document that is answered with a redirect: its browser goes on at once, so the request with which it will is promised
//! on the redirect's stream, ahead of its end, sent, and its answer pushed. What that names in turn is promised on the
//! push, and if it leads elsewhere again, so is the next step. Where the remote holds what the browser will ask for, the origin is
//! only asked whether that is still right.

use std::sync::Arc;
use std::time::SystemTime;

use farhop_bundle::{Eagerness, Navigation, Noted, Unasked, leads_to, opens_page, sameness};
use farhop_events::Event;
use farhop_htotp::frame::{Coding, Failure};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_origin::Upload;
use farhop_transport::hop::Sender;
use http::{StatusCode, header};
use tokio::time::Instant;
use url::Url;

use crate::allowance::{Allowance, Share};
use crate::bundle::{held_stale, is_held, request_head};
use crate::exchange::{DOCUMENT, Early, Exchange};
use crate::failure;
use crate::mirror::Stale;
use crate::origins::{Asked, Response};
use crate::owner::Known;
use crate::page::is_page;
use crate::tally::{ENDLESS, HELD, NOT_PUBLIC, NOT_SURE, Tally, UNSEEN, VALIDATED, skip_words};
use crate::treatment::{content_length, has_body};
use crate::validation;

/// Redirects of one document that are followed: browsers follow twenty, but hardly a page needs more than three.
pub(crate) const MOST: usize = 10;

/// A request that the browser will make.
struct Step {
    exchange: Exchange,
    known: Arc<Known>,
    noted: Noted,
    url: Url,
    /// What the remote holds of it.
    stale: Option<Stale>,
    /// Those from which redirects led here.
    before: Vec<Unasked>,
}

impl Exchange {
    /// Where `head` leads the browser elsewhere: promises on `sender` what it will ask for next, and begins to answer
    /// that. `before` are the requests from which redirects led to this one.
    pub(crate) fn lead_on(
        &self,
        known: &Arc<Known>,
        noted: &Noted,
        head: &ResponseHead,
        sender: &Sender,
        mut before: Vec<Unasked>,
    ) {
        let Some(url) = self.request.resource() else { return };
        let follows = self.carrier.ground.settings().bundle.enabled
            && self.eagerness != Eagerness::Nothing
            && opens_page(&self.request.method, &self.request.fields)
            // What its connection decides is answered by that alone.
            && !self.request.is_of_its_connection();
        let Some(target) = leads_to(&url, head.status, &head.fields).filter(|_| follows) else { return };
        let bus = &self.carrier.ground.bus;
        let mut tally = Tally::new(bus, self.id, url.as_str());
        tally.found_redirect();
        let next = self.next(known, noted, &url, head);
        before.push(Unasked { url, fields: self.request.fields.clone() });
        let next = match next {
            // To ask the same again is a loop; with a cookie that was set on the way it need not be one.
            Ok(next) if before.len() > MOST || before.contains(&next) => Err(ENDLESS),
            next => next,
        };
        let next = match next {
            Ok(next) => next,
            Err(why) => {
                tally.skipped(why);
                let url = bus.url(target.as_str());
                return bus.emit(Event::HintSkipped { page: self.id, url, why: why.into() });
            }
        };
        let Some(request) = request_head(&next) else { return };
        let stale = held_stale(&self.carrier, &self.owner, &next);
        let promise = match &stale {
            Some(stale) => sender.validate(stale.entry, sameness(&request.fields), &request, DOCUMENT),
            None => sender.promise(&request, DOCUMENT),
        };
        let Some(promise) = promise else { return };
        match &stale {
            Some(_) => tally.skipped(VALIDATED),
            None => {
                tally.promised();
                bus.emit(Event::Promised { promise, page: self.id, url: bus.url(next.url.as_str()) });
            }
        }
        let carrier = Arc::clone(&self.carrier);
        let exchange = Exchange {
            carrier: Arc::clone(&carrier),
            id: self.id,
            owner: self.owner.clone(),
            resume: None,
            request,
            eagerness: self.eagerness,
            version: self.version,
            held: None,
        };
        let noted = known.cookies().note_document(noted.jar, &next.url);
        let step = Step { exchange, known: Arc::clone(known), noted, url: next.url, stale, before };
        let unwanted = carrier.promised(promise);
        self.carrier.spawn(async move {
            tokio::select! {
                biased;
                // Ends what is under way.
                _ = unwanted => {}
                () = step.answer(promise) => {}
            }
            carrier.settled(promise);
        });
    }

    /// The request with which the browser goes on; or why it is left to the browser.
    fn next(
        &self,
        known: &Known,
        noted: &Noted,
        url: &Url,
        head: &ResponseHead,
    ) -> Result<Unasked, &'static str> {
        let (method, fields) = (&self.request.method, &self.request.fields);
        let navigation = Navigation { method, url, fields, jar: noted.jar };
        let next = navigation.redirected(head.status, &head.fields, &known.cookies(), SystemTime::now());
        let next = next.ok_or(NOT_SURE)?;
        if let Some(why) = known.never().why(&next.url) {
            return Err(skip_words(why));
        }
        match () {
            () if self.carrier.ground.origins.refuses(&next.url) => Err(NOT_PUBLIC),
            () if !known.shows(&next.url) => Err(UNSEEN),
            () if is_held(&self.carrier, &self.owner, &next) => Err(HELD),
            () => Ok(next),
        }
    }

    /// The origin has confirmed what the remote holds: that, and what the page named when it was last read, in the same flight.
    fn confirm(
        &self,
        (known, noted): (&Arc<Known>, &Noted),
        promise: u64,
        (stale, question): (&Stale, &RequestHead),
        response: Response,
        started: Instant,
    ) -> Result<(), Failure> {
        if response.fields.contains_key(header::SET_COOKIE) {
            // Nobody would get it with this.
            return Err(failure::withdrawn(&"the response sets a cookie"));
        }
        let Some(mut sender) = self.carrier.hop.push(promise) else { return Ok(()) };
        let opened = self.foresee(known, noted, &sender);
        let early = Early { known, noted: Some(noted), opened, informed: false };
        let head = ResponseHead { status: response.status, fields: response.fields };
        self.recall(&head, &early, &sender);
        self.teach(&head, false, started);
        sender.answer(&validation::answer(question, stale, head.fields), Coding::Identity, None);
        sender.finish(None);
        Ok(())
    }

    /// The stream on which the next step's answer is pushed; `None` where nobody wants it. Where only a word was announced on
    /// what the remote holds, it is promised in that word's place.
    fn push(&self, promise: u64, was_held: bool) -> Option<Sender> {
        let word = self.carrier.hop.push(promise)?;
        if !was_held {
            return Some(word);
        }
        let promise = word.promise(&self.request, DOCUMENT)?;
        let bus = &self.carrier.ground.bus;
        bus.emit(Event::Promised { promise, page: self.id, url: bus.url(&self.request.url()) });
        word.fail(failure::withdrawn(&"what is held has changed"));
        self.carrier.hop.push(promise)
    }

    /// What may be sent of an answer that nobody has asked for yet: documents whole, since the browser waits for them;
    /// else no more than of a page's bundle, and nothing of which it is not known whether that is enough.
    fn share(&self, head: &ResponseHead) -> Result<Share, Failure> {
        if is_page(&self.request, head) {
            return Allowance::new(u64::MAX).share(None).map_err(|error| failure::withdrawn(&error));
        }
        let length = content_length(&head.fields);
        let is_open = length.is_none() && has_body(&self.request.method, head.status);
        if is_open && !head.status.is_redirection() {
            return Err(failure::withdrawn(&"it is no page, and of unknown length"));
        }
        let allowance = Allowance::new(self.carrier.ground.settings().bundle.bytes.0);
        allowance.share(length).map_err(|error| failure::withdrawn(&error))
    }
}

impl Step {
    /// Fetches, and pushes what comes.
    async fn answer(self, promise: u64) {
        let hop = self.exchange.carrier.hop.clone();
        if let Err(failure) = self.fetch(promise).await
            && let Some(sender) = hop.push(promise)
        {
            sender.fail(failure);
        }
    }

    /// Fails where the push has not begun.
    async fn fetch(self, promise: u64) -> Result<(), Failure> {
        let Step { exchange, known, noted, url, stale, before } = self;
        let started = Instant::now();
        let ground = &exchange.carrier.ground;
        let question = stale.as_ref().map(|stale| validation::question(&exchange.request, stale));
        let asked = Asked {
            owner: &exchange.owner,
            exchange: exchange.id,
            head: question.as_ref().unwrap_or(&exchange.request),
            version: exchange.version,
            upload: Upload::empty(),
            informed: None,
        };
        let response = ground.origins.fetch(asked).await?;
        if let (Some(stale), Some(question)) = (&stale, &question) {
            let confirmed = response.status == StatusCode::NOT_MODIFIED;
            let url = ground.bus.url(url.as_str());
            ground.bus.emit(Event::Validated { page: exchange.id, url, confirmed });
            if confirmed {
                return exchange.confirm((&known, &noted), promise, (stale, question), response, started);
            }
        }
        // The browser gets it like any answer, with what it sets.
        known.cookies().note_response(&noted, &url, &response.fields, SystemTime::now());
        let answer = exchange.treat(response);
        let share = exchange.share(&answer.head)?;
        let Some(sender) = exchange.push(promise, stale.is_some()) else { return Ok(()) };
        let opened = exchange.foresee(&known, &noted, &sender);
        let early = Early { known: &known, noted: Some(&noted), opened, informed: false };
        let page = exchange.page(&answer, early);
        exchange.teach(&answer.head, page.is_some(), started);
        exchange.lead_on(&known, &noted, &answer.head, &sender, before);
        exchange.deliver(sender, answer, page, Some(share), started).await;
        Ok(())
    }
}
