//! Waits until a body is whole, for whoever copies it to disk. It is not a reader: nothing arrives for its sake.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use bytes::Bytes;
use http::HeaderMap;

use super::{Body, End, Shared};

/// Waits for a body. The bytes stay charged to the budget while it lives.
pub(crate) struct Copier(Arc<Shared>);

/// A body that is whole.
pub(crate) struct Whole {
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) trailers: Option<HeaderMap>,
    /// Bytes that came across for it, coded as they were.
    pub(crate) crossed: u64,
    /// Keeps the bytes charged.
    _shared: Arc<Shared>,
}

impl Copier {
    pub(super) fn of(body: &Body) -> Copier {
        Copier(Arc::clone(&body.0))
    }

    /// The body as soon as it is whole; `None` when it broke or its beginning was let go.
    pub(crate) async fn whole(self) -> Option<Whole> {
        loop {
            let arrived = self.0.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if let Poll::Ready(whole) = self.look() {
                return whole;
            }
            arrived.await;
        }
    }

    /// The same if it is whole by now.
    pub(crate) fn now(&self) -> Option<Whole> {
        match self.look() {
            Poll::Ready(whole) => whole,
            Poll::Pending => None,
        }
    }

    fn look(&self) -> Poll<Option<Whole>> {
        let state = self.0.lock();
        match &state.end {
            _ if state.first > 0 => Poll::Ready(None),
            End::Open => Poll::Pending,
            End::Broken(_) => Poll::Ready(None),
            End::Whole(trailers) => Poll::Ready(Some(Whole {
                pieces: state.pieces.iter().cloned().collect(),
                trailers: trailers.clone(),
                crossed: self.0.cost.load(Ordering::Relaxed),
                _shared: Arc::clone(&self.0),
            })),
        }
    }
}
