//! The four forms of a request target (RFC 9112 §3.2) and the authority in them. Pure parsing.

use super::Refusal;
use http::Method;
use http::uri::PathAndQuery;
use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The schemes that a proxy is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    /// The port meant when none is written.
    pub const fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    /// The scheme as written before `://`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// A host with an optional port, checked and normalised: lower case, IPv6 addresses in brackets and in
/// their canonical text (RFC 5952).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// Reads `host`, `host:port` or `[address]:port`.
    ///
    /// # Errors
    /// User information, an empty or malformed host, a port that is no number from 1 to 65535.
    pub fn parse(text: &str) -> Result<Authority, Refusal> {
        if text.contains('@') {
            // RFC 9110 §4.2.4: user information from an untrusted source is an error.
            return Err(Refusal::UserInfo);
        }
        let (host, rest) = if let Some(bracketed) = text.strip_prefix('[') {
            let (address, rest) = bracketed.split_once(']').ok_or(Refusal::Authority)?;
            let address: Ipv6Addr = address.parse().map_err(|_| Refusal::Authority)?;
            (format!("[{address}]"), rest)
        } else {
            let end = text.find(':').unwrap_or(text.len());
            (host_name(&text[..end])?, &text[end..])
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return Err(Refusal::Authority),
            // RFC 3986 §3.2.3: an empty port means the default one.
            Some("") => None,
            Some(digits) => Some(port(digits)?),
        };
        Ok(Authority { host, port })
    }

    /// The host in lower case; IPv6 addresses in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port as written, if any.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The port as written, else the scheme's.
    pub fn port_or_default(&self, scheme: Scheme) -> u16 {
        self.port.unwrap_or(scheme.default_port())
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

/// A registered name or an IPv4 address. Names are those that DNS and browsers use; percent-encoding and
/// sub-delimiters (RFC 3986 §3.2.2) never lead to a host and are refused.
fn host_name(text: &str) -> Result<String, Refusal> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || text.len() > 255 || !text.bytes().all(allowed) {
        return Err(Refusal::Authority);
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() || name.split('.').any(|label| label.is_empty() || label.len() > 63) {
        return Err(Refusal::Authority);
    }
    // A last label of digits is meant as an IPv4 address. The shortened, octal and hexadecimal ways of
    // writing one (`127.1`, `0x7f.0.0.1`) are read differently by different software.
    let last = name.rsplit('.').next().unwrap_or(name);
    let hexadecimal = last.strip_prefix("0x").or(last.strip_prefix("0X"));
    let number = last.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if number && text.parse::<Ipv4Addr>().is_err() {
        return Err(Refusal::Authority);
    }
    Ok(text.to_ascii_lowercase())
}

fn port(digits: &str) -> Result<u16, Refusal> {
    if digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::Authority);
    }
    digits.parse().ok().filter(|&port| port != 0).ok_or(Refusal::Authority)
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `http://host/path`: a request to a proxy. `OPTIONS http://host` has the path `*` (RFC 9112 §3.2.4).
    Absolute {
        /// The scheme before `://`.
        scheme: Scheme,
        /// The host and port that the request is for.
        authority: Authority,
        /// The path, at least `/`, and the query.
        path: PathAndQuery,
    },
    /// `host:port`: CONNECT only.
    Authority {
        /// Lower case; IPv6 addresses in brackets.
        host: String,
        /// Always written in this form.
        port: u16,
    },
    /// `/path`: a request to this server itself, or one that was redirected here.
    Origin(PathAndQuery),
    /// `*`: OPTIONS only.
    Asterisk,
}

impl Target {
    /// Reads a target in the form that `method` asks for.
    ///
    /// # Errors
    /// The text is in no form, in one that the method may not use, or holds bytes that no URI may hold.
    pub fn parse(method: &Method, text: &str) -> Result<Target, Refusal> {
        // What a URI may not hold is encoded by now ([`encode_bare`]); a fragment is never sent (RFC 9112 §3.2.1).
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(Refusal::Target);
        }
        if method == Method::CONNECT {
            let authority = Authority::parse(text)?;
            // RFC 9110 §9.3.6: a CONNECT target without a port is refused.
            let port = authority.port.ok_or(Refusal::Authority)?;
            return Ok(Target::Authority { host: authority.host, port });
        }
        if text == "*" {
            return if method == Method::OPTIONS { Ok(Target::Asterisk) } else { Err(Refusal::TargetForm) };
        }
        if text.starts_with('/') {
            return Ok(Target::Origin(path(text)?));
        }
        let (scheme, rest) = text.split_once("://").ok_or(Refusal::Target)?;
        let scheme = match scheme {
            s if s.eq_ignore_ascii_case("http") => Scheme::Http,
            s if s.eq_ignore_ascii_case("https") => Scheme::Https,
            _ => return Err(Refusal::Scheme),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let authority = Authority::parse(&rest[..end])?;
        let path = match &rest[end..] {
            // RFC 9112 §3.2.4: the last proxy turns this into `OPTIONS *`.
            "" if method == Method::OPTIONS => PathAndQuery::from_static("*"),
            "" => PathAndQuery::from_static("/"),
            query if query.starts_with('?') => path(&format!("/{query}"))?,
            other => path(other)?,
        };
        Ok(Target::Absolute { scheme, authority, path })
    }
}

fn path(text: &str) -> Result<PathAndQuery, Refusal> {
    PathAndQuery::try_from(text).map_err(|_| Refusal::Target)
}

/// Mends the target in the first line of a head; see [`encode_bare`].
pub(super) fn encode_bare_in(head: &[u8]) -> Cow<'_, [u8]> {
    let line_end = head.iter().position(|&byte| byte == b'\r').unwrap_or(head.len());
    let start = head[..line_end].iter().position(|&byte| byte == b' ').unwrap_or(line_end);
    match encode_bare(&head[start..line_end]) {
        Cow::Borrowed(_) => Cow::Borrowed(head),
        Cow::Owned(target) => Cow::Owned([&head[..start], &target, &head[line_end..]].concat()),
    }
}

/// Percent-encodes what clients that build their URLs by hand leave bare in a target, as a browser would have: the
/// characters that WHATWG URL encodes in path and query, and whatever is not ASCII, byte by byte, since old sites'
/// names are not UTF-8. RFC 9112 §3.2 lets a server mend or refuse a target; spaces and control characters stay as
/// they are, to be refused.
pub(crate) fn encode_bare(target: &[u8]) -> Cow<'_, [u8]> {
    let query = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    let is_bare = |(at, &byte): (usize, &u8)| match byte {
        b'"' | b'<' | b'>' => true,
        b'`' | b'{' | b'}' => at < query,
        _ => !byte.is_ascii(),
    };
    if !target.iter().enumerate().any(is_bare) {
        return Cow::Borrowed(target);
    }
    let mut encoded = Vec::with_capacity(target.len() + 16);
    for (at, byte) in target.iter().enumerate() {
        if is_bare((at, byte)) {
            encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            encoded.push(*byte);
        }
    }
    Cow::Owned(encoded)
}
