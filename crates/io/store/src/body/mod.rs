//! A body while it arrives and after: one writer, any number of readers, each at its own place. A body is
//! *held* from its beginning while budget and its own limit allow; beyond them it only *passes*: what every
//! reader has taken is let go, new readers cannot join, and the writer waits for the slowest reader. One that is kept on
//! disk is *asleep* until its first reader wakes whoever brings its bytes.

mod copier;
mod intake;
mod reader;

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

impl Drop for Body {
    fn drop(&mut self) {
        self.0.lock().bodies -= 1;
        self.0.taken.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
