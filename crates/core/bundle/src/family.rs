//! Browser families, told apart by `User-Agent`, and what differs between their subresource requests.

use crate::site::Relation;
use farhop_page::{Destination, Hint, Mode, ReferrerPolicy, Source, escape_in_path};
use http::header::{self, HeaderMap};
use url::Url;

/// Browsers whose requests are built alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Chromium and all that is made of it.
    Chromium,
    /// Gecko.
    Firefox,
    /// WebKit.
    Safari,
    /// Libraries and tools: they seldom ask for what a page names.
    Unknown,
}

impl Family {
    /// The family of a request with these fields.
    pub fn of(request: &HeaderMap) -> Self {
        let agent = request.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        // Every engine's agent claims to be those before it, so the newest claims are looked for first. Browsers on
        // iOS (CriOS, FxiOS) are WebKit whatever their name.
        let has = |token: &str| agent.contains(token);
        if !agent.starts_with("Mozilla/") {
            Family::Unknown
        } else if has("Chrome/") || has("Chromium/") {
            Family::Chromium
        } else if has("Gecko/") && has("Firefox/") {
            Family::Firefox
        } else if has("AppleWebKit/") {
            Family::Safari
        } else {
            Family::Unknown
        }
    }

    /// The `Accept` field for what `hint` names, given that of the document's request.
    pub(crate) fn accept(self, hint: &Hint, document_accept: &str) -> String {
        // Recorded: Firefox says nothing where it does not know yet what will come; nor for a part of an SVG file.
        let is_open = matches!(hint.source, Source::Object | Source::Embed | Source::Use | Source::RulePart);
        match (self, hint.destination) {
            (Family::Unknown, _) => "*/*".to_owned(),
            (Family::Firefox, _) if is_open => "*/*".to_owned(),
            (_, Destination::Frame) => document_accept.to_owned(),
            (Family::Chromium, Destination::Prefetch) => chromium_prefetch_accept(hint.mode, document_accept),
            // Recorded from Chromium; Fetch, "fetch", step 12.
            (_, Destination::Json) => "application/json,*/*;q=0.5".to_owned(),
            (_, Destination::Style) => "text/css,*/*;q=0.1".to_owned(),
            (Family::Chromium, Destination::Image | Destination::Icon) => {
                chromium_image_accept(document_accept)
            }
            (Family::Firefox, Destination::Image | Destination::Icon) => {
                "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5".to_owned()
            }
            (Family::Safari, Destination::Image | Destination::Icon) => {
                "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,\
                 image/svg+xml,image/*;q=0.8,*/*;q=0.5"
                    .to_owned()
            }
            (Family::Firefox, Destination::Font) => {
                "application/font-woff2;q=1.0,application/font-woff;q=0.9,*/*;q=0.8".to_owned()
            }
            (Family::Firefox, Destination::Manifest) => "application/manifest+json,*/*;q=0.8".to_owned(),
            _ => "*/*".to_owned(),
        }
    }

    /// `url` as it writes it in a request: Chromium escapes a bar in the path, which the standard does not (recorded).
    pub(crate) fn written(self, mut url: Url) -> Url {
        if self == Family::Chromium {
            escape_in_path(&mut url, '|', "%7C");
        }
        url
    }

    /// The policy that it obeys where `asked` is in force: Firefox tells other sites no more than its default does,
    /// whatever the page allows (recorded).
    pub(crate) fn obeyed_policy(self, asked: ReferrerPolicy, relation: Relation) -> ReferrerPolicy {
        let lax = matches!(
            asked,
            ReferrerPolicy::UnsafeUrl
                | ReferrerPolicy::NoReferrerWhenDowngrade
                | ReferrerPolicy::OriginWhenCrossOrigin
        );
        if self == Family::Firefox && lax && relation == Relation::CrossSite {
            ReferrerPolicy::StrictOriginWhenCrossOrigin
        } else {
            asked
        }
    }

    /// How it asks for what `hint` names. HTML has posters without CORS; Chromium and WebKit obey `crossorigin` (recorded
    /// from Chromium). Firefox takes parts of SVG files from the page's own origin alone (recorded).
    pub(crate) fn mode(self, hint: &Hint) -> Mode {
        match (self, hint.source) {
            (Family::Firefox, Source::Poster) => Mode::NoCors,
            (Family::Firefox, Source::RulePart) => Mode::SameOrigin,
            // Fonts are never asked for without CORS, so that Firefox does not preload them so either.
            (Family::Firefox, Source::Preload | Source::LinkField | Source::EarlyHints)
                if hint.destination == Destination::Font && hint.mode == Mode::NoCors =>
            {
                Mode::Cors
            }
            _ => hint.mode,
        }
    }

    /// Whether it sends `Origin` to the page's own origin too when an element asks for CORS. Fetch would leave it
    /// out there; Chromium does not (recorded).
    pub(crate) fn names_origin_to_itself(self, destination: Destination) -> bool {
        self == Family::Chromium && destination != Destination::Manifest
    }
}

/// Chromium names the same formats for images as for documents (recorded: with `image/jxl` in both or in none).
fn chromium_image_accept(document_accept: &str) -> String {
    let shown = |part: &&str| matches!(*part, "image/jxl" | "image/avif" | "image/webp" | "image/apng");
    let mut formats: Vec<&str> = document_accept.split(',').map(str::trim).filter(shown).collect();
    if formats.is_empty() {
        formats = vec!["image/avif", "image/webp", "image/apng"];
    }
    format!("{},image/svg+xml,image/*,*/*;q=0.8", formats.join(","))
}

/// Chromium takes what it prefetches for a document, and with CORS for anything; signed exchanges where it knows them
/// (recorded).
fn chromium_prefetch_accept(mode: Mode, document_accept: &str) -> String {
    if mode == Mode::NoCors {
        return document_accept.to_owned();
    }
    let mut parts = document_accept.split(',').map(str::trim);
    match parts.find(|part| part.starts_with("application/signed-exchange")) {
        Some(exchange) => format!("{exchange},*/*;q=0.8"),
        None => "*/*".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn agents_are_told_apart() {
        let cases = [
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
                Family::Chromium,
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36",
                Family::Chromium,
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36 Edg/156.0",
                Family::Chromium,
            ),
            ("Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0", Family::Firefox),
            (
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
                Family::Safari,
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/156.0 Mobile/15E148 Safari/604.1",
                Family::Safari,
            ),
            ("curl/8.14.1", Family::Unknown),
            ("Wget/1.21", Family::Unknown),
            ("Mozilla/5.0 (compatible; bot)", Family::Unknown),
            ("", Family::Unknown),
        ];
        for (agent, family) in cases {
            let mut request = HeaderMap::new();
            request.insert(header::USER_AGENT, HeaderValue::from_static(agent));
            assert_eq!(Family::of(&request), family, "{agent}");
        }
    }
}
