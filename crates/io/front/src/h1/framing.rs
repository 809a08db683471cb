//! Where a body ends (RFC 9112 §6.3), read from a head. Pure; strict where the RFC leaves a choice.

use super::Refusal;
use super::fields::lists_token;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::{Method, StatusCode, Version};

/// How the body of a message is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// Exactly this many bytes, more than none.
    Length(u64),
    /// Chunks, with trailers possible.
    Chunked,
    /// Until the connection closes (responses only).
    UntilClose,
}

/// How the body of a request is delimited.
///
/// # Errors
/// Anything that two servers could read differently.
pub(super) fn of_request(version: Version, fields: &HeaderMap) -> Result<Framing, Refusal> {
    Ok(declared(version, fields)?.unwrap_or(Framing::None))
}

/// How the body of the response to a `method` request is delimited.
///
/// # Errors
/// Anything that two clients could read differently.
pub(super) fn of_response(
    method: &Method,
    status: StatusCode,
    version: Version,
    fields: &HeaderMap,
) -> Result<Framing, Refusal> {
    if without_body(method, status) || (method == Method::CONNECT && status.is_success()) {
        return Ok(Framing::None);
    }
    Ok(declared(version, fields)?.unwrap_or(Framing::UntilClose))
}

/// Responses that never have a body, whatever their fields say (RFC 9112 §6.3, 1).
pub(crate) fn without_body(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD
        || status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}

/// What Transfer-Encoding and Content-Length say together.
fn declared(version: Version, fields: &HeaderMap) -> Result<Option<Framing>, Refusal> {
    let length = content_length(fields)?;
    if !fields.contains_key(TRANSFER_ENCODING) {
        return Ok(length.map(|bytes| if bytes == 0 { Framing::None } else { Framing::Length(bytes) }));
    }
    // RFC 9112 §6.1: both together ought to be handled as an error, and so must any transfer coding
    // in HTTP/1.0.
    if length.is_some() {
        return Err(Refusal::FramingConflict);
    }
    if version == Version::HTTP_10 {
        return Err(Refusal::TransferEncoding);
    }
    transfer_encoding(fields)?;
    Ok(Some(Framing::Chunked))
}

/// Makes one Content-Length of several that are the same, as RFC 9112 §6.3, 5 lets a recipient of a response do and browsers do:
/// frameworks and servers before them each write one. Others stay as they are, to be refused.
pub fn merge_lengths(fields: &mut HeaderMap) {
    let values = fields.get_all(CONTENT_LENGTH).iter();
    let said: Vec<_> = values
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii))
        .collect();
    if let [first, others @ ..] = &said[..]
        && !others.is_empty()
        && others.iter().all(|other| other == first)
        && let Ok(one) = HeaderValue::from_bytes(first)
    {
        fields.insert(CONTENT_LENGTH, one);
    }
}

/// The one Content-Length there may be; what was repeated in a response is merged by then ([`merge_lengths`]).
///
/// # Errors
/// More than one value, or one that is not a decimal number below 2^63.
pub(crate) fn content_length(fields: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut values = fields.get_all(CONTENT_LENGTH).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() || value.as_bytes().contains(&b',') {
        return Err(Refusal::ContentLengthRepeated);
    }
    let digits = value.to_str().map_err(|_| Refusal::ContentLength)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::ContentLength);
    }
    // Others count in signed 64 bits.
    let bytes = digits.parse::<u64>().ok().filter(|&bytes| i64::try_from(bytes).is_ok());
    bytes.map(Some).ok_or(Refusal::ContentLength)
}

/// Accepts exactly one `chunked`.
fn transfer_encoding(fields: &HeaderMap) -> Result<(), Refusal> {
    let mut values = fields.get_all(TRANSFER_ENCODING).iter();
    let value = values.next().map(|value| value.as_bytes()).unwrap_or_default();
    if values.next().is_some() {
        return Err(Refusal::TransferEncoding);
    }
    if value.eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let mut codings = value.rsplit(|&byte| byte == b',').map(|coding| coding.trim_ascii());
    let chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let token = |coding: &[u8]| {
        !coding.is_empty() && coding.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    let last_is_chunked = codings.next().is_some_and(chunked);
    let others_are_codings = codings.all(|coding| token(coding) && !chunked(coding));
    Err(if last_is_chunked && others_are_codings {
        Refusal::TransferCoding
    } else {
        Refusal::TransferEncoding
    })
}

/// Whether the sender of a request lets the connection be used again.
pub(crate) fn request_persists(version: Version, fields: &HeaderMap) -> bool {
    // RFC 9112 §9.3: to a proxy, HTTP/1.0 never persists, `keep-alive` or not. `Proxy-Connection` means
    // nothing (RFC 9112 appendix C.2.2).
    version == Version::HTTP_11 && !lists_token(fields, CONNECTION, "close")
}
