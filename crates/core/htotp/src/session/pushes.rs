//! Promises and the pushes that keep them, at both ends: which section a promise is written against, what is not
//! wanted, what is wanted first, and the pushes that overtake the promise they keep.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::event::{Direction, Event};
use super::{Kind, Session, Stream};
use crate::fields::Lines;
use crate::fields::shelf::{Base, Kind as SectionKind};
use crate::frame::{Class, Frame, FrameError, Priority, Validating, kind};
use crate::head::RequestHead;
use crate::scheduler::{Place, StreamId};

/// Entries in one `ANSWERED`, so that it is no longer than 4 KiB.
const ANSWERED_TOGETHER: usize = 256;

/// What a session knows of promises. Each end uses its half.
#[derive(Default)]
pub(super) struct Promises {
    next: u64,
    /// Ground: not kept yet.
    open: BTreeMap<u64, Open>,
    /// Ground: being kept.
    pushes: BTreeMap<u64, StreamId>,
    /// Remote: requests whose pushes have not come, for the promises on these.
    announced: HashMap<u64, Arc<Lines>>,
    /// Remote: pushes whose promises have not come.
    ahead: HashMap<u64, StreamId>,
    /// Remote: pushes whose promises have just come.
    released: Vec<StreamId>,
}

struct Open {
    origin: Bytes,
    place: Place,
    lines: Arc<Lines>,
}

/// Remote: a push that names further promises before its own is here. Only then it is known what these refer to.
#[derive(Default)]
pub(super) struct HeldBack {
    pieces: Vec<Bytes>,
    size: usize,
    ended: bool,
}

impl HeldBack {
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.size += bytes.len();
        self.pieces.push(bytes);
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }
}

impl Session {
    /// Ground: announces, ahead of what is written to `id` (an exchange or a push) from now on, that the response to
    /// `head` will come by [`Session::push`]. `None` when nobody reads that stream any more.
    pub fn promise(
        &mut self,
        now: Duration,
        id: StreamId,
        head: &RequestHead,
        priority: Priority,
    ) -> Option<u64> {
        let stream = self.streams.get_mut(&id).filter(|stream| stream.may_write())?;
        let user = stream.place.user;
        let base = stream.base.clone()?;
        let lines = head.to_lines();
        if !self.config.sections.admits(&lines) {
            return None;
        }
        let origin = Bytes::from(head.origin());
        let context = Self::context(user, origin.clone(), SectionKind::Request);
        let mut section = Vec::new();
        self.shelf.encode(now, &context, &lines, Base::Stream(&base), &mut section);
        let lines = Arc::new(lines);
        stream.base = Some(Arc::clone(&lines));
        let promise = self.promises.next;
        self.promises.next += 1;
        let place = Place { class: Class::Web, user, priority, asked: false };
        self.promises.open.insert(promise, Open { origin, place, lines });
        self.scheduler.enqueue(id, Frame::Promise { promise, priority, section: section.into() }.encode());
        Some(promise)
    }

    /// Ground: announces, like [`Session::promise`], that the origin is asked whether this entry of the mirror, which
    /// answers `head`, is still right. The push of the number that this gives says so by a 304, or says nothing by failing; by
    /// `request` the remote knows the request again that is made.
    pub fn validate(
        &mut self,
        id: StreamId,
        (entry, request): (u64, u64),
        head: &RequestHead,
        priority: Priority,
    ) -> Option<u64> {
        let stream = self.streams.get(&id).filter(|stream| stream.may_write())?;
        let place = Place { class: Class::Web, user: stream.place.user, priority, asked: false };
        let promise = self.promises.next;
        self.promises.next += 1;
        // The remote knows no request that promises on this push could be written against.
        let (origin, lines) = (Bytes::from(head.origin()), Arc::default());
        self.promises.open.insert(promise, Open { origin, place, lines });
        self.scheduler.enqueue(id, Frame::Validating(Validating { promise, entry, request }).encode());
        Some(promise)
    }

    /// Ground: opens the stream of a promised response; `None` when the remote does not want it any more.
    pub fn push(&mut self, promise: u64) -> Option<StreamId> {
        let Open { origin, place, lines } = self.promises.open.remove(&promise)?;
        let id = self.open(Kind::Push, Direction::One, place);
        let stream = self.streams.get_mut(&id)?;
        (stream.origin, stream.base, stream.promise) = (origin, Some(lines), Some(promise));
        self.promises.pushes.insert(promise, id);
        self.scheduler.enqueue(id, Frame::Push { promise }.encode());
        Some(id)
    }

    /// Remote: whether something was promised that has not begun to come, and is still wanted.
    pub fn is_owed(&self) -> bool {
        !self.promises.announced.is_empty()
    }

    /// Remote: these promises are not wanted; a push that has begun is stopped by `cancel`.
    pub fn refuse_promises(&mut self, promises: RangeInclusive<u64>) {
        let (promise, last) = promises.into_inner();
        let Some(more) = last.checked_sub(promise) else { return };
        self.promises.announced.retain(|announced, _| !(promise..=last).contains(announced));
        self.send_control(&Frame::Unwanted { promise, more });
    }

    /// Remote: the user's browser asks for what was promised, with this priority.
    pub fn want(&mut self, promise: u64, priority: Priority) {
        self.send_control(&Frame::Wanted { promise, priority });
    }

    /// Remote: requests of the user's browser were answered by these promises.
    pub fn tell_used(&mut self, promises: RangeInclusive<u64>) {
        let (promise, last) = promises.into_inner();
        let Some(more) = last.checked_sub(promise) else { return };
        self.send_control(&Frame::Used { promise, more });
    }

    /// Remote: of what the page of this exchange asked for, these entries of the mirror have answered, each so many milliseconds
    /// after the page was asked for.
    pub fn tell_answered(&mut self, page: u64, entries: &[(u64, u64)]) {
        for entries in entries.chunks(ANSWERED_TOGETHER) {
            self.send_control(&Frame::Answered { page, entries: entries.to_vec() });
        }
    }

    /// Ground: the remote does not want a run of promises. A push that is open is the app's to give up.
    pub(super) fn handle_unwanted(&mut self, promise: u64, more: u64) {
        let all = promise..=promise.saturating_add(more);
        let unwanted: Vec<u64> = self.promises.open.range(all.clone()).map(|(number, _)| *number).collect();
        for number in unwanted {
            self.promises.open.remove(&number);
        }
        self.events.push_back(Event::Unwanted { promises: all });
    }

    /// Ground: the browser waits for this; it goes ahead of what it only may need.
    pub(super) fn handle_wanted(&mut self, promise: u64, priority: Priority) {
        if let Some(open) = self.promises.open.get_mut(&promise) {
            (open.place.priority, open.place.asked) = (priority, true);
        } else if let Some(id) = self.promises.pushes.get(&promise).copied()
            && let Some(stream) = self.streams.get_mut(&id)
        {
            (stream.place.priority, stream.place.asked) = (priority, true);
            self.scheduler.replace(id, stream.place);
        }
        self.events.push_back(Event::Wanted { promise, priority });
    }

    /// Remote: a push names the promise that it keeps.
    pub(super) fn handle_push(&mut self, id: StreamId, promise: u64) {
        let base = self.promises.announced.remove(&promise);
        if base.is_none() {
            self.promises.ahead.insert(promise, id);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            (stream.kind, stream.promise, stream.base) = (Kind::Push, Some(promise), base);
        }
        self.events.push_back(Event::Pushed { stream: id, promise });
    }

    /// Remote: a promise, on an exchange or on the push of what names it.
    pub(super) fn handle_promise(
        &mut self,
        now: Duration,
        id: StreamId,
        promise: u64,
        priority: Priority,
        section: Bytes,
    ) -> Result<(), FrameError> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let Some(base) = stream.base.clone() else {
            // The push has overtaken its own promise: nobody could use what it brings before that is here.
            let mut held = HeldBack::default();
            held.push(Frame::Promise { promise, priority, section }.encode());
            self.unfinished += held.size();
            stream.held_back = Some(held);
            return Ok(());
        };
        let lines = self.section(now, section, Base::Stream(&base))?;
        let head = RequestHead::from_lines(&lines).map_err(|_| FrameError::Malformed(kind::PROMISE))?;
        let lines = Arc::new(lines);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.base = Some(Arc::clone(&lines));
        }
        self.events.push_back(Event::Promised { stream: id, promise, priority, head });
        self.announce(promise, lines);
        Ok(())
    }

    /// Remote: the origin is asked about an entry of the mirror.
    pub(super) fn handle_validating(&mut self, id: StreamId, validating: Validating) {
        self.events.push_back(Event::Validating { stream: id, validating });
        self.announce(validating.promise, Arc::default());
    }

    /// Remote: what the push of this promise names is written against `base`.
    fn announce(&mut self, promise: u64, base: Arc<Lines>) {
        match self.promises.ahead.remove(&promise) {
            Some(push) => {
                if let Some(stream) = self.streams.get_mut(&push) {
                    stream.base = Some(base);
                    self.promises.released.push(push);
                }
            }
            None => drop(self.promises.announced.insert(promise, base)),
        }
    }

    /// Reads what was held back of pushes whose promises are here. In turn, not in depth: a chain of pushes can be of
    /// any length.
    pub(super) fn read_released(&mut self, now: Duration) {
        while let Some(push) = self.promises.released.pop() {
            let Some(held) = self.streams.get_mut(&push).and_then(|stream| stream.held_back.take()) else {
                continue;
            };
            self.unfinished -= held.size;
            for piece in held.pieces {
                self.read(now, push, piece);
            }
            if held.ended {
                self.handle_end(push);
            } else {
                self.events.push_back(Event::Released { stream: push });
            }
        }
    }

    /// Nothing of a stream is needed any more.
    pub(super) fn forget_push(&mut self, stream: &Stream) {
        if let Some(promise) = stream.promise {
            self.promises.pushes.remove(&promise);
            self.promises.ahead.remove(&promise);
        }
    }

    /// Bytes of a stream that wait for a promise; a carrier should read no more of it meanwhile.
    pub fn held_back(&self, id: StreamId) -> usize {
        self.streams.get(&id).and_then(|stream| stream.held_back.as_ref()).map_or(0, HeldBack::size)
    }
}
