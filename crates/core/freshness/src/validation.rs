//! Asking the origin whether a stored response is still right, and taking in what it says (RFC 9111 §3.2, §4.3).

use std::time::SystemTime;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::fields::{date, is_hop_by_hop, strip_hop_by_hop};
use crate::partial::Part;
use crate::precondition::{is_for_origin, is_listed};
use crate::stored::{Stored, date_if_undated};
use crate::{tags, vary};

/// What a 304 means to a stored response and to the client whose request was sent with its validators.
#[derive(Debug, Clone)]
pub enum Validated {
    /// The stored response is right, and is this from now on: it answers the client, whose own conditions are to be
    /// evaluated against it.
    Stored(Box<Stored>),
    /// What the client holds itself is right, and the stored response is not: the 304 is the client's.
    Client,
    /// It cannot be told what is right: the client's request has to be sent as it came.
    Neither,
}

impl Stored {
    /// Adds to `request` the conditions that ask whether this response is still right (RFC 9111 §4.3.1). Of what the client
    /// asks for itself, entity tags stay beside (§4.3.2), and a date gives way. `false` if the request cannot be used so:
    /// this response has no validator that goes with the client's, and the request stays as it was.
    pub fn make_conditional(&self, request: &mut HeaderMap) -> bool {
        let tag = tags::of(&self.fields);
        let is_dated = date(&self.fields, &header::LAST_MODIFIED, self.received_at).is_some();
        let modified = self.fields.get(header::LAST_MODIFIED).filter(|_| is_dated);
        let asks_tags = request.contains_key(header::IF_NONE_MATCH);
        // Beside If-None-Match a date is ignored (RFC 9110 §13.1.3): ours would not be heard.
        if is_for_origin(request) || (tag.is_none() && (asks_tags || modified.is_none())) {
            return false;
        }
        // RFC 9110 §13.1.5: without Range it means nothing. Where there is one, a 304 goes before (§13.2.2).
        if !request.contains_key(header::RANGE) {
            request.remove(header::IF_RANGE);
        }
        request.remove(header::IF_MODIFIED_SINCE);
        // RFC 9111 §4.3.1: MUST send the entity tag if there is one, SHOULD send the date.
        if let Some(tag) = tag.filter(|tag| !is_listed(request, Some(tag.as_bytes()))) {
            // In one field: not every origin reads several as one list.
            let listed = tags::listed(request, &header::IF_NONE_MATCH).chain([tag.as_bytes()]);
            let list = HeaderValue::from_bytes(&listed.collect::<Vec<_>>().join(&b", "[..]));
            request.insert(header::IF_NONE_MATCH, list.unwrap_or_else(|_| tag.clone()));
        }
        if let Some(modified) = modified.filter(|_| !asks_tags) {
            request.insert(header::IF_MODIFIED_SINCE, modified.clone());
        }
        true
    }

    /// What a 304 means that answers `request`, a client's, as it was sent with what [`make_conditional`](Self::make_conditional)
    /// added to it at `requested_at`.
    pub fn validated_by(
        &self,
        request: &HeaderMap,
        not_modified: &HeaderMap,
        requested_at: SystemTime,
        received_at: SystemTime,
    ) -> Validated {
        let told = tags::of(not_modified).map(|tag| tag.as_bytes());
        // Without a tag in it, a 304 to several tags may be about any of them.
        let own = tags::of(&self.fields).map(|tag| tag.as_bytes());
        let is_other = |listed: &[u8]| !own.is_some_and(|own| tags::weakly_equal(listed, own));
        let is_clear = told.is_some() || !tags::listed(request, &header::IF_NONE_MATCH).any(is_other);
        if is_clear && self.is_freshened_by(not_modified) {
            let mut fresh = self.clone();
            fresh.freshen(request, not_modified, requested_at, received_at);
            return Validated::Stored(Box::new(fresh));
        }
        // RFC 9111 §4.3.2: a tag that the client did not list is not its own.
        match told {
            Some(told) if is_listed(request, Some(told)) => Validated::Client,
            _ => Validated::Neither,
        }
    }

    /// Whether a 304 with these fields is about this response (RFC 9111 §4.3.4).
    pub fn is_freshened_by(&self, not_modified: &HeaderMap) -> bool {
        if let Some(tag) = tags::of(not_modified) {
            return tags::of(&self.fields).is_some_and(|own| {
                let (own, tag) = (own.as_bytes(), tag.as_bytes());
                // A strong validator selects by strong comparison, a weak one by weak comparison.
                if tags::is_weak(tag) {
                    tags::weakly_equal(own, tag)
                } else {
                    own.trim_ascii() == tag.trim_ascii()
                }
            });
        }
        if let Some(modified) = not_modified.get(header::LAST_MODIFIED) {
            return self.fields.get(header::LAST_MODIFIED) == Some(modified);
        }
        // No validator in it: it answers the conditions that this response gave.
        true
    }

    /// Whether a 304 names this response by a strong validator: it is about every response that has it and answers the same
    /// request, whichever of them the origin was asked about, and MUST update all of these (RFC 9111 §4.3.4).
    pub fn is_named_by(&self, not_modified: &HeaderMap) -> bool {
        if let Some(told) = tags::of(not_modified) {
            return tags::of(&self.fields)
                .is_some_and(|own| tags::strongly_equal(own.as_bytes(), told.as_bytes()));
        }
        // Of one time there may be several with tags of their own.
        let told = not_modified.get(header::LAST_MODIFIED).filter(|_| tags::of(&self.fields).is_none());
        told.is_some() && self.has_strong_date() && self.fields.get(header::LAST_MODIFIED) == told
    }

    /// Takes over the fields of a 304 to `request` that [`Stored::is_freshened_by`] accepted (RFC 9111 §3.2, §4.3.4).
    pub fn freshen(
        &mut self,
        request: &HeaderMap,
        not_modified: &HeaderMap,
        requested_at: SystemTime,
        received_at: SystemTime,
    ) {
        let was_bound = (self.is_bound_to_cookies(), self.is_bound_to_origin());
        let mut update = not_modified.clone();
        // RFC 9111 §3.1: fields of the connection MUST NOT be stored.
        strip_hop_by_hop(&mut update);
        // An Age or Date of the old response would make the new one look old.
        self.fields.remove(header::AGE);
        self.fields.remove(header::DATE);
        // RFC 9111 §3.2: MUST add each field, replacing what is there.
        update
            .keys()
            .filter(|name| !describes_stored_body(name))
            .for_each(|name| drop(self.fields.remove(name)));
        for (name, value) in update.iter().filter(|(name, _)| !describes_stored_body(name)) {
            self.fields.append(name.clone(), value.clone());
        }
        date_if_undated(&mut self.fields, received_at);
        // It has been found right for this request: what it varies by anew is as it is here.
        for name in vary::named(&update) {
            vary::copy(&mut self.nominated, &name, request);
        }
        // So it is for these cookies, if nothing says any more how long it is fresh.
        if !was_bound.0 && self.is_bound_to_cookies() {
            vary::copy(&mut self.nominated, &header::COOKIE, request);
        }
        // And for the origin of this page, if it is not the same for all any more.
        if !was_bound.1 && self.is_bound_to_origin() {
            vary::copy(&mut self.nominated, &header::ORIGIN, request);
        }
        self.requested_at = requested_at;
        self.received_at = received_at;
    }

    /// Whether the fields of a 200 to HEAD are those of this response, whose body has `length` bytes: then they freshen it,
    /// else it is to be considered stale (RFC 9111 §4.3.5).
    pub fn is_described_by(&self, head: &HeaderMap, length: Option<u64>) -> bool {
        let modified = head.get(header::LAST_MODIFIED);
        let is_as_modified = modified.is_none_or(|told| self.fields.get(header::LAST_MODIFIED) == Some(told));
        let is_tagged = tags::of(head).is_none_or(|told| {
            let own = tags::of(&self.fields).map(|own| own.as_bytes());
            own.is_some_and(|own| tags::weakly_equal(own, told.as_bytes()))
        });
        let said =
            head.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let has_length = |said| length.is_none_or(|length| length == said);
        is_tagged && is_as_modified && said.is_none_or(has_length)
    }

    /// Whether what the origin has answered since, at `received_at`, to a GET that this response answers, too, is about another
    /// representation: then this one is not current, however fresh (RFC 9111 §3.4, §4.3.3, §4.3.4). Where both have entity tags,
    /// these decide, compared weakly (RFC 9110 §13.1.2), else the dates of modification and, of a part, how much there is in all.
    pub fn is_contradicted_by(&self, status: StatusCode, told: &HeaderMap, received_at: SystemTime) -> bool {
        let is_success = matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT);
        if !is_success && status != StatusCode::NOT_MODIFIED {
            return false;
        }
        // RFC 9111 §4: the later one by its Date counts. A cache on the way may have answered with what is older. Of what came
        // later than now the date says nothing: the clock has been set back.
        let told_at = date(told, &header::DATE, received_at).unwrap_or(received_at).min(received_at);
        if told_at < self.recency() && self.received_at <= received_at {
            return false;
        }
        if self.status != StatusCode::OK {
            return is_success;
        }
        if let (Some(own), Some(told)) = (tags::of(&self.fields), tags::of(told)) {
            return !tags::weakly_equal(own.as_bytes(), told.as_bytes());
        }
        let modified = |fields: &HeaderMap| fields.get(header::LAST_MODIFIED).cloned();
        let differ = |own: Option<HeaderValue>, told: Option<HeaderValue>| matches!((own, told), (Some(own), Some(told)) if own != told);
        let length = |fields: &HeaderMap| fields.get(header::CONTENT_LENGTH).cloned();
        let complete = Part::of(status, told).map(|part| HeaderValue::from(part.complete));
        differ(modified(&self.fields), modified(told)) || differ(length(&self.fields), complete)
    }
}

/// RFC 9111 §3.2: fields of the stored content that an update MUST NOT (Content-Length) or MAY not change: the body stays coded as
/// it is, and a part where it lies. What the body is of (Content-Type) the origin may say anew.
fn describes_stored_body(name: &HeaderName) -> bool {
    is_hop_by_hop(name)
        || matches!(*name, header::CONTENT_LENGTH | header::CONTENT_ENCODING | header::CONTENT_RANGE)
}
