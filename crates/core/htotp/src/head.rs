//! Request and response heads, between the `http` crate's maps and field sections. Hop-by-hop fields are
//! the ends' business: they are removed before a head comes here, all but `upgrade`.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{AUTHORIZATION, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use url::Url;

use crate::fields::{Line, Lines};

/// Which of the client's connections a request came in by, where a login may count for that connection
/// (docs/htotp.md, "Logins of connections"). Crosses the hop and nothing else.
pub const CLIENT_CONNECTION: HeaderName = HeaderName::from_static("farhop-client-connection");

/// The address that a client's connection led to, for where ground's name servers do not know the name (docs/htotp.md,
/// "Names that clients alone know"). Crosses the hop and nothing else.
pub const SENT_TO: HeaderName = HeaderName::from_static("farhop-sent-to");

/// How much ground may fetch unasked for the page that is asked for: `nothing`, `named`, or all if it is not there
/// (docs/htotp.md, "Less unasked"). Crosses the hop and nothing else.
pub const UNASKED: HeaderName = HeaderName::from_static("farhop-unasked");

/// The remote answers this request for a page by itself, from the entry of this number: what goes with the page is wanted, and
/// no more of the page (docs/htotp.md, "Pages that are held"). Crosses the hop and nothing else.
pub const HELD: HeaderName = HeaderName::from_static("farhop-held");

/// The version of HTTP in which the client has asked, as `Via` names it, where it is not [`usual_version`] (docs/htotp.md, "The
/// version received"). Crosses the hop and nothing else.
pub const RECEIVED: HeaderName = HeaderName::from_static("farhop-received");

/// The version in which requests with this scheme reach a remote as a rule: browsers speak HTTP/2 inside TLS, HTTP/1.1 to a proxy
/// without.
pub fn usual_version(scheme: &str) -> Version {
    if scheme == "https" { Version::HTTP_2 } else { Version::HTTP_11 }
}

/// Versions of HTTP as `Via` names them (RFC 9110 §7.6.3): both numbers, as for Apache httpd.
const VERSIONS: [(Version, &str); 3] =
    [(Version::HTTP_10, "1.0"), (Version::HTTP_11, "1.1"), (Version::HTTP_2, "2.0")];

/// How `Via` names this version.
pub fn version_name(version: Version) -> &'static str {
    VERSIONS.iter().find(|(own, _)| *own == version).map_or("1.1", |(_, name)| name)
}

/// The version that [`version_name`] gives this name.
pub fn version_named(name: &[u8]) -> Option<Version> {
    VERSIONS.iter().find(|(_, own)| own.as_bytes() == name).map(|(version, _)| *version)
}

/// What [`HELD`] says: `ENTRY`, or `ENTRY;dated=SECONDS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldPage {
    /// The entry's number in the mirror.
    pub entry: u64,
    /// When its origin made it (`Date`), in seconds since 1970: said of what has no validators by which the mirror could tell it.
    pub dated: Option<u64>,
}

impl HeldPage {
    /// Reads it; parameters that are not known do not matter.
    pub fn read(value: &HeaderValue) -> Option<HeldPage> {
        let mut parts = value.to_str().ok()?.split(';');
        let entry = parts.next()?.parse().ok()?;
        let dated = parts.find_map(|part| part.strip_prefix("dated=")?.parse().ok());
        Some(HeldPage { entry, dated })
    }
}

impl From<HeldPage> for HeaderValue {
    fn from(HeldPage { entry, dated }: HeldPage) -> HeaderValue {
        let whole = dated.and_then(|dated| HeaderValue::from_str(&format!("{entry};dated={dated}")).ok());
        whole.unwrap_or_else(|| HeaderValue::from(entry))
    }
}

/// Schemes whose logins count for a connection and not for a request (RFC 4559 §6).
const OF_CONNECTIONS: [&[u8]; 2] = [b"ntlm", b"negotiate"];

/// A request as it crosses the hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// Method.
    pub method: Method,
    /// `http` or `https`.
    pub scheme: String,
    /// Host and, where it is not the scheme's own, port.
    pub authority: String,
    /// Path and query, as the client wrote them.
    pub path: String,
    /// End-to-end fields; no `Host`.
    pub fields: HeaderMap,
}

/// A response head as it crosses the hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// Status, informational ones too.
    pub status: StatusCode,
    /// End-to-end fields.
    pub fields: HeaderMap,
}

/// Why a field section is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("field section is no {0}")]
pub struct NotAHead(&'static str);

impl RequestHead {
    /// Scheme and authority, as one text: what cookies, pools and compression contexts go by.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// The whole URL, as it is sent.
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, self.path)
    }

    /// The URL as browsers normalise it, for what many targets share: its host, its cookies, what an unsafe request makes doubtful.
    /// No answer is found or kept by it: that goes by [`RequestHead::resource`].
    pub fn normalised(&self) -> Option<Url> {
        let url = if self.path == "*" { format!("{}/", self.origin()) } else { self.url() };
        Url::parse(&url).ok()
    }

    /// The URL by which an answer is found, kept, promised or learned from: none where the target is sent in other words than these.
    /// Two targets that normalise to one URL are two resources to an origin that tells them apart (RFC 9110 §4.2.3 leaves it to
    /// the origin which are not), and whoever may choose the words must not choose what others are given.
    pub fn resource(&self) -> Option<Url> {
        self.normalised().filter(|url| self.is_for(url))
    }

    /// Whether this is the very URL that is sent.
    pub fn is_for(&self, url: &Url) -> bool {
        url.fragment().is_none()
            && [self.scheme.as_str(), "://", &self.authority, &self.path].concat() == url.as_str()
    }

    /// Whether it asks for another protocol (RFC 9110 §7.8): the one hop-by-hop field that crosses.
    pub fn upgrades(&self) -> bool {
        self.fields.contains_key(UPGRADE)
    }

    /// Whether it may log in the connection that it is sent on (RFC 4559 §6): to an origin, all that follows on that
    /// connection is then of the same person.
    pub fn logs_in_connection(&self) -> bool {
        self.fields.get_all(AUTHORIZATION).iter().any(|value| is_of_connections(value.as_bytes()))
    }

    /// The address that the client's connection led to, if that may answer.
    pub fn sent_to(&self) -> Option<IpAddr> {
        self.fields.get(SENT_TO)?.to_str().ok()?.parse().ok()
    }

    /// Whether the client's connection decides who answers: nothing that is held or promised does, and nothing of the answer is
    /// kept or read along.
    pub fn is_of_its_connection(&self) -> bool {
        [CLIENT_CONNECTION, SENT_TO].iter().any(|field| self.fields.contains_key(field))
    }

    pub(crate) fn to_lines(&self) -> Lines {
        let mut lines = Vec::with_capacity(self.fields.len() + 4);
        lines.push(Line::new(":method", self.method.as_str()));
        lines.push(Line::new(":scheme", &self.scheme));
        lines.push(Line::new(":authority", &self.authority));
        lines.push(Line::new(":path", &self.path));
        push_fields(&self.fields, &mut lines);
        Lines(lines)
    }

    pub(crate) fn from_lines(lines: &Lines) -> Result<Self, NotAHead> {
        const NOT: NotAHead = NotAHead("request head");
        let [method, scheme, authority, path, fields @ ..] = lines.0.as_slice() else { return Err(NOT) };
        let text = |line: &Line, name: &str| match line.name == name.as_bytes() {
            true => String::from_utf8(line.value.to_vec()).map_err(|_| NOT),
            false => Err(NOT),
        };
        let method = Method::from_bytes(text(method, ":method")?.as_bytes()).map_err(|_| NOT)?;
        let scheme = text(scheme, ":scheme")?;
        let authority = text(authority, ":authority")?;
        let path = text(path, ":path")?;
        let clean = |text: &str| text.bytes().all(|b| b > b' ' && b != 0x7f);
        if !matches!(scheme.as_str(), "http" | "https")
            || !clean(&authority)
            || authority.is_empty()
            || !clean(&path)
        {
            return Err(NOT);
        }
        Ok(RequestHead { method, scheme, authority, path, fields: read_fields(fields).ok_or(NOT)? })
    }
}

impl ResponseHead {
    /// Whether it asks for a login that counts for a connection (RFC 4559 §6).
    pub fn wants_connection_login(&self) -> bool {
        let wanted = self.fields.get_all(WWW_AUTHENTICATE);
        let mut challenges = wanted.iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
        self.status == StatusCode::UNAUTHORIZED && challenges.any(is_of_connections)
    }

    pub(crate) fn to_lines(&self) -> Lines {
        let mut lines = Vec::with_capacity(self.fields.len() + 1);
        lines.push(Line::new(":status", self.status.as_str()));
        push_fields(&self.fields, &mut lines);
        Lines(lines)
    }

    pub(crate) fn from_lines(lines: &Lines) -> Result<Self, NotAHead> {
        const NOT: NotAHead = NotAHead("response head");
        let [status, fields @ ..] = lines.0.as_slice() else { return Err(NOT) };
        if status.name != b":status"[..] {
            return Err(NOT);
        }
        let status = StatusCode::from_bytes(&status.value).map_err(|_| NOT)?;
        Ok(ResponseHead { status, fields: read_fields(fields).ok_or(NOT)? })
    }
}

/// Whether credentials or a challenge (RFC 9110 §11.3) are of a scheme whose logins count for a connection.
fn is_of_connections(value: &[u8]) -> bool {
    let scheme = value.trim_ascii().split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    OF_CONNECTIONS.iter().any(|of_connections| scheme.eq_ignore_ascii_case(of_connections))
}

/// Trailers have no pseudo-fields.
pub(crate) fn trailer_lines(fields: &HeaderMap) -> Lines {
    let mut lines = Vec::with_capacity(fields.len());
    push_fields(fields, &mut lines);
    Lines(lines)
}

pub(crate) fn trailers_from(lines: &Lines) -> Result<HeaderMap, NotAHead> {
    read_fields(&lines.0).ok_or(NotAHead("trailer section"))
}

fn push_fields(fields: &HeaderMap, lines: &mut Vec<Line>) {
    for (name, value) in fields {
        let name = Bytes::copy_from_slice(name.as_str().as_bytes());
        lines.push(Line { name, value: Bytes::copy_from_slice(value.as_bytes()) });
    }
}

fn read_fields(lines: &[Line]) -> Option<HeaderMap> {
    let mut fields = HeaderMap::try_with_capacity(lines.len()).ok()?;
    for line in lines {
        // `HeaderName::from_bytes` would fold upper case; the wire has none.
        if line.name.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        let name = HeaderName::from_bytes(&line.name).ok()?;
        let value = HeaderValue::from_maybe_shared(line.value.clone()).ok()?;
        fields.try_append(name, value).ok()?;
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_held_is_named_by_its_entry_and_where_there_is_no_more_by_its_date() {
        for (said, page) in [
            ("7", Some(HeldPage { entry: 7, dated: None })),
            ("7;dated=784111777", Some(HeldPage { entry: 7, dated: Some(784_111_777) })),
            ("7;x=1;dated=2", Some(HeldPage { entry: 7, dated: Some(2) })),
            ("7;dated=soon", Some(HeldPage { entry: 7, dated: None })),
            ("", None),
            ("a client says", None),
        ] {
            assert_eq!(HeldPage::read(&HeaderValue::from_static(said)), page, "{said}");
        }
        for page in [HeldPage { entry: 7, dated: None }, HeldPage { entry: 7, dated: Some(9) }] {
            assert_eq!(HeldPage::read(&page.into()), Some(page));
        }
    }

    #[test]
    fn a_request_keeps_its_fields_and_their_order() {
        let mut fields = HeaderMap::new();
        fields.append("accept", HeaderValue::from_static("*/*"));
        fields.append("x-two", HeaderValue::from_static("1"));
        fields.append("x-two", HeaderValue::from_bytes(b"\xe4").unwrap());
        let head = RequestHead {
            method: Method::GET,
            scheme: "http".into(),
            authority: "site.test:8080".into(),
            path: "/a?b".into(),
            fields,
        };
        assert_eq!(RequestHead::from_lines(&head.to_lines()), Ok(head));
    }

    #[test]
    fn a_target_that_is_sent_in_other_words_than_its_url_is_no_resource_of_that_url() {
        let head = |scheme: &str, authority: &str, path: &str| RequestHead {
            method: Method::GET,
            scheme: scheme.into(),
            authority: authority.into(),
            path: path.into(),
            fields: HeaderMap::new(),
        };
        for path in ["/", "/a/b?c=d", "/a%2e", "//a", "/a?b=../c", "/%7Ea", "/a;b,c"] {
            let head = head("http", "site.test:8080", path);
            assert_eq!(head.resource().map(String::from), Some(head.url()), "{path}");
        }
        for (authority, path, url) in [
            ("site.test", "/./a", "http://site.test/a"),
            ("site.test", "/b/../a", "http://site.test/a"),
            ("site.test", "/b/%2e%2E/a", "http://site.test/a"),
            ("site.test", "/b\\a", "http://site.test/b/a"),
            ("site.test", "/a\"", "http://site.test/a%22"),
            ("site.test", "/a#b", "http://site.test/a#b"),
            ("site.test", "/\u{e4}", "http://site.test/%C3%A4"),
            ("site.test", "*", "http://site.test/"),
            ("SITE.test", "/", "http://site.test/"),
            ("site.test:80", "/", "http://site.test/"),
            ("a@site.test", "/..", "http://a@site.test/"),
        ] {
            let head = head("http", authority, path);
            assert_eq!(head.normalised().map(String::from).as_deref(), Some(url), "{authority}{path}");
            assert_eq!(head.resource(), None, "{authority}{path}");
        }
    }

    #[test]
    fn logins_that_count_for_a_connection_are_told_from_those_of_a_request() {
        for (said, counts) in [
            ("NTLM TlRMTVNTUAABAAAA", true),
            ("negotiate YIIF", true),
            ("Basic eDp5", false),
            ("Bearer ntlm", false),
            ("NTLMv2 x", false),
        ] {
            let fields = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(said))]);
            let (scheme, authority, path) = ("http".into(), "site.test".into(), "/".into());
            let head = RequestHead { method: Method::GET, scheme, authority, path, fields };
            assert_eq!(head.logs_in_connection(), counts, "{said}");
        }
        for (status, said, wants) in [
            (401, "NTLM", true),
            (401, "Basic realm=\"a\", Negotiate", true),
            (401, "Basic realm=\"a\"", false),
            (200, "Negotiate oRQw", false),
        ] {
            let fields = HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_static(said))]);
            let head = ResponseHead { status: StatusCode::from_u16(status).unwrap(), fields };
            assert_eq!(head.wants_connection_login(), wants, "{status} {said}");
        }
    }

    #[test]
    fn a_section_that_could_split_a_request_is_refused() {
        let lines = |path: &str| {
            Lines(vec![
                Line::new(":method", "GET"),
                Line::new(":scheme", "http"),
                Line::new(":authority", "site.test"),
                Line::new(":path", path),
                Line::new("accept", "*/*"),
            ])
        };
        assert!(RequestHead::from_lines(&lines("/ok")).is_ok());
        for path in ["/a b", "/a\r\nx: y", "/\0"] {
            assert!(RequestHead::from_lines(&lines(path)).is_err(), "{path:?}");
        }
        let mut split = lines("/ok");
        split.0.push(Line::new("x-own", "a\r\nb: c"));
        assert!(RequestHead::from_lines(&split).is_err());
        let mut upper = lines("/ok");
        upper.0.push(Line::new("X-Own", "a"));
        assert!(RequestHead::from_lines(&upper).is_err());
    }
}
