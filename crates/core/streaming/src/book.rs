//! What is known of the play rate of URLs, learnt from manifests and from files themselves, and how far ahead of the player
//! each course of media is. One user's players teach nothing about another's. Bounded: what was learnt first is forgotten first.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use farhop_units::{BitRate, Bytes};
use url::Url;

use crate::{Form, dash, hls, read};

/// URLs whose play rate is known: 16 bytes and some more each.
const MOST_KNOWN: usize = 32_768;
/// Templates of URLs.
const MOST_PATTERNS: usize = 1_024;
/// Courses under way.
const MOST_COURSES: usize = 4_096;
/// What plays slower or faster than that is no media.
const RATES: (u64, u64) = (4_000, 400_000_000);

/// How media is paced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Play time that is sent as fast as can be, so that a player fills its buffer.
    pub ahead: Duration,
    /// What is sent of the rest in a second of time, in seconds of play time: more than 1, so that players get ahead.
    pub speed: f64,
    /// Play time that a file may be ahead at least when it is asked for anew, as after a jump.
    pub start: Duration,
}

/// A body that plays: of what course it is, and how fast it plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Course {
    key: u64,
    /// What it plays in a second.
    pub rate: BitRate,
    /// A file by itself, in which players jump.
    is_file: bool,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    /// A piece of this course that plays for so long.
    Plays(u64, Duration),
    /// Something that plays at this rate.
    At(Course),
}

struct Pattern {
    owner: u64,
    begins: String,
    ends: String,
    course: Course,
}

/// How far a course is ahead, at a time.
#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    by: f64,
    at: Duration,
}

/// See the module.
#[derive(Default)]
pub struct Book {
    known: HashMap<u64, Known>,
    order: VecDeque<u64>,
    patterns: VecDeque<Pattern>,
    ahead: HashMap<u64, Ahead>,
}

impl Book {
    /// Learns from a manifest of `owner` at this URL.
    pub fn note_manifest(&mut self, owner: u64, url: &Url, form: Form, text: &[u8]) {
        let Ok(text) = read(text) else { return };
        match form {
            Form::Hls => self.note_pieces(owner, url, text),
            Form::Dash => self.note_patterns(owner, url, text),
        }
    }

    fn note_pieces(&mut self, owner: u64, url: &Url, text: &str) {
        let course = key(owner, url.as_str());
        let mut parts: HashMap<u64, (u64, f64)> = HashMap::new();
        for piece in hls::pieces(text) {
            let Some(key) = joined(url, piece.uri).map(|url| key(owner, url.as_str())) else { continue };
            match piece.bytes {
                None => self.know(key, Known::Plays(course, piece.plays)),
                Some(bytes) => {
                    let part = parts.entry(key).or_default();
                    *part = (part.0.saturating_add(bytes), part.1 + piece.plays.as_secs_f64());
                }
            }
        }
        for (key, (bytes, seconds)) in parts {
            if let Some(rate) = rate(bytes, seconds) {
                self.know(key, Known::At(Course { key: course, rate, is_file: false }));
            }
        }
    }

    fn note_patterns(&mut self, owner: u64, url: &Url, text: &str) {
        for pieces in dash::pieces(text) {
            if !(RATES.0..=RATES.1).contains(&pieces.rate) {
                continue;
            }
            let mut base = Some(url.clone());
            for step in &pieces.bases {
                base = base.and_then(|base| joined(&base, step));
            }
            let Some(begins) = base.and_then(|base| joined(&base, &pieces.begins)) else { continue };
            let begins = String::from(begins);
            let course = Course { key: key(owner, &begins), rate: BitRate(pieces.rate), is_file: false };
            if pieces.ends.is_empty() {
                self.know(key(owner, &begins), Known::At(course));
                continue;
            }
            self.patterns.retain(|it| it.owner != owner || it.begins != begins || it.ends != pieces.ends);
            if self.patterns.len() >= MOST_PATTERNS {
                self.patterns.pop_front();
            }
            self.patterns.push_back(Pattern { owner, begins, ends: pieces.ends, course });
        }
    }

    /// A file of this length at this URL plays for so long.
    pub fn note_file(&mut self, owner: u64, url: &Url, length: u64, plays: Duration) {
        if let Some(rate) = rate(length, plays.as_secs_f64()) {
            let key = key(owner, bare(url).as_str());
            self.know(key, Known::At(Course { key, rate, is_file: true }));
        }
    }

    fn know(&mut self, key: u64, known: Known) {
        if self.known.insert(key, known).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MOST_KNOWN
            && let Some(first) = self.order.pop_front()
        {
            self.known.remove(&first);
        }
    }

    /// The course of a body of this length from this URL, where its play rate is known.
    pub fn course(&self, owner: u64, url: &Url, length: Option<u64>) -> Option<Course> {
        let url = bare(url);
        match self.known.get(&key(owner, url.as_str())) {
            Some(Known::At(course)) => return Some(*course),
            Some(Known::Plays(course, plays)) => {
                let rate = rate(length?, plays.as_secs_f64())?;
                return Some(Course { key: *course, rate, is_file: false });
            }
            None => {}
        }
        let is_it = |it: &&Pattern| {
            let long_enough = url.as_str().len() >= it.begins.len() + it.ends.len();
            it.owner == owner
                && long_enough
                && url.as_str().starts_with(&it.begins)
                && url.as_str().ends_with(&it.ends)
        };
        self.patterns.iter().rev().find(is_it).map(|it| it.course)
    }

    /// Whether this URL is known for media, whatever its length.
    pub fn is_media(&self, owner: u64, url: &Url) -> bool {
        self.known.contains_key(&key(owner, bare(url).as_str())) || self.course(owner, url, None).is_some()
    }

    /// A body of this course begins.
    pub fn begin(&mut self, course: &Course, terms: &Terms, now: Duration) {
        if course.is_file
            && let Some(ahead) = self.ahead.get_mut(&course.key)
        {
            let most = terms.ahead.saturating_sub(terms.start).as_secs_f64();
            ahead.pass(terms, now);
            ahead.by = ahead.by.min(most);
        }
    }

    /// When more of it may be sent.
    pub fn due(&mut self, course: &Course, terms: &Terms, now: Duration) -> Duration {
        let Some(ahead) = self.ahead.get_mut(&course.key) else { return now };
        ahead.pass(terms, now);
        let over = ahead.by - terms.ahead.as_secs_f64();
        if over <= 0.0 {
            return now;
        }
        Duration::try_from_secs_f64(over / terms.speed).map_or(now, |wait| now.saturating_add(wait))
    }

    /// So much of it is sent.
    pub fn sent(&mut self, course: &Course, bytes: Bytes, terms: &Terms, now: Duration) {
        if self.ahead.len() >= MOST_COURSES && !self.ahead.contains_key(&course.key) {
            self.ahead.retain(|_, ahead| {
                ahead.pass(terms, now);
                ahead.by > 0.0
            });
            if self.ahead.len() >= MOST_COURSES {
                return;
            }
        }
        let ahead = self.ahead.entry(course.key).or_insert(Ahead { by: 0.0, at: now });
        ahead.pass(terms, now);
        ahead.by += course.rate.time_for(bytes).as_secs_f64();
    }
}

impl Ahead {
    fn pass(&mut self, terms: &Terms, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.by = (self.by - passed * terms.speed).max(0.0);
        self.at = self.at.max(now);
    }
}

fn rate(bytes: u64, seconds: f64) -> Option<BitRate> {
    let bits = bytes as f64 * 8.0 / seconds;
    (bits >= RATES.0 as f64 && bits <= RATES.1 as f64).then_some(BitRate(bits as u64))
}

fn joined(base: &Url, reference: &str) -> Option<Url> {
    base.join(reference).ok().map(|url| bare(&url))
}

/// What is asked for of it.
fn bare(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    url
}

fn key(owner: u64, url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (owner, url).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { ahead: Duration::from_secs(20), speed: 1.25, start: Duration::from_secs(5) };

    fn at(path: &str) -> Url {
        Url::parse(&format!("https://media.test{path}")).unwrap()
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Sends so many seconds of a course as soon as each is due; when the last one went.
    fn send(book: &mut Book, course: &Course, count: u64, mut now: Duration) -> Duration {
        for _ in 0..count {
            now = book.due(course, &TERMS, now);
            book.sent(course, Bytes(course.rate.0 / 8), &TERMS, now);
        }
        now
    }

    #[test]
    fn a_piece_of_hls_plays_at_its_length_over_its_time() {
        let mut book = Book::default();
        let text = b"#EXTM3U\n#EXTINF:4,\n../s/1.ts#x\n#EXTINF:2,\n#EXT-X-BYTERANGE:500000@0\nall.ts\n#EXTINF:2,\n#EXT-X-BYTERANGE:500000@500000\nall.ts\n";
        book.note_manifest(1, &at("/v/list.m3u8"), Form::Hls, text);
        let course = book.course(1, &at("/s/1.ts"), Some(1_000_000)).unwrap();
        assert_eq!(course.rate, BitRate::mbit(2));
        assert_eq!(book.course(1, &at("/s/1.ts"), None), None, "nobody knows how long it is");
        assert!(book.is_media(1, &at("/s/1.ts")));
        assert_eq!(book.course(1, &at("/v/all.ts"), None).unwrap().rate, BitRate::mbit(2));
        assert_eq!(book.course(2, &at("/s/1.ts"), Some(1_000_000)), None, "another user's");
        assert_eq!(book.course(1, &at("/s/1.ts"), Some(10)), None, "no media plays so slowly");
    }

    #[test]
    fn a_piece_of_dash_plays_at_the_rate_of_its_rendition() {
        let mut book = Book::default();
        let text = br#"<MPD><Period><AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$RepresentationID$/n$Number%03d$.m4s"/><Representation id="a" bandwidth="500000"/><Representation id="b" bandwidth="900000"/></AdaptationSet><AdaptationSet><Representation id="c" bandwidth="64000"><BaseURL>c.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>"#;
        book.note_manifest(1, &at("/d/x.mpd"), Form::Dash, text);
        let rate = |path| book.course(1, &at(path), None).map(|course| course.rate);
        assert_eq!(rate("/d/b/n007.m4s"), Some(BitRate::kbit(900)));
        assert_eq!(rate("/d/a/n007.m4s"), Some(BitRate::kbit(500)));
        assert_eq!(rate("/d/c.mp4"), Some(BitRate::kbit(64)));
        assert_eq!((rate("/d/a/init.mp4"), rate("/d/a/n.m4")), (None, None));
    }

    #[test]
    fn a_player_fills_its_buffer_and_then_gets_what_it_plays_and_a_quarter_more() {
        let mut book = Book::default();
        book.note_file(1, &at("/film.mp4"), 7_500_000, seconds(60));
        let course = book.course(1, &at("/film.mp4"), None).unwrap();
        assert_eq!(course.rate, BitRate::mbit(1));
        assert_eq!(send(&mut book, &course, 20, Duration::ZERO), Duration::ZERO);
        let end = send(&mut book, &course, 51, Duration::ZERO);
        assert!((end.as_secs_f64() - 40.0).abs() < 1.0, "50 s more in 40: {end:?}");
        // It has paused for long: its buffer may be filled again.
        assert_eq!(send(&mut book, &course, 20, end + seconds(60)), end + seconds(60));
    }

    #[test]
    fn who_jumps_in_a_file_has_the_first_seconds_at_once() {
        let mut book = Book::default();
        book.note_file(1, &at("/film.mp4"), 7_500_000, seconds(60));
        let course = book.course(1, &at("/film.mp4"), None).unwrap();
        let now = send(&mut book, &course, 30, Duration::ZERO);
        book.begin(&course, &TERMS, now);
        assert_eq!(send(&mut book, &course, 5, now), now);
        assert!(book.due(&course, &TERMS, now) >= now);
    }

    #[test]
    fn what_was_learnt_first_is_forgotten_first() {
        let mut book = Book::default();
        for number in 0..=MOST_KNOWN as u64 {
            book.note_file(1, &at(&format!("/{number}")), 1_000_000, seconds(8));
        }
        assert_eq!((book.known.len(), book.order.len()), (MOST_KNOWN, MOST_KNOWN));
        assert_eq!(book.course(1, &at("/0"), None), None);
        assert!(book.course(1, &at("/1"), None).is_some());
        for number in 0..2 * MOST_COURSES as u64 {
            let course = Course { key: number, rate: BitRate::mbit(1), is_file: false };
            book.sent(&course, Bytes(1_000_000), &TERMS, seconds(number));
        }
        assert!(book.ahead.len() <= MOST_COURSES);
    }
}
