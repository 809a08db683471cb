//! Bodies that cross once all of them is here: a small text, which so becomes smaller and gets its length told, and an
//! image, which is coded anew. What does not come in time, or breaks off, goes on as a stream (`stream`).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farhop_htotp::frame::{Coding, Failure};
use farhop_squeeze::{LARGEST_IMAGE, PIECE, Recipe};
use farhop_transport::hop::{Gone, Sender};
use farhop_units::BitRate;
use http::HeaderMap;
use tokio::time::Instant;

use super::{End, Flow, Undelivered};
use crate::body::Part;
use crate::treatment::{Treatment, content_length, describe_decoded};
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
/// How much longer an image is waited for whose beginning was delivered before.
const RESUMED: Duration = Duration::from_secs(60);

/// Bytes of a text that crosses in one go over a link of this rate.
pub(super) fn small(rate: Option<BitRate>) -> u64 {
    rate.map_or(SMALL.1, |rate| rate.bytes_in(SMALL_TIME).0.clamp(SMALL.0, SMALL.1))
}

impl Flow<'_> {
    /// A text whose length is known and small.
    pub(super) fn is_small(&self) -> bool {
        self.treatment != Treatment::Pass
            && self.prefix.is_none()
            && content_length(&self.head.fields).is_some_and(|length| length <= self.small)
    }

    /// Waits a moment for the whole of a text. Nothing is answered before, so an origin that fails gets an error page.
    pub(super) async fn gather(&mut self, sender: &mut Sender) -> Result<Option<End>, Undelivered> {
        match self.collect(sender, SMALL_DECODED, Instant::now() + GATHER).await? {
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
        let room = tokio::select! {
            biased;
            room = self.ground.squeezing.room(content_length(&self.head.fields), self.rate, begun) => room,
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
            None => self.take_all(sender, beginning).await.err().map(Err),
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
        Ok(self.flush().await.and(Err(failure)))
    }

    async fn take_all(&mut self, sender: &Sender, mut bytes: Bytes) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            self.take(sender, piece).await?;
        }
        Ok(())
    }

    /// Answers with a body that is whole at hand.
    async fn answer_whole(&mut self, sender: &Sender, whole: Bytes, trailers: Option<HeaderMap>) -> End {
        self.scan(sender, whole.clone()).await;
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
}
