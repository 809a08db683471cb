//! What ground makes of a page: its documents as they are read, and what is decided about everything they name. It
//! fetches and promises nothing, so that a plan can also be made without a carrier (`explain`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use farhop_bundle::{Budget, Decision, Load, Noted, Plan, Unasked};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::{Document, Hint, Options, ReferrerPolicy, ResourceId, ResourceInfo};
use farhop_settings::ground::BundleSettings;
use http::{HeaderMap, StatusCode, header};
use url::Url;

use crate::owner::Known;
use crate::treatment::charset;

/// Frames within frames that are read; deeper ones are left to the browser.
const DEEPEST: u8 = 2;

/// What was decided about a hint.
#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) hint: Hint,
    pub(crate) decision: Decision,
}

/// Of one load of a page, shared by the documents in its frames: one budget, one user.
struct Visit {
    plan: Mutex<Plan>,
    known: Arc<Known>,
}

/// One document of the page. The streams of everything that is read for it share it.
pub(crate) struct Reading {
    visit: Arc<Visit>,
    document: Mutex<Document>,
    /// `None` for the page's own document, which is the plan's.
    frame: Option<Mutex<Load>>,
    /// Frames around it.
    depth: u8,
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
        let url = Url::parse(&request.url()).ok()?;
        let document = document(&url, request, response, true);
        let load = Load::new(url, request.fields.clone(), &response.fields, noted);
        let budget = Budget { max_requests: settings.hints as usize, ..Budget::default() };
        let visit = Visit { plan: Mutex::new(Plan::new(load, budget)), known: Arc::clone(known) };
        Some(Reading { visit: Arc::new(visit), document, frame: None, depth: 0 })
    }

    /// Of a document in a frame of this one; `None` where frames are too deep.
    pub(crate) fn frame(&self, request: &RequestHead, response: &ResponseHead) -> Option<Reading> {
        let url = Url::parse(&request.url()).ok().filter(|_| self.depth < DEEPEST)?;
        let document = document(&url, request, response, false);
        let framed = |parent: &Load| Load::framed(parent, url, request.fields.clone(), &response.fields);
        let load = match &self.frame {
            None => framed(lock(&self.visit.plan).load()),
            Some(parent) => framed(&lock(parent)),
        };
        let visit = Arc::clone(&self.visit);
        Some(Reading { visit, document, frame: Some(Mutex::new(load)), depth: self.depth + 1 })
    }

    /// Reads on, and decides about what that finds.
    pub(crate) fn read(&self, on: impl FnOnce(&mut Document) -> Vec<Hint>) -> Vec<Decided> {
        let mut document = lock(&self.document);
        let mut hints = VecDeque::from(on(&mut document));
        self.obey(&document.policies());
        let mut all = Vec::new();
        while let Some(hint) = hints.pop_front() {
            let decision = self.decide(&hint);
            if let Decision::Skip(_) = decision {
                hints.extend(document.resource_lost(&hint));
            }
            all.push(Decided { hint, decision });
        }
        all
    }

    /// What the hint names will not be read: decides about what had waited for it.
    pub(crate) fn lost(&self, hint: &Hint) -> Vec<Decided> {
        self.read(|document| document.resource_lost(hint))
    }

    /// Decides about what `hint` named after all: it leads to `target`.
    pub(crate) fn redirected(&self, hint: &Hint, target: Url) -> Vec<Decided> {
        let decision = self.decide(&Hint { url: target, ..hint.clone() });
        if let Decision::Skip(_) = decision {
            return self.lost(hint);
        }
        vec![Decided { hint: hint.clone(), decision }]
    }

    /// What `hint` named answers at `url`. `None` if there is nothing to read in it.
    pub(crate) fn begin(&self, hint: &Hint, url: &Url, response: &ResponseHead) -> Option<ResourceId> {
        let charset = charset(&response.fields);
        let policies = response.fields.get_all(header::REFERRER_POLICY).into_iter();
        let tokens = policies.filter_map(|value| value.to_str().ok());
        let info = ResourceInfo {
            charset: charset.as_deref(),
            referrer_policy: tokens.filter_map(ReferrerPolicy::from_field).next_back(),
        };
        lock(&self.document).resource_begins(hint, url, &info)
    }

    /// What a response that was fetched for `hint` tells of others.
    pub(crate) fn answered(&self, request: &Unasked, status: StatusCode, response: &HeaderMap) {
        lock(&self.visit.plan).answered(request, status, response, SystemTime::now());
    }

    /// A guess took this many bytes.
    pub(crate) fn spent_on_guess(&self, bytes: u64) {
        lock(&self.visit.plan).spent_on_guess(bytes);
    }

    fn obey(&self, policies: &[String]) {
        for policy in policies {
            match &self.frame {
                None => lock(&self.visit.plan).load_mut().add_content_policy(policy),
                Some(load) => lock(load).add_content_policy(policy),
            }
        }
    }

    fn decide(&self, hint: &Hint) -> Decision {
        let (mut plan, never, cookies) =
            (lock(&self.visit.plan), self.visit.known.never(), self.visit.known.cookies());
        let now = SystemTime::now();
        match &self.frame {
            None => plan.decide(hint, &never, &cookies, now),
            Some(load) => plan.decide_framed(&lock(load), hint, &never, &cookies, now),
        }
    }
}

fn document(url: &Url, request: &RequestHead, response: &ResponseHead, top: bool) -> Mutex<Document> {
    let accept = request.fields.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let jpeg_xl = accept.is_some_and(|accept| accept.contains("image/jxl"));
    let options = Options { jpeg_xl, default_icon: top, ..Options::default() };
    Mutex::new(Document::new(url, charset(&response.fields).as_deref(), options))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is planned is advice: no invariant spans a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
