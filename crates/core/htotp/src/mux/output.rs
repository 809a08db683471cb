//! What goes out on a lane: words first, which are short and keep the peer going, then the bytes of its streams,
//! most urgent first.

use bytes::BytesMut;

use super::frame::put_data_header;
use super::{Event, Frame, Id, Mux};

/// A `DATA` frame for less is not worth its header, if something went out already.
const WORTH: usize = 256;
/// The longest header of a `DATA` frame: its type, a length of four bytes and an id of eight.
const HEADER: usize = 13;
/// The most that one stream has to say besides data: `RESET` and `STOP` (a type, an id and a code of eight bytes each), `WINDOW`, and the
/// header of an empty `DATA`.
const WORDS: usize = 3 * (1 + 8 + 8) + HEADER;

impl Mux {
    /// Puts what goes out on a lane next into `out`, which is empty, up to one TLS record; nothing if there is nothing to send. To be
    /// asked until then, and once more when nothing was added: that is a pause, after which records are short again.
    pub fn poll_output(&mut self, lane: usize, out: &mut BytesMut) {
        let busy = self.lanes.iter().filter(|lane| !lane.ready.is_empty()).count();
        let room = self.lanes[lane].run.room(self.longest, busy);
        self.put_record(lane, room, out);
        self.lanes[lane].run.sent(out.len());
    }

    fn put_record(&mut self, lane: usize, record: usize, out: &mut BytesMut) {
        if self.tell_begin {
            // Nothing goes before it on the first lane; others may overtake it.
            if lane != 0 {
                return;
            }
            self.tell_begin = false;
            self.tell_windows = true;
        }
        if lane == 0 && std::mem::take(&mut self.tell_windows) {
            Frame::Begin(self.windows).put(out);
        }
        if let Some((code, reason)) = self.tell_close.take() {
            Frame::Close { code, reason }.put(out);
            self.closed = true;
        }
        if self.closed {
            return;
        }
        self.put_common_words(out);
        while out.len() + WORDS <= record
            && let Some(id) = self.lanes[lane].words.pop_first()
        {
            self.put_words(id, out);
        }
        while out.len() + HEADER + WORTH < record
            && let Some((.., id)) = self.lanes[lane].ready.first().copied()
        {
            let room = usize::try_from(self.limit - self.sent).unwrap_or(usize::MAX);
            if !self.put_data(id, room.min(record - HEADER - out.len()), out) {
                break;
            }
        }
    }

    fn put_common_words(&mut self, out: &mut BytesMut) {
        if std::mem::take(&mut self.tell_total) {
            self.granted = self.read + self.windows.total;
            Frame::Total(self.granted).put(out);
        }
        if std::mem::take(&mut self.tell_streams) {
            let most = [self.windows.both, self.windows.one];
            for (census, most) in self.census.iter_mut().zip(most) {
                census.granted = census.complete + most;
            }
            let [both, one] = [self.census[0].granted, self.census[1].granted];
            Frame::Streams { both, one }.put(out);
        }
    }

    /// What a stream has to say besides data.
    fn put_words(&mut self, id: Id, out: &mut BytesMut) {
        if !self.is_admitted(id) {
            return; // comes again when it is
        }
        let window = self.windows.stream;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some(code) = stream.reset.take() {
            stream.on_wire = true;
            Frame::Reset { stream: id, code }.put(out);
        }
        if let Some(incoming) = stream.incoming.as_mut()
            && incoming.owes_word(window)
        {
            let limit = incoming.grant(window);
            Frame::Window { stream: id, limit }.put(out);
        }
        if let Some(code) = stream.stop.take()
            && stream.incoming.is_some()
        {
            if !stream.on_wire {
                // The peer has to know the stream that it is to stop.
                stream.on_wire = true;
                put_data_header(out, false, id, 0);
            }
            Frame::Stop { stream: id, code }.put(out);
        }
        self.forget_if_done(id);
    }

    /// Sends at most `most` bytes of a stream; false when the carrier's window lets nothing go.
    fn put_data(&mut self, id: Id, most: usize, out: &mut BytesMut) -> bool {
        let room = self.streams.get(&id).and_then(|stream| stream.outgoing.as_ref()).map(|o| o.room());
        let Some(room) = room else { return false };
        let length = room.min(most);
        if length == 0 && room > 0 {
            return false;
        }
        self.unready(id);
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let Some(outgoing) = &mut stream.outgoing else { return false };
        let last = outgoing.end && length == outgoing.queued();
        put_data_header(out, last, id, length);
        outgoing.take(length, out);
        stream.on_wire = true;
        self.sent += length as u64;
        if outgoing.writing && outgoing.queued() == 0 {
            outgoing.writing = false;
            self.events.push_back(Event::Written(id));
        }
        if last {
            stream.outgoing = None;
            self.forget_if_done(id);
        } else {
            self.ready(id);
        }
        true
    }
}
