//! Bodies of origins as samples, and the dictionaries that are made of them: of each origin by itself, never of two.
//!
//! ```text
//!  handle_body ──▶ samples ── poll_lesson ─▶ (trained elsewhere) ── handle_trained ─▶ dictionary
//!                     ▲                                                                  │
//!                     └──────────── as many again have come ◀────────────────────────────┘
//! ```

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use farhop_htotp::mirror::BodyHash;

/// Bodies of an origin that are trained on at least, each of another URL: a page and its next version are what deltas are
/// for.
const FEWEST: usize = 12;
/// … and at most: the newest.
const MOST_SAMPLES: usize = 64;
/// Bytes of them at most, of an origin.
const MOST_BYTES: usize = 1 << 20;
/// What is shorter says nothing of others.
const SHORTEST: usize = 256;
/// What each sample and each origin costs besides.
const OVERHEAD: usize = 128;

/// What was made of an origin's bodies.
#[derive(Debug, PartialEq, Eq)]
pub struct Dictionary {
    /// Names it.
    pub hash: BodyHash,
    /// As it is used.
    pub bytes: Bytes,
    /// As it crosses.
    pub coded: Bytes,
}

/// What is to be trained.
#[derive(Debug)]
pub struct Lesson {
    /// Whose bodies these are: scheme and authority.
    pub origin: Arc<str>,
    /// Oldest first.
    pub samples: Vec<Bytes>,
    /// What there is already: the new one has to be better.
    pub current: Option<Arc<Dictionary>>,
}

#[derive(Default)]
struct Class {
    /// With the URLs' hashes, oldest first.
    samples: VecDeque<(u64, Bytes)>,
    /// Those that came since it was last trained.
    fresh: usize,
    /// How many of them are waited for.
    wanted: usize,
    dictionary: Option<Arc<Dictionary>>,
    bytes: usize,
    used: u64,
}

impl Class {
    fn size(&self) -> usize {
        let dictionary = self.dictionary.as_ref().map_or(0, |it| it.bytes.len() + it.coded.len());
        self.bytes + (1 + self.samples.len()) * OVERHEAD + dictionary
    }

    fn forget_oldest(&mut self) {
        if let Some((_, oldest)) = self.samples.pop_front() {
            self.bytes -= oldest.len();
        }
    }
}

/// See the module.
pub struct School {
    most: usize,
    classes: HashMap<Arc<str>, Class>,
    size: usize,
    clock: u64,
    /// Has enough that is new. One at a time: what is new of another shows with its next body.
    due: Option<Arc<str>>,
}

impl School {
    /// Keeps so many bytes.
    pub fn new(most: usize) -> School {
        School { most, classes: HashMap::new(), size: 0, clock: 0, due: None }
    }

    /// Keeps so many from now on.
    pub fn set(&mut self, most: usize) {
        self.most = most;
        self.fit();
    }

    /// Whether anything is kept at all.
    pub fn is_on(&self) -> bool {
        self.most > 0
    }

    /// A body of this origin, which anyone may have, has come; `url` is a hash of where from.
    pub fn handle_body(&mut self, origin: &str, url: u64, body: &Bytes) {
        if !(SHORTEST..=MOST_BYTES / FEWEST).contains(&body.len()) || !self.is_on() {
            return;
        }
        self.clock += 1;
        let name: Arc<str> = origin.into();
        let class = self.classes.entry(Arc::clone(&name)).or_default();
        let before = if class.used == 0 { 0 } else { class.size() };
        class.used = self.clock;
        if let Some(at) = class.samples.iter().position(|(of, _)| *of == url)
            && let Some((_, older)) = class.samples.remove(at)
        {
            // The same URL again shows nothing of others.
            class.bytes -= older.len();
        } else {
            class.fresh += 1;
        }
        class.samples.push_back((url, body.clone()));
        class.bytes += body.len();
        while class.samples.len() > MOST_SAMPLES || class.bytes > MOST_BYTES {
            class.forget_oldest();
        }
        let is_enough = class.samples.len() >= FEWEST && class.fresh >= class.wanted.max(FEWEST);
        self.size = self.size - before + class.size();
        if is_enough && self.due.is_none() {
            self.due = Some(name);
        }
        self.fit();
    }

    /// Whether [`poll_lesson`](School::poll_lesson) has one.
    pub fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// What is to be trained next, if anything is.
    pub fn poll_lesson(&mut self) -> Option<Lesson> {
        let origin = self.due.take()?;
        let class = self.classes.get_mut(&origin)?;
        class.fresh = 0;
        class.wanted = class.samples.len();
        let samples = class.samples.iter().map(|(_, body)| body.clone()).collect();
        Some(Lesson { samples, current: class.dictionary.clone(), origin })
    }

    /// This is what came of a lesson.
    pub fn handle_trained(&mut self, origin: &str, dictionary: Dictionary) {
        let Some(class) = self.classes.get_mut(origin) else { return };
        let before = class.size();
        class.dictionary = Some(Arc::new(dictionary));
        self.size = self.size - before + class.size();
        self.fit();
    }

    /// The dictionary of this origin, if there is one.
    pub fn dictionary(&mut self, origin: &str) -> Option<Arc<Dictionary>> {
        self.clock += 1;
        let class = self.classes.get_mut(origin)?;
        class.used = self.clock;
        class.dictionary.clone()
    }

    /// The dictionary of this name, whosesoever it is.
    pub fn find(&self, hash: BodyHash) -> Option<Arc<Dictionary>> {
        self.classes
            .values()
            .filter_map(|class| class.dictionary.as_ref())
            .find(|it| it.hash == hash)
            .cloned()
    }

    /// Dictionaries that there are.
    pub fn dictionaries(&self) -> usize {
        self.classes.values().filter(|class| class.dictionary.is_some()).count()
    }

    /// Bytes that are kept.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Gives up the origins that were met last the longest ago.
    fn fit(&mut self) {
        while self.size > self.most
            && let Some(oldest) =
                self.classes.iter().min_by_key(|(_, class)| class.used).map(|(name, _)| Arc::clone(name))
        {
            self.size -= self.classes.remove(&oldest).map_or(0, |class| class.size());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MB: usize = 1 << 20;
    const SITE: &str = "https://site.test";

    fn body(number: u64) -> Bytes {
        format!("body {number:08} ").repeat(40).into()
    }

    fn dictionary(word: &'static str) -> Dictionary {
        let bytes = Bytes::from_static(word.as_bytes());
        Dictionary { hash: BodyHash::of(&bytes), coded: bytes.clone(), bytes }
    }

    fn give(school: &mut School, origin: &str, numbers: std::ops::Range<u64>) {
        numbers.for_each(|number| school.handle_body(origin, number, &body(number)));
    }

    #[test]
    fn an_origin_is_trained_once_enough_different_urls_of_it_have_come() {
        let mut school = School::new(MB);
        give(&mut school, SITE, 0..FEWEST as u64 - 1);
        give(&mut school, "https://else.test", 0..1);
        assert!(school.poll_lesson().is_none());
        // The same again, in however many versions, is no other.
        (0..99).for_each(|version| school.handle_body(SITE, 0, &body(1000 + version)));
        assert!(school.poll_lesson().is_none());
        give(&mut school, SITE, 50..51);
        let lesson = school.poll_lesson().unwrap();
        assert_eq!((&*lesson.origin, lesson.samples.len()), (SITE, FEWEST));
        assert!(
            lesson.samples.contains(&body(1098)) && !lesson.samples.contains(&body(0)),
            "the newest version"
        );
        assert!(school.poll_lesson().is_none(), "it is being trained");
    }

    #[test]
    fn it_is_trained_again_when_as_many_that_are_new_have_come_and_what_there_is_is_told() {
        let mut school = School::new(MB);
        give(&mut school, SITE, 0..20);
        assert!(school.poll_lesson().unwrap().current.is_none());
        school.handle_trained(SITE, dictionary("one"));
        assert_eq!(school.dictionary(SITE).as_deref(), Some(&dictionary("one")));
        assert!(school.dictionary("https://else.test").is_none());
        assert_eq!(school.find(dictionary("one").hash).as_deref(), Some(&dictionary("one")));
        give(&mut school, SITE, 100..119);
        assert!(school.poll_lesson().is_none());
        give(&mut school, SITE, 119..120);
        assert_eq!(school.poll_lesson().unwrap().current.as_deref(), Some(&dictionary("one")));
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_was_met_last_the_longest_ago_goes_first() {
        let mut school = School::new(60_000);
        give(&mut school, SITE, 0..20);
        school.poll_lesson();
        school.handle_trained(SITE, dictionary("one"));
        for other in 0..20_u64 {
            give(&mut school, &format!("https://{other}.test"), 0..3);
            assert!(school.dictionary(SITE).is_some(), "it is in use");
            assert!(school.size() <= 60_000);
        }
        (0..20_u64).for_each(|other| give(&mut school, &format!("https://{other}.else"), 0..9));
        assert!(school.dictionary(SITE).is_none());
        school.set(0);
        assert_eq!((school.size(), school.classes.len(), school.is_on()), (0, 0, false));
        give(&mut school, SITE, 0..20);
        assert!(school.poll_lesson().is_none());
    }

    #[test]
    fn what_is_too_short_or_too_long_teaches_nothing() {
        let mut school = School::new(MB);
        for length in [SHORTEST - 1, MOST_BYTES / FEWEST + 1] {
            (0..99).for_each(|url| school.handle_body(SITE, url, &vec![b'a'; length].into()));
        }
        assert!(school.poll_lesson().is_none());
        assert_eq!(school.size(), 0);
    }

    proptest! {
        #[test]
        fn whatever_comes_no_more_is_kept_than_may_be_and_no_body_is_in_two_origins(
            most in 0usize..300_000,
            all in proptest::collection::vec((0u8..5, 0u64..40, 200usize..3_000), 0..300),
        ) {
            let mut school = School::new(most);
            for (origin, url, length) in all {
                let name = format!("https://{origin}.test");
                school.handle_body(&name, url, &vec![origin; length].into());
                prop_assert!(school.size() <= most);
                let counted: usize = school.classes.values().map(Class::size).sum();
                prop_assert_eq!(school.size(), counted);
                if let Some(lesson) = school.poll_lesson() {
                    let own = lesson.origin.as_bytes()["https://".len()] - b'0';
                    prop_assert!(lesson.samples.iter().all(|sample| sample.iter().all(|byte| *byte == own)));
                    school.handle_trained(&lesson.origin, dictionary("one"));
                }
            }
        }
    }
}
