//! How long a response stays fresh (RFC 9111 §4.2.1, §4.2.2).

use crate::Scope;
use crate::age::OLDEST;
use crate::directives::ResponseDirectives;
use crate::fields;
use http::{HeaderMap, StatusCode, header};
use std::time::{Duration, SystemTime};

/// Longest life that a guess gives. RFC 9111 §4.2.2 asks for a warning-free, conservative choice; a day is what
/// long-standing caches use.
const HEURISTIC_CAP: Duration = Duration::from_secs(24 * 60 * 60);

/// RFC 9110 §15.1: statuses that may be reused on a guess, without 206, which is stored in parts only.
pub(crate) fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// Whether the response says itself how long it is fresh.
pub(crate) fn is_explicit(response: &HeaderMap, directives: &ResponseDirectives, scope: Scope) -> bool {
    directives.max_age.is_some()
        || (scope == Scope::Shared && directives.s_maxage.is_some())
        || says_when_it_expires(response, directives)
}

/// Whether there is an `Expires` that counts.
fn says_when_it_expires(response: &HeaderMap, directives: &ResponseDirectives) -> bool {
    // RFC 9213 §2.2: MUST be ignored beside a field for chosen caches that is obeyed.
    !directives.targeted && response.contains_key(header::EXPIRES)
}

/// Whether nothing says how long the response is fresh, nor that it may be shared: if it is used, that is a guess.
pub fn is_guess(response: &HeaderMap) -> bool {
    let directives = ResponseDirectives::of(response);
    !is_explicit(response, &directives, Scope::Shared) && !directives.public
}

/// Freshness lifetime from the response's `Date` on; `received_at` stands in for a missing `Date`.
pub(crate) fn lifetime(
    status: StatusCode,
    response: &HeaderMap,
    scope: Scope,
    received_at: SystemTime,
) -> Duration {
    let directives = ResponseDirectives::of(response);
    // RFC 9111 §4.2.1, in this order: s-maxage (shared caches), max-age, Expires, heuristic.
    if let (Scope::Shared, Some(age)) = (scope, directives.s_maxage) {
        return age;
    }
    if let Some(age) = directives.max_age {
        return age;
    }
    let date = fields::date(response, &header::DATE, received_at).unwrap_or(received_at);
    if says_when_it_expires(response, &directives) {
        // RFC 9111 §5.3: an invalid Expires, "0" above all, is a time in the past.
        return fields::date(response, &header::EXPIRES, received_at)
            .and_then(|expires| expires.duration_since(date).ok())
            // What is as old as can be is not fresh, whatever date is named.
            .map_or(Duration::ZERO, |lifetime| lifetime.min(OLDEST));
    }
    // RFC 9111 §4.2.2: no guess for statuses that are not heuristically cacheable, unless marked public.
    if !is_heuristically_cacheable(status) && !directives.public {
        return Duration::ZERO;
    }
    fields::date(response, &header::LAST_MODIFIED, received_at)
        .and_then(|modified| date.duration_since(modified).ok())
        .map_or(Duration::ZERO, |unchanged| (unchanged / 10).min(HEURISTIC_CAP))
}
