//! Which pages' scripts a stored response may be given to: what is said of cross-origin reading (Fetch, "HTTP-CORS protocol") is
//! often left out of `Vary`, so that a response answers pages of the origin that it came for, unless it is the same for all.

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName};

use crate::Stored;
use crate::vary::named_by_vary;

const TIMING_ALLOW_ORIGIN: HeaderName = HeaderName::from_static("timing-allow-origin");

/// Whether a 200 with these fields says that it is the same whatever `Origin` asks for it, or none: it allows all of them in one
/// word, nobody with credentials, and does not vary by it.
pub fn allows_any_origin(response: &HeaderMap) -> bool {
    let says = |name: &HeaderName, value: &str| {
        let mut said = response.get_all(name).iter();
        said.next().is_some_and(|said| said == value) && said.next().is_none()
    };
    let is_silent = |name: &HeaderName| !response.contains_key(name);
    says(&header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")
        && is_silent(&header::ACCESS_CONTROL_ALLOW_CREDENTIALS)
        && (is_silent(&TIMING_ALLOW_ORIGIN) || says(&TIMING_ALLOW_ORIGIN, "*"))
        && named_by_vary(response).is_some_and(|named| !named.contains(&header::ORIGIN))
}

impl Stored {
    /// Whether what is held for anyone depends on the `Origin` that it came for. Stricter than RFC 9111 §4.1: servers forget it in
    /// `Vary`, and a response without permissions would take them from a page that has them.
    pub fn is_bound_to_origin(&self) -> bool {
        self.status != StatusCode::OK || !allows_any_origin(&self.fields)
    }

    /// Whether it may be given to the page that asks, where it is held for anyone.
    pub fn is_for_origin_of(&self, asked: &HeaderMap) -> bool {
        let origins = |fields: &HeaderMap| fields.get_all(header::ORIGIN).iter().cloned().collect::<Vec<_>>();
        // Who asks across origins with cookies may be given permissions by name.
        let may_be_named = asked.contains_key(header::ORIGIN) && asked.contains_key(header::COOKIE);
        origins(&self.nominated) == origins(asked) || !self.is_bound_to_origin() && !may_be_named
    }
}
