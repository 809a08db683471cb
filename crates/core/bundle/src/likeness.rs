//! Which requests of several users are for one thing that anyone may have, as far as can be told before it is there: both ends go
//! by it, the remote when a request waits for another's answer, ground when it does not send what is on its way.

use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::loads::opens_page;
use crate::matching::{ALWAYS_COMPARED, unfamiliar};

/// By what origins choose an answer most often. `Vary` has the last word.
const ALIKE: [HeaderName; 4] =
    [header::ACCEPT, header::ACCEPT_ENCODING, header::ACCEPT_LANGUAGE, header::ORIGIN];

/// What requests have in common of which one may wait for another's answer. Whether that answers is for RFC 9111 to say, once it
/// is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Likeness {
    url: Url,
    fields: [Vec<HeaderValue>; 4],
}

impl Likeness {
    /// Of a GET without content; `None` if it waits for nobody and nobody for it. Documents are mostly one user's, and are read
    /// along for each.
    pub fn of(url: &Url, request: &HeaderMap) -> Option<Likeness> {
        // It is its sender's own, or asks the cache itself for something. Who asks alike from one origin is compared below.
        let own = ALWAYS_COMPARED.iter().filter(|name| !ALIKE.contains(name)).chain([&header::COOKIE]);
        let is_own =
            own.into_iter().any(|name| request.contains_key(name)) || unfamiliar(request).next().is_some();
        if is_own || opens_page(&Method::GET, request) {
            return None;
        }
        let mut url = url.clone();
        url.set_fragment(None);
        Some(Likeness { url, fields: ALIKE.map(|name| request.get_all(name).iter().cloned().collect()) })
    }

    /// What is asked for, without fragment.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(url: &str, fields: &[(&'static str, &'static str)]) -> Option<Likeness> {
        let field = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        Likeness::of(&Url::parse(url).unwrap(), &fields.iter().map(field).collect())
    }

    #[test]
    fn users_ask_alike_whatever_browser_and_page_they_ask_from() {
        let one = [("accept", "*/*"), ("user-agent", "one"), ("referer", "http://a.test/1"), ("dnt", "1")];
        let other = [("accept", "*/*"), ("user-agent", "other"), ("priority", "u=1")];
        assert!(like("http://a.test/", &one).is_some());
        assert_eq!(like("http://a.test/", &one), like("http://a.test/#part", &other));
        assert_ne!(like("http://a.test/", &one), like("http://a.test/?", &other));
        for name in ["accept", "accept-encoding", "accept-language", "origin"] {
            assert_ne!(like("http://a.test/", &[(name, "a")]), like("http://a.test/", &[(name, "b")]));
            assert_ne!(like("http://a.test/", &[(name, "a")]), like("http://a.test/", &[]));
        }
    }

    #[test]
    fn what_is_its_senders_own_is_like_nothing() {
        for field in [
            ("cookie", "a=1"),
            ("authorization", "Basic YTpi"),
            ("x-token", "4711"),
            ("range", "bytes=0-"),
            ("if-none-match", "\"1\""),
            ("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("cache-control", "max-age=0"),
            ("pragma", "no-cache"),
            ("sec-fetch-dest", "document"),
        ] {
            assert_eq!(like("http://a.test/", &[field]), None, "{}", field.0);
        }
    }
}
