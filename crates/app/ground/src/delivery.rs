//! One response on its way to the remote: origin → decode → compare what was delivered before → scan and promise →
//! squeeze → spool → hop, in one task, so that promises stand ahead of the bytes that mention them and a slow hop holds
//! the origin back. It decides nothing about caching.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Coding, Failure, Resume};
use farhop_squeeze::{Encoder, LARGEST_IMAGE, PIECE, Recipe};
use farhop_transport::hop::{Gone, Sender};
use farhop_transport::path::End as PathEnd;
use farhop_units::BitRate;
use futures_util::FutureExt;
use http::HeaderMap;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::allowance::Share;
use crate::body::{Part, Source};
use crate::failure;
use crate::ground::Shared;
use crate::origins::OriginBody;
use crate::page::Page;
use crate::prefix::{Mismatch, Prefix, Step};
use crate::spool::Queue;
use crate::treatment::{Treatment, content_length, describe_decoded};
use crate::variant;

/// A text is coded in one go, which is smaller and lets its decoded length be told, if it has at most so many bytes
/// and, whatever it shrinks to, at most so much link time: a browser reads a page while it arrives.
const SMALL: (u64, u64) = (4 * 1024, 64 * 1024);
const SMALL_TIME: Duration = Duration::from_millis(100);
/// A bound on what a small text may grow to when decoded before it is streamed after all.
const SMALL_DECODED: usize = 512 * 1024;
/// How long an encoder is waited for when all are taken.
const PATIENCE: Duration = Duration::from_millis(500);
/// Text is coded in pieces of at least half of that while they follow each other without a pause.
const BATCHES_IN_SMALL: u64 = 2;
/// How long the rest of a small text is waited for: its last byte is rarely far behind its head, and the hop takes
/// far longer. A body that trickles is streamed as it comes.
const GATHER: Duration = Duration::from_millis(30);
/// How much longer an image is waited for whose beginning was delivered before.
const RESUMED: Duration = Duration::from_secs(60);

/// What is to be delivered.
pub(crate) struct Delivery<'a> {
    /// The end it passes through.
    pub(crate) ground: &'a Shared,
    /// As it would be without treatment.
    pub(crate) head: ResponseHead,
    /// Fields of the request, as the client sent them.
    pub(crate) request: &'a HeaderMap,
    /// What happens to the body.
    pub(crate) treatment: Treatment,
    /// The body; `None` where the response has none.
    pub(crate) body: Option<OriginBody>,
    /// What was delivered before the carrier was lost.
    pub(crate) resume: Option<Resume>,
    /// Reads along and promises.
    pub(crate) page: Option<Page>,
    /// What may still be sent unasked, for a push.
    pub(crate) share: Option<Share>,
}

/// How it went.
#[derive(Debug)]
pub(crate) struct Delivered {
    /// Body bytes from the origin.
    pub(crate) origin_bytes: u64,
    /// Body bytes to the hop.
    pub(crate) crossed_bytes: u64,
    /// Why it is not whole.
    pub(crate) outcome: Result<(), Undelivered>,
}

/// Why a response did not arrive whole.
#[derive(Debug)]
pub(crate) enum Undelivered {
    /// Nobody wants it any more.
    Gone,
    /// The remote was told this.
    Failed(Failure),
}

impl From<Gone> for Undelivered {
    fn from(_: Gone) -> Self {
        Undelivered::Gone
    }
}

impl Delivery<'_> {
    /// Sends head and body, and ends `sender` as the body ended.
    pub(crate) async fn run(self, mut sender: Sender) -> Delivered {
        let Some(body) = self.body else {
            if self.resume.is_some_and(|resume| resume.offset > 0) {
                let failure = failure::mismatch(&Mismatch);
                sender.fail(failure.clone());
                let outcome = Err(Undelivered::Failed(failure));
                return Delivered { origin_bytes: 0, crossed_bytes: 0, outcome };
            }
            let mut head = self.head;
            if let Treatment::Recode(_) = self.treatment {
                describe_decoded(&mut head, None);
            }
            sender.answer(&head, Coding::Identity, None);
            sender.finish(None);
            return Delivered { origin_bytes: 0, crossed_bytes: 0, outcome: Ok(()) };
        };
        let source = match &self.treatment {
            Treatment::Recode(codings) => Source::new(body, codings),
            Treatment::Pass | Treatment::Squeeze | Treatment::Image(_) => Source::new(body, &[]),
        };
        let rate = self.ground.plan().sending_rate(PathEnd::Ground);
        let mut flow = Flow {
            small: small(rate),
            level: self.ground.means().level.max(1),
            ground: self.ground,
            request: self.request,
            source,
            queue: self.ground.spool.queue(),
            head: self.head,
            treatment: self.treatment,
            resume: self.resume,
            prefix: self.resume.map(Prefix::new),
            page: self.page,
            share: self.share,
            encoder: None,
            gathered: BytesMut::new(),
            crossed: 0,
        };
        let outcome = flow.run(&mut sender).await;
        let (origin_bytes, crossed_bytes) = (flow.source.received(), flow.crossed);
        let outcome = match outcome {
            Ok(trailers) => {
                sender.finish(trailers.as_ref());
                Ok(())
            }
            Err(Undelivered::Failed(failure)) => {
                sender.fail(failure.clone());
                Err(Undelivered::Failed(failure))
            }
            Err(Undelivered::Gone) => Err(Undelivered::Gone),
        };
        Delivered { origin_bytes, crossed_bytes, outcome }
    }
}

/// Bytes of a text that crosses in one go over a link of this rate.
fn small(rate: Option<BitRate>) -> u64 {
    rate.map_or(SMALL.1, |rate| rate.bytes_in(SMALL_TIME).0.clamp(SMALL.0, SMALL.1))
}

/// How a body ended: with its trailers, or not whole.
type End = Result<Option<HeaderMap>, Failure>;

/// A body under way.
struct Flow<'a> {
    /// Bytes of a text that crosses in one go.
    small: u64,
    level: i32,
    ground: &'a Shared,
    request: &'a HeaderMap,
    source: Source,
    queue: Queue,
    head: ResponseHead,
    treatment: Treatment,
    resume: Option<Resume>,
    prefix: Option<Prefix>,
    page: Option<Page>,
    share: Option<Share>,
    encoder: Option<(Encoder, SemaphorePermit<'a>)>,
    /// Bytes for the encoder: together they become smaller. They wait only while more follow without a pause.
    gathered: BytesMut,
    crossed: u64,
}

impl Flow<'_> {
    async fn run(&mut self, sender: &mut Sender) -> Result<Option<HeaderMap>, Undelivered> {
        if let Some(page) = &mut self.page {
            page.read_links(&self.head, sender);
        }
        let end = match self.treatment {
            Treatment::Image(recipe) => self.remake(sender, recipe).await?,
            _ if self.is_small() => self.gather(sender).await?,
            _ => self.begin(sender).await,
        };
        self.stream(sender, end).await
    }

    /// A text whose length is known and small.
    fn is_small(&self) -> bool {
        self.treatment != Treatment::Pass
            && self.prefix.is_none()
            && content_length(&self.head.fields).is_some_and(|length| length <= self.small)
    }

    /// Waits a moment for the whole of a text. Nothing is answered before, so an origin that fails gets an error page.
    async fn gather(&mut self, sender: &mut Sender) -> Result<Option<End>, Undelivered> {
        match self.collect(sender, SMALL_DECODED, Instant::now() + GATHER).await? {
            (whole, Some(Ok(trailers))) => Ok(Some(self.answer_whole(sender, whole, trailers))),
            (beginning, Some(Err(failure))) => self.deliver_cut(sender, beginning, failure).await.map(Some),
            (beginning, None) => Ok(self.begin_with(sender, beginning).await),
        }
    }

    /// Waits for the whole of an image and codes it anew; where that cannot be, it passes as it comes.
    async fn remake(&mut self, sender: &mut Sender, recipe: Recipe) -> Result<Option<End>, Undelivered> {
        self.treatment = Treatment::Pass;
        let rate = self.ground.plan().sending_rate(PathEnd::Ground);
        let begun = self.resume.is_some_and(|resume| resume.offset > 0);
        let room = tokio::select! {
            biased;
            room = self.ground.squeezing.room(content_length(&self.head.fields), rate, begun) => room,
            gone = sender.gone() => return Err(gone.into()),
        };
        let Some((_held, turn)) = room else { return Ok(self.begin(sender).await) };
        // What was begun must come out the same again, however long it takes.
        let deadline = turn.collected_by + if begun { RESUMED } else { Duration::ZERO };
        let (image, ended) = self.collect(sender, LARGEST_IMAGE as usize, deadline).await?;
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

    /// Body bytes until the end, `most` or the deadline; with the end if that was it.
    async fn collect(
        &mut self,
        sender: &Sender,
        most: usize,
        deadline: Instant,
    ) -> Result<(Bytes, Option<End>), Gone> {
        let mut collected = BytesMut::new();
        loop {
            let part = tokio::select! {
                biased;
                part = self.source.next() => part,
                () = tokio::time::sleep_until(deadline) => return Ok((collected.freeze(), None)),
                gone = sender.gone() => return Err(gone),
            };
            match part {
                Ok(Part::Bytes(bytes)) => collected.extend_from_slice(&bytes),
                Ok(Part::End(trailers)) => return Ok((collected.freeze(), Some(Ok(trailers)))),
                Err(failure) => return Ok((collected.freeze(), Some(Err(failure)))),
            }
            if collected.len() > most {
                return Ok((collected.freeze(), None));
            }
        }
    }

    /// Begins a body that will be streamed, with what is here of it.
    async fn begin_with(&mut self, sender: &Sender, beginning: Bytes) -> Option<End> {
        match self.begin(sender).await {
            Some(end) => Some(end),
            None => self.take_all(sender, beginning).err().map(Err),
        }
    }

    /// Delivers a body that is at hand as it is.
    async fn deliver_whole(&mut self, sender: &Sender, whole: Bytes, trailers: Option<HeaderMap>) -> End {
        if let Some(end) = self.begin_with(sender, whole).await {
            return end;
        }
        self.close(sender).map(|()| trailers)
    }

    /// Delivers what came of a body before it failed, which browsers use. Without any, an error page can be answered.
    async fn deliver_cut(
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
        Ok(self.flush().and(Err(failure)))
    }

    fn take_all(&mut self, sender: &Sender, mut bytes: Bytes) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.take(sender, piece)?;
        }
        Ok(())
    }

    /// Answers with a body that is whole at hand.
    fn answer_whole(&mut self, sender: &Sender, whole: Bytes, trailers: Option<HeaderMap>) -> End {
        self.scan(sender, whole.clone());
        self.scan_end(sender);
        if let Treatment::Recode(_) = self.treatment {
            describe_decoded(&mut self.head, Some(whole.len() as u64));
        }
        let level = self.level;
        let squeezed = self.ground.squeezing.counted(|| farhop_squeeze::compress(&whole, level).ok());
        let (coding, bytes) = match squeezed.filter(|squeezed| squeezed.len() < whole.len()) {
            Some(squeezed) => (Coding::Zstd, squeezed),
            None => (Coding::Identity, whole),
        };
        sender.answer(&self.head, coding, None);
        self.enqueue(bytes)?;
        Ok(trailers)
    }

    /// Answers with a body that will be streamed; not before the part that was delivered is known to be equal.
    async fn begin(&mut self, sender: &Sender) -> Option<End> {
        if let Treatment::Recode(_) = self.treatment {
            describe_decoded(&mut self.head, None);
        }
        if self.treatment != Treatment::Pass {
            // Encoders hold megabytes, so their number is bounded. Without one, text crosses as it is delivered.
            let permit = timeout(PATIENCE, self.ground.encoders.acquire()).await.ok().and_then(Result::ok);
            self.encoder = permit.and_then(|permit| Some((Encoder::new(self.level, None).ok()?, permit)));
        }
        let Some(prefix) = &self.prefix else {
            self.answer(sender, None);
            return None;
        };
        // What has no length is equal at once.
        (prefix.offset() == 0).then(|| self.take(sender, Bytes::new()).err().map(Err)).flatten()
    }

    fn answer(&mut self, sender: &Sender, resumed: Option<u64>) {
        let coding = if self.encoder.is_some() { Coding::Zstd } else { Coding::Identity };
        sender.answer(&self.head, coding, resumed);
    }

    /// Reads and writes, each as far as the other allows, until the end is written.
    async fn stream(
        &mut self,
        sender: &mut Sender,
        mut end: Option<End>,
    ) -> Result<Option<HeaderMap>, Undelivered> {
        loop {
            if self.queue.is_empty()
                && let Some(end) = end
            {
                return end.map_err(Undelivered::Failed);
            }
            let reads = end.is_none() && self.queue.has_room();
            let part = tokio::select! {
                biased;
                room = room(sender, self.queue.is_empty()) => {
                    room?;
                    None
                }
                part = next(&mut self.source, !self.gathered.is_empty()), if reads => Some(part),
            };
            let ended = match part {
                None => {
                    if let Some(bytes) = self.queue.pop() {
                        // It is queued by the first poll; room is waited for before the next.
                        sender.write(bytes).now_or_never().transpose()?;
                    }
                    continue;
                }
                Some(None) => self.flush().err().map(Err),
                Some(Some(Ok(Part::Bytes(bytes)))) => self.take(sender, bytes).err().map(Err),
                Some(Some(Ok(Part::End(trailers)))) => Some(self.close(sender).map(|()| trailers)),
                Some(Some(Err(failure))) => {
                    // What was received is still of use.
                    let _ = self.flush();
                    Some(Err(failure))
                }
            };
            end = end.or(ended);
        }
    }

    /// The next piece of the body as it is delivered.
    fn take(&mut self, sender: &Sender, bytes: Bytes) -> Result<(), Failure> {
        let fresh = match &mut self.prefix {
            None => bytes.clone(),
            Some(prefix) => match prefix.take(bytes.clone()).map_err(|error| failure::mismatch(&error))? {
                // What was delivered was promised for, then; the remote asks for what was lost of it.
                Step::More => {
                    if let Some(page) = &mut self.page {
                        page.skim(bytes);
                    }
                    return Ok(());
                }
                Step::Equal(fresh) => {
                    let offset = prefix.offset();
                    self.prefix = None;
                    self.answer(sender, Some(offset));
                    fresh
                }
            },
        };
        self.scan(sender, bytes);
        if self.encoder.is_none() {
            return self.enqueue(fresh);
        }
        self.gathered.extend_from_slice(&fresh);
        if (self.gathered.len() as u64) < self.small / BATCHES_IN_SMALL { Ok(()) } else { self.flush() }
    }

    /// Codes what is gathered.
    fn flush(&mut self) -> Result<(), Failure> {
        let gathered = std::mem::take(&mut self.gathered);
        let Some((encoder, _)) = &mut self.encoder else { return Ok(()) };
        let coded = self
            .ground
            .squeezing
            .counted(|| encoder.chunk(&gathered))
            .map_err(|error| failure::internal(&error))?;
        self.enqueue(coded)
    }

    fn close(&mut self, sender: &Sender) -> Result<(), Failure> {
        if self.prefix.is_some() {
            return Err(failure::mismatch(&Mismatch));
        }
        self.scan_end(sender);
        let Some((encoder, _permit)) = self.encoder.take() else { return Ok(()) };
        let gathered = std::mem::take(&mut self.gathered);
        let coded = self
            .ground
            .squeezing
            .counted(|| encoder.finish(&gathered))
            .map_err(|error| failure::internal(&error))?;
        self.enqueue(coded)
    }

    fn enqueue(&mut self, bytes: Bytes) -> Result<(), Failure> {
        if let Some(share) = &mut self.share {
            share.spend(bytes.len()).map_err(|error| failure::withdrawn(&error))?;
        }
        self.crossed += bytes.len() as u64;
        self.queue.push(bytes);
        Ok(())
    }

    fn scan(&mut self, sender: &Sender, bytes: Bytes) {
        if let Some(page) = &mut self.page {
            page.read(bytes, sender);
        }
    }

    fn scan_end(&mut self, sender: &Sender) {
        if let Some(page) = &mut self.page {
            page.finish(sender);
        }
    }
}

/// Completes when more may be written, or fails when nobody takes it; with nothing to write, only the latter.
async fn room(sender: &Sender, idle: bool) -> Result<(), Gone> {
    if idle { Err(sender.gone().await) } else { sender.room().await }
}

/// The next part; `None` at once when none is here and the encoder should be flushed meanwhile.
async fn next(source: &mut Source, unflushed: bool) -> Option<Result<Part, Failure>> {
    if unflushed { source.next().now_or_never() } else { Some(source.next().await) }
}
