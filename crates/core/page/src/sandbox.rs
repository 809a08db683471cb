//! What the `sandbox` attributes of a document's frames take away from the documents in them (HTML, §7.5).

use std::collections::HashMap;
use url::Url;

/// Frames remembered of one document.
const MOST: usize = 2_000;

/// What a frame's document does without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sandbox {
    /// It has an origin of its own.
    pub(crate) is_opaque: bool,
    /// It runs no script.
    pub(crate) is_scriptless: bool,
}

/// The frames of a document by what they name, and what they do without.
#[derive(Debug, Default)]
pub(crate) struct Sandboxes(HashMap<Url, Sandbox>);

impl Sandboxes {
    /// Two frames of one URL are taken for one that does without what either does.
    pub(crate) fn note(&mut self, url: &Url, sandbox: Sandbox) {
        if self.0.len() >= MOST && !self.0.contains_key(url) {
            return;
        }
        let known = self.0.entry(url.clone()).or_default();
        known.is_opaque |= sandbox.is_opaque;
        known.is_scriptless |= sandbox.is_scriptless;
    }

    pub(crate) fn has(&self, url: &Url) -> bool {
        self.0.contains_key(url)
    }

    pub(crate) fn of(&self, url: &Url) -> Sandbox {
        self.0.get(url).copied().unwrap_or_default()
    }

    /// Takes those of a document in one of its attributes in.
    pub(crate) fn take(&mut self, inner: &mut Sandboxes) {
        std::mem::take(&mut inner.0).iter().for_each(|(url, sandbox)| self.note(url, *sandbox));
    }
}
