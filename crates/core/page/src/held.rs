//! Lazy images and frames that stand too far down to be asked for with the page. They are held back, in the order of the
//! page, until the browser asks for one of them: those that follow it are what comes into view next. What is lazy and
//! not displayed is known, too, and never told.

use crate::hint::Hint;
use std::collections::HashMap;
use url::Url;

/// Hints held of one page, and the bytes of their URLs; the browser asks for what is beyond.
const MAX_HELD: usize = 1_000;
const MAX_BYTES: usize = 256 * 1024;
/// Hints told at one time.
const AHEAD: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    /// It is not displayed.
    Hidden,
    /// The browser has asked for it, and what follows it is not told yet.
    Asked,
    Done,
}

/// What is held of one page.
#[derive(Debug, Default)]
pub(crate) struct Held {
    hints: Vec<(Hint, State)>,
    /// Where the first hint for a URL is among them.
    places: HashMap<Url, usize>,
    bytes: usize,
}

impl Held {
    pub(crate) fn hold(&mut self, hint: Hint) {
        self.put(hint, State::Held);
    }

    /// What this names is lazy and not displayed.
    pub(crate) fn hide(&mut self, hint: Hint) {
        self.put(hint, State::Hidden);
    }

    fn put(&mut self, hint: Hint, state: State) {
        if let Some((_, before)) = self.places.get(&hint.url).and_then(|&at| self.hints.get_mut(at)) {
            // Another element shows it.
            if (*before, state) == (State::Hidden, State::Held) {
                *before = state;
            }
            return;
        }
        let length = self.bytes + hint.url.as_str().len();
        if self.hints.len() >= MAX_HELD || length > MAX_BYTES {
            return;
        }
        self.bytes = length;
        self.places.insert(hint.url.clone(), self.hints.len());
        self.hints.push((hint, state));
    }

    /// Everything held, by the document around.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Hint> + use<> {
        let all = std::mem::take(self).hints.into_iter();
        all.filter(|(_, state)| *state != State::Hidden).map(|(hint, _)| hint)
    }

    /// What was held for `old` is shown as `new` on the screen as it is known now. False if it is held no longer.
    pub(crate) fn replace(&mut self, old: &Url, new: &Url) -> bool {
        let Some(&at) = self.places.get(old) else { return false };
        let Some((hint, State::Held | State::Hidden)) = self.hints.get_mut(at) else { return false };
        let (before, after) = (old.as_str().len(), new.as_str().len());
        if self.places.contains_key(new) || self.bytes - before + after > MAX_BYTES {
            return true;
        }
        self.bytes = self.bytes - before + after;
        hint.url = new.clone();
        self.places.remove(old);
        self.places.insert(new.clone(), at);
        true
    }

    /// The browser asked for `url`.
    pub(crate) fn asked(&mut self, url: &Url) {
        if let Some((_, state)) = self.places.get(url).and_then(|&at| self.hints.get_mut(at))
            && *state == State::Held
        {
            *state = State::Asked;
        }
    }

    /// What follows `url`, which was asked for; told once.
    pub(crate) fn following(&mut self, url: &Url) -> Vec<Hint> {
        let Some(&at) = self.places.get(url) else { return Vec::new() };
        if self.hints[at].1 != State::Asked {
            return Vec::new();
        }
        self.hints[at].1 = State::Done;
        let next = self.hints[at..].iter_mut().filter(|(_, state)| *state == State::Held).take(AHEAD);
        next.map(|(hint, state)| {
            *state = State::Done;
            hint.clone()
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::{Destination, Mode, Source};

    fn url(number: usize) -> Url {
        Url::parse(&format!("http://site.test/{number}.jpg")).unwrap()
    }

    fn held(count: usize) -> Held {
        let mut held = Held::default();
        for number in 0..count {
            held.hold(Hint::new(url(number), Destination::Image, Mode::NoCors, Source::Image));
        }
        held
    }

    fn following(held: &mut Held, number: usize) -> Vec<String> {
        held.following(&url(number)).into_iter().map(|hint| hint.url.path()[1..].into()).collect()
    }

    #[test]
    fn what_follows_is_told_once_the_browser_has_asked() {
        let mut held = held(30);
        assert_eq!(following(&mut held, 2), [""; 0], "not asked for");
        [2, 4].into_iter().for_each(|number| held.asked(&url(number)));
        let next = ["3.jpg", "5.jpg", "6.jpg", "7.jpg", "8.jpg", "9.jpg", "10.jpg", "11.jpg"];
        assert_eq!(following(&mut held, 2), next);
        assert_eq!(following(&mut held, 2), [""; 0], "told once");
        assert_eq!(following(&mut held, 4).first().map(String::as_str), Some("12.jpg"));
        held.asked(&url(12));
        assert_eq!(following(&mut held, 12), [""; 0], "it was told");
        held.asked(&url(29));
        assert_eq!(following(&mut held, 29), [""; 0], "the last");
    }

    #[test]
    fn another_screen_changes_what_is_held() {
        let mut held = held(3);
        assert!(held.replace(&url(1), &url(100)));
        assert!(!held.replace(&url(1), &url(101)));
        held.asked(&url(0));
        assert_eq!(following(&mut held, 0), ["100.jpg", "2.jpg"]);
        assert!(!held.replace(&url(2), &url(102)), "it was told");
    }

    #[test]
    fn what_is_not_displayed_is_told_only_where_another_element_shows_it() {
        let mut held = held(1);
        for number in 1..4 {
            held.hide(Hint::new(url(number), Destination::Image, Mode::NoCors, Source::Image));
        }
        held.hold(Hint::new(url(2), Destination::Image, Mode::NoCors, Source::Image));
        held.asked(&url(0));
        held.asked(&url(1));
        assert_eq!(following(&mut held, 0), ["2.jpg"]);
        assert_eq!(following(&mut held, 1), [""; 0], "what follows one that was hidden is not known");
        assert!(held.replace(&url(3), &url(100)), "on another screen it is not displayed either");
    }

    #[test]
    fn what_is_held_is_bounded() {
        assert_eq!(held(5_000).hints.len(), MAX_HELD);
        let mut held = Held::default();
        for number in 0..100 {
            let long = url(number).join(&format!("/{number}?{}", "x".repeat(8_000))).unwrap();
            held.hold(Hint::new(long, Destination::Image, Mode::NoCors, Source::Image));
        }
        assert!(held.bytes <= MAX_BYTES && held.hints.len() < 40, "{}", held.hints.len());
    }
}
