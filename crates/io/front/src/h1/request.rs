//! Request heads: from the wire into a form that is always valid, and back. Pure.

use super::fields;
use super::framing::{self, Framing};
use super::target::{Authority, Target, encode_bare_in};
use super::{HeadLimits, Refusal};
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderValue, MAX_FORWARDS, SEC_WEBSOCKET_KEY, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{Method, Version};

/// The one protocol that connections are upgraded to.
pub(crate) const WEBSOCKET: &str = "websocket";

/// The head of a request that may be forwarded.
#[derive(Debug, Clone)]
pub struct RequestHead {
    /// The method; case matters (RFC 9110 §9.1).
    pub method: Method,
    /// What is asked for.
    pub target: Target,
    /// HTTP/1.0, HTTP/1.1 or HTTP/2.
    pub version: Version,
    /// All fields but Transfer-Encoding, which `framing` replaces. Hop-by-hop fields are still here. Host is the
    /// target's where the target names one.
    pub fields: HeaderMap,
    /// Where the body ends. Over HTTP/2 a body of unknown length counts as `Chunked`.
    pub framing: Framing,
    /// The protocol that the client asks to go on with instead of HTTP. Only WebSocket is known, as `websocket`;
    /// other upgrades are ignored (RFC 9110 §7.8). An extended CONNECT (RFC 8441) is given as such a GET as well.
    pub upgrade: Option<&'static str>,
    /// Whether the client waits for a `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

impl RequestHead {
    /// Reads a complete head, as [`super::HeadScanner`] delimits it.
    ///
    /// # Errors
    /// Everything that may not be forwarded.
    pub fn parse(head: &[u8], limits: &HeadLimits) -> Result<RequestHead, Refusal> {
        let head = &*encode_bare_in(head);
        let mut lines = vec![httparse::EMPTY_HEADER; fields::count_lines(head)];
        let mut parsed = httparse::Request::new(&mut lines);
        let status = parsed.parse(head).map_err(|error| match error {
            httparse::Error::Version => version_refusal(head),
            error => fields::refusal_of(error, Refusal::RequestLine),
        })?;
        if status.is_partial() {
            return Err(Refusal::HeadIncomplete);
        }
        let method = parsed.method.unwrap_or_default();
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| Refusal::RequestLine)?;
        let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
        let target = parsed.path.unwrap_or_default();
        if target.len() as u64 > limits.target.0 {
            return Err(Refusal::TargetTooLong);
        }
        if parsed.headers.len() > limits.fields {
            return Err(Refusal::TooManyFields);
        }
        let target = Target::parse(&method, target)?;
        let mut fields = fields::to_map(parsed.headers)?;
        let framing = framing::of_request(version, &fields)?;
        fields.remove(TRANSFER_ENCODING);
        settle_host(&target, version, &mut fields)?;
        if version == Version::HTTP_10 {
            // RFC 9110 §10.1.1: to be ignored in a request older than HTTP/1.1.
            fields.remove(EXPECT);
        }
        let expects_continue = settle_semantics(&method, framing, &mut fields)?;
        let upgrade = upgrade(&method, version, framing, &fields)?;
        Ok(RequestHead { method, target, version, fields, framing, upgrade, expects_continue })
    }
}

/// Checks what means the same in every version of HTTP; whether the client waits for a `100 Continue`.
///
/// # Errors
/// Content where it has no meaning, an unknown expectation, or a number of hops that is none.
pub(crate) fn settle_semantics(
    method: &Method,
    framing: Framing,
    fields: &mut HeaderMap,
) -> Result<bool, Refusal> {
    match *method {
        // RFC 9110 §9.3.6: content of CONNECT has no meaning; the tunnel's first bytes could be read as such.
        Method::CONNECT if framing != Framing::None => return Err(Refusal::ConnectBody),
        // RFC 9110 §9.3.8: TRACE has no content, and would send it back.
        Method::TRACE if framing != Framing::None => return Err(Refusal::TraceBody),
        Method::TRACE | Method::OPTIONS => check_max_forwards(fields)?,
        _ => {}
    }
    settle_expectation(framing, fields)
}

/// RFC 9110 §7.6.2: one decimal number. Whoever counts another one would let the request go further.
fn check_max_forwards(fields: &HeaderMap) -> Result<(), Refusal> {
    let mut values = fields.get_all(MAX_FORWARDS).iter();
    let Some(value) = values.next() else { return Ok(()) };
    let digits = value.as_bytes();
    let counts = (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if counts && values.next().is_none() { Ok(()) } else { Err(Refusal::MaxForwards) }
}

/// RFC 9110 §10.1.1: only 100-continue is known, and it means something only where content follows.
fn settle_expectation(framing: Framing, fields: &mut HeaderMap) -> Result<bool, Refusal> {
    let mut items =
        fields.get_all(EXPECT).iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    if items.any(|item| !item.trim_ascii().eq_ignore_ascii_case(b"100-continue")) {
        return Err(Refusal::Expectation);
    }
    if framing == Framing::None {
        fields.remove(EXPECT);
    }
    Ok(fields.contains_key(EXPECT))
}

/// RFC 6455 §4.2.1: a GET of HTTP/1.1 or later whose Upgrade names `websocket` and whose Connection names `upgrade`.
/// With a body it is none: what the client sends next could be read as either.
/// Without a key there is no answer that the client could believe.
fn upgrade(
    method: &Method,
    version: Version,
    framing: Framing,
    fields: &HeaderMap,
) -> Result<Option<&'static str>, Refusal> {
    let asked = method == Method::GET
        && version == Version::HTTP_11
        && framing == Framing::None
        && fields::lists_token(fields, CONNECTION, "upgrade")
        && fields::lists_token(fields, UPGRADE, WEBSOCKET);
    if asked && !fields.contains_key(SEC_WEBSOCKET_KEY) {
        return Err(Refusal::WebSocketKey);
    }
    Ok(asked.then_some(WEBSOCKET))
}

/// Tells a version that we don't speak from a line that is no request line at all.
fn version_refusal(head: &[u8]) -> Refusal {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut parts = line.split(|&byte| byte == b' ');
    match (parts.nth(2), parts.next()) {
        (Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor]), None)
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Refusal::Version
        }
        _ => Refusal::RequestLine,
    }
}

/// Checks Host and sets it from the target where the target names a host.
fn settle_host(target: &Target, version: Version, fields: &mut HeaderMap) -> Result<(), Refusal> {
    let mut values = fields.get_all(HOST).iter();
    // RFC 9112 §3.2: 400 to a request that lacks Host, has several, or one with an invalid value.
    match (values.next(), values.next()) {
        (None, _) if version == Version::HTTP_11 => return Err(Refusal::HostMissing),
        (None, _) => {}
        (Some(_), Some(_)) => return Err(Refusal::HostRepeated),
        (Some(host), None) if host.is_empty() => {}
        (Some(host), None) => {
            Authority::parse(host.to_str().map_err(|_| Refusal::Authority)?)?;
        }
    }
    // RFC 9112 §3.2.2: a proxy ignores the received Host and replaces it with the target's.
    let named = match target {
        Target::Absolute { authority, .. } => authority.to_string(),
        Target::Authority { host, port } => format!("{host}:{port}"),
        Target::Origin(_) | Target::Asterisk => return Ok(()),
    };
    fields.insert(HOST, HeaderValue::try_from(named).map_err(|_| Refusal::Authority)?);
    Ok(())
}

/// Writes a request head with the fields as given: what a client sends.
pub fn encode_request(method: &Method, target: &str, fields: &HeaderMap) -> Bytes {
    let mut out = BytesMut::with_capacity(128 + 48 * fields.len());
    out.put_slice(method.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(target.as_bytes());
    out.put_slice(b" HTTP/1.1\r\n");
    fields::write(fields, &mut out);
    out.put_slice(b"\r\n");
    out.freeze()
}
