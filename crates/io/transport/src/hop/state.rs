//! What is true of a hop's streams: how each begins, what of the session's events reaches its handles, and when its slot is free
//! again. Touched under the hop's lock alone.

use std::collections::VecDeque;
use std::sync::Arc;

use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::Event;
use tokio::time::Instant;

use super::attune;
use super::claim::Claim;
use super::line::Line;
use super::{
    Arrival, Closed, Incoming, READ_AHEAD, READ_AHEAD_OF_ALL, Receiver, Sender, Shared, Signals, Slot, State,
};

/// Pieces of a body shorter than this are joined while they wait.
pub(super) const SMALL: usize = 1024;

impl State {
    pub(super) fn add(&mut self, shared: &Arc<Shared>, id: StreamId) -> Arc<Line> {
        let signals = Arc::new(Signals::default());
        let line = Line::new(Arc::clone(shared), id, Arc::clone(&signals));
        let slot = Slot {
            unasked: false,
            arrivals: VecDeque::new(),
            buffered: 0,
            paused: false,
            unread: 0,
            signals,
            stopped: false,
            full: false,
            receiver_gone: false,
            sender_gone: false,
            line: Arc::downgrade(&line),
            kept: None,
        };
        self.slots.insert(id, slot);
        line
    }

    /// Drops a slot that neither handle looks at any more, and that no other carrier can have use for.
    pub(super) fn sweep(&mut self, id: StreamId) {
        if self.slots.get(&id).is_some_and(|slot| slot.is_let_go() && self.is_settled(slot)) {
            self.remove(id);
        }
    }

    /// Bytes of a stream that may wait for its reader.
    pub(super) fn read_ahead(&self) -> usize {
        (READ_AHEAD_OF_ALL / self.slots.len().max(1)).clamp(*READ_AHEAD.start(), *READ_AHEAD.end())
    }

    /// Whether so much of a stream waits that the carrier is not read for it, until its reader has made room.
    pub(super) fn pauses(&mut self, id: StreamId) -> bool {
        let (most, held_back) = (self.read_ahead(), self.session.held_back(id));
        let slot = self.slots.get_mut(&id);
        let pauses = slot.as_ref().map_or(0, |slot| slot.buffered) + held_back >= most;
        slot.into_iter().for_each(|slot| slot.paused = pauses);
        pauses
    }

    pub(super) fn deliver(&mut self, id: StreamId, arrival: Arrival) {
        self.hear(id, &arrival);
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| !slot.receiver_gone) else {
            return self.refuse_unread(&arrival);
        };
        slot.buffered += arrival.size();
        queue(&mut slot.arrivals, arrival);
        slot.signals.readable.notify_one();
    }

    /// A promise that nobody reads is not wanted: its push would wait for it for ever.
    pub(super) fn refuse_unread(&mut self, arrival: &Arrival) {
        if let Some(promise) = arrival.promise() {
            self.session.refuse_promises(promise..=promise);
        }
    }

    /// Turns the session's events into arrivals and incomings. Returns a reason to close.
    pub(super) fn dispatch(&mut self, shared: &Arc<Shared>) -> Option<Closed> {
        while let Some(event) = self.session.poll_event() {
            if self.closed.is_some() {
                // Whatever still comes may have been said anew on another carrier.
                continue;
            }
            match event {
                Event::Informed { stream, head } => self.deliver(stream, Arrival::Informed(head)),
                Event::Answered { stream, head, coding, resumed } => {
                    self.deliver(stream, Arrival::Answered { head, coding, resumed });
                }
                Event::Promised { stream, promise, priority, head } => {
                    self.deliver(stream, Arrival::Promised { promise, priority, head });
                }
                Event::Validating { stream, validating } => {
                    self.deliver(stream, Arrival::Validating(validating));
                }
                Event::Body { stream, bytes } => self.deliver(stream, Arrival::Body(bytes)),
                Event::Trailers { stream, fields } => self.deliver(stream, Arrival::Trailers(fields)),
                Event::Ended { stream } => self.deliver(stream, Arrival::Ended),
                Event::Failed { stream, failure } => self.deliver(stream, Arrival::Failed(failure)),
                Event::Reset { stream, code } => self.deliver(stream, Arrival::Reset(code)),
                Event::TunnelOpened { stream } => self.deliver(stream, Arrival::TunnelOpened),
                Event::Classed { stream, class } => self.shown(stream, class),
                Event::Urgent { stream } => self.deliver(stream, Arrival::Urgent),
                Event::Stopped { stream, .. } => {
                    self.unwanted(stream);
                    self.wake_writer(stream, true);
                }
                Event::Drained { stream } => self.wake_writer(stream, false),
                Event::Asked { stream, exchange, user, class, priority, resume, head } => {
                    let (sender, receiver) = self.begin(shared, stream, exchange);
                    self.incoming.push_back(Incoming::Exchange {
                        exchange,
                        user,
                        class,
                        priority,
                        resume,
                        head,
                        sender,
                        receiver,
                    });
                }
                Event::TunnelAsked { stream, asked } => {
                    let (sender, receiver) = self.begin(shared, stream, asked.tunnel);
                    self.incoming.push_back(Incoming::Tunnel { asked, sender, receiver });
                }
                Event::Pushed { stream, promise } => {
                    let line = self.add(shared, stream);
                    if let Some(slot) = self.slots.get_mut(&stream) {
                        (slot.unasked, slot.sender_gone) = (true, true);
                    }
                    let receiver = Receiver::new(line);
                    self.incoming.push_back(Incoming::Push { promise, receiver });
                }
                Event::Unwanted { promises } => self.incoming.push_back(Incoming::Unwanted { promises }),
                Event::Used { promises } => self.incoming.push_back(Incoming::Used { promises }),
                Event::AnsweredHere { page, entries } => {
                    self.incoming.push_back(Incoming::AnsweredHere { page, entries });
                }
                Event::Wanted { promise, priority } => {
                    self.incoming.push_back(Incoming::Wanted { promise, priority });
                }
                Event::Prepare { user, scheme, host, port } => {
                    self.incoming.push_back(Incoming::Prepare { user, scheme, host, port });
                }
                Event::Left { user, connection } => {
                    self.incoming.push_back(Incoming::Left { user, connection });
                }
                Event::Mirror(word) => self.incoming.push_back(Incoming::Mirror(word)),
                Event::Heard(position) => self.incoming.push_back(Incoming::Heard(position)),
                Event::Differ { of, buckets } => self.incoming.push_back(Incoming::Differ { of, buckets }),
                Event::Dictionary { hash, length } => {
                    self.incoming.push_back(Incoming::Dictionary { hash, length });
                }
                Event::Released { stream } => self.resume.push(stream),
                Event::Hello(hello) => self.incoming.push_back(Incoming::Hello(hello)),
                Event::Drain => self.incoming.push_back(Incoming::Drain),
                Event::Rejoin { stream, carrier, exchange, position } => {
                    let claim = Claim::new(Arc::clone(shared), stream, exchange, position);
                    self.incoming.push_back(Incoming::Rejoin { carrier, claim });
                }
                Event::Rejoined { stream, verdict } => self.rejoined(shared.now(), stream, verdict),
                Event::Taken { exchange, position } => self.taken(exchange, position),
                Event::Pong(rtt) => self.rtt = Some(rtt),
                Event::PathReported(report) => self.tuner.hear(attune::heard(report)),
                Event::Silent => {
                    shared.silent.send_replace(Some(Instant::now()));
                }
                Event::Back { .. } => {
                    shared.silent.send_replace(None);
                }
                Event::Dead => return Some(Closed::Silent),
                Event::Broken(error) => return Some(Closed::Broken(error.to_string())),
            }
        }
        if !self.incoming.is_empty() {
            shared.accept.notify_one();
        }
        None
    }

    pub(super) fn begin(&mut self, shared: &Arc<Shared>, id: StreamId, exchange: u64) -> (Sender, Receiver) {
        let line = self.add(shared, id);
        if !self.keep(id, None) {
            self.spoiled = self.spoiled.max(Some(exchange));
        }
        (Sender::new(Arc::clone(&line)), Receiver::new(line))
    }

    pub(super) fn wake_writer(&mut self, id: StreamId, stopped: bool) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.stopped |= stopped;
            slot.full = false;
            slot.signals.writable.notify_waiters();
        }
    }

    /// The carrier has ended: everyone is told, once.
    pub(super) fn close(&mut self, shared: &Shared, reason: Closed) {
        if self.closed.is_some() {
            return;
        }
        // Counted before their tasks hear of it and drop their handles.
        self.lost = self.slots.values().filter(|slot| !slot.unasked && !slot.is_let_go()).count() as u64;
        let may_go_on =
            matches!(reason, Closed::Lost(_) | Closed::Silent | Closed::Replaced | Closed::Unheard);
        (self.closed, self.ended) = (Some(reason), Some(Instant::now()));
        let all: Vec<StreamId> = self.slots.keys().copied().collect();
        all.into_iter().for_each(|id| self.wake(id));
        if !may_go_on || !self.lasting {
            self.give_up();
        }
        self.session.forget();
        shared.accept.notify_waiters();
        shared.accept.notify_one();
    }

    pub(super) fn wake(&self, id: StreamId) {
        if let Some(slot) = self.slots.get(&id) {
            slot.signals.readable.notify_one();
            slot.signals.writable.notify_waiters();
        }
    }
}

impl Slot {
    /// Neither handle is there any more.
    pub(super) fn is_let_go(&self) -> bool {
        self.receiver_gone && self.sender_gone
    }
}

/// Adds what arrives to what waits. A few bytes may be a view of the whole packet that they came in, and a body that trickles
/// past a slow reader would take many times what it counts for.
fn queue(arrivals: &mut VecDeque<Arrival>, arrival: Arrival) {
    match (arrivals.back_mut(), arrival) {
        (Some(Arrival::Body(last)), Arrival::Body(more)) if last.len() + more.len() <= SMALL => {
            *last = [&last[..], &more].concat().into();
        }
        (_, arrival) => arrivals.push_back(arrival),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_body_that_trickles_keeps_few_of_its_packets_and_all_of_its_bytes() {
        let packets: Vec<Bytes> = (0..5000).map(|number: u32| vec![number as u8; 1400].into()).collect();
        let mut arrivals = VecDeque::new();
        packets.iter().for_each(|packet| queue(&mut arrivals, Arrival::Body(packet.slice(..2))));
        queue(&mut arrivals, Arrival::Ended);
        assert!(packets.iter().filter(|packet| !packet.is_unique()).count() <= 1);
        assert_eq!(arrivals.pop_back(), Some(Arrival::Ended));
        let bytes: Vec<u8> = arrivals
            .iter()
            .flat_map(|arrival| match arrival {
                Arrival::Body(bytes) => bytes.to_vec(),
                other => panic!("{other:?}"),
            })
            .collect();
        let sent: Vec<u8> = packets.iter().flat_map(|packet| [packet[0]; 2]).collect();
        assert_eq!(bytes, sent);
    }
}
