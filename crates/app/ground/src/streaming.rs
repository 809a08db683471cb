//! Streaming media on its way: the book of play rates under a lock, the clock, and what of it stands in the settings. What is known
//! and when more is due is `farhop_streaming`'s.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use farhop_events::ExchangeId;
use farhop_settings::ground::StreamingSettings;
use farhop_squeeze::Policy;
use farhop_streaming::{Book, Course, Form, Terms, play_time};
use farhop_units::{BitRate, Bytes};
use http::HeaderMap;
use http::header;
use tokio::time::{Instant, sleep_until};
use url::Url;

use crate::manifest::{By, Most};
use crate::owner::Owner;
use crate::treatment::{content_length, media_type, text};

/// Where a player begins that jumps within a file.
const START: Duration = Duration::from_secs(5);
/// A film that says how long it plays says so among its first bytes, or they are not waited for.
const BEGINNING: usize = 64 * 1024;
/// A rate that is measured changes a little all the time; a limit that did would make each manifest another.
const KEPT_BITS: u32 = 3;

/// The best rendition that manifests may name for a user of this image policy over a link of this rate; none where they stay.
pub(crate) fn most(settings: &StreamingSettings, policy: Policy, rate: Option<BitRate>) -> Option<Most> {
    if !settings.limited || policy == Policy::Identity {
        return None;
    }
    let link = rate.map(|rate| coarse((rate.0 as f64 * settings.share.fraction()) as u64));
    match (link, settings.most) {
        (Some(link), Some(said)) if said.0 < link => Some(Most { rate: said, by: By::Settings }),
        (Some(link), _) => Some(Most { rate: BitRate(link), by: By::Link }),
        (None, said) => said.map(|rate| Most { rate, by: By::Settings }),
    }
}

fn coarse(rate: u64) -> u64 {
    let spare = u64::BITS.saturating_sub(rate.leading_zeros() + KEPT_BITS);
    rate >> spare << spare
}

/// See the module.
pub(crate) struct Streaming {
    book: Mutex<Book>,
    since: Instant,
}

impl Default for Streaming {
    fn default() -> Streaming {
        Streaming { book: Mutex::default(), since: Instant::now() }
    }
}

/// Whose player asks for what.
pub(crate) struct Viewing {
    pub(crate) exchange: ExchangeId,
    pub(crate) url: Url,
    owner: u64,
}

impl Viewing {
    pub(crate) fn new(exchange: ExchangeId, owner: &Owner, url: Url) -> Viewing {
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        Viewing { exchange, url, owner: hasher.finish() }
    }
}

/// How a body is paced.
pub(crate) struct Paced {
    course: Course,
    terms: Terms,
}

/// The beginning of a file that may say how long it plays.
pub(crate) struct Film {
    whole: u64,
    so_far: BytesMut,
}

impl Film {
    /// Of a response with these fields, where it may be one and its length is known: a body, or a part of one that is told.
    pub(crate) fn of(fields: &HeaderMap) -> Option<Film> {
        let media = media_type(fields);
        let is_film = media.starts_with("video/") || media == "audio/mp4" || media == "audio/webm";
        let range = text(fields, &header::CONTENT_RANGE);
        let of_part = || range.rsplit_once('/').and_then(|(_, whole)| whole.parse().ok());
        let whole = if range.is_empty() { content_length(fields) } else { of_part() };
        let coded = fields.contains_key(header::CONTENT_ENCODING);
        whole.filter(|_| is_film && !coded).map(|whole| Film { whole, so_far: BytesMut::new() })
    }

    /// More of it. How long it plays, once that has come; `Err` once it will not.
    fn read(&mut self, bytes: &[u8]) -> Result<Option<Duration>, ()> {
        let room = BEGINNING - self.so_far.len();
        self.so_far.extend_from_slice(&bytes[..bytes.len().min(room)]);
        match play_time(&self.so_far) {
            Some(time) => Ok(Some(time)),
            None if self.so_far.len() < BEGINNING => Ok(None),
            None => Err(()),
        }
    }
}

impl Streaming {
    /// Learns from a manifest.
    pub(crate) fn note_manifest(&self, viewing: &Viewing, form: Form, text: &[u8]) {
        self.lock().note_manifest(viewing.owner, &viewing.url, form, text);
    }

    /// Whether a response with these fields is media with a play rate.
    pub(crate) fn is_media(&self, viewing: &Viewing, fields: &HeaderMap) -> bool {
        let media = media_type(fields);
        media.starts_with("video/")
            || media.starts_with("audio/") && Form::of(&media, "").is_none()
            || self.lock().is_media(viewing.owner, &viewing.url)
    }

    /// How the body with these fields is paced that begins now, where its play rate is known.
    pub(crate) fn paced(
        &self,
        viewing: &Viewing,
        fields: &HeaderMap,
        settings: &StreamingSettings,
    ) -> Option<Paced> {
        if !settings.paced {
            return None;
        }
        let mut book = self.lock();
        let course = book.course(viewing.owner, &viewing.url, content_length(fields))?;
        let terms = terms(settings);
        book.begin(&course, &terms, self.since.elapsed());
        Some(Paced { course, terms })
    }

    /// Reads on in a film; how it is paced once it says how long it plays.
    pub(crate) fn read(
        &self,
        viewing: &Viewing,
        film: &mut Option<Film>,
        bytes: &[u8],
        settings: &StreamingSettings,
    ) -> Option<Paced> {
        let plays = match film.as_mut()?.read(bytes) {
            Ok(None) => return None,
            Ok(Some(plays)) => plays,
            Err(()) => {
                *film = None;
                return None;
            }
        };
        let whole = film.take()?.whole;
        self.lock().note_file(viewing.owner, &viewing.url, whole, plays);
        if !settings.paced {
            return None;
        }
        let course = self.lock().course(viewing.owner, &viewing.url, None)?;
        Some(Paced { course, terms: terms(settings) })
    }

    /// Completes when more may be sent.
    pub(crate) async fn due(&self, paced: &Paced) {
        loop {
            let now = self.since.elapsed();
            let due = self.lock().due(&paced.course, &paced.terms, now);
            if due <= now {
                return;
            }
            sleep_until(self.since + due).await;
        }
    }

    /// So many bytes are sent.
    pub(crate) fn sent(&self, paced: &Paced, bytes: usize) {
        let now = self.since.elapsed();
        self.lock().sent(&paced.course, Bytes(bytes as u64), &paced.terms, now);
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Paced {
    /// What it plays in a second.
    pub(crate) fn rate(&self) -> BitRate {
        self.course.rate
    }
}

fn terms(settings: &StreamingSettings) -> Terms {
    Terms { ahead: settings.ahead, speed: settings.speed.fraction(), start: START.min(settings.ahead) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::fields;

    fn settings(said: &str) -> StreamingSettings {
        let text = format!("[[remote]]\nname = 'ship'\nkeys = ['made in the test']\n[streaming]\n{said}\n");
        let settings: farhop_settings::GroundSettings =
            farhop_settings::parse(&text, std::path::Path::new("ground.toml"), &[]).unwrap();
        settings.streaming
    }

    #[test]
    fn the_link_or_the_settings_say_what_a_rendition_may_have() {
        let of = |said: &str, policy, rate| most(&settings(said), policy, rate).map(|it| (it.rate, it.by));
        let link = Some(BitRate::mbit(8));
        assert_eq!(of("", Policy::Gentle, link), Some((BitRate(5_242_880), By::Link)));
        assert_eq!(of("", Policy::Identity, link), None, "as the origin sent it");
        assert_eq!(of("limited = false", Policy::Strong, link), None);
        assert_eq!(of("", Policy::Gentle, None), None, "nothing limits the link");
        let two = Some((BitRate::mbit(2), By::Settings));
        assert_eq!(of("most = '2 Mbit/s'", Policy::Gentle, link), two);
        assert_eq!(of("most = '2 Mbit/s'", Policy::Gentle, None), two);
        assert_eq!(of("most = '20 Mbit/s'", Policy::Gentle, link), Some((BitRate(5_242_880), By::Link)));
    }

    #[test]
    fn what_is_measured_hardly_moves_the_limit() {
        assert_eq!(coarse(6_000_000), coarse(6_200_000));
        for rate in [0, 1, 7, 8, 9, 6_000_000, u64::MAX] {
            assert!(coarse(rate) <= rate && coarse(rate) >= rate / 4 * 3, "{rate}");
        }
    }

    #[test]
    fn films_are_told_by_their_type_and_length() {
        let whole = |lines| Film::of(&fields(lines)).map(|film| film.whole);
        assert_eq!(whole("content-type: video/mp4 | content-length: 9"), Some(9));
        assert_eq!(
            whole("content-type: video/mp4 | content-length: 9 | content-range: bytes 0-8/70"),
            Some(70)
        );
        assert_eq!(whole("content-type: video/mp4 | content-range: bytes 0-8/*"), None);
        assert_eq!(whole("content-type: video/mp4"), None);
        assert_eq!(whole("content-type: text/html | content-length: 9"), None);
    }
}
