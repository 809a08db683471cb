//! The writing side of a body, and how it is given up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::HeaderMap;

use super::{Abandon, Body, Broken, End, Intake, SMALL};

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

impl Drop for Intake {
    fn drop(&mut self) {
        if !self.ended {
            self.end(End::Broken(Broken::GivenUp));
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
