//! Does a stored response answer this request now (RFC 9111 §4, §5.2.1; RFC 5861; RFC 8246)?

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, header};

use crate::Scope;
use crate::age::OLDEST;
use crate::directives::{RequestDirectives, ResponseDirectives};
use crate::stored::{STORED_METHOD, Stored};

/// What to do with a stored response that [`Stored::answers`] the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Send it, without asking anyone.
    Fresh,
    /// Send it though it is stale, and ask the origin behind the client's back (RFC 5861 §3).
    Revalidate,
    /// Ask the origin, conditionally if there is a validator.
    Validate {
        /// What makes asking necessary.
        why: Why,
        /// When the stored response may be sent all the same.
        fallback: Fallback,
    },
    /// The client wants nothing but a stored answer, and this one may not be sent: 504 (RFC 9111 §5.2.1.7).
    Unsatisfiable,
}

/// When a stored response that should have been validated may be sent instead (RFC 9111 §4.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fallback {
    /// Never.
    Never,
    /// When nobody can be asked: the link is down.
    Disconnected,
    /// And when the origin cannot be reached, or answers 500, 502, 503 or 504: `stale-if-error` (RFC 5861 §4).
    Error,
}

/// Why a stored response may not be sent as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its lifetime is over.
    Stale,
    /// The response says `no-cache`.
    ResponseNoCache,
    /// The request says `no-cache` (or `Pragma: no-cache`).
    RequestNoCache,
    /// Too old for the request's `max-age` or `min-fresh`.
    RequestAge,
    /// The request is not one that a stored full response to GET answers.
    Method,
    /// The request has credentials that the response does not allow to be shared.
    Authorization,
}

impl Stored {
    /// The verdict on a request that this response's `Vary` matches. Its conditions and ranges are the word of
    /// [`Stored::reply`].
    pub fn verdict(&self, method: &Method, request: &HeaderMap, scope: Scope, now: SystemTime) -> Verdict {
        let asked = RequestDirectives::of(request);
        let said = ResponseDirectives::of(&self.fields);
        let Err(why) = self.check(method, request, scope, now, &asked, &said) else { return Verdict::Fresh };
        // RFC 9111 §4.2.4: MUST NOT be sent stale where the response forbids it, nor unless something allows it.
        let may_be_stale = !said.forbids_stale(scope);
        let age = self.age(now);
        let beyond = age.saturating_sub(self.lifetime(scope));
        // What is as old as can be may be older.
        let within = |limit: Option<Duration>| age < OLDEST && limit.is_some_and(|limit| beyond <= limit);
        if may_be_stale && why == Why::Stale && within(said.stale_while_revalidate) {
            return Verdict::Revalidate;
        }
        if asked.only_if_cached {
            return Verdict::Unsatisfiable;
        }
        let fallback = match why {
            Why::Stale | Why::RequestAge if may_be_stale => {
                let on_error = within(said.stale_if_error) || within(asked.stale_if_error);
                if on_error { Fallback::Error } else { Fallback::Disconnected }
            }
            _ => Fallback::Never,
        };
        Verdict::Validate { why, fallback }
    }

    fn check(
        &self,
        method: &Method,
        request: &HeaderMap,
        scope: Scope,
        now: SystemTime,
        asked: &RequestDirectives,
        said: &ResponseDirectives,
    ) -> Result<(), Why> {
        // RFC 9111 §4: MUST NOT be used unless the method allows it; HEAD may be answered from a stored GET
        // (RFC 9110 §9.3.2).
        if method != STORED_METHOD && method != Method::HEAD {
            return Err(Why::Method);
        }
        // RFC 9111 §3.5.
        if scope == Scope::Shared
            && request.contains_key(header::AUTHORIZATION)
            && !said.shares_with_credentials()
        {
            return Err(Why::Authorization);
        }
        // RFC 9111 §4, §5.2.2.4: no-cache MUST NOT be used without successful validation.
        if said.no_cache {
            return Err(Why::ResponseNoCache);
        }
        // RFC 9111 §5.2.1.4, §5.4.
        if asked.no_cache {
            return Err(Why::RequestNoCache);
        }
        let (age, lifetime) = (self.age(now), self.lifetime(scope));
        // RFC 9111 §5.2.1.1, and RFC 8246 §2: what is immutable while fresh is not validated for a mere reload.
        let too_old = asked.max_age.is_some_and(|limit| age > limit) && !(said.immutable && lifetime > age);
        // RFC 9111 §5.2.1.3.
        if too_old || asked.min_fresh.is_some_and(|least| lifetime.saturating_sub(age) < least) {
            return Err(Why::RequestAge);
        }
        if lifetime > age {
            return Ok(());
        }
        // RFC 9111 §5.2.1.2: max-stale, unless the response forbids it (§4.2.4).
        let beyond = age.saturating_sub(lifetime);
        if !said.forbids_stale(scope) && asked.max_stale.is_some_and(|limit| beyond <= limit) {
            return Ok(());
        }
        Err(Why::Stale)
    }
}

/// Whether an origin that answers so has failed, as `stale-if-error` means it (RFC 5861 §4).
pub fn is_error(status: http::StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}
