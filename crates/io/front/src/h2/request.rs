//! Requests as the h2 crate hands them out, judged by what could be read differently further on. Pure.
//!
//! The crate, and the sieve before it, have refused by then what RFC 9113 §8.2 and §8.3 call malformed: upper case, fields
//! of the connection, pseudo-fields that are unknown, repeated, missing or behind others, bytes that no field may hold;
//! and the crate watches that the body is as long as its Content-Length says.

use crate::h1::{
    Authority, Framing, HeadLimits, Refusal, RequestHead, Scheme, Target, WEBSOCKET, content_length,
    encode_bare, settle_semantics,
};
use crate::scope::Scope;
use ::h2::ext::Protocol;
use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri, Version};

/// Makes a head that may be forwarded of `parts`. `ended` says that no body follows.
///
/// # Errors
/// Everything that may not be forwarded.
pub(super) fn judge(
    parts: Parts,
    ended: bool,
    scope: &Scope,
    limits: &HeadLimits,
) -> Result<RequestHead, Refusal> {
    let Parts { method, uri, headers: mut fields, extensions, .. } = parts;
    let upgrade = match extensions.get::<Protocol>() {
        Some(protocol) if protocol.as_str() == WEBSOCKET => Some(WEBSOCKET),
        Some(_) => return Err(Refusal::Protocol),
        None if method == Method::CONNECT => return Err(Refusal::ConnectWithin),
        None => None,
    };
    check_values(&fields)?;
    join_cookies(&mut fields)?;
    if fields.len() > limits.fields {
        return Err(Refusal::TooManyFields);
    }
    // RFC 8441 §5: what is a GET with Upgrade in HTTP/1.1.
    let method = if upgrade.is_some() { Method::GET } else { method };
    let authority = authority(&uri, &fields)?;
    let path = path(&method, &uri, limits)?;
    let framing = match content_length(&fields)? {
        _ if upgrade.is_some() && fields.contains_key(CONTENT_LENGTH) => return Err(Refusal::ConnectBody),
        _ if ended || upgrade.is_some() => Framing::None,
        // Until the stream ends it isn't known whether that is true.
        Some(0) => Framing::Chunked,
        Some(bytes) => Framing::Length(bytes),
        None => Framing::Chunked,
    };
    let expects_continue = settle_semantics(&method, framing, &mut fields)?;
    let target = Target::Absolute { scheme: scheme(&uri)?, authority, path };
    let version = Version::HTTP_2;
    let mut head = RequestHead { method, target, version, fields, framing, upgrade, expects_continue };
    scope.settle(&mut head)?;
    Ok(head)
}

/// RFC 9113 §8.2.1: no value begins or ends with white space. HTTP/1 would lose it on the way.
pub(super) fn check_values(fields: &HeaderMap) -> Result<(), Refusal> {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let spaced = |value: &HeaderValue| {
        let value = value.as_bytes();
        blank(value.first()) || blank(value.last())
    };
    if fields.values().any(spaced) { Err(Refusal::Field) } else { Ok(()) }
}

/// RFC 9113 §8.2.3: crumbs become one field before the request goes on over anything but HTTP/2.
fn join_cookies(fields: &mut HeaderMap) -> Result<(), Refusal> {
    let crumbs: Vec<_> = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1 {
        let joined = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])).map_err(|_| Refusal::Field)?;
        fields.insert(COOKIE, joined);
    }
    Ok(())
}

/// RFC 9113 §8.3.1: `:authority`, else Host; both only if they agree.
fn authority(uri: &Uri, fields: &HeaderMap) -> Result<Authority, Refusal> {
    let named = uri.authority().map(|authority| Authority::parse(authority.as_str())).transpose()?;
    let mut hosts = fields.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => return Err(Refusal::HostRepeated),
        (Some(host), None) => Some(Authority::parse(host.to_str().map_err(|_| Refusal::Authority)?)?),
        (None, _) => None,
    };
    let port = |authority: &Authority| authority.port_or_default(Scheme::Https);
    match (named, host) {
        (Some(named), Some(host)) if named.host() != host.host() || port(&named) != port(&host) => {
            Err(Refusal::HostConflict)
        }
        (Some(authority), _) | (None, Some(authority)) => Ok(authority),
        (None, None) => Err(Refusal::HostMissing),
    }
}

/// The h2 crate keeps the scheme only where there is an `:authority`; without one it is the connection's.
fn scheme(uri: &Uri) -> Result<Scheme, Refusal> {
    match uri.scheme_str() {
        None | Some("https") => Ok(Scheme::Https),
        Some("http") => Ok(Scheme::Http),
        Some(_) => Err(Refusal::Scheme),
    }
}

/// RFC 9113 §8.3.1: it starts with a slash, or is `*` for OPTIONS.
fn path(method: &Method, uri: &Uri, limits: &HeadLimits) -> Result<PathAndQuery, Refusal> {
    let text = uri.path_and_query().ok_or(Refusal::Target)?.as_str();
    if text.len() as u64 > limits.target.0 {
        return Err(Refusal::TargetTooLong);
    }
    let encoded = encode_bare(text.as_bytes());
    let text = std::str::from_utf8(&encoded).map_err(|_| Refusal::Target)?;
    match Target::parse(method, text)? {
        Target::Origin(path) => Ok(path),
        Target::Asterisk => Ok(PathAndQuery::from_static("*")),
        Target::Absolute { .. } | Target::Authority { .. } => Err(Refusal::Target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn parts(method: &str, uri: &str, fields: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn judged(parts: Parts, ended: bool) -> Result<RequestHead, Refusal> {
        judge(parts, ended, &Scope::new("a.example", 443).unwrap(), &HeadLimits::default())
    }

    #[test]
    fn a_request_becomes_absolute_with_its_cookies_in_one_field() {
        let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("priority", "u=1, i")];
        let head = judged(parts("GET", "https://a.example/{x}?é", &fields), true).unwrap();
        let path = PathAndQuery::from_static("/%7Bx%7D?%C3%A9");
        let authority = Authority::parse("a.example").unwrap();
        assert_eq!(head.target, Target::Absolute { scheme: Scheme::Https, authority, path });
        assert_eq!(head.fields[COOKIE], "a=1; b=2");
        assert_eq!(
            (&head.fields[HOST], &head.fields["priority"]),
            (&HeaderValue::from_static("a.example"), &HeaderValue::from_static("u=1, i"))
        );
        assert_eq!((head.version, head.framing, head.upgrade), (Version::HTTP_2, Framing::None, None));
    }

    #[test]
    fn the_body_is_framed_by_its_length_where_that_is_said() {
        for (fields, ended, framing) in [
            (&[][..], true, Framing::None),
            (&[][..], false, Framing::Chunked),
            (&[("content-length", "5")][..], false, Framing::Length(5)),
            (&[("content-length", "0")][..], false, Framing::Chunked),
            (&[("content-length", "0")][..], true, Framing::None),
        ] {
            assert_eq!(judged(parts("PUT", "https://a.example/", fields), ended).unwrap().framing, framing);
        }
        let waiting = parts("PUT", "https://a.example/", &[("expect", "100-continue")]);
        assert!(judged(waiting, false).unwrap().expects_continue);
    }

    #[test]
    fn what_could_be_read_differently_is_refused() {
        let url = "https://a.example/";
        for (method, uri, fields, refusal) in [
            ("GET", url, &[("x", " a")][..], Refusal::Field),
            ("GET", url, &[("x", "a\t")], Refusal::Field),
            ("GET", url, &[("host", "b.example")], Refusal::HostConflict),
            ("GET", url, &[("host", "a.example:444")], Refusal::HostConflict),
            ("GET", url, &[("host", "a.example"), ("host", "a.example")], Refusal::HostRepeated),
            ("GET", "/", &[], Refusal::HostMissing),
            ("GET", "/", &[("host", "b.example")], Refusal::Misdirected),
            ("GET", "https://b.example/", &[], Refusal::Misdirected),
            ("GET", "https://a.example:8443/", &[], Refusal::Misdirected),
            ("GET", "http://a.example/", &[], Refusal::Misdirected),
            ("GET", "ftp://a.example/", &[], Refusal::Scheme),
            ("GET", "https://u@a.example/", &[], Refusal::UserInfo),
            ("GET", "https://127.1/", &[], Refusal::Authority),
            ("GET", "*", &[("host", "a.example")], Refusal::TargetForm),
            ("CONNECT", "a.example:443", &[], Refusal::ConnectWithin),
            ("PUT", url, &[("content-length", "5"), ("content-length", "5")], Refusal::ContentLengthRepeated),
            ("PUT", url, &[("content-length", "+5")], Refusal::ContentLength),
        ] {
            let result = judged(parts(method, uri, fields), false);
            assert_eq!(result.map(|head| head.target), Err(refusal), "{method} {uri} {fields:?}");
        }
        let long = format!("https://a.example/{}", "x".repeat(40_000));
        assert_eq!(judged(parts("GET", &long, &[]), true).map(drop), Err(Refusal::TargetTooLong));
    }

    #[test]
    fn an_extended_connect_for_websocket_is_a_get_with_an_upgrade() {
        let mut asked = parts("CONNECT", "https://a.example/chat", &[("sec-websocket-version", "13")]);
        asked.extensions.insert(Protocol::from_static("websocket"));
        let head = judged(asked, false).unwrap();
        assert_eq!(
            (head.method, head.upgrade, head.framing),
            (Method::GET, Some("websocket"), Framing::None)
        );

        let mut sized = parts("CONNECT", "https://a.example/chat", &[("content-length", "5")]);
        sized.extensions.insert(Protocol::from_static("websocket"));
        assert_eq!(judged(sized, false).map(drop), Err(Refusal::ConnectBody));

        let mut other = parts("CONNECT", "https://a.example/", &[]);
        other.extensions.insert(Protocol::from_static("connect-udp"));
        assert_eq!(judged(other, false).map(drop), Err(Refusal::Protocol));
    }
}
