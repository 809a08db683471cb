//! What of a document's inline text its policies let count (CSP §6.7.3.3): styles, scripts, `style` attributes.

use super::{ContentPolicies, Source, has_nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Inline text of a kind that policies tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inline {
    /// Of `<script>`: classic, module or import map.
    Script,
    /// Of an event's attribute.
    ScriptAttribute,
    /// Of `<style>`.
    Style,
    StyleAttribute,
}

/// What is known before the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judged {
    Allowed,
    Forbidden,
    /// Its digest decides.
    ByText,
}

impl Inline {
    /// CSP §6.8.3.
    fn directives(self) -> &'static [&'static str] {
        match self {
            Inline::Script => &["script-src-elem", "script-src", "default-src"],
            Inline::ScriptAttribute => &["script-src-attr", "script-src", "default-src"],
            Inline::Style => &["style-src-elem", "style-src", "default-src"],
            Inline::StyleAttribute => &["style-src-attr", "style-src", "default-src"],
        }
    }
}

impl ContentPolicies {
    /// Whether inline text of this kind counts, in an element with this `nonce`.
    pub(crate) fn judge(&self, kind: Inline, nonce: Option<&str>) -> Judged {
        let mut all = Judged::Allowed;
        for sources in self.list.iter().filter_map(|policy| policy.first(kind.directives())) {
            match judge(kind, nonce, sources) {
                Judged::Allowed => {}
                Judged::ByText => all = Judged::ByText,
                Judged::Forbidden => return Judged::Forbidden,
            }
        }
        all
    }

    /// The same, once the text is here.
    pub(crate) fn allow_inline(&self, kind: Inline, nonce: Option<&str>, text: &str) -> bool {
        let mut lists = self.list.iter().filter_map(|policy| policy.first(kind.directives()));
        lists.all(|sources| match judge(kind, nonce, sources) {
            Judged::Allowed => true,
            Judged::Forbidden => false,
            Judged::ByText => is_listed(text, sources),
        })
    }
}

fn judge(kind: Inline, nonce: Option<&str>, sources: &[Source]) -> Judged {
    let is_element = matches!(kind, Inline::Script | Inline::Style);
    let is_script = matches!(kind, Inline::Script | Inline::ScriptAttribute);
    let names_some = sources.iter().any(|source| matches!(source, Source::Nonce(_) | Source::Hash(..)));
    // CSP §6.7.3.2: whoever lists some does not mean all.
    let trusts_all = sources.contains(&Source::UnsafeInline)
        && !names_some
        && !(is_script && sources.contains(&Source::StrictDynamic));
    let hashes_count = is_element || sources.contains(&Source::UnsafeHashes);
    let has_hashes = || sources.iter().any(|source| matches!(source, Source::Hash(..)));
    match () {
        () if trusts_all || is_element && has_nonce(sources, nonce) => Judged::Allowed,
        () if hashes_count && has_hashes() => Judged::ByText,
        () => Judged::Forbidden,
    }
}

fn is_listed(text: &str, sources: &[Source]) -> bool {
    // The document is hashed as its parser reads it (HTML, "normalize newlines").
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    sources.iter().any(|source| {
        let Source::Hash(algorithm, digest) = source else { return false };
        let own = match algorithm.as_str() {
            "sha256" => STANDARD.encode(Sha256::digest(&text)),
            "sha384" => STANDARD.encode(Sha384::digest(&text)),
            _ => STANDARD.encode(Sha512::digest(&text)),
        };
        // CSP §6.7.3.3, step 5: either alphabet of base64.
        own == digest.replace('-', "+").replace('_', "/")
    })
}
