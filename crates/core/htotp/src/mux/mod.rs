//! Streams over a few ordered connections ("lanes"), for carriers over TCP: what QUIC does by itself. A stream keeps to
//! one lane, chosen by whoever opens it, so that nothing has to be put in order again; windows bound what
//! waits unread, per stream and in all. Pure: lanes are numbers, bytes come in and go out.
//!
//! ```text
//!  lanes ── add_lane/handle_input ─▶ Mux ── poll_event ─▶ driver ─▶ session
//!  lanes ◀───── poll_output ───────  Mux ◀─ open/write/reset/stop/read ── driver
//! ```
//! After any call: drain `poll_event`, then `poll_output` of each lane that takes bytes. An end is done with a
//! stream when [`Event::Gone`] says so. See docs/htotp.md, "Over TCP".

mod frame;
mod fuzz;
mod input;
mod output;
mod records;
mod stream;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use farhop_units::BitRate;

pub use frame::{Frame, FrameReader, LARGEST, MuxError, Windows, kind};
#[doc(hidden)]
pub use fuzz::fuzz;
use records::{Longest, Run};
use stream::{Ending, Incoming, Outgoing};

use crate::session::{Direction, Role, URGENT};

/// The most lanes that a carrier may have.
pub const MOST_LANES: usize = 8;

/// A stream of a carrier. As in RFC 9000 §2.1: the lowest bit says who opened it (1: ground), the next whether it
/// is one way, the others count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

impl Id {
    fn new(opener: Role, direction: Direction, count: u64) -> Id {
        Id(count << 2 | (direction as u64) << 1 | u64::from(opener == Role::Ground))
    }

    fn opener(self) -> Role {
        if self.0 & 1 == 0 { Role::Remote } else { Role::Ground }
    }

    /// Which way it carries bytes.
    pub fn direction(self) -> Direction {
        if self.0 & 2 == 0 { Direction::Both } else { Direction::One }
    }

    fn count(self) -> u64 {
        self.0 >> 2
    }
}

/// By what the streams of an end go to lanes. Each end decides for those that it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// To the lane with the fewest, in turn among equals.
    #[default]
    RoundRobin,
    /// The first lane is kept for what is [`URGENT`]; the rest go to the other lanes in turn.
    Priority,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The peer opened a stream.
    Opened(Id),
    /// [`Mux::read`] has something; it must be called until it has not, then or later.
    Readable(Id),
    /// The peer wants no more of this side; it should be reset.
    Stopped(Id, u64),
    /// All that was written on a stream has gone to its lane.
    Written(Id),
    /// Both sides are complete and nothing of the stream is left.
    Gone(Id),
    /// The peer ends the carrier.
    Closed {
        /// Its close code.
        code: u64,
        /// What it says.
        reason: String,
    },
}

/// What was read from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The next bytes.
    Data(Bytes),
    /// The side is complete.
    End,
    /// The peer gave it up.
    Reset(u64),
}

struct Stream {
    lane: usize,
    /// The peer knows of it.
    on_wire: bool,
    outgoing: Option<Outgoing>,
    incoming: Option<Incoming>,
    reset: Option<u64>,
    stop: Option<u64>,
}

#[derive(Default)]
struct Lane {
    reader: FrameReader,
    /// Streams assigned to it.
    streams: usize,
    /// Streams that have a word to say besides data.
    words: BTreeSet<Id>,
    /// Streams with something to send that their windows let go, most urgent first.
    ready: BTreeSet<Ready>,
    run: Run,
}

type Ready = (Reverse<i32>, u64, Id);

/// Streams of one direction: how many the peer has opened and completed, and may open.
#[derive(Default)]
struct Census {
    opened: u64,
    complete: u64,
    granted: u64,
}

/// See the module.
pub struct Mux {
    role: Role,
    windows: Windows,
    spread: Spread,
    longest: Longest,
    lanes: Vec<Lane>,
    next_lane: usize,
    streams: HashMap<Id, Stream>,
    /// This end's streams, by direction: so many were opened; so many may be on the wire.
    opened: [u64; 2],
    leave: [u64; 2],
    /// The peer's, by direction.
    census: [Census; 2],
    /// What the peer takes on a fresh stream, as far as is known.
    peer_window: u64,
    sent: u64,
    limit: u64,
    received: u64,
    read: u64,
    granted: u64,
    /// Words for any lane.
    tell_begin: bool,
    /// On the first lane, which need not be awaited.
    tell_windows: bool,
    tell_total: bool,
    tell_streams: bool,
    tell_close: Option<(u64, String)>,
    heard_begin: bool,
    closed: bool,
    turns: u64,
    events: VecDeque<Event>,
}

impl Mux {
    /// A carrier with its first lane, which takes `windows` unread.
    pub fn new(role: Role, windows: Windows) -> Self {
        let census = [windows.both, windows.one].map(|granted| Census { granted, ..Census::default() });
        Mux {
            role,
            windows,
            spread: Spread::default(),
            longest: Longest::UNKNOWN,
            lanes: vec![Lane::default()],
            next_lane: 0,
            streams: HashMap::new(),
            opened: [0; 2],
            leave: [Windows::LEAST.both, Windows::LEAST.one],
            census,
            peer_window: Windows::LEAST.stream,
            sent: 0,
            limit: Windows::LEAST.total,
            received: 0,
            read: 0,
            granted: windows.total,
            tell_begin: true,
            tell_windows: false,
            tell_total: false,
            tell_streams: false,
            tell_close: None,
            heard_begin: false,
            closed: false,
            turns: 0,
            events: VecDeque::new(),
        }
    }

    /// What this end takes unread now.
    pub fn windows(&self) -> Windows {
        self.windows
    }

    /// This end takes so much unread from now on, on a stream and on all; what was granted is not taken back.
    pub fn widen(&mut self, stream: u64, total: u64) {
        if stream <= self.windows.stream && total <= self.windows.total {
            return;
        }
        self.windows.stream = self.windows.stream.max(stream);
        self.windows.total = self.windows.total.max(total);
        // For streams to come; those that are open have begun with less.
        self.tell_windows = true;
        for (id, stream) in &self.streams {
            if stream.incoming.as_ref().is_some_and(|incoming| incoming.owes_word(self.windows.stream)) {
                self.lanes[stream.lane].words.insert(*id);
            }
        }
        self.credit(0);
    }

    /// This carrier, with streams that go to lanes by `spread`.
    #[must_use]
    pub fn spreading(self, spread: Spread) -> Self {
        Mux { spread, ..self }
    }

    /// The carrier's direction takes about `rate`: where that is much, and much is sent, it goes in longer records.
    pub fn fit(&mut self, rate: BitRate) {
        self.longest = Longest::at(rate);
    }

    /// Another lane has joined; gives its number.
    pub fn add_lane(&mut self) -> usize {
        self.lanes.push(Lane::default());
        self.lanes.len() - 1
    }

    /// Lanes so far.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Opens a stream. The peer hears of it with its first bytes.
    pub fn open(&mut self, direction: Direction) -> Id {
        let count = &mut self.opened[direction as usize];
        let id = Id::new(self.role, direction, *count);
        *count += 1;
        let lane = match self.spread {
            Spread::RoundRobin => self.least_used(0..self.lanes.len()),
            // Its first bytes show where it belongs.
            Spread::Priority => 0,
        };
        let incoming = (direction == Direction::Both).then(|| Incoming::new(self.windows.stream));
        self.insert(id, lane, false, Some(Outgoing::new(self.peer_window)), incoming);
        id
    }

    /// Of these lanes the one with the fewest streams, in turn among equals.
    fn least_used(&mut self, among: Range<usize>) -> usize {
        let (lanes, next) = (self.lanes.len(), self.next_lane);
        let after = |lane: usize| (lane + lanes - next) % lanes;
        let lane = among.min_by_key(|lane| (self.lanes[*lane].streams, after(*lane))).unwrap_or(0);
        self.next_lane = (lane + 1) % lanes;
        lane
    }

    /// Moves a stream that has written nothing yet to the lane where things of this priority go.
    fn place(&mut self, id: Id, priority: i32) {
        let Some(stream) = self.streams.get(&id).filter(|stream| !stream.on_wire) else { return };
        let has_written = stream.outgoing.as_ref().is_none_or(|outgoing| outgoing.turn > 0);
        let (from, lanes) = (stream.lane, self.lanes.len());
        if has_written || priority >= URGENT || lanes == 1 {
            return;
        }
        let to = self.least_used(1..lanes);
        self.lanes[from].streams -= 1;
        self.lanes[to].streams += 1;
        if self.lanes[from].words.remove(&id) {
            self.lanes[to].words.insert(id);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.lane = to;
        }
    }

    fn insert(
        &mut self,
        id: Id,
        lane: usize,
        on_wire: bool,
        outgoing: Option<Outgoing>,
        incoming: Option<Incoming>,
    ) {
        self.lanes[lane].streams += 1;
        self.streams.insert(id, Stream { lane, on_wire, outgoing, incoming, reset: None, stop: None });
    }

    /// Hands bytes of a stream over, which ends after them if `end`; [`Event::Written`] tells when they are gone. Higher
    /// `priority` goes first, then what was handed over earlier.
    pub fn write(&mut self, id: Id, segments: Vec<Bytes>, end: bool, priority: i32) {
        self.unready(id);
        if self.spread == Spread::Priority {
            self.place(id, priority);
        }
        self.turns += 1;
        let turn = self.turns;
        if let Some(outgoing) = self.streams.get_mut(&id).and_then(|stream| stream.outgoing.as_mut()) {
            outgoing.add(segments);
            outgoing.end |= end;
            outgoing.writing = true;
            (outgoing.priority, outgoing.turn) = (priority, turn);
        }
        self.ready(id);
    }

    /// Gives the sending side up; what has not gone is dropped.
    pub fn reset(&mut self, id: Id, code: u64) {
        self.unready(id);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.outgoing.take().is_some() {
            stream.reset = Some(code);
            self.lanes[stream.lane].words.insert(id);
        }
    }

    /// Wants no more of the peer's side; what waits is dropped.
    pub fn stop(&mut self, id: Id, code: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(incoming) = &mut stream.incoming else { return };
        let held = incoming.discard();
        incoming.stopped = true;
        if incoming.ending.is_some() {
            stream.incoming = None;
        } else {
            stream.stop = Some(code);
            self.lanes[stream.lane].words.insert(id);
        }
        self.credit(held);
        self.forget_if_done(id);
    }

    /// What has arrived on a stream next; `None` until [`Event::Readable`] comes again.
    pub fn read(&mut self, id: Id) -> Option<Read> {
        let stream = self.streams.get_mut(&id)?;
        let incoming = stream.incoming.as_mut().filter(|incoming| !incoming.stopped)?;
        if let Some(bytes) = incoming.take() {
            if incoming.owes_word(self.windows.stream) {
                self.lanes[stream.lane].words.insert(id);
            }
            self.credit(bytes.len() as u64);
            return Some(Read::Data(bytes));
        }
        incoming.told = false;
        let read = match incoming.ending? {
            Ending::Last => Read::End,
            Ending::Reset(code) => Read::Reset(code),
        };
        stream.incoming = None;
        self.forget_if_done(id);
        Some(read)
    }

    /// Bytes of all streams that have been read or dropped make room for others.
    fn credit(&mut self, bytes: u64) {
        self.read += bytes;
        self.tell_total |= self.read + self.windows.total - self.granted >= self.windows.total / 2;
    }

    /// Ends the carrier: the peer is told, and nothing more goes out.
    pub fn close(&mut self, code: u64, reason: &str) {
        self.tell_close = Some((code, reason.into()));
    }

    /// What happened, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Streams whose bytes wait for their lanes, not for their readers.
    pub fn waiting(&self) -> impl Iterator<Item = Id> {
        self.lanes.iter().flat_map(|lane| lane.ready.iter().map(|(.., id)| *id))
    }

    fn ready_key(&self, id: Id) -> Option<(usize, Ready)> {
        let stream = self.streams.get(&id)?;
        let outgoing = stream.outgoing.as_ref().filter(|outgoing| outgoing.is_ready())?;
        Some((stream.lane, (Reverse(outgoing.priority), outgoing.turn, id)))
    }

    /// Whether the peer lets this stream be on the wire.
    fn is_admitted(&self, id: Id) -> bool {
        id.opener() != self.role || id.count() < self.leave[id.direction() as usize]
    }

    fn ready(&mut self, id: Id) {
        if self.is_admitted(id)
            && let Some((lane, key)) = self.ready_key(id)
        {
            self.lanes[lane].ready.insert(key);
        }
    }

    fn unready(&mut self, id: Id) {
        if let Some((lane, key)) = self.ready_key(id) {
            self.lanes[lane].ready.remove(&key);
        }
    }

    /// Both sides are complete and the peer has been told all: nothing of the stream is needed any more.
    fn forget_if_done(&mut self, id: Id) {
        let Some(stream) = self.streams.get(&id) else { return };
        let over = stream.outgoing.is_none() && stream.incoming.is_none();
        if !over || stream.reset.is_some() {
            return;
        }
        let lane = &mut self.lanes[stream.lane];
        lane.streams -= 1;
        lane.words.remove(&id);
        self.streams.remove(&id);
        self.events.push_back(Event::Gone(id));
        if id.opener() != self.role {
            let at = id.direction() as usize;
            let most = [self.windows.both, self.windows.one][at];
            let census = &mut self.census[at];
            census.complete += 1;
            self.tell_streams |= census.complete + most - census.granted >= most / 2;
        }
    }
}
