//! What of a stored response is sent to a client: all of it, 304, a part, or 416, and with which fields.

use std::ops::Range;
use std::time::SystemTime;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use crate::directives::ResponseDirectives;
use crate::precondition::{Precondition, evaluate};
use crate::ranges::{Selection, content_range, select, unsatisfied_range};
use crate::stored::Stored;
use crate::targets::is_about_targets;

/// How a stored response answers a request that it is fit to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// As it is.
    Whole,
    /// 304: the client holds it.
    NotModified,
    /// 206 with these bytes out of so many.
    Part(Range<u64>, u64),
    /// 416: it has only so many bytes.
    Unsatisfiable(u64),
    /// Not at all: the condition is the origin's to evaluate.
    ForOrigin,
}

/// Whether what is sent was found right by the origin for this very request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validation {
    /// It was.
    Done,
    /// It comes from the store alone.
    None,
}

/// Fields that a 304 has to have, or that caches downstream can use (RFC 9110 §15.4.5, MUST and SHOULD); the others describe
/// a body that is not sent.
const OF_NOT_MODIFIED: [HeaderName; 10] = [
    header::AGE,
    header::CACHE_CONTROL,
    HeaderName::from_static("cdn-cache-control"),
    header::CONTENT_LOCATION,
    header::DATE,
    header::ETAG,
    header::EXPIRES,
    header::LAST_MODIFIED,
    header::VARY,
    header::VIA,
];

impl Stored {
    /// How this response, whose body has `length` bytes as far as that is known, answers a GET or HEAD with the conditions
    /// and ranges of `request`, in the order of RFC 9110 §13.2.2.
    pub fn reply(&self, method: &Method, request: &HeaderMap, length: Option<u64>) -> Reply {
        match evaluate(request, self) {
            Precondition::ForOrigin => return Reply::ForOrigin,
            Precondition::NotModified => return Reply::NotModified,
            Precondition::Holds => {}
        }
        let Some(length) = length else { return Reply::Whole };
        // RFC 9110 §14.2: MUST be ignored with any method but GET. §13.1.5: and where If-Range fails.
        if method != Method::GET || self.status != StatusCode::OK || !self.fits_if_range(request) {
            return Reply::Whole;
        }
        match select(request, length) {
            Selection::Whole => Reply::Whole,
            Selection::Part(part) => Reply::Part(part, length),
            Selection::Unsatisfiable => Reply::Unsatisfiable(length),
        }
    }

    /// Status and fields with which `reply` is sent at `now`.
    pub fn reply_head(
        &self,
        reply: &Reply,
        validation: Validation,
        now: SystemTime,
    ) -> (StatusCode, HeaderMap) {
        let mut fields = self.answer_fields(validation, now);
        match reply {
            Reply::Whole | Reply::ForOrigin => (self.status, fields),
            Reply::NotModified => {
                let names: Vec<HeaderName> = fields.keys().cloned().collect();
                let is_of_it = |name: &HeaderName| {
                    OF_NOT_MODIFIED.contains(name) || is_about_targets(&self.fields, name)
                };
                for name in names.iter().filter(|name| !is_of_it(name)) {
                    fields.remove(name);
                }
                (StatusCode::NOT_MODIFIED, fields)
            }
            // RFC 9111 §3.3: a part MUST be marked by 206.
            Reply::Part(part, length) => {
                fields.insert(header::CONTENT_LENGTH, HeaderValue::from(part.end - part.start));
                fields.extend(content_range(part, *length).map(|range| (header::CONTENT_RANGE, range)));
                (StatusCode::PARTIAL_CONTENT, fields)
            }
            Reply::Unsatisfiable(length) => {
                let mut fields = HeaderMap::new();
                fields.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
                fields.extend(unsatisfied_range(*length).map(|range| (header::CONTENT_RANGE, range)));
                (StatusCode::RANGE_NOT_SATISFIABLE, fields)
            }
        }
    }

    /// The fields with which this response is sent from the store at `now`.
    fn answer_fields(&self, validation: Validation, now: SystemTime) -> HeaderMap {
        let mut fields = self.fields.clone();
        if validation == Validation::None {
            // RFC 9111 §5.2.2.4: these MUST NOT be sent without validation; the rest may be.
            let named = ResponseDirectives::of(&fields).no_cache_fields;
            named.iter().for_each(|name| drop(fields.remove(name)));
        }
        // RFC 9111 §4: MUST generate one, §5.1: in place of any that it came with.
        fields.insert(header::AGE, HeaderValue::from(self.age(now).as_secs()));
        fields
    }
}
