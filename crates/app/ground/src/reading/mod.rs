//! What ground makes of a page: its documents as they are read, and what is decided about everything they name. It
//! fetches and promises nothing, so that a plan can also be made without a carrier (`explain`).

mod awaited;
mod opening;
mod preceding;
mod refusal;
mod standing;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use farhop_bundle::{Decision, Load, Noted, Room, Unasked, Way, content_policies};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_models::Foreseen;
use farhop_page::{
    Destination, Document, Hint, Initiator, Options, Policy, PolicyKind, ReferrerPolicy, ResourceId, Source,
};
use farhop_settings::ground::BundleSettings;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use url::Url;

use crate::named::Named;
use crate::owner::Known;
use crate::page::XHTML;
use crate::treatment::{charset, media_type};
use awaited::Awaited;
pub(crate) use opening::nonce;
use opening::{agent, document, info, nonce_of, options};
pub(crate) use preceding::Preceding;
use preceding::Texts;
use refusal::{is_confined, is_refused};
use standing::Standing;

/// Whether a hint is for what browsers load once they style what is displayed.
fn is_styles(hint: &Hint) -> bool {
    matches!(hint.source, Source::Rule | Source::RulePart | Source::FontFace | Source::StyleAttribute)
}

/// Bytes that each resource decided on adds to a page, about.
const HINT: usize = 4 * 1024;

/// What was decided about a hint.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) hint: Hint,
    pub(crate) decision: Decision,
    /// Redirects that led from what the hint names to what was decided about.
    pub(crate) way: Way,
    /// It is fetched once the browser asks for it, or the page names it.
    pub(crate) until_asked: bool,
}

/// One document of the page. The streams of everything that is read for it share it.
pub(crate) struct Reading {
    standing: Standing,
    /// It is in a frame of which nothing is displayed: it is loaded, but none of its styles count.
    is_unseen: bool,
    document: Mutex<Document>,
    awaited: Awaited,
    /// What it names is noted here, if it is a page that may be validated.
    named: Mutex<Option<Arc<Named>>>,
    /// What it named when it was last read, if it has changed since.
    before: OnceLock<Arc<Named>>,
    /// Once its response is here, of which more was known before: the nonce of its content policy.
    nonce: OnceLock<Option<Box<str>>>,
    /// The same of a policy in its mark-up.
    nonce_within: OnceLock<Box<str>>,
    /// What it names is not pushed before it is answered.
    texts: Texts,
}

impl Reading {
    /// Of the page that answers `request`, which was `noted`, with `response`.
    pub(crate) fn page(
        request: &RequestHead,
        response: &ResponseHead,
        noted: &Noted,
        known: &Arc<Known>,
        settings: &BundleSettings,
    ) -> Option<Reading> {
        let url = request.resource()?;
        // Browsers look for the icon of a window alone.
        let default_icon = !noted.is_framed;
        let options = Options { default_icon, ..options(request, response, known) };
        let agent = agent(&request.fields);
        if options.viewport != known.screen(agent) {
            known.learn_screen(agent, &options.viewport);
        }
        let matching = options.matching.clone();
        let document = Mutex::new(document(&url, response, options));
        let load = Load::new(url, request.fields.clone(), &response.fields, noted);
        let named = Mutex::new(Named::new(response).map(Arc::new));
        let standing = Standing::page(load, known, matching, settings);
        let (is_unseen, awaited, before, nonce, nonce_within, texts) = <_>::default();
        Some(Reading { standing, is_unseen, document, awaited, named, before, nonce, nonce_within, texts })
    }

    /// Of what it names, nothing is fetched that may well not be used.
    pub(crate) fn leave_guesses(&self) {
        self.standing.plan().leave_guesses();
    }

    /// The page's response is here, after a 103 response of which this was made: what that named stays planned, and the
    /// fields that hold from now on are the response's.
    pub(crate) fn answer(&self, request: &RequestHead, response: &ResponseHead, noted: &Noted) {
        self.standing.answered(request, response, noted);
        let xml = media_type(&response.fields) == XHTML;
        *lock(&self.named) = Named::new(response).map(Arc::new);
        // There is one response.
        let _ = self.nonce.set(nonce(&response.fields));
        let mut document = lock(&self.document);
        document.answered(charset(&response.fields).as_deref(), xml);
        document.obey(content_policies(&response.fields));
    }

    /// Of the document in a frame, which was named as `url`. `None` where frames are too deep, where the browser may not show
    /// it, and where it has an origin of its own: all that such a document names is asked for with other fields.
    pub(crate) fn frame(&self, url: &Url, request: &RequestHead, response: &ResponseHead) -> Option<Reading> {
        let (scripting, is_unseen) = {
            let document = lock(&self.document);
            if is_confined(&response.fields) || document.is_opaque(url) {
                return None;
            }
            (document.runs_scripts(url), self.is_unseen || !document.may_show_frame(url))
        };
        let standing = self.standing.frame(request, response)?;
        let own = options(request, response, standing.known());
        let matching = standing.matching();
        let options = Options { default_icon: false, matching, scripting, ..own };
        let document = Mutex::new(document(&standing.url(), response, options));
        let named = Mutex::new(Named::new(response).map(Arc::new));
        let (awaited, before, nonce, nonce_within, texts) = <_>::default();
        Some(Reading { standing, is_unseen, document, awaited, named, before, nonce, nonce_within, texts })
    }

    /// Of the document at `url` in a frame, which the browser has asked for by itself: as [`Reading::frame`], but where the mark-up
    /// did not name it, nobody knows how it is sandboxed.
    pub(crate) fn asked_frame(
        &self,
        url: &Url,
        request: &RequestHead,
        response: &ResponseHead,
    ) -> Option<Reading> {
        let frame = self.frame(url, request, response)?;
        if !lock(&self.document).names_frame(url) {
            frame.standing.doubt_origin();
        }
        Some(frame)
    }

    /// It is about to be answered: what it names is fetched, and pushed once this is dropped.
    pub(crate) fn precede(&self) -> Preceding {
        self.texts.precede()
    }

    /// Completes when it is answered.
    pub(crate) async fn is_answered(&self) {
        self.texts.answered().await;
    }

    /// Reads on, and decides about what that finds.
    pub(crate) fn read(&self, on: impl FnOnce(&mut Document) -> Vec<Hint>) -> Vec<Decided> {
        let mut document = lock(&self.document);
        let hints = on(&mut document);
        let policies = document.policies();
        self.decide(hints, policies, |refused| document.resource_lost(refused))
    }

    /// Decides about each hint by the policies that stand before it. What waits for a sheet that nobody will read is `then`
    /// decided on.
    fn decide(
        &self,
        hints: Vec<Hint>,
        policies: Vec<Policy>,
        mut then: impl FnMut(&Hint) -> Vec<Hint>,
    ) -> Vec<Decided> {
        let named = self.named();
        let (mut hints, mut policies) = (VecDeque::from(hints), VecDeque::from(policies));
        let mut all = Vec::new();
        while let Some(hint) = hints.pop_front() {
            while let Some(policy) = policies.pop_front_if(|policy| policy.from <= hint.order) {
                self.obey(&policy, named.as_deref());
            }
            if self.is_unseen && is_styles(&hint) {
                continue;
            }
            if let Some(named) = &named {
                named.note(&hint);
            }
            let way = Way::default();
            let decision = self.standing.decide(&hint, &hint.url, &way);
            match decision {
                Decision::Skip(_) if self.awaited.is_given_up(&hint) => hints.extend(then(&hint)),
                Decision::Skip(_) => {}
                Decision::Fetch(..) => {
                    self.weigh(HINT);
                    self.awaited.add(&hint);
                }
            }
            all.push(Decided { hint, decision, way, until_asked: false });
        }
        policies.iter().for_each(|policy| self.obey(policy, named.as_deref()));
        all
    }

    fn obey(&self, policy: &Policy, named: Option<&Named>) {
        if let Some(named) = named {
            named.obey(policy);
        }
        if let (PolicyKind::Content, Some(nonce)) = (policy.kind, nonce_of(&policy.text)) {
            // The first counts, as in a field.
            let _ = self.nonce_within.set(nonce);
        }
        self.standing.obey(policy);
    }

    /// What it has named so far; `None` if it is none that may be validated.
    pub(crate) fn named(&self) -> Option<Arc<Named>> {
        lock(&self.named).clone()
    }

    /// The page named this when it was last read.
    pub(crate) fn recall(&self, before: Arc<Named>) {
        // The first word counts: there is one document.
        let _ = self.before.set(before);
    }

    /// What the hint names has not changed, and is not read: decides about what had waited for it, and about what it named
    /// when it was last read.
    pub(crate) fn confirmed(&self, hint: &Hint) -> Vec<Decided> {
        let mut decided = self.lost(hint);
        if let Some(before) = self.before.get() {
            let (mut hints, _) = before.all();
            hints.retain(|one| match &one.initiator {
                Initiator::Sheet(url) | Initiator::Module(url) => *url == hint.url,
                Initiator::Document => false,
            });
            decided.extend(self.decide(hints, Vec::new(), |_| Vec::new()));
        }
        decided
    }

    /// Decides anew about what was named before, by a page that has not changed since.
    pub(crate) fn again(&self, before: &Named) -> Vec<Decided> {
        let (hints, policies) = before.all();
        self.decide(hints, policies, |_| Vec::new())
    }

    /// The request that the browser would send for what `hint` names.
    pub(crate) fn would_ask(&self, hint: &Hint) -> Option<Unasked> {
        self.standing.would_ask(hint)
    }

    /// Decides about what earlier visits say that the page needs, before anything of it is read.
    pub(crate) fn foresee(&self, hint: Hint, one: &Foreseen, until_asked: bool) -> Decided {
        let way = Way::default();
        let mut decision = self.standing.decide(&hint, &hint.url, &way);
        if let Decision::Fetch(unasked, urgency) = &mut decision {
            shape(unasked, one, &self.url());
            urgency.level = one.needs.urgency.unwrap_or(urgency.level);
            self.weigh(HINT);
            self.awaited.add(&hint);
            // What is only promised is heard of again where the page names it.
            if !until_asked {
                lock(&self.document).foreseen(hint.clone());
            }
        }
        Decided { hint, decision, way, until_asked }
    }

    /// Whether the page may still ask for what earlier visits have taught, which was decided on by what it said at the last of
    /// them: by its own response, once that is here.
    pub(crate) fn still_allows(&self, hint: &Hint, target: &Url, way: &Way) -> bool {
        let is_foreseen = matches!(hint.source, Source::OwnVisits | Source::OthersVisits);
        let Some(nonce) = self.nonce.get().filter(|_| is_foreseen) else { return true };
        let nonce = nonce.clone().or_else(|| self.nonce_within.get().cloned());
        self.standing.allows(&Hint { nonce, ..hint.clone() }, target, way)
    }

    /// So many bytes more were read for the page.
    pub(crate) fn weigh(&self, bytes: usize) {
        self.standing.weigh(bytes);
    }

    /// Bytes that the page takes, about: what is made of its text is as long.
    pub(crate) fn size(&self) -> usize {
        self.standing.size()
    }

    /// Follows the `Link` fields of a response, of a 103 response if `early`.
    pub(crate) fn links(&self, fields: &HeaderMap, early: bool) -> Vec<Decided> {
        self.read(|document| {
            let values = fields.get_all(header::LINK).into_iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| document.link_field(value, early)).collect()
        })
    }

    /// The user's browser asked for `url`, which nobody foresaw, with these fields.
    pub(crate) fn asked(&self, url: &Url, request: &HeaderMap) {
        self.standing.asked(url, request);
        let mut document = lock(&self.document);
        let assumed = document.viewport().clone();
        document.asked(url);
        // A frame is no window.
        if *document.viewport() != assumed && !self.is_framed() {
            self.standing.known().learn_screen(agent(request), document.viewport());
        }
    }

    /// Whether it is in a frame.
    pub(crate) fn is_framed(&self) -> bool {
        self.standing.is_framed()
    }

    /// Where the document is.
    pub(crate) fn url(&self) -> Url {
        self.standing.url()
    }

    /// What it lets others know of it by now, where it says so.
    pub(crate) fn referrer_policy(&self) -> Option<ReferrerPolicy> {
        self.standing.referrer_policy()
    }

    /// How many resources a document may name, once this one has named more.
    pub(crate) fn exceeded(&self) -> Option<usize> {
        lock(&self.document).exceeded()
    }

    /// What the hint names will not be read for it: decides about what had waited for that, unless another reads it.
    pub(crate) fn lost(&self, hint: &Hint) -> Vec<Decided> {
        match self.awaited.is_given_up(hint) {
            true => self.read(|document| document.resource_lost(hint)),
            false => Vec::new(),
        }
    }

    /// What was asked for with `request`, which `hint` named or to which this way led from that, answers with `response`
    /// and is not read: decides about where it leads in turn, or about what had waited for it.
    pub(crate) fn redirected(
        &self,
        hint: &Hint,
        way: &Way,
        request: &Unasked,
        response: &ResponseHead,
    ) -> Vec<Decided> {
        let led = self.standing.led(hint, way, request, response);
        let decided = led.map(|(way, target)| (self.standing.decide(hint, &target, &way), way));
        match decided {
            Some((decision @ Decision::Fetch(..), way)) => {
                vec![Decided { hint: hint.clone(), decision, way, until_asked: false }]
            }
            _ => self.lost(hint),
        }
    }

    /// What `hint` named answers at `url`. `None` if there is nothing to read in it.
    pub(crate) fn begin(&self, hint: &Hint, url: &Url, response: &ResponseHead) -> Option<ResourceId> {
        let mut document = lock(&self.document);
        if is_refused(hint, &response.fields, document.takes_any_sheet(url)) {
            return None;
        }
        let charset = charset(&response.fields);
        document.resource_begins(hint, url, &info(response, charset.as_deref()))
    }

    /// The browser asked for `url` with these fields, which nobody foresaw and which answers so. `None` if there is nothing to
    /// read in it; what a worker imports it asks for in words of its own.
    pub(crate) fn unforeseen(
        &self,
        url: &Url,
        request: &HeaderMap,
        response: &ResponseHead,
    ) -> Option<ResourceId> {
        let dest = request.get("sec-fetch-dest").map_or(&b""[..], HeaderValue::as_bytes);
        if dest.ends_with(b"worker") || dest.ends_with(b"worklet") {
            return None;
        }
        let destination = match &*media_type(&response.fields) {
            "text/css" => Destination::Style,
            "text/javascript" | "application/javascript" | "application/x-javascript" => Destination::Script,
            _ => return None,
        };
        let charset = charset(&response.fields);
        lock(&self.document).unforeseen(url, destination, &info(response, charset.as_deref()))
    }

    /// What a response that was fetched for `hint` tells of others.
    pub(crate) fn answered(&self, request: &Unasked, status: StatusCode, response: &HeaderMap) {
        self.standing.plan().answered(request, status, response, SystemTime::now());
    }

    /// What was guessed is not sent: if the page names it by itself, it is decided on anew.
    pub(crate) fn forget_guess(&self, request: &Unasked) {
        self.standing.plan().forget_guess(request);
    }

    /// Most bytes that a guess may take.
    pub(crate) fn guess_allowance(&self) -> u64 {
        self.standing.plan().guess_allowance()
    }

    /// Completes when what the guess `hint` may take is set aside for it: whether it is, which it never will be where the page's
    /// budget is spent, and need not be where it is no guess any more.
    pub(crate) async fn begin_guess(&self, hint: &Hint, is_guess: impl Fn() -> bool) -> Room {
        loop {
            // Heard from here on, so that nothing rings unheard in between.
            let mut rings = pin!(self.standing.guesses().notified());
            rings.as_mut().enable();
            if !is_guess() {
                return Room::SetAside;
            }
            match self.standing.plan().begin_guess(hint) {
                Room::SetAside => {}
                room => return room,
            }
            rings.await;
        }
    }

    /// A guess, for which room was left, took this many bytes.
    pub(crate) fn spent_on_guess(&self, hint: &Hint, bytes: u64) {
        self.standing.plan().spent_on_guess(hint, bytes);
        self.guesses_changed();
    }

    /// One that waits may be none any more.
    pub(crate) fn guesses_changed(&self) {
        self.standing.guesses().notify_waiters();
    }
}

/// Makes of a foreseen request what was seen of it: what scripts have said, and whether it told the origin of the page.
/// What others have taught goes without credentials.
fn shape(unasked: &mut Unasked, one: &Foreseen, page: &Url) {
    let fields = &mut unasked.fields;
    for (name, value) in &one.needs.said {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            fields.insert(name, value);
        }
    }
    match one.needs.origin {
        Some(false) => _ = fields.remove(header::ORIGIN),
        Some(true) if !fields.contains_key(header::ORIGIN) => {
            if let Ok(origin) = HeaderValue::from_str(&page.origin().ascii_serialization()) {
                fields.insert(header::ORIGIN, origin);
            }
        }
        _ => {}
    }
    if !one.own {
        fields.remove(header::COOKIE);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is planned is advice: no invariant spans a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
