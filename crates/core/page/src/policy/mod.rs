//! Content Security Policy, Level 3, as far as it decides what a document fetches: which addresses it may ask, which
//! base its own have, what of its inline text counts (`inline`), and whether it keeps its origin. Reports are not its
//! business; policies that only report are not read.

mod inline;

use crate::hint::{Destination, Hint, Source as Named};
pub(crate) use inline::{Inline, Judged};
use std::collections::HashMap;
use url::{Host, Url};

/// A document may not make its readers hold more.
const MAX_POLICIES: usize = 16;
const MAX_SOURCES: usize = 1000;

/// All policies of a document: each must allow what is fetched.
#[derive(Debug, Clone, Default)]
pub struct ContentPolicies {
    list: Vec<Policy>,
}

#[derive(Debug, Clone, Default)]
struct Policy {
    directives: HashMap<String, Vec<Source>>,
    upgrades: bool,
    /// Sandboxed, and its origin not left to it.
    is_opaque: bool,
}

/// CSP §2.3.1, a source expression.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Own,
    Any,
    StrictDynamic,
    UnsafeInline,
    UnsafeHashes,
    Nonce(String),
    /// Of a script's or style's content: the algorithm in lower case, and the digest.
    Hash(String, String),
    Scheme(String),
    Host {
        scheme: Option<String>,
        host: String,
        port: Option<String>,
        path: String,
    },
}

impl ContentPolicies {
    /// Those in the `Content-Security-Policy` fields of a document's response.
    pub fn of<'a>(fields: impl Iterator<Item = &'a str>) -> Self {
        let mut policies = ContentPolicies::default();
        fields.flat_map(|value| value.split(',')).for_each(|text| policies.add(Policy::parse(text)));
        policies
    }

    /// One from `<meta http-equiv>`; it counts for what follows (HTML, "Content security policy state").
    pub fn add_meta(&mut self, content: &str) {
        // CSP §4.2: there `sandbox` says nothing.
        self.add(Policy { is_opaque: false, ..Policy::parse(content) });
    }

    fn add(&mut self, policy: Policy) {
        let says = policy.upgrades || policy.is_opaque || !policy.directives.is_empty();
        if self.list.len() < MAX_POLICIES && says {
            self.list.push(policy);
        }
    }

    /// Upgrade Insecure Requests, §3.1.
    pub fn upgrade_insecure_requests(&self) -> bool {
        self.list.iter().any(|policy| policy.upgrades)
    }

    /// Whether the document is sandboxed into an origin of its own (CSP §6.3.2).
    pub fn is_opaque(&self) -> bool {
        self.list.iter().any(|policy| policy.is_opaque)
    }

    /// Whether `document` may fetch what `hint` names from `target`, to which redirects led if `redirected`. Where a hint
    /// says too little to know, it may not.
    pub fn allow(&self, hint: &Hint, target: &Url, redirected: bool, document: &Url) -> bool {
        self.list.iter().all(|policy| policy.allows(hint, target, redirected, document))
    }

    /// Whether `base` may be what `document` resolves its URLs against (CSP §6.3.1.1).
    pub(crate) fn allow_base(&self, base: &Url, document: &Url) -> bool {
        let lists = self.list.iter().filter_map(|policy| policy.directives.get("base-uri"));
        lists.into_iter().all(|sources| sources.iter().any(|source| source.matches(base, false, document)))
    }
}

impl Policy {
    /// CSP §2.2.1.
    fn parse(text: &str) -> Self {
        let mut policy = Policy::default();
        let mut left = MAX_SOURCES;
        for directive in text.split(';') {
            let mut words = directive.split_ascii_whitespace();
            let Some(name) = words.next().map(str::to_ascii_lowercase) else { continue };
            // Others are not about what is fetched. Of several of one name the first counts.
            match name.as_str() {
                "upgrade-insecure-requests" => policy.upgrades = true,
                "sandbox" => {
                    policy.is_opaque |= !words.any(|word| word.eq_ignore_ascii_case("allow-same-origin"));
                }
                name if name == "base-uri"
                    || ["-src", "-src-elem", "-src-attr"].iter().any(|end| name.ends_with(end)) =>
                {
                    let sources: Vec<Source> = words.take(left).filter_map(Source::parse).collect();
                    left -= sources.len();
                    policy.directives.entry(name.to_owned()).or_insert(sources);
                }
                _ => {}
            }
        }
        policy
    }

    fn allows(&self, hint: &Hint, target: &Url, redirected: bool, document: &Url) -> bool {
        let Some(sources) = self.first(chain(hint)) else { return true };
        let has_nonce = has_nonce(sources, hint.nonce.as_deref());
        let is_vouched_for =
            || hint.integrity.as_deref().is_some_and(|metadata| all_are_listed(metadata, sources));
        let matches = || sources.iter().any(|source| source.matches(target, redirected, document));
        match hint.destination {
            // CSP §6.7.1.1. What the mark-up names was inserted by the parser; trust in its makers does not reach it.
            Destination::Script => {
                has_nonce || is_vouched_for() || !sources.contains(&Source::StrictDynamic) && matches()
            }
            Destination::Style => has_nonce || matches(),
            _ => matches(),
        }
    }

    /// What the first of these directives that is there lists.
    fn first(&self, names: &[&str]) -> Option<&[Source]> {
        names.iter().find_map(|name| self.directives.get(*name)).map(Vec::as_slice)
    }
}

fn has_nonce(sources: &[Source], nonce: Option<&str>) -> bool {
    let nonce = nonce.filter(|nonce| !nonce.is_empty());
    nonce.is_some_and(|nonce| sources.contains(&Source::Nonce(nonce.to_owned())))
}

/// CSP §6.8.3, the directives that stand in for each other; the first that is there counts.
fn chain(hint: &Hint) -> &'static [&'static str] {
    if matches!(hint.source, Named::Object | Named::Embed) {
        return &["object-src", "default-src"];
    }
    match hint.destination {
        Destination::Script => &["script-src-elem", "script-src", "default-src"],
        Destination::Style => &["style-src-elem", "style-src", "default-src"],
        Destination::Image | Destination::Icon => &["img-src", "default-src"],
        Destination::Font => &["font-src", "default-src"],
        Destination::Manifest => &["manifest-src", "default-src"],
        Destination::Fetch | Destination::Json => &["connect-src", "default-src"],
        Destination::Track => &["media-src", "default-src"],
        Destination::Worker | Destination::SharedWorker => {
            &["worker-src", "child-src", "script-src", "default-src"]
        }
        // CSP has any directive allow it; what only another one than this allows is left to the browser.
        Destination::Prefetch => &["default-src"],
        Destination::Frame => &["frame-src", "child-src", "default-src"],
        Destination::Object | Destination::Embed => &["object-src", "default-src"],
    }
}

impl Source {
    /// `None` for keywords that say nothing of fetching, `'none'` among them, and for what is malformed.
    fn parse(word: &str) -> Option<Source> {
        let lower = word.to_ascii_lowercase();
        if let Some(keyword) = word.strip_prefix('\'') {
            let keyword = keyword.strip_suffix('\'')?;
            let lower = keyword.to_ascii_lowercase();
            return match lower.as_str() {
                "self" => Some(Source::Own),
                "strict-dynamic" => Some(Source::StrictDynamic),
                "unsafe-inline" => Some(Source::UnsafeInline),
                "unsafe-hashes" => Some(Source::UnsafeHashes),
                _ if lower.starts_with("nonce-") => Some(Source::Nonce(keyword["nonce-".len()..].to_owned())),
                _ => hash(keyword).map(|(algorithm, digest)| Source::Hash(algorithm, digest)),
            };
        }
        if word == "*" {
            return Some(Source::Any);
        }
        if let Some(scheme) = lower.strip_suffix(':') {
            return Some(Source::Scheme(scheme.to_owned()));
        }
        let (scheme, rest) = match word.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, word),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        // The colon of a port stands after the bracket of an IPv6 address.
        let colon = authority.rfind(':').filter(|at| !authority[*at..].contains(']'));
        let (host, port) =
            colon.map_or((authority, None), |at| (&authority[..at], Some(&authority[at + 1..])));
        if host.is_empty() {
            return None;
        }
        Some(Source::Host {
            scheme,
            host: host.to_ascii_lowercase(),
            port: port.map(str::to_owned),
            path: path.split(['?', '#']).next().unwrap_or_default().to_owned(),
        })
    }

    /// CSP §6.7.2.8: where a redirect led must not show by the path that it has.
    fn matches(&self, url: &Url, redirected: bool, document: &Url) -> bool {
        match self {
            Source::Any => true, // what is fetched here is `http` or `https`
            Source::Own => {
                url.origin() == document.origin()
                    || url.host() == document.host()
                        && scheme_matches(document.scheme(), url.scheme())
                        && (url.port() == document.port()
                            || url.port().is_none() && document.port().is_none())
            }
            Source::Scheme(scheme) => scheme_matches(scheme, url.scheme()),
            Source::Host { scheme, host, port, path } => {
                scheme_matches(scheme.as_deref().unwrap_or(document.scheme()), url.scheme())
                    && host_matches(host, url)
                    && port_matches(port.as_deref(), scheme.as_deref(), url)
                    && (redirected || path_matches(path, url.path()))
            }
            Source::StrictDynamic
            | Source::UnsafeInline
            | Source::UnsafeHashes
            | Source::Nonce(_)
            | Source::Hash(..) => false,
        }
    }
}

/// CSP §6.7.1.1, step 3 of 2: each digest that the script is checked by stands in the policy.
fn all_are_listed(metadata: &str, sources: &[Source]) -> bool {
    // SRI, §3.3.3: words, each perhaps with options; unknown algorithms say nothing.
    let words = metadata.split_ascii_whitespace();
    let mut hashes = words.filter_map(|word| hash(word.split('?').next().unwrap_or_default())).peekable();
    hashes.peek().is_some()
        && hashes.all(|(algorithm, digest)| sources.contains(&Source::Hash(algorithm, digest)))
}

/// `sha256-…` and its like: algorithm in lower case, digest.
fn hash(word: &str) -> Option<(String, String)> {
    let (algorithm, digest) = word.split_once('-')?;
    let algorithm = algorithm.to_ascii_lowercase();
    matches!(algorithm.as_str(), "sha256" | "sha384" | "sha512").then(|| (algorithm, digest.to_owned()))
}

/// CSP §6.7.2.9: the same, or its secure variant.
fn scheme_matches(source: &str, scheme: &str) -> bool {
    source == scheme || source == "http" && scheme == "https"
}

/// CSP §6.7.2.10.
fn host_matches(source: &str, url: &Url) -> bool {
    if source == "*" {
        return true;
    }
    match (source.strip_prefix('*'), url.host()) {
        (Some(suffix), Some(Host::Domain(host))) => {
            suffix.starts_with('.') && host.len() > suffix.len() && host.ends_with(suffix)
        }
        (Some(_), _) => false,
        (None, _) => url.host_str() == Some(source),
    }
}

/// CSP §6.7.2.11.
fn port_matches(source: Option<&str>, scheme: Option<&str>, url: &Url) -> bool {
    match source {
        Some("*") => true,
        // An upgrade from the one to the other keeps to the policy.
        Some("80") if url.scheme() == "https" && scheme != Some("https") => {
            matches!(url.port_or_known_default(), Some(80 | 443))
        }
        Some(port) => port.parse().ok() == url.port_or_known_default(),
        None => url.port().is_none(),
    }
}

/// CSP §6.7.2.12: whole, or the beginning if it ends with a slash.
fn path_matches(source: &str, path: &str) -> bool {
    if source.is_empty() || source == "/" && path.is_empty() {
        return true;
    }
    let parts = |path: &str| path.split('/').map(decoded).collect::<Vec<_>>();
    let (source, path) = (parts(source), parts(path));
    match source.split_last() {
        Some((last, all)) if last.is_empty() => path.len() >= source.len() && path.starts_with(all),
        _ => source == path,
    }
}

fn decoded(segment: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(segment).collect()
}

#[cfg(test)]
mod tests;
