//! Gathers hints of one document: numbers them, gives each request once, stops at the bound.

use crate::hint::{Confidence, Destination, Hint, Mode, Source, Timing};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use url::Url;

/// What makes hints the same. A content security policy may forbid one of two that differ in nonce or integrity, and
/// what is only guessed may be left alone: neither hides the other.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    url: Url,
    mode: Mode,
    destination: Destination,
    nonce: Option<Box<str>>,
    integrity: Option<Box<str>>,
    is_guess: bool,
    /// Not every browser does what a response field says here, so that it does not hide what mark-up says.
    is_fields: bool,
}

impl Hash for Seen {
    /// URLs tell most hints apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.url.as_str().as_bytes());
    }
}

/// Hints not yet handed out, and what was handed out before.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    ready: Vec<Hint>,
    seen: HashSet<Seen>,
    max_hints: usize,
    /// Something was not taken for the bound.
    full: bool,
}

impl Collector {
    pub(crate) fn new(max_hints: usize) -> Self {
        Collector { max_hints, ..Collector::default() }
    }

    /// Takes a hint unless the same was given before or the bound is reached; `order` is set here.
    pub(crate) fn add(&mut self, mut hint: Hint) {
        if self.seen.len() >= self.max_hints {
            self.full = true;
            return;
        }
        hint.order = self.next_order();
        let new = self.seen.insert(Seen {
            url: hint.url.clone(),
            mode: hint.mode,
            destination: hint.destination,
            nonce: hint.nonce.clone(),
            integrity: hint.integrity.clone(),
            is_guess: hint.confidence == Confidence::Guess,
            is_fields: is_fields(&hint),
        });
        if new {
            self.ready.push(hint);
        }
    }

    /// The order of the next hint.
    pub(crate) fn next_order(&self) -> u32 {
        self.seen.len() as u32
    }

    /// Whether the page names more than the bound lets through.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    pub(crate) fn take(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.ready)
    }
}

/// Whether a `Link` field names a style sheet or a manifest; what it only preloads all browsers fetch.
fn is_fields(hint: &Hint) -> bool {
    let preloads = hint.destination == Destination::Style && hint.timing == Timing::Async;
    matches!(hint.source, Source::LinkField | Source::EarlyHints)
        && matches!(hint.destination, Destination::Style | Destination::Manifest)
        && !preloads
}
