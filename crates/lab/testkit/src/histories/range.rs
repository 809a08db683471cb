//! Ranges as users of a history ask for them, and what they mean (RFC 9110 §14). Pure; the origin and the judge read them alike.

use std::fmt;
use std::ops::Range;

use super::random::Random;

/// What is asked for of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    /// From this byte to that one, both included.
    Within(usize, usize),
    /// All from this byte on.
    From(usize),
    /// So many bytes at the end.
    Last(usize),
}

impl Bounds {
    /// Ranges that touch, overlap, leave gaps and lie beyond the end, for bodies of some dozen to some 10,000 bytes.
    pub(super) fn random(random: &mut Random) -> Bounds {
        random.one_of(&[
            Bounds::Within(5, 40),
            Bounds::Within(0, 19),
            Bounds::Within(20, 39),
            Bounds::Within(30, 99_999),
            Bounds::From(40),
            Bounds::From(0),
            Bounds::Last(30),
            Bounds::Within(200, 299),
            Bounds::From(100_000),
        ])
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub(super) fn read(text: &str) -> Option<Bounds> {
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        match (first.parse().ok(), last.parse().ok()) {
            (Some(first), Some(last)) => Some(Bounds::Within(first, last)),
            (Some(first), None) => Some(Bounds::From(first)),
            (None, Some(count)) => Some(Bounds::Last(count)),
            (None, None) => None,
        }
    }

    /// The bytes that these are of `length`, which is not 0; `None` if there are none.
    pub(super) fn of(self, length: usize) -> Option<Range<usize>> {
        let range = match self {
            Bounds::Within(first, last) => first..length.min(last + 1),
            Bounds::From(first) => first..length,
            Bounds::Last(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bounds::Within(first, last) => write!(f, "bytes={first}-{last}"),
            Bounds::From(first) => write!(f, "bytes={first}-"),
            Bounds::Last(count) => write!(f, "bytes=-{count}"),
        }
    }
}

/// `Content-Range` of these bytes out of so many.
pub(super) fn content_range(range: &Range<usize>, length: usize) -> String {
    format!("bytes {}-{}/{length}", range.start, range.end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_again_and_means_these_bytes() {
        for (bounds, range) in [
            (Bounds::Within(5, 40), Some(5..10)),
            (Bounds::Within(5, 6), Some(5..7)),
            (Bounds::From(9), Some(9..10)),
            (Bounds::From(10), None),
            (Bounds::Last(3), Some(7..10)),
            (Bounds::Last(30), Some(0..10)),
        ] {
            assert_eq!(Bounds::read(&bounds.to_string()), Some(bounds));
            assert_eq!(bounds.of(10), range, "{bounds}");
        }
        assert_eq!(content_range(&(5..7), 10), "bytes 5-6/10");
    }
}
