//! A response on its way: from the arrivals of a stream to a head and a body that can be read while it comes.
//! The same for what was asked and for what was promised.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Coding, Failure, Validating};
use farhop_store::{Body, Broken, Budget, Intake};
use farhop_transport::hop::{Arrival, Receiver};
use http::HeaderMap;
use tokio::time::timeout;

use crate::Remote;
use crate::bodies::Decoding;
use crate::finishing::Share;
use crate::kept::Kept;
use crate::promising::{Offer, Page};

/// How long each of the last pieces may take of what nobody waits for any more.
const LAST: Duration = Duration::from_secs(10);

/// What comes before the body.
#[derive(Debug)]
pub(crate) enum Early {
    /// A 1xx head.
    Informed(ResponseHead),
    /// A response to this request will come unasked.
    Promised(Offer),
    /// The origin is asked about what is held under this number.
    Validating(Validating),
    /// The response's head; the body follows.
    Head { head: ResponseHead, coding: Coding, resumed: Option<u64> },
    /// There will be none.
    Failed(Failure),
    /// The carrier was lost, or the peer gave it up.
    Lost,
}

/// The next thing before the body. Promises may also come within it: see [`carry`].
pub(crate) async fn early(receiver: &mut Receiver) -> Early {
    match receiver.next().await {
        Arrival::Informed(head) => Early::Informed(head),
        Arrival::Promised { promise, priority, head } => Early::Promised(Offer { promise, priority, head }),
        Arrival::Validating(validating) => Early::Validating(validating),
        Arrival::Answered { head, coding, resumed } => Early::Head { head, coding, resumed },
        Arrival::Failed(failure) => Early::Failed(failure),
        // An exchange has a head first; anything else here is a peer that gave up.
        _ => Early::Lost,
    }
}

/// A body to be filled: how much of it may be held.
pub(crate) fn body(budget: &Arc<Budget>, limit: u64) -> (Intake, Body) {
    Body::new(budget, limit)
}

/// Carries the body into `intake` until it is whole, broken, or wanted by nobody, and to where it is kept; `page` is told of
/// promises that come between the bytes, always before the bytes after them are readable. Gives the number under which it is
/// held, if it is.
pub(crate) async fn carry(
    mut receiver: Receiver,
    decoding: Decoding,
    intake: Intake,
    kept: Kept,
    page: &Page,
) -> Result<Option<u64>, Broken> {
    let (mut decoder, _counted) = match decoding {
        Decoding::Identity => (None, None),
        Decoding::Coded(decoder, counted) => (Some(decoder), counted),
    };
    let (mut trailers, mut crossed) = (None, 0);
    let mut filling = Filling { intake: Some(intake), kept, share: None };
    loop {
        let Some(arrival) = filling.next(&mut receiver, &page.remote).await else {
            return Err(Broken::GivenUp);
        };
        if let Arrival::Body(bytes) = &arrival {
            filling.crossed(bytes.len() as u64);
            crossed += bytes.len() as u64;
        }
        match arrival {
            Arrival::Body(bytes) => match &mut decoder {
                None => filling.pass(bytes, page).await,
                Some(decoder) => {
                    decoder.feed(bytes);
                    loop {
                        match decoder.pull() {
                            Ok(Some(piece)) => filling.pass(piece, page).await,
                            Ok(None) => break,
                            Err(error) => return filling.broken(Broken::Failed(error.to_string())),
                        }
                    }
                }
            },
            Arrival::Promised { promise, priority, head } => {
                page.promised(Offer { promise, priority, head }).await;
            }
            Arrival::Validating(validating) => page.validating(validating).await,
            Arrival::Trailers(fields) => trailers = Some(fields),
            Arrival::Ended if decoder.as_ref().is_none_or(|decoder| decoder.is_complete()) => {
                return Ok(filling.finish(trailers, crossed).await);
            }
            Arrival::Ended => {
                return filling.broken(Broken::Failed("the body's coding was cut short".into()));
            }
            Arrival::Failed(failure) => return filling.broken(Broken::Failed(failure.to_string())),
            Arrival::Reset(_) => return filling.broken(Broken::Failed("the body cannot be finished".into())),
            Arrival::Lost => return filling.lost(crossed),
            Arrival::Informed(_) | Arrival::Answered { .. } | Arrival::TunnelOpened | Arrival::Urgent => {}
        }
    }
}

/// Where the bytes of a body go: to whoever asked for it, until they leave or others do not wait for them, and to where it is
/// kept, as long as anyone wants it.
struct Filling {
    intake: Option<Intake>,
    kept: Kept,
    /// It is finished though nobody waits for it.
    share: Option<Share>,
}

impl Filling {
    /// What comes next; nothing once nobody wants it.
    async fn next(&mut self, receiver: &mut Receiver, remote: &Remote) -> Option<Arrival> {
        if let Some(intake) = &self.intake {
            tokio::select! {
                arrival = receiver.next() => return Some(arrival),
                () = intake.unwanted() => {}
            }
            self.intake = None;
        }
        // What lacks no more than what is on its way anyway becomes whole, whoever waits for it: of all bodies together, that is.
        if self.share.is_none() {
            self.share = self.kept.lacks().and_then(|lacks| remote.finishing().share(lacks, remote.soon()));
        }
        if self.share.is_some() {
            return timeout(LAST, receiver.next()).await.ok();
        }
        // It comes as fast as the first of those takes it who follow it on disk.
        tokio::select! {
            biased;
            () = self.kept.left() => return None,
            () = self.kept.awaited() => {}
        }
        tokio::select! {
            arrival = receiver.next() => Some(arrival),
            () = self.kept.left() => None,
        }
    }

    fn crossed(&self, bytes: u64) {
        match &self.intake {
            Some(intake) => intake.crossed(bytes),
            None => self.kept.crossed_alone(bytes),
        }
    }

    /// More of it. Waits for who asked for it if they lag, unless somebody who follows it on disk is waiting.
    async fn pass(&mut self, bytes: Bytes, page: &Page) {
        let Filling { intake: filled, kept, .. } = self;
        let Some(intake) = filled else { return kept.take_alone(&bytes) };
        kept.take(bytes, intake, &page.remote, page.user.id).await;
        tokio::select! {
            biased;
            () = intake.ready() => return,
            () = kept.awaited() => {}
        }
        if let Some(id) = kept.offered()
            && let Some(intake) = filled.take()
        {
            intake.fail(Broken::Outrun(id));
        }
    }

    async fn finish(mut self, trailers: Option<HeaderMap>, crossed: u64) -> Option<u64> {
        self.kept.ended(trailers.as_ref(), crossed);
        if let Some(intake) = self.intake {
            intake.finish(trailers);
        }
        self.kept.finish().await
    }

    /// The carrier was lost: who asked for it may ask for the rest.
    fn lost(self, crossed: u64) -> Result<Option<u64>, Broken> {
        if let Some(intake) = self.intake {
            self.kept.cut_short(&intake, crossed);
            intake.fail(Broken::Lost);
        }
        Err(Broken::Lost)
    }

    fn broken(self, why: Broken) -> Result<Option<u64>, Broken> {
        if let Some(intake) = self.intake {
            intake.fail(why.clone());
        }
        Err(why)
    }
}
