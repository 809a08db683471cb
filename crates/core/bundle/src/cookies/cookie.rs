//! One cookie as the mirror holds it, and RFC 6265bis's rules about where it belongs.

use super::set_cookie::{SameSite, SetCookie};
use crate::family::Family;
use crate::site::{is_potentially_trustworthy, registrable};
use std::time::{Duration, SystemTime};
use url::{Host, Url};

/// How long a request may still show what was before a response changed it: it was on its way already.
const GRACE: Duration = Duration::from_secs(10);
/// How long requests may overtake each other on their way.
const OVERTAKEN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub(super) struct Cookie {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) domain: String,
    pub(super) host_only: bool,
    pub(super) path: String,
    pub(super) secure: bool,
    pub(super) http_only: bool,
    pub(super) same_site: SameSite,
    pub(super) partitioned: bool,
    pub(super) expires: Option<SystemTime>,
    /// Partition in which it was met, if that was in pages of another site.
    pub(super) partition: Option<String>,
    /// Place in the order of creation.
    pub(super) created: u64,
    /// When a response or a request last changed what is known.
    pub(super) changed: SystemTime,
    /// When a response last did, if one did.
    pub(super) told: Option<SystemTime>,
    /// The value before that, if a response changed it.
    pub(super) before: Option<String>,
    /// Set where only requests have shown it: its attributes are not known. The path of the directory where it was seen.
    pub(super) seen_at: Option<String>,
    /// A request has shown it in the place where it is kept.
    pub(super) confirmed: bool,
}

impl Cookie {
    /// The cookie that a response of `url` sets, if browsers of `family` take it (RFC 6265bis §5.7).
    pub(super) fn set(
        set: SetCookie,
        url: &Url,
        partition: Option<String>,
        family: Family,
        now: SystemTime,
    ) -> Option<Cookie> {
        let host = url.host_str()?;
        let trustworthy = is_potentially_trustworthy(url);
        let (domain, host_only) = match set.domain.as_deref().filter(|domain| !domain.is_empty()) {
            None => (host, true),
            Some(domain) if psl::suffix_str(domain) == Some(domain) => (domain, true),
            Some(domain) => (domain, domain == host && !matches!(url.host(), Some(Host::Domain(_)))),
        };
        if !domain_matches(url, domain) || (host_only && domain != host) || (set.secure && !trustworthy) {
            return None;
        }
        let prefixed = |prefix: &str| {
            set.name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        let of_host = set.secure && set.domain.is_none() && set.path.as_deref() == Some("/");
        // RFC 6265bis §5.7, step 21 and 22, and what Chromium has added to them (recorded).
        let of_http = set.secure && set.http_only || family != Family::Chromium;
        if prefixed("__Secure-") && !set.secure
            || prefixed("__Host-") && !of_host
            || prefixed("__Http-") && !of_http
            || prefixed("__Host-Http-") && !of_http
        {
            return None;
        }
        // CHIPS §2; RFC 6265bis §5.7, step 17, which of the browsers Chromium obeys.
        let insecure_none = set.same_site == SameSite::None && !set.secure && family == Family::Chromium;
        if set.partitioned && !set.secure || insecure_none {
            return None;
        }
        if partition.is_some() && !goes_cross_site(set.same_site, family) {
            return None;
        }
        Some(Cookie {
            domain: domain.to_owned(),
            host_only,
            path: set.path.unwrap_or_else(|| directory(url.path()).to_owned()),
            name: set.name,
            value: set.value,
            secure: set.secure,
            http_only: set.http_only,
            same_site: set.same_site,
            partitioned: set.partitioned,
            expires: set.expires,
            partition,
            created: 0,
            changed: now,
            told: Some(now),
            before: None,
            seen_at: None,
            confirmed: false,
        })
    }

    /// A cookie of which only the sending to `url` is known: taken to be for the whole host, until more is seen.
    pub(super) fn seen(
        name: &str,
        value: &str,
        url: &Url,
        partition: Option<String>,
        now: SystemTime,
    ) -> Self {
        Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: url.host_str().unwrap_or_default().to_owned(),
            host_only: true,
            path: "/".to_owned(),
            secure: is_potentially_trustworthy(url),
            http_only: false,
            same_site: SameSite::Unset,
            partitioned: false,
            expires: None,
            partition,
            created: 0,
            changed: now,
            told: None,
            before: None,
            seen_at: Some(directory(url.path()).to_owned()),
            confirmed: true,
        }
    }

    /// Whether `other` takes the place of this one.
    pub(super) fn is_replaced_by(&self, other: &Cookie) -> bool {
        let same_place =
            self.path == other.path && self.host_only == other.host_only || self.seen_at.is_some();
        self.name == other.name
            && same_place
            && (self.domain == other.domain
                || self.seen_at.is_some() && is_below(&self.domain, &other.domain))
            && self.partition == other.partition
    }

    pub(super) fn is_live(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|at| at > now)
    }

    /// Whether it is of the registrable domain of `url`.
    pub(super) fn is_of_site(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Domain(host)) => is_below(&self.domain, registrable(host).unwrap_or(host)),
            _ => url.host_str() == Some(&self.domain),
        }
    }

    /// Domain, path and `Secure` (RFC 6265bis §5.8.3).
    pub(super) fn is_for(&self, url: &Url) -> bool {
        let domain = if self.host_only {
            url.host_str() == Some(&self.domain)
        } else {
            domain_matches(url, &self.domain)
        };
        domain && path_matches(url.path(), &self.path) && (!self.secure || is_potentially_trustworthy(url))
    }

    /// Whether browsers of `family` may send it with requests of other sites' pages.
    pub(super) fn may_cross(&self, family: Family) -> bool {
        !self.partitioned && (self.seen_at.is_some() || goes_cross_site(self.same_site, family))
    }

    /// A request has shown it as it is by now: the browser knew, and what it sent before is nearly here.
    pub(super) fn settle(&mut self, now: SystemTime) {
        let last = now.checked_sub(GRACE.saturating_sub(OVERTAKEN));
        self.told = self.told.map(|told| last.map_or(told, |last| told.min(last)));
    }

    /// Whether a request sent before the browser knew what a response changed may still arrive.
    pub(super) fn is_settling(&self, now: SystemTime) -> bool {
        self.told.is_some_and(|told| now.duration_since(told).map_or(true, |since| since < GRACE))
    }

    /// Longer paths first, then the older (RFC 6265bis §5.8.3).
    pub(super) fn rank(&self) -> (std::cmp::Reverse<usize>, u64) {
        (std::cmp::Reverse(self.path.len()), self.created)
    }

    pub(super) fn size(&self) -> usize {
        let key =
            self.partition.as_ref().map_or(0, String::len) + self.before.as_ref().map_or(0, String::len);
        self.name.len() + self.value.len() + self.domain.len() + self.path.len() + key
    }
}

/// `SameSite` absent means `Lax` to Chromium alone.
fn goes_cross_site(same_site: SameSite, family: Family) -> bool {
    match same_site {
        SameSite::None => true,
        SameSite::Unset => family != Family::Chromium,
        SameSite::Lax | SameSite::Strict => false,
    }
}

fn domain_matches(url: &Url, domain: &str) -> bool {
    // RFC 6265bis §5.1.3.
    match url.host() {
        Some(Host::Domain(host)) => is_below(host, domain),
        _ => url.host_str() == Some(domain),
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// RFC 6265bis §5.1.4.
pub(super) fn path_matches(path: &str, cookie: &str) -> bool {
    path.strip_prefix(cookie)
        .is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

/// The default path (RFC 6265bis §5.1.4).
fn directory(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}
