//! What an app asks of a session.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use super::event::{Direction, Transmit, code};
use super::{Kind, Phase, Promise, ROOM, Session};
use crate::fields::shelf::{Base, Kind as SectionKind};
use crate::frame::{Class, Coding, Failure, Frame, Priority, Resume, data_header};
use crate::head::{self, RequestHead, ResponseHead};
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

impl Session {
    /// Remote: asks. The request's body follows by `write` and `finish`.
    pub fn ask(&mut self, now: Duration, ask: Ask, head: &RequestHead) -> StreamId {
        let place = Place { class: ask.class, user: ask.user, priority: ask.priority };
        let id = self.open(Kind::Exchange, Direction::Both, place);
        let lines = head.to_lines();
        let origin = Bytes::from(head.origin());
        let context = Self::context(ask.user, origin.clone(), SectionKind::Request);
        let mut section = Vec::new();
        self.shelf.encode(now, &context, &lines, Base::None, &mut section);
        let Ask { exchange, user, class, priority, resume } = ask;
        let frame = Frame::Request { exchange, user, class, priority, resume, section: section.into() };
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.origin = origin;
            stream.base = Some(Arc::new(lines));
        }
        self.scheduler.enqueue(id, frame.encode());
        id
    }

    /// Remote: asks for a tunnel. Bytes may be written at once.
    pub fn open_tunnel(&mut self, tunnel: u64, user: u64, class: Class, host: &str, port: u16) -> StreamId {
        let place = Place { class, user, priority: Priority::default() };
        let id = self.open(Kind::Tunnel, Direction::Both, place);
        let frame = Frame::Tunnel { tunnel, user, class, host: host.into(), port };
        self.scheduler.enqueue(id, frame.encode());
        id
    }

    /// Ground: the tunnel stands.
    pub fn accept_tunnel(&mut self, id: StreamId) {
        self.scheduler.enqueue(id, Frame::TunnelOpened.encode());
    }

    /// Ground: a 1xx head.
    pub fn inform(&mut self, now: Duration, id: StreamId, head: &ResponseHead) {
        if let Some(section) = self.response_section(now, id, head) {
            self.scheduler.enqueue(id, Frame::Informational(section).encode());
        }
    }

    /// Ground: the response head, on an exchange or a push; the body follows by `write` and `finish`.
    pub fn answer(
        &mut self,
        now: Duration,
        id: StreamId,
        head: &ResponseHead,
        coding: Coding,
        resumed: Option<u64>,
    ) {
        if let Some(section) = self.response_section(now, id, head) {
            self.scheduler.enqueue(id, Frame::Response { coding, resumed, section }.encode());
        }
    }

    fn response_section(&mut self, now: Duration, id: StreamId, head: &ResponseHead) -> Option<Bytes> {
        let stream = self.streams.get(&id)?;
        let context = Self::context(stream.place.user, stream.origin.clone(), SectionKind::Response);
        let mut section = Vec::new();
        self.shelf.encode(now, &context, &head.to_lines(), Base::None, &mut section);
        Some(section.into())
    }

    /// Ground: announces, ahead of what is written to `id` from now on, that the response to `head` will come
    /// by [`Session::push`].
    pub fn promise(
        &mut self,
        now: Duration,
        id: StreamId,
        head: &RequestHead,
        priority: Priority,
    ) -> Option<u64> {
        let stream = self.streams.get_mut(&id).filter(|stream| stream.writing)?;
        let user = stream.place.user;
        let base = stream.base.clone()?;
        let lines = head.to_lines();
        let origin = Bytes::from(head.origin());
        let context = Self::context(user, origin.clone(), SectionKind::Request);
        let mut section = Vec::new();
        self.shelf.encode(now, &context, &lines, Base::Stream(&base), &mut section);
        stream.base = Some(Arc::new(lines));
        let promise = self.next_promise;
        self.next_promise += 1;
        self.promises.insert(promise, Promise { user, origin, priority });
        self.scheduler.enqueue(id, Frame::Promise { promise, priority, section: section.into() }.encode());
        Some(promise)
    }

    /// Ground: opens the stream of a promised response; `None` when the remote does not want it any more.
    pub fn push(&mut self, promise: u64) -> Option<StreamId> {
        let Promise { user, origin, priority } = self.promises.remove(&promise)?;
        let id = self.open(Kind::Push, Direction::One, Place { class: Class::Web, user, priority });
        self.streams.get_mut(&id)?.origin = origin;
        self.scheduler.enqueue(id, Frame::Push { promise }.encode());
        Some(id)
    }

    /// Remote: a promise is not wanted; its push, if it has begun, is stopped by `cancel`.
    pub fn refuse_promise(&mut self, promise: u64) {
        self.send_control(&Frame::Unwanted(promise));
    }

    /// Ground: says why there is no (whole) answer, and ends the stream.
    pub fn fail(&mut self, id: StreamId, failure: Failure) {
        self.scheduler.enqueue(id, Frame::Failure(failure).encode());
        self.scheduler.finish(id);
    }

    /// Adds to a body or a tunnel. Returns false when the app should wait for [`super::Event::Drained`].
    pub fn write(&mut self, id: StreamId, bytes: Bytes) -> bool {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.writing) else { return true };
        if stream.kind != Kind::Tunnel && !bytes.is_empty() {
            self.scheduler.enqueue(id, data_header(bytes.len()));
        }
        self.scheduler.enqueue(id, bytes);
        stream.full = self.scheduler.queued(id) >= ROOM;
        !stream.full
    }

    /// Ends this side of a stream, with trailers if there are any.
    pub fn finish(&mut self, now: Duration, id: StreamId, trailers: Option<&HeaderMap>) {
        let Some(stream) = self.streams.get(&id) else { return };
        if let Some(trailers) = trailers.filter(|trailers| !trailers.is_empty()) {
            let kind =
                if self.role == super::Role::Remote { SectionKind::Request } else { SectionKind::Response };
            let context = Self::context(stream.place.user, stream.origin.clone(), kind);
            let mut section = Vec::new();
            let lines = head::trailer_lines(trailers);
            // Against nothing, never saved: trailers do not look like heads.
            self.shelf.encode(now, &context, &lines, Base::Stream(&Default::default()), &mut section);
            self.scheduler.enqueue(id, Frame::Trailers(section.into()).encode());
        }
        self.scheduler.finish(id);
    }

    /// Abandons what this end still sends and stops what the peer still sends.
    pub fn cancel(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.writing {
            stream.writing = false;
            self.scheduler.close(id);
            self.transmits.push_back(Transmit::Reset(id, code));
        }
        if stream.phase != Phase::Done {
            stream.phase = Phase::Done;
            self.transmits.push_back(Transmit::Stop(id, code));
        }
        self.forget_if_done(id);
    }

    /// Stops only what the peer still sends: an early answer makes the rest of an upload useless.
    pub fn stop(&mut self, id: StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.phase != Phase::Done) else {
            return;
        };
        stream.phase = Phase::Done;
        self.transmits.push_back(Transmit::Stop(id, code));
        self.forget_if_done(id);
    }

    /// Abandons only the sending side: the body cannot be finished.
    pub fn abort(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.writing) else { return };
        stream.writing = false;
        self.scheduler.close(id);
        self.transmits.push_back(Transmit::Reset(id, code::INCOMPLETE));
        self.forget_if_done(id);
    }

    /// Moves a stream to another render priority.
    pub fn reprioritize(&mut self, id: StreamId, priority: Priority) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.place.priority = priority;
            self.scheduler.replace(id, stream.place);
        }
    }

    /// Tells the peer that no more exchanges are accepted.
    pub fn drain(&mut self) {
        self.send_control(&Frame::Drain);
    }

    /// Changes how fast this end writes.
    pub fn set_pace(&mut self, now: Duration, pace: Pace) {
        self.scheduler.set_pace(now, pace);
    }

    /// Bytes queued on a stream.
    pub fn queued(&self, id: StreamId) -> usize {
        self.scheduler.queued(id)
    }
}
