//! How far a body is that is written to its file while it comes, for those who read it meanwhile: whole chunks they read from the
//! file, and what has come of the next one they are given from memory.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{Notify, watch};

use super::seal::Salt;

/// How far it is.
#[derive(Clone, Default)]
pub(crate) struct Reached {
    /// Whole chunks in the file, without the last.
    pub(crate) chunks: u64,
    /// Bytes behind them, as far as anyone follows.
    pub(crate) tail: Bytes,
    /// All of it is in the file: so many bytes.
    pub(crate) whole: Option<u64>,
}

/// The writing side. Dropped before the body is whole, it is given up.
pub(super) struct Growth {
    reached: watch::Sender<Reached>,
    crowd: Arc<Crowd>,
}

/// What all who have to do with one body share.
#[derive(Default)]
struct Crowd {
    length: Arc<AtomicU64>,
    following: AtomicUsize,
    /// Of those, who have read all there is.
    waiting: AtomicUsize,
    changed: Notify,
    /// Nothing more is written.
    is_over: AtomicBool,
    /// Bytes that came across for it and that no reader has answered for yet.
    crossed: AtomicU64,
    trailers: OnceLock<Option<HeaderMap>>,
}

/// The reading side: a body that grows, for whoever may read it. Clones are the same.
#[derive(Clone)]
pub(crate) struct Followed {
    pub(super) id: u64,
    pub(super) salt: Salt,
    reached: watch::Receiver<Reached>,
    crowd: Arc<Crowd>,
}

/// One who reads it.
pub(crate) struct Following(Followed);

/// The body that is written to the file `id` with this salt.
pub(super) fn begin(id: u64, salt: Salt) -> (Growth, Followed) {
    let (told, reached) = watch::channel(Reached::default());
    let crowd = Arc::<Crowd>::default();
    (Growth { reached: told, crowd: Arc::clone(&crowd) }, Followed { id, salt, reached, crowd })
}

impl Growth {
    /// It has so many whole chunks in its file, and these bytes behind them.
    pub(super) fn reach(&self, chunks: u64, tail: &[u8]) {
        let is_followed = self.crowd.following.load(Ordering::Acquire) > 0;
        let tail = if is_followed { Bytes::copy_from_slice(tail) } else { Bytes::new() };
        self.reached.send_replace(Reached { chunks, tail, whole: None });
    }

    /// All of it is in its file.
    pub(super) fn whole(self, length: u64) {
        self.reached.send_modify(|reached| reached.whole = Some(length));
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        self.crowd.is_over.store(true, Ordering::Release);
    }
}

impl Followed {
    /// Its bytes so far, as they grow.
    pub(crate) fn length(&self) -> &Arc<AtomicU64> {
        &self.crowd.length
    }

    /// It has more bytes now.
    pub(super) fn grown(&self, bytes: u64) {
        self.crowd.length.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It will not become whole.
    pub(crate) fn is_given_up(&self) -> bool {
        self.crowd.is_over.load(Ordering::Acquire) && self.reached.borrow().whole.is_none()
    }

    /// So many bytes came across for it that whoever asked for it does not answer for.
    pub(crate) fn crossed(&self, bytes: u64) {
        self.crowd.crossed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// That is all of it, with these trailers.
    pub(crate) fn ended(&self, trailers: Option<HeaderMap>) {
        // They are told once.
        let _ = self.crowd.trailers.set(trailers);
    }

    /// Completes when somebody has read all there is, and waits for more.
    pub(crate) async fn awaited(&self) {
        self.until(|crowd| crowd.waiting.load(Ordering::Acquire) > 0).await;
    }

    /// Completes when nobody reads it.
    pub(crate) async fn left(&self) {
        self.until(|crowd| crowd.following.load(Ordering::Acquire) == 0).await;
    }

    async fn until(&self, is_so: impl Fn(&Crowd) -> bool) {
        loop {
            let changed = self.crowd.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(&self.crowd) {
                return;
            }
            changed.await;
        }
    }

    /// Begins to read it.
    pub(crate) fn follow(self) -> Following {
        self.crowd.following.fetch_add(1, Ordering::AcqRel);
        self.crowd.changed.notify_waiters();
        Following(self)
    }
}

impl Following {
    /// How far it is now.
    pub(crate) fn reached(&mut self) -> Reached {
        self.0.reached.borrow_and_update().clone()
    }

    /// Waits until it is farther; `false`: it will not be. Cancel-safe.
    pub(crate) async fn farther(&mut self) -> bool {
        let waiting = Waiting::begin(&self.0.crowd);
        let changed = self.0.reached.changed().await;
        drop(waiting);
        changed.is_ok()
    }

    /// Bytes that came across for it, each told once.
    pub(crate) fn take_crossed(&self) -> u64 {
        self.0.crowd.crossed.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn trailers(&self) -> Option<HeaderMap> {
        self.0.crowd.trailers.get().cloned().flatten()
    }

    /// What is read.
    pub(crate) fn body(&self) -> Followed {
        self.0.clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.crowd.following.fetch_sub(1, Ordering::AcqRel);
        self.0.crowd.changed.notify_waiters();
    }
}

/// One who waits for more.
struct Waiting(Arc<Crowd>);

impl Waiting {
    fn begin(crowd: &Arc<Crowd>) -> Waiting {
        crowd.waiting.fetch_add(1, Ordering::AcqRel);
        crowd.changed.notify_waiters();
        Waiting(Arc::clone(crowd))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
