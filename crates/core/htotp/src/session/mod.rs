//! One carrier's session as a pure state machine: streams in, events out.
//!
//! ```text
//!  carrier ── handle_opened/data/end/reset/stopped/written ─▶ Session ── poll_event ─▶ app
//!  carrier ◀──────────────── poll_transmit ──────────────────  Session ◀─ ask/answer/promise/push/write/finish ── app
//! ```
//! After any call: drain `poll_transmit` and `poll_event`, then sleep until `next_wakeup`.
//! The remote opens the control stream, exchanges and tunnels; ground opens pushes. A stream's first frame
//! says what it is. See docs/htotp.md.

mod event;
mod fuzz;
mod probe;
mod pushes;
mod receive;
mod rejoin;
mod send;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::fields::shelf::{Archive, Context, Kind as SectionKind, Shelf};
use crate::fields::{Lines, SectionLimit};
use crate::frame::{Class, Failure, Frame, FrameError, FrameReader, Hello, Priority, setting};
use crate::journal::Hearing;
use crate::scheduler::{Grant, Pace, Place, Scheduler, StreamId};

use event::rank;
pub use event::{Direction, Event, Transmit, URGENT, code};
#[doc(hidden)]
pub use fuzz::fuzz;
pub use probe::{Probe, repeat};
use pushes::{HeldBack, Promises};
pub use rejoin::Nature;
use rejoin::Taken;
pub use send::Ask;

/// The version this crate speaks.
pub const VERSION: u64 = 1;

/// Bytes of memory that what an app has queued on one stream may take before it has to wait for [`Event::Drained`].
pub const ROOM: usize = 64 * 1024;

/// Bytes that may wait, over all streams, for the rest of their frames: every stream of a full carrier in the
/// middle of a head of 4 KiB.
const MOST_UNFINISHED: usize = 16 << 20;

/// Bytes of the heads of all requests that ground has open, as sections count: a carrier full of streams, each with a
/// head of 8 KiB. What comes beyond is answered 503, since it may be one user's doing and the carrier is everyone's.
const MOST_HEADS: usize = 32 << 20;

/// Bytes that may wait on the control stream for a peer that does not read it; each head costs four at most.
const MOST_CONTROL: usize = 256 * 1024;

/// Which end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Beside the users.
    Remote,
    /// Near the internet.
    Ground,
}

/// What a session is set up with.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// What this end says of itself.
    pub hello: Hello,
    /// How fast this end writes.
    pub pace: Pace,
    /// How large heads may be.
    pub sections: SectionLimit,
    /// Liveness: how the remote probes, and after what silence either end takes the link for cut.
    pub probe: Probe,
    /// Ground: it remembers the mirror's log beyond the carrier, and says so and how far it has heard.
    pub keeps_log: bool,
    /// Ground: it makes use of being told which bodies the remote holds, and says so.
    pub bodies: bool,
    /// Ground: it makes use of being told of pages that the remote answers by itself, and says so.
    pub held_pages: bool,
    /// Remote: it undoes the codings that origins use, and deltas of several frames, and says so.
    pub undoes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Opened by the peer; its first frame will say.
    Unknown,
    Control,
    Exchange,
    Push,
    Tunnel,
    Mirror,
}

/// What may come next from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Head,
    Body,
    AfterTrailers,
    Raw,
    /// Ground has to say whether it goes on; then it does so here.
    Rejoining(Hearing),
    Done,
}

struct Stream {
    kind: Kind,
    direction: Direction,
    place: Place,
    reader: FrameReader,
    phase: Phase,
    /// This end still writes.
    writing: bool,
    /// The app has said its last: nothing may follow on the wire.
    finished: bool,
    /// The peer has stopped the stream before its own first frame was here; the app hears of both together.
    stopped: Option<u64>,
    /// Set while the app waits for room.
    full: bool,
    /// The exchange that it carries.
    exchange: Option<u64>,
    /// A tunnel whose bytes are framed, so that one can be marked as urgent.
    marked: bool,
    /// Scheme and authority of the request.
    origin: Bytes,
    /// The request asks for another protocol: 101 may answer it, and bytes go both ways from then on.
    upgrades: bool,
    /// What the next promise on this stream refers to: the request, then the promise before.
    base: Option<Arc<Lines>>,
    /// Its request's part in [`Session::heads`].
    head: usize,
    /// The promise that a push keeps.
    promise: Option<u64>,
    /// What has come of a push whose promise has not, from the first promise on it.
    held_back: Option<HeldBack>,
}

impl Stream {
    fn may_write(&self) -> bool {
        self.writing && !self.finished
    }
}

/// See the module.
pub struct Session {
    role: Role,
    config: Config,
    scheduler: Scheduler,
    shelf: Shelf,
    archive: Archive,
    streams: HashMap<StreamId, Stream>,
    promises: Promises,
    control: Option<StreamId>,
    /// It lasts as long as the carrier, like the control stream.
    mirror: Option<StreamId>,
    /// Ground: control frames from before the remote's control stream was here.
    early: Vec<Bytes>,
    /// The peer's hello is here.
    greeted: bool,
    /// Remote: ground takes marked tunnels.
    marks: bool,
    /// Remote: whether ground remembers the mirror's log, once it has said.
    log_kept: Option<bool>,
    /// Remote: ground makes use of being told which bodies are held.
    bodies: bool,
    /// Remote: ground makes use of being told of pages that are answered from what is held.
    held_pages: bool,
    /// The peer makes small headers whole again.
    small_headers: bool,
    /// Ground: the remote undoes the codings of origins.
    origins_codings: bool,
    /// Ground: the remote reads deltas of several frames.
    chained_deltas: bool,
    taken: Taken,
    /// Bytes kept by the readers of all streams.
    unfinished: usize,
    /// Ground: bytes of the heads of all open requests.
    heads: usize,
    events: VecDeque<Event>,
    transmits: VecDeque<Transmit>,
    probe: probe::State,
    next_stream: u64,
    broken: bool,
}

impl Session {
    /// A session over a carrier that has just come up.
    pub fn new(role: Role, config: Config, now: Duration) -> Self {
        let mut session = Session {
            role,
            scheduler: Scheduler::new(now, config.pace),
            probe: probe::State::new(config.probe, now),
            config,
            shelf: Shelf::default(),
            archive: Archive::default(),
            streams: HashMap::new(),
            promises: Promises::default(),
            control: None,
            mirror: None,
            early: Vec::new(),
            greeted: false,
            marks: false,
            log_kept: None,
            bodies: false,
            held_pages: false,
            small_headers: false,
            origins_codings: false,
            chained_deltas: false,
            taken: Taken::default(),
            unfinished: 0,
            heads: 0,
            events: VecDeque::new(),
            transmits: VecDeque::new(),
            next_stream: 0,
            broken: false,
        };
        if role == Role::Remote {
            let id = session.open(Kind::Control, Direction::Both, control_place());
            session.control = Some(id);
            session.introduce();
        }
        session
    }

    fn introduce(&mut self) {
        let mut hello = self.config.hello.clone();
        hello.versions = vec![VERSION];
        self.send_control(&Frame::Hello(hello));
        let mut settings = vec![(setting::SMALL_HEADERS, 1)];
        if self.role == Role::Remote {
            let undoes = [(setting::ORIGINS_CODINGS, 1), (setting::CHAINED_DELTAS, 1)];
            settings.extend(self.config.undoes.then_some(undoes).into_iter().flatten());
        } else {
            settings.push((setting::MARKED_TUNNELS, 1));
            settings.extend(self.config.bodies.then_some((setting::BODIES, 1)));
            settings.extend(self.config.keeps_log.then_some((setting::LOG_KEPT, 1)));
            settings.extend(self.config.held_pages.then_some((setting::HELD_PAGES, 1)));
        }
        self.send_control(&Frame::Settings(settings));
    }

    fn open(&mut self, kind: Kind, direction: Direction, place: Place) -> StreamId {
        let id = self.add(kind, direction, place, true);
        self.transmits.push_back(Transmit::Open(id, direction));
        id
    }

    fn add(&mut self, kind: Kind, direction: Direction, place: Place, local: bool) -> StreamId {
        let id = StreamId(self.next_stream);
        self.next_stream += 1;
        let (writing, phase) = match (direction, local) {
            (Direction::One, true) => (true, Phase::Done),
            (Direction::One, false) => (false, Phase::Head),
            (Direction::Both, _) => (true, Phase::Head),
        };
        let reader = FrameReader::default();
        let stream = Stream {
            kind,
            direction,
            place,
            reader,
            phase,
            writing,
            finished: false,
            stopped: None,
            full: false,
            exchange: None,
            marked: false,
            origin: Bytes::new(),
            upgrades: false,
            base: None,
            head: 0,
            promise: None,
            held_back: None,
        };
        self.streams.insert(id, stream);
        if writing {
            self.scheduler.open(id, place);
            self.watch(id, kind);
        }
        id
    }

    /// What nobody can say of a stream, how much it sends shows: tunnels both ways, and uploads.
    fn watch(&mut self, id: StreamId, kind: Kind) {
        if kind == Kind::Tunnel || (kind == Kind::Exchange && self.role == Role::Remote) {
            self.scheduler.watch(id);
        }
        if kind == Kind::Mirror {
            self.scheduler.exempt(id);
        }
    }

    fn context(user: u64, origin: Bytes, kind: SectionKind) -> Context {
        Context { user, origin, kind }
    }

    fn send_control(&mut self, frame: &Frame) {
        let Some(control) = self.control else { return self.early.push(frame.encode()) };
        self.scheduler.enqueue(control, frame.encode());
        if self.scheduler.queued(control) > MOST_CONTROL {
            self.break_off(FrameError::Unread);
        }
    }

    /// Ground: the remote's control stream is here, and what waited for it goes out.
    fn adopt_control(&mut self, id: StreamId) {
        self.control = Some(id);
        self.introduce();
        for frame in std::mem::take(&mut self.early) {
            self.scheduler.enqueue(id, frame);
        }
    }

    /// The peer opened a stream; gives the id by which the carrier names it from now on.
    pub fn handle_opened(&mut self, direction: Direction) -> StreamId {
        self.add(Kind::Unknown, direction, control_place(), false)
    }

    /// The carrier took everything of the last [`Transmit::Write`] of this stream.
    pub fn handle_written(&mut self, id: StreamId) {
        self.scheduler.written(id);
        self.forget_if_done(id);
    }

    /// The peer abandoned its side.
    pub fn handle_reset(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get(&id) else { return };
        if stream.kind == Kind::Control {
            return self.break_off(FrameError::Truncated);
        }
        if stream.kind == Kind::Unknown {
            // No app knows of it that could end this side.
            self.end_writing(id, code);
        } else {
            self.events.push_back(Event::Reset { stream: id, code });
        }
        self.end_reading(id);
        self.forget_if_done(id);
    }

    /// The peer wants no more of this side.
    pub fn handle_stopped(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.kind == Kind::Control {
            return self.break_off(FrameError::Truncated);
        }
        if stream.kind == Kind::Unknown {
            stream.stopped = Some(code);
        } else if stream.writing {
            self.events.push_back(Event::Stopped { stream: id, code });
        }
        self.end_writing(id, code);
        self.forget_if_done(id);
    }

    /// Abandons the sending side, if it is not complete.
    fn end_writing(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.writing) else { return };
        stream.writing = false;
        self.scheduler.close(id);
        self.transmits.push_back(Transmit::Reset(id, code));
    }

    /// Nothing of the peer's side is looked at any more.
    fn end_reading(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.phase = Phase::Done;
        self.unfinished -= std::mem::take(&mut stream.reader).held();
        self.unfinished -= stream.held_back.take().map_or(0, |held| held.size());
    }

    /// The carrier has received something, whatever it was.
    pub fn handle_activity(&mut self, now: Duration) {
        let (silence, was_silent) = self.probe.heard(now);
        if was_silent {
            self.events.push_back(Event::Back { silence });
        }
    }

    /// The carrier has measured the round trip of the empty path, which says how often a silent peer is probed.
    pub fn handle_round_trip(&mut self, round_trip: Duration) {
        self.probe.measured(round_trip);
    }

    /// The peer has sent a probe: it hears nothing, so what was under way to it is probably lost. The remote is the one
    /// that asks; ground asks back, so that its own carrier learns of it too.
    pub fn handle_probe(&mut self) {
        if self.role == Role::Ground {
            self.transmits.push_back(Transmit::Probe);
        }
    }

    /// How long nothing was heard of the peer.
    pub fn silence(&self, now: Duration) -> Duration {
        self.probe.silence(now)
    }

    /// Nothing was heard for so long, with something under way, that the link is taken for cut.
    pub fn is_overdue(&self, now: Duration) -> bool {
        self.is_active() && self.probe.is_overdue(now)
    }

    /// What the carrier has to do next.
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Transmit> {
        if self.broken {
            return None;
        }
        while let Some(id) = self.shelf.poll_retired() {
            self.send_control(&Frame::Retire(id));
        }
        self.run_probe(now);
        self.run_taken(now);
        if let Some(transmit) = self.transmits.pop_front() {
            return Some(transmit);
        }
        if let Some(datagram) = self.scheduler.poll_datagram(now) {
            return Some(Transmit::Datagram(datagram));
        }
        let Some(grant) = self.scheduler.poll_grant(now) else {
            // A stream that stood before a datagram may have been put aside.
            return self.scheduler.poll_datagram(now).map(Transmit::Datagram);
        };
        let id = grant.stream;
        let priority = self.scheduler.rank(id).map_or(0, |(class, urgency)| rank(class, urgency));
        if let Some(stream) = self.streams.get_mut(&id) {
            if grant.end {
                stream.writing = false;
            }
            if stream.full && self.scheduler.held(id) < ROOM / 2 {
                stream.full = false;
                self.events.push_back(Event::Drained { stream: id });
            }
        }
        let Grant { stream, segments, end, drains } = grant;
        Some(Transmit::Write { stream, segments, end, priority, drains })
    }

    /// The carrier is full of writes of these streams, the most urgent of which sets what may still be added; none
    /// means that it has room.
    pub fn set_full(&mut self, by: impl Iterator<Item = StreamId>) {
        let floor = by.filter_map(|id| self.scheduler.rank(id)).min();
        self.scheduler.set_floor(floor);
    }

    /// What keeps datagrams back: streams of the class of `floor` that the carrier is full of, and whether it has room for more.
    pub fn hold_datagrams(&mut self, floor: Option<Class>, has_room: bool) {
        self.scheduler.hold_datagrams(floor, has_room);
    }

    /// What happened, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When `poll_transmit` has to be called again though nothing happened.
    pub fn next_wakeup(&self, now: Duration) -> Option<Duration> {
        let probe = (self.role == Role::Remote).then(|| self.probe.next_wakeup(self.is_watched(now)));
        [self.scheduler.next_wakeup(now), probe, self.taken.due()].into_iter().flatten().min()
    }

    /// True while exchanges or tunnels are open.
    pub fn is_active(&self) -> bool {
        let lasting = usize::from(self.control.is_some()) + usize::from(self.mirror.is_some());
        self.streams.len() > lasting
    }

    /// True while the carrier is watched closely: something is open, or was a short while ago.
    pub fn is_watched(&self, now: Duration) -> bool {
        self.is_active() || self.probe.is_recent(now)
    }

    fn run_probe(&mut self, now: Duration) {
        if self.role != Role::Remote {
            return;
        }
        if self.is_active() {
            self.probe.used(now);
        }
        match self.probe.poll(now, self.is_watched(now)) {
            Some(probe::Action::Ping(token)) => {
                self.tell_taken();
                self.send_control(&Frame::Ping(token));
            }
            Some(probe::Action::Probe) => self.transmits.push_back(Transmit::Probe),
            Some(probe::Action::Silent) => self.events.push_back(Event::Silent),
            Some(probe::Action::Dead) => self.events.push_back(Event::Dead),
            None => {}
        }
    }

    /// The carrier has ended: nothing that only it could use is kept.
    pub fn forget(&mut self) {
        (self.shelf, self.archive) = (Shelf::default(), Archive::default());
        self.promises = Promises::default();
    }

    fn break_off(&mut self, error: FrameError) {
        if !self.broken {
            self.broken = true;
            self.events.push_back(Event::Broken(error));
        }
    }

    /// Both sides are complete: nothing of the stream is needed any more.
    fn forget_if_done(&mut self, id: StreamId) {
        let done = self.streams.get(&id).is_some_and(|stream| stream.phase == Phase::Done && !stream.writing);
        if done && let Some(stream) = self.streams.remove(&id) {
            self.mirror.take_if(|mirror| *mirror == id);
            self.heads -= stream.head;
            self.forget_push(&stream);
            self.scheduler.close(id);
        }
    }
}

/// What the bytes of a tunnel are worth nobody knows: those of one user take turns, so that a download in one leaves the
/// others alive.
fn tunnel_priority() -> Priority {
    Priority { incremental: true, ..Priority::default() }
}

/// Control frames and streams that have not said what they are.
fn control_place() -> Place {
    Place {
        class: Class::Expedited,
        user: 0,
        priority: Priority { urgency: 0, incremental: false },
        asked: true,
    }
}

/// A failure in one line for people.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.status, self.token, self.detail)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_input_is_too_much(data in proptest::collection::vec(any::<u8>(), 0..600)) {
            super::fuzz(&data);
        }
    }
}
