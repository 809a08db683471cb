//! Heads on their way through ground: what a proxy takes out and adds. Pure.

use farhop_events::ExchangeId;
use farhop_htotp::ResponseHead;
use farhop_htotp::head::{CLIENT_CONNECTION, HELD, SENT_TO, UNASKED};
use farhop_origin::strip_hop_by_hop;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Tells a client that it may log in by NTLM or Negotiate through this proxy (RFC 4559 §6).
const PROXY_SUPPORT: HeaderName = HeaderName::from_static("proxy-support");

/// The fields of a request as the origin gets them. Everything end-to-end stays as the browser sent it.
pub(crate) fn towards_origin(fields: &HeaderMap) -> HeaderMap {
    let mut fields = fields.clone();
    strip_hop_by_hop(&mut fields);
    fields.remove(CLIENT_CONNECTION);
    fields.remove(SENT_TO);
    fields.remove(UNASKED);
    fields.remove(HELD);
    // RFC 9110 §7.6.3: a proxy adds itself; the pseudonym hides who and where it is.
    fields.append(header::VIA, HeaderValue::from_static("1.1 farhop"));
    fields
}

/// A response head as the remote gets it. The exchange's id lets both ends' logs be put side by side.
pub(crate) fn towards_remote(
    status: StatusCode,
    mut fields: HeaderMap,
    exchange: ExchangeId,
) -> ResponseHead {
    strip_hop_by_hop(&mut fields);
    // RFC 9110 §7.6.3: a comment may say more.
    if let Ok(via) = HeaderValue::from_str(&format!("1.1 farhop ({exchange})")) {
        fields.append(header::VIA, via);
    }
    let mut head = ResponseHead { status, fields };
    if head.wants_connection_login() {
        head.fields.insert(PROXY_SUPPORT, HeaderValue::from_static("Session-Based-Authentication"));
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_keeps_what_is_end_to_end_and_names_the_proxy() {
        let mut fields = HeaderMap::new();
        for (name, value) in
            [("accept-encoding", "gzip"), ("connection", "x-hop"), ("x-hop", "1"), ("via", "1.0 other")]
        {
            fields.insert(name, HeaderValue::from_static(value));
        }
        let fields = towards_origin(&fields);
        assert_eq!(fields["accept-encoding"], "gzip");
        assert!(!fields.contains_key("connection") && !fields.contains_key("x-hop"));
        let via: Vec<_> = fields.get_all("via").iter().collect();
        assert_eq!(via, ["1.0 other", "1.1 farhop"]);
    }

    #[test]
    fn a_response_names_its_exchange() {
        let mut fields = HeaderMap::new();
        fields.insert("keep-alive", HeaderValue::from_static("timeout=5"));
        let head = towards_remote(StatusCode::OK, fields, ExchangeId(0xab));
        assert_eq!(head.fields["via"], "1.1 farhop (00000000000000ab)");
        assert!(!head.fields.contains_key("keep-alive"));
    }

    #[test]
    fn who_is_to_log_in_a_connection_hears_that_the_proxy_keeps_connections_apart() {
        for (status, scheme, told) in
            [(401, "NTLM", true), (401, "Basic realm=\"a\"", false), (200, "NTLM", false)]
        {
            let fields = HeaderMap::from_iter([(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme))]);
            let head = towards_remote(StatusCode::from_u16(status).unwrap(), fields, ExchangeId(1));
            assert_eq!(head.fields.contains_key("proxy-support"), told, "{status} {scheme}");
        }
    }
}
