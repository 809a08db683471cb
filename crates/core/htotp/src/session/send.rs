//! What an app asks of a session.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_units::BitRate;
use http::{HeaderMap, StatusCode};

use super::event::{Direction, Event, Transmit, code};
use super::{Kind, Phase, ROOM, Session, Stream, tunnel_priority};
use crate::datagram::{self, Form};
use crate::fields::Lines;
use crate::fields::shelf::{Base, Kind as SectionKind};
use crate::frame::{Class, Coding, Failure, Frame, PathReport, Priority, Resume, Side, Tunnel};
use crate::head::{self, RequestHead, ResponseHead};
use crate::mirror::{BodyHash, Position, Word};
use crate::scheduler::{Pace, Place, StreamId};

/// How a request is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask {
    /// Names the exchange at both ends, also after the carrier is lost.
    pub exchange: u64,
    /// Whose it is; compression state and fairness go by it.
    pub user: u64,
    /// Class.
    pub class: Class,
    /// Render priority.
    pub priority: Priority,
    /// From where a body is wanted that was cut.
    pub resume: Option<Resume>,
}

/// Why an answer stays at ground that would end the carrier for everyone: an error type of RFC 9209 §2.3, and words.
const TOO_LARGE: (&str, &str) =
    ("http_response_header_section_size", "the response's fields are too large to cross");
const UNASKED: (&str, &str) =
    ("http_upgrade_failed", "the origin switched to another protocol without having been asked");

impl Session {
    /// Remote: asks. The request's body follows by `write` and `finish`.
    pub fn ask(&mut self, now: Duration, ask: Ask, head: &RequestHead) -> StreamId {
        let place = Place { class: ask.class, user: ask.user, priority: ask.priority, asked: true };
        let lines = head.to_lines();
        if !self.config.sections.admits(&lines) {
            return self.refuse_ask(place);
        }
        let id = self.open(Kind::Exchange, Direction::Both, place);
        self.put_request(now, id, ask, head);
        id
    }

    /// Remote: asks on a stream on which ground has said that nothing of the exchange ever came.
    pub fn ask_again(&mut self, now: Duration, id: StreamId, ask: Ask, head: &RequestHead) {
        if self.streams.get(&id).is_some_and(Stream::may_write) {
            self.put_request(now, id, ask, head);
        }
    }

    fn put_request(&mut self, now: Duration, id: StreamId, ask: Ask, head: &RequestHead) {
        let lines = head.to_lines();
        let origin = Bytes::from(head.origin());
        let context = Self::context(ask.user, origin.clone(), SectionKind::Request);
        let mut section = Vec::new();
        self.shelf.encode(now, &context, &lines, Base::None, &mut section);
        let Ask { exchange, user, class, priority, resume } = ask;
        let frame = Frame::Request { exchange, user, class, priority, resume, section: section.into() };
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.exchange = Some(exchange);
            stream.origin = origin;
            stream.upgrades = head.upgrades();
            stream.base = Some(Arc::new(lines));
        }
        self.scheduler.enqueue(id, frame.encode());
    }

    /// A head that ground would not take must not end the carrier for everyone: it fails by itself.
    fn refuse_ask(&mut self, place: Place) -> StreamId {
        let id = self.add(Kind::Exchange, Direction::Both, place, true);
        self.streams.remove(&id);
        self.scheduler.close(id);
        let failure = Failure {
            side: Side::User,
            status: 431, // RFC 6585 §5
            token: "http_request_error".into(),
            detail: "the request's fields are too large to cross".into(),
        };
        self.events.push_back(Event::Failed { stream: id, failure });
        id
    }

    /// Remote: asks for a tunnel. Bytes may be written at once.
    pub fn open_tunnel(&mut self, asked: &Tunnel) -> StreamId {
        let Tunnel { class, user, .. } = *asked;
        let place = Place { class, user, priority: tunnel_priority(), asked: true };
        let id = self.open(Kind::Tunnel, Direction::Both, place);
        self.open_tunnel_again(id, asked);
        id
    }

    /// Remote: asks for it on a stream on which ground has said that nothing of the tunnel ever came.
    pub fn open_tunnel_again(&mut self, id: StreamId, asked: &Tunnel) {
        if self.streams.get(&id).is_some_and(Stream::may_write) {
            let asked = Tunnel { marked: self.marks, ..asked.clone() };
            if let Some(stream) = self.streams.get_mut(&id) {
                (stream.exchange, stream.marked) = (Some(asked.tunnel), asked.marked);
            }
            self.scheduler.enqueue(id, Frame::Tunnel(asked).encode());
        }
    }

    /// Remote: this user's client is about to ask a host; ground may resolve, connect and verify meanwhile.
    pub fn prepare(&mut self, user: u64, scheme: &str, host: &str, port: u16) {
        self.send_control(&Frame::Prepare { user, scheme: scheme.into(), host: host.into(), port });
    }

    /// Ground: the tunnel stands.
    pub fn accept_tunnel(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(Stream::may_write) {
            self.scheduler.enqueue(id, Frame::TunnelOpened.encode());
        }
    }

    /// Ground: a 1xx head.
    pub fn inform(&mut self, now: Duration, id: StreamId, head: &ResponseHead) {
        if self.admits(head)
            && let Some(section) = self.response_section(now, id, head)
        {
            self.scheduler.enqueue(id, Frame::Informational(section).encode());
        }
    }

    /// Ground: the response head, on an exchange or a push; the body follows by `write` and `finish`. After 101, which
    /// answers only a request that [upgrades](RequestHead::upgrades), both ends write until both have finished.
    pub fn answer(
        &mut self,
        now: Duration,
        id: StreamId,
        head: &ResponseHead,
        coding: Coding,
        resumed: Option<u64>,
    ) {
        if !self.admits(head) {
            return self.refuse_answer(id, TOO_LARGE);
        }
        let switches = head.status == StatusCode::SWITCHING_PROTOCOLS;
        if switches && !self.streams.get(&id).is_some_and(|stream| stream.upgrades) {
            return self.refuse_answer(id, UNASKED);
        }
        if let Some(section) = self.response_section(now, id, head) {
            self.scheduler.enqueue(id, Frame::Response { coding, resumed, section }.encode());
        }
    }

    fn admits(&self, head: &ResponseHead) -> bool {
        self.config.sections.admits(&head.to_lines())
    }

    /// As `refuse_ask`; the app is told that its body is not wanted.
    fn refuse_answer(&mut self, id: StreamId, (token, detail): (&str, &str)) {
        let failure = Failure { side: Side::Origin, status: 502, token: token.into(), detail: detail.into() };
        self.fail(id, failure);
        self.events.push_back(Event::Stopped { stream: id, code: code::CANCELLED });
    }

    fn response_section(&mut self, now: Duration, id: StreamId, head: &ResponseHead) -> Option<Bytes> {
        let stream = self.streams.get(&id).filter(|stream| stream.may_write())?;
        let context = Self::context(stream.place.user, stream.origin.clone(), SectionKind::Response);
        let mut section = Vec::new();
        self.shelf.encode(now, &context, &head.to_lines(), Base::None, &mut section);
        Some(section.into())
    }

    /// Remote: tells ground what is held, after all that crosses for someone. Gives the bytes that wait; who has more to
    /// tell lets them become few first.
    pub fn tell_mirror(&mut self, word: Word) -> usize {
        let id = match self.mirror {
            Some(id) => id,
            None => {
                let priority = Priority { urgency: 7, incremental: false };
                let place = Place { class: Class::Background, user: 0, priority, asked: false };
                let id = self.open(Kind::Mirror, Direction::One, place);
                self.mirror = Some(id);
                // After `HEARD` it may be the log that goes on.
                if !matches!(word, Word::Reset | Word::Log(_)) {
                    self.scheduler.enqueue(id, Frame::Mirror(Word::Reset).encode());
                }
                id
            }
        };
        self.scheduler.enqueue(id, Frame::Mirror(word).encode());
        self.scheduler.queued(id)
    }

    /// Remote: whether ground remembers the mirror's log beyond the carrier; `None` before it has said so or not.
    pub fn log_kept(&self) -> Option<bool> {
        self.log_kept
    }

    /// Ground: says how far it has heard the mirror's log.
    pub fn tell_heard(&mut self, position: Position) {
        self.send_control(&Frame::Heard(position));
    }

    /// Ground: says which of so many buckets of the mirror's summary differ.
    pub fn tell_differ(&mut self, of: u64, buckets: Vec<u64>) {
        self.send_control(&Frame::Differ { of, buckets });
    }

    /// Ground: says that this dictionary is worth having, which crosses in so many bytes.
    pub fn offer_dictionary(&mut self, hash: BodyHash, length: u64) {
        self.send_control(&Frame::Dictionary { hash, length });
    }

    /// Remote: whether anything was said of the mirror.
    pub fn mirror_begun(&self) -> bool {
        self.mirror.is_some()
    }

    /// Remote: bytes of the mirror's log that wait.
    pub fn mirror_backlog(&self) -> usize {
        self.mirror.map_or(0, |id| self.scheduler.queued(id))
    }

    /// Remote: whether ground has said that it makes use of [`Word::Holds`] and [`Word::Lacks`].
    pub fn takes_bodies(&self) -> bool {
        self.bodies
    }

    /// Remote: whether ground has said that it makes use of being told of pages that the remote answers by itself
    /// ([`HELD`](crate::head::HELD)).
    pub fn takes_held_pages(&self) -> bool {
        self.held_pages
    }

    /// Ground: says why there is no (whole) answer, and ends the stream.
    pub fn fail(&mut self, id: StreamId, failure: Failure) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.may_write()) else { return };
        stream.finished = true;
        self.scheduler.enqueue(id, Frame::Failure(failure).encode());
        self.scheduler.finish(id);
    }

    /// Adds to a body or a tunnel. Returns false when the app should wait for [`super::Event::Drained`].
    pub fn write(&mut self, id: StreamId, bytes: Bytes) -> bool {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.may_write()) else {
            return true;
        };
        if (stream.kind != Kind::Tunnel || stream.marked) && !bytes.is_empty() {
            self.scheduler.enqueue_data(id, bytes);
        } else {
            self.scheduler.enqueue(id, bytes);
        }
        stream.full = self.scheduler.held(id) >= ROOM;
        !stream.full
    }

    /// The next byte of a tunnel is urgent. Where the peer takes no marks it is a byte like any other.
    pub fn mark(&mut self, id: StreamId) {
        if self.streams.get(&id).is_some_and(|stream| stream.may_write() && stream.marked) {
            self.scheduler.enqueue(id, Frame::Urgent.encode());
        }
    }

    /// Ends this side of a stream, with trailers if there are any.
    pub fn finish(&mut self, now: Duration, id: StreamId, trailers: Option<&HeaderMap>) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.may_write()) else { return };
        stream.finished = true;
        let sections = self.config.sections;
        // RFC 9110 §6.5.1: trailers may be discarded; those that the peer would not take are.
        let admitted = |lines: &Lines| !lines.0.is_empty() && sections.admits(lines);
        if let Some(lines) = trailers.map(head::trailer_lines).filter(admitted) {
            let kind =
                if self.role == super::Role::Remote { SectionKind::Request } else { SectionKind::Response };
            let context = Self::context(stream.place.user, stream.origin.clone(), kind);
            let mut section = Vec::new();
            // Against nothing, never saved: trailers do not look like heads.
            self.shelf.encode(now, &context, &lines, Base::Stream(&Default::default()), &mut section);
            self.scheduler.enqueue(id, Frame::Trailers(section.into()).encode());
        }
        self.scheduler.finish(id);
    }

    /// Abandons what this end still sends and stops what the peer still sends.
    pub fn cancel(&mut self, id: StreamId, code: u64) {
        self.end_writing(id, code);
        self.stop(id, code);
        self.forget_if_done(id);
    }

    /// Stops only what the peer still sends: an early answer makes the rest of an upload useless.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        if self.phase(id) == Phase::Done {
            return;
        }
        self.end_reading(id);
        self.transmits.push_back(Transmit::Stop(id, code));
        self.forget_if_done(id);
    }

    /// Abandons only the sending side: the body cannot be finished, or the connection behind a tunnel was reset.
    pub fn abort(&mut self, id: StreamId) {
        let raw = self.streams.get(&id).is_some_and(|stream| stream.kind == Kind::Tunnel || stream.upgrades);
        self.end_writing(id, if raw { code::RESET } else { code::INCOMPLETE });
        self.forget_if_done(id);
    }

    /// Remote: the user's browser has thought better of how urgent this exchange is. What ground has yet to send of it
    /// goes out in the new order, and so does what this end has yet to send.
    pub fn reorder(&mut self, exchange: u64, priority: Priority) {
        if self.reorder_own(exchange, priority) {
            self.send_control(&Frame::Reorder { exchange, priority });
        }
    }

    /// Whether this exchange is open.
    pub(super) fn reorder_own(&mut self, exchange: u64, priority: Priority) -> bool {
        let is_it = |stream: &Stream| stream.exchange == Some(exchange);
        let Some(id) = self.streams.iter().find_map(|(id, stream)| is_it(stream).then_some(*id)) else {
            return false;
        };
        self.reprioritize(id, priority);
        true
    }

    /// Moves a stream to another render priority.
    pub fn reprioritize(&mut self, id: StreamId, priority: Priority) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.place.priority = priority;
            self.scheduler.replace(id, stream.place);
        }
    }

    /// Moves a stream that counts as a page to the class that it proves to be of. What has a class of its own keeps it.
    pub fn reclassify(&mut self, id: StreamId, class: Class) {
        if let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.place.class == Class::Web) {
            stream.place.class = class;
            self.scheduler.replace(id, stream.place);
        }
    }

    /// Remote: a tunnel has shown that it is of this class, in both directions, whatever it counted as before. A ground that takes no marks
    /// does not hear of it.
    pub fn tell_class(&mut self, id: StreamId, class: Class) {
        self.move_to(id, class);
        let is_told = |stream: &&Stream| stream.kind == Kind::Tunnel && stream.marked && stream.may_write();
        if self.streams.get(&id).filter(is_told).is_some() {
            self.scheduler.enqueue(id, Frame::Class(class).encode());
        }
    }

    pub(super) fn move_to(&mut self, id: StreamId, class: Class) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.place.class = class;
            self.scheduler.replace(id, stream.place);
        }
    }

    /// Remote: the user's client has ended the connection of this name, of which ground was told in requests
    /// ([`crate::head::CLIENT_CONNECTION`]).
    pub fn leave(&mut self, user: u64, connection: &str) {
        self.send_control(&Frame::Left { user, connection: connection.into() });
    }

    /// What these classes of what this end sends never exceed, whatever is left over. It is not said to the peer.
    pub fn set_ceilings(&mut self, now: Duration, ceilings: &[(Class, BitRate)]) {
        self.scheduler.set_ceilings(now, ceilings);
    }

    /// Remote: what this user has of each class in either direction, in hundredths of what others have.
    pub fn weigh(&mut self, user: u64, hundredths: u32) {
        self.scheduler.set_weight(user, hundredths);
        self.send_control(&Frame::Weight { user, hundredths: hundredths.into() });
    }

    /// Tells the peer of this end's side of the path.
    pub fn report_path(&mut self, report: PathReport) {
        self.send_control(&Frame::Path(report));
    }

    /// Tells the peer that no more exchanges are accepted.
    pub fn drain(&mut self) {
        self.send_control(&Frame::Drain);
    }

    /// Changes how fast this end writes.
    pub fn set_pace(&mut self, now: Duration, pace: Pace) {
        self.scheduler.set_pace(now, pace);
    }

    /// What the link takes was measured: pieces are sized by it, whether or not a rate is kept to.
    pub fn set_about(&mut self, rate: BitRate) {
        self.scheduler.set_about(rate);
    }

    /// Sends a datagram of this flow of a user's, or drops it: when it is late, or there is too much of what is as urgent.
    pub fn send_datagram(
        &mut self,
        now: Duration,
        flow: u64,
        form: Form,
        user: u64,
        class: Class,
        payload: &[u8],
    ) {
        let place = Place { class, user, priority: tunnel_priority(), asked: true };
        self.scheduler.push(now, flow, place, datagram::encode(flow, form, payload));
    }

    /// Ground: whether the remote has said that it undoes the codings of origins.
    pub fn takes_origins_codings(&self) -> bool {
        self.origins_codings
    }

    /// Ground: whether the remote has said that it reads deltas of several frames.
    pub fn takes_chained_deltas(&self) -> bool {
        self.chained_deltas
    }

    /// Whether the peer has said that it makes small headers of datagrams whole again.
    pub fn takes_small_headers(&self) -> bool {
        self.small_headers
    }

    /// Little is written ahead of the link.
    pub fn is_calm(&self) -> bool {
        self.scheduler.is_calm()
    }

    /// All that was given out so far, as the pace counts it.
    pub fn handed_out(&self) -> farhop_units::Bytes {
        self.scheduler.handed_out()
    }

    /// Datagrams wait.
    pub fn has_datagrams(&self) -> bool {
        self.scheduler.has_datagrams()
    }

    /// Datagrams that were dropped here.
    pub fn dropped_datagrams(&self) -> u64 {
        self.scheduler.dropped_datagrams()
    }

    /// The class of a stream that is open.
    pub fn class(&self, id: StreamId) -> Option<Class> {
        self.streams.get(&id).map(|stream| stream.place.class)
    }

    /// Bytes queued on a stream.
    pub fn queued(&self, id: StreamId) -> usize {
        self.scheduler.queued(id)
    }
}
