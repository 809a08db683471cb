//! Ground's side of going on: a remote asks for a stream of a carrier that it has lost, and is told what becomes of it.

use std::sync::{Arc, Weak};

use farhop_htotp::frame::Verdict;
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::code;

use super::adopt::relocate;
use super::rejoin::{Kept, say_again};
use super::{Closed, Hop, Shared, Slot};

/// Ground: a remote asks for what was under way on a carrier that it has lost. Dropped, it is refused.
pub struct Claim {
    shared: Arc<Shared>,
    stream: StreamId,
    exchange: u64,
    position: u64,
    decided: bool,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claim({})", self.exchange)
    }
}

impl Claim {
    pub(super) fn new(shared: Arc<Shared>, stream: StreamId, exchange: u64, position: u64) -> Self {
        Claim { shared, stream, exchange, position, decided: false }
    }

    /// The exchange or tunnel.
    pub fn exchange(&self) -> u64 {
        self.exchange
    }

    /// Takes the stream from `former`, the carrier that the remote names, or from where it went from there. Whatever
    /// carrier that is, it ends: the remote has given it up, and nothing that is still on its way there may count.
    pub fn grant(mut self, former: &Hop) -> Verdict {
        let mut holder = Arc::clone(&former.0);
        let found = loop {
            if Arc::ptr_eq(&holder, &self.shared) {
                break Err(Verdict::NotKept);
            }
            let mut state = holder.lock();
            state.close(&holder, Closed::Replaced);
            holder.work.notify_one();
            if let Some(id) = state.exchanges.get(&self.exchange) {
                let id = *id;
                drop(state);
                break Ok((holder, id));
            }
            let next = match state.moved.get(&self.exchange).map(Weak::upgrade) {
                Some(Some(next)) => next,
                // All that ever came is known, but for what has been forgotten.
                None if !state.given_up && state.spoiled < Some(self.exchange) => {
                    break Err(Verdict::NeverCame);
                }
                None | Some(None) => break Err(Verdict::NotKept),
            };
            drop(state);
            holder = next;
        };
        let verdict = found.map_or_else(|verdict| verdict, |(holder, id)| self.take(&holder, id));
        if !matches!(verdict, Verdict::GoesOn(_)) {
            self.decide(verdict);
        }
        self.decided = true;
        verdict
    }

    fn take(&self, holder: &Arc<Shared>, id: StreamId) -> Verdict {
        let (now, stream, position) = (self.shared.now(), self.stream, self.position);
        let mut verdict = Verdict::NotKept;
        relocate(holder, id, &self.shared, |state, slot| {
            let Slot { kept, full, receiver_gone, .. } = slot;
            let Kept { nature, journal, .. } = kept.as_mut()?;
            let rest = journal.since(position)?;
            journal.confirm(position);
            let (heard, hearing) = (journal.heard(), journal.hearing());
            if !state.session.accept_rejoin(stream, nature, heard, hearing) {
                return None;
            }
            *full = !say_again(&mut state.session, now, stream, journal, &rest);
            if *receiver_gone {
                state.session.stop(stream, code::CANCELLED);
            }
            verdict = Verdict::GoesOn(heard);
            Some(stream)
        });
        verdict
    }

    /// Says that it never came. Nothing of the carrier that the remote names may come any more ([`crate::begun::Begun::never_came`]).
    pub fn never_came(mut self) {
        self.decide(Verdict::NeverCame);
    }

    /// Says that it does not go on.
    pub fn refuse(mut self) {
        self.decide(Verdict::NotKept);
    }

    fn decide(&mut self, verdict: Verdict) {
        self.decided = true;
        self.shared.lock().session.refuse_rejoin(self.stream, verdict);
        self.shared.work.notify_one();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.decided {
            self.decide(Verdict::NotKept);
        }
    }
}
