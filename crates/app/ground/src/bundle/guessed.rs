//! What was only guessed, by a path in a script, until the page names it by itself: then it is as urgent as that says, and
//! as long as it is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use farhop_bundle::{Room, urgency};
use farhop_htotp::frame::{Failure, Priority};
use farhop_page::{Confidence, Destination, Hint, Mode, Source};
use url::Url;

use super::{Bundle, Wish, lock};
use crate::allowance::UsedUp;
use crate::failure;
use crate::reading::Reading;

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

impl Wish {
    /// What became of it, if it is a guess: `None` where it was stopped midway.
    pub(super) fn guess_ended(&self, set_aside: bool, kept: Option<&Result<u64, Failure>>) {
        if set_aside {
            let spent = match kept {
                Some(Ok(spent)) if self.is_guess() => *spent,
                // Nobody knows how much of it has crossed.
                None if self.hint.source != Source::Mention => self.reading.guess_allowance(),
                _ => 0,
            };
            self.reading.spent_on_guess(&self.hint, spent);
        }
        if self.is_guess() && matches!(kept, Some(Err(_))) {
            self.reading.forget_guess(&self.unasked);
        }
    }
}

impl Bundle {
    /// The same as [`Bundle::fetch`], once there is room for it if it is a guess, and what it may take is `set_aside`.
    pub(super) async fn fetch_in_turn(
        self: &Arc<Self>,
        wish: &Wish,
        set_aside: &mut bool,
    ) -> Result<u64, Failure> {
        if wish.is_guess() {
            match wish.reading.begin_guess(&wish.hint, || wish.is_guess()).await {
                Room::UsedUp => return Err(failure::withdrawn(&UsedUp::Guesses)),
                room => *set_aside = room == Room::Left,
            }
        }
        self.fetch(wish).await
    }

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
    pub(super) fn confirm_guess(&self, reading: &Reading, hint: &Hint) {
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
                reading.guesses_changed();
            }
        }
    }
}
