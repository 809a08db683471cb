//! What was under way on a carrier that has ended, moved to another: streams go from slot to slot with their handles waiting. At
//! the remote all go to the next carrier ([`Hop::adopt`]).

use std::sync::Arc;

use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::Role;

use super::rejoin::{Asked, Kept, say_again};
use super::{Arrival, Closed, Hop, Shared, Slot, State};

/// Carriers that may end before ground has said whether a stream goes on.
const MOST_TRIES: u8 = 4;

/// Moves a stream to another carrier. `begin` gives its id there; where it gives none the stream stays, and is lost.
pub(super) fn relocate(
    from: &Arc<Shared>,
    id: StreamId,
    to: &Arc<Shared>,
    begin: impl FnOnce(&mut State, &mut Slot) -> Option<StreamId>,
) -> bool {
    let Some(line) = from.lock().slots.get(&id).map(|slot| slot.line.clone()) else { return false };
    let line = line.upgrade();
    // Held until it has arrived: its handles wait meanwhile.
    let place = line.as_ref().map(|line| line.place());
    let Some(mut slot) = from.lock().remove(id) else { return false };
    // What was promised on the lost carrier is lost with it.
    slot.arrivals.retain(|arrival| arrival.promise().is_none());
    slot.buffered = slot.arrivals.iter().map(Arrival::size).sum();
    slot.paused = false;
    let exchange = slot.kept.as_ref().map(|kept| kept.nature.exchange());
    let signals = Arc::clone(&slot.signals);
    let begun = {
        let mut state = to.lock();
        let begun = begin(&mut state, &mut slot);
        match begun {
            Some(new) => {
                state.insert(new, slot);
                state.sweep(new);
            }
            None => {
                drop(state);
                let mut state = from.lock();
                state.insert(id, slot);
                state.unkeep(id);
                state.sweep(id);
            }
        }
        begun
    };
    if let Some(new) = begun {
        from.lock().moved.extend(exchange.map(|exchange| (exchange, Arc::downgrade(to))));
        if let Some(mut place) = place {
            *place = (Arc::clone(to), new);
        }
        to.work.notify_one();
    }
    signals.readable.notify_one();
    signals.writable.notify_waiters();
    begun.is_some()
}

impl Hop {
    /// Remote: goes on here with what was under way on `former`, which has ended. Gives how many streams there are;
    /// what became of each, [`super::Incoming::Rejoined`] and their handles tell.
    pub fn adopt(&self, former: &Hop) -> usize {
        let (kept, carrier, unheard) = {
            let state = former.0.lock();
            let kept: Vec<StreamId> = state.exchanges.values().copied().collect();
            (kept, state.name, state.closed == Some(Closed::Unheard))
        };
        let now = self.0.now();
        let begin = |state: &mut State, slot: &mut Slot| {
            let Slot { kept, full, .. } = slot;
            let kept = kept.as_mut()?;
            if kept.is_settled(Role::Remote) {
                return None;
            }
            if unheard && kept.here {
                let rest = kept.journal.since(0)?;
                let id = match kept.asked.as_ref()? {
                    Asked::Exchange(ask, head) => state.session.ask(now, *ask, head),
                    Asked::Tunnel(asked) => state.session.open_tunnel(asked),
                };
                *full = !say_again(&mut state.session, now, id, &kept.journal, &rest);
                return Some(id);
            }
            if std::mem::take(&mut kept.here) {
                kept.carrier = carrier.or(kept.carrier);
            }
            kept.tries += 1;
            let known = kept.carrier.filter(|_| kept.tries <= MOST_TRIES)?;
            (kept.joining, *full) = (true, false);
            let Kept { nature, journal, .. } = kept;
            Some(state.session.rejoin(nature, known.number(), journal.heard(), journal.hearing()))
        };
        let adopted = kept.into_iter().filter(|id| relocate(&former.0, *id, &self.0, begin)).count();
        former.give_up();
        adopted
    }

    /// Ends the carrier; what is under way may go on on another.
    pub fn replace(&self) {
        self.end(Closed::Replaced);
    }

    /// What was under way when the carrier ended does not go on.
    pub fn give_up(&self) {
        self.0.lock().give_up();
    }

    /// Keeps no more than `most` bytes of what was under way: what is longest does not go on.
    pub fn bound(&self, most: usize) {
        self.0.lock().bound(most);
    }

    /// Whether nothing of what was under way can go on on another carrier.
    pub fn has_given_up(&self) -> bool {
        self.0.lock().given_up
    }

    /// Bytes kept of streams that may go on on another carrier; none where there are no such streams.
    pub fn kept(&self) -> Option<usize> {
        let state = self.0.lock();
        (!state.exchanges.is_empty()).then_some(state.kept_bytes)
    }

    /// Completes once no stream is left that may go on on another carrier.
    pub async fn all_left(&self) {
        loop {
            let left = self.0.lock().left.clone();
            let notified = left.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.kept().is_none() {
                return;
            }
            notified.await;
        }
    }
}
