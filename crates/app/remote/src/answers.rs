//! Heads that the remote writes itself: errors that name the failing side, and answers from the repository.

use std::time::SystemTime;

use bytes::Bytes;
use farhop_events::{Crossing, ExchangeId, Side};
use farhop_freshness::{Forward, Handling, Reply, Stored, Validation};
use farhop_front::Head;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{self, Failure};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, VIA};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The proxy error types that there are (RFC 9209 §2.3).
const REGISTERED: [&str; 32] = [
    "dns_timeout",
    "dns_error",
    "destination_not_found",
    "destination_unavailable",
    "destination_ip_prohibited",
    "destination_ip_unroutable",
    "connection_refused",
    "connection_terminated",
    "connection_timeout",
    "connection_read_timeout",
    "connection_write_timeout",
    "connection_limit_reached",
    "tls_protocol_error",
    "tls_certificate_error",
    "tls_alert_received",
    "http_request_error",
    "http_request_denied",
    "http_response_incomplete",
    "http_response_header_section_size",
    "http_response_header_size",
    "http_response_body_size",
    "http_response_trailer_section_size",
    "http_response_trailer_size",
    "http_response_transfer_coding",
    "http_response_content_coding",
    "http_response_timeout",
    "http_upgrade_failed",
    "http_protocol_error",
    "proxy_internal_response",
    "proxy_internal_error",
    "proxy_configuration_error",
    "proxy_loop_detected",
];

/// What ground says in words of its own, since more follows from it here than from the type that stands for it.
const OURS: [(&str, &str); 4] = [
    ("not_http", "http_protocol_error"),
    ("client_certificate_wanted", "tls_protocol_error"),
    ("tls_cut_off", "tls_protocol_error"),
    ("resume_mismatch", "http_response_incomplete"),
];

/// Why the user gets an error page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) status: StatusCode,
    pub(crate) side: Side,
    /// A type of RFC 9209 §2.3, or a word of ground's own.
    pub(crate) token: String,
    pub(crate) detail: String,
    /// Whether the page, loaded once more, will be another: then it loads itself.
    pub(crate) reloads: bool,
    /// Whether the same request, sent once more on another connection, goes past this end, and nothing was done with it yet.
    pub(crate) passes_elsewhere: bool,
    /// The host that the user may want to have left alone: the way to the portal brings it along.
    pub(crate) host: Option<String>,
}

impl Trouble {
    pub(crate) fn new(status: StatusCode, side: Side, token: &str, detail: impl Into<String>) -> Self {
        let (token, detail) = (token.into(), detail.into());
        Trouble { status, side, token, detail, reloads: false, passes_elsewhere: false, host: None }
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

    /// The type that programs are told: a registered one. What a word of ours adds to it, the detail says.
    fn error_type(&self) -> &'static str {
        let token = &*self.token;
        let registered = REGISTERED.into_iter().find(|known| *known == token);
        let ours = || OURS.into_iter().find(|(word, _)| *word == token).map(|(_, known)| known);
        registered.or_else(ours).unwrap_or("proxy_internal_error")
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
        // Who is asked for a password has done nothing wrong.
        let failed = match self.status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => String::new(),
            _ => format!("<p>What failed: <b>{side}</b>.</p>"),
        };
        let reason = self.status.canonical_reason().unwrap_or("Error");
        let code = self.status.as_u16();
        let detail = self.sentence();
        // HTML, "Shared declarative refresh steps": no script is needed for it.
        let refresh = if self.reloads { "<meta http-equiv=refresh content=0>" } else { "" };
        let text = format!(
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
             <meta name=color-scheme content=\"light dark\">{refresh}<title>{code} {reason}</title>\
             <body style=\"font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:4em auto;padding:0 1em;overflow-wrap:anywhere\">\
             <h1 style=\"font-size:1.4em\">{code} {reason}</h1>\
             <p>{detail}</p>\
             {failed}\
             <p style=\"opacity:.75;font-size:.85em\">Farhop, exchange {exchange}, {token}</p>\n",
            token = self.error_type(),
        );
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.mark(&mut fields, exchange);
        (Head { status: self.status, fields }, text.into())
    }

    /// The detail as people read it: begun as a sentence unless a host begins it, which is written as it is; with a way to the
    /// portal.
    fn sentence(&self) -> String {
        const PORTAL: &str = "http://farhop.internal/";
        let first = self.detail.split(' ').next().unwrap_or_default();
        let mut begun = self.detail.clone();
        if first.bytes().all(|byte| byte.is_ascii_alphabetic())
            && let Some(letter) = begun.get_mut(..1)
        {
            letter.make_ascii_uppercase();
        }
        // A host is a part of a URL as it is.
        let site = self.host.as_ref().map(|host| format!("?site={}", escape(host))).unwrap_or_default();
        escape(&begun).replace(PORTAL, &format!("<a href=\"{PORTAL}{site}\">{PORTAL}</a>")) + "."
    }

    /// Adds `Proxy-Status` (RFC 9209) and `Via`.
    pub(crate) fn mark(&self, fields: &mut HeaderMap, exchange: ExchangeId) {
        let detail: String =
            self.detail.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\')).collect();
        let end =
            if matches!(self.side, Side::Origin | Side::Ground) { "farhop-ground" } else { "farhop-remote" };
        let value = format!("{end}; error={}; details=\"{detail}\"", self.error_type());
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

/// The name of this cache in `Cache-Status` (RFC 9211).
const CACHE: &str = "farhop-remote";

/// Tells clients what this cache did (RFC 9211).
pub(crate) fn tell_handling(head: &mut ResponseHead, handling: Handling) {
    handling.tell(CACHE, &mut head.fields);
}

/// How a request is handled that a promise answers: one that was made before it is under way already.
pub(crate) const PROMISED: Handling =
    Handling::Forwarded { why: Forward::UriMiss, status: None, stored: false, collapsed: true };

/// Why a request went on, in the words of RFC 9211 §2.2.
pub(crate) fn forward(why: Crossing) -> Forward {
    match why {
        Crossing::Method => Forward::Method,
        Crossing::Stale => Forward::Stale,
        Crossing::Reload => Forward::Request,
        Crossing::Mismatch => Forward::VaryMiss,
        Crossing::Upgrade => Forward::Bypass,
        Crossing::Range => Forward::Partial,
        _ => Forward::UriMiss,
    }
}

/// The head of an answer from the repository.
pub(crate) fn from_repository(stored: &Stored, reply: &Reply, validation: Validation) -> ResponseHead {
    let (status, fields) = stored.reply_head(reply, validation, SystemTime::now());
    ResponseHead { status, fields }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_sentence_that_names_hosts_as_they_are_and_leads_to_the_portal() {
        let trouble = |detail: &str| Trouble::new(StatusCode::BAD_GATEWAY, Side::Origin, "dns_error", detail);
        let shown = |trouble: &Trouble| String::from_utf8(trouble.page(ExchangeId(1)).1.to_vec()).unwrap();
        for (detail, words) in [
            ("the origin took too long", "<p>The origin took too long.</p>"),
            ("no-such.test has no address", "<p>no-such.test has no address.</p>"),
            ("[::1]:443 refused it", "<p>[::1]:443 refused it.</p>"),
            ("it is of <CN=\"a&b\">", "<p>It is of &lt;CN=\"a&amp;b\"&gt;.</p>"),
            (
                "see http://farhop.internal/, please",
                "<p>See <a href=\"http://farhop.internal/\">http://farhop.internal/</a>, please.</p>",
            ),
            ("", "<p>.</p>"),
        ] {
            let page = shown(&trouble(detail));
            assert!(page.contains(words), "{page}");
            assert!(!page.contains("http-equiv"), "{page}");
        }
        let of_host = Trouble { host: Some("www.a.test".into()), ..trouble("see http://farhop.internal/") };
        let link = "<a href=\"http://farhop.internal/?site=www.a.test\">http://farhop.internal/</a>.</p>";
        assert!(shown(&of_host).contains(link), "{}", shown(&of_host));
    }

    #[test]
    fn programs_are_told_a_registered_type_and_the_detail_says_the_rest() {
        let told = |token: &str| {
            let trouble = Trouble::new(StatusCode::BAD_GATEWAY, Side::Origin, token, "it speaks no HTTP");
            let mut fields = HeaderMap::new();
            trouble.mark(&mut fields, ExchangeId(1));
            fields[PROXY_STATUS].to_str().unwrap().to_owned()
        };
        for (token, kind) in [
            ("dns_error", "dns_error"),
            ("not_http", "http_protocol_error"),
            ("client_certificate_wanted", "tls_protocol_error"),
            ("tls_cut_off", "tls_protocol_error"),
            ("resume_mismatch", "http_response_incomplete"),
            ("of a later version", "proxy_internal_error"),
        ] {
            assert_eq!(told(token), format!("farhop-ground; error={kind}; details=\"it speaks no HTTP\""));
        }
    }
}
