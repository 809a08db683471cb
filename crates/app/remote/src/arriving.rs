//! A response on its way: from the arrivals of a stream to a head and a body that can be read while it comes.
//! The same for what was asked and for what was promised.

use bytes::Bytes;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::{Coding, Failure, Validating};
use farhop_store::{Body, Broken, Budget, Intake, Keeping};
use farhop_transport::hop::{Arrival, Receiver};
use std::sync::Arc;

use crate::bodies::Decoding;
use crate::promising::{Offer, Page};

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

/// Carries the body into `intake` until it is whole, broken, or wanted by nobody, and into `keeping`, if it is kept while it
/// passes; `page` is told of promises that come between the bytes, always before the bytes after them are readable.
pub(crate) async fn carry(
    mut receiver: Receiver,
    decoding: Decoding,
    mut intake: Intake,
    mut keeping: Option<&mut Keeping>,
    page: &Page,
) -> Result<(), Broken> {
    let (mut decoder, _counted) = match decoding {
        Decoding::Identity => (None, None),
        Decoding::Coded(decoder, counted) => (Some(decoder), counted),
    };
    let (mut trailers, mut crossed) = (None, 0);
    loop {
        let arrival = tokio::select! {
            arrival = receiver.next() => arrival,
            () = intake.unwanted() => return Err(Broken::GivenUp),
        };
        if let Arrival::Body(bytes) = &arrival {
            intake.crossed(bytes.len() as u64);
            crossed += bytes.len() as u64;
        }
        match arrival {
            Arrival::Body(bytes) => match &mut decoder {
                None => pass(bytes, &mut intake, &mut keeping).await,
                Some(decoder) => {
                    decoder.feed(bytes);
                    loop {
                        match decoder.pull() {
                            Ok(Some(piece)) => pass(piece, &mut intake, &mut keeping).await,
                            Ok(None) => break,
                            Err(error) => return broken(intake, Broken::Failed(error.to_string())),
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
                if let Some(keeping) = keeping {
                    keeping.ended(trailers.clone(), crossed);
                }
                intake.finish(trailers);
                return Ok(());
            }
            Arrival::Ended => {
                return broken(intake, Broken::Failed("the body's coding was cut short".into()));
            }
            Arrival::Failed(failure) => return broken(intake, Broken::Failed(failure.to_string())),
            Arrival::Reset(_) => return broken(intake, Broken::Failed("the body cannot be finished".into())),
            Arrival::Lost => return broken(intake, Broken::Lost),
            Arrival::Informed(_) | Arrival::Answered { .. } | Arrival::TunnelOpened | Arrival::Urgent => {}
        }
    }
}

async fn pass(bytes: Bytes, intake: &mut Intake, keeping: &mut Option<&mut Keeping>) {
    if let Some(keeping) = keeping {
        keeping.write(&bytes);
    }
    intake.write(bytes).await;
}

fn broken(intake: Intake, why: Broken) -> Result<(), Broken> {
    intake.fail(why.clone());
    Err(why)
}
