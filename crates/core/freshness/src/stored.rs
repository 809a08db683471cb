//! The head of a stored response: what is kept of it, whom it answers, how old and how fresh it is.

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};

use crate::age::current_age;
use crate::directives::ResponseDirectives;
use crate::fields::{date, strip_hop_by_hop};
use crate::lifetime::{is_guess, lifetime};
use crate::vary::{copy, is_alike, nominated, vary_matches};
use crate::{Scope, tags};

/// How much later than its `Last-Modified` a response must have been made for that date to be a strong validator.
const STRONG_AFTER: Duration = Duration::from_secs(60);

/// Head of a stored response, with what of its request decides whether it answers another one.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Status of the response.
    pub status: StatusCode,
    /// Fields of the response, without those of the connection (RFC 9111 §3.1).
    pub fields: HeaderMap,
    /// Those fields of the request that decide: what `Vary` names, and `Cookie` where only a guess says that this is fresh.
    pub nominated: HeaderMap,
    /// When the request was sent.
    pub requested_at: SystemTime,
    /// When the response's head arrived.
    pub received_at: SystemTime,
}

impl Stored {
    /// The head to store; the caller has asked [`crate::storable`] before.
    pub fn new(
        request: &HeaderMap,
        status: StatusCode,
        response: &HeaderMap,
        requested_at: SystemTime,
        received_at: SystemTime,
    ) -> Self {
        let mut fields = response.clone();
        // RFC 9111 §3.1: fields of the connection MUST NOT be stored.
        strip_hop_by_hop(&mut fields);
        date_if_undated(&mut fields, received_at);
        let mut nominated = nominated(&fields, request);
        if is_guess(&fields) {
            copy(&mut nominated, &header::COOKIE, request);
        }
        Stored { status, fields, nominated, requested_at, received_at }
    }

    /// What of it a store of `scope` may keep: a shared one MUST NOT store the fields that `private="…"` names
    /// (RFC 9111 §3.1, §5.2.2.7).
    #[must_use]
    pub fn kept_by(mut self, scope: Scope) -> Self {
        if scope == Scope::Shared {
            let private = ResponseDirectives::of(&self.fields).private_fields;
            private.iter().for_each(|name| drop(self.fields.remove(name)));
        }
        self
    }

    /// Whether the request's fields equal those that `Vary` named when this was stored (RFC 9111 §4.1), and those of
    /// [`is_bound_to_cookies`](Self::is_bound_to_cookies).
    pub fn answers(&self, request: &HeaderMap) -> bool {
        vary_matches(&self.fields, &self.nominated, request)
            && (is_alike(&header::COOKIE, &self.nominated, request) || !self.is_bound_to_cookies())
    }

    /// Whether it answers only requests with the same cookies, or with none where it came for none. Stricter than
    /// RFC 9111 §4.2.2: that a guess makes it fresh says nothing of whom it is for.
    pub fn is_bound_to_cookies(&self) -> bool {
        is_guess(&self.fields)
    }

    /// When the origin made it, as far as is known (RFC 9110 §6.6.1).
    pub fn date(&self) -> SystemTime {
        date(&self.fields, &header::DATE, self.received_at).unwrap_or(self.received_at)
    }

    /// By what it is told how recent it is: of several responses that answer a request, the one with the latest date is to be
    /// used (RFC 9111 §4: MUST). A date after its receipt is an origin's clock that runs ahead, and makes nothing more recent.
    pub fn recency(&self) -> SystemTime {
        self.date().min(self.received_at)
    }

    /// RFC 9111 §4.2.3.
    pub fn age(&self, now: SystemTime) -> Duration {
        current_age(&self.fields, self.requested_at, self.received_at, now)
    }

    /// RFC 9111 §4.2.1, counted like [`Stored::age`].
    pub fn lifetime(&self, scope: Scope) -> Duration {
        lifetime(self.status, &self.fields, scope, self.received_at)
    }

    /// RFC 9111 §4.2: fresh as long as the lifetime exceeds the age.
    pub fn is_fresh(&self, scope: Scope, now: SystemTime) -> bool {
        self.lifetime(scope) > self.age(now)
    }

    /// Whether its `Last-Modified` is a strong validator: it was made a while after (RFC 9110 §8.8.2.2).
    pub(crate) fn has_strong_date(&self) -> bool {
        let modified = date(&self.fields, &header::LAST_MODIFIED, self.received_at);
        let since = |modified| self.date().duration_since(modified).ok();
        modified.and_then(since).is_some_and(|since| since >= STRONG_AFTER)
    }

    /// Whether the condition of a range holds (RFC 9110 §13.1.5): where it fails, the range MUST be ignored.
    pub(crate) fn fits_if_range(&self, request: &HeaderMap) -> bool {
        let Some(condition) = request.get(header::IF_RANGE) else { return true };
        let said = condition.as_bytes().trim_ascii();
        if said.ends_with(b"\"") {
            return tags::of(&self.fields).is_some_and(|own| tags::strongly_equal(own.as_bytes(), said));
        }
        self.has_strong_date() && self.fields.get(header::LAST_MODIFIED) == Some(condition)
    }
}

/// RFC 9110 §6.6.1: a recipient with a clock MUST record when a response without `Date` was received.
pub(crate) fn date_if_undated(fields: &mut HeaderMap, received_at: SystemTime) {
    // A clock before 1970 is wrong anyway, and has no HTTP date.
    let text = httpdate::fmt_http_date(received_at.max(SystemTime::UNIX_EPOCH));
    if let (false, Ok(date)) = (fields.contains_key(header::DATE), HeaderValue::from_str(&text)) {
        fields.insert(header::DATE, date);
    }
}

/// The only request method whose responses are stored.
pub(crate) const STORED_METHOD: Method = Method::GET;
