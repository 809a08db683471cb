//! How a browser goes on where the answer to a navigation is a redirect: its next request, made from the one before
//! (Fetch, "HTTP-redirect fetch").

use crate::client_hints::LOW_ENTROPY_HINTS;
use crate::cookies::{CookieVerdict, Cookies, JarId};
use crate::family::Family;
use crate::matching::CONDITIONAL;
use crate::referrer::{policy_of, referrer};
use crate::site::{Relation, is_potentially_trustworthy};
use crate::unasked::{Unasked, codings};
use farhop_page::{ReferrerPolicy, fetchable};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::time::SystemTime;
use url::Url;

/// Longest URL that is followed, in bytes.
const MAX_URL: usize = 8 * 1024;

/// Fetch, "request-body-header name"; and what Chromium leaves out with them.
const OF_CONTENT: [HeaderName; 6] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
    header::ORIGIN,
];

/// A request for a document in a window.
#[derive(Debug, Clone, Copy)]
pub struct Navigation<'a> {
    /// GET, or POST of a form.
    pub method: &'a Method,
    /// Where to.
    pub url: &'a Url,
    /// With which fields.
    pub fields: &'a HeaderMap,
    /// By which browser.
    pub jar: JarId,
}

/// Where a response of `url` leads, if it does (RFC 9110 §15.4): without fragment, and only where a browser goes by
/// itself.
pub fn leads_to(url: &Url, status: StatusCode, fields: &HeaderMap) -> Option<Url> {
    let leads = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let mut locations = fields.get_all(header::LOCATION).iter();
    let location = locations.next().filter(|_| leads)?;
    // Browsers show an error where several differ.
    if locations.any(|other| other != location) {
        return None;
    }
    fetchable(url.join(std::str::from_utf8(location.as_bytes()).ok()?).ok()?, MAX_URL)
}

impl Navigation<'_> {
    /// The GET with which the browser goes on when this is answered so. `None` where it does not, where it is not known
    /// how it would ask, and where asking twice might do harm, since what is known may be wrong.
    pub fn redirected(
        &self,
        status: StatusCode,
        response: &HeaderMap,
        cookies: &Cookies,
        now: SystemTime,
    ) -> Option<Unasked> {
        let family = Family::of(self.fields);
        let target = family.written(leads_to(self.url, status, response)?);
        if family == Family::Unknown || !self.becomes_get(status) || !may_be_asked_twice(self.url, &target) {
            return None;
        }
        // How far credentials reach is the browser's knowledge; a part of one document is none of another.
        if [header::AUTHORIZATION, header::RANGE].iter().any(|name| self.fields.contains_key(name))
            || response.contains_key("clear-site-data")
        {
            return None;
        }
        let mut fields = self.fields.clone();
        if *self.method != Method::GET {
            OF_CONTENT.iter().for_each(|name| drop(fields.remove(name)));
        }
        // They are about what the browser holds of the URL before.
        CONDITIONAL.iter().for_each(|name| drop(fields.remove(name)));
        let site = self.site(&target);
        self.refer(&mut fields, response, &target);
        self.fit_to_transport(&mut fields, family, site, &target, cookies)?;
        if self.url.origin() == target.origin() && asks_for_more_hints(response, &fields) {
            return None;
        }
        // Browsers do not agree whether redirects on the way count: within an origin, what held for the step before does.
        let strict = match site {
            Some(Relation::CrossSite) if self.url.origin() != target.origin() => None,
            Some(Relation::CrossSite) => cookies.showed_strict(self.jar, self.url, self.fields, now),
            _ => Some(true),
        };
        match cookies.for_navigation(self.jar, &target, strict, now) {
            CookieVerdict::Send(Some(cookie)) => _ = fields.insert(header::COOKIE, cookie),
            CookieVerdict::Send(None) => _ = fields.remove(header::COOKIE),
            CookieVerdict::Unsure => return None,
        }
        Some(Unasked { url: target, fields })
    }

    /// Fetch, "HTTP-redirect fetch", step 12.
    fn becomes_get(&self, status: StatusCode) -> bool {
        *self.method == Method::GET || *self.method == Method::POST && matches!(status.as_u16(), 301..=303)
    }

    /// How the page that led here relates to every URL of the way; `None` where none did.
    fn site(&self, target: &Url) -> Option<Relation> {
        let told = self.fields.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        match told {
            Some("none") => None,
            // Who is of the same origin or site as the URL before relates to the target as that does.
            Some(told) => Some(Relation::named(told).max(Relation::between(self.url, target))),
            None => {
                let page = self.referer()?;
                Some(Relation::between(&page, self.url).max(Relation::between(&page, target)))
            }
        }
    }

    fn referer(&self) -> Option<Url> {
        Url::parse(self.fields.get(header::REFERER)?.to_str().ok()?).ok()
    }

    /// `Referer` as the policy has it: the response's (Referrer Policy, §8.2), else as far as the one before shows it.
    /// What was left out or cut there stays so.
    fn refer(&self, fields: &mut HeaderMap, response: &HeaderMap, target: &Url) {
        let Some(page) = self.referer() else { return };
        let is_whole = page.path() != "/" || page.query().is_some();
        let shown = match page.origin() != self.url.origin() && is_whole {
            true => ReferrerPolicy::NoReferrerWhenDowngrade,
            false => ReferrerPolicy::default(),
        };
        let referer = referrer(policy_of(response).unwrap_or(shown), &page, target);
        match referer.and_then(|text| HeaderValue::try_from(text).ok()) {
            Some(referer) => _ = fields.insert(header::REFERER, referer),
            None => _ = fields.remove(header::REFERER),
        }
    }

    /// Codings, client hints and `Sec-Fetch-*` as browsers send them to a target like this; `None` where they would send
    /// what is not known.
    fn fit_to_transport(
        &self,
        fields: &mut HeaderMap,
        family: Family,
        site: Option<Relation>,
        target: &Url,
        cookies: &Cookies,
    ) -> Option<()> {
        let (was, is) = (is_potentially_trustworthy(self.url), is_potentially_trustworthy(target));
        if was != is && fields.contains_key(header::ACCEPT_ENCODING) {
            fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(codings(family, is)));
        }
        if !is {
            remove(fields, |name| name.starts_with("sec-fetch-") || name.starts_with("sec-ch-"));
            return Some(());
        }
        if !was {
            // A request over plain HTTP shows nothing of what goes with others.
            let hints = cookies.client_hints(self.jar);
            if family == Family::Chromium && hints.is_empty() {
                return None;
            }
            fields.extend(hints.iter().cloned());
            for (name, value) in
                [("sec-fetch-mode", "navigate"), ("sec-fetch-user", "?1"), ("sec-fetch-dest", "document")]
            {
                fields.insert(name, HeaderValue::from_static(value));
            }
        } else if self.url.origin() != target.origin() {
            // The others were asked for by the origin before.
            remove(fields, |name| name.starts_with("sec-ch-") && !LOW_ENTROPY_HINTS.contains(&name));
        }
        if fields.contains_key("sec-fetch-dest") {
            let site = site.map_or("none", Relation::as_str);
            fields.insert("sec-fetch-site", HeaderValue::from_static(site));
        }
        Some(())
    }
}

/// What another origin says in a query may be for one use only (a code, a ticket), and a browser that asks with other
/// fields than foreseen would find it used up.
fn may_be_asked_twice(url: &Url, target: &Url) -> bool {
    url.origin() == target.origin() || target.query().is_none() || target.query() == url.query()
}

/// Client Hints Infrastructure, §4.1: from now on the browser sends more to this origin.
fn asks_for_more_hints(response: &HeaderMap, fields: &HeaderMap) -> bool {
    let asked = response.get_all("accept-ch").iter().filter_map(|value| value.to_str().ok());
    let names = asked.flat_map(|list| list.split(',')).map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .any(|name| fields.contains_key("sec-ch-ua") && !fields.contains_key(&*name.to_ascii_lowercase()))
}

fn remove(fields: &mut HeaderMap, which: impl Fn(&str) -> bool) {
    let names: Vec<HeaderName> = fields.keys().filter(|name| which(name.as_str())).cloned().collect();
    names.iter().for_each(|name| drop(fields.remove(name)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_where_browsers_go_by_themselves() {
        let url = Url::parse("http://site.test/dir/a").unwrap();
        let leads = |status: u16, location: &str| {
            let mut fields = HeaderMap::new();
            fields.insert(header::LOCATION, HeaderValue::from_bytes(location.as_bytes()).unwrap());
            leads_to(&url, StatusCode::from_u16(status).unwrap(), &fields).map(String::from)
        };
        assert_eq!(leads(302, "b#f"), Some("http://site.test/dir/b".into()));
        assert_eq!(leads(301, "//cdn.test/"), Some("http://cdn.test/".into()));
        assert_eq!(leads(308, "ü?ü"), Some("http://site.test/dir/%C3%BC?%C3%BC".into()));
        for nowhere in
            ["data:,x", "mailto:a@b", "javascript:x()", "http://", "http://u:p@site.test/", "//site.test:25/"]
        {
            assert_eq!(leads(302, nowhere), None, "{nowhere}");
        }
        for status in [201, 300, 304, 200] {
            assert_eq!(leads(status, "b"), None, "{status}");
        }
        let mut two = HeaderMap::new();
        two.append(header::LOCATION, "/a".parse().unwrap());
        two.append(header::LOCATION, "/b".parse().unwrap());
        assert_eq!(leads_to(&url, StatusCode::FOUND, &two), None, "which of them is anyone's guess");
    }
}
