//! Keeps what is sent and not taken within bounds: counts it by stream and user, by what the other end confirms anyway so that
//! it is not said again on another carrier ([`farhop_htotp::journal`]), and lets writers wait. How much each may have is
//! [`farhop_htotp::unread`]'s.

use farhop_htotp::scheduler::StreamId;

use super::State;

impl State {
    /// Counts anew what has gone out on a stream and the other end has not taken. Call when either changes.
    pub(super) fn recount(&mut self, id: StreamId) {
        let queued = self.session.queued(id) as u64;
        let Some(slot) = self.slots.get_mut(&id) else { return };
        let Some(kept) = &slot.kept else { return };
        let now = kept.journal.unconfirmed().saturating_sub(queued);
        let before = std::mem::replace(&mut slot.unread, now);
        self.unread.change(kept.nature.user(), before, now);
        if now < before {
            self.make_room();
        }
    }

    /// A stream of `user` is not counted any more.
    pub(super) fn discount(&mut self, id: StreamId, user: u64) {
        let Some(slot) = self.slots.get_mut(&id) else { return };
        self.unread.change(user, std::mem::take(&mut slot.unread), 0);
        self.make_room();
    }

    /// Whether the other end has to take something before this stream goes on; its writer is woken when it has. What is
    /// queued here will go out, too.
    pub(super) fn is_crowded(&mut self, id: StreamId) -> bool {
        let (most, queued) = (self.tuner.parameters().unread.0, self.session.queued(id) as u64);
        let Some(slot) = self.slots.get(&id) else { return false };
        let Some(kept) = &slot.kept else { return false };
        let is_crowded = self.taking && !self.unread.admits(kept.nature.user(), slot.unread + queued, most);
        if is_crowded {
            self.crowded.insert(id);
        }
        is_crowded
    }

    /// Those that waited look again.
    fn make_room(&mut self) {
        for id in std::mem::take(&mut self.crowded) {
            if let Some(slot) = self.slots.get(&id) {
                slot.signals.writable.notify_waiters();
            }
        }
    }
}
