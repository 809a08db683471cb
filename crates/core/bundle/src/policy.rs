//! Content Security Policy, Level 3, as far as it says what a document may fetch. Reports, sandboxes and what runs inline
//! are not its business; policies that only report are not read.

use farhop_page::{Destination, Hint};
use http::header::{self, HeaderMap};
use std::collections::HashMap;
use url::{Host, Url};

/// A document may not make its readers hold more.
const MAX_POLICIES: usize = 16;
const MAX_SOURCES: usize = 1000;

/// All policies of a document: each must allow what is fetched.
#[derive(Debug, Clone)]
pub(crate) struct Policies {
    document: Url,
    list: Vec<Policy>,
}

#[derive(Debug, Clone, Default)]
struct Policy {
    directives: HashMap<String, Vec<Source>>,
    upgrades: bool,
}

/// CSP §2.3.1, a source expression.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Own,
    Any,
    StrictDynamic,
    Nonce(String),
    /// Of a script's content: the algorithm in lower case, and the digest.
    Hash(String, String),
    Scheme(String),
    Host {
        scheme: Option<String>,
        host: String,
        port: Option<String>,
        path: String,
    },
}

impl Policies {
    /// Those in the fields of the response that brought `document`.
    pub(crate) fn of(document: &Url, response: &HeaderMap) -> Self {
        let mut policies = Policies { document: document.clone(), list: Vec::new() };
        let fields = response.get_all(header::CONTENT_SECURITY_POLICY).iter();
        for text in fields.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')) {
            policies.add(text);
        }
        policies
    }

    /// One from `<meta http-equiv>`; it counts for what follows (HTML, "Content security policy state").
    pub(crate) fn add_meta(&mut self, content: &str) {
        self.add(content);
    }

    fn add(&mut self, text: &str) {
        let policy = Policy::parse(text);
        if self.list.len() < MAX_POLICIES && (policy.upgrades || !policy.directives.is_empty()) {
            self.list.push(policy);
        }
    }

    /// Upgrade Insecure Requests, §3.1.
    pub(crate) fn upgrade_insecure_requests(&self) -> bool {
        self.list.iter().any(|policy| policy.upgrades)
    }

    /// Whether `hint` may be fetched from `target`. Where a hint says too little to know, it may not.
    pub(crate) fn allow(&self, hint: &Hint, target: &Url) -> bool {
        self.list.iter().all(|policy| policy.allows(hint, target, &self.document))
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
            policy.upgrades |= name == "upgrade-insecure-requests";
            // Others are not about what is fetched. Of several of one name the first counts.
            if name.ends_with("-src") || name.ends_with("-src-elem") {
                let sources: Vec<Source> = words.take(left).filter_map(Source::parse).collect();
                left -= sources.len();
                policy.directives.entry(name).or_insert(sources);
            }
        }
        policy
    }

    fn allows(&self, hint: &Hint, target: &Url, document: &Url) -> bool {
        let Some(sources) = chain(hint).iter().find_map(|name| self.directives.get(*name)) else {
            return true;
        };
        let nonce = hint.nonce.as_deref().filter(|nonce| !nonce.is_empty());
        let has_nonce = nonce.is_some_and(|nonce| sources.contains(&Source::Nonce(nonce.to_owned())));
        let is_vouched_for =
            || hint.integrity.as_deref().is_some_and(|metadata| all_are_listed(metadata, sources));
        let matches = || sources.iter().any(|source| source.matches(target, document));
        match hint.destination {
            // CSP §6.7.1.1. What the mark-up names was inserted by the parser; trust in its makers does not reach it.
            Destination::Script => {
                has_nonce || is_vouched_for() || !sources.contains(&Source::StrictDynamic) && matches()
            }
            Destination::Style => has_nonce || matches(),
            _ => matches(),
        }
    }
}

/// CSP §6.8.3, the directives that stand in for each other; the first that is there counts.
fn chain(hint: &Hint) -> &'static [&'static str] {
    if matches!(hint.source, farhop_page::Source::Object | farhop_page::Source::Embed) {
        return &["object-src", "default-src"];
    }
    match hint.destination {
        Destination::Script => &["script-src-elem", "script-src", "default-src"],
        Destination::Style => &["style-src-elem", "style-src", "default-src"],
        Destination::Image | Destination::Icon => &["img-src", "default-src"],
        Destination::Font => &["font-src", "default-src"],
        Destination::Manifest => &["manifest-src", "default-src"],
        Destination::Fetch => &["connect-src", "default-src"],
        Destination::Track => &["media-src", "default-src"],
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

    /// CSP §6.7.2.8, for a URL that was not redirected to.
    fn matches(&self, url: &Url, document: &Url) -> bool {
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
                    && path_matches(path, url.path())
            }
            Source::StrictDynamic | Source::Nonce(_) | Source::Hash(..) => false,
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
