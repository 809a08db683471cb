//! Request bodies: given piece by piece, sent as the origin takes them, and watched for progress.

use crate::error::Error;
use crate::replay::{Allowance, Piece, Pieces, Replay};
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Pieces that may wait between the giver and the socket.
const PIECES_AHEAD: usize = 4;

/// The giving end of a request body. Dropped before [`UploadSender::finish`], it makes the exchange fail: an origin
/// never takes half a body for a whole one.
#[derive(Debug)]
pub struct UploadSender {
    pieces: mpsc::Sender<Piece>,
    /// Bytes still owed where the length is known.
    rest: Option<u64>,
}

impl UploadSender {
    /// Gives some bytes, when there is room for them.
    ///
    /// # Errors
    /// The exchange is over and takes no more.
    pub async fn send(&mut self, data: Bytes) -> Result<(), UploadClosed> {
        let given = data.len() as u64;
        self.pieces.send(Piece::Data(data)).await.map_err(|_| UploadClosed)?;
        self.rest = self.rest.map(|rest| rest.saturating_sub(given));
        Ok(())
    }

    /// Ends the body. Trailers reach the origin if the body is chunked and the request's Trailer field announced them.
    ///
    /// # Errors
    /// The exchange is over and takes no more.
    pub async fn finish(self, trailers: Option<HeaderMap>) -> Result<(), UploadClosed> {
        if self.rest == Some(0) {
            // The last byte was the end; nobody waits for another.
            return Ok(());
        }
        self.pieces.send(Piece::End(trailers)).await.map_err(|_| UploadClosed)
    }
}

/// The exchange that a body was for is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the origin takes no more of the request body")]
pub struct UploadClosed;

/// The body of a request.
#[derive(Debug)]
pub struct Upload {
    source: Source,
    length: Option<u64>,
}

#[derive(Debug)]
enum Source {
    Empty,
    Whole(Bytes),
    Pieces(Pieces),
}

/// What makes a body once more.
#[derive(Debug)]
pub(crate) enum Spare {
    Empty,
    Whole(Bytes),
    Pieces(Replay),
}

impl Spare {
    /// The same body from its beginning; `None` if what was taken of it is not kept any more.
    pub(crate) fn again(&self, length: Option<u64>) -> Option<Upload> {
        let source = match self {
            Spare::Empty => Source::Empty,
            Spare::Whole(data) => Source::Whole(data.clone()),
            Spare::Pieces(replay) => Source::Pieces(replay.again()?),
        };
        Some(Upload { source, length })
    }

    /// Whether [`again`](Self::again) can be counted on.
    pub(crate) fn is_kept(&self, length: Option<u64>) -> bool {
        match self {
            Spare::Empty | Spare::Whole(_) => true,
            Spare::Pieces(replay) => replay.is_kept(length),
        }
    }
}

impl Upload {
    /// No body.
    pub fn empty() -> Upload {
        Upload { source: Source::Empty, length: Some(0) }
    }

    /// A body at hand.
    pub fn whole(data: Bytes) -> Upload {
        Upload { length: Some(data.len() as u64), source: Source::Whole(data) }
    }

    /// A body that comes piece by piece; `length` is its size in bytes where that is known, else it is chunked.
    pub fn streamed(length: Option<u64>) -> (UploadSender, Upload) {
        let (pieces, receiver) = mpsc::channel(PIECES_AHEAD);
        (
            UploadSender { pieces, rest: length },
            Upload { source: Source::Pieces(Pieces::new(receiver)), length },
        )
    }

    /// Whether there is no body at all.
    pub fn is_empty(&self) -> bool {
        matches!(self.source, Source::Empty)
    }

    /// What makes it once more. Pieces come from someone who gives them once: they are kept as they are taken.
    pub(crate) fn spare(&self, allowance: &Allowance) -> Spare {
        match &self.source {
            Source::Empty => Spare::Empty,
            Source::Whole(data) => Spare::Whole(data.clone()),
            Source::Pieces(pieces) => Spare::Pieces(pieces.keep(allowance)),
        }
    }

    /// The size in bytes, where known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    pub(crate) fn into_body(self, progress: Arc<Progress>) -> UploadBody {
        let body =
            UploadBody { rest: self.length, source: self.source, progress, ended: self.length == Some(0) };
        let state = if body.ended { UploadState::Done } else { UploadState::WaitsForOrigin };
        body.progress.upload_is(state);
        body
    }
}

/// How an exchange moves: when it last did, and what the request body has to do with it.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Mutex<Movement>,
    /// Why the request body ended early, if it did.
    failure: Mutex<Option<Error>>,
}

#[derive(Debug, Clone, Copy)]
struct Movement {
    last: Instant,
    upload: UploadState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UploadState {
    /// The origin could take the next piece, but there is none yet.
    WaitsForGiver,
    /// Pieces are at hand for the origin to take.
    WaitsForOrigin,
    /// All is handed over.
    Done,
}

impl Progress {
    pub(crate) fn new() -> Arc<Progress> {
        let state = Movement { last: Instant::now(), upload: UploadState::WaitsForOrigin };
        Arc::new(Progress { state: Mutex::new(state), failure: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, Movement> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upload_is(&self, upload: UploadState) {
        *self.state() = Movement { last: Instant::now(), upload };
    }

    /// Notes that the origin did something, or that it is its turn from now on.
    pub(crate) fn touch(&self) {
        self.state().last = Instant::now();
    }

    /// Whether a part of the request body is still to be sent.
    pub(crate) fn is_uploading(&self) -> bool {
        self.state().upload != UploadState::Done
    }

    /// What became of the request body, if it ended early: then whatever the connection says is only a consequence.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fails(&self, cause: &io::Error) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(upload_error(cause));
    }

    /// Resolves when the origin has done nothing for `patience` although it was its turn.
    pub(crate) async fn stalled(&self, patience: Duration) {
        loop {
            let Movement { last, upload } = *self.state();
            let now = Instant::now();
            match last + patience {
                due if due > now => sleep_until(due).await,
                _ if upload == UploadState::WaitsForGiver => sleep_until(now + patience).await,
                _ => return,
            }
        }
    }
}

/// The body as hyper takes it.
#[derive(Debug)]
pub(crate) struct UploadBody {
    source: Source,
    /// Bytes still owed where the length is known.
    rest: Option<u64>,
    progress: Arc<Progress>,
    ended: bool,
}

impl UploadBody {
    /// The next piece from wherever it comes; `None` at the proper end.
    fn poll_source(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, io::Error>> {
        Poll::Ready(match &mut self.source {
            Source::Empty => Ok(None),
            Source::Whole(data) => Ok(Some(Frame::data(std::mem::take(data)))),
            Source::Pieces(pieces) => match pieces.poll_next(cx) {
                Poll::Pending => {
                    self.progress.upload_is(UploadState::WaitsForGiver);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Piece::Data(data))) => Ok(Some(Frame::data(data))),
                Poll::Ready(Some(Piece::End(trailers))) => Ok(trailers.map(Frame::trailers)),
                Poll::Ready(None) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its giver left")),
            },
        })
    }

    /// Holds a piece, or the end, to the announced length.
    fn account(&mut self, piece: Option<Frame<Bytes>>) -> Result<Option<Frame<Bytes>>, io::Error> {
        let Some(rest) = &mut self.rest else {
            self.ended = piece.as_ref().is_none_or(Frame::is_trailers);
            return Ok(piece);
        };
        let Some(data) = piece.and_then(|piece| piece.into_data().ok()) else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "fewer bytes than announced"));
        };
        let more = || io::Error::new(io::ErrorKind::InvalidData, "more bytes than announced");
        *rest = rest.checked_sub(data.len() as u64).ok_or_else(more)?;
        self.ended = *rest == 0;
        Ok(Some(Frame::data(data)))
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let result = ready!(self.poll_source(cx)).and_then(|piece| self.account(piece));
        if let Err(cause) = &result {
            self.ended = true;
            self.progress.fails(cause);
        }
        let state = if self.ended { UploadState::Done } else { UploadState::WaitsForOrigin };
        self.progress.upload_is(state);
        Poll::Ready(result.transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// What a failed upload makes of an exchange.
pub(crate) fn upload_error(cause: &(dyn std::error::Error + 'static)) -> Error {
    Error::UploadFailed(cause.to_string())
}
