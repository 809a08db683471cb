//! Heads that the remote writes itself: errors that name the failing side, and answers from the repository.

use std::time::SystemTime;

use bytes::Bytes;
use farhop_events::{ExchangeId, Side};
use farhop_freshness::Stored;
use farhop_front::Head;
use farhop_htotp::frame::{self, Failure};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// Why the user gets an error page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) status: StatusCode,
    pub(crate) side: Side,
    /// RFC 9209 §2.3.
    pub(crate) token: String,
    pub(crate) detail: String,
}

impl Trouble {
    pub(crate) fn new(status: StatusCode, side: Side, token: &str, detail: impl Into<String>) -> Self {
        Trouble { status, side, token: token.into(), detail: detail.into() }
    }

    /// The carrier did not come up in time.
    pub(crate) fn no_carrier() -> Self {
        let detail = "the satellite link is down, and did not come back in time";
        Trouble::new(StatusCode::GATEWAY_TIMEOUT, Side::Link, "destination_unavailable", detail)
    }

    /// The carrier was lost under a request that must not be sent twice.
    pub(crate) fn lost() -> Self {
        let detail = "the satellite link was lost after the request had been sent; it was not sent again, since it may have been carried out";
        Trouble::new(StatusCode::BAD_GATEWAY, Side::Link, "connection_terminated", detail)
    }

    pub(crate) fn from_ground(failure: &Failure) -> Self {
        let status =
            StatusCode::from_u16(failure.status).ok().filter(|s| s.is_client_error() || s.is_server_error());
        let side = match failure.side {
            frame::Side::User => Side::User,
            frame::Side::Link => Side::Link,
            frame::Side::Origin => Side::Origin,
        };
        Trouble::new(status.unwrap_or(StatusCode::BAD_GATEWAY), side, &failure.token, failure.detail.clone())
    }

    /// The page that says so, in words and for programs.
    pub(crate) fn page(&self, exchange: ExchangeId) -> (Head, Bytes) {
        let side = match self.side {
            Side::User => "your program",
            Side::Remote => "Farhop, at this end of the satellite link",
            Side::Link => "the satellite link",
            Side::Ground => "Farhop, at the far end of the satellite link",
            Side::Origin => "the web site, or the way to it",
        };
        let reason = self.status.canonical_reason().unwrap_or("Error");
        let code = self.status.as_u16();
        let detail = escape(&self.detail);
        let text = format!(
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
             <title>{code} {reason}</title>\
             <body style=\"font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;padding:0 1em\">\
             <h1 style=\"font-size:1.4em\">{code} {reason}</h1>\
             <p>{detail}.</p>\
             <p>What failed: <b>{side}</b>.</p>\
             <p style=\"color:#777;font-size:.85em\">Farhop, exchange {exchange}, {token}</p>\n",
            token = escape(&self.token),
        );
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.mark(&mut fields, exchange);
        (Head { status: self.status, fields }, text.into())
    }

    /// Adds `Proxy-Status` (RFC 9209) and `Via`.
    pub(crate) fn mark(&self, fields: &mut HeaderMap, exchange: ExchangeId) {
        let detail: String =
            self.detail.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\')).collect();
        let end =
            if matches!(self.side, Side::Origin | Side::Ground) { "farhop-ground" } else { "farhop-remote" };
        let value = format!("{end}; error={}; details=\"{detail}\"", self.token);
        if let Ok(value) = HeaderValue::from_str(&value) {
            fields.insert(PROXY_STATUS, value);
        }
        via(fields, exchange);
    }
}

/// RFC 9110 §7.6.3; the exchange's id stands in the comment.
pub(crate) fn via(fields: &mut HeaderMap, exchange: ExchangeId) {
    if let Ok(value) = HeaderValue::from_str(&format!("1.1 farhop ({exchange})")) {
        fields.append(VIA, value);
    }
}

/// The head of an answer from the repository.
pub(crate) fn from_repository(stored: &Stored, not_modified: bool) -> Head {
    let fields = stored.answer_fields(SystemTime::now());
    if !not_modified {
        return Head { status: stored.status, fields };
    }
    // RFC 9110 §15.4.5: what a 304 has to carry; the rest describes a body that is not sent.
    let kept = [
        "cache-control",
        "content-location",
        "date",
        "etag",
        "expires",
        "vary",
        "age",
        "via",
        "last-modified",
    ];
    let fields = fields
        .into_iter()
        .scan(None, |last: &mut Option<HeaderName>, (name, value)| {
            // `HeaderMap` names a repeated field once.
            let name = name.or_else(|| last.clone())?;
            *last = Some(name.clone());
            Some((name, value))
        })
        .filter(|(name, _)| kept.contains(&name.as_str()))
        .fold(HeaderMap::new(), |mut fields, (name, value)| {
            fields.append(name, value);
            fields
        });
    Head { status: StatusCode::NOT_MODIFIED, fields }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
