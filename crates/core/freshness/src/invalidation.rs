//! What an unsafe request makes doubtful (RFC 9111 §4.4).

use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

/// The URLs whose stored responses must no longer be used after `method` on `target` was answered so; empty for
/// safe methods and for errors.
pub fn invalidated(method: &Method, target: &Url, status: StatusCode, response: &HeaderMap) -> Vec<Url> {
    // RFC 9111 §4.4: MUST invalidate the target on a non-error response to an unsafe method, or to one whose safety
    // is unknown.
    if method.is_safe() || !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let mut urls = vec![target.clone()];
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        let named =
            response.get(name).and_then(|value| value.to_str().ok()).and_then(|text| target.join(text).ok());
        // RFC 9111 §4.4: MUST NOT invalidate another origin's, against denial of service.
        urls.extend(named.filter(|url| url.origin() == target.origin() && url != target));
    }
    urls
}
