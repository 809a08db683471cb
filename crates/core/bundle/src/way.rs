//! The redirects between what a page names and what is asked for in the end (Fetch, "HTTP-redirect fetch"): what a browser
//! remembers of them for the next request.

use crate::redirect::leads_to;
use crate::referrer::{policy_of, referrer};
use crate::site::{Relation, is_same_site};
use crate::unasked::{Load, Unasked};
use farhop_page::{Hint, Mode, ReferrerPolicy};
use http::StatusCode;
use http::header::{self, HeaderMap};
use url::Url;

/// Redirects of one resource that are followed: browsers follow twenty, but hardly a page needs more than one.
const MOST: usize = 5;

/// See the module. Empty where nothing has been redirected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Way {
    /// Each URL that was asked, the first as the page names it, and what its answer said of referrers.
    steps: Vec<(Url, Option<ReferrerPolicy>)>,
}

impl Way {
    /// Whether nothing has been redirected.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// All URLs of the way to `target`, with it.
    pub(crate) fn urls<'a>(&'a self, target: &'a Url) -> impl Iterator<Item = &'a Url> {
        self.steps.iter().map(|(url, _)| url).chain([target])
    }

    /// How `asker` relates to the farthest of them: a request that has been at a stranger's comes from there (Fetch
    /// Metadata, §2.3).
    pub(crate) fn relation(&self, asker: &Url, target: &Url) -> Relation {
        let all = self.urls(target).map(|url| Relation::between(asker, url));
        all.max().unwrap_or(Relation::CrossSite)
    }

    /// Whether a stranger has sent the request on to another one, so that it no longer tells whose it is (Fetch,
    /// "redirect-taint").
    pub(crate) fn is_tainted(&self, origin: &Url, target: &Url) -> bool {
        let next = self.urls(target).skip(1);
        self.urls(target)
            .zip(next)
            .any(|(last, url)| url.origin() != last.origin() && origin.origin() != last.origin())
    }

    /// Whether it leads from a site to another one and back to the first.
    pub(crate) fn returns(&self, target: &Url) -> bool {
        self.steps.iter().any(|(url, _)| !is_same_site(url, target))
    }

    /// What `page` tells `target` of itself: as much as the step before was told, cut by the policy in force by then
    /// (Referrer Policy, §8.2). `policy`: the first, for a step.
    pub(crate) fn referrer(
        &self,
        page: &Url,
        policy: impl Fn(Option<ReferrerPolicy>, &Url) -> ReferrerPolicy,
        target: &Url,
    ) -> Option<String> {
        let (mut told, mut said) = (Some(String::from(page.clone())), None);
        for (url, next) in self.steps.iter().map(|(url, next)| (url, *next)).chain([(target, None)]) {
            let from = Url::parse(&told?).ok()?;
            told = referrer(policy(said, url), &from, url);
            said = next.or(said);
        }
        told
    }
}

impl Load {
    /// Where `request`, made for `hint` after `way`, leads when it is answered so, and the way there. `None` where the
    /// browser goes no further.
    pub fn led(
        &self,
        hint: &Hint,
        way: &Way,
        request: &Unasked,
        status: StatusCode,
        response: &HeaderMap,
    ) -> Option<(Way, Url)> {
        let target = leads_to(&request.url, status, response)?;
        if way.steps.len() >= MOST || target == request.url || !self.may_see(hint, way, request, response) {
            return None;
        }
        let mut way = way.clone();
        way.steps.push((request.url.clone(), policy_of(response)));
        Some((way, target))
    }

    /// Fetch, "CORS check": of a redirect, too.
    fn may_see(&self, hint: &Hint, way: &Way, request: &Unasked, response: &HeaderMap) -> bool {
        let is_cors = !matches!(hint.mode, Mode::NoCors | Mode::SameOrigin);
        if !is_cors || self.relation(way, &request.url) == Relation::SameOrigin {
            return true;
        }
        let allowed = response.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        let told = |name| response.get(name).map(http::HeaderValue::as_bytes);
        match hint.mode {
            Mode::CorsWithCredentials => {
                allowed.is_some()
                    && allowed == request.fields.get(header::ORIGIN)
                    && told(header::ACCESS_CONTROL_ALLOW_CREDENTIALS) == Some(b"true")
            }
            _ => {
                allowed.is_some_and(|value| value == "*" || Some(value) == request.fields.get(header::ORIGIN))
            }
        }
    }
}
