//! What ground asks an origin unasked, in the words of a request that has crossed.

use farhop_bundle::Unasked;
use farhop_htotp::RequestHead;
use http::Method;

/// The request as a browser will ask it through the remote.
pub(crate) fn request_head(unasked: &Unasked) -> Option<RequestHead> {
    let url = &unasked.url;
    let host = url.host_str()?;
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    Some(RequestHead {
        method: Method::GET,
        scheme: url.scheme().into(),
        // `url` leaves out the port that is the scheme's own.
        authority: url.port().map_or_else(|| host.into(), |port| format!("{host}:{port}")),
        path: path.into(),
        fields: unasked.fields.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_names_the_url_as_the_browser_will_ask_for_it() {
        let head = |url: &str| {
            let unasked = Unasked { url: url::Url::parse(url).unwrap(), fields: Default::default() };
            request_head(&unasked).map(|head| (head.authority, head.path)).unwrap()
        };
        assert_eq!(head("http://site.test:80/a/../b?c=%20d#e"), ("site.test".into(), "/b?c=%20d".into()));
        assert_eq!(head("http://[2001:db8::1]:8080"), ("[2001:db8::1]:8080".into(), "/".into()));
    }
}
