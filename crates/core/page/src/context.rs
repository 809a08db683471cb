//! What every hint of one page depends on: its URL and base, referrer policy and encoding so far, and which hints
//! were given before.

use crate::address;
use crate::collector::Collector;
use crate::decode::Charset;
use crate::held::Held;
use crate::hint::{Destination, Hint, Mode, ReferrerPolicy, Source};
use crate::options::Options;
use crate::policy::ContentPolicies;
use crate::sandbox::Sandboxes;
use crate::script::ImportMap;
use url::Url;

/// See the module.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) document: Url,
    pub(crate) base: Url,
    base_is_set: bool,
    /// `<meta name=referrer>`.
    pub(crate) policy: Option<ReferrerPolicy>,
    /// Of the response and of the mark-up so far.
    pub(crate) policies: ContentPolicies,
    /// Of the document: queries of its URLs are written in it.
    pub(crate) charset: Charset,
    pub(crate) options: Options,
    /// All import maps so far.
    pub(crate) import_map: ImportMap,
    pub(crate) sandboxes: Sandboxes,
    /// `srcdoc` documents around this one.
    pub(crate) depth: u8,
    /// Lazy and far down.
    pub(crate) held: Held,
    collector: Collector,
}

impl Context {
    pub(crate) fn new(document: &Url, options: Options) -> Self {
        Context {
            document: document.clone(),
            base: document.clone(),
            base_is_set: false,
            policy: None,
            policies: ContentPolicies::default(),
            charset: Charset::UNSAID,
            import_map: ImportMap::default(),
            sandboxes: Sandboxes::default(),
            depth: 0,
            held: Held::default(),
            collector: Collector::new(options.max_hints),
            options,
        }
    }

    /// `<base href>`.
    pub(crate) fn set_base(&mut self, href: &str) {
        // HTML, "document base URL": only the first base element with an href counts, even if it is invalid.
        if std::mem::replace(&mut self.base_is_set, true) {
            return;
        }
        match self.base.join(href.trim()) {
            Ok(url)
                if !matches!(url.scheme(), "data" | "javascript")
                    && self.policies.allow_base(&url, &self.document) =>
            {
                self.base = url;
            }
            _ => {}
        }
    }

    /// A URL of the document's own text.
    pub(crate) fn resolve(&self, text: &str) -> Option<Url> {
        address::resolve_in(self.charset, text, &self.base, self.options.max_url)
    }

    /// A URL that something other than mark-up names, relative to `base`.
    pub(crate) fn resolve_from(&self, text: &str, base: &Url) -> Option<Url> {
        address::resolve(text, base, self.options.max_url)
    }

    /// `url` without its fragment, if a browser would fetch it for this page.
    pub(crate) fn fetchable(&self, url: Url) -> Option<Url> {
        address::fetchable(url, self.options.max_url)
    }

    /// A hint with nothing special about it, for `url` as [`resolve`](Context::resolve) gives it.
    pub(crate) fn hint(&self, url: Url, destination: Destination, source: Source) -> Hint {
        Hint { referrer_policy: self.policy, ..Hint::new(url, destination, Mode::NoCors, source) }
    }

    pub(crate) fn add(&mut self, hint: Hint) {
        self.collector.add(hint);
    }

    /// The order of the next hint.
    pub(crate) fn next_order(&self) -> u32 {
        self.collector.next_order()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.collector.is_full()
    }

    pub(crate) fn take_hints(&mut self) -> Vec<Hint> {
        self.collector.take()
    }
}
