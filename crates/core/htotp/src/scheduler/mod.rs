//! The one scheduler that all writes to a carrier pass: by class, then user (deficit round
//! robin with weights), then render priority (RFC 9218), and never more than [`Pace::ahead`] of link time before the
//! link could have taken it, so that a more urgent byte never waits behind a backlog. What sends on and on among pages loses
//! its place there until it pauses: first among its user's own, then its class.
//!
//! Datagrams of flows stand among the streams, each flow like one. Where many speak on a slow link, speech waits a moment for other
//! speech, to share a packet with it.
//!
//! Calling order: `open` → `enqueue`/`finish` → `poll_grant` (marks the stream busy) → `written` (the carrier
//! took it all) → … → `close`; `push` → `poll_datagram`. Who is next decides which of the two gives something. `next_wakeup` says
//! when a grant that the pace held back is due.

mod ceilings;
mod flows;
mod gathering;
mod pace;
mod sending;
mod spree;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use farhop_units::{BitRate, Bytes as ByteCount};

use crate::frame::{Class, Priority, data_header};

use ceilings::Ceilings;
use flows::Flows;
pub use flows::MOST_WAITING;
use gathering::Gathering;
use pace::Allowance;
pub use pace::{CALM, PAYLOAD_SHARE, Pace};
use sending::Held;
use spree::{Spree, Stage};
use turns::{Key, Turns, Who};

/// A stream of one session; the driver maps it to the carrier's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// What a segment that waits takes besides its bytes.
const SEGMENT: usize = 128;
/// Bytes of data that wait in one frame rather than in several.
const SMALL: usize = 512;

/// Where a stream stands in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Class, served before the next.
    pub class: Class,
    /// Users of a class share fairly.
    pub user: u64,
    /// Render priority within a user.
    pub priority: Priority,
    /// Someone waits for it: goes ahead of what was pushed unasked with the same urgency.
    pub asked: bool,
}

/// Bytes that may go to the carrier now.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose.
    pub stream: StreamId,
    /// In order; possibly none when only the end is due.
    pub segments: Vec<Bytes>,
    /// The stream ends after these.
    pub end: bool,
    /// Nothing more of it waits.
    pub drains: bool,
}

struct Queue {
    /// Where it was put.
    place: Place,
    /// How far its spree has gone, which changes where it stands.
    stage: Stage,
    spree: Spree,
    /// Creation order; once a stretch is over, or of an incremental stream each grant, the order of that.
    turn: u64,
    /// Bytes granted since then.
    granted: u64,
    segments: VecDeque<Bytes>,
    /// The last two are a frame of data, its header and what it carries.
    grows: bool,
    queued: usize,
    end: bool,
    busy: bool,
    /// No ceiling holds for it.
    is_exempt: bool,
}

impl Queue {
    fn is_ready(&self) -> bool {
        !self.busy && (self.queued > 0 || self.end)
    }

    /// Where it stands.
    fn stands(&self) -> Place {
        self.stage.place(self.place)
    }

    fn key(&self, id: StreamId) -> Key {
        let place = self.stands();
        (place.priority.urgency, !place.asked, self.turn, Who::Stream(id))
    }
}

/// See the module.
pub struct Scheduler {
    allowance: Allowance,
    streams: HashMap<StreamId, Queue>,
    turns: Turns,
    /// Turns taken so far.
    turn: u64,
    /// Streams that had nothing to send for a while, perhaps for so long that their spree is over.
    woken: Vec<StreamId>,
    /// While the carrier is full only what is more urgent than this is granted.
    floor: Option<(Class, u8)>,
    flows: Flows,
    held: Held,
    gathering: Gathering,
    ceilings: Ceilings,
    /// The last time that it was told.
    now: Duration,
}

impl Scheduler {
    /// A scheduler that starts with a full allowance.
    pub fn new(now: Duration, pace: Pace) -> Self {
        Scheduler {
            allowance: Allowance::new(now, pace),
            streams: HashMap::new(),
            turns: Turns::default(),
            turn: 0,
            woken: Vec::new(),
            floor: None,
            flows: Flows::default(),
            held: Held::default(),
            gathering: Gathering::default(),
            ceilings: Ceilings::default(),
            now,
        }
    }

    /// Changes the pace.
    pub fn set_pace(&mut self, now: Duration, pace: Pace) {
        self.allowance.set_pace(now, pace);
    }

    /// All that was given out so far, streams and datagrams, as the pace counts it: [`PAYLOAD_SHARE`] of what that takes on the link.
    pub fn handed_out(&self) -> ByteCount {
        ByteCount(self.allowance.handed())
    }

    /// The link takes about this much, whether or not a rate is kept to.
    pub fn set_about(&mut self, rate: BitRate) {
        self.allowance.pace.about = Some(rate);
    }

    /// What `user` has of each class, in hundredths of what each of the others has: from 1 to 10,000.
    pub fn set_weight(&mut self, user: u64, hundredths: u32) {
        self.turns.set_weight(user, hundredths);
    }

    /// What these classes never exceed from now on, whatever is left over; others have no ceiling.
    pub fn set_ceilings(&mut self, now: Duration, ceilings: &[(Class, BitRate)]) {
        self.now = self.now.max(now);
        self.ceilings.set(now, ceilings);
    }

    /// No ceiling holds for this stream: what the ends tell each other is nobody's traffic.
    pub fn exempt(&mut self, id: StreamId) {
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.is_exempt = true;
        }
    }

    /// Nobody knows what this stream carries: it is told by how much that is.
    pub fn watch(&mut self, id: StreamId) {
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.spree.is_unknown = true;
        }
    }

    /// The carrier is full of writes of this rank (`None`: it has room): until that changes only what is more urgent
    /// is granted, since a carrier serves the writes that wait for it in no order.
    pub fn set_floor(&mut self, floor: Option<(Class, u8)>) {
        self.floor = floor;
    }

    /// Class and urgency that a stream has now.
    pub fn rank(&self, id: StreamId) -> Option<(Class, u8)> {
        let place = self.streams.get(&id)?.stands();
        Some((place.class, place.priority.urgency))
    }

    /// A stream will write.
    pub fn open(&mut self, id: StreamId, place: Place) {
        self.turn += 1;
        let queue = Queue {
            place,
            stage: Stage::default(),
            spree: Spree::default(),
            turn: self.turn,
            granted: 0,
            segments: VecDeque::new(),
            grows: false,
            queued: 0,
            end: false,
            busy: false,
            is_exempt: false,
        };
        self.streams.insert(id, queue);
    }

    /// Moves a stream to another place; what it has queued moves along.
    pub fn replace(&mut self, id: StreamId, place: Place) {
        self.unready(id);
        self.go(id);
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.place = place;
        }
        self.ready(id);
    }

    /// Adds bytes to the end of a stream.
    pub fn enqueue(&mut self, id: StreamId, bytes: Bytes) {
        if let Some(queue) = self.streams.get_mut(&id) {
            if queue.queued == 0 && !bytes.is_empty() && queue.spree.has_begun() {
                self.woken.push(id);
            }
            queue.queued += bytes.len();
            queue.segments.push_back(bytes);
            queue.grows = false;
        }
        self.ready(id);
    }

    /// Adds a frame of data, or to the one that waits last while that stays small: a body that comes byte by byte would cost
    /// a header for each.
    pub fn enqueue_data(&mut self, id: StreamId, mut data: Bytes) {
        if let Some(queue) = self.streams.get_mut(&id)
            && queue.grows
            && let Some(last) = queue.segments.pop_back_if(|last| last.len() + data.len() <= SMALL)
        {
            let header = queue.segments.pop_back().map_or(0, |header| header.len());
            queue.queued -= header + last.len();
            data = [&last[..], &data].concat().into();
        }
        self.enqueue(id, data_header(data.len()));
        self.enqueue(id, data);
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.grows = true;
        }
    }

    /// The stream ends after what is queued.
    pub fn finish(&mut self, id: StreamId) {
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.end = true;
        }
        self.ready(id);
    }

    /// Bytes not yet handed to the carrier.
    pub fn queued(&self, id: StreamId) -> usize {
        self.streams.get(&id).map_or(0, |queue| queue.queued)
    }

    /// Bytes of memory that these take, about: a body in very small pieces takes many times its length.
    pub fn held(&self, id: StreamId) -> usize {
        self.streams.get(&id).map_or(0, |queue| queue.queued + queue.segments.len() * SEGMENT)
    }

    /// The carrier has taken the last grant of this stream.
    pub fn written(&mut self, id: StreamId) {
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.busy = false;
            if !queue.is_ready() {
                self.go(id);
            }
        }
        self.ready(id);
    }

    /// Forgets a stream and what it has queued.
    pub fn close(&mut self, id: StreamId) {
        self.unready(id);
        self.go(id);
        self.streams.remove(&id);
    }

    fn ready(&mut self, id: StreamId) {
        let Some(queue) = self.streams.get(&id).filter(|queue| queue.is_ready()) else { return };
        let place = queue.stands();
        if !queue.is_exempt && self.ceilings.is_used_up(self.now, place.class) {
            return self.ceilings.put_aside(Who::Stream(id));
        }
        self.turns.insert(place.class, place.user, queue.key(id), self.allowance.pace.piece());
    }

    /// Gives what its user has left of a turn, where nothing else of the user's is ready.
    fn unready(&mut self, id: StreamId) -> Option<i64> {
        self.ceilings.forget(Who::Stream(id));
        let queue = self.streams.get(&id)?;
        let place = queue.stands();
        self.turns.remove(place.class, place.user, queue.key(id))
    }

    /// Its user has nothing to come back with.
    fn go(&mut self, id: StreamId) {
        if let Some(place) = self.streams.get(&id).map(Queue::stands) {
            self.turns.go(place.class, place.user);
        }
    }

    /// The bytes to write next, if any are queued and the pace allows.
    pub fn poll_grant(&mut self, now: Duration) -> Option<Grant> {
        self.now = self.now.max(now);
        self.allowance.refill(now);
        self.end_sprees(now);
        self.take_back(now);
        // What keeps the carrier alive does not wait for the pace (it still pays).
        let (class, urgency, Who::Stream(id)) = self.next_below_ceiling(now)? else { return None };
        if self.allowance.is_used_up() && class != Class::Expedited {
            return None;
        }
        if self.floor.is_some_and(|floor| (class, urgency) >= floor) {
            return None;
        }
        Some(self.grant(now, id))
    }

    /// Those whose class may send again stand among the others, and those who have waited for others.
    fn take_back(&mut self, now: Duration) {
        self.gathering.end(now).into_iter().for_each(|number| self.ready_flow(number));
        let (streams, flows) = (&self.streams, &self.flows);
        let back = self.ceilings.take_back(now, |who| class_of(streams, flows, who));
        back.into_iter().for_each(|who| match who {
            Who::Stream(id) => self.ready(id),
            Who::Flow(number) => self.ready_flow(number),
        });
    }

    /// Whoever is next; those whose class has had what it may stand aside from now on.
    fn next_below_ceiling(&mut self, now: Duration) -> Option<(Class, u8, Who)> {
        loop {
            let next = self.next_up()?;
            let (class, _, who) = next;
            let is_exempt = match who {
                Who::Stream(id) => self.streams.get(&id).is_none_or(|queue| queue.is_exempt),
                Who::Flow(_) => false,
            };
            if is_exempt || !self.ceilings.is_used_up(now, class) {
                return Some(next);
            }
            match who {
                Who::Stream(id) => self.unready(id),
                Who::Flow(number) => self.unready_flow(number),
            };
            self.ceilings.put_aside(who);
        }
    }

    /// What begins to send after a pause is at its place again.
    fn end_sprees(&mut self, now: Duration) {
        for id in std::mem::take(&mut self.woken) {
            if self.streams.get_mut(&id).is_some_and(|queue| queue.spree.goes_on(now)) {
                self.stand(id, Stage::Short);
            }
        }
    }

    fn stand(&mut self, id: StreamId, stage: Stage) {
        self.unready(id);
        if let Some(queue) = self.streams.get_mut(&id) {
            queue.stage = stage;
        }
        self.ready(id);
    }

    fn grant(&mut self, now: Duration, id: StreamId) -> Grant {
        let pace = self.allowance.pace;
        let mut grant = Grant { stream: id, segments: Vec::new(), end: false, drains: true };
        let limited =
            self.streams.get(&id).filter(|queue| !queue.is_exempt).map(|queue| queue.stands().class);
        let piece = limited.map_or(usize::MAX, |class| self.ceilings.piece(class)).min(pace.piece());
        let size = self.streams.get(&id).map_or(0, |queue| queue.queued.min(piece));
        if let Some(place) = self.streams.get(&id).map(Queue::stands) {
            self.turns.charge(place.class, place.user, size);
        }
        if let Some(class) = limited {
            self.ceilings.take(class, size);
        }
        let left = self.unready(id);
        if let Some(queue) = self.streams.get_mut(&id) {
            let mut wanted = size;
            while wanted > 0 {
                let Some(mut segment) = queue.segments.pop_front() else { break };
                if segment.len() > wanted {
                    queue.segments.push_front(segment.split_off(wanted));
                }
                wanted -= segment.len();
                grant.segments.push(segment);
            }
            // Of two that are left the header may be in part.
            queue.grows &= queue.segments.len() > 2;
            queue.queued -= size;
            grant.drains = queue.queued == 0;
            queue.busy = true;
            if queue.queued == 0 && queue.end {
                queue.end = false;
                grant.end = true;
            }
            queue.granted += size as u64;
            if queue.place.priority.incremental || queue.granted >= pace.stretch() {
                self.turn += 1;
                (queue.turn, queue.granted) = (self.turn, 0);
            }
            // It is busy, and so stands nowhere: the next time it is ready it stands where this leads.
            queue.stage = queue.spree.sent(now, size as u64, pace.known());
            let place = queue.stands();
            if let Some(left) = left {
                self.turns.keep(place.class, place.user, left);
            }
        }
        self.allowance.take(size);
        self.held.streams_sent(size, pace.piece());
        grant
    }

    /// When the pace allows the next grant; `None` when nothing waits for it.
    pub fn next_wakeup(&self, now: Duration) -> Option<Duration> {
        let aside = self.ceilings.next_wakeup(now, |who| class_of(&self.streams, &self.flows, who));
        let aside = [aside, self.gathering.next_wakeup()].into_iter().flatten().min();
        if !self.is_any_admitted() {
            // A full carrier says when it has room again; asking it over and over would spin.
            return aside;
        }
        [self.allowance.next_wakeup(now), aside].into_iter().flatten().min()
    }

    /// Bytes queued over all streams.
    pub fn backlog(&self) -> ByteCount {
        ByteCount(self.streams.values().map(|queue| queue.queued as u64).sum())
    }
}

/// The class in which it stands.
fn class_of(streams: &HashMap<StreamId, Queue>, flows: &Flows, who: Who) -> Option<Class> {
    match who {
        Who::Stream(id) => streams.get(&id).map(|queue| queue.stands().class),
        Who::Flow(number) => flows.flow(number).map(|flow| flow.stands().class),
    }
}
