//! In whose name a document of a page asks, and what is decided about its hints: one plan, one budget and one user for the
//! page and for the documents in its frames.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use farhop_bundle::{Budget, Decision, Load, Noted, Plan, Skip, Unasked, Way, unasked};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::{Destination, Hint, Policy, PolicyKind, ReferrerPolicy, Steps};
use farhop_settings::ground::BundleSettings;
use http::HeaderMap;
use tokio::sync::Notify;
use url::Url;

use super::lock;
use crate::owner::Known;

/// Frames within frames that are read; deeper ones are left to the browser. The page's budget bounds them before that.
pub(super) const DEEPEST: usize = 8;

/// Bytes that a page takes of which nothing is read yet, about.
const PAGE: usize = 32 * 1024;

/// Of one load of a page, shared by the documents in its frames.
struct Visit {
    plan: Mutex<Plan>,
    known: Arc<Known>,
    /// One budget, however many frames.
    matching: Steps,
    /// Bytes that its documents take, about.
    size: AtomicUsize,
    /// Rings when a guess may begin that had to wait: another is over, or it is none any more.
    guesses: Notify,
}

/// A document's standing in its page.
pub(super) struct Standing {
    visit: Arc<Visit>,
    /// `None` for the page's own document, which is the plan's.
    frame: Option<Mutex<Load>>,
    /// The documents around it, the page's own first.
    around: Vec<Url>,
}

impl Standing {
    /// Of the page that `load` is of.
    pub(super) fn page(load: Load, known: &Arc<Known>, matching: Steps, settings: &BundleSettings) -> Self {
        let budget = Budget {
            max_requests: settings.hints as usize,
            max_per_foreign_origin: settings.foreign_hints as usize,
            ..Budget::default()
        };
        let plan = Mutex::new(Plan::new(load, budget));
        let (size, guesses) = (AtomicUsize::new(PAGE), Notify::new());
        let visit = Visit { plan, known: Arc::clone(known), matching, size, guesses };
        Standing { visit: Arc::new(visit), frame: None, around: Vec::new() }
    }

    /// Of the document in a frame of this one. `None` where frames are too deep, and where it has an origin of its own: all
    /// that such a document names is asked for with other fields.
    pub(super) fn frame(&self, request: &RequestHead, response: &ResponseHead) -> Option<Self> {
        if self.around.len() >= DEEPEST {
            return None;
        }
        let url = request.resource()?;
        let load = self.tell(|parent| Load::framed(parent, url, request.fields.clone(), &response.fields));
        if load.is_opaque() {
            return None;
        }
        let mut own = self.url();
        own.set_fragment(None);
        let around = self.around.iter().cloned().chain([own]).collect();
        Some(Standing { visit: Arc::clone(&self.visit), frame: Some(Mutex::new(load)), around })
    }

    /// Nobody knows whether its frame is sandboxed.
    pub(super) fn doubt_origin(&self) {
        if let Some(load) = &self.frame {
            lock(load).doubt_origin();
        }
    }

    /// The page's response is here: its fields hold from now on.
    pub(super) fn answered(&self, request: &RequestHead, response: &ResponseHead, noted: &Noted) {
        let mut plan = self.plan();
        let load = plan.load_mut();
        *load = Load::new(load.url.clone(), request.fields.clone(), &response.fields, noted);
    }

    fn tell<T>(&self, of: impl FnOnce(&Load) -> T) -> T {
        match &self.frame {
            None => of(self.plan().load()),
            Some(load) => of(&lock(load)),
        }
    }

    /// Whether it is in a frame.
    pub(super) fn is_framed(&self) -> bool {
        self.frame.is_some()
    }

    /// Where the document is.
    pub(super) fn url(&self) -> Url {
        self.tell(|load| load.url.clone())
    }

    /// What the document lets others know of it by now, where it says so.
    pub(super) fn referrer_policy(&self) -> Option<ReferrerPolicy> {
        self.tell(|load| load.referrer_policy)
    }

    /// The user's.
    pub(super) fn known(&self) -> &Known {
        &self.visit.known
    }

    /// What is left of the page's budget of matching.
    pub(super) fn matching(&self) -> Steps {
        self.visit.matching.clone()
    }

    /// The page's plan.
    pub(super) fn plan(&self) -> MutexGuard<'_, Plan> {
        lock(&self.visit.plan)
    }

    /// Rings when a guess that waits is to look again.
    pub(super) fn guesses(&self) -> &Notify {
        &self.visit.guesses
    }

    /// The user's browser asked for `url`, whatever was promised: that may show who asks, and in which words.
    pub(super) fn asked(&self, url: &Url, request: &HeaderMap) {
        let known = &self.visit.known;
        let (plan, mut never, mut cookies) = (self.plan(), known.never(), known.cookies());
        plan.asked(url, request, &mut never, &mut cookies, SystemTime::now());
    }

    /// The page takes so many bytes more.
    pub(super) fn weigh(&self, bytes: usize) {
        self.visit.size.fetch_add(bytes, Relaxed);
    }

    /// Bytes that the page takes, about.
    pub(super) fn size(&self) -> usize {
        self.visit.size.load(Relaxed)
    }

    /// What the document's mark-up says for a field of its response holds from now on.
    pub(super) fn obey(&self, policy: &Policy) {
        let say = |load: &mut Load| match policy.kind {
            PolicyKind::Content => load.add_content_policy(&policy.text),
            PolicyKind::Referrer => load.obey_referrer_policy(&policy.text),
            // Only a page in a window may ask for them.
            PolicyKind::ClientHints if self.frame.is_none() => load.ask_client_hints(&policy.text),
            PolicyKind::ClientHints => {}
        };
        match &self.frame {
            None => say(self.plan().load_mut()),
            Some(load) => say(&mut lock(load)),
        }
    }

    /// Where a response leads that answers `request`, to which this way led from what `hint` names.
    pub(super) fn led(
        &self,
        hint: &Hint,
        way: &Way,
        request: &Unasked,
        response: &ResponseHead,
    ) -> Option<(Way, Url)> {
        self.tell(|load| load.led(hint, way, request, response.status, &response.fields))
    }

    /// The request that the browser would send for what `hint` names, if that is known.
    pub(super) fn would_ask(&self, hint: &Hint) -> Option<Unasked> {
        self.tell(|load| {
            let cookies = self.visit.known.cookies();
            unasked(load, hint, &cookies, SystemTime::now()).ok()
        })
    }

    /// Whether the document may fetch what `hint` names from `target`, to which this way led.
    pub(super) fn allows(&self, hint: &Hint, target: &Url, way: &Way) -> bool {
        self.tell(|load| load.allows(hint, target, way))
    }

    /// Decides about `target`, to which this way led from what `hint` names.
    pub(super) fn decide(&self, hint: &Hint, target: &Url, way: &Way) -> Decision {
        // HTML, "process the iframe attributes": no document is loaded within itself (in Chromium once, which is left to it).
        if hint.destination == Destination::Frame && self.around.contains(target) {
            return Decision::Skip(Skip::NotThisBrowser);
        }
        let (mut plan, never, mut cookies) =
            (self.plan(), self.visit.known.never(), self.visit.known.cookies());
        let now = SystemTime::now();
        let decision = match &self.frame {
            None => plan.decide_after(None, hint, target, way, &never, &cookies, now),
            Some(load) => plan.decide_after(Some(&lock(load)), hint, target, way, &never, &cookies, now),
        };
        if decision == Decision::Skip(Skip::UnknownHints) {
            plan.load().awaits_hints(&mut cookies, now);
        }
        if hint.destination == Destination::Frame {
            match &self.frame {
                None => plan.load().names_frame(target, &mut cookies, now),
                Some(load) => lock(load).names_frame(target, &mut cookies, now),
            }
        }
        decision
    }
}
