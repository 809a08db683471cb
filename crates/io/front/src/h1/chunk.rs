//! The line before a chunk and the trailers after the last one (RFC 9112 §7.1), both ways. Pure.

use super::fields;
use super::{HeadLimits, Refusal};
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName};
use std::fmt::Write;

/// The longest line before a chunk, in bytes, CRLF included.
pub(super) const LONGEST_CHUNK_LINE: usize = 1024;

/// Reads the line before a chunk, without its CRLF, into the chunk's size in bytes.
///
/// # Errors
/// A size that is no hexadecimal number below 2^63, or extensions out of their grammar.
pub(super) fn parse_line(line: &[u8]) -> Result<u64, Refusal> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, extensions) = line.split_at(end);
    let digits = std::str::from_utf8(digits).map_err(|_| Refusal::ChunkSize)?;
    // RFC 9112 §7.1: anticipate large numerals and prevent overflow. An empty text is no number either.
    let size = u64::from_str_radix(digits, 16).map_err(|_| Refusal::ChunkSize)?;
    if i64::try_from(size).is_err() || digits.len() > 16 {
        return Err(Refusal::ChunkSize);
    }
    check_extensions(extensions)?;
    Ok(size)
}

/// Extensions are dropped (RFC 9112 §7.1.1), but only after their grammar: bytes that end a line elsewhere, or
/// quotes that swallow one, must not hide in them.
fn check_extensions(mut rest: &[u8]) -> Result<(), Refusal> {
    while !rest.is_empty() {
        let [b';', after @ ..] = skip_blanks(rest) else { return Err(Refusal::ChunkSize) };
        rest = token(skip_blanks(after))?;
        if let [b'=', after @ ..] = skip_blanks(rest) {
            let value = skip_blanks(after);
            rest = if let [b'"', text @ ..] = value { quoted(text)? } else { token(value)? };
        }
    }
    Ok(())
}

/// RFC 9110 §5.6.3: spaces and tabs, nothing else.
fn skip_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    &text[end..]
}

/// The rest after a token of at least one byte.
fn token(text: &[u8]) -> Result<&[u8], Refusal> {
    let end = text.iter().position(|&byte| !is_token(byte)).unwrap_or(text.len());
    if end == 0 { Err(Refusal::ChunkExtension) } else { Ok(&text[end..]) }
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The rest after a quoted string whose opening quote is already gone.
fn quoted(text: &[u8]) -> Result<&[u8], Refusal> {
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate() {
        if byte == 0x7f || (byte < 0x20 && byte != b'\t') {
            return Err(Refusal::ChunkExtension);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Ok(&text[at + 1..]),
            _ => {}
        }
    }
    Err(Refusal::ChunkExtension)
}

/// Reads a complete trailer section, its empty line included.
///
/// # Errors
/// Malformed field lines, or a field of framing or routing.
pub(super) fn parse_trailers(section: &[u8], limits: &HeadLimits) -> Result<HeaderMap, Refusal> {
    let mut lines = vec![httparse::EMPTY_HEADER; fields::count_lines(section)];
    let parsed = httparse::parse_headers(section, &mut lines)
        .map_err(|error| fields::refusal_of(error, Refusal::Field))?;
    let httparse::Status::Complete((_, parsed)) = parsed else { return Err(Refusal::HeadIncomplete) };
    if parsed.len() > limits.fields {
        return Err(Refusal::TooManyFields);
    }
    vet_trailers(fields::to_map(parsed)?)
}

/// Refuses trailers that would change the message, and leaves out those that may not trail.
///
/// # Errors
/// A field of framing or routing.
pub(crate) fn vet_trailers(mut trailers: HeaderMap) -> Result<HeaderMap, Refusal> {
    // These would be an attempt to have the message read twice; others that may not trail are only useless.
    let forged = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::HOST];
    if forged.iter().any(|name| trailers.contains_key(name)) {
        return Err(Refusal::Trailer);
    }
    let useless: Vec<_> = trailers.keys().filter(|name| !may_trail(name)).cloned().collect();
    for name in useless {
        trailers.remove(name);
    }
    Ok(trailers)
}

/// RFC 9110 §6.5.1: no trailer for framing, routing, request modifiers, authentication or content format.
fn may_trail(name: &HeaderName) -> bool {
    const HEAD_ONLY: [HeaderName; 33] = [
        header::AGE,
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONNECTION,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::COOKIE,
        header::DATE,
        header::EXPECT,
        header::EXPIRES,
        header::FORWARDED,
        header::HOST,
        header::IF_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_NONE_MATCH,
        header::IF_RANGE,
        header::IF_UNMODIFIED_SINCE,
        header::LOCATION,
        header::MAX_FORWARDS,
        header::PROXY_AUTHENTICATE,
        header::PROXY_AUTHORIZATION,
        header::RANGE,
        header::RETRY_AFTER,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::VARY,
        header::VIA,
        header::WWW_AUTHENTICATE,
    ];
    !(HEAD_ONLY.contains(name) || name.as_str().starts_with("x-forwarded-"))
}

/// The line before a chunk of `size` bytes.
pub(crate) fn encode_line(size: usize) -> Bytes {
    let mut line = BytesMut::with_capacity(18);
    // Writing to a BytesMut grows it; there is nothing that could fail.
    let _ = write!(line, "{size:x}\r\n");
    line.freeze()
}

/// The last chunk with the trailers that may trail; others are left out.
pub(crate) fn encode_end(trailers: Option<&HeaderMap>) -> Bytes {
    let Some(trailers) = trailers.filter(|trailers| !trailers.is_empty()) else {
        return Bytes::from_static(b"0\r\n\r\n");
    };
    let mut out = BytesMut::from(&b"0\r\n"[..]);
    fields::write(&allowed_trailers(trailers), &mut out);
    out.put_slice(b"\r\n");
    out.freeze()
}

/// Those of `trailers` that may trail.
pub(crate) fn allowed_trailers(trailers: &HeaderMap) -> HeaderMap {
    let mut allowed = HeaderMap::new();
    for (name, value) in trailers.iter().filter(|(name, _)| may_trail(name)) {
        allowed.append(name, value.clone());
    }
    allowed
}
