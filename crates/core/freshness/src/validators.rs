//! The validators of a stored response, apart from it: what another, who knows no more of it, can ask the origin by
//! (RFC 9110 §8.8, §13.1).

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderValue};

use crate::stored::Stored;
use crate::tags;

/// At least one of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag, weak or strong.
    pub tag: Option<HeaderValue>,
    /// `Last-Modified`, in seconds since 1970.
    pub modified: Option<u64>,
}

impl Validators {
    /// Makes a request that has no conditions ask whether what has these is still right (RFC 9111 §4.3.1).
    pub fn make_conditional(&self, request: &mut HeaderMap) {
        if let Some(tag) = &self.tag {
            request.insert(header::IF_NONE_MATCH, tag.clone());
        }
        if let Some(date) = self.modified.and_then(written) {
            request.insert(header::IF_MODIFIED_SINCE, date);
        }
    }

    /// Takes out of a 304 what only says again what it was asked with: whoever asked knows it.
    pub fn leave_out_of(&self, not_modified: &mut HeaderMap) {
        if self.tag.is_some() && not_modified.get(header::ETAG) == self.tag.as_ref() {
            not_modified.remove(header::ETAG);
        }
        let modified = self.modified.and_then(written);
        if modified.is_some() && not_modified.get(header::LAST_MODIFIED) == modified.as_ref() {
            not_modified.remove(header::LAST_MODIFIED);
        }
    }
}

impl Stored {
    /// By what its origin can be asked whether it is still right; `None` where that is nothing, or would not be said again in
    /// the origin's own words, as a date in an obsolete form.
    pub fn validators(&self) -> Option<Validators> {
        let tag = tags::of(&self.fields).filter(|tag| is_one_tag(tag.as_bytes()));
        // RFC 9111 §4.3.1: MUST send the entity tag if there is one.
        if tag.is_none() && self.fields.contains_key(header::ETAG) {
            return None;
        }
        let said = self.fields.get(header::LAST_MODIFIED);
        let modified = said.and_then(|said| read(said).filter(|at| written(*at).as_ref() == Some(said)));
        if tag.is_none() && modified.is_none() {
            return None;
        }
        Some(Validators { tag: tag.cloned(), modified })
    }
}

/// RFC 9110 §8.8.3; what is not written so may mean another thing in a list.
fn is_one_tag(tag: &[u8]) -> bool {
    let opaque = tag.strip_prefix(b"W/").unwrap_or(tag);
    let inner = opaque.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    inner.is_some_and(|inner| !inner.contains(&b'"'))
}

fn read(date: &HeaderValue) -> Option<u64> {
    let at = httpdate::parse_http_date(date.to_str().ok()?).ok()?;
    at.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs()).filter(|at| *at > 0)
}

/// `None` beyond the year 9999, which has no HTTP date.
fn written(at: u64) -> Option<HeaderValue> {
    const YEAR_10000: u64 = 253_402_300_800;
    if at >= YEAR_10000 {
        return None;
    }
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(at))?;
    HeaderValue::from_str(&httpdate::fmt_http_date(at)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn validators(fields: &[(header::HeaderName, &'static str)]) -> Option<Validators> {
        let fields: HeaderMap =
            fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        Stored::new(&HeaderMap::new(), StatusCode::OK, &fields, at, at).validators()
    }

    #[test]
    fn the_tag_and_the_date_ask_in_the_words_of_the_origin() {
        let both = validators(&[(header::ETAG, "W/\"a,b\""), (header::LAST_MODIFIED, DATE)]).unwrap();
        let mut request = HeaderMap::new();
        both.make_conditional(&mut request);
        assert_eq!(request[header::IF_NONE_MATCH], "W/\"a,b\"");
        assert_eq!(request[header::IF_MODIFIED_SINCE], DATE);
        let dated = validators(&[(header::LAST_MODIFIED, DATE)]).unwrap();
        assert_eq!((dated.tag, dated.modified), (None, Some(784_111_777)));
    }

    #[test]
    fn what_cannot_be_said_again_as_it_was_asks_nothing() {
        assert_eq!(validators(&[]), None);
        assert_eq!(validators(&[(header::ETAG, "bare"), (header::LAST_MODIFIED, DATE)]), None);
        assert_eq!(validators(&[(header::ETAG, "\"a\", \"b\"")]), None);
        assert_eq!(validators(&[(header::LAST_MODIFIED, "Sunday, 06-Nov-94 08:49:37 GMT")]), None);
        assert_eq!(validators(&[(header::LAST_MODIFIED, "Thu, 01 Jan 1970 00:00:00 GMT")]), None);
    }

    #[test]
    fn a_304_says_only_what_was_not_asked_with() {
        let asked = validators(&[(header::ETAG, "\"a\""), (header::LAST_MODIFIED, DATE)]).unwrap();
        let said = [(header::ETAG, "\"a\""), (header::LAST_MODIFIED, DATE), (header::EXPIRES, DATE)];
        let mut fields: HeaderMap =
            said.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        asked.leave_out_of(&mut fields);
        assert_eq!(fields.keys().collect::<Vec<_>>(), [header::EXPIRES]);
        let mut other = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"b\""))]);
        asked.leave_out_of(&mut other);
        assert_eq!(other[header::ETAG], "\"b\"");
    }
}
