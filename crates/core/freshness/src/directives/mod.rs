//! Cache directives: their syntax (RFC 9111 §5.2), and delta-seconds (§1.2.2). What each says is in `request` and `response`.

mod request;
mod response;

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderValue;

pub use request::RequestDirectives;
pub use response::ResponseDirectives;

/// RFC 9111 §1.2.2: greater values MUST be taken as 2^31 seconds.
pub(crate) const MAX_SECONDS: u64 = 1 << 31;

/// RFC 9111 §1.2.2: digits only, saturating.
pub(crate) fn delta_seconds(text: &str) -> Option<Duration> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Duration::from_secs(text.parse::<u64>().unwrap_or(MAX_SECONDS).min(MAX_SECONDS)))
}

/// Of several values, the least counts; an invalid one is zero. RFC 9111 §4.2.1: the first, or none of them, and what has
/// invalid content is stale; the least is never more than the first.
fn restrict(slot: &mut Option<Duration>, argument: Option<&str>) {
    let value = argument.map_or(Duration::ZERO, seconds_or_none_of_it);
    *slot = Some(slot.map_or(value, |earlier| earlier.min(value)));
}

fn seconds_or_none_of_it(text: &str) -> Duration {
    delta_seconds(text).unwrap_or(Duration::ZERO)
}

/// Calls `on` with each directive's lower-case name and its argument. RFC 9111 §5.2: names in any case, arguments as token
/// or quoted string.
fn each<'a>(values: impl IntoIterator<Item = &'a HeaderValue>, mut on: impl FnMut(&str, Option<&str>)) {
    for value in values {
        // Field values may hold any bytes; directives are ASCII, so others only spoil their own member.
        let text = String::from_utf8_lossy(value.as_bytes());
        for member in split_outside_quotes(&text) {
            let (name, argument) = match member.split_once('=') {
                Some((name, argument)) => (name, Some(unquote(argument))),
                None => (member, None),
            };
            on(&lower_case(name.trim()), argument.as_deref());
        }
    }
}

/// RFC 9110 §5.6.4: a backslash stands before a character that is meant as it is.
fn unquote(argument: &str) -> Cow<'_, str> {
    let Some(inner) = argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return argument.into();
    };
    if !inner.contains('\\') {
        return inner.into();
    }
    let mut characters = inner.chars();
    let plain = std::iter::from_fn(|| match characters.next()? {
        '\\' => characters.next(),
        other => Some(other),
    });
    plain.collect::<String>().into()
}

/// A name as it is compared. Nearly all are written so already, and every answer from a store reads them.
fn lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        name.to_ascii_lowercase().into()
    } else {
        name.into()
    }
}

/// The members of a list that are not empty, without the blanks around them.
fn split_outside_quotes(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    let members = std::iter::from_fn(move || {
        let all = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let comma = all.bytes().position(|byte| match byte {
            _ if escaped => {
                escaped = false;
                false
            }
            b'\\' if quoted => {
                escaped = true;
                false
            }
            b'"' => {
                quoted = !quoted;
                false
            }
            byte => byte == b',' && !quoted,
        });
        rest = comma.map(|comma| &all[comma + 1..]);
        Some(all[..comma.unwrap_or(all.len())].trim())
    });
    members.filter(|member| !member.is_empty())
}
