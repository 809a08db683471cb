//! The request that this user's browser would send for a hint: field by field, from the document's own request.

use crate::family::Family;
use crate::referrer::referrer;
use crate::site::{Relation, is_potentially_trustworthy};
use farhop_page::{Destination, Hint, Mode, ReferrerPolicy, Source};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

/// Sent with every request of the browser as with the document's.
const COPIED: [&str; 6] =
    ["user-agent", "accept-language", "dnt", "sec-gpc", "save-data", "x-requested-with"];

/// Client hints that browsers send unasked, to every trustworthy origin.
const LOW_ENTROPY_HINTS: [&str; 3] = ["sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"];

/// One load of a document: what its unasked requests are derived from.
#[derive(Debug, Clone)]
pub struct Load {
    /// URL of the document, after redirects.
    pub url: Url,
    /// The browser's request for it.
    pub request: HeaderMap,
    /// From the document's `Referrer-Policy` field.
    pub referrer_policy: Option<ReferrerPolicy>,
    /// `Sec-Fetch-Storage-Access` as this browser was last seen to send it; which value depends on its settings.
    pub storage_access: Option<HeaderValue>,
    family: Family,
}

impl Load {
    /// The load of `url`, asked for with `request` and answered with `response`.
    pub fn new(url: Url, request: HeaderMap, response: &HeaderMap) -> Self {
        let referrer_policy = response
            .get_all(header::REFERRER_POLICY)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .filter_map(ReferrerPolicy::from_field)
            .next_back();
        let family = Family::of(&request);
        Load { url, request, referrer_policy, storage_access: None, family }
    }

    /// The browser that asked.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Whether the user wants everything anew: reload with the cache bypassed.
    fn is_hard_reload(&self) -> bool {
        let says = |name: HeaderName| {
            self.request
                .get(name)
                .and_then(|value| value.to_str().ok())
                .is_some_and(|value| value.contains("no-cache"))
        };
        says(header::CACHE_CONTROL) || says(header::PRAGMA)
    }
}

/// A GET that nobody asked for yet. `Host` and fields of connections are left to whoever sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Unasked {
    /// Where to.
    pub url: Url,
    /// With which fields.
    pub fields: HeaderMap,
}

/// The request that the browser of `load` would send for `hint`.
pub fn unasked(load: &Load, hint: &Hint) -> Unasked {
    let mut fields = HeaderMap::new();
    let relation = Relation::between(&load.url, &hint.url);
    for name in COPIED {
        copy(&mut fields, &load.request, HeaderName::from_static(name));
    }
    insert(&mut fields, header::ACCEPT, &load.family.accept(hint.destination, accept_of(&load.request)));
    if let Some(coding) = accept_encoding(load, hint) {
        fields.insert(header::ACCEPT_ENCODING, coding);
    }
    let asked = hint.referrer_policy.or(load.referrer_policy).unwrap_or_default();
    let policy = load.family.obeyed_policy(asked, relation);
    if let Some(told) = referrer(policy, &load.url, &hint.url) {
        insert(&mut fields, header::REFERER, &told);
    }
    if names_origin(load, hint, relation) {
        insert(&mut fields, header::ORIGIN, &load.url.origin().ascii_serialization());
    }
    // Only what the user has shown to this very origin, since ground cannot know the rest of the jar; elsewhere
    // the request goes without, and a browser that would have sent a cookie asks for itself.
    if relation == Relation::SameOrigin && hint.mode != Mode::CorsAnonymous {
        copy(&mut fields, &load.request, header::COOKIE);
    }
    if load.is_hard_reload() {
        copy(&mut fields, &load.request, header::CACHE_CONTROL);
        copy(&mut fields, &load.request, header::PRAGMA);
    }
    if is_potentially_trustworthy(&hint.url) {
        client_hints(&mut fields, load, relation);
        fetch_metadata(&mut fields, load, hint, relation);
    }
    Unasked { url: hint.url.clone(), fields }
}

fn copy(to: &mut HeaderMap, from: &HeaderMap, name: HeaderName) {
    for value in from.get_all(&name) {
        to.append(name.clone(), value.clone());
    }
}

fn insert(fields: &mut HeaderMap, name: HeaderName, value: &str) {
    // Built from parsed URLs and fixed text; what is no field value is left out.
    if let Ok(value) = HeaderValue::from_str(value) {
        fields.insert(name, value);
    }
}

fn accept_of(request: &HeaderMap) -> &str {
    request.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default()
}

/// Browsers offer `br` and `zstd` over TLS only, so another scheme than the document's changes the offer.
fn accept_encoding(load: &Load, hint: &Hint) -> Option<HeaderValue> {
    let target = &hint.url;
    let own = load.request.get(header::ACCEPT_ENCODING)?;
    // Recorded: fonts that a stylesheet names, which are compressed by themselves; not those preloaded.
    let preloaded = matches!(hint.source, Source::Preload | Source::LinkField);
    if load.family == Family::Firefox && hint.destination == Destination::Font && !preloaded {
        return Some(HeaderValue::from_static("identity"));
    }
    if load.family == Family::Unknown
        || is_potentially_trustworthy(&load.url) == is_potentially_trustworthy(target)
    {
        return Some(own.clone());
    }
    Some(HeaderValue::from_static(match (is_potentially_trustworthy(target), load.family) {
        (false, _) => "gzip, deflate",
        (true, Family::Safari) => "gzip, deflate, br",
        (true, _) => "gzip, deflate, br, zstd",
    }))
}

fn names_origin(load: &Load, hint: &Hint, relation: Relation) -> bool {
    hint.mode != Mode::NoCors
        && (relation != Relation::SameOrigin || load.family.names_origin_to_itself(hint.destination))
}

fn client_hints(fields: &mut HeaderMap, load: &Load, relation: Relation) {
    for name in LOW_ENTROPY_HINTS {
        copy(fields, &load.request, HeaderName::from_static(name));
    }
    // The others are sent to the origin that asked for them with Accept-CH, which the document's request shows.
    if relation == Relation::SameOrigin {
        let more: Vec<HeaderName> = load
            .request
            .keys()
            .filter(|name| name.as_str().starts_with("sec-ch-") && !fields.contains_key(*name))
            .cloned()
            .collect();
        for name in more {
            copy(fields, &load.request, name);
        }
    }
}

/// Fetch Metadata, for browsers that sent it with the document.
fn fetch_metadata(fields: &mut HeaderMap, load: &Load, hint: &Hint, relation: Relation) {
    // A page over plain HTTP shows nothing of it, though the browser may well send it to a trustworthy target.
    let knows = load.request.contains_key("sec-fetch-dest")
        || (load.family != Family::Unknown && !is_potentially_trustworthy(&load.url));
    if !knows {
        return;
    }
    insert(fields, HeaderName::from_static("sec-fetch-site"), relation.as_str());
    let mode = if hint.mode == Mode::NoCors { "no-cors" } else { "cors" };
    insert(fields, HeaderName::from_static("sec-fetch-mode"), mode);
    insert(fields, HeaderName::from_static("sec-fetch-dest"), dest(hint.destination));
    // Storage Access Headers, §2: cross-site and with credentials.
    let credentials = matches!(hint.mode, Mode::NoCors | Mode::CorsWithCredentials);
    if let (Relation::CrossSite, true, Some(access)) = (relation, credentials, &load.storage_access) {
        fields.insert(HeaderName::from_static("sec-fetch-storage-access"), access.clone());
    }
}

fn dest(destination: Destination) -> &'static str {
    match destination {
        Destination::Script => "script",
        Destination::Style => "style",
        Destination::Image | Destination::Icon => "image",
        Destination::Font => "font",
        Destination::Manifest => "manifest",
        Destination::Fetch => "empty",
        Destination::Track => "track",
        Destination::Frame => "iframe",
    }
}
