//! May a response be stored at all (RFC 9111 §3, §3.5)?

use crate::Scope;
use crate::directives::{RequestDirectives, ResponseDirectives};
use crate::fields::members;
use crate::lifetime::{is_explicit, is_heuristically_cacheable};
use http::{HeaderMap, Method, StatusCode, header};

/// Why a response must not be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotStorable {
    /// RFC 9111 §3: the method is not one that is stored here.
    #[error("only responses to GET are stored")]
    Method,
    /// RFC 9111 §3: interim, partial, 304, not understood though it must be, or of one request's conditions alone.
    #[error("the status is not one that is stored")]
    Status,
    /// `no-store` in request or response.
    #[error("no-store was said")]
    NoStore,
    /// `private`, for a shared store.
    #[error("the response is private")]
    Private,
    /// RFC 9111 §3.5, for a shared store.
    #[error("the request had credentials and the response does not allow sharing")]
    Authorization,
    /// A shared store must not hand one user's cookie to another.
    #[error("the response sets a cookie")]
    SetCookie,
    /// `Vary: *` never matches again.
    #[error("the response varies by everything")]
    VaryEverything,
    /// Coded with a dictionary that its client has.
    #[error("the response is coded with a dictionary that its client has")]
    Dictionary,
    /// Nothing says or implies a lifetime.
    #[error("nothing says how long it could be fresh")]
    NoFreshness,
}

/// Whether a store of `scope` may keep the response.
///
/// # Errors
/// The first reason that forbids it.
pub fn storable(
    method: &Method,
    request: &HeaderMap,
    status: StatusCode,
    response: &HeaderMap,
    scope: Scope,
) -> Result<(), NotStorable> {
    let directives = ResponseDirectives::of(response);
    if method != Method::GET {
        return Err(NotStorable::Method);
    }
    // RFC 9111 §3: the status is final, and understood if it is 206, 304 or marked must-understand.
    let understood = is_heuristically_cacheable(status) || matches!(status.as_u16(), 302 | 303 | 307);
    if status.is_informational()
        || matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED)
        || is_of_its_request(status)
        || (directives.must_understand && !understood)
    {
        return Err(NotStorable::Status);
    }
    // RFC 9111 §5.2.1.5; §5.2.2.5; §5.2.2.3: must-understand overrides no-store for a cache that understands.
    if RequestDirectives::of(request).no_store || (directives.no_store && !directives.must_understand) {
        return Err(NotStorable::NoStore);
    }
    if members(response, &header::VARY).any(|name| name == "*") {
        return Err(NotStorable::VaryEverything);
    }
    // Stricter than RFC 9842 §6.2, by which it may be reused for who has the same dictionary: that client keeps it itself, and
    // nobody else can read it.
    if is_coded_with_dictionary(response) {
        return Err(NotStorable::Dictionary);
    }
    if scope == Scope::Shared {
        // RFC 9111 §3, §5.2.2.7.
        if directives.private {
            return Err(NotStorable::Private);
        }
        // RFC 9111 §3.5.
        if request.contains_key(header::AUTHORIZATION) && !directives.shares_with_credentials() {
            return Err(NotStorable::Authorization);
        }
        // Stricter than RFC 9111 §7.3, which only warns: a shared Set-Cookie would mix sessions. One that the origin calls
        // private is left out (§5.2.2.7).
        let is_left_out = directives.private_fields.contains(&header::SET_COOKIE);
        if response.contains_key(header::SET_COOKIE) && !is_left_out {
            return Err(NotStorable::SetCookie);
        }
    }
    // RFC 9111 §3: one of these must be there.
    let lasting = is_explicit(response, &directives, scope)
        || directives.public
        || (scope == Scope::Private && directives.private)
        || is_heuristically_cacheable(status);
    if lasting { Ok(()) } else { Err(NotStorable::NoFreshness) }
}

/// Whether one of its content codings needs a dictionary that the client has (RFC 9842 §4, §5).
pub fn is_coded_with_dictionary(response: &HeaderMap) -> bool {
    let is_such = |coding: &str| ["dcb", "dcz"].iter().any(|such| coding.eq_ignore_ascii_case(such));
    members(response, &header::CONTENT_ENCODING).any(is_such)
}

/// Whether a status answers conditions, ranges or expectations of its request (RFC 9110 §15.5.13, §15.5.17, §15.5.18), which no
/// `Vary` names: it says nothing to a request without them.
fn is_of_its_request(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::EXPECTATION_FAILED
    )
}

/// Whether what came for `request`, within TLS if that is `secure`, may answer other users and other cookies, while it is still
/// coming as much as later: [`storable`] in [`Scope::Shared`], and not likely to be personal.
pub fn shareable(secure: bool, request: &HeaderMap, status: StatusCode, response: &HeaderMap) -> bool {
    // Stricter than RFC 9111 §3: without a word on caching, what came for cookies may be that user's page. Sites within TLS meet no
    // shared cache but their own, so that many leave out `private`: there the word has to be that it may be shared.
    let personal = request.contains_key(header::COOKIE) && {
        let directives = ResponseDirectives::of(response);
        if secure {
            !directives.public && directives.s_maxage.is_none()
        } else {
            let says = |name| response.contains_key(name);
            !directives.targeted && !says(header::CACHE_CONTROL) && !says(header::EXPIRES)
        }
    };
    !personal && storable(&Method::GET, request, status, response, Scope::Shared).is_ok()
}
