//! Browsers ask whether what they hold has changed; promises are of the whole answer. Here the one is told by the other.

use farhop_freshness::{Precondition, Stored, evaluate, strip_hop_by_hop};
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName};
use std::time::SystemTime;

/// Fields about the content of a 200, which a 304 does not have (RFC 9110 §15.4.5: no other representation metadata). All
/// others stay: the validators, what updates caches, and what the origin says beside, as cookies, permissions, policies.
const OF_CONTENT: [HeaderName; 12] = [
    header::ACCEPT_RANGES,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("farhop-image"),
    HeaderName::from_static("repr-digest"),
];

/// The fields of the 304 that a promised response, which came at `now`, makes of a request with `If-None-Match` or
/// `If-Modified-Since`; `None` where it is to be sent as it is.
pub fn not_modified(
    request: &HeaderMap,
    status: StatusCode,
    response: &HeaderMap,
    now: SystemTime,
) -> Option<HeaderMap> {
    let stored = Stored::new(request, status, response, now, now);
    // RFC 9110 §13.2.2, RFC 9111 §4.3.2; §13.2.1: no condition matters where the answer is no 200.
    if evaluate(request, &stored) != Precondition::NotModified {
        return None;
    }
    // Stricter than RFC 9110 §13.1.3, which takes any older date, and the date of receipt where there is none: a site that goes
    // back to an older file is not unchanged, and many origins compare as here.
    let dated = || request.get(header::IF_MODIFIED_SINCE) == response.get(header::LAST_MODIFIED);
    if !request.contains_key(header::IF_NONE_MATCH) && !dated() {
        return None;
    }
    let mut fields = stored.fields;
    OF_CONTENT.iter().for_each(|name| drop(fields.remove(name)));
    strip_hop_by_hop(&mut fields);
    Some(fields)
}
