//! Entity tags and conditional requests, as a store answers them (RFC 9110 §13, RFC 9111 §4.3.2).

use crate::fields::date;
use crate::stored::Stored;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

/// What the conditions of a client's request make of a stored response that is fit to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// Answer in full.
    Holds,
    /// Answer 304.
    NotModified,
    /// The condition is for the origin alone (`If-Match`, `If-Unmodified-Since`): ask it.
    ForOrigin,
}

/// Evaluates the conditions of `request` (GET or HEAD) against `stored`.
pub fn evaluate(request: &HeaderMap, stored: &Stored) -> Precondition {
    // RFC 9111 §4.3.2: not applicable to caches, and MUST be left to the origin.
    if request.contains_key(header::IF_MATCH) || request.contains_key(header::IF_UNMODIFIED_SINCE) {
        return Precondition::ForOrigin;
    }
    // RFC 9110 §13.1.2 is about a 2xx; other stored statuses answer as they are (§13.2.1).
    if stored.status != StatusCode::OK {
        return Precondition::Holds;
    }
    if request.contains_key(header::IF_NONE_MATCH) {
        // RFC 9110 §13.1.3: If-Modified-Since MUST be ignored beside it.
        let listed = request.get_all(header::IF_NONE_MATCH).iter().any(|list| lists(list, &stored.fields));
        return if listed { Precondition::NotModified } else { Precondition::Holds };
    }
    let Some(since) = date(request, &header::IF_MODIFIED_SINCE) else { return Precondition::Holds };
    // RFC 9111 §4.3.2: Last-Modified, else Date, else the time of receipt.
    let modified = date(&stored.fields, &header::LAST_MODIFIED)
        .or_else(|| date(&stored.fields, &header::DATE))
        .unwrap_or(stored.received_at);
    if modified <= since { Precondition::NotModified } else { Precondition::Holds }
}

fn lists(list: &HeaderValue, fields: &HeaderMap) -> bool {
    if list.as_bytes().trim_ascii() == b"*" {
        return true;
    }
    let Some(own) = fields.get(header::ETAG) else { return false };
    tags(list.as_bytes()).any(|tag| opaque(tag) == opaque(own.as_bytes()))
}

/// The entity tags of a list; a comma may stand inside a tag.
fn tags(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let start = list.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        list = &list[start..];
        let open = list
            .iter()
            .position(|&byte| byte == b'"')
            .filter(|&open| open == 0 || (open == 2 && list.starts_with(b"W/")));
        let end = match open {
            Some(open) => list[open + 1..]
                .iter()
                .position(|&byte| byte == b'"')
                .map_or(list.len(), |end| open + end + 2),
            None => list.iter().position(|&byte| byte == b',').unwrap_or(list.len()),
        };
        let (tag, rest) = list.split_at(end);
        list = rest;
        Some(tag.trim_ascii())
    })
}

fn opaque(tag: &[u8]) -> &[u8] {
    let tag = tag.trim_ascii();
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

pub(crate) fn is_weak(tag: &HeaderValue) -> bool {
    tag.as_bytes().starts_with(b"W/")
}

/// RFC 9110 §8.8.3.2, weak comparison.
pub(crate) fn weak_equal(a: &HeaderValue, b: &HeaderValue) -> bool {
    opaque(a.as_bytes()) == opaque(b.as_bytes())
}

pub(crate) fn remove_conditions(request: &mut HeaderMap) {
    for name in [
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
        header::IF_RANGE,
    ] {
        request.remove(name);
    }
}
