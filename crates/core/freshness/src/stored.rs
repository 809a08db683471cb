//! The head of a stored response, and what can be asked of it.

use crate::age::current_age;
use crate::fields::{date, is_hop_by_hop, members, strip_hop_by_hop};
use crate::lifetime::{is_guess, lifetime};
use crate::{Scope, conditional};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::time::{Duration, SystemTime};

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

    /// Whether the request's fields equal those that `Vary` named when this was stored (RFC 9111 §4.1), and those of
    /// [`is_bound_to_cookies`](Self::is_bound_to_cookies).
    pub fn answers(&self, request: &HeaderMap) -> bool {
        let cookie = header::COOKIE;
        vary_matches(&self.fields, &self.nominated, request)
            && (!self.is_bound_to_cookies()
                || normalized(&self.nominated, &cookie) == normalized(request, &cookie))
    }

    /// Whether it answers only requests with the same cookies, or with none where it came for none. Stricter than
    /// RFC 9111 §4.2.2: that a guess makes it fresh says nothing of whom it is for.
    pub fn is_bound_to_cookies(&self) -> bool {
        is_guess(&self.fields)
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

    /// The fields with which this response is sent from the store: with `Age` (RFC 9111 §4: MUST generate one).
    pub fn answer_fields(&self, now: SystemTime) -> HeaderMap {
        let mut fields = self.fields.clone();
        fields.insert(header::AGE, HeaderValue::from(self.age(now).as_secs()));
        fields
    }

    /// Adds to `request` the conditions that ask whether this response is still right (RFC 9111 §4.3.1), in place
    /// of any that it had. `false` if this response has no validator, and the request stays as it was.
    pub fn make_conditional(&self, request: &mut HeaderMap) -> bool {
        let tag = self.fields.get(header::ETAG);
        let modified = self
            .fields
            .get(header::LAST_MODIFIED)
            .filter(|_| date(&self.fields, &header::LAST_MODIFIED).is_some());
        if tag.is_none() && modified.is_none() {
            return false;
        }
        conditional::remove_conditions(request);
        // RFC 9111 §4.3.1: MUST send the entity tag if there is one, SHOULD send the date.
        if let Some(tag) = tag {
            request.insert(header::IF_NONE_MATCH, tag.clone());
        }
        if let Some(modified) = modified {
            request.insert(header::IF_MODIFIED_SINCE, modified.clone());
        }
        true
    }

    /// Whether a 304 with these fields is about this response (RFC 9111 §4.3.4).
    pub fn is_freshened_by(&self, not_modified: &HeaderMap) -> bool {
        if let Some(tag) = not_modified.get(header::ETAG) {
            let own = self.fields.get(header::ETAG);
            return own.is_some_and(|own| {
                // A strong validator selects by strong comparison, a weak one by weak comparison.
                if conditional::is_weak(tag) { conditional::weak_equal(own, tag) } else { own == tag }
            });
        }
        if let Some(modified) = not_modified.get(header::LAST_MODIFIED) {
            return self.fields.get(header::LAST_MODIFIED) == Some(modified);
        }
        // No validator in it: it answers the conditions that this response gave.
        true
    }

    /// Takes over the fields of a 304 that [`Stored::is_freshened_by`] accepted (RFC 9111 §3.2).
    pub fn freshen(&mut self, not_modified: &HeaderMap, requested_at: SystemTime, received_at: SystemTime) {
        let mut update = not_modified.clone();
        strip_hop_by_hop(&mut update);
        // An Age or Date of the old response would make the new one look old.
        self.fields.remove(header::AGE);
        self.fields.remove(header::DATE);
        for name in update.keys().filter(|name| !describes_stored_body(name)) {
            self.fields.remove(name);
        }
        for (name, value) in &update {
            if !describes_stored_body(name) {
                self.fields.append(name.clone(), value.clone());
            }
        }
        date_if_undated(&mut self.fields, received_at);
        self.requested_at = requested_at;
        self.received_at = received_at;
    }
}

/// RFC 9110 §6.6.1: a recipient with a clock MUST record when a response without `Date` was received.
fn date_if_undated(fields: &mut HeaderMap, received_at: SystemTime) {
    // A clock before 1970 is wrong anyway, and has no HTTP date.
    let text = httpdate::fmt_http_date(received_at.max(SystemTime::UNIX_EPOCH));
    if let (false, Ok(date)) = (fields.contains_key(header::DATE), HeaderValue::from_str(&text)) {
        fields.insert(header::DATE, date);
    }
}

/// RFC 9111 §3.2: fields of the stored content that a 304 MUST NOT change here.
fn describes_stored_body(name: &HeaderName) -> bool {
    is_hop_by_hop(name)
        || matches!(
            *name,
            header::CONTENT_LENGTH | header::CONTENT_ENCODING | header::CONTENT_RANGE | header::CONTENT_TYPE
        )
}

/// The fields of `request` that the `Vary` of `response` names.
fn nominated(response: &HeaderMap, request: &HeaderMap) -> HeaderMap {
    let mut nominated = HeaderMap::new();
    for name in
        members(response, &header::VARY).filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
    {
        copy(&mut nominated, &name, request);
    }
    nominated
}

/// Lets `to` have the values of this field that `from` has.
fn copy(to: &mut HeaderMap, name: &HeaderName, from: &HeaderMap) {
    to.remove(name);
    for value in from.get_all(name) {
        to.append(name.clone(), value.clone());
    }
}

/// Whether `request` has the same values as `nominated` in every field that the `Vary` of `response` names
/// (RFC 9111 §4.1). `Vary: *` matches nothing.
pub fn vary_matches(response: &HeaderMap, nominated: &HeaderMap, request: &HeaderMap) -> bool {
    response.get_all(header::VARY).iter().all(|value| value.to_str().is_ok())
        && members(response, &header::VARY).all(|name| match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) if name.as_str() != "*" => normalized(nominated, &name) == normalized(request, &name),
            _ => false,
        })
}

/// RFC 9111 §4.1: repeated fields may be combined and blanks around members dropped before comparing.
fn normalized(fields: &HeaderMap, name: &HeaderName) -> Option<Vec<Vec<u8>>> {
    let mut values = fields.get_all(name).iter().peekable();
    values.peek()?;
    Some(
        values
            .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
            .map(|member| member.trim_ascii().to_vec())
            .collect(),
    )
}

/// The only request method whose responses are stored.
pub(crate) const STORED_METHOD: Method = Method::GET;
