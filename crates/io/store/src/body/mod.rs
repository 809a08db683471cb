//! A body while it arrives and after: one writer, any number of readers, each at its own place. A body is
//! *held* from its beginning while budget and its own limit allow; beyond them it only *passes*: what every
//! reader has taken is let go, new readers cannot join, and the writer waits for the slowest reader. One that is kept on
//! disk is *asleep* until its first reader wakes whoever brings its bytes.

mod copier;

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::Notify;

pub(crate) use copier::{Copier, Whole};

/// Bytes that a passing body may be ahead of its slowest reader: at most and however many there are, and of all.
const WINDOW: RangeInclusive<u64> = 16 * 1024..=256 * 1024;
const WINDOW_OF_ALL: u64 = 16 << 20;
/// Pieces smaller than this are joined to the one before, so that a trickling body does not cost a piece per byte.
const SMALL: usize = 1024;

/// Memory that all bodies of an end may hold together.
#[derive(Debug)]
pub struct Budget {
    most: u64,
    used: AtomicU64,
    /// Bodies that only pass: what waits of them is not taken from the budget.
    passing: AtomicU64,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(most: u64) -> Arc<Budget> {
        Arc::new(Budget { most, used: AtomicU64::new(0), passing: AtomicU64::new(0) })
    }

    /// Bytes held now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The bound.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Bytes that a passing body may be ahead of its slowest reader now.
    fn window(&self) -> u64 {
        let passing = self.passing.load(Ordering::Relaxed).max(1);
        (WINDOW_OF_ALL / passing).clamp(*WINDOW.start(), *WINDOW.end())
    }

    fn take(&self, bytes: u64) -> bool {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used + bytes <= self.most).then_some(used + bytes)
            })
            .is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Why a body will not become whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The carrier was lost: the rest can be asked for again.
    #[error("the carrier was lost")]
    Lost,
    /// Whoever sent it could not finish.
    #[error("{0}")]
    Failed(String),
    /// The writer was dropped, or the beginning has been let go.
    #[error("the body was given up")]
    GivenUp,
    /// This reader was too slow for others: what is held under this number goes on.
    #[error("others did not wait for this reader")]
    Outrun(u64),
}

/// What a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// The next bytes, never empty.
    Data(Bytes),
    /// The body is whole; with its trailers, if any.
    End(Option<HeaderMap>),
}

enum End {
    Open,
    Whole(Option<HeaderMap>),
    Broken(Broken),
}

/// Brings the bytes of a body that was asleep.
type Wake = Box<dyn FnOnce(Intake) + Send>;

struct State {
    pieces: VecDeque<Bytes>,
    /// Number of the first piece still here; pieces are counted from the body's beginning.
    first: u64,
    /// Bytes before the first piece still here.
    let_go: u64,
    written: u64,
    /// Bytes taken from the budget.
    charged: u64,
    held: bool,
    end: End,
    /// Place (piece number, bytes taken) of each reader.
    readers: Vec<Option<(u64, u64)>>,
    /// Handles of the body besides its readers.
    bodies: usize,
    /// Whom the first reader wakes.
    asleep: Option<Wake>,
    /// Length of a body that is whole elsewhere, however much of it is here.
    kept: Option<u64>,
    /// Length so far of one that grows elsewhere.
    growing: Option<Arc<AtomicU64>>,
}

struct Shared {
    state: Mutex<State>,
    arrived: Notify,
    taken: Notify,
    budget: Arc<Budget>,
    limit: u64,
    /// Bytes that came across for it and that no reader has answered for yet.
    crossed: AtomicU64,
    /// All bytes that came across for it.
    cost: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let (charged, held) = {
            let state = self.lock();
            (state.charged, state.held)
        };
        self.budget.give_back(charged);
        self.budget.passing.fetch_sub(u64::from(!held), Ordering::Relaxed);
    }
}

/// A body; clones are the same.
pub struct Body(Arc<Shared>);

impl Clone for Body {
    fn clone(&self) -> Self {
        self.0.lock().bodies += 1;
        Body(Arc::clone(&self.0))
    }
}

/// The writing side. Dropped without [`Intake::finish`], the body is broken.
pub struct Intake {
    shared: Arc<Shared>,
    ended: bool,
}

/// Gives a body up from aside, while its [`Intake`] is at work. Neither a [`Body`] nor a reader: it keeps nothing.
pub struct Abandon(Arc<Shared>);

/// One reader's place in a body.
pub struct Reader {
    shared: Arc<Shared>,
    slot: usize,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("written", &self.written()).finish_non_exhaustive()
    }
}

impl Body {
    /// A body that holds at most `limit` bytes of `budget`.
    pub fn new(budget: &Arc<Budget>, limit: u64) -> (Intake, Body) {
        let state = State {
            pieces: VecDeque::new(),
            first: 0,
            let_go: 0,
            written: 0,
            charged: 0,
            held: true,
            end: End::Open,
            readers: Vec::new(),
            bodies: 1,
            asleep: None,
            kept: None,
            growing: None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            arrived: Notify::new(),
            taken: Notify::new(),
            budget: Arc::clone(budget),
            limit,
            crossed: AtomicU64::new(0),
            cost: AtomicU64::new(0),
        });
        (Intake { shared: Arc::clone(&shared), ended: false }, Body(shared))
    }

    /// A body that is whole already.
    pub fn whole(budget: &Arc<Budget>, bytes: Bytes, trailers: Option<HeaderMap>) -> Body {
        Body::whole_after(budget, bytes, trailers, 0)
    }

    /// One for which so many bytes came across.
    pub(crate) fn whole_after(
        budget: &Arc<Budget>,
        bytes: Bytes,
        trailers: Option<HeaderMap>,
        crossed: u64,
    ) -> Body {
        let (mut intake, body) = Body::new(budget, u64::MAX);
        intake.shared.cost.store(crossed, Ordering::Relaxed);
        intake.push(bytes);
        intake.finish(trailers);
        body
    }

    /// A body of `length` bytes that is whole elsewhere: its first reader has `wake` called, which is to bring all of it.
    pub(crate) fn asleep(
        budget: &Arc<Budget>,
        limit: u64,
        length: u64,
        wake: impl FnOnce(Intake) + Send + 'static,
    ) -> Body {
        let (mut intake, body) = Body::new(budget, limit);
        // It ends when whoever is woken ends it.
        intake.ended = true;
        {
            let mut state = body.0.lock();
            state.asleep = Some(Box::new(wake));
            state.kept = Some(length);
        }
        body
    }

    /// A body that grows elsewhere: its first reader has `wake` called, which is to bring all of it as it comes.
    pub(crate) fn growing(
        budget: &Arc<Budget>,
        length: &Arc<AtomicU64>,
        wake: impl FnOnce(Intake) + Send + 'static,
    ) -> Body {
        let (mut intake, body) = Body::new(budget, 0);
        intake.ended = true;
        {
            let mut state = body.0.lock();
            state.asleep = Some(Box::new(wake));
            state.growing = Some(Arc::clone(length));
        }
        body
    }

    /// A reader from the beginning; `None` when the beginning has been let go, or the body was given up.
    pub fn reader(&self) -> Option<Reader> {
        let mut state = self.0.lock();
        if state.first > 0 || matches!(state.end, End::Broken(Broken::GivenUp)) {
            return None;
        }
        let slot = state.readers.iter().position(Option::is_none).unwrap_or(state.readers.len());
        if slot == state.readers.len() {
            state.readers.push(None);
        }
        state.readers[slot] = Some((0, 0));
        let asleep = state.asleep.take();
        drop(state);
        self.0.taken.notify_waiters();
        if let Some(wake) = asleep {
            wake(Intake { shared: Arc::clone(&self.0), ended: false });
        }
        Some(Reader { shared: Arc::clone(&self.0), slot })
    }

    /// Bytes written so far, or kept on disk.
    pub fn written(&self) -> u64 {
        let state = self.0.lock();
        let growing = || state.growing.as_ref().map(|length| length.load(Ordering::Relaxed));
        state.kept.or_else(growing).unwrap_or(state.written)
    }

    /// The body is whole, and all of it is here or on disk.
    pub fn is_whole(&self) -> bool {
        let state = self.0.lock();
        state.first == 0
            && match state.end {
                End::Whole(_) => true,
                End::Open => state.kept.is_some(),
                End::Broken(_) => false,
            }
    }

    /// Waits until the body is whole. Keeps nothing waiting and nothing wanted meanwhile.
    pub(crate) fn copier(&self) -> Copier {
        Copier::of(self)
    }

    /// Nothing more will arrive.
    pub fn is_ended(&self) -> bool {
        !matches!(self.0.lock().end, End::Open)
    }

    /// The body will not become whole.
    pub fn is_broken(&self) -> bool {
        matches!(self.0.lock().end, End::Broken(_))
    }

    /// All that was written so far is still here, so that another reader can join.
    pub fn can_be_joined(&self) -> bool {
        self.0.lock().first == 0
    }
}

impl Intake {
    /// Adds bytes, then waits while the body passes and its readers lag, or while it has none.
    pub async fn write(&mut self, bytes: Bytes) {
        self.push(bytes);
        self.ready().await;
    }

    /// Waits while the body passes and its readers lag, or while it has none.
    pub async fn ready(&mut self) {
        loop {
            let taken = self.shared.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            {
                let state = self.shared.lock();
                let slowest =
                    state.readers.iter().flatten().map(|(_, bytes)| *bytes).min().unwrap_or(state.let_go);
                if state.held || state.written - slowest <= self.shared.budget.window() || state.is_unwanted()
                {
                    return;
                }
            }
            taken.await;
        }
    }

    /// Adds bytes. Where they are too many to be held, all that has come is given, once: from now on the body only passes.
    pub fn push(&mut self, bytes: Bytes) -> Option<Vec<Bytes>> {
        if bytes.is_empty() {
            return None;
        }
        let size = bytes.len() as u64;
        let mut state = self.shared.lock();
        let state = &mut *state;
        let was_held = state.held;
        if state.held {
            if state.written + size <= self.shared.limit && self.shared.budget.take(size) {
                state.charged += size;
            } else {
                // What is here stays charged until it is let go: slow readers may need all of it.
                state.held = false;
                self.shared.budget.passing.fetch_add(1, Ordering::Relaxed);
            }
        }
        state.written += size;
        let joins = state.pieces.back().is_some_and(|last| last.len() + bytes.len() <= SMALL)
            // A piece that a reader has begun with stays as it is.
            && !state.readers.iter().flatten().any(|(piece, _)| *piece >= state.first + state.pieces.len() as u64);
        if joins && let Some(last) = state.pieces.back_mut() {
            *last = [&last[..], &bytes[..]].concat().into();
        } else if state.held || bytes.len() < SMALL {
            // It may be a view of a much larger buffer, which would be kept with it: what is held is what is charged for.
            state.pieces.push_back(Bytes::copy_from_slice(&bytes));
        } else {
            state.pieces.push_back(bytes);
        }
        let outgrown = (was_held && !state.held).then(|| state.pieces.iter().cloned().collect());
        state.let_go_taken(&self.shared.budget);
        self.shared.arrived.notify_waiters();
        outgrown
    }

    /// The body that is filled here.
    pub fn body(&self) -> Body {
        self.shared.lock().bodies += 1;
        Body(Arc::clone(&self.shared))
    }

    /// So many bytes have come across for it, coded as they may have been.
    pub fn crossed(&self, bytes: u64) {
        self.shared.crossed.fetch_add(bytes, Ordering::Relaxed);
        self.shared.cost.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The body is whole.
    pub fn finish(mut self, trailers: Option<HeaderMap>) {
        self.end(End::Whole(trailers));
    }

    /// The body will not become whole.
    pub fn fail(mut self, why: Broken) {
        self.end(End::Broken(why));
    }

    fn end(&mut self, end: End) {
        self.ended = true;
        self.shared.lock().end = end;
        self.shared.arrived.notify_waiters();
    }

    /// A handle to give the body up with.
    pub fn abandon(&self) -> Abandon {
        Abandon(Arc::clone(&self.shared))
    }

    /// Completes when no reader is left; at once when there never was one.
    pub async fn deserted(&self) {
        loop {
            let taken = self.shared.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            if self.shared.lock().readers.iter().all(Option::is_none) {
                return;
            }
            taken.await;
        }
    }

    /// Neither a reader nor a [`Body`] is left that could still use what arrives: then the body is given up in the same moment,
    /// so that nobody can begin to read what will not become whole.
    pub(crate) fn gives_up_unwanted(&self) -> bool {
        self.shared.lock().gives_up_unwanted()
    }

    /// Completes when neither a reader nor a [`Body`] is left that could still use what arrives. The body is given up in the
    /// same moment.
    pub async fn unwanted(&self) {
        loop {
            let taken = self.shared.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            if self.gives_up_unwanted() {
                return;
            }
            taken.await;
        }
    }
}

impl Abandon {
    /// The body.
    pub fn body(&self) -> Body {
        self.0.lock().bodies += 1;
        Body(Arc::clone(&self.0))
    }

    /// Waits until nobody reads the body, and gives it up in the same moment, so that nobody can begin to. What is ended
    /// already stays as it is.
    pub async fn when_unread(&self) {
        loop {
            let taken = self.0.taken.notified();
            tokio::pin!(taken);
            taken.as_mut().enable();
            {
                let mut state = self.0.lock();
                if state.readers.iter().all(Option::is_none) {
                    if matches!(state.end, End::Open) {
                        state.end = End::Broken(Broken::GivenUp);
                    }
                    return;
                }
            }
            taken.await;
        }
    }
}

impl State {
    /// Nobody reads it, and nobody can begin to, or is likely to: who merely keeps a body that only passes keeps nothing.
    fn is_unwanted(&self) -> bool {
        let was_read = !self.readers.is_empty();
        self.readers.iter().all(Option::is_none) && (self.bodies == 0 || (!self.held && was_read))
    }

    /// Gives the body up if it is unwanted. What is ended already stays as it is.
    fn gives_up_unwanted(&mut self) -> bool {
        let is_unwanted = self.is_unwanted();
        if is_unwanted && matches!(self.end, End::Open) {
            self.end = End::Broken(Broken::GivenUp);
        }
        is_unwanted
    }

    /// Lets go of what every reader has taken, if the body only passes.
    fn let_go_taken(&mut self, budget: &Budget) {
        if self.held {
            return;
        }
        let Some(slowest) = self.readers.iter().flatten().map(|(piece, _)| *piece).min() else { return };
        while self.first < slowest {
            let Some(piece) = self.pieces.pop_front() else { break };
            let size = piece.len() as u64;
            self.let_go += size;
            self.first += 1;
            let charged = size.min(self.charged);
            self.charged -= charged;
            budget.give_back(charged);
        }
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        if !self.ended {
            self.end(End::Broken(Broken::GivenUp));
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.0.lock().bodies -= 1;
        self.0.taken.notify_waiters();
    }
}

impl Reader {
    /// The next piece, as soon as it is here. Cancel-safe.
    ///
    /// # Errors
    /// The body will not become whole; every byte that came before has been given.
    pub async fn next(&mut self) -> Result<Piece, Broken> {
        loop {
            let arrived = self.shared.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if let Some(result) = self.take() {
                return result;
            }
            arrived.await;
        }
    }

    /// Goes past the first bytes, which are here.
    pub fn skip(&mut self, bytes: u64) {
        while self.place().is_some_and(|at| at < bytes) && matches!(self.take(), Some(Ok(Piece::Data(_)))) {}
    }

    /// Bytes that it has taken.
    fn place(&self) -> Option<u64> {
        self.shared.lock().readers[self.slot].map(|(_, bytes)| bytes)
    }

    /// Bytes that came across for this body, each told once: to the reader that asks first.
    pub fn take_crossed(&self) -> u64 {
        self.shared.crossed.swap(0, Ordering::Relaxed)
    }

    /// The next piece if it is here.
    pub fn take(&self) -> Option<Result<Piece, Broken>> {
        let mut state = self.shared.lock();
        let state = &mut *state;
        let (place, bytes) = state.readers[self.slot]?;
        let index = place.checked_sub(state.first).and_then(|index| usize::try_from(index).ok());
        let Some(index) = index else { return Some(Err(Broken::GivenUp)) };
        if let Some(piece) = state.pieces.get(index).cloned() {
            state.readers[self.slot] = Some((place + 1, bytes + piece.len() as u64));
            state.let_go_taken(&self.shared.budget);
            self.shared.taken.notify_waiters();
            return Some(Ok(Piece::Data(piece)));
        }
        match &state.end {
            End::Open => None,
            End::Whole(trailers) => Some(Ok(Piece::End(trailers.clone()))),
            End::Broken(why) => Some(Err(why.clone())),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.readers[self.slot] = None;
        state.let_go_taken(&self.shared.budget);
        drop(state);
        self.shared.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
