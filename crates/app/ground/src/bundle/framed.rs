//! What is named by what has not changed, documents in frames among it: their text does not cross, so what they named when they were
//! last read is asked about in the same flight.

use std::sync::Arc;

use farhop_bundle::{Decision, Unasked, is_navigation};
use farhop_page::{Confidence, Destination, Hint};
use http::header::{self, HeaderMap};
use tokio::time::Instant;
use url::Url;

use super::{Bundle, held_stale, is_held, request_head};
use crate::mirror::Stale;
use crate::named::Shown;
use crate::reading::{Decided, Reading};
use crate::recent::Read;

impl Bundle {
    /// Keeps what was decided about what was named before, by what has not changed: of what was guessed then, what was right is held.
    pub(super) fn keep_again(&self, reading: &Arc<Reading>, mut decided: Vec<Decided>) {
        decided.retain(|Decided { hint, decision, .. }| {
            let Decision::Fetch(unasked, _) = decision else { return hint.confidence != Confidence::Guess };
            let held = held_stale(&self.carrier, &self.owner, unasked);
            let is_fresh = is_held(&self.carrier, &self.owner, unasked);
            match hint.confidence {
                Confidence::Guess => held.is_some() || is_fresh,
                // About others that are held the browser asks.
                _ => held.is_none() || is_fresh || may_be_asked_about(reading, hint, unasked),
            }
        });
        self.keep(reading, decided);
    }

    /// The document in a frame is read: it is remembered, and what it names.
    pub(crate) fn remember_frame(&self, frame: &Arc<Reading>, url: &Url) {
        let (reading, allowance) = (Arc::clone(frame), self.allowance.clone());
        let read = Read { page: self.page, url: url.clone(), reading, allowance };
        self.carrier.ground.recent.note(&self.owner, read, Instant::now());
        let Some(opener) = self.carrier.opener(self.owner.user) else { return };
        let pages = &self.carrier.ground.pages;
        pages.recall(&opener, Shown::Frame, url).into_iter().for_each(|before| frame.recall(before));
        if let Some(named) = frame.named() {
            pages.note(opener, Shown::Frame, url.clone(), &named);
        }
    }

    /// If it is a document in a frame that `hint` names, and the remote holds it fresh, what that named is decided on anew.
    pub(super) fn recall_held_frame(&self, reading: &Reading, hint: &Hint, unasked: &Unasked) {
        if hint.destination == Destination::Frame
            && let Some(held) = held_stale(&self.carrier, &self.owner, unasked)
        {
            self.recall_frame(reading, hint, unasked, &held, &HeaderMap::new());
        }
    }

    /// If it is a document in a frame that `hint` names, and what is held is right, as a 304 with these fields says, what it named when it was last read
    /// is decided on anew, if that was this version.
    pub(super) fn recall_frame(
        &self,
        reading: &Reading,
        hint: &Hint,
        unasked: &Unasked,
        held: &Stale,
        said: &HeaderMap,
    ) {
        let Some(opener) = self.carrier.opener(self.owner.user) else { return };
        if hint.destination != Destination::Frame {
            return;
        }
        let pages = &self.carrier.ground.pages;
        let before = pages.recall(&opener, Shown::Frame, &unasked.url);
        let Some(before) = before.filter(|before| before.is_told_by(&held.validators)) else { return };
        let (Some(head), Some(request)) = (before.confirmed_by(said), request_head(unasked)) else { return };
        let Some(frame) = reading.frame(&hint.url, &request, &head).map(Arc::new) else { return };
        self.keep_again(&frame, frame.again(&before));
        if let Some(named) = frame.named() {
            pages.note(opener, Shown::Frame, unasked.url.clone(), &named);
        }
    }
}

/// Whether the remote understands a question about what is held of it in place of a promise. Over plain HTTP a frame's document is
/// asked for like a page: there the remote knows it by the page that names it, and in a frame of a frame by its promise alone.
pub(super) fn may_be_asked_about(reading: &Reading, hint: &Hint, unasked: &Unasked) -> bool {
    let is_known = || !reading.is_framed() && unasked.fields.contains_key(header::REFERER);
    hint.destination != Destination::Frame || !is_navigation(&unasked.fields) || is_known()
}
