//! Responses of which only a part came: which part it is, of what, and what it goes together with (RFC 9111 §3.3, §3.4).

use std::ops::Range;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::ranges::read_content_range;
use crate::stored::Stored;
use crate::tags;

/// Fields that speak of one answer and not of what it is of.
const OF_ITS_TIME: [HeaderName; 2] = [header::AGE, header::DATE];

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

    /// Whether all these bytes are in it.
    pub fn has(&self, range: &Range<u64>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
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

    /// Makes `request` ask for these bytes (RFC 9110 §14.1.2) and, if `or_all`, for all of it where it is another representation by
    /// now (§13.1.5); `false` where its validator is not strong, or `range` is empty, and the request stays as it was.
    pub fn ask_for_part(&self, request: &mut HeaderMap, range: &Range<u64>, or_all: bool) -> bool {
        let tag = tags::of(&self.fields);
        let validator = tag.or_else(|| self.fields.get(header::LAST_MODIFIED));
        let Some(validator) = validator.filter(|_| self.has_strong_validator()) else { return false };
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else { return false };
        let Ok(asked) = HeaderValue::from_str(&format!("bytes={}-{last}", range.start)) else { return false };
        request.insert(header::RANGE, asked);
        match or_all {
            true => request.insert(header::IF_RANGE, validator.clone()),
            false => request.remove(header::IF_RANGE),
        };
        true
    }

    /// Whether a part of this response and one of another are parts of one representation: RFC 9111 §3.4, RFC 9110
    /// §15.3.7.3: they MUST share a strong validator.
    pub fn goes_with(&self, other: &Stored) -> bool {
        let is_alike = |name: &HeaderName| self.fields.get(name) == other.fields.get(name);
        let is_same = match (tags::of(&self.fields), tags::of(&other.fields)) {
            (Some(own), Some(other)) => tags::strongly_equal(own.as_bytes(), other.as_bytes()),
            (None, None) => {
                self.has_strong_date() && other.has_strong_date() && is_alike(&header::LAST_MODIFIED)
            }
            _ => false,
        };
        // A date may be that of several codings of one text (RFC 9110 §8.8.2.2).
        is_same && is_alike(&header::CONTENT_LENGTH) && is_alike(&header::CONTENT_ENCODING)
    }

    /// The head of a part and of `before`, what was stored of the same representation, put together: its fields are those that the
    /// newer part has, and of the others those that were there (RFC 9111 §3.2, §3.4). A part that was asked for with `If-Range`
    /// tells next to nothing of what it is (RFC 9110 §15.3.7).
    #[must_use]
    pub fn joined_to(mut self, before: &Stored) -> Stored {
        // What came with the newer one says when that was, and for how long it is fresh.
        let is_kept = |name: &HeaderName| !OF_ITS_TIME.contains(name) && !self.fields.contains_key(name);
        let kept: Vec<_> = before.fields.iter().filter(|(name, _)| is_kept(name)).collect();
        for (name, value) in kept {
            self.fields.append(name.clone(), value.clone());
        }
        self
    }
}
