//! Byte ranges as they are asked for and told (RFC 9110 §14).

use std::ops::Range;

use http::HeaderValue;
use http::header::{self, HeaderMap};

/// What a request's `Range` selects of a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All of it: no range, or one that is to be ignored.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Nothing that there is.
    Unsatisfiable,
}

/// What `request` selects of `length` bytes. Several ranges that do not touch select everything, as any recipient may decide
/// (RFC 9110 §14.2): where the whole is at hand, parts of a message with boundaries gain nothing.
pub(crate) fn select(request: &HeaderMap, length: u64) -> Selection {
    // Of an empty body no part can be told, so that all of it is sent.
    let Some(specs) = specs(request).filter(|_| length > 0) else { return Selection::Whole };
    let mut found: Vec<Range<u64>> = specs.into_iter().filter_map(|spec| spec.of(length)).collect();
    found.sort_by_key(|range| range.start);
    let Some(first) = found.first() else { return Selection::Unsatisfiable };
    let (start, mut end) = (first.start, first.end);
    for range in &found {
        if range.start > end {
            return Selection::Whole;
        }
        end = end.max(range.end);
    }
    Selection::Part(start..end)
}

/// One range as it is asked for (RFC 9110 §14.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spec {
    From(u64, Option<u64>),
    Last(u64),
}

impl Spec {
    fn read(text: &str) -> Option<Spec> {
        let (first, last) = text.split_once('-')?;
        match (number(first), number(last)) {
            (Some(first), None) if last.is_empty() => Some(Spec::From(first, None)),
            (Some(first), Some(last)) if first <= last => Some(Spec::From(first, Some(last))),
            (None, Some(length)) if first.is_empty() => Some(Spec::Last(length)),
            // RFC 9110 §14.1.1: invalid.
            _ => None,
        }
    }

    /// RFC 9110 §14.1.2; `None` if it is not satisfiable.
    fn of(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Spec::From(first, last) => first..last.map_or(length, |last| last.saturating_add(1).min(length)),
            Spec::Last(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// The ranges of a request; `None` if it has none, or a field that MUST be ignored: another unit, or invalid (RFC 9110 §14.2).
fn specs(request: &HeaderMap) -> Option<Vec<Spec>> {
    let mut values = request.get_all(header::RANGE).iter();
    let (unit, set) = values.next()?.to_str().ok()?.split_once('=')?;
    if values.next().is_some() || !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let members = set.split(',').map(str::trim).filter(|member| !member.is_empty());
    members.map(Spec::read).collect::<Option<Vec<Spec>>>().filter(|specs| !specs.is_empty())
}

/// Digits; more of them than fit are the greatest number.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// The bytes that a `Content-Range` tells, and the complete length; `None` where that is not told, or is less
/// (RFC 9110 §14.4: invalid).
pub(crate) fn read_content_range(value: &str) -> Option<(Range<u64>, u64)> {
    let (unit, told) = value.trim().split_once(' ')?;
    let (range, complete) = told.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, complete) = (number(first)?, number(last)?, number(complete)?);
    (unit.eq_ignore_ascii_case("bytes") && first <= last && last < complete)
        .then_some((first..last + 1, complete))
}

/// `Content-Range` of these bytes, out of `length` (RFC 9110 §14.4).
pub(crate) fn content_range(part: &Range<u64>, length: u64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("bytes {}-{}/{length}", part.start, part.end.checked_sub(1)?)).ok()
}

/// `Content-Range` where no byte is sent (RFC 9110 §15.5.17).
pub(crate) fn unsatisfied_range(length: u64) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("bytes */{length}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ten(range: &str) -> Selection {
        let mut request = HeaderMap::new();
        request.insert(header::RANGE, HeaderValue::from_str(range).unwrap());
        select(&request, 10)
    }

    #[test]
    fn ranges_are_bounded_by_what_there_is() {
        for (asked, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-5", 2..6),
            ("bytes=2-", 2..10),
            ("bytes=2-99", 2..10),
            ("bytes=2-99999999999999999999999", 2..10),
            ("bytes=-3", 7..10),
            ("bytes=-99", 0..10),
            ("Bytes= 2-5 , ", 2..6),
        ] {
            assert_eq!(of_ten(asked), Selection::Part(part), "{asked}");
        }
    }

    #[test]
    fn what_lies_beyond_the_end_is_not_satisfiable() {
        for asked in
            ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999-", "bytes=10-, 11-12"]
        {
            assert_eq!(of_ten(asked), Selection::Unsatisfiable, "{asked}");
        }
    }

    #[test]
    fn invalid_ranges_and_other_units_are_ignored() {
        for asked in [
            "bytes=5-2",
            "bytes=",
            "bytes",
            "bytes=a-b",
            "bytes=1-2,x",
            "lines=1-2",
            "bytes=--1",
            "bytes=-",
            "bytes=+1-2",
        ] {
            assert_eq!(of_ten(asked), Selection::Whole, "{asked}");
        }
    }

    #[test]
    fn several_ranges_are_one_where_they_touch_and_else_the_whole() {
        assert_eq!(of_ten("bytes=4-5,0-3"), Selection::Part(0..6));
        assert_eq!(of_ten("bytes=0-3,2-7"), Selection::Part(0..8));
        assert_eq!(of_ten("bytes=0-1,50-"), Selection::Part(0..2), "what is not there is left out");
        assert_eq!(of_ten("bytes=0-1,5-6"), Selection::Whole);
    }
}
