//! Heads on their way through ground: what a proxy takes out and adds. Pure.

use farhop_events::ExchangeId;
use farhop_htotp::ResponseHead;
use farhop_htotp::head::{CLIENT_CONNECTION, HELD, SENT_TO, UNASKED, version_name};
use farhop_origin::strip_hop_by_hop;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Version};

/// Tells a client that it may log in by NTLM or Negotiate through this proxy (RFC 4559 §6).
const PROXY_SUPPORT: HeaderName = HeaderName::from_static("proxy-support");

/// Names this proxy in a message that it has received in this version of HTTP (RFC 9110 §7.6.3). The pseudonym hides who and where
/// it is; both ends are one proxy, and what is between them no HTTP.
pub(crate) fn received(version: Version, fields: &mut HeaderMap) {
    if let Ok(via) = HeaderValue::from_str(&format!("{}{PSEUDONYM}", version_name(version))) {
        fields.append(header::VIA, via);
    }
}

/// Behind the version.
const PSEUDONYM: &str = " farhop";

/// The fields of a request as the origin gets them, which the remote has received in this version. Everything end-to-end stays as the
/// browser sent it.
pub(crate) fn towards_origin(fields: &HeaderMap, version: Version) -> HeaderMap {
    let mut fields = fields.clone();
    strip_hop_by_hop(&mut fields);
    fields.remove(CLIENT_CONNECTION);
    fields.remove(SENT_TO);
    fields.remove(UNASKED);
    fields.remove(HELD);
    received(version, &mut fields);
    fields
}

/// A response head, [`received`] before, as the remote gets it. The exchange's id lets both ends' logs be put side by side.
pub(crate) fn towards_remote(
    status: StatusCode,
    mut fields: HeaderMap,
    exchange: ExchangeId,
) -> ResponseHead {
    strip_hop_by_hop(&mut fields);
    name_exchange(&mut fields, exchange);
    let mut head = ResponseHead { status, fields };
    if head.wants_connection_login() {
        head.fields.insert(PROXY_SUPPORT, HeaderValue::from_static("Session-Based-Authentication"));
    }
    head
}

/// RFC 9110 §7.6.3: a comment may say more.
fn name_exchange(fields: &mut HeaderMap, exchange: ExchangeId) {
    let header::Entry::Occupied(mut all) = fields.entry(header::VIA) else { return };
    let own = all.iter_mut().last().filter(|via| via.as_bytes().ends_with(PSEUDONYM.as_bytes()));
    if let Some(via) = own
        && let Ok(said) = via.to_str()
        && let Ok(more) = HeaderValue::from_str(&format!("{said} ({exchange})"))
    {
        *via = more;
    }
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
        let newer = towards_origin(&fields, Version::HTTP_2);
        assert_eq!(newer.get_all("via").iter().next_back().unwrap(), "2.0 farhop");
        let fields = towards_origin(&fields, Version::HTTP_11);
        assert_eq!(fields["accept-encoding"], "gzip");
        assert!(!fields.contains_key("connection") && !fields.contains_key("x-hop"));
        let via: Vec<_> = fields.get_all("via").iter().collect();
        assert_eq!(via, ["1.0 other", "1.1 farhop"]);
    }

    #[test]
    fn a_response_names_its_exchange_and_the_version_in_which_it_came() {
        let own = "farhop (00000000000000ab)";
        for (version, name) in
            [(Version::HTTP_10, "1.0"), (Version::HTTP_11, "1.1"), (Version::HTTP_2, "2.0")]
        {
            let mut fields = HeaderMap::new();
            fields.insert("keep-alive", HeaderValue::from_static("timeout=5"));
            fields.insert("via", HeaderValue::from_static("1.1 other, 1.0 farhop"));
            received(version, &mut fields);
            let head = towards_remote(StatusCode::OK, fields, ExchangeId(0xab));
            let via: Vec<_> = head.fields.get_all("via").iter().collect();
            assert_eq!(via, ["1.1 other, 1.0 farhop", &format!("{name} {own}")]);
            assert!(!head.fields.contains_key("keep-alive"));
        }
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
