//! The stylesheets that are fetched for a document, or were: where a page names one again, in a script, with another nonce or
//! before its use, the second is not fetched, and what waits for the sheet waits for the first.

use std::collections::HashMap;
use std::sync::Mutex;

use farhop_page::{Confidence, Destination, Hint};
use url::Url;

use super::lock;

/// By their URL: the hints for which they are fetched, by their order.
#[derive(Default)]
pub(super) struct Awaited(Mutex<HashMap<Url, Vec<u32>>>);

impl Awaited {
    /// What `hint` names is fetched.
    pub(super) fn add(&self, hint: &Hint) {
        if hint.destination == Destination::Style {
            lock(&self.0).entry(hint.url.clone()).or_default().push(hint.order);
        }
    }

    /// What `hint` names is not read for it: whether it is a sheet that nothing else reads, so that nothing need wait for it.
    pub(super) fn is_given_up(&self, hint: &Hint) -> bool {
        if hint.destination != Destination::Style {
            return false;
        }
        let mut awaited = lock(&self.0);
        // Nothing waits for what is only guessed.
        let Some(hints) = awaited.get_mut(&hint.url) else { return hint.confidence != Confidence::Guess };
        if let Some(at) = hints.iter().position(|order| *order == hint.order) {
            hints.swap_remove(at);
        }
        let is_last = hints.is_empty();
        if is_last {
            awaited.remove(&hint.url);
        }
        is_last
    }
}
