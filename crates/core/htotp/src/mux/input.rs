//! What comes from the peer: bytes of a lane → frames → streams, each held to its lane, its place and the windows.

use super::stream::{Ending, Incoming, Outgoing};
use super::{Direction, Event, Frame, Id, Mux, MuxError, Windows, kind};

impl Mux {
    /// The next bytes of a lane.
    ///
    /// # Errors
    /// The peer breaks the rules: the carrier has to end.
    pub fn handle_input(&mut self, lane: usize, bytes: &[u8]) -> Result<(), MuxError> {
        self.lanes[lane].reader.push(bytes);
        while let Some(frame) = self.lanes[lane].reader.take()? {
            self.handle_frame(lane, frame)?;
        }
        Ok(())
    }

    fn handle_frame(&mut self, lane: usize, frame: Frame) -> Result<(), MuxError> {
        let misplaced = MuxError::Misplaced(frame.kind());
        // The first word on the first lane says how far this end may go.
        if !self.heard_begin && lane == 0 && !matches!(frame, Frame::Begin(_)) {
            return Err(misplaced);
        }
        match frame {
            Frame::Begin(windows) if lane == 0 => self.handle_begin(windows),
            Frame::Begin(_) | Frame::Join(_) => return Err(misplaced),
            Frame::Data { stream, bytes } => self.handle_data(lane, stream, &bytes, false)?,
            Frame::Last { stream, bytes } => self.handle_data(lane, stream, &bytes, true)?,
            Frame::Reset { stream, code } => {
                let incoming = self.incoming(lane, stream, misplaced)?;
                incoming.ending = Some(Ending::Reset(code));
                let dropped = incoming.discard();
                self.credit(dropped);
                self.arrived(stream);
            }
            Frame::Stop { stream, code } => {
                let known = self.streams.get_mut(&stream).and_then(|stream| stream.outgoing.as_mut());
                if let Some(outgoing) = known.filter(|outgoing| !outgoing.stopped) {
                    outgoing.stopped = true;
                    self.events.push_back(Event::Stopped(stream, code));
                }
            }
            Frame::Window { stream, limit } => self.widen_stream(stream, limit),
            Frame::Total(limit) => self.limit = self.limit.max(limit),
            Frame::Streams { both, one } => self.admit([both, one]),
            Frame::Close { code, reason } => self.events.push_back(Event::Closed { code, reason }),
        }
        Ok(())
    }

    fn handle_begin(&mut self, windows: Windows) {
        self.limit = self.limit.max(windows.total);
        self.heard_begin = true;
        self.admit([windows.both, windows.one]);
        if windows.stream <= self.peer_window {
            return;
        }
        self.peer_window = windows.stream;
        let open: Vec<Id> = self.streams.keys().copied().collect();
        for id in open {
            self.widen_stream(id, windows.stream);
        }
    }

    /// More of this end's streams may be on the wire.
    fn admit(&mut self, leave: [u64; 2]) {
        for direction in [Direction::Both, Direction::One] {
            let at = direction as usize;
            let before = self.leave[at];
            self.leave[at] = before.max(leave[at]);
            for count in before..self.leave[at].min(self.opened[at]) {
                let id = Id::new(self.role, direction, count);
                self.ready(id);
                if let Some(stream) = self.streams.get(&id) {
                    self.lanes[stream.lane].words.insert(id);
                }
            }
        }
    }

    fn widen_stream(&mut self, id: Id, limit: u64) {
        self.unready(id);
        if let Some(outgoing) = self.streams.get_mut(&id).and_then(|stream| stream.outgoing.as_mut()) {
            outgoing.widen(limit);
        }
        self.ready(id);
    }

    fn handle_data(&mut self, lane: usize, id: Id, bytes: &[u8], last: bool) -> Result<(), MuxError> {
        let misplaced = MuxError::Misplaced(if last { kind::LAST } else { kind::DATA });
        let length = bytes.len() as u64;
        if self.received + length > self.granted {
            return Err(MuxError::Overrun);
        }
        let incoming = self.incoming(lane, id, misplaced)?;
        if !incoming.admits(bytes.len()) {
            return Err(MuxError::Overrun);
        }
        incoming.add(bytes);
        incoming.ending = last.then_some(Ending::Last);
        let dropped = if incoming.stopped { incoming.discard() } else { 0 };
        self.received += length;
        self.credit(dropped);
        self.arrived(id);
        Ok(())
    }

    /// The receiving side of a stream that bytes came for, opened if it is new; it must be on this lane and not be over.
    fn incoming(&mut self, lane: usize, id: Id, misplaced: MuxError) -> Result<&mut Incoming, MuxError> {
        if id.opener() != self.role && !self.streams.contains_key(&id) {
            let census = &mut self.census[id.direction() as usize];
            census.opened += 1;
            if census.opened > census.granted {
                return Err(MuxError::TooManyStreams);
            }
            let both = id.direction() == Direction::Both;
            let outgoing = both.then(|| Outgoing::new(self.peer_window));
            self.insert(id, lane, true, outgoing, Some(Incoming::new(self.windows.stream)));
            self.events.push_back(Event::Opened(id));
        }
        let stream = self.streams.get_mut(&id).filter(|stream| stream.lane == lane).ok_or(misplaced)?;
        stream.incoming.as_mut().filter(|incoming| incoming.ending.is_none()).ok_or(misplaced)
    }

    /// Something is there to be read, or dropped.
    fn arrived(&mut self, id: Id) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(incoming) = &mut stream.incoming else { return };
        if !incoming.stopped {
            if !incoming.told {
                incoming.told = true;
                self.events.push_back(Event::Readable(id));
            }
        } else if incoming.ending.is_some() {
            stream.incoming = None;
            self.forget_if_done(id);
        }
    }
}
