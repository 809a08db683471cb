//! Entity tags (RFC 9110 §8.8.3): lists of them, and the two ways of comparing.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// The entity tags in all fields of this name; a comma may stand inside a tag.
pub(crate) fn listed<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields.get_all(name).iter().flat_map(|list| tags(list.as_bytes()))
}

fn tags(mut list: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let start = list.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        list = &list[start..];
        let open = list
            .iter()
            .position(|&byte| byte == b'"')
            .filter(|&open| open == 0 || (open == 2 && list.starts_with(b"W/")));
        let end = match open {
            Some(open) => list[open + 1..]
                .iter()
                .position(|&byte| byte == b'"')
                .map_or(list.len(), |end| open + end + 2),
            None => list.iter().position(|&byte| byte == b',').unwrap_or(list.len()),
        };
        let (tag, rest) = list.split_at(end);
        list = rest;
        Some(tag.trim_ascii())
    })
}

/// The entity tag of a response.
pub(crate) fn of(response: &HeaderMap) -> Option<&HeaderValue> {
    response.get(header::ETAG)
}

pub(crate) fn is_weak(tag: &[u8]) -> bool {
    tag.trim_ascii().starts_with(b"W/")
}

/// RFC 9110 §8.8.3.2, weak comparison.
pub(crate) fn weakly_equal(a: &[u8], b: &[u8]) -> bool {
    opaque(a) == opaque(b)
}

/// RFC 9110 §8.8.3.2, strong comparison.
pub(crate) fn strongly_equal(a: &[u8], b: &[u8]) -> bool {
    !is_weak(a) && !is_weak(b) && opaque(a) == opaque(b)
}

fn opaque(tag: &[u8]) -> &[u8] {
    let tag = tag.trim_ascii();
    tag.strip_prefix(b"W/").unwrap_or(tag)
}
