//! What a request is for that was sent to an address and not to a proxy: the host that it names, if that can be what the
//! address belongs to. No I/O.
//!
//! Ground resolves the name itself, and its answer is what that host says: a client that names a host which is not at
//! the address it connected to can't have another's bytes stored under that host's name. What ground can't know, an
//! address, a name of the client's own network, another port, has to be where the client connected to.

use std::net::{IpAddr, SocketAddr};

use farhop_front::{Authority, Scheme, Target};
use http::HeaderMap;
use http::header::HOST;
use http::uri::PathAndQuery;

use super::host_of;

/// Names below these are of one network alone (RFC 6761, 6762 with its appendix G, 8375; ICANN's `internal`).
const LOCAL: &[&str] =
    &["local", "localhost", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa"];

/// The target in absolute form, as a proxy is asked; `None` if the request is not for `at`, where it was sent to. CONNECT
/// stays as it is.
pub(crate) fn settle(target: Target, fields: &HeaderMap, at: SocketAddr) -> Option<Target> {
    let (authority, path) = match target {
        Target::Authority { .. } => return Some(target),
        // RFC 9112 §3.2.2: a server takes this form too.
        Target::Absolute { scheme: Scheme::Http, authority, path } => (Some(authority), path),
        Target::Absolute { .. } => return None,
        Target::Origin(path) => (named(fields)?, path),
        Target::Asterisk => (named(fields)?, PathAndQuery::from_static("*")),
    };
    let authority = match authority {
        Some(authority) => is_at(&authority, at).then_some(authority)?,
        // HTTP/1.0 may leave it out; the connection says it then.
        None => Authority::parse(&format!("{}:{}", host_of(at.ip()), at.port())).ok()?,
    };
    Some(Target::Absolute { scheme: Scheme::Http, authority, path })
}

/// The Host field; `None` inside where there is none, outside where it is malformed.
fn named(fields: &HeaderMap) -> Option<Option<Authority>> {
    let Some(host) = fields.get(HOST) else { return Some(None) };
    Authority::parse(host.to_str().ok()?).ok().map(Some)
}

fn is_at(authority: &Authority, at: SocketAddr) -> bool {
    let host = authority.host();
    if authority.port_or_default(Scheme::Http) != at.port() {
        return false;
    }
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address == at.ip(),
        Err(_) => is_public(host),
    }
}

/// Whether ground's name servers may know a name as well as the client's.
fn is_public(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_below = |suffix: &&str| name.strip_suffix(*suffix).is_some_and(|rest| rest.ends_with('.'));
    name.contains('.') && !LOCAL.contains(&name) && !LOCAL.iter().any(is_below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_front::{HeadLimits, RequestHead};

    fn settled(request: &str, at: &str) -> Option<String> {
        let head = RequestHead::parse(request.as_bytes(), &HeadLimits::default()).unwrap();
        match settle(head.target, &head.fields, at.parse().unwrap())? {
            Target::Absolute { scheme, authority, path } => {
                Some(format!("{}://{authority}{path}", scheme.as_str()))
            }
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn a_request_is_for_the_host_that_it_names_if_that_can_be_where_it_was_sent_to() {
        for (request, at, wanted) in [
            ("GET /x?y HTTP/1.1\r\nHost: A.example\r\n\r\n", "192.0.2.1:80", Some("http://a.example/x?y")),
            ("GET /x HTTP/1.1\r\nHost: a.example:80\r\n\r\n", "192.0.2.1:80", Some("http://a.example:80/x")),
            ("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n", "192.0.2.1:8080", None),
            (
                "GET /x HTTP/1.1\r\nHost: a.example:8080\r\n\r\n",
                "192.0.2.1:8080",
                Some("http://a.example:8080/x"),
            ),
            ("GET /x HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", "192.0.2.1:80", Some("http://192.0.2.1/x")),
            ("GET /x HTTP/1.1\r\nHost: 192.0.2.2\r\n\r\n", "192.0.2.1:80", None),
            (
                "GET / HTTP/1.1\r\nHost: [2001:db8:0::1]\r\n\r\n",
                "[2001:db8::1]:80",
                Some("http://[2001:db8::1]/"),
            ),
            ("GET /x HTTP/1.0\r\n\r\n", "[2001:db8::1]:80", Some("http://[2001:db8::1]:80/x")),
            (
                "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n",
                "192.0.2.1:80",
                Some("http://a.example/x"),
            ),
            ("GET https://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", "192.0.2.1:80", None),
            ("OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", "192.0.2.1:80", Some("http://a.example*")),
            ("GET / HTTP/1.1\r\nHost: printer\r\n\r\n", "192.0.2.1:80", None),
            ("GET / HTTP/1.1\r\nHost: nas.home.arpa\r\n\r\n", "192.0.2.1:80", None),
            ("GET / HTTP/1.1\r\nHost: nas.LAN.\r\n\r\n", "192.0.2.1:80", None),
            ("GET / HTTP/1.1\r\nHost: home.example\r\n\r\n", "192.0.2.1:80", Some("http://home.example/")),
        ] {
            assert_eq!(settled(request, at).as_deref(), wanted, "{request:?} to {at}");
        }
    }
}
