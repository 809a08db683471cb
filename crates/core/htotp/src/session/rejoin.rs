//! Exchanges and tunnels that go on on another carrier than they began on, at both ends. The remote names what it wants to
//! go on with; ground says whether it can. What was said and not heard is in the app's [`crate::journal`]; here is how it
//! crosses, and how each end tells the other that it need not keep what has come.
//!
//! ```text
//!  remote                     ground
//!  rejoin ─── REJOIN ──────▶ Event::Rejoin
//!  Event::Rejoined ◀──────── accept_rejoin | refuse_rejoin
//!  say … ◀────────────────▶  say …
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::event::{Direction, Event, code};
use super::receive::tunnel_phase;
use super::{Kind, Phase, Role, Session};
use crate::frame::{Class, Frame, FrameError, Priority, Verdict};
use crate::journal::{Hearing, Said};
use crate::scheduler::{Place, StreamId};

/// The peer is told what need not be kept, and what it has room for again, after so many bytes, or
const TAKEN_BYTES: usize = 128 * 1024;
/// so many streams, or with the next ping, or
const TAKEN_STREAMS: usize = 32;
/// after so long.
const TAKEN_DELAY: Duration = Duration::from_millis(200);

/// What a stream is, for as long as it lasts, on whatever carrier.
#[derive(Debug, Clone)]
pub struct Nature {
    kind: Kind,
    exchange: u64,
    place: Place,
    marked: bool,
    origin: Bytes,
    upgrades: bool,
    /// The class that it has shown to be of since it was asked for.
    shown: Option<Class>,
}

impl Nature {
    /// A tunnel, or an exchange that asks for another protocol: each side goes on when the other has ended.
    pub fn goes_both_ways(&self) -> bool {
        self.kind == Kind::Tunnel || self.upgrades
    }

    /// Whose it is.
    pub fn user(&self) -> u64 {
        self.place.user
    }

    /// Its number at both ends.
    pub fn exchange(&self) -> u64 {
        self.exchange
    }

    /// The stream was moved to another render priority.
    pub fn set_priority(&mut self, priority: Priority) {
        self.place.priority = priority;
    }

    /// The stream, which counted as a page, was moved to another class.
    pub fn set_class(&mut self, class: Class) {
        if self.place.class == Class::Web {
            self.place.class = class;
        }
    }

    /// The tunnel has shown that it is of this class.
    pub fn show(&mut self, class: Class) {
        (self.place.class, self.shown) = (class, Some(class));
    }

    /// Which class it has shown to be of since it was asked for. Where that was said on another carrier it may not have arrived.
    pub fn shown(&self) -> Option<Class> {
        self.shown
    }
}

/// What the peer is still to be told that it has come.
#[derive(Default)]
pub(super) struct Taken {
    positions: BTreeMap<u64, u64>,
    bytes: usize,
    /// When it is told at the latest; not set yet where what has come is new.
    due: Option<Duration>,
}

impl Taken {
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }
}

impl Session {
    /// What an exchange or tunnel is.
    pub fn nature(&self, id: StreamId) -> Option<Nature> {
        let stream = self.streams.get(&id)?;
        let is_lasting = matches!(stream.kind, Kind::Exchange | Kind::Tunnel);
        let exchange = stream.exchange.filter(|_| is_lasting)?;
        Some(Nature {
            kind: stream.kind,
            exchange,
            place: stream.place,
            marked: stream.marked,
            origin: stream.origin.clone(),
            upgrades: stream.upgrades,
            shown: None,
        })
    }

    /// Remote: asks for what was under way on the carrier of that name, and of which ground's side has been heard up to
    /// `heard`. Nothing is said on it before [`Event::Rejoined`].
    pub fn rejoin(&mut self, nature: &Nature, carrier: u64, heard: u64, hearing: Hearing) -> StreamId {
        let id = self.open(nature.kind, Direction::Both, nature.place);
        self.become_again(id, nature, Phase::Rejoining(hearing));
        let frame = Frame::Rejoin { carrier, exchange: nature.exchange, position: heard };
        self.scheduler.enqueue(id, frame.encode());
        id
    }

    /// Ground: goes on with it on this stream; `heard` and `hearing` tell how far the remote's side has come. What the
    /// remote has not heard follows by [`Session::say`]. False when the remote has given the stream up meanwhile.
    pub fn accept_rejoin(&mut self, id: StreamId, nature: &Nature, heard: u64, hearing: Hearing) -> bool {
        if !self.is_rejoining(id) {
            return false;
        }
        self.become_again(id, nature, phase(nature.kind, nature.marked, hearing));
        self.scheduler.replace(id, nature.place);
        self.watch(id, nature.kind);
        self.scheduler.enqueue(id, Frame::Rejoined(Verdict::GoesOn(heard)).encode());
        true
    }

    /// Ground: does not. After [`Verdict::NeverCame`] the remote may begin anew on the same stream.
    pub fn refuse_rejoin(&mut self, id: StreamId, verdict: Verdict) {
        if !self.is_rejoining(id) {
            return;
        }
        self.scheduler.enqueue(id, Frame::Rejoined(verdict).encode());
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if verdict == Verdict::NeverCame {
            (stream.kind, stream.phase) = (Kind::Unknown, Phase::Head);
        } else {
            stream.finished = true;
            self.scheduler.finish(id);
            self.stop(id, code::CANCELLED);
        }
    }

    /// Says something of an answer, a body or a tunnel. Returns false when the app should wait for [`Event::Drained`].
    pub fn say(&mut self, now: Duration, id: StreamId, said: &Said) -> bool {
        match said {
            Said::Informed(head) => self.inform(now, id, head),
            Said::Answered { head, coding, resumed } => self.answer(now, id, head, *coding, *resumed),
            Said::Opened => self.accept_tunnel(id),
            Said::Bytes(bytes) => return self.write(id, bytes.clone()),
            Said::Urgent => self.mark(id),
            Said::Ended(trailers) => self.finish(now, id, trailers.as_ref()),
            Said::Failed(failure) => self.fail(id, failure.clone()),
        }
        true
    }

    /// The peer's side of `exchange` has come up to `position`, by so many bytes more.
    pub fn taken(&mut self, exchange: u64, position: u64, bytes: usize) {
        self.taken.positions.insert(exchange, position);
        self.taken.bytes += bytes;
        if self.taken.bytes >= TAKEN_BYTES || self.taken.positions.len() >= TAKEN_STREAMS {
            self.tell_taken();
        }
    }

    pub(super) fn tell_taken(&mut self) {
        let Taken { positions, .. } = std::mem::take(&mut self.taken);
        if !positions.is_empty() {
            self.send_control(&Frame::Taken(positions.into_iter().collect()));
        }
    }

    /// Tells what has waited for long enough to be told.
    pub(super) fn run_taken(&mut self, now: Duration) {
        if self.taken.positions.is_empty() {
            return;
        }
        match self.taken.due {
            Some(due) if due <= now => self.tell_taken(),
            Some(_) => {}
            None => self.taken.due = Some(now + TAKEN_DELAY),
        }
    }

    /// Ground: the remote's first word on a stream is that it was on another carrier before.
    pub(super) fn handle_rejoin(&mut self, id: StreamId, carrier: u64, exchange: u64, position: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            (stream.kind, stream.phase) = (Kind::Exchange, Phase::Rejoining(Hearing::Body));
        }
        self.events.push_back(Event::Rejoin { stream: id, carrier, exchange, position });
    }

    /// Remote: ground's verdict.
    pub(super) fn handle_rejoined(&mut self, id: StreamId, frame: Frame) -> Result<(), FrameError> {
        let (Role::Remote, Frame::Rejoined(verdict)) = (self.role, &frame) else {
            return Err(FrameError::Misplaced(frame.kind()));
        };
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let Phase::Rejoining(hearing) = stream.phase else { return Ok(()) };
        stream.phase = match verdict {
            Verdict::GoesOn(_) => phase(stream.kind, stream.marked, hearing),
            Verdict::NeverCame => Phase::Head,
            Verdict::NotKept => Phase::AfterTrailers,
        };
        if *verdict == Verdict::NotKept {
            self.end_writing(id, code::CANCELLED);
        }
        self.events.push_back(Event::Rejoined { stream: id, verdict: *verdict });
        Ok(())
    }

    fn is_rejoining(&self, id: StreamId) -> bool {
        let stream = self.streams.get(&id);
        stream.is_some_and(|stream| stream.may_write() && matches!(stream.phase, Phase::Rejoining(_)))
    }

    fn become_again(&mut self, id: StreamId, nature: &Nature, phase: Phase) {
        if let Some(stream) = self.streams.get_mut(&id) {
            (stream.kind, stream.place, stream.phase) = (nature.kind, nature.place, phase);
            (stream.origin, stream.upgrades) = (nature.origin.clone(), nature.upgrades);
            stream.marked = nature.marked;
            stream.exchange = Some(nature.exchange);
        }
    }
}

/// What may come next of a side that was heard so far.
fn phase(kind: Kind, marked: bool, hearing: Hearing) -> Phase {
    match hearing {
        Hearing::Head => Phase::Head,
        Hearing::Body if kind == Kind::Tunnel => tunnel_phase(marked),
        Hearing::Body => Phase::Body,
        Hearing::Done => Phase::Done,
    }
}
