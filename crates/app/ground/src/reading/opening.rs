//! How the reader of a document or of a file begins: from what the request tells of the browser and the response of itself.

use farhop_bundle::{content_policies, referrer_policy};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::{Document, Options, ResourceInfo};
use http::{HeaderMap, header};
use url::Url;

use crate::owner::Known;
use crate::page::XHTML;
use crate::treatment::{charset, media_type};

/// What the response of a file says about reading it.
pub(super) fn info<'a>(response: &ResponseHead, charset: Option<&'a str>) -> ResourceInfo<'a> {
    ResourceInfo { charset, referrer_policy: referrer_policy(&response.fields) }
}

/// The nonce of a response's content policy. Who knew one before was allowed what was asked for then.
pub(crate) fn nonce(response: &HeaderMap) -> Option<Box<str>> {
    let policies = response.get_all(header::CONTENT_SECURITY_POLICY).into_iter();
    policies.filter_map(|policy| policy.to_str().ok()).find_map(nonce_of)
}

/// The nonce of a content policy.
pub(super) fn nonce_of(policy: &str) -> Option<Box<str>> {
    let (_, rest) = policy.split_once("'nonce-")?;
    rest.split_once('\'').map(|(nonce, _)| nonce.into())
}

/// What the browser is called.
pub(super) fn agent(request: &HeaderMap) -> &str {
    request.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default()
}

/// What is assumed of the browser that sent `request`.
pub(super) fn options(request: &RequestHead, response: &ResponseHead, known: &Known) -> Options {
    let accept = request.fields.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let jpeg_xl = accept.is_some_and(|accept| accept.contains("image/jxl"));
    let xml = media_type(&response.fields) == XHTML;
    let mut viewport = known.screen(agent(&request.fields));
    // User Preference Media Features Client Hints, §3.1: a quoted word.
    let scheme = request.fields.get("sec-ch-prefers-color-scheme").and_then(|scheme| scheme.to_str().ok());
    if let Some(scheme) = scheme {
        viewport.dark = scheme.trim_matches('"') == "dark";
    }
    Options { viewport, jpeg_xl, xml, ..Options::default() }
}

/// The reader of the document at `url`.
pub(super) fn document(url: &Url, response: &ResponseHead, options: Options) -> Document {
    let mut document = Document::new(url, charset(&response.fields).as_deref(), options);
    document.obey(content_policies(&response.fields));
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_nonce_of_a_policy_is_found() {
        let found = |policy: &'static str| {
            let policy = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
            nonce(&HeaderMap::from_iter([policy]))
        };
        assert_eq!(found("script-src 'self' 'nonce-r4nd0m' https:").as_deref(), Some("r4nd0m"));
        assert_eq!((found("script-src 'self'"), found("script-src 'nonce-")), (None, None));
    }
}
