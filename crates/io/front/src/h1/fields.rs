//! Field lines: from httparse into a `HeaderMap`, questions about list-valued fields, and onto the wire.
//! No framing decisions are made here.

use super::Refusal;
use bytes::{BufMut, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};

/// Moves parsed field lines into a map.
pub(super) fn to_map(lines: &[httparse::Header<'_>]) -> Result<HeaderMap, Refusal> {
    let mut fields = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Refusal::Field)?;
        let value = HeaderValue::from_bytes(line.value).map_err(|_| Refusal::Field)?;
        fields.try_append(name, value).map_err(|_| Refusal::TooManyFields)?;
    }
    Ok(fields)
}

/// An upper bound of the field lines in a complete head, to size the parser's table.
pub(super) fn count_lines(head: &[u8]) -> usize {
    head.iter().filter(|&&byte| byte == b'\n').count()
}

/// What httparse found wrong, in our words; `first_line` is the refusal of the head's first line.
pub(super) fn refusal_of(error: httparse::Error, first_line: Refusal) -> Refusal {
    match error {
        httparse::Error::HeaderName | httparse::Error::HeaderValue => Refusal::Field,
        httparse::Error::TooManyHeaders => Refusal::TooManyFields,
        httparse::Error::Version => Refusal::Version,
        httparse::Error::NewLine | httparse::Error::Status | httparse::Error::Token => first_line,
    }
}

/// Whether a comma-separated field names `token` (RFC 9110 §5.6.1, compared without case).
pub fn lists_token(fields: &HeaderMap, name: HeaderName, token: &str) -> bool {
    fields
        .get_all(name)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .any(|item| item.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// Writes fields, one per line, names in the customary title case.
pub(super) fn write(fields: &HeaderMap, out: &mut BytesMut) {
    for (name, value) in fields {
        let mut start_of_word = true;
        for &byte in name.as_str().as_bytes() {
            out.put_u8(if start_of_word { byte.to_ascii_uppercase() } else { byte });
            start_of_word = byte == b'-';
        }
        out.put_slice(b": ");
        out.put_slice(value.as_bytes());
        out.put_slice(b"\r\n");
    }
}
