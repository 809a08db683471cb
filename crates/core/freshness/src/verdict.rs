//! Does a stored response answer this request now (RFC 9111 §4, §5.2.1)?

use crate::Scope;
use crate::directives::{RequestDirectives, ResponseDirectives};
use crate::stored::{STORED_METHOD, Stored};
use http::{HeaderMap, Method, header};
use std::time::{Duration, SystemTime};

/// What to do with a stored response that [`Stored::answers`] the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Send it, without asking anyone.
    Fresh,
    /// Ask the origin, conditionally if there is a validator.
    Validate {
        /// What makes asking necessary.
        why: Why,
        /// Whether the stored response may be sent if the origin cannot be reached (RFC 9111 §4.2.4).
        stale_allowed: bool,
    },
    /// The client wants nothing but a stored answer, and this one may not be sent: 504 (RFC 9111 §5.2.1.7).
    Unsatisfiable,
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
    /// The request asks for a range; partial answers from the store are not made here.
    Range,
}

impl Stored {
    /// The verdict on a request that this response's `Vary` matches.
    pub fn verdict(&self, method: &Method, request: &HeaderMap, scope: Scope, now: SystemTime) -> Verdict {
        let asked = RequestDirectives::of(request);
        let said = ResponseDirectives::of(&self.fields);
        let Err(why) = self.check(method, request, scope, now, &asked, &said) else { return Verdict::Fresh };
        if asked.only_if_cached {
            return Verdict::Unsatisfiable;
        }
        // RFC 9111 §4.2.4, §5.2.2.2, §5.2.2.8, §5.2.2.10: these forbid a stale answer under any circumstances.
        let strict = said.must_revalidate
            || said.no_cache
            || (scope == Scope::Shared && (said.proxy_revalidate || said.s_maxage.is_some()));
        let stale_allowed = !strict && matches!(why, Why::Stale | Why::RequestAge);
        Verdict::Validate { why, stale_allowed }
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
        // RFC 9111 §4: the method allows it; HEAD may be answered from a stored GET (RFC 9110 §9.3.2).
        if method != STORED_METHOD && method != Method::HEAD {
            return Err(Why::Method);
        }
        if request.contains_key(header::RANGE) {
            return Err(Why::Range);
        }
        // RFC 9111 §3.5.
        let shareable = said.must_revalidate || said.public || said.s_maxage.is_some();
        if scope == Scope::Shared && request.contains_key(header::AUTHORIZATION) && !shareable {
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
        // RFC 9111 §5.2.1.1, §5.2.1.3.
        if asked.max_age.is_some_and(|limit| age > limit)
            || asked.min_fresh.is_some_and(|least| lifetime.saturating_sub(age) < least)
        {
            return Err(Why::RequestAge);
        }
        if lifetime > age {
            return Ok(());
        }
        // RFC 9111 §5.2.1.2: max-stale, unless the response forbids it (§4.2.4).
        let strict = said.must_revalidate
            || (scope == Scope::Shared && (said.proxy_revalidate || said.s_maxage.is_some()));
        let beyond: Duration = age.saturating_sub(lifetime);
        if !strict && asked.max_stale.is_some_and(|limit| beyond <= limit) {
            return Ok(());
        }
        Err(Why::Stale)
    }
}
