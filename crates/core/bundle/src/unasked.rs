//! The request that this user's browser would send for a hint: field by field, from the document's own request.

use crate::client_hints::{LOW_ENTROPY_HINTS, client_hints};
use crate::cookies::{CookieVerdict, Cookies, JarId, Noted};
use crate::family::Family;
use crate::first_party::FirstParty;
use crate::plan::Skip;
use crate::referrer::policy_of;
use crate::site::{Relation, is_potentially_trustworthy};
use crate::way::Way;
use crate::workers::Asker;
use farhop_page::{ContentPolicies, Destination, Hint, Initiator, Mode, ReferrerPolicy, Source};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::time::SystemTime;
use url::Url;

/// Sent with every request of the browser as with the document's.
const COPIED: [&str; 6] =
    ["user-agent", "accept-language", "dnt", "sec-gpc", "save-data", "x-requested-with"];

/// One load of a document: what its unasked requests are derived from.
#[derive(Debug, Clone)]
pub struct Load {
    /// URL of the document, after redirects.
    pub url: Url,
    /// The browser's request for it.
    pub request: HeaderMap,
    /// From the document's `Referrer-Policy` field, or from its mark-up so far.
    pub referrer_policy: Option<ReferrerPolicy>,
    /// What its content security policies allow.
    pub(crate) policies: ContentPolicies,
    /// Whether what it loads over plain HTTP is mixed content.
    pub(crate) is_secure: bool,
    /// It has an origin of its own, to which everything is another site's.
    is_opaque: bool,
    /// It is in a frame of which nobody knows whether it is sandboxed: it may have an origin of its own.
    may_be_opaque: bool,
    /// Client hints that the page asks for, in lower case.
    pub(crate) asked_hints: Vec<String>,
    first_party: FirstParty,
    pub(crate) jar: JarId,
    pub(crate) family: Family,
}

impl Load {
    /// The load of `url` in a window of its own, asked for with `request`, which was `noted`, and answered with
    /// `response`.
    pub fn new(url: Url, request: HeaderMap, response: &HeaderMap, noted: &Noted) -> Self {
        let mut load = Self::answered(url, request, response, noted.jar);
        if let Some(page) = &noted.first_party {
            // In a frame that was asked for as a window is, `page` is around it.
            load.first_party = page.framed(&load.url);
        }
        for value in response.get_all("accept-ch").into_iter().filter_map(|value| value.to_str().ok()) {
            load.ask_client_hints(value);
        }
        if load.is_opaque {
            load.first_party = load.first_party.opaque();
        }
        load
    }

    /// The load of a document in a frame of `parent`: its resources are judged by its own policies, their cookies by
    /// the top document.
    pub fn framed(parent: &Load, url: Url, mut request: HeaderMap, response: &HeaderMap) -> Self {
        // One that was upgraded was asked for without what its own requests show.
        let is_untold = is_potentially_trustworthy(&url) && !request.contains_key(LOW_ENTROPY_HINTS[0]);
        for name in LOW_ENTROPY_HINTS.into_iter().filter(|_| is_untold) {
            copy(&mut request, &parent.request, HeaderName::from_static(name));
        }
        let mut load = Self::answered(url, request, response, parent.jar);
        load.first_party = parent.first_party.framed(&load.url);
        load.is_secure |= parent.is_secure;
        // HTML, "creating a new browsing context": what a page may not do its frames may not.
        load.is_opaque |= parent.is_opaque;
        load.may_be_opaque = parent.may_be_opaque;
        load
    }

    /// Its frame is a script's, which may have sandboxed it.
    pub fn doubt_origin(&mut self) {
        self.may_be_opaque = true;
    }

    fn answered(url: Url, request: HeaderMap, response: &HeaderMap, jar: JarId) -> Self {
        let policies = content_policies(response);
        Load {
            is_secure: url.scheme() == "https",
            is_opaque: policies.is_opaque(),
            may_be_opaque: false,
            asked_hints: Vec::new(),
            policies,
            family: Family::of(&request),
            first_party: FirstParty::of(&url),
            url,
            request,
            referrer_policy: policy_of(response),
            jar,
        }
    }

    /// The document has a `<meta http-equiv=content-security-policy>` with this content.
    pub fn add_content_policy(&mut self, content: &str) {
        self.policies.add_meta(content);
    }

    /// The document has a `<meta name=referrer>` that says this policy.
    pub fn obey_referrer_policy(&mut self, token: &str) {
        self.referrer_policy = ReferrerPolicy::from_token(token).or(self.referrer_policy);
    }

    /// The browser will ask for the document at `url` for a frame of this one.
    pub fn names_frame(&self, url: &Url, cookies: &mut Cookies, now: SystemTime) {
        cookies.note_frame(self.jar, url, &self.first_party, now);
    }

    /// Whether it has an origin of its own.
    pub fn is_opaque(&self) -> bool {
        self.is_opaque
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

/// The content security policies in the fields of a response.
pub fn content_policies(response: &HeaderMap) -> ContentPolicies {
    let fields = response.get_all(header::CONTENT_SECURITY_POLICY).into_iter();
    ContentPolicies::of(fields.filter_map(|value| value.to_str().ok()))
}

/// A GET that nobody asked for yet. `Host` and fields of connections are left to whoever sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Unasked {
    /// Where to.
    pub url: Url,
    /// With which fields.
    pub fields: HeaderMap,
}

/// The request that the browser of `load` would send for `hint`, at `now`.
///
/// # Errors
/// Why it is not known, or would not be sent.
pub fn unasked(load: &Load, hint: &Hint, cookies: &Cookies, now: SystemTime) -> Result<Unasked, Skip> {
    unasked_after(load, hint, &hint.url, &Way::default(), cookies, now)
}

/// The same for `target`, to which redirects led on this way from what `hint` names.
pub(crate) fn unasked_after(
    load: &Load,
    hint: &Hint,
    target: &Url,
    way: &Way,
    cookies: &Cookies,
    now: SystemTime,
) -> Result<Unasked, Skip> {
    let target = load.target(hint, target, !way.is_empty())?;
    let mode = load.family.mode(hint);
    let mut fields = HeaderMap::new();
    let relation = load.relation(way, &target);
    for name in COPIED {
        copy(&mut fields, &load.request, HeaderName::from_static(name));
    }
    insert(&mut fields, header::ACCEPT, &load.family.accept(hint, accept_of(&load.request)));
    if let Some(coding) = accept_encoding(load, hint, &target) {
        fields.insert(header::ACCEPT_ENCODING, coding);
    }
    if hint.destination == Destination::Prefetch {
        fields.insert(HeaderName::from_static("sec-purpose"), HeaderValue::from_static("prefetch"));
    }
    let is_plugin = matches!(hint.source, Source::Object | Source::Embed);
    if hint.destination == Destination::Frame && !(is_plugin && load.family == Family::Firefox) {
        copy(&mut fields, &load.request, header::UPGRADE_INSECURE_REQUESTS);
    }
    let source = match &hint.initiator {
        // Fetch, "determine request's referrer": one without an origin tells nothing.
        Initiator::Document if load.is_opaque => None,
        Initiator::Document => Some(&load.url),
        // Referrer Policy, §8.4: a sheet that stands in a `data:` URL tells nothing either (recorded).
        Initiator::Sheet(url) | Initiator::Module(url) => Some(url).filter(|url| url.has_host()),
    };
    let policy = |said: Option<ReferrerPolicy>, url: &Url| {
        load.family.obeyed_policy(
            said.unwrap_or_else(|| load.referrer_policy(hint)),
            Relation::between(&load.url, url),
        )
    };
    // Recorded: Chromium writes what it tells of itself to a frame before that is upgraded.
    let late = is_upgraded_frame(load, hint, &target);
    let named = if late { &hint.url } else { &target };
    if let Some(told) = source.and_then(|source| way.referrer(source, policy, named)) {
        insert(&mut fields, header::REFERER, &told);
    }
    if mode == Mode::SameOrigin && relation != Relation::SameOrigin {
        return Err(Skip::NotThisBrowser);
    }
    // What browsers let other sites know of what is fetched in case somebody looks at it is not settled.
    if hint.destination == Destination::Prefetch && relation == Relation::CrossSite {
        return Err(Skip::NotThisBrowser);
    }
    let credentials = match mode {
        Mode::NoCors | Mode::CorsWithCredentials | Mode::SameOrigin => true,
        Mode::Cors => relation == Relation::SameOrigin,
        Mode::CorsAnonymous => false,
    };
    let trustworthy = is_potentially_trustworthy(&target);
    // Storage Access Headers, §4: asked from a stranger's frame for what is the top document's own. Recorded: Chromium
    // names the frame's origin over plain HTTP too.
    let returns_home = credentials && load.first_party.returns_home(&target);
    let names_frame = returns_home && (trustworthy || load.family == Family::Chromium);
    if names_origin(load, hint, mode, relation) || names_frame {
        let origin = match load.is_opaque || way.is_tainted(&load.url, &target) {
            true => "null".to_owned(),
            false => load.url.origin().ascii_serialization(),
        };
        insert(&mut fields, header::ORIGIN, &origin);
    }
    if credentials {
        // Chromium asks by the target alone, whoever led there (recorded); others do not agree on that.
        let is_doubtful = way.returns(&target) && load.family != Family::Chromium
            // To what is its own no cookie goes that is `SameSite`, where it has an origin of its own.
            || load.may_be_opaque && !load.first_party.is_cross_site(&target);
        match cookies.for_request(load.jar, &target, &load.first_party, now) {
            CookieVerdict::Send(Some(_)) if is_doubtful => return Err(Skip::UnsureOfCookies),
            CookieVerdict::Send(Some(field)) => _ = fields.insert(header::COOKIE, field),
            CookieVerdict::Send(None) => {}
            CookieVerdict::Unsure => return Err(Skip::UnsureOfCookies),
        }
    }
    if load.is_hard_reload() {
        copy(&mut fields, &load.request, header::CACHE_CONTROL);
        copy(&mut fields, &load.request, header::PRAGMA);
    }
    if trustworthy {
        if !late {
            client_hints(&mut fields, load, hint, relation, cookies, now)?;
        }
        let access = match () {
            () if returns_home => Some(HeaderValue::from_static("inactive")),
            () if credentials && load.first_party.is_cross_site(&target) => cookies.storage_access(load.jar),
            () => None,
        };
        let asker = load.asker(hint, &target, cookies, now);
        if asker == Asker::Either {
            return Err(Skip::UnknownAsker);
        }
        fetch_metadata(&mut fields, load, hint, way, &target, (access, asker));
    }
    Ok(Unasked { url: target, fields })
}

impl Load {
    /// How it relates to what it asks for on this way.
    pub(crate) fn relation(&self, way: &Way, target: &Url) -> Relation {
        if self.is_opaque { Relation::CrossSite } else { way.relation(&self.url, target) }
    }

    /// Whether a service worker has passed its own request on.
    pub(crate) fn is_by_worker(&self) -> bool {
        self.request.get("sec-fetch-dest").is_some_and(|dest| dest == "empty")
    }

    /// Who asks for what `hint` names.
    fn asker(&self, hint: &Hint, target: &Url, cookies: &Cookies, now: SystemTime) -> Asker {
        let of_page = if self.is_by_worker() { Asker::Worker } else { Asker::Page };
        match hint.destination {
            // Chromium's are known (recorded).
            _ if self.family != Family::Chromium || hint.source == Source::EarlyHints => Asker::Page,
            // Not for these (Service Workers, "handle fetch").
            Destination::Icon | Destination::Manifest | Destination::Object | Destination::Embed => {
                Asker::Page
            }
            // A document in a frame is asked for by the worker of its own origin.
            Destination::Frame if target.origin() != self.url.origin() => Asker::Page,
            Destination::Frame => of_page,
            destination => cookies.asker(self.jar, (&self.url, target), destination, now).unwrap_or(of_page),
        }
    }

    /// Where the request for `hint` goes that was to go to `target`, if it may go at all (Fetch, "main fetch", steps 5 to 7).
    fn target(&self, hint: &Hint, target: &Url, redirected: bool) -> Result<Url, Skip> {
        let mut target = target.clone();
        if self.policies.upgrade_insecure_requests() {
            upgrade(&mut target);
        }
        if self.is_secure && !is_potentially_trustworthy(&target) {
            // Mixed Content, §4.1: images are upgraded, unless the host is an address or the element has candidates. The rest is blocked (§4.4).
            let is_image = matches!(hint.destination, Destination::Image | Destination::Icon);
            let is_name = matches!(target.host(), Some(url::Host::Domain(_)));
            if !(is_image && is_name && !hint.image_set) {
                return Err(Skip::MixedContent);
            }
            upgrade(&mut target);
        }
        if self.policies.allow(hint, &target, redirected, &self.url) {
            Ok(self.family.written(target))
        } else {
            Err(Skip::ContentPolicy)
        }
    }

    /// Whether the document, as far as it is known by now, may fetch what `hint` names from `target`, to which this way led:
    /// by its content policies, and by the rules for mixed content.
    pub fn allows(&self, hint: &Hint, target: &Url, way: &Way) -> bool {
        self.target(hint, target, !way.is_empty()).is_ok_and(|allowed| allowed == *target)
    }

    /// The policy in force for `hint`, as recorded from the families.
    fn referrer_policy(&self, hint: &Hint) -> ReferrerPolicy {
        let of_rule = match hint.source {
            Source::Rule | Source::RulePart | Source::FontFace | Source::StyleAttribute => true,
            // Visits do not say what of a sheet named it: sheets import sheets, and their rules name the rest.
            Source::OwnVisits | Source::OthersVisits => {
                hint.initiator != Initiator::Document && hint.destination != Destination::Style
            }
            _ => false,
        };
        let of_document = match (&hint.initiator, self.family) {
            // Chromium asks for the images and fonts of styles by the default policy, whatever the document's is.
            (Initiator::Document, Family::Chromium) if of_rule => return ReferrerPolicy::default(),
            (Initiator::Document | Initiator::Module(_), _) => self.referrer_policy,
            // It does obey the document for what sheets import; Firefox does not.
            (Initiator::Sheet(_), Family::Chromium) if !of_rule => self.referrer_policy,
            (Initiator::Sheet(_), _) => None,
        };
        hint.referrer_policy.or(of_document).unwrap_or_default()
    }
}

/// Whether `hint` names a document over plain HTTP, and a policy has it asked for at `target`.
fn is_upgraded_frame(load: &Load, hint: &Hint, target: &Url) -> bool {
    let is_frame = hint.destination == Destination::Frame && load.family == Family::Chromium;
    let mut upgraded = hint.url.clone();
    upgrade(&mut upgraded);
    is_frame && hint.url.scheme() == "http" && upgraded == *target
}

/// Upgrade Insecure Requests, §3.2: `https`, at its own port if it was at the other's.
fn upgrade(url: &mut Url) {
    if url.scheme() == "http" {
        // Both are special schemes with a host, between which a URL may change.
        let _ = url.set_scheme("https");
    }
}

pub(crate) fn copy(to: &mut HeaderMap, from: &HeaderMap, name: HeaderName) {
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
fn accept_encoding(load: &Load, hint: &Hint, target: &Url) -> Option<HeaderValue> {
    let own = load.request.get(header::ACCEPT_ENCODING)?;
    // Gecko, `FontPreloader::BuildChannel`: fonts that their `format()` says are compressed by themselves; not those
    // preloaded, of which nobody says it.
    let compressed = hint.format.as_deref().is_some_and(|format| format.starts_with("woff"));
    if load.family == Family::Firefox && compressed {
        return Some(HeaderValue::from_static("identity"));
    }
    if load.family == Family::Unknown
        || is_potentially_trustworthy(&load.url) == is_potentially_trustworthy(target)
    {
        return Some(own.clone());
    }
    Some(HeaderValue::from_static(codings(load.family, is_potentially_trustworthy(target))))
}

/// What a family of browsers offers to targets that are trustworthy, or are not.
pub(crate) fn codings(family: Family, trustworthy: bool) -> &'static str {
    match (trustworthy, family) {
        (false, _) => "gzip, deflate",
        (true, Family::Safari) => "gzip, deflate, br",
        (true, _) => "gzip, deflate, br, zstd",
    }
}

fn names_origin(load: &Load, hint: &Hint, mode: Mode, relation: Relation) -> bool {
    !matches!(mode, Mode::NoCors | Mode::SameOrigin)
        && (relation != Relation::SameOrigin || load.family.names_origin_to_itself(hint.destination))
}

/// Fetch Metadata, for browsers that sent it with the document.
fn fetch_metadata(
    fields: &mut HeaderMap,
    load: &Load,
    hint: &Hint,
    way: &Way,
    target: &Url,
    (storage_access, asker): (Option<HeaderValue>, Asker),
) {
    // A page over plain HTTP shows nothing of it, though the browser may well send it to a trustworthy target.
    let knows = load.request.contains_key("sec-fetch-dest")
        || (load.family != Family::Unknown && !is_potentially_trustworthy(&load.url));
    if !knows {
        return;
    }
    // Recorded: to Firefox a stylesheet asks for its images and imports, not the document.
    let relation = match (&hint.initiator, load.family, hint.mode) {
        (Initiator::Sheet(sheet), Family::Firefox, Mode::NoCors) => way.relation(sheet, target),
        _ => load.relation(way, target),
    };
    insert(fields, HeaderName::from_static("sec-fetch-site"), relation.as_str());
    let mode = match (hint.destination, load.family.mode(hint)) {
        (Destination::Frame, _) => "navigate",
        // Recorded: all objects are documents to Firefox, until they are there.
        (Destination::Object | Destination::Embed, _) if load.family == Family::Firefox => "navigate",
        (_, Mode::NoCors) => "no-cors",
        (_, Mode::SameOrigin) => "same-origin",
        _ => "cors",
    };
    insert(fields, HeaderName::from_static("sec-fetch-mode"), mode);
    let dest = if asker == Asker::Worker { "empty" } else { dest(hint) };
    insert(fields, HeaderName::from_static("sec-fetch-dest"), dest);
    // Storage Access Headers, §2: another site's, with credentials.
    if let Some(access) = storage_access {
        fields.insert(HeaderName::from_static("sec-fetch-storage-access"), access);
    }
}

fn dest(hint: &Hint) -> &'static str {
    match hint.source {
        Source::Object => return "object",
        Source::Embed => return "embed",
        Source::FramesetFrame => return "frame",
        _ => {}
    }
    match hint.destination {
        Destination::Script => "script",
        Destination::Style => "style",
        Destination::Image | Destination::Icon => "image",
        Destination::Font => "font",
        Destination::Manifest => "manifest",
        Destination::Json => "json",
        Destination::Fetch | Destination::Prefetch => "empty",
        Destination::Track => "track",
        Destination::Worker => "worker",
        Destination::SharedWorker => "sharedworker",
        Destination::Frame => "iframe",
        Destination::Object => "object",
        Destination::Embed => "embed",
    }
}
