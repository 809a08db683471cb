//! The two handles of a stream. Dropping a sender before it has finished abandons its side; dropping a
//! receiver before the end stops the peer: whoever loses interest needs no further word.

use std::sync::Arc;

use bytes::Bytes;
use farhop_htotp::frame::{Coding, Failure, Priority};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::code;
use farhop_htotp::{RequestHead, ResponseHead};
use http::HeaderMap;

use super::{READ_AHEAD, Shared, Signals};

/// What arrives on a stream, in order.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arrival {
    /// A 1xx head.
    Informed(ResponseHead),
    /// The response head.
    Answered {
        head: ResponseHead,
        coding: Coding,
        resumed: Option<u64>,
    },
    /// A response to this request will come unasked.
    Promised {
        promise: u64,
        priority: Priority,
        head: RequestHead,
    },
    /// Part of the body or of the tunnel.
    Body(Bytes),
    Trailers(HeaderMap),
    /// Complete.
    Ended,
    /// There is no (whole) answer.
    Failed(Failure),
    /// The peer abandoned it.
    Reset(u64),
    /// The tunnel stands.
    TunnelOpened,
    /// The carrier has ended.
    Lost,
}

impl Arrival {
    /// Bytes that it counts for while it waits: without heads, a peer that sends nothing else would never be paused.
    pub(super) fn size(&self) -> usize {
        match self {
            Arrival::Body(bytes) => bytes.len(),
            Arrival::Informed(head) | Arrival::Answered { head, .. } => fields_size(&head.fields),
            Arrival::Promised { head, .. } => head.path.len() + fields_size(&head.fields),
            Arrival::Trailers(fields) => fields_size(fields),
            Arrival::Failed(failure) => failure.token.len() + failure.detail.len(),
            Arrival::Ended | Arrival::Reset(_) | Arrival::TunnelOpened | Arrival::Lost => 0,
        }
    }
}

/// As RFC 9113 §6.5.2 counts, and 32 for the head itself.
fn fields_size(fields: &HeaderMap) -> usize {
    32 + fields.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum::<usize>()
}

/// Nobody takes what is written any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// The peer does not want it.
    #[error("the peer does not want it any more")]
    Stopped,
    /// The carrier has ended.
    #[error("the carrier has ended")]
    Lost,
}

/// The receiving side of a stream.
pub struct Receiver {
    shared: Arc<Shared>,
    id: StreamId,
    signals: Arc<Signals>,
    done: bool,
}

/// The sending side of a stream.
pub struct Sender {
    shared: Arc<Shared>,
    id: StreamId,
    signals: Arc<Signals>,
    finished: bool,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Receiver({})", self.id.0)
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender({})", self.id.0)
    }
}

impl Receiver {
    pub(super) fn new(shared: Arc<Shared>, id: StreamId, signals: Arc<Signals>) -> Self {
        Receiver { shared, id, signals, done: false }
    }

    /// The next arrival. After `Ended`, `Failed`, `Reset` or `Lost` nothing more comes. Cancel-safe.
    pub async fn next(&mut self) -> Arrival {
        loop {
            if let Some(arrival) = self.take() {
                return arrival;
            }
            // What arrives in between has left a permit.
            self.signals.readable.notified().await;
        }
    }

    /// The next arrival if one is here.
    pub fn take(&mut self) -> Option<Arrival> {
        let mut state = self.shared.lock();
        let state = &mut *state;
        let arrival = match state.slots.get_mut(&self.id) {
            Some(slot) => {
                let before = slot.buffered;
                let arrival = slot.arrivals.pop_front();
                slot.buffered -= arrival.as_ref().map_or(0, Arrival::size);
                if before >= READ_AHEAD / 2 && slot.buffered < READ_AHEAD / 2 {
                    state.resume.push(self.id);
                    self.shared.work.notify_one();
                }
                arrival
            }
            None => Some(Arrival::Lost),
        };
        let arrival = arrival.or_else(|| state.closed.is_some().then_some(Arrival::Lost));
        self.done |=
            matches!(arrival, Some(Arrival::Ended | Arrival::Failed(_) | Arrival::Reset(_) | Arrival::Lost));
        arrival
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !self.done {
            state.session.stop(self.id, code::CANCELLED);
            self.shared.work.notify_one();
        }
        let unread = state.slots.get_mut(&self.id).map(|slot| {
            slot.receiver_gone = true;
            std::mem::take(&mut slot.arrivals)
        });
        for arrival in unread.iter().flatten() {
            state.refuse_unread(arrival);
        }
        state.sweep(self.id);
    }
}

impl Sender {
    pub(super) fn new(shared: Arc<Shared>, id: StreamId, signals: Arc<Signals>) -> Self {
        Sender { shared, id, signals, finished: false }
    }

    /// Writes, waiting while too much is queued. Cancel-safe: the bytes are queued before any wait.
    ///
    /// # Errors
    /// Nobody takes them any more.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Gone> {
        {
            let mut state = self.shared.lock();
            let state = &mut *state;
            self.check(state)?;
            let has_room = state.session.write(self.id, bytes);
            if let Some(slot) = state.slots.get_mut(&self.id) {
                slot.full = !has_room;
            }
        }
        self.shared.work.notify_one();
        self.room().await
    }

    /// Waits until more may be written.
    ///
    /// # Errors
    /// Nobody takes it any more.
    pub async fn room(&self) -> Result<(), Gone> {
        loop {
            let notified = self.signals.writable.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            {
                let state = self.shared.lock();
                self.check(&state)?;
                if state.slots.get(&self.id).is_none_or(|slot| !slot.full) {
                    return Ok(());
                }
            }
            notified.await;
        }
    }

    /// Nothing was heard from the peer for longer than anything under way explains: the link is cut.
    pub fn is_silent(&self) -> bool {
        let now = self.shared.now();
        self.shared.lock().session.is_overdue(now)
    }

    /// Completes when nobody takes what is written any more.
    pub async fn gone(&self) -> Gone {
        loop {
            let notified = self.signals.writable.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if let Err(gone) = self.check(&self.shared.lock()) {
                return gone;
            }
            notified.await;
        }
    }

    fn check(&self, state: &super::State) -> Result<(), Gone> {
        if state.closed.is_some() {
            return Err(Gone::Lost);
        }
        match state.slots.get(&self.id) {
            Some(slot) if slot.stopped => Err(Gone::Stopped),
            Some(_) => Ok(()),
            None => Err(Gone::Lost),
        }
    }

    fn with(&self, act: impl FnOnce(&mut super::State, std::time::Duration, StreamId)) {
        let now = self.shared.now();
        act(&mut self.shared.lock(), now, self.id);
        self.shared.work.notify_one();
    }

    /// Ground: a 1xx head.
    pub fn inform(&self, head: &ResponseHead) {
        self.with(|state, now, id| state.session.inform(now, id, head));
    }

    /// Ground: the response head.
    pub fn answer(&self, head: &ResponseHead, coding: Coding, resumed: Option<u64>) {
        self.with(|state, now, id| state.session.answer(now, id, head, coding, resumed));
    }

    /// Ground: announces a response ahead of whatever is written after, on an exchange or a push. `None` when nobody
    /// reads this stream any more.
    pub fn promise(&self, head: &RequestHead, priority: Priority) -> Option<u64> {
        let now = self.shared.now();
        let promise = self.shared.lock().session.promise(now, self.id, head, priority);
        self.shared.work.notify_one();
        promise
    }

    /// Ground: the tunnel stands.
    pub fn accept_tunnel(&self) {
        self.with(|state, _, id| state.session.accept_tunnel(id));
    }

    /// Ground: there is no (whole) answer.
    pub fn fail(mut self, failure: Failure) {
        self.finished = true;
        self.with(|state, _, id| state.session.fail(id, failure));
    }

    /// Ends this side, with trailers if there are any.
    pub fn finish(&mut self, trailers: Option<&HeaderMap>) {
        self.finished = true;
        self.with(|state, now, id| state.session.finish(now, id, trailers));
    }

    /// Moves the stream to another render priority.
    pub fn reprioritize(&self, priority: Priority) {
        self.with(|state, _, id| state.session.reprioritize(id, priority));
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !self.finished {
            state.session.abort(self.id);
            self.shared.work.notify_one();
        }
        if let Some(slot) = state.slots.get_mut(&self.id) {
            slot.sender_gone = true;
        }
        state.sweep(self.id);
    }
}
