//! The conditions that a client's request comes with, as a cache answers them (RFC 9110 §13, RFC 9111 §4.3.2).

use http::StatusCode;
use http::header::{self, HeaderMap};

use crate::fields::date;
use crate::stored::Stored;
use crate::tags;

/// What the conditions of a client's request make of a stored response that is fit to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Answer as if there were none.
    Holds,
    /// Answer 304.
    NotModified,
    /// The condition is for the origin alone (`If-Match`, `If-Unmodified-Since`): ask it.
    ForOrigin,
}

/// Evaluates the conditions of `request` (GET or HEAD) against `stored`. `If-Range` is the word of [`Stored::reply`].
pub fn evaluate(request: &HeaderMap, stored: &Stored) -> Precondition {
    // RFC 9111 §4.3.2: a cache MUST NOT evaluate conditions that only an origin can.
    if is_for_origin(request) {
        return Precondition::ForOrigin;
    }
    // RFC 9110 §13.1.2 is about a 2xx; other stored statuses answer as they are (§13.2.1).
    if stored.status != StatusCode::OK {
        return Precondition::Holds;
    }
    if request.contains_key(header::IF_NONE_MATCH) {
        // RFC 9110 §13.1.3: If-Modified-Since MUST be ignored beside it.
        let is_listed = is_listed(request, tags::of(&stored.fields).map(|tag| tag.as_bytes()));
        return if is_listed { Precondition::NotModified } else { Precondition::Holds };
    }
    // RFC 9110 §13.1.3: what is no date MUST be ignored.
    let Some(since) = date(request, &header::IF_MODIFIED_SINCE, stored.received_at) else {
        return Precondition::Holds;
    };
    // RFC 9111 §4.3.2: Last-Modified, else Date, else the time of receipt.
    let modified = date(&stored.fields, &header::LAST_MODIFIED, stored.received_at).unwrap_or(stored.date());
    if modified <= since { Precondition::NotModified } else { Precondition::Holds }
}

/// Whether a request has conditions that MUST be left to the origin (RFC 9111 §4.3.2).
pub(crate) fn is_for_origin(request: &HeaderMap) -> bool {
    request.contains_key(header::IF_MATCH) || request.contains_key(header::IF_UNMODIFIED_SINCE)
}

/// Whether the `If-None-Match` of `request` lists this tag, or any (RFC 9110 §13.1.2: weak comparison).
pub(crate) fn is_listed(request: &HeaderMap, tag: Option<&[u8]>) -> bool {
    tags::listed(request, &header::IF_NONE_MATCH)
        .any(|listed| listed == b"*" || tag.is_some_and(|tag| tags::weakly_equal(listed, tag)))
}
