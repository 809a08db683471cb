//! Request bodies that come piece by piece and may have to be sent more than once: what is taken of one is kept beside, as far
//! as there is room, for as long as someone may send it again. Knows nothing of when that is allowed.

use bytes::Bytes;
use http::HeaderMap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a piece is counted for beside its bytes, so that single ones do not take many times what they are.
const PIECE: usize = 128;

#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Data(Bytes),
    /// The proper end.
    End(Option<HeaderMap>),
}

/// How much may be kept.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    each: usize,
    /// A permit for each byte of all bodies together.
    all: Arc<Semaphore>,
}

impl Allowance {
    /// Bytes of each body, and of all of them together.
    pub(crate) fn new(each: farhop_units::Bytes, all: farhop_units::Bytes) -> Allowance {
        let bytes = |most: farhop_units::Bytes| usize::try_from(most.0).unwrap_or(usize::MAX);
        Allowance { each: bytes(each), all: Arc::new(Semaphore::new(bytes(all).min(Semaphore::MAX_PERMITS))) }
    }
}

/// The pieces as one attempt to send them takes them.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// Those that an earlier attempt has taken.
    before: VecDeque<Piece>,
    attempt: usize,
    source: Arc<Mutex<Source>>,
}

/// Whoever has it may send the body again. Dropped, nothing is kept any more.
#[derive(Debug)]
pub(crate) struct Replay(Arc<Mutex<Source>>);

#[derive(Debug)]
struct Source {
    giver: Receiver<Piece>,
    /// The attempt that takes from it; those before it have failed, and may not know yet.
    attempt: usize,
    /// `None` when nothing is, or it was too much.
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    pieces: Vec<Piece>,
    each: usize,
    room: usize,
    all: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

/// The state is valid between any two of its functions, so that a panic elsewhere does not spoil it.
fn lock(source: &Mutex<Source>) -> MutexGuard<'_, Source> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pieces {
    pub(crate) fn new(giver: Receiver<Piece>) -> Pieces {
        let source = Source { giver, attempt: 0, kept: None };
        Pieces { before: VecDeque::new(), attempt: 0, source: Arc::new(Mutex::new(source)) }
    }

    /// Keeps what is taken from now on, as far as it is allowed to.
    pub(crate) fn keep(&self, allowance: &Allowance) -> Replay {
        let Allowance { each, all } = allowance.clone();
        lock(&self.source).kept = Some(Kept { pieces: Vec::new(), each, room: each, all, taken: None });
        Replay(self.source.clone())
    }

    /// The next piece; `None` when its giver has left. An attempt that another has followed waits for ever.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        if let Some(piece) = self.before.pop_front() {
            return Poll::Ready(Some(piece));
        }
        let mut source = lock(&self.source);
        if source.attempt != self.attempt {
            return Poll::Pending;
        }
        let piece = ready!(source.giver.poll_recv(cx));
        if let (Some(kept), Some(piece)) = (&mut source.kept, &piece)
            && !kept.take(piece)
        {
            source.kept = None;
        }
        Poll::Ready(piece)
    }
}

impl Replay {
    /// Whether the body is kept so far, and is no longer than may be, if its length in bytes is known.
    pub(crate) fn is_kept(&self, length: Option<u64>) -> bool {
        let source = lock(&self.0);
        source.kept.as_ref().is_some_and(|kept| length.is_none_or(|bytes| bytes <= kept.each as u64))
    }

    /// The same body from its beginning, instead of to whoever took of it before; `None` if that is not kept any more.
    pub(crate) fn again(&self) -> Option<Pieces> {
        let mut source = lock(&self.0);
        let before = source.kept.as_ref()?.pieces.iter().cloned().collect();
        source.attempt += 1;
        Some(Pieces { before, attempt: source.attempt, source: self.0.clone() })
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        lock(&self.0).kept = None;
    }
}

impl Kept {
    /// Whether there is room for this piece as well.
    fn take(&mut self, piece: &Piece) -> bool {
        let (piece, bytes) = match piece {
            // Of its own: it may be a view of something large.
            Piece::Data(data) => (Piece::Data(Bytes::copy_from_slice(data)), data.len()),
            Piece::End(trailers) => {
                let fields = trailers.iter().flatten();
                (piece.clone(), fields.map(|(name, value)| name.as_str().len() + value.len()).sum())
            }
        };
        let size = bytes + PIECE;
        let Some(room) = self.room.checked_sub(size) else { return false };
        let permits = u32::try_from(size).ok();
        let Some(Ok(taken)) = permits.map(|permits| self.all.clone().try_acquire_many_owned(permits)) else {
            return false;
        };
        match &mut self.taken {
            Some(before) => before.merge(taken),
            before => *before = Some(taken),
        }
        self.room = room;
        self.pieces.push(piece);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::sync::mpsc;

    const ALL: usize = 10_000;

    fn begun(each: u64) -> (mpsc::Sender<Piece>, Pieces, Replay, Allowance) {
        let allowance = Allowance::new(farhop_units::Bytes(each), farhop_units::Bytes(ALL as u64));
        let (giver, receiver) = mpsc::channel(8);
        let pieces = Pieces::new(receiver);
        let replay = pieces.keep(&allowance);
        (giver, pieces, replay, allowance)
    }

    fn give(giver: &mpsc::Sender<Piece>, bytes: usize) {
        giver.try_send(Piece::Data(vec![b'x'; bytes].into())).unwrap();
    }

    /// The sizes of what an attempt can take now.
    fn taken(pieces: &mut Pieces) -> Vec<usize> {
        let mut sizes = Vec::new();
        while let Poll::Ready(Some(Piece::Data(data))) =
            pieces.poll_next(&mut Context::from_waker(Waker::noop()))
        {
            sizes.push(data.len());
        }
        sizes
    }

    #[test]
    fn an_attempt_begins_anew_and_goes_on_where_the_last_one_ended() {
        let (giver, mut first, replay, _) = begun(1000);
        give(&giver, 1);
        give(&giver, 2);
        assert_eq!(taken(&mut first), [1, 2]);
        let mut second = replay.again().unwrap();
        give(&giver, 3);
        assert_eq!(taken(&mut first), [], "it is over");
        assert_eq!(taken(&mut second), [1, 2, 3]);
        assert_eq!(taken(&mut replay.again().unwrap()), [1, 2, 3]);
        assert!(replay.is_kept(None) && replay.is_kept(Some(6)) && !replay.is_kept(Some(1001)));
    }

    #[test]
    fn what_is_too_long_is_not_kept_and_not_held_up() {
        let (giver, mut first, replay, allowance) = begun(1000);
        give(&giver, 500);
        assert_eq!(taken(&mut first), [500]);
        assert_eq!(allowance.all.available_permits(), ALL - 500 - PIECE);
        give(&giver, 500);
        assert_eq!(taken(&mut first), [500]);
        assert!(replay.again().is_none() && !replay.is_kept(None));
        assert_eq!(allowance.all.available_permits(), ALL);
        give(&giver, 7);
        assert_eq!(taken(&mut first), [7]);
    }

    #[test]
    fn all_bodies_together_have_a_bound() {
        let (giver, mut first, replay, allowance) = begun(1 << 20);
        give(&giver, ALL / 2);
        assert_eq!(taken(&mut first), [ALL / 2]);
        let (other, receiver) = mpsc::channel(8);
        let mut crowded = Pieces::new(receiver);
        let without = crowded.keep(&allowance);
        give(&other, ALL / 2);
        assert_eq!(taken(&mut crowded), [ALL / 2]);
        assert!(without.again().is_none() && replay.again().is_some());
    }

    #[test]
    fn what_nobody_may_send_again_is_given_back_and_the_rest_still_comes() {
        let (giver, mut first, replay, allowance) = begun(1000);
        give(&giver, 100);
        assert_eq!(taken(&mut first), [100]);
        let mut second = replay.again().unwrap();
        drop(replay);
        assert_eq!(allowance.all.available_permits(), ALL);
        give(&giver, 200);
        assert_eq!(taken(&mut second), [100, 200]);
        assert_eq!(allowance.all.available_permits(), ALL);
    }
}
