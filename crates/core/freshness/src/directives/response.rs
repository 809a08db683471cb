//! What a response allows to caches (RFC 9111 §5.2.2; RFC 5861; RFC 8246; RFC 9213).

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use super::{each, restrict};
use crate::{Scope, targets};

/// Longest field for chosen caches that is read.
const LONGEST: usize = 8 * 1_024;

/// Directives of a response (RFC 9111 §5.2.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each field is the directive's own name
pub struct ResponseDirectives {
    pub max_age: Option<Duration>,
    pub s_maxage: Option<Duration>,
    /// RFC 5861 §3.
    pub stale_while_revalidate: Option<Duration>,
    /// RFC 5861 §4.
    pub stale_if_error: Option<Duration>,
    pub must_revalidate: bool,
    pub proxy_revalidate: bool,
    pub must_understand: bool,
    /// Without field names.
    pub no_cache: bool,
    /// The names of `no-cache="…"`: these fields alone are not sent without validation (RFC 9111 §5.2.2.4).
    pub no_cache_fields: Vec<HeaderName>,
    pub no_store: bool,
    pub no_transform: bool,
    /// Without field names.
    pub private: bool,
    /// The names of `private="…"`: these fields alone are one user's (RFC 9111 §5.2.2.7).
    pub private_fields: Vec<HeaderName>,
    pub public: bool,
    /// RFC 8246.
    pub immutable: bool,
    /// They stand in a field that is for chosen caches, and obeyed: then `Cache-Control` and `Expires` MUST be ignored
    /// (RFC 9213 §2.2).
    pub targeted: bool,
}

impl ResponseDirectives {
    /// Reads all `Cache-Control` fields of a response, or in their place the first field for chosen caches that is obeyed
    /// ([`crate::obey`]), valid and not empty (RFC 9213 §2.2: MUST).
    pub fn of(fields: &HeaderMap) -> Self {
        if let Some(found) = targets::obeyed(fields).find_map(|text| Self::targeted(&text)) {
            return found;
        }
        let mut found = Self::default();
        each(fields.get_all(header::CACHE_CONTROL), |name, argument| found.take(name, argument));
        found
    }

    /// Reads a field for chosen caches. `None`: it is empty, no dictionary (RFC 9651 §3.2), or has a directive with a value
    /// that no such one has, and MUST (SHOULD, the last) be ignored (RFC 9213 §2.1).
    fn targeted(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let members: Dictionary =
            Parser::new(text).parse().ok().filter(|members: &Dictionary| !members.is_empty())?;
        let mut found = Self { targeted: true, ..Self::default() };
        for (name, value) in &members {
            let number;
            let value = match value {
                ListEntry::Item(item) => Some(&item.bare_item),
                ListEntry::InnerList(_) => None,
            };
            let argument = match (name.as_str(), value) {
                ("max-age" | "s-maxage" | "stale-while-revalidate" | "stale-if-error", value) => {
                    number = value?.as_integer()?.to_string();
                    Some(number.as_str())
                }
                ("no-cache" | "private", Some(BareItem::String(names))) => Some(names.as_str()),
                ("no-cache" | "private", Some(BareItem::Token(name))) => Some(name.as_str()),
                (_, Some(BareItem::Boolean(true))) => None,
                (name, _) if Self::knows(name) => return None,
                _ => continue,
            };
            found.take(name.as_str(), argument);
        }
        Some(found)
    }

    /// Whether a directive of this name means anything here.
    fn knows(name: &str) -> bool {
        let mut found = Self::default();
        found.take(name, None);
        found != Self::default()
    }

    fn take(&mut self, name: &str, argument: Option<&str>) {
        match name {
            "max-age" => restrict(&mut self.max_age, argument),
            "s-maxage" => restrict(&mut self.s_maxage, argument),
            "stale-while-revalidate" => restrict(&mut self.stale_while_revalidate, argument),
            "stale-if-error" => restrict(&mut self.stale_if_error, argument),
            "must-revalidate" => self.must_revalidate = true,
            "proxy-revalidate" => self.proxy_revalidate = true,
            "must-understand" => self.must_understand = true,
            "no-cache" => qualified(argument, &mut self.no_cache, &mut self.no_cache_fields),
            "no-store" => self.no_store = true,
            "no-transform" => self.no_transform = true,
            "private" => qualified(argument, &mut self.private, &mut self.private_fields),
            "public" => self.public = true,
            "immutable" => self.immutable = true,
            // RFC 9111 §5.2.3: a cache MUST ignore unrecognized directives.
            _ => {}
        }
    }

    /// Whether a stale response MUST NOT be sent, whoever would allow it (RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.4, §5.2.2.8,
    /// §5.2.2.10).
    pub fn forbids_stale(&self, scope: Scope) -> bool {
        let of_shared = self.proxy_revalidate || self.s_maxage.is_some();
        self.must_revalidate || self.no_cache || (scope == Scope::Shared && of_shared)
    }

    /// Whether a shared cache may answer requests with `Authorization` (RFC 9111 §3.5).
    pub fn shares_with_credentials(&self) -> bool {
        self.must_revalidate || self.public || self.s_maxage.is_some()
    }

    /// Whether anything of the response must be validated before each use, however fresh it is (RFC 9111 §5.2.2.4).
    pub fn wants_validation(&self) -> bool {
        self.no_cache || !self.no_cache_fields.is_empty()
    }
}

/// A directive with or without field names. What is no list of names counts as the plain form, which is stricter.
fn qualified(argument: Option<&str>, plain: &mut bool, names: &mut Vec<HeaderName>) {
    let listed = argument.into_iter().flat_map(|list| list.split(',')).map(str::trim);
    let read: Result<Vec<HeaderName>, _> =
        listed.filter(|name| !name.is_empty()).map(|name| HeaderName::from_bytes(name.as_bytes())).collect();
    match read {
        Ok(read) if !read.is_empty() => names.extend(read),
        _ => *plain = true,
    }
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
        assert!(!response("x=\"a, no-store\"").no_store, "a quoted comma separates nothing");
        assert!(!response("x=\"a\\\", no-store\"").no_store, "nor does one after a quoted quote");
        assert_eq!(response("max-age=\"6\\0\"").max_age, Some(Duration::from_secs(60)));
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
    fn field_names_limit_a_directive_to_these_fields() {
        let named = response("no-cache=\"Set-Cookie, X-A\", private=x-b");
        assert!(!named.no_cache && !named.private);
        assert_eq!(named.no_cache_fields, ["set-cookie", "x-a"]);
        assert_eq!(named.private_fields, ["x-b"]);
        for plain in ["no-cache=\"\"", "no-cache=\"a b\"", "no-cache=", "no-cache=\"x\", no-cache"] {
            assert!(response(plain).no_cache, "{plain}");
        }
    }
}
