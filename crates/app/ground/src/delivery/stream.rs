//! A body as it streams: read as far as the hop allows, compared with what was delivered before, scanned, coded and
//! queued, piece by piece. Whoever else is served gets a turn after each piece.

use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Coding, Failure};
use farhop_squeeze::Encoder;
use farhop_transport::hop::{Gone, Sender};
use futures_util::FutureExt;
use http::HeaderMap;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::coder::Coder;
use super::untouched::Untouched;
use super::{End, Flow, Undelivered};
use crate::body::{Part, Source};
use crate::failure;
use crate::ground::Shared;
use crate::kin::Kin;
use crate::prefix::{Mismatch, Step};
use crate::streaming::Paced;
use crate::treatment::{Treatment, describe_decoded};

/// How long an encoder is waited for when all are taken.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);
/// Text is coded in pieces of at least half of that while they follow each other without a pause.
const BATCHES_IN_SMALL: u64 = 2;
/// How often a body that is held back looks whether the link is cut.
const LOOK: Duration = Duration::from_secs(2);

impl Flow<'_> {
    /// Answers with a body that will be streamed; not before the part that was delivered is known to be equal.
    pub(super) async fn begin(&mut self, sender: &Sender) -> Option<End> {
        if let Treatment::Recode(_) = self.treatment {
            describe_decoded(&mut self.head, None);
        }
        let stays = self.is_as_good_untouched() && self.stays_untouched();
        if self.treatment != Treatment::Pass && !stays {
            // Encoders hold megabytes, so their number is bounded. Without one, text crosses as it is delivered, or as it came.
            let permit = timeout(PATIENCE, self.ground.encoders.acquire()).await.ok().and_then(Result::ok);
            self.encoder =
                permit.and_then(|permit| Some((Coder::Alone(Encoder::new(self.level, None).ok()?), permit)));
            if self.encoder.is_some() || !self.stays_untouched() {
                self.touch();
            }
        }
        let Some(prefix) = &self.prefix else {
            self.answer(sender, None);
            return None;
        };
        // What has no length is equal at once.
        if prefix.offset() > 0 {
            return None;
        }
        self.take(sender, Bytes::new()).await.err().map(Err)
    }

    fn answer(&mut self, sender: &Sender, resumed: Option<u64>) {
        let alone = self.encoder.as_ref().map_or(Coding::Identity, |(coder, _)| coder.coding());
        let coding = self.untouched.as_ref().map_or(alone, Untouched::coding);
        sender.answer(&self.head, coding, resumed);
    }

    /// Reads and writes, each as far as the other allows, until the end is written.
    pub(super) async fn stream(
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
            let reads =
                end.is_none() && (self.queue.has_room() || (sender.is_silent() && self.queue.has_shelter()));
            let part = tokio::select! {
                biased;
                room = room(sender, self.ground, self.paced.as_ref(), self.queue.is_empty()) => {
                    room?;
                    None
                }
                part = next(&mut self.source, !self.gathered.is_empty()), if reads => Some(part),
                () = sleep(LOOK), if !reads && end.is_none() => None,
            };
            let ended = match part {
                None => {
                    if let Some(bytes) = self.queue.pop() {
                        self.ground.policies.sent(&self.to, bytes.len(), self.rate);
                        if let Some(paced) = &self.paced {
                            self.ground.streaming.sent(paced, bytes.len());
                        }
                        // It is queued by the first poll; room is waited for before the next.
                        sender.write(bytes).now_or_never().transpose()?;
                    }
                    continue;
                }
                Some(None) => self.flush().await.err().map(Err),
                Some(Some(Ok(Part::Bytes(bytes)))) => {
                    let taken = self.take(sender, bytes).await.and_then(|()| self.pass_untouched());
                    if self.is_untouched() {
                        yield_now().await;
                    }
                    taken.err().map(Err)
                }
                Some(Some(Ok(Part::End(trailers)))) => Some(self.close(sender).map(|()| trailers)),
                Some(Some(Err(failure))) => {
                    // What was received is still of use.
                    let _ = self.flush().await;
                    let _ = self.pass_untouched();
                    Some(Err(failure))
                }
            };
            end = end.or(ended);
        }
    }

    /// The next piece of the body as it is delivered. Where it crosses as its origin coded it, [`Flow::pass_untouched`] is to
    /// follow.
    pub(super) async fn take(&mut self, sender: &Sender, bytes: Bytes) -> Result<(), Failure> {
        if let Some(kin) = &mut self.kin {
            kin.take(&bytes);
        }
        self.read_film(&bytes);
        let fresh = match &mut self.prefix {
            None => bytes.clone(),
            Some(prefix) => match prefix.take(bytes.clone()).map_err(|error| failure::mismatch(&error))? {
                // What was delivered was promised for, then; the remote asks for what was lost of it.
                Step::More => {
                    if let Some(page) = &mut self.page {
                        page.skim(bytes).await;
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
        let read = self.read_along.min(bytes.len());
        self.read_along -= read;
        self.scan(sender, bytes.slice(read..)).await;
        if self.is_untouched() {
            return Ok(());
        }
        if self.encoder.is_none() {
            return self.enqueue(fresh);
        }
        let ahead = self.coded_ahead.min(fresh.len());
        self.coded_ahead -= ahead;
        self.gathered.extend_from_slice(&fresh[ahead..]);
        if (self.gathered.len() as u64) < self.small / BATCHES_IN_SMALL { Ok(()) } else { self.flush().await }
    }

    /// Codes what is gathered.
    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        let gathered = std::mem::take(&mut self.gathered);
        let Some((encoder, permit)) = &mut self.encoder else { return Ok(()) };
        let coded = self
            .ground
            .squeezing
            .counted(|| encoder.chunk(&gathered))
            .map_err(|error| failure::internal(&error))?;
        if encoder.is_alone() {
            drop(permit.split(permit.num_permits().saturating_sub(1)));
        }
        self.enqueue(coded)?;
        yield_now().await;
        Ok(())
    }

    pub(super) fn close(&mut self, sender: &Sender) -> Result<(), Failure> {
        if self.prefix.is_some() {
            return Err(failure::mismatch(&Mismatch));
        }
        self.scan_end(sender);
        self.sent = self.kin.take().and_then(Kin::whole);
        self.pass_untouched()?;
        let Some((encoder, _permit)) = self.encoder.take() else { return Ok(()) };
        let gathered = std::mem::take(&mut self.gathered);
        let (coded, spared) = self
            .ground
            .squeezing
            .counted(|| encoder.finish(&gathered))
            .map_err(|error| failure::internal(&error))?;
        self.spared += spared as u64;
        self.enqueue(coded)
    }

    pub(super) fn enqueue(&mut self, bytes: Bytes) -> Result<(), Failure> {
        if let Some(share) = &mut self.share {
            share.spend(bytes.len()).map_err(|error| failure::withdrawn(&error))?;
        }
        self.crossed += bytes.len() as u64;
        self.returning.crossed(bytes.len());
        self.queue.push(bytes);
        Ok(())
    }

    pub(super) async fn scan(&mut self, sender: &Sender, bytes: Bytes) {
        if let Some(page) = &mut self.page
            && !bytes.is_empty()
        {
            page.read(bytes, sender).await;
        }
    }

    pub(super) fn scan_end(&mut self, sender: &Sender) {
        if let Some(page) = &mut self.page {
            page.finish(sender);
        }
    }
}

/// Completes when more may be written, or fails when nobody takes it; with nothing to write, only the latter.
async fn room(sender: &Sender, ground: &Shared, paced: Option<&Paced>, idle: bool) -> Result<(), Gone> {
    if idle {
        return Err(sender.gone().await);
    }
    if let Some(paced) = paced {
        tokio::select! {
            biased;
            () = ground.streaming.due(paced) => {}
            gone = sender.gone() => return Err(gone),
        }
    }
    sender.room().await
}

/// The next part; `None` at once when none is here and the encoder should be flushed meanwhile.
async fn next(source: &mut Source, unflushed: bool) -> Option<Result<Part, Failure>> {
    if unflushed { source.next().now_or_never() } else { Some(source.next().await) }
}
