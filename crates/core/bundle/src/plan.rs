//! What of a page's hints is fetched unasked: in order, within a budget, and never against the rules.

use crate::family::Family;
use crate::unasked::{Load, Unasked, unasked};
use crate::urgency::{Urgency, urgency};
use farhop_page::{Destination, Hint, Source};
use http::header::{self, HeaderMap};
use std::collections::{HashSet, VecDeque};
use url::Url;

/// How much one page may cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Unasked requests for one page.
    pub max_requests: usize,
    /// Of these, to one origin that is not the page's own.
    pub max_per_foreign_origin: usize,
}

impl Default for Budget {
    /// The median page has 80 requests, one in ten has more than 185 (FINDINGS.md); galleries have several hundred.
    fn default() -> Self {
        Budget { max_requests: 600, max_per_foreign_origin: 200 }
    }
}

/// What happens with one hint.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)] // the large variant is the usual one
pub enum Decision {
    /// Promise and fetch it, at this priority.
    Fetch(Unasked, Urgency),
    /// Leave it to the browser.
    Skip(Skip),
}

/// Why a hint is left to the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// The same request was decided before.
    Duplicate,
    /// The page's budget is used up.
    OverBudget,
    /// The document sets a cookie: what the browser will send next is not known.
    DocumentSetsCookie,
    /// The document was fetched with credentials in `Authorization`; how far they reach is the browser's knowledge.
    Credentials,
    /// An unasked fetch of this URL has set a cookie before.
    SetsCookie,
    /// This browser does not fetch such a hint.
    NotThisBrowser,
}

/// Decisions for one load of one page.
#[derive(Debug)]
pub struct Plan {
    load: Load,
    budget: Budget,
    document_sets_cookie: bool,
    decided: HashSet<(Url, farhop_page::Mode, Destination)>,
    requests: usize,
    foreign: std::collections::HashMap<url::Origin, usize>,
}

impl Plan {
    /// A plan for a page that was answered with `response`.
    pub fn new(load: Load, response: &HeaderMap, budget: Budget) -> Self {
        Plan {
            document_sets_cookie: response.contains_key(header::SET_COOKIE),
            load,
            budget,
            decided: HashSet::new(),
            requests: 0,
            foreign: std::collections::HashMap::new(),
        }
    }

    /// The load that is planned for.
    pub fn load(&self) -> &Load {
        &self.load
    }

    /// Decides about the next hint, in the order they are found.
    pub fn decide(&mut self, hint: &Hint, never: &NeverUnasked) -> Decision {
        match self.check(hint, never) {
            Ok(()) => Decision::Fetch(unasked(&self.load, hint), urgency(hint)),
            Err(skip) => Decision::Skip(skip),
        }
    }

    fn check(&mut self, hint: &Hint, never: &NeverUnasked) -> Result<(), Skip> {
        if self.document_sets_cookie {
            return Err(Skip::DocumentSetsCookie);
        }
        let own = hint.url.origin() == self.load.url.origin();
        if own && self.load.request.contains_key(header::AUTHORIZATION) {
            return Err(Skip::Credentials);
        }
        if !fetches(self.load.family(), hint) {
            return Err(Skip::NotThisBrowser);
        }
        if never.contains(&hint.url) {
            return Err(Skip::SetsCookie);
        }
        if !self.decided.insert((hint.url.clone(), hint.mode, hint.destination)) {
            return Err(Skip::Duplicate);
        }
        if self.requests >= self.budget.max_requests {
            return Err(Skip::OverBudget);
        }
        if !own {
            let used = self.foreign.entry(hint.url.origin()).or_default();
            if *used >= self.budget.max_per_foreign_origin {
                return Err(Skip::OverBudget);
            }
            *used += 1;
        }
        self.requests += 1;
        Ok(())
    }
}

fn fetches(family: Family, hint: &Hint) -> bool {
    let from_field = hint.source == Source::LinkField;
    match (family, hint.destination) {
        // Tools fetch what they are told to; a wrong guess would only cost the link.
        (Family::Unknown, _) => false,
        // Only Firefox obeys stylesheets in Link fields; a preload of a style is obeyed by all and blocks nothing.
        (_, Destination::Style) if from_field && hint.timing == farhop_page::Timing::Blocking => {
            family == Family::Firefox
        }
        (_, Destination::Icon) if from_field => false,
        (_, Destination::Manifest) => family == Family::Chromium && !from_field,
        _ => true,
    }
}

/// URLs that are not fetched unasked again since doing so set a cookie (DESIGN.md). Bounded: the oldest go first.
#[derive(Debug, Default)]
pub struct NeverUnasked {
    urls: HashSet<Url>,
    order: VecDeque<Url>,
    max: usize,
}

impl NeverUnasked {
    /// Remembers at most `max` URLs.
    pub fn new(max: usize) -> Self {
        NeverUnasked { max, ..NeverUnasked::default() }
    }

    /// An unasked fetch of `url` was answered with `response`. Returns whether it is barred from now on.
    pub fn note(&mut self, url: &Url, response: &HeaderMap) -> bool {
        if !response.contains_key(header::SET_COOKIE) {
            return false;
        }
        if self.urls.insert(url.clone()) {
            self.order.push_back(url.clone());
            if self.order.len() > self.max
                && let Some(oldest) = self.order.pop_front()
            {
                self.urls.remove(&oldest);
            }
        }
        true
    }

    /// Whether `url` is barred.
    pub fn contains(&self, url: &Url) -> bool {
        self.urls.contains(url)
    }
}
