//! What was only guessed, by a path in a script, until the page names it by itself: then it is as urgent as that says, and
//! as long as it is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use farhop_bundle::urgency;
use farhop_htotp::frame::Priority;
use farhop_page::{Confidence, Destination, Hint, Mode};
use url::Url;

use super::{Bundle, Wish, lock};

/// By what they name.
pub(super) type Guesses = Mutex<HashMap<Url, Vec<Guessed>>>;

/// A guess that is promised.
pub(super) struct Guessed {
    promise: u64,
    destination: Destination,
    mode: Mode,
    wanted: Arc<AtomicBool>,
    raised: Raised,
}

/// The urgency that the page gave to a guess later, until the browser says its own.
#[derive(Clone)]
pub(super) struct Raised(Arc<AtomicU8>);

/// It gave none.
const NOT: u8 = u8::MAX;

impl Default for Raised {
    fn default() -> Self {
        Raised(Arc::new(AtomicU8::new(NOT)))
    }
}

impl Raised {
    pub(super) fn forget(&self) {
        self.0.store(NOT, Relaxed);
    }

    /// Of what was promised at `promised`, if another holds by now.
    pub(super) fn priority(&self, promised: Priority) -> Option<Priority> {
        let urgency = self.0.load(Relaxed);
        (urgency < promised.urgency).then_some(Priority { urgency, ..promised })
    }
}

impl Bundle {
    /// Remembers what `wish` guesses.
    pub(super) fn guess(&self, wish: &Wish) {
        if wish.hint.confidence == Confidence::Guess {
            let Wish { promise, hint, wanted, raised, .. } = wish;
            let guessed = Guessed {
                promise: *promise,
                destination: hint.destination,
                mode: hint.mode,
                wanted: Arc::clone(wanted),
                raised: raised.clone(),
            };
            lock(&self.guessed).entry(hint.url.clone()).or_default().push(guessed);
        }
    }

    /// The page names by itself, with `hint`, what may have been a guess before.
    pub(super) fn confirm_guess(&self, hint: &Hint) {
        if hint.confidence == Confidence::Guess {
            return;
        }
        let level = urgency(hint).level;
        for guessed in lock(&self.guessed).get(&hint.url).into_iter().flatten() {
            let is_same = (guessed.destination, guessed.mode) == (hint.destination, hint.mode);
            // What the browser has asked for has its own word.
            if is_same && !guessed.wanted.swap(true, Relaxed) {
                guessed.raised.0.store(level, Relaxed);
                lock(&self.order).raise(level, |job| job.wish.promise == guessed.promise);
            }
        }
    }
}
