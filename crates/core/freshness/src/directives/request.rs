//! What a request asks of caches (RFC 9111 §5.2.1, §5.4; RFC 5861 §4).

use std::time::Duration;

use http::header::{self, HeaderMap};

use super::{each, restrict, seconds_or_none_of_it};

/// Directives of a request (RFC 9111 §5.2.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each field is the directive's own name
pub struct RequestDirectives {
    pub max_age: Option<Duration>,
    /// `max-stale` without a value is `Duration::MAX`.
    pub max_stale: Option<Duration>,
    pub min_fresh: Option<Duration>,
    /// RFC 5861 §4.
    pub stale_if_error: Option<Duration>,
    pub no_cache: bool,
    pub no_store: bool,
    pub no_transform: bool,
    pub only_if_cached: bool,
}

impl RequestDirectives {
    /// Reads all `Cache-Control` fields of a request, or `Pragma` where there is none.
    pub fn of(fields: &HeaderMap) -> Self {
        let mut found = Self::default();
        each(fields.get_all(header::CACHE_CONTROL), |name, argument| match name {
            "max-age" => restrict(&mut found.max_age, argument),
            "max-stale" => found.max_stale = Some(argument.map_or(Duration::MAX, seconds_or_none_of_it)),
            "min-fresh" => found.min_fresh = argument.map(seconds_or_none_of_it),
            "stale-if-error" => restrict(&mut found.stale_if_error, argument),
            "no-cache" => found.no_cache = true,
            "no-store" => found.no_store = true,
            "no-transform" => found.no_transform = true,
            "only-if-cached" => found.only_if_cached = true,
            // RFC 9111 §5.2.3: a cache MUST ignore unrecognized directives.
            _ => {}
        });
        // RFC 9111 §5.4: Pragma counts only where the request has no Cache-Control.
        if !fields.contains_key(header::CACHE_CONTROL) {
            each(fields.get_all(header::PRAGMA), |name, _| found.no_cache |= name == "no-cache");
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn pragma_counts_only_without_cache_control() {
        let mut fields = HeaderMap::new();
        fields.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
        assert!(RequestDirectives::of(&fields).no_cache);
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=9"));
        assert!(!RequestDirectives::of(&fields).no_cache);
    }
}
