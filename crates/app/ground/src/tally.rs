//! What ground made of one page, counted for whoever asks what became of its hints.

use std::collections::BTreeMap;

use farhop_bundle::Skip;
use farhop_events::{Bus, Event, ExchangeId};
use farhop_page::{Hint, Source};

/// See the module. Told as an event when it is dropped, with the last stream of the page.
pub(crate) struct Tally {
    bus: Bus,
    page: ExchangeId,
    url: String,
    hints: BTreeMap<&'static str, u64>,
    skipped: BTreeMap<&'static str, u64>,
    promised: u64,
}

impl Tally {
    pub(crate) fn new(bus: &Bus, page: ExchangeId, url: &str) -> Self {
        let url = bus.url(url);
        Tally { bus: bus.clone(), page, url, hints: BTreeMap::new(), skipped: BTreeMap::new(), promised: 0 }
    }

    pub(crate) fn found(&mut self, hint: &Hint) {
        *self.hints.entry(source_word(hint.source)).or_default() += 1;
    }

    /// The document leads elsewhere.
    pub(crate) fn found_redirect(&mut self) {
        *self.hints.entry("redirect").or_default() += 1;
    }

    pub(crate) fn skipped(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }

    pub(crate) fn promised(&mut self) {
        self.promised += 1;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let words = |counts: &BTreeMap<&str, u64>| {
            counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
        };
        self.bus.emit(Event::PageRead {
            page: self.page,
            url: std::mem::take(&mut self.url),
            hints: words(&self.hints),
            promised: self.promised,
            skipped: words(&self.skipped),
        });
    }
}

/// The mark-up that named a resource, in a word.
pub(crate) fn source_word(source: Source) -> &'static str {
    match source {
        Source::Script => "script",
        Source::ModuleScript => "module script",
        Source::Stylesheet => "stylesheet",
        Source::Preload => "preload",
        Source::ModulePreload => "modulepreload",
        Source::Prefetch => "prefetch",
        Source::Icon => "icon",
        Source::OtherIcon => "another icon",
        Source::DefaultIcon => "default icon",
        Source::Manifest => "manifest",
        Source::Image => "image",
        Source::Picture => "picture",
        Source::LateImage => "late image",
        Source::InputImage => "input image",
        Source::Poster => "poster",
        Source::Background => "background",
        Source::Frame => "frame",
        Source::FramesetFrame => "frame of a frameset",
        Source::Object => "object",
        Source::Embed => "embedded file",
        Source::Use => "part of svg",
        Source::RulePart => "part of svg in a style",
        Source::StyleAttribute => "style attribute",
        Source::Rule => "css rule",
        Source::Import => "css import",
        Source::FontFace => "font face",
        Source::StaticImport => "static import",
        Source::DynamicImport => "dynamic import",
        Source::Literal => "literal path",
        Source::Mention => "name in a script",
        Source::LinkField => "link field",
        Source::EarlyHints => "early hints",
        Source::OwnVisits => "own visits",
        Source::OthersVisits => "others' visits",
    }
}

/// What the remote will answer by itself.
pub(crate) const HELD: &str = "the remote holds it";
pub(crate) const COMING: &str = "it is on its way to another user";

/// What the browser of a page that the remote holds was quicker to ask for.
pub(crate) const ASKED: &str = "the browser has asked for it";

/// What the remote holds, and the origin is asked about.
pub(crate) const VALIDATED: &str = "the remote holds it, and it is validated";

/// A hint at an address that is not fetched from.
pub(crate) const NOT_PUBLIC: &str = "its address is not of the public internet";

/// A hint within TLS, of a user whose connections are not looked into.
pub(crate) const UNSEEN: &str = "this user's secure connections are not looked into";

/// A redirect to what may be for one use only, or that is asked for in words that only the browser knows.
pub(crate) const NOT_SURE: &str = "it is not sure how the browser goes on, or that it may be asked for twice";

/// A redirect to what was asked for alike on the way, or the last of too many.
pub(crate) const ENDLESS: &str = "redirects without an end";

/// Why a hint is left to the browser, in words.
pub(crate) fn skip_words(skip: Skip) -> &'static str {
    match skip {
        Skip::Duplicate => "decided before",
        Skip::UncacheableTwice => "fetched before, and the answer may not be used again",
        Skip::OverBudget => "the page's budget of requests is used up",
        Skip::OverGuesses => "the page's budget for guesses is used up",
        Skip::Credentials => "the document was fetched with credentials",
        Skip::UnsureOfCookies => "it is not known which cookies the browser would send",
        Skip::SetsCookie => "fetching it unasked has set a cookie before",
        Skip::NoIcon => "the site has no icon, as its browser knows",
        Skip::ContentPolicy => "the document's content security policy forbids it",
        Skip::MixedContent => "a secure page may not load it over plain HTTP",
        Skip::NotThisBrowser => "this browser does not fetch it",
        Skip::UnknownHints => {
            "it is not known what the browser would say in the client hints that the page asks for"
        }
        Skip::UnknownAsker => "it is not known whether the page asks for it or its service worker",
        Skip::AskedOtherwise => "its browser has asked for it in other words than were foreseen",
        Skip::RiskyGuess => "a guess, and not at a plain file that is asked for without cookies",
    }
}
