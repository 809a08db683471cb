//! The two handles of a stream. Dropping a sender before it has finished abandons its side; dropping a
//! receiver before the end stops the peer: whoever loses interest needs no further word.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Coding, Failure, Priority, Validating};
use farhop_htotp::journal::Said;
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::code;
use farhop_htotp::{RequestHead, ResponseHead};
use http::HeaderMap;

use super::line::Line;
use super::state::SMALL;
use super::{Shared, State};

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
    /// The origin is asked whether this entry of the mirror is still right; the push of this promise says what comes of that.
    Validating(Validating),
    /// Part of the body or of the tunnel.
    Body(Bytes),
    /// The next byte of the tunnel is urgent.
    Urgent,
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
    /// The promise that it makes: it ends with its carrier.
    pub(super) fn promise(&self) -> Option<u64> {
        match self {
            Arrival::Promised { promise, .. } | Arrival::Validating(Validating { promise, .. }) => {
                Some(*promise)
            }
            _ => None,
        }
    }

    /// Bytes that it counts for while it waits: without heads, a peer that sends nothing else would never be paused.
    pub(super) fn size(&self) -> usize {
        match self {
            Arrival::Body(bytes) => bytes.len(),
            Arrival::Informed(head) | Arrival::Answered { head, .. } => fields_size(&head.fields),
            Arrival::Promised { head, .. } => head.path.len() + fields_size(&head.fields),
            Arrival::Trailers(fields) => fields_size(fields),
            Arrival::Failed(failure) => failure.token.len() + failure.detail.len(),
            // What it keeps from being joined.
            Arrival::Urgent | Arrival::Validating(_) => SMALL,
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
    line: Arc<Line>,
    done: bool,
}

/// The sending side of a stream.
pub struct Sender {
    line: Arc<Line>,
    finished: bool,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Receiver({})", self.line.place().1.0)
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender({})", self.line.place().1.0)
    }
}

impl Receiver {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Receiver { line, done: false }
    }

    /// Remote: as [`Sender::tell_class`].
    pub fn tell_class(&self, class: Class) {
        self.line.act(|shared, state, id| {
            state.tell_class(id, class);
            shared.work.notify_one();
        });
    }

    /// The next arrival. After `Ended`, `Failed`, `Reset` or `Lost` nothing more comes. Cancel-safe.
    pub async fn next(&mut self) -> Arrival {
        loop {
            if let Some(arrival) = self.take() {
                return arrival;
            }
            // What arrives in between has left a permit.
            self.line.signals.readable.notified().await;
        }
    }

    /// The next arrival if one is here.
    pub fn take(&mut self) -> Option<Arrival> {
        let arrival = self.line.act(|shared, state, id| {
            let arrival = match state.slots.get_mut(&id) {
                Some(slot) => {
                    if state.closed.is_some() {
                        // What was promised is lost with its carrier.
                        slot.arrivals.retain(|arrival| arrival.promise().is_none());
                    }
                    let arrival = slot.arrivals.pop_front();
                    let size = arrival.as_ref().map_or(0, Arrival::size);
                    taken(shared, state, id, size);
                    arrival
                }
                None => Some(Arrival::Lost),
            };
            arrival.or_else(|| (state.closed.is_some() && !state.is_adrift(id)).then_some(Arrival::Lost))
        });
        self.done |=
            matches!(arrival, Some(Arrival::Ended | Arrival::Failed(_) | Arrival::Reset(_) | Arrival::Lost));
        arrival
    }

    /// Adds what is here of the body to `bodies`, up to so many pieces in all and as far as nothing else comes between.
    pub fn take_bodies(&mut self, bodies: &mut Vec<Bytes>, most: usize) {
        self.line.act(|shared, state, id| {
            let Some(slot) = state.slots.get_mut(&id) else { return };
            let mut size = 0;
            while bodies.len() < most
                && let Some(Arrival::Body(bytes)) =
                    slot.arrivals.pop_front_if(|arrival| matches!(arrival, Arrival::Body(_)))
            {
                size += bytes.len();
                bodies.push(bytes);
            }
            taken(shared, state, id, size);
        });
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let unread = self.line.act(|shared, state, id| {
            if !self.done {
                state.session.stop(id, code::CANCELLED);
                state.unread(id);
                shared.work.notify_one();
            }
            let unread = state.slots.get_mut(&id).map(|slot| {
                slot.receiver_gone = true;
                std::mem::take(&mut slot.arrivals)
            });
            unread.iter().flatten().for_each(|arrival| state.refuse_unread(arrival));
            state.sweep(id);
            unread
        });
        // Without the lock: buffers may be large.
        drop(unread);
    }
}

impl Sender {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Sender { line, finished: false }
    }

    /// Writes, waiting while too much is queued. Cancel-safe: the bytes are queued before any wait.
    ///
    /// # Errors
    /// Nobody takes them any more.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), Gone> {
        self.line.act(|shared, state, id| {
            check(state, id)?;
            let has_room = state.say(shared.now(), id, Said::Bytes(bytes));
            if let Some(slot) = state.slots.get_mut(&id) {
                slot.full = !has_room;
            }
            shared.work.notify_one();
            Ok(())
        })?;
        self.room().await
    }

    /// The next byte of a tunnel is urgent. Where the peer takes no marks it is a byte like any other.
    pub fn mark(&self) {
        self.say(Said::Urgent);
    }

    /// Waits until more may be written.
    ///
    /// # Errors
    /// Nobody takes it any more.
    pub async fn room(&self) -> Result<(), Gone> {
        loop {
            let notified = self.line.signals.writable.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let must_wait = self.line.act(|_, state, id| check(state, id).map(|()| state.must_wait(id)))?;
            if !must_wait {
                return Ok(());
            }
            notified.await;
        }
    }

    /// Nothing was heard from the peer for longer than anything under way explains: the link is cut, or the carrier lost
    /// and another not here yet.
    pub fn is_silent(&self) -> bool {
        self.line.act(|shared, state, id| state.is_adrift(id) || state.session.is_overdue(shared.now()))
    }

    /// Completes when nobody takes what is written any more.
    pub async fn gone(&self) -> Gone {
        loop {
            let notified = self.line.signals.writable.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if let Err(gone) = self.line.act(|_, state, id| check(state, id)) {
                return gone;
            }
            notified.await;
        }
    }

    /// Completes when the peer has all bytes that were said, or nobody takes it any more. A reset that comes later overtakes nothing. At
    /// once where nothing is kept for another carrier, since it is not told then.
    pub async fn heard(&self) {
        loop {
            let notified = self.line.signals.writable.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.line.act(|_, state, id| check(state, id).is_err() || state.is_heard(id)) {
                return;
            }
            notified.await;
        }
    }

    fn with(&self, act: impl FnOnce(&mut State, Duration, StreamId)) {
        self.line.act(|shared, state, id| {
            act(state, shared.now(), id);
            shared.work.notify_one();
        });
    }

    fn say(&self, said: Said) {
        self.with(|state, now, id| {
            state.say(now, id, said);
        });
    }

    /// Ground: a 1xx head.
    pub fn inform(&self, head: &ResponseHead) {
        self.say(Said::Informed(head.clone()));
    }

    /// Ground: the response head.
    pub fn answer(&self, head: &ResponseHead, coding: Coding, resumed: Option<u64>) {
        self.say(Said::Answered { head: head.clone(), coding, resumed });
    }

    /// Ground: whether the remote undoes the codings of origins.
    pub fn takes_origins_codings(&self) -> bool {
        self.line.act(|_, state, _| state.session.takes_origins_codings())
    }

    /// Ground: whether the remote reads deltas of several frames.
    pub fn takes_chained_deltas(&self) -> bool {
        self.line.act(|_, state, _| state.session.takes_chained_deltas())
    }

    /// Ground: announces a response ahead of whatever is written after, on an exchange or a push. `None` when nobody
    /// reads this stream any more.
    pub fn promise(&self, head: &RequestHead, priority: Priority) -> Option<u64> {
        self.line.act(|shared, state, id| {
            if state.closed.is_some() {
                // What is promised ends with its carrier.
                return None;
            }
            shared.work.notify_one();
            state.session.promise(shared.now(), id, head, priority)
        })
    }

    /// Ground: announces, as [`Sender::promise`] does, that the origin is asked whether this entry of the mirror, which
    /// answers `head`, is still right; by `request` the remote knows again what the origin is asked.
    pub fn validate(&self, entry: u64, request: u64, head: &RequestHead, priority: Priority) -> Option<u64> {
        self.line.act(|shared, state, id| {
            if state.closed.is_some() {
                return None;
            }
            shared.work.notify_one();
            state.session.validate(id, (entry, request), head, priority)
        })
    }

    /// Ground: the tunnel stands.
    pub fn accept_tunnel(&self) {
        self.say(Said::Opened);
    }

    /// Ground: there is no (whole) answer.
    pub fn fail(mut self, failure: Failure) {
        self.finished = true;
        self.say(Said::Failed(failure));
    }

    /// Ends this side, with trailers if there are any.
    pub fn finish(&mut self, trailers: Option<&HeaderMap>) {
        self.finished = true;
        self.say(Said::Ended(trailers.cloned()));
    }

    /// Moves the stream to another render priority.
    pub fn reprioritize(&self, priority: Priority) {
        self.with(|state, _, id| state.reprioritize(id, priority));
    }

    /// Moves the stream, if it counts as a page, to the class that it proves to be of.
    pub fn reclassify(&self, class: Class) {
        self.with(|state, _, id| state.reclassify(id, class));
    }

    /// What the stream counts as here.
    pub fn class(&self) -> Option<Class> {
        self.line.act(|_, state, id| state.session.class(id))
    }

    /// Remote: the tunnel, or flow of datagrams, has shown that it is of this class, in both directions.
    pub fn tell_class(&self, class: Class) {
        self.with(|state, _, id| state.tell_class(id, class));
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.line.act(|shared, state, id| {
            if !self.finished {
                state.session.abort(id);
                state.unkeep(id);
                shared.work.notify_one();
            }
            if let Some(slot) = state.slots.get_mut(&id) {
                slot.sender_gone = true;
            }
            state.sweep(id);
        });
    }
}

/// So many bytes wait no longer for their reader: a stream that was not read for it goes on.
fn taken(shared: &Shared, state: &mut State, id: StreamId, size: usize) {
    let read_ahead = state.read_ahead();
    let Some(slot) = state.slots.get_mut(&id) else { return };
    slot.buffered = slot.buffered.saturating_sub(size);
    if slot.paused && slot.buffered < read_ahead / 2 {
        slot.paused = false;
        state.resume.push(id);
        shared.work.notify_one();
    }
}

fn check(state: &State, id: StreamId) -> Result<(), Gone> {
    if state.closed.is_some() && !state.is_adrift(id) {
        return Err(Gone::Lost);
    }
    match state.slots.get(&id) {
        Some(slot) if slot.stopped => Err(Gone::Stopped),
        Some(_) => Ok(()),
        None => Err(Gone::Lost),
    }
}
