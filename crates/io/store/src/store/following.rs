//! Bodies that are read while they are written to disk: whoever reads one gets what is there at once, and the rest as it comes.

use std::sync::Weak;

use super::Inner;
use crate::body::{Body, Broken, Intake};
use crate::disk::{Followed, Following, OpenGrowing, Reading, Torn};

impl Inner {
    /// A body that grows on disk, which is followed when somebody reads it. What was begun is read to its end, whatever becomes
    /// of the entry; where it is given up, it goes on as after the loss of a carrier.
    pub(super) fn growing(&self, body: &Followed, id: u64) -> Body {
        let (own, followed) = (Weak::clone(&self.own), body.clone());
        Body::growing(&self.budget, body.length(), move |intake| {
            // From now on it is written for this one, too.
            let following = followed.follow();
            let Some(inner) = own.upgrade() else { return };
            let Some(disk) = &inner.disk else { return };
            disk.tell(&following);
            let reading = disk.reading();
            tokio::spawn(async move {
                Follower { reading, following, file: None, given: 0, intake }.run(id).await;
            });
        })
    }
}

/// One who follows.
struct Follower {
    reading: Reading,
    following: Following,
    file: Option<OpenGrowing>,
    /// Bytes of the next chunk that were given from memory.
    given: usize,
    intake: Intake,
}

impl Follower {
    async fn run(mut self, id: u64) {
        loop {
            let reached = self.following.reached();
            let read = self.file.as_ref().map_or(0, OpenGrowing::read);
            if read < reached.chunks || reached.whole.is_some() {
                let whole = reached.whole.filter(|_| read == reached.chunks);
                let Ok(bytes) = self.chunk(whole).await else {
                    tracing::debug!(target: "farhop", "the response {id} that is followed is asked for anew");
                    return self.intake.fail(Broken::Lost);
                };
                let rest = bytes.slice(std::mem::take(&mut self.given).min(bytes.len())..);
                self.give(rest).await;
                if whole.is_some() {
                    let trailers = self.following.trailers();
                    return self.intake.finish(trailers);
                }
            } else if reached.tail.len() > self.given {
                let more = reached.tail.slice(self.given..);
                self.given = reached.tail.len();
                self.give(more).await;
            } else {
                let is_farther = tokio::select! {
                    is_farther = self.following.farther() => is_farther,
                    () = self.intake.unwanted() => return,
                };
                if !is_farther {
                    return self.intake.fail(Broken::Lost);
                }
            }
            if self.intake.gives_up_unwanted() {
                return;
            }
        }
    }

    async fn give(&mut self, bytes: bytes::Bytes) {
        self.intake.crossed(self.following.take_crossed());
        self.intake.write(bytes).await;
    }

    /// The next chunk of the file, the last of a body of this length.
    async fn chunk(&mut self, whole: Option<u64>) -> Result<bytes::Bytes, Torn> {
        let (reading, followed, file) = (self.reading.clone(), self.following.body(), self.file.take());
        let read = tokio::task::spawn_blocking(move || {
            // Opened once: what is invalidated or replaced meanwhile is read to its end.
            let mut file = file.map_or_else(|| reading.follow(&followed), Ok)?;
            file.next(whole).map(|bytes| (file, bytes))
        });
        let (file, bytes) = read.await.unwrap_or(Err(Torn))?;
        self.file = Some(file);
        Ok(bytes)
    }
}
