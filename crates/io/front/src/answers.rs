//! What this crate answers by itself: refusals. Shared by both protocols.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderName};
use http::{HeaderMap, HeaderValue};
use std::time::SystemTime;

/// The time of day as RFC 9110 §5.6.7 writes it.
pub(crate) fn date() -> HeaderValue {
    HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::now()))
        .unwrap_or_else(|_| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
}

/// The fields and the text that tell a client that its request can't be understood. `name` is the proxy's.
pub(crate) fn refusal(name: &str, reason: &str) -> (HeaderMap, Bytes) {
    let text = format!("{name}: {reason}\n");
    let mut fields = HeaderMap::new();
    fields.insert(DATE, date());
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    // RFC 9209 §2.3.15: the request could not be understood.
    let cause = format!("{name}; error=http_request_error; details=\"{reason}\"");
    if let Ok(cause) = HeaderValue::try_from(cause) {
        fields.insert(HeaderName::from_static("proxy-status"), cause);
    }
    (fields, text.into())
}
