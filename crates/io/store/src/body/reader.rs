//! One reader's place in a body.

use std::sync::atomic::Ordering;

use super::{Broken, End, Piece, Reader};

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
