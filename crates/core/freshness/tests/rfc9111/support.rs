//! Requests, responses and times in few words.

use farhop_freshness::*;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MONDAY: u64 = 1_773_648_000; // Mon, 16 Mar 2026 08:00:00 GMT

/// So many seconds after the time to which all others here are relative.
pub(crate) fn at(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(MONDAY.checked_add_signed(seconds).unwrap())
}

pub(crate) fn date(seconds: i64) -> String {
    httpdate::fmt_http_date(at(seconds))
}

pub(crate) fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        })
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

pub(crate) fn may_store(
    request: &[(&str, &str)],
    status: u16,
    response: &[(&str, &str)],
    scope: Scope,
) -> Result<(), NotStorable> {
    storable(&Method::GET, &fields(request), StatusCode::from_u16(status).unwrap(), &fields(response), scope)
}

/// A 200 received at 0 with these fields.
pub(crate) fn stored(response: &[(&str, &str)]) -> Stored {
    stored_for(&[], response)
}

/// The same for a request with these.
pub(crate) fn stored_for(request: &[(&str, &str)], response: &[(&str, &str)]) -> Stored {
    Stored::new(&fields(request), StatusCode::OK, &fields(response), at(0), at(0))
}

/// The same with this status.
pub(crate) fn stored_as(status: u16, response: &[(&str, &str)]) -> Stored {
    Stored { status: StatusCode::from_u16(status).unwrap(), ..stored(response) }
}

/// A shared cache's verdict on a GET.
pub(crate) fn verdict(stored: &Stored, request: &[(&str, &str)], now: i64) -> Verdict {
    stored.verdict(&Method::GET, &fields(request), Scope::Shared, at(now))
}

pub(crate) fn why(verdict: Verdict) -> Option<Why> {
    match verdict {
        Verdict::Validate { why, .. } => Some(why),
        _ => None,
    }
}

pub(crate) fn fallback(verdict: Verdict) -> Option<Fallback> {
    match verdict {
        Verdict::Validate { fallback, .. } => Some(fallback),
        _ => None,
    }
}

/// The fields with which it is sent from the store.
pub(crate) fn sent(stored: &Stored, reply: &Reply, now: i64) -> (u16, HeaderMap) {
    let (status, fields) = stored.reply_head(reply, Validation::None, at(now));
    (status.as_u16(), fields)
}
