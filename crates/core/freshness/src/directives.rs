//! `Cache-Control` as sent in requests and responses (RFC 9111 §5.2), and `Pragma` (§5.4).

use http::header::{self, HeaderMap};
use std::time::Duration;

/// RFC 9111 §1.2.2: greater values are taken as 2^31 seconds.
const MAX_SECONDS: u64 = 1 << 31;

/// Response directives (RFC 9111 §5.2.2). Forms with field names count as the plain form, which is stricter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each field is the directive's own name
pub struct ResponseDirectives {
    pub max_age: Option<Duration>,
    pub s_maxage: Option<Duration>,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
    pub no_cache: bool,
    pub no_store: bool,
    pub no_transform: bool,
    pub private: bool,
    pub public: bool,
    pub immutable: bool,
}

/// Request directives (RFC 9111 §5.2.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each field is the directive's own name
pub struct RequestDirectives {
    pub max_age: Option<Duration>,
    /// `max-stale` without a value is `Duration::MAX`.
    pub max_stale: Option<Duration>,
    pub min_fresh: Option<Duration>,
    pub no_cache: bool,
    pub no_store: bool,
    pub no_transform: bool,
    pub only_if_cached: bool,
}

impl ResponseDirectives {
    /// Reads all `Cache-Control` fields of a response.
    pub fn of(fields: &HeaderMap) -> Self {
        let mut found = Self::default();
        each_directive(fields, |name, argument| match name {
            "max-age" => restrict(&mut found.max_age, argument),
            "s-maxage" => restrict(&mut found.s_maxage, argument),
            "must-revalidate" => found.must_revalidate = true,
            "proxy-revalidate" => found.proxy_revalidate = true,
            "must-understand" => found.must_understand = true,
            "no-cache" => found.no_cache = true,
            "no-store" => found.no_store = true,
            "no-transform" => found.no_transform = true,
            "private" => found.private = true,
            "public" => found.public = true,
            "immutable" => found.immutable = true,
            // RFC 9111 §5.2.3: a cache MUST ignore unrecognized directives.
            _ => {}
        });
        found
    }
}

impl RequestDirectives {
    /// Reads all `Cache-Control` fields of a request, or `Pragma` where there is none.
    pub fn of(fields: &HeaderMap) -> Self {
        let mut found = Self::default();
        each_directive(fields, |name, argument| match name {
            "max-age" => restrict(&mut found.max_age, argument),
            "max-stale" => found.max_stale = Some(argument.map_or(Duration::MAX, seconds_or_none_of_it)),
            "min-fresh" => found.min_fresh = argument.map(seconds_or_none_of_it),
            "no-cache" => found.no_cache = true,
            "no-store" => found.no_store = true,
            "no-transform" => found.no_transform = true,
            "only-if-cached" => found.only_if_cached = true,
            _ => {}
        });
        // RFC 9111 §5.4: Pragma counts only where the request has no Cache-Control.
        if !fields.contains_key(header::CACHE_CONTROL) {
            found.no_cache = fields
                .get_all(header::PRAGMA)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .any(|value| value.split(',').any(|word| word.trim().eq_ignore_ascii_case("no-cache")));
        }
        found
    }
}

/// Of several values, the most restrictive counts (RFC 9111 §4.2.1: "the most restrictive directive should be
/// honored"); an invalid one makes the response stale (same section).
fn restrict(slot: &mut Option<Duration>, argument: Option<&str>) {
    let value = argument.map_or(Duration::ZERO, seconds_or_none_of_it);
    *slot = Some(slot.map_or(value, |earlier| earlier.min(value)));
}

fn seconds_or_none_of_it(text: &str) -> Duration {
    delta_seconds(text).unwrap_or(Duration::ZERO)
}

/// RFC 9111 §1.2.2: digits only, saturating.
pub(crate) fn delta_seconds(text: &str) -> Option<Duration> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Duration::from_secs(text.parse::<u64>().unwrap_or(MAX_SECONDS).min(MAX_SECONDS)))
}

/// Calls `on` with each directive's lower-case name and its argument, token or quoted string (RFC 9111 §5.2: both
/// forms are to be accepted).
fn each_directive(fields: &HeaderMap, mut on: impl FnMut(&str, Option<&str>)) {
    for value in fields.get_all(header::CACHE_CONTROL) {
        // Field values may hold any bytes; directives are ASCII, so others only spoil their own member.
        let text = String::from_utf8_lossy(value.as_bytes());
        for member in split_outside_quotes(&text) {
            let (name, argument) = match member.split_once('=') {
                Some((name, argument)) => (name, Some(unquote(argument))),
                None => (member, None),
            };
            on(&name.trim().to_ascii_lowercase(), argument);
        }
    }
}

fn unquote(argument: &str) -> &str {
    argument.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(argument)
}

fn split_outside_quotes(text: &str) -> Vec<&str> {
    let (mut members, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                members.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(text[start..].trim());
    members.retain(|member| !member.is_empty());
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn response(value: &str) -> ResponseDirectives {
        let mut fields = HeaderMap::new();
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_str(value).unwrap());
        ResponseDirectives::of(&fields)
    }

    #[test]
    fn directives_are_read_in_any_case_form_and_order() {
        assert_eq!(response("Max-Age=\"60\" , PUBLIC").max_age, Some(Duration::from_secs(60)));
        assert!(response("Max-Age=60,PUBLIC").public);
        assert!(response("x=\"a, no-store\", no-cache=\"set-cookie\"").no_cache);
        assert!(!response("x=\"a, no-store\"").no_store, "a quoted comma separates nothing");
        assert_eq!(response(", ,").max_age, None);
    }

    #[test]
    fn an_invalid_age_makes_stale_and_a_huge_one_saturates() {
        for invalid in
            ["max-age=-1", "max-age=1.5", "max-age=x", "max-age", "max-age=", "max-age='60'", "max-age= 60"]
        {
            assert_eq!(response(invalid).max_age, Some(Duration::ZERO), "{invalid}");
        }
        assert_eq!(response("max-age=99999999999999999999999").max_age, Some(Duration::from_secs(1 << 31)));
    }

    #[test]
    fn of_two_ages_the_smaller_counts() {
        assert_eq!(response("max-age=100, max-age=1").max_age, Some(Duration::from_secs(1)));
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        let mut fields = HeaderMap::new();
        fields.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
        assert!(RequestDirectives::of(&fields).no_cache);
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=9"));
        assert!(!RequestDirectives::of(&fields).no_cache);
    }
}
