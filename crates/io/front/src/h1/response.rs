//! Response heads: written with the framing that the client can follow, and read for clients in tests. Pure.

use super::fields;
use super::framing::{self, Framing};
use super::{HeadLimits, Refusal};
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, StatusCode, Version};

/// Fields that belong to one connection and are ours to write.
const OF_THE_CONNECTION: [HeaderName; 4] = [
    CONNECTION,
    TRANSFER_ENCODING,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The head of a response that was read.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// All fields but Transfer-Encoding, which `framing` replaces.
    pub fields: HeaderMap,
    /// Where the body ends.
    pub framing: Framing,
}

impl ResponseHead {
    /// Reads the complete head of the response to a `method` request.
    ///
    /// # Errors
    /// Everything that two clients could read differently.
    pub fn parse(head: &[u8], method: &Method, limits: &HeadLimits) -> Result<ResponseHead, Refusal> {
        let mut lines = vec![httparse::EMPTY_HEADER; fields::count_lines(head)];
        let mut parsed = httparse::Response::new(&mut lines);
        let status = parsed.parse(head).map_err(|error| fields::refusal_of(error, Refusal::StatusLine))?;
        if status.is_partial() {
            return Err(Refusal::HeadIncomplete);
        }
        if parsed.headers.len() > limits.fields {
            return Err(Refusal::TooManyFields);
        }
        let status =
            StatusCode::from_u16(parsed.code.unwrap_or_default()).map_err(|_| Refusal::StatusLine)?;
        let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
        let mut fields = fields::to_map(parsed.headers)?;
        framing::merge_lengths(&mut fields);
        let framing = framing::of_response(method, status, version, &fields)?;
        fields.remove(TRANSFER_ENCODING);
        Ok(ResponseHead { status, version, fields, framing })
    }
}

/// How a response is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Where the body will end.
    pub(crate) framing: Framing,
    /// Whether the connection can serve another request.
    pub(crate) persists: bool,
}

/// Chooses the framing of a final response and rewrites `fields` to say it.
///
/// # Errors
/// `fields` hold a Content-Length that is no single number.
pub(crate) fn plan(
    method: &Method,
    version: Version,
    status: StatusCode,
    fields: &mut HeaderMap,
    persists: bool,
) -> Result<Plan, Refusal> {
    let framing = match settle_body(method, status, fields)? {
        // RFC 9112 §6.1: no Transfer-Encoding unless the request says HTTP/1.1.
        Framing::Chunked if version == Version::HTTP_10 => Framing::UntilClose,
        Framing::Chunked => {
            fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            Framing::Chunked
        }
        framing => framing,
    };
    let persists = persists && framing != Framing::UntilClose;
    if !persists {
        // RFC 9112 §9.6.
        fields.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(Plan { framing, persists })
}

/// How much body a final response has: none, so many bytes, or an unknown number of them (`Chunked`). Fields of the
/// connection are left out of `fields`.
///
/// # Errors
/// `fields` hold a Content-Length that is no single number.
pub(crate) fn settle_body(
    method: &Method,
    status: StatusCode,
    fields: &mut HeaderMap,
) -> Result<Framing, Refusal> {
    let length = framing::content_length(fields)?;
    for name in OF_THE_CONNECTION.iter().chain([&UPGRADE]) {
        fields.remove(name);
    }
    if status == StatusCode::RESET_CONTENT {
        // RFC 9110 §15.3.6: no content. Some clients go by the status alone and some by the fields; this suits both.
        fields.insert(CONTENT_LENGTH, HeaderValue::from(0));
        return Ok(Framing::None);
    }
    if let Some(bytes) = length {
        // In the one way of writing it.
        fields.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    }
    if framing::without_body(method, status) {
        if status == StatusCode::NO_CONTENT {
            // RFC 9110 §8.6: no Content-Length in 204.
            fields.remove(CONTENT_LENGTH);
        }
        return Ok(Framing::None);
    }
    Ok(match length {
        Some(0) => Framing::None,
        Some(bytes) => Framing::Length(bytes),
        None => Framing::Chunked,
    })
}

/// Leaves out what an informational response or the answer that opens a tunnel may not carry
/// (RFC 9112 §6.1, RFC 9110 §8.6 and §9.3.6).
pub(crate) fn without_framing(fields: &mut HeaderMap) {
    fields.remove(CONTENT_LENGTH);
    for name in &OF_THE_CONNECTION {
        fields.remove(name);
    }
}

/// Writes a response head with the fields as given.
pub(crate) fn encode_head(status: StatusCode, fields: &HeaderMap) -> Bytes {
    let mut out = BytesMut::with_capacity(128 + 48 * fields.len());
    out.put_slice(b"HTTP/1.1 ");
    out.put_slice(status.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.put_slice(b"\r\n");
    fields::write(fields, &mut out);
    out.put_slice(b"\r\n");
    out.freeze()
}
