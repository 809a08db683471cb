//! Bodies that cross once all of them is here: a small text, which so becomes smaller and gets its length told, and an
//! image, which is coded anew. What does not come in time, or breaks off, goes on as a stream (`stream`).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farhop_htotp::frame::{Coding, Failure};
use farhop_htotp::mirror::BodyHash;
use farhop_squeeze::{LARGEST_BASE, LARGEST_IMAGE, LARGEST_TAUGHT, Load, PIECE, Recipe};
use farhop_transport::hop::{Gone, Sender};
use farhop_units::BitRate;
use http::HeaderMap;
use tokio::time::{Instant, timeout};

use super::stream::PATIENCE;
use super::untouched::Untouched;
use super::{End, Flow, Undelivered};
use crate::body::Part;
use crate::kin::{Against, Kin};
use crate::page::Page;
use crate::treatment::{Treatment, content_length, describe_decoded, media_type};
use crate::variant;

/// A text is coded in one go, which is smaller and lets its decoded length be told, if it has at most so many bytes
/// and, whatever it shrinks to, at most so much link time: a browser reads a page while it arrives.
const SMALL: (u64, u64) = (4 * 1024, 64 * 1024);
const SMALL_TIME: Duration = Duration::from_millis(100);
/// A bound on what a small text may grow to when decoded before it is streamed after all.
const SMALL_DECODED: usize = 512 * 1024;
/// How long the rest of a small text is waited for: its last byte is rarely far behind its head, and the hop takes
/// far longer. A body that trickles is streamed as it comes.
const GATHER: Duration = Duration::from_millis(30);
/// How long one is waited for that is probably like another. What it names is promised meanwhile, and it is not over later than it would
/// be in a stream.
const GATHER_ALIKE: Duration = Duration::from_millis(250);
/// The longest pause in a text that does not say how long it is: one that is made word by word is to come word by word.
const PAUSE: Duration = Duration::from_millis(30);
/// Texts of lines, each of which means something as soon as it is there.
const LINES: [&str; 4] = ["application/x-ndjson", "text/x-ndjson", "text/ndjson", "application/stream+json"];
/// How many times as long a coded text is taken to be at most when it is decoded.
const EXPANDS: u64 = 10;
/// What is longer is coded on a thread for such work.
pub(super) const LONG: usize = 64 * 1024;
/// How much longer an image is waited for whose beginning was delivered before.
const RESUMED: Duration = Duration::from_secs(60);

/// A text as it crosses.
struct Coded {
    coding: Coding,
    bytes: Bytes,
    /// How many more it would have been by itself.
    spared: u64,
}

/// The shortest way to code a text, if that is shorter than the text: by itself, which zstd at `level` or its origin has done, or with
/// what the remote holds, where that is shorter, the name counted: it never takes more bytes than by itself.
fn coded(
    text: &[u8],
    with: &Against,
    of_origin: Option<(Coding, Bytes)>,
    level: Option<i32>,
) -> Option<Coded> {
    let made = level.and_then(|level| farhop_squeeze::compress(text, level).ok());
    let made = made.map(|bytes| (Coding::Zstd, bytes));
    let alone = made.into_iter().chain(of_origin).min_by_key(|(_, bytes)| bytes.len());
    let alone = alone.filter(|(_, bytes)| bytes.len() < text.len());
    let least = alone.as_ref().map_or(text.len(), |(_, bytes)| bytes.len());
    let level = level.unwrap_or(1);
    let named = |coding, bytes: Bytes| {
        let spared = least.checked_sub(bytes.len() + BodyHash::LENGTH).filter(|spared| *spared > 0)?;
        Some(Coded { coding, bytes, spared: spared as u64 })
    };
    let against = with.base.as_ref().and_then(|base| {
        named(Coding::Delta(base.hash), farhop_squeeze::compress_against(&base.body, text, level).ok()?)
    });
    let taught = with.dictionary.as_ref().and_then(|dictionary| {
        named(
            Coding::Dictionary(dictionary.hash),
            farhop_squeeze::compress_with(&dictionary.bytes, text, level).ok()?,
        )
    });
    let best = against.into_iter().chain(taught).max_by_key(|coded| coded.spared);
    best.or_else(|| alone.map(|(coding, bytes)| Coded { coding, bytes, spared: 0 }))
}

/// Bytes of a text that crosses in one go over a link of this rate.
pub(super) fn small(rate: Option<BitRate>) -> u64 {
    rate.map_or(SMALL.1, |rate| rate.bytes_in(SMALL_TIME).0.clamp(SMALL.0, SMALL.1))
}

/// How a text is waited for.
pub(super) struct Gathering {
    /// Bytes of it at most.
    most: usize,
    patience: Duration,
    /// How long nothing of it may come.
    pause: Duration,
    /// It may be sent against another, so that it may be long.
    is_alike: bool,
}

impl Gathering {
    /// For whatever of it comes first.
    const FIRST: Gathering = Gathering { most: 0, patience: GATHER, pause: GATHER, is_alike: false };
}

impl Flow<'_> {
    /// How a text is waited for that crosses in one go.
    pub(super) fn gathers(&self) -> Option<Gathering> {
        if self.treatment == Treatment::Pass || self.prefix.is_some() {
            return None;
        }
        let length = content_length(&self.head.fields);
        let shown = self.has_to_show().then_some(Gathering::FIRST);
        if length.is_none() && LINES.contains(&&*media_type(&self.head.fields)) {
            return shown;
        }
        let against = self.against();
        let largest = if against.base.is_some() { LARGEST_BASE } else { LARGEST_TAUGHT } as u64;
        if !against.is_nothing() && length.is_none_or(|length| length <= largest) {
            let most = match (length, &self.treatment) {
                (Some(length), Treatment::Squeeze) => length,
                (Some(length), _) => length.saturating_mul(EXPANDS),
                (None, _) => largest,
            };
            let most = most.min(largest) as usize;
            let pause = if length.is_some() { GATHER_ALIKE } else { PAUSE };
            return Some(Gathering { most, patience: GATHER_ALIKE, pause, is_alike: true });
        }
        let is_small = length.is_some_and(|length| length <= self.small);
        let gathered = is_small.then_some(Gathering {
            most: SMALL_DECODED,
            patience: GATHER,
            pause: GATHER,
            is_alike: false,
        });
        gathered.or(shown)
    }

    /// What of use the remote holds.
    fn against(&self) -> Against {
        self.kin.as_ref().map(Kin::against).cloned().unwrap_or_default()
    }

    /// Waits a moment for the whole of a text. Nothing is answered before, so an origin that fails gets an error page.
    pub(super) async fn gather(
        &mut self,
        sender: &mut Sender,
        mut gathering: Gathering,
    ) -> Result<Option<End>, Undelivered> {
        let ground = self.ground;
        let _room = if gathering.is_alike {
            let kept = if self.untouched.is_some() { 2 * gathering.most } else { gathering.most };
            let room = ground.alike.acquire_many(kept.div_ceil(1024) as u32);
            match timeout(PATIENCE.min(gathering.pause), room).await {
                Ok(Ok(room)) => Some(room),
                _ if !self.has_to_show() => return Ok(self.begin(sender).await),
                _ => {
                    gathering = Gathering::FIRST;
                    None
                }
            }
        } else {
            None
        };
        let Gathering { most, patience, pause, is_alike } = gathering;
        match self.collect(sender, most, (Instant::now() + patience, pause), is_alike).await? {
            (whole, Some(Ok(trailers))) => Ok(Some(self.answer_whole(sender, whole, trailers).await)),
            (beginning, Some(Err(failure))) => self.deliver_cut(sender, beginning, failure).await.map(Some),
            (beginning, None) => Ok(self.begin_with(sender, beginning).await),
        }
    }

    /// Waits for the whole of an image and codes it anew; where that cannot be, it passes as it comes.
    pub(super) async fn remake(
        &mut self,
        sender: &mut Sender,
        recipe: Recipe,
    ) -> Result<Option<End>, Undelivered> {
        self.treatment = Treatment::Pass;
        let begun = self.resume.is_some_and(|resume| resume.offset > 0);
        let length = content_length(&self.head.fields);
        let room = tokio::select! {
            biased;
            room = self.ground.squeezing.room(recipe.from(), length, self.rate, begun) => room,
            gone = sender.gone() => return Err(gone.into()),
        };
        let Some((_held, turn)) = room else { return Ok(self.begin(sender).await) };
        // What was begun must come out the same again, however long it takes.
        let deadline = turn.collected_by + if begun { RESUMED } else { Duration::ZERO };
        let (image, ended) =
            self.collect(sender, LARGEST_IMAGE as usize, (deadline, Duration::MAX), false).await?;
        let trailers = match ended {
            Some(Ok(trailers)) => trailers,
            Some(Err(failure)) => return self.deliver_cut(sender, image, failure).await.map(Some),
            None => return Ok(self.begin_with(sender, image).await),
        };
        let recoded = tokio::select! {
            biased;
            recoded = self.ground.squeezing.recode(image.clone(), recipe, self.resume, turn) => recoded,
            gone = sender.gone() => return Err(gone.into()),
        };
        let Some(recoded) = recoded else {
            return Ok(Some(self.deliver_whole(sender, image, trailers).await));
        };
        let hash = blake3::hash(&image).to_hex();
        variant::describe(self.request, recipe.policy(), &mut self.head, &recoded, &hash[..16]);
        // Trailers speak of the origin's bytes.
        Ok(Some(self.deliver_whole(sender, recoded.bytes.into(), None).await))
    }

    /// Body bytes until the end, `most`, the deadline or a pause longer than allowed; with the end if that was it. If `reads`, what
    /// they name is promised as they come.
    pub(super) async fn collect(
        &mut self,
        sender: &Sender,
        most: usize,
        (deadline, pause): (Instant, Duration),
        reads: bool,
    ) -> Result<(Bytes, Option<End>), Gone> {
        let mut collected = BytesMut::new();
        loop {
            let paused = Instant::now().checked_add(pause).map_or(deadline, |paused| paused.min(deadline));
            let part = tokio::select! {
                biased;
                part = self.source.next() => part,
                () = tokio::time::sleep_until(paused) => return Ok((collected.freeze(), None)),
                gone = sender.gone() => return Err(gone),
            };
            self.gather_untouched();
            match part {
                Ok(Part::Bytes(bytes)) => {
                    collected.extend_from_slice(&bytes);
                    if reads {
                        self.read_along += bytes.len();
                        self.scan(sender, bytes).await;
                    }
                }
                Ok(Part::End(trailers)) => return Ok((collected.freeze(), Some(Ok(trailers)))),
                Err(failure) => return Ok((collected.freeze(), Some(Err(failure)))),
            }
            // What is judged by what comes first is judged once that was decoded to its end, as far as it goes.
            let coded = self.untouched.as_ref().map(Untouched::gathered);
            let is_judged = coded != Some(0) || collected.len() > SMALL_DECODED;
            if collected.len().max(coded.unwrap_or(0)) > most && is_judged {
                return Ok((collected.freeze(), None));
            }
        }
    }

    /// Begins a body that will be streamed, with what is here of it.
    pub(super) async fn begin_with(&mut self, sender: &Sender, beginning: Bytes) -> Option<End> {
        self.compare_untouched(&beginning);
        if let Some(begun) = self.begin_against(sender, &beginning).await {
            return begun;
        }
        match self.begin(sender).await {
            Some(end) => Some(end),
            None => {
                self.take_all(sender, beginning).await.and_then(|()| self.pass_untouched()).err().map(Err)
            }
        }
    }

    /// Delivers a body that is at hand as it is.
    pub(super) async fn deliver_whole(
        &mut self,
        sender: &Sender,
        whole: Bytes,
        trailers: Option<HeaderMap>,
    ) -> End {
        if let Some(end) = self.begin_with(sender, whole).await {
            return end;
        }
        self.close(sender).map(|()| trailers)
    }

    /// Delivers what came of a body before it failed, which browsers use. Without any, an error page can be answered.
    pub(super) async fn deliver_cut(
        &mut self,
        sender: &Sender,
        beginning: Bytes,
        failure: Failure,
    ) -> Result<End, Undelivered> {
        if beginning.is_empty() {
            return Err(Undelivered::Failed(failure));
        }
        if let Some(end) = self.begin_with(sender, beginning).await {
            return Ok(end);
        }
        Ok(self.flush().await.and(Err(failure)))
    }

    pub(super) async fn take_all(&mut self, sender: &Sender, mut bytes: Bytes) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.take(sender, piece).await?;
        }
        Ok(())
    }

    /// Answers with a body that is whole at hand.
    pub(super) async fn answer_whole(
        &mut self,
        sender: &Sender,
        whole: Bytes,
        trailers: Option<HeaderMap>,
    ) -> End {
        let _preceding = self.page.as_ref().and_then(Page::precede);
        let read = std::mem::take(&mut self.read_along);
        self.scan(sender, whole.slice(read..)).await;
        self.scan_end(sender);
        if let Treatment::Recode(_) = self.treatment {
            describe_decoded(&mut self.head, Some(whole.len() as u64));
        }
        let with = self.against();
        let of_origin = self.whole_untouched();
        self.sent = self.kin.take().and_then(|kin| kin.whole_at_once(&whole));
        let Coded { coding, bytes, spared } = self.code(whole, with, of_origin).await;
        (self.spared, self.taught) = (spared, matches!(coding, Coding::Dictionary(_)));
        sender.answer(&self.head, coding, None);
        self.enqueue(bytes)?;
        Ok(trailers)
    }

    /// A whole text in as few bytes as can be: as it is, coded by itself, as its origin coded it, or against what the remote holds.
    async fn code(&mut self, whole: Bytes, with: Against, of_origin: Option<(Coding, Bytes)>) -> Coded {
        let ground = self.ground;
        // Memory is bounded as for those that are coded in a stream.
        let permit = match with.is_nothing() {
            false => timeout(PATIENCE, ground.encoders.acquire()).await.ok().and_then(Result::ok),
            true => None,
        };
        let with = if permit.is_some() { with } else { Against::default() };
        // Where there is no time, what is coded already costs none.
        let is_done = self.load == Load::Spent && of_origin.is_some();
        let (level, text) = ((!is_done).then_some(self.level), whole.clone());
        let work = move || coded(&text, &with, of_origin, level);
        let done = if whole.len() > LONG {
            let timed = move || {
                let begun = std::time::Instant::now();
                (work(), begun.elapsed())
            };
            match tokio::task::spawn_blocking(timed).await {
                Ok((done, took)) => {
                    ground.squeezing.charge(took);
                    done
                }
                Err(panic) => {
                    tracing::warn!("a text could not be coded: {panic}");
                    None
                }
            }
        } else {
            ground.squeezing.counted(work)
        };
        done.unwrap_or(Coded { coding: Coding::Identity, bytes: whole, spared: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bases::Base;
    use farhop_dictionaries::Dictionary;
    use proptest::prelude::*;
    use std::sync::{Arc, LazyLock};

    /// Trained on pages of which most is equal.
    fn dictionary() -> Option<Arc<Dictionary>> {
        static TRAINED: LazyLock<Arc<Dictionary>> = LazyLock::new(|| {
            let samples: Vec<Bytes> = (0..24).map(|number| page(number).into()).collect();
            let bytes = farhop_squeeze::train(&samples, None).unwrap();
            Arc::new(Dictionary { hash: BodyHash::of(&bytes), coded: bytes.clone(), bytes })
        });
        Some(Arc::clone(&TRAINED))
    }

    fn page(number: u64) -> Vec<u8> {
        let line = |at: u64| {
            let word = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("<li class=c{at}><a href=/item/{word:x}>{:x}</a>\n", word.rotate_left(17))
        };
        let common: String = (0..60).map(line).collect();
        let own: String =
            (0..20).map(|at| format!("<p>{:x}\n", (number * 1_000 + at) * 2_654_435_761)).collect();
        format!("{common}{own}").into_bytes()
    }

    fn length(text: &[u8], with: &Against, level: i32) -> usize {
        coded(text, with, None, Some(level)).map_or(text.len(), |coded| {
            let is_named = matches!(coded.coding, Coding::Delta(_) | Coding::Dictionary(_));
            coded.bytes.len() + if is_named { BodyHash::LENGTH } else { 0 }
        })
    }

    #[test]
    fn a_text_goes_with_whatever_makes_it_the_shortest() {
        let (text, version) = (page(1_000), [&page(1_000)[..], b"more"].concat());
        let base = |body: Vec<u8>| Some(Base { hash: BodyHash::of(&body), body: body.into() });
        let coding =
            |base, dictionary| coded(&text, &Against { base, dictionary }, None, Some(9)).unwrap().coding;
        assert_eq!(coding(None, None), Coding::Zstd);
        let taught = Coding::Dictionary(dictionary().unwrap().hash);
        assert_eq!(coding(None, dictionary()), taught);
        assert_eq!(coding(base(b"of no use".to_vec()), dictionary()), taught);
        let before = base(version);
        let delta = Coding::Delta(before.as_ref().unwrap().hash);
        assert_eq!(coding(before, dictionary()), delta);
    }

    #[test]
    fn a_text_goes_as_its_origin_coded_it_if_that_is_the_shortest() {
        let text = page(1_000);
        let made = farhop_squeeze::compress(&text, 9).unwrap();
        let of_origin = |length| Some((Coding::Brotli, Bytes::from(vec![7; length])));
        let coding = |length, with: &Against, level| {
            let coded = coded(&text, with, of_origin(length), level)?;
            Some((coded.coding, coded.spared))
        };
        let nothing = Against::default();
        assert_eq!(coding(made.len() - 1, &nothing, Some(9)), Some((Coding::Brotli, 0)));
        assert_eq!(coding(made.len(), &nothing, Some(9)), Some((Coding::Zstd, 0)));
        // Without time nothing is made of it.
        assert_eq!(coding(made.len() + 1, &nothing, None), Some((Coding::Brotli, 0)));
        assert_eq!(coding(text.len(), &nothing, None), None);
        let hash = BodyHash::of(&text);
        let with = Against { base: Some(Base { hash, body: text.clone().into() }), dictionary: None };
        // A base that is the very same memory is none to zstd.
        let delta = farhop_squeeze::compress_against(&text.clone(), &text, 9).unwrap();
        let delta = delta.len() + BodyHash::LENGTH;
        assert_eq!(coding(delta + 5, &with, Some(9)), Some((Coding::Delta(hash), 5)), "of what it is alone");
        assert_eq!(coding(delta, &with, Some(9)), Some((Coding::Brotli, 0)));
    }

    proptest! {
        #[test]
        fn against_a_base_no_text_takes_more_bytes_than_by_itself(
            body in proptest::collection::vec(any::<u8>(), 1..3000),
            text in proptest::collection::vec(any::<u8>(), 1..3000),
            shared in 0usize..3000,
            level in 1i32..12,
        ) {
            let text = [&body[..shared.min(body.len())], &text].concat();
            let base = Some(Base { hash: BodyHash::of(&body), body: body.into() });
            for dictionary in [None, dictionary()] {
                let with = Against { base: base.clone(), dictionary };
                prop_assert!(length(&text, &with, level) <= length(&text, &Against::default(), level));
            }
        }
    }
}
