//! Responses of which only a part came: which part it is, of what, and what it goes together with (RFC 9111 §3.3, §3.4).

use std::ops::Range;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use crate::ranges::read_content_range;
use crate::stored::Stored;
use crate::tags;

/// The bytes that a 206 has, and of how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The bytes, counted from the representation's beginning.
    pub range: Range<u64>,
    /// Bytes of the whole representation.
    pub complete: u64,
}

impl Part {
    /// The part that a response has; `None` for all but a 206 of one range that tells the complete length.
    pub fn of(status: StatusCode, response: &HeaderMap) -> Option<Part> {
        let mut told = response.get_all(header::CONTENT_RANGE).iter();
        // RFC 9110 §14.4: in any other response Content-Range has no meaning; §14.6: several ranges come without it.
        let (Some(value), None, StatusCode::PARTIAL_CONTENT) = (told.next(), told.next(), status) else {
            return None;
        };
        let (range, complete) = read_content_range(value.to_str().ok()?)?;
        Some(Part { range, complete })
    }

    /// Bytes in it.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The fields that a 200 with all of the representation would have: what is stored, so that it answers like one once the
    /// rest is here (RFC 9110 §15.3.7.3).
    pub fn of_whole(&self, response: &HeaderMap) -> HeaderMap {
        let mut fields = response.clone();
        fields.remove(header::CONTENT_RANGE);
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(self.complete));
        fields
    }
}

impl Stored {
    /// Whether parts of it may be put together with others at all: it has a strong validator (RFC 9110 §8.8.1).
    pub fn has_strong_validator(&self) -> bool {
        match tags::of(&self.fields) {
            Some(tag) => !tags::is_weak(tag.as_bytes()),
            None => self.has_strong_date(),
        }
    }

    /// Whether a part of this response and one of another are parts of one representation: RFC 9111 §3.4, RFC 9110
    /// §15.3.7.3: they MUST share a strong validator.
    pub fn goes_with(&self, other: &Stored) -> bool {
        let length = |stored: &Stored| stored.fields.get(header::CONTENT_LENGTH).cloned();
        let is_same = match (tags::of(&self.fields), tags::of(&other.fields)) {
            (Some(own), Some(other)) => tags::strongly_equal(own.as_bytes(), other.as_bytes()),
            (None, None) => {
                let modified = |stored: &Stored| stored.fields.get(header::LAST_MODIFIED).cloned();
                self.has_strong_date() && other.has_strong_date() && modified(self) == modified(other)
            }
            _ => false,
        };
        is_same && length(self) == length(other)
    }
}
