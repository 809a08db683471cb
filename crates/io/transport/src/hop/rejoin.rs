//! Exchanges and tunnels that outlive their carrier. Each end keeps what it said and the other has not confirmed; when the
//! carrier is lost the handles wait, and the stream goes on on the next carrier where it stopped, if both ends still can.
//! The remote takes all of them over to its new carrier (`adopt`), ground each that is asked for (`claim`).

use std::time::Duration;

use farhop_htotp::RequestHead;
use farhop_htotp::frame::{Class, Priority, Tunnel, Verdict};
use farhop_htotp::journal::{Hearing, Journal, Said};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Ask, Nature, Role, Session, code};

use crate::connection::Name;

use super::{Arrival, Incoming, KEPT, Slot, State};

/// The part of all that is kept that goes at a time.
const TRIMMED: usize = 64;

/// What lets an exchange or tunnel go on on another carrier.
pub(super) struct Kept {
    pub(super) nature: Nature,
    pub(super) journal: Journal,
    /// Remote: how it was asked for.
    pub(super) asked: Option<Asked>,
    /// Remote: the carrier that it was on before, as far as its name is known.
    pub(super) carrier: Option<Name>,
    /// It is on this carrier at both ends.
    pub(super) here: bool,
    /// Remote: ground has not said yet whether it goes on.
    pub(super) joining: bool,
    pub(super) tries: u8,
}

/// How the remote asked.
pub(super) enum Asked {
    Exchange(Ask, Box<RequestHead>),
    Tunnel(Tunnel),
}

impl Kept {
    /// Whether the other end has all that it needs of this one, and the other way round.
    pub(super) fn is_settled(&self, role: Role) -> bool {
        let heard = self.journal.hearing() == Hearing::Done;
        match (self.nature.goes_both_ways(), role) {
            (true, _) => heard && self.journal.is_confirmed(),
            (false, Role::Remote) => heard,
            (false, Role::Ground) => self.journal.is_confirmed(),
        }
    }
}

/// Says what the peer has not heard; false when the app should wait for room.
pub(super) fn say_again(
    session: &mut Session,
    now: Duration,
    id: StreamId,
    journal: &Journal,
    rest: &[Said],
) -> bool {
    let room = rest.iter().fold(true, |_, said| session.say(now, id, said));
    if journal.is_silenced() {
        session.abort(id);
    } else if journal.is_over() {
        // Of no effect where the end was among the rest.
        session.finish(now, id, None);
    }
    room
}

impl State {
    /// Begins to keep a stream, if it may go on on another carrier. Who took this one just before it ended may begin on it after
    /// all else has left, when nobody comes for what it has any more.
    pub(super) fn keep(&mut self, id: StreamId, asked: Option<Asked>) -> bool {
        let nature = self.session.nature(id).filter(|_| self.lasting && !self.given_up);
        let (Some(nature), Some(slot)) = (nature, self.slots.get_mut(&id)) else { return false };
        let hearing = if self.role == Role::Remote { Hearing::Head } else { Hearing::Body };
        let exchange = nature.exchange();
        let journal = Journal::new(hearing);
        slot.kept =
            Some(Kept { nature, journal, asked, carrier: None, here: true, joining: false, tries: 0 });
        self.exchanges.insert(exchange, id);
        true
    }

    /// The stream cannot go on on another carrier.
    pub(super) fn unkeep(&mut self, id: StreamId) {
        let kept = self.slots.get_mut(&id).and_then(|slot| slot.kept.take());
        if let Some(kept) = kept {
            self.discount(id, kept.nature.user());
            self.kept_bytes -= kept.journal.size();
            self.exchanges.remove(&kept.nature.exchange());
            self.spoiled = self.spoiled.max(Some(kept.nature.exchange()));
            if let Some(slot) = self.slots.get(&id) {
                // Whoever waits to be heard is told no more.
                slot.signals.writable.notify_waiters();
            }
            self.left.notify_waiters();
        }
    }

    /// Nothing of this carrier goes on on another.
    pub(super) fn give_up(&mut self) {
        self.given_up = true;
        let all: Vec<StreamId> = self.slots.keys().copied().collect();
        for id in all {
            self.unkeep(id);
            self.wake(id);
            self.sweep(id);
        }
        self.left.notify_waiters();
    }

    /// The carrier has ended, but the stream may go on.
    pub(super) fn is_adrift(&self, id: StreamId) -> bool {
        self.closed.is_some() && self.slots.get(&id).is_some_and(|slot| slot.kept.is_some())
    }

    /// Nothing that is said here is on its way before the stream has a carrier.
    pub(super) fn must_wait(&mut self, id: StreamId) -> bool {
        let joining = |slot: &Slot| slot.kept.as_ref().is_some_and(|kept| kept.joining);
        self.is_adrift(id)
            || self.slots.get(&id).is_some_and(|slot| slot.full || joining(slot))
            || self.is_crowded(id)
    }

    pub(super) fn reprioritize(&mut self, id: StreamId, priority: Priority) {
        self.session.reprioritize(id, priority);
        if let Some(kept) = self.slots.get_mut(&id).and_then(|slot| slot.kept.as_mut()) {
            kept.nature.set_priority(priority);
        }
    }

    pub(super) fn reclassify(&mut self, id: StreamId, class: Class) {
        self.session.reclassify(id, class);
        if let Some(kept) = self.slots.get_mut(&id).and_then(|slot| slot.kept.as_mut()) {
            kept.nature.set_class(class);
        }
    }

    /// A tunnel, or a flow of datagrams, has shown that it is of this class.
    pub(super) fn tell_class(&mut self, id: StreamId, class: Class) {
        self.session.tell_class(id, class);
        self.shown(id, class);
    }

    /// A tunnel is of this class, on whatever carrier.
    pub(super) fn shown(&mut self, id: StreamId, class: Class) {
        let Some(kept) = self.slots.get_mut(&id).and_then(|slot| slot.kept.as_mut()) else { return };
        kept.nature.show(class);
        if let Some(Asked::Tunnel(asked)) = &mut kept.asked {
            asked.class = class;
        }
    }

    /// Says something on a stream; false when the app should wait for room.
    pub(super) fn say(&mut self, now: Duration, id: StreamId, said: Said) -> bool {
        let waits = self.slots.get(&id).and_then(|slot| slot.kept.as_ref()).is_some_and(|kept| kept.joining);
        let room = if self.closed.is_some() || waits { true } else { self.session.say(now, id, &said) };
        self.note(id, |journal| journal.say(said));
        room
    }

    fn note(&mut self, id: StreamId, act: impl FnOnce(&mut Journal)) {
        let Some(kept) = self.slots.get_mut(&id).and_then(|slot| slot.kept.as_mut()) else { return };
        let others = self.kept_bytes - kept.journal.size();
        act(&mut kept.journal);
        self.kept_bytes = others + kept.journal.size();
        // What may be unread at the other end, and what waits here.
        self.bound(usize::try_from(self.tuner.parameters().unread.0 + KEPT).unwrap_or(usize::MAX));
        self.recount(id);
    }

    /// Keeps no more than `most` bytes. Of what is too much, those go first that cannot go on in any case, then the longest:
    /// the streams that nobody reads, and not whoever says something next.
    pub(super) fn bound(&mut self, most: usize) {
        while self.kept_bytes > most {
            let kept = self.slots.values_mut().filter_map(|slot| slot.kept.as_mut());
            let spare = kept.max_by_key(|kept| {
                let size = kept.journal.size();
                (kept.journal.has_forgotten() && size > 0, size)
            });
            let Some(Kept { journal, .. }) = spare else { return };
            // A little more, so that not all of them are looked at for each piece.
            let (before, much) = (journal.size(), self.kept_bytes - most + most / TRIMMED);
            journal.bound(before.saturating_sub(much));
            if journal.size() == before {
                return;
            }
            self.kept_bytes -= before - journal.size();
        }
    }

    /// Something has come on a stream, and need not be said again.
    pub(super) fn hear(&mut self, id: StreamId, arrival: &Arrival) {
        let Some(kept) = self.slots.get_mut(&id).and_then(|slot| slot.kept.as_mut()) else { return };
        let journal = &mut kept.journal;
        let bytes = match arrival {
            Arrival::Informed(_) => return journal.heard_head(false),
            Arrival::Answered { .. } | Arrival::TunnelOpened => return journal.heard_head(true),
            Arrival::Promised { .. }
            | Arrival::Validating(_)
            | Arrival::Urgent
            | Arrival::Trailers(_)
            | Arrival::Lost => return,
            // What one side gave up is over.
            Arrival::Reset(_) => return self.unkeep(id),
            Arrival::Body(bytes) => {
                journal.heard_bytes(bytes.len());
                bytes.len()
            }
            Arrival::Ended | Arrival::Failed(_) => {
                journal.heard_end();
                0
            }
        };
        // That a request is whole, its answer tells.
        if bytes > 0 || self.role == Role::Remote || kept.nature.goes_both_ways() {
            self.session.taken(kept.nature.exchange(), journal.heard(), bytes);
        }
    }

    /// The peer has heard a stream so far.
    pub(super) fn taken(&mut self, exchange: u64, position: u64) {
        self.taking = true;
        let Some(id) = self.exchanges.get(&exchange).copied() else { return };
        self.note(id, |journal| journal.confirm(position));
        if self.is_heard(id)
            && let Some(slot) = self.slots.get(&id)
        {
            slot.signals.writable.notify_waiters();
        }
        self.sweep(id);
    }

    /// Whether the peer has all bytes that were said on a stream, or never tells.
    pub(super) fn is_heard(&self, id: StreamId) -> bool {
        let kept = self.slots.get(&id).and_then(|slot| slot.kept.as_ref());
        kept.is_none_or(|kept| !kept.journal.owes_bytes())
    }

    /// The peer wants nothing of this side any more.
    pub(super) fn unwanted(&mut self, id: StreamId) {
        let one_answer = |kept: &Kept| !kept.nature.goes_both_ways();
        let answered = self.slots.get(&id).and_then(|slot| slot.kept.as_ref()).is_some_and(one_answer);
        if self.role == Role::Remote && answered {
            // An early answer makes the rest of an upload useless, and is still to come.
            self.note(id, Journal::silence);
        } else {
            self.unkeep(id);
        }
    }

    /// The receiver is dropped before all had come: whoever asked wants no more. Ground may answer what it did not read.
    pub(super) fn unread(&mut self, id: StreamId) {
        let goes_on = |kept: &Kept| self.role == Role::Ground && !kept.nature.goes_both_ways();
        if !self.slots.get(&id).and_then(|slot| slot.kept.as_ref()).is_some_and(goes_on) {
            self.unkeep(id);
        }
    }

    /// Whether a stream that neither handle looks at is needed no more.
    pub(super) fn is_settled(&self, slot: &Slot) -> bool {
        slot.kept.as_ref().is_none_or(|kept| kept.is_settled(self.role))
    }

    /// Takes a stream's slot out.
    pub(super) fn remove(&mut self, id: StreamId) -> Option<Slot> {
        let user = self.slots.get(&id)?.kept.as_ref().map(|kept| kept.nature.user());
        user.into_iter().for_each(|user| self.discount(id, user));
        self.crowded.remove(&id);
        let slot = self.slots.remove(&id)?;
        if let Some(kept) = &slot.kept {
            self.kept_bytes -= kept.journal.size();
            self.exchanges.remove(&kept.nature.exchange());
            self.left.notify_waiters();
        }
        Some(slot)
    }

    pub(super) fn insert(&mut self, id: StreamId, slot: Slot) {
        if let Some(kept) = &slot.kept {
            self.kept_bytes += kept.journal.size();
            self.exchanges.insert(kept.nature.exchange(), id);
        }
        self.slots.insert(id, slot);
        self.recount(id);
        if self.given_up {
            self.unkeep(id);
        }
    }

    /// Remote: ground's verdict on a stream.
    pub(super) fn rejoined(&mut self, now: Duration, id: StreamId, verdict: Verdict) {
        let State { slots, session, incoming, .. } = self;
        let rejoined = slots.get_mut(&id).and_then(|slot| {
            let kept = slot.kept.as_mut()?;
            let rest = match verdict {
                Verdict::GoesOn(position) => kept.journal.since(position)?,
                Verdict::NeverCame if kept.journal.heard() == 0 => {
                    let rest = kept.journal.since(0)?;
                    match kept.asked.as_ref()? {
                        Asked::Exchange(ask, head) => session.ask_again(now, id, *ask, head),
                        Asked::Tunnel(asked) => session.open_tunnel_again(id, asked),
                    }
                    rest
                }
                Verdict::NeverCame | Verdict::NotKept => return None,
            };
            (kept.here, kept.joining, kept.tries) = (true, false, 0);
            kept.nature.shown().into_iter().for_each(|class| session.tell_class(id, class));
            slot.full = !say_again(session, now, id, &kept.journal, &rest);
            incoming.push_back(Incoming::Rejoined { exchange: kept.nature.exchange() });
            Some(())
        });
        if rejoined.is_none() {
            self.unkeep(id);
            self.session.cancel(id, code::CANCELLED);
            if let Some(slot) = self.slots.get_mut(&id) {
                slot.stopped = true;
                slot.arrivals.push_back(Arrival::Lost);
            }
        }
        self.wake(id);
        self.sweep(id);
    }
}
