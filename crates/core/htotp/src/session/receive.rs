//! What comes from the peer: bytes of a stream → frames → events, each frame checked for its place.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::event::{Direction, Event, code};
use super::{Kind, MOST_HEADS, MOST_UNFINISHED, Phase, Role, Session, VERSION, tunnel_priority};
use crate::fields::Lines;
use crate::fields::shelf::Base;
use crate::frame::{Failure, Frame, FrameError, Side, Tunnel, kind, setting};
use crate::head::{self, RequestHead, ResponseHead};
use crate::mirror::Word;
use crate::scheduler::{Place, StreamId};

impl Session {
    /// The next bytes of a stream.
    pub fn handle_data(&mut self, now: Duration, id: StreamId, bytes: Bytes) {
        self.read(now, id, bytes);
        self.read_released(now);
    }

    pub(super) fn read(&mut self, now: Duration, id: StreamId, mut bytes: Bytes) {
        while !self.broken && !bytes.is_empty() {
            let Some(stream) = self.streams.get_mut(&id) else { return };
            if let Some(held) = &mut stream.held_back {
                self.unfinished += bytes.len();
                held.push(bytes);
                if self.unfinished > MOST_UNFINISHED {
                    self.break_off(FrameError::Unfinished);
                }
                return;
            }
            match stream.phase {
                Phase::Done => return,
                Phase::Raw => {
                    self.events.push_back(Event::Body { stream: id, bytes });
                    return;
                }
                _ => {}
            }
            let before = stream.reader.held();
            let next = stream.reader.next(&mut bytes);
            self.unfinished = self.unfinished + stream.reader.held() - before;
            match next {
                _ if self.unfinished > MOST_UNFINISHED => self.break_off(FrameError::Unfinished),
                Ok(Some(frame)) => {
                    if let Err(error) = self.handle_frame(now, id, frame) {
                        self.break_off(error);
                    }
                }
                Ok(None) => return,
                Err(error) => self.break_off(error),
            }
        }
    }

    /// The peer's side of a stream is complete.
    pub fn handle_end(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some(held) = &mut stream.held_back {
            return held.end();
        }
        let complete = match stream.phase {
            Phase::Done => return,
            Phase::Raw => true,
            Phase::Body | Phase::AfterTrailers => stream.reader.is_between(),
            // A tunnel may be given up by the remote before it stands; a message may not.
            Phase::Head | Phase::Rejoining(_) => false,
        };
        if !complete || stream.kind == Kind::Control {
            return self.break_off(FrameError::Truncated);
        }
        self.events.push_back(Event::Ended { stream: id });
        self.end_reading(id);
        self.forget_if_done(id);
    }

    fn handle_frame(&mut self, now: Duration, id: StreamId, frame: Frame) -> Result<(), FrameError> {
        let Some(stream) = self.streams.get(&id) else { return Ok(()) };
        if let Phase::Rejoining(_) = stream.phase {
            return self.handle_rejoined(id, frame);
        }
        match stream.kind {
            Kind::Unknown => self.handle_first(now, id, frame),
            Kind::Control => self.handle_control(now, frame),
            Kind::Exchange if self.role == Role::Ground => self.handle_request_part(now, id, frame),
            Kind::Exchange | Kind::Push => self.handle_response_part(now, id, frame),
            Kind::Tunnel => self.handle_tunnel_part(id, frame),
            Kind::Mirror => match frame {
                Frame::Mirror(word) => {
                    self.events.push_back(Event::Mirror(word));
                    Ok(())
                }
                other => Err(FrameError::Misplaced(other.kind())),
            },
        }
    }

    /// The first frame of a stream that the peer opened.
    fn handle_first(&mut self, now: Duration, id: StreamId, frame: Frame) -> Result<(), FrameError> {
        let misplaced = FrameError::Misplaced(frame.kind());
        let Some(direction) = self.streams.get(&id).map(|stream| stream.direction) else { return Ok(()) };
        match (self.role, direction, frame) {
            (Role::Ground, Direction::Both, frame @ Frame::Hello(_)) if self.control.is_none() => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.kind = Kind::Control;
                }
                self.adopt_control(id);
                self.handle_control(now, frame)
            }
            (
                Role::Ground,
                Direction::Both,
                Frame::Request { exchange, user, class, priority, resume, section },
            ) => {
                let lines = Arc::new(self.section(now, section, Base::None)?);
                let head =
                    RequestHead::from_lines(&lines).map_err(|_| FrameError::Malformed(kind::REQUEST))?;
                self.place(id, Kind::Exchange, Place { class, user, priority, asked: true }, Phase::Body);
                if self.heads + lines.size() > MOST_HEADS {
                    self.fail(id, too_many_heads());
                    self.stop(id, code::CANCELLED);
                    return Ok(());
                }
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.exchange = Some(exchange);
                    stream.origin = head.origin().into();
                    stream.upgrades = head.upgrades();
                    stream.head = lines.size();
                    self.heads += stream.head;
                    stream.base = Some(lines);
                }
                self.events.push_back(Event::Asked {
                    stream: id,
                    exchange,
                    user,
                    class,
                    priority,
                    resume,
                    head,
                });
                self.tell_stopped(id);
                Ok(())
            }
            (Role::Ground, Direction::Both, Frame::Tunnel(asked)) => {
                let Tunnel { tunnel, class, user, marked, .. } = asked;
                let place = Place { class, user, priority: tunnel_priority(), asked: true };
                self.place(id, Kind::Tunnel, place, tunnel_phase(marked));
                if let Some(stream) = self.streams.get_mut(&id) {
                    (stream.exchange, stream.marked) = (Some(tunnel), marked);
                }
                self.events.push_back(Event::TunnelAsked { stream: id, asked });
                self.tell_stopped(id);
                Ok(())
            }
            (Role::Ground, Direction::Both, Frame::Rejoin { carrier, exchange, position }) => {
                self.handle_rejoin(id, carrier, exchange, position);
                self.tell_stopped(id);
                Ok(())
            }
            (Role::Ground, Direction::One, Frame::Mirror(word @ (Word::Reset | Word::Log(_))))
                if self.mirror.is_none() =>
            {
                if let Some(stream) = self.streams.get_mut(&id) {
                    (stream.kind, stream.phase) = (Kind::Mirror, Phase::Body);
                }
                self.mirror = Some(id);
                self.events.push_back(Event::Mirror(word));
                Ok(())
            }
            (Role::Remote, Direction::One, Frame::Push { promise }) => {
                self.handle_push(id, promise);
                Ok(())
            }
            _ => Err(misplaced),
        }
    }

    /// The carrier may deliver a stop before the bytes that say what was stopped.
    fn tell_stopped(&mut self, id: StreamId) {
        if let Some(code) = self.streams.get(&id).and_then(|stream| stream.stopped) {
            self.events.push_back(Event::Stopped { stream: id, code });
        }
    }

    fn place(&mut self, id: StreamId, kind: Kind, place: Place, phase: Phase) {
        if let Some(stream) = self.streams.get_mut(&id) {
            (stream.kind, stream.place, stream.phase) = (kind, place, phase);
            self.scheduler.replace(id, place);
            self.watch(id, kind);
        }
    }

    fn handle_control(&mut self, now: Duration, frame: Frame) -> Result<(), FrameError> {
        match frame {
            Frame::Hello(hello) if !self.greeted => {
                self.greeted = true;
                if !hello.versions.contains(&VERSION) {
                    return Err(FrameError::Version);
                }
                self.events.push_back(Event::Hello(hello));
            }
            // The first word says which rules the others keep.
            other if !self.greeted => return Err(FrameError::Misplaced(other.kind())),
            Frame::Settings(pairs) => {
                let said = |setting, before| {
                    let last = pairs.iter().rfind(|(number, _)| *number == setting);
                    last.map_or(before, |(_, value)| *value == 1)
                };
                self.marks = said(setting::MARKED_TUNNELS, self.marks);
                self.bodies = said(setting::BODIES, self.bodies);
                self.held_pages = said(setting::HELD_PAGES, self.held_pages);
                self.small_headers = said(setting::SMALL_HEADERS, self.small_headers);
                self.origins_codings = said(setting::ORIGINS_CODINGS, self.origins_codings);
                self.chained_deltas = said(setting::CHAINED_DELTAS, self.chained_deltas);
                self.log_kept = Some(said(setting::LOG_KEPT, false));
            }
            Frame::Taken(positions) => {
                let taken = |(exchange, position)| Event::Taken { exchange, position };
                self.events.extend(positions.into_iter().map(taken));
            }
            Frame::Ping(token) => {
                self.tell_taken();
                self.send_control(&Frame::Pong(token));
            }
            Frame::Pong(token) => {
                let rtt = self.probe.answered(now, token);
                self.events.extend(rtt.map(Event::Pong));
            }
            Frame::Saved(id) => self.shelf.acknowledge(id),
            Frame::Retire(id) => self.archive.retire(now, id),
            Frame::Drain => self.events.push_back(Event::Drain),
            Frame::Path(report) => self.events.push_back(Event::PathReported(report)),
            Frame::Unwanted { promise, more } if self.role == Role::Ground => {
                self.handle_unwanted(promise, more)
            }
            Frame::Used { promise, more } if self.role == Role::Ground => {
                let promises = promise..=promise.saturating_add(more);
                self.events.push_back(Event::Used { promises });
            }
            Frame::Answered { page, entries } if self.role == Role::Ground => {
                self.events.push_back(Event::AnsweredHere { page, entries });
            }
            Frame::Wanted { promise, priority } if self.role == Role::Ground => {
                self.handle_wanted(promise, priority)
            }
            Frame::Prepare { user, scheme, host, port } if self.role == Role::Ground => {
                self.events.push_back(Event::Prepare { user, scheme, host, port });
            }
            Frame::Left { user, connection } if self.role == Role::Ground => {
                self.events.push_back(Event::Left { user, connection });
            }
            Frame::Weight { user, hundredths } if self.role == Role::Ground => {
                self.scheduler.set_weight(user, u32::try_from(hundredths).unwrap_or(u32::MAX));
            }
            // Its request may be on the way still, or answered: nothing is left of it then.
            Frame::Reorder { exchange, priority } if self.role == Role::Ground => {
                self.reorder_own(exchange, priority);
            }
            Frame::Heard(position) if self.role == Role::Remote => {
                self.events.push_back(Event::Heard(position));
            }
            Frame::Differ { of, buckets } if self.role == Role::Remote => {
                self.events.push_back(Event::Differ { of, buckets });
            }
            Frame::Dictionary { hash, length } if self.role == Role::Remote => {
                self.events.push_back(Event::Dictionary { hash, length });
            }
            other => return Err(FrameError::Misplaced(other.kind())),
        }
        Ok(())
    }

    /// Ground: the body of a request.
    fn handle_request_part(&mut self, now: Duration, id: StreamId, frame: Frame) -> Result<(), FrameError> {
        match (self.phase(id), frame) {
            (Phase::Body, Frame::Data(bytes)) => self.events.push_back(Event::Body { stream: id, bytes }),
            (Phase::Body, Frame::Trailers(section)) => self.trailers(now, id, section)?,
            (_, other) => return Err(FrameError::Misplaced(other.kind())),
        }
        Ok(())
    }

    /// Remote: an answer, on its exchange or unasked.
    fn handle_response_part(&mut self, now: Duration, id: StreamId, frame: Frame) -> Result<(), FrameError> {
        match (self.phase(id), frame) {
            (Phase::Head, Frame::Informational(section)) => {
                let lines = self.section(now, section, Base::None)?;
                let head = response(&lines, kind::INFORMATIONAL, false)?;
                self.events.push_back(Event::Informed { stream: id, head });
            }
            (Phase::Head, Frame::Response { coding, resumed, section }) => {
                let lines = self.section(now, section, Base::None)?;
                let upgrades = self.streams.get(&id).is_some_and(|stream| stream.upgrades);
                let head = response(&lines, kind::RESPONSE, upgrades)?;
                self.set_phase(id, Phase::Body);
                self.events.push_back(Event::Answered { stream: id, head, coding, resumed });
            }
            (Phase::Head | Phase::Body, Frame::Promise { promise, priority, section }) => {
                self.handle_promise(now, id, promise, priority, section)?;
            }
            (Phase::Head | Phase::Body, Frame::Validating(validating)) => {
                self.handle_validating(id, validating);
            }
            (Phase::Body, Frame::Data(bytes)) => self.events.push_back(Event::Body { stream: id, bytes }),
            (Phase::Body, Frame::Trailers(section)) => self.trailers(now, id, section)?,
            (Phase::Head | Phase::Body, Frame::Failure(failure)) => {
                self.set_phase(id, Phase::AfterTrailers);
                self.events.push_back(Event::Failed { stream: id, failure });
            }
            (_, other) => return Err(FrameError::Misplaced(other.kind())),
        }
        Ok(())
    }

    fn handle_tunnel_part(&mut self, id: StreamId, frame: Frame) -> Result<(), FrameError> {
        match (self.phase(id), frame) {
            (Phase::Body, Frame::Data(bytes)) => {
                self.events.push_back(Event::Body { stream: id, bytes });
                Ok(())
            }
            (Phase::Body, Frame::Urgent) => {
                self.events.push_back(Event::Urgent { stream: id });
                Ok(())
            }
            (Phase::Body, Frame::Class(class)) if self.role == Role::Ground => {
                self.move_to(id, class);
                self.events.push_back(Event::Classed { stream: id, class });
                Ok(())
            }
            (Phase::Head, Frame::TunnelOpened) => {
                let marked = self.streams.get(&id).is_some_and(|stream| stream.marked);
                self.set_phase(id, tunnel_phase(marked));
                self.events.push_back(Event::TunnelOpened { stream: id });
                Ok(())
            }
            (Phase::Head, Frame::Failure(failure)) => {
                self.set_phase(id, Phase::AfterTrailers);
                self.events.push_back(Event::Failed { stream: id, failure });
                Ok(())
            }
            (_, other) => Err(FrameError::Misplaced(other.kind())),
        }
    }

    fn trailers(&mut self, now: Duration, id: StreamId, section: Bytes) -> Result<(), FrameError> {
        let lines = self.section(now, section, Base::Stream(&Lines::default()))?;
        let fields = head::trailers_from(&lines).map_err(|_| FrameError::Malformed(kind::TRAILERS))?;
        self.set_phase(id, Phase::AfterTrailers);
        self.events.push_back(Event::Trailers { stream: id, fields });
        Ok(())
    }

    pub(super) fn section(
        &mut self,
        now: Duration,
        section: Bytes,
        base: Base<'_>,
    ) -> Result<Lines, FrameError> {
        let (lines, saved) = self.archive.decode(now, section, base, self.config.sections)?;
        if let Some(id) = saved {
            self.send_control(&Frame::Saved(id));
        }
        Ok(lines)
    }

    pub(super) fn phase(&self, id: StreamId) -> Phase {
        self.streams.get(&id).map_or(Phase::Done, |stream| stream.phase)
    }

    fn set_phase(&mut self, id: StreamId, phase: Phase) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.phase = phase;
        }
    }
}

/// What the bytes of a tunnel are in.
pub(super) fn tunnel_phase(marked: bool) -> Phase {
    if marked { Phase::Body } else { Phase::Raw }
}

fn too_many_heads() -> Failure {
    Failure {
        side: Side::Link,
        status: 503,
        token: "http_request_denied".into(),
        detail: "the heads of the requests under way take too much memory; ask again".into(),
    }
}

/// RFC 9110 §15.2: a 1xx head is not the answer, but for 101 to a request that `upgrades`: it is the last head.
fn response(lines: &Lines, kind: u64, upgrades: bool) -> Result<ResponseHead, FrameError> {
    let head = ResponseHead::from_lines(lines).map_err(|_| FrameError::Malformed(kind))?;
    let switches = head.status == StatusCode::SWITCHING_PROTOCOLS;
    let fits = match kind {
        kind::INFORMATIONAL => head.status.is_informational() && !switches,
        _ => !head.status.is_informational() || (switches && upgrades),
    };
    if fits { Ok(head) } else { Err(FrameError::Malformed(kind)) }
}
