//! Gathers hints of one document: numbers them, gives each request once, stops at the bound.

use crate::hint::{Destination, Hint, Mode};
use std::collections::HashSet;
use url::Url;

/// Hints not yet handed out, and what was handed out before.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    ready: Vec<Hint>,
    seen: HashSet<(Url, Mode, Destination)>,
    max_hints: usize,
}

impl Collector {
    pub(crate) fn new(max_hints: usize) -> Self {
        Collector { max_hints, ..Collector::default() }
    }

    /// Takes a hint unless the same request was given before or the bound is reached; `order` is set here.
    pub(crate) fn add(&mut self, mut hint: Hint) {
        if self.seen.len() >= self.max_hints {
            return;
        }
        hint.order = self.seen.len() as u32;
        if self.seen.insert((hint.url.clone(), hint.mode, hint.destination)) {
            self.ready.push(hint);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.ready)
    }
}
