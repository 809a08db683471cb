//! Joins a session to a QUIC connection: does what the session transmits, tells it what comes. The only
//! place where HTOTP and quinn meet; `lanes` is the same for TCP.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Class;
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::{Direction, Transmit, URGENT};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use quinn::{Connection, ReadError, RecvStream, SendStream, StoppedError, VarInt, WriteError};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::attune::{self, Attune};
use super::trickle::{self, Trickle};
use super::{Closed, Shared, State, datagrams};
use crate::congestion;
use crate::connection::quic_name;
use crate::ends::{End as Last, Ends};
use crate::path::End;
use crate::wake;
use crate::write_ahead::{Given, WriteAhead};

/// How often a sign of life is looked for while the carrier is watched closely, and while one is overdue.
const LISTEN: Duration = Duration::from_millis(200);
const LISTEN_CLOSELY: Duration = Duration::from_millis(50);
/// A datagram that asks for an acknowledgement.
const PROBE: Bytes = Bytes::from_static(&[0]);
/// Pieces of a stream read at once. Each comes from a packet of its own, and of those a socket brings as many at a time.
const PIECES: usize = 48;

type Jobs<T> = FuturesUnordered<Pin<Box<dyn Future<Output = T> + Send>>>;
/// A stream opened, with its receiving side where it has one; `None` once the connection has ended.
type Opened = (StreamId, Option<(SendStream, Option<RecvStream>)>);
/// A write done, of so many bytes; its side comes back unless it was its last.
type Written = (StreamId, Option<Side>, usize, Result<(), WriteError>);
/// A read done; its side comes back unless it was interrupted.
type Read = (StreamId, Option<RecvStream>, Result<Option<Vec<Bytes>>, ReadError>);
/// The peer wants no more of a stream, or it is complete.
type Stopped = (StreamId, Result<Option<VarInt>, StoppedError>);

/// A sending side: at rest, or lent to a write that a reset can interrupt.
enum Out {
    Opening { waiting: Option<Handed> },
    Idle(Side),
    Lent(oneshot::Sender<u64>),
}

struct Side {
    stream: SendStream,
    trickle: Trickle,
}

impl From<SendStream> for Side {
    fn from(stream: SendStream) -> Side {
        Side { stream, trickle: Trickle::default() }
    }
}

/// What the session has written.
struct Handed {
    segments: Vec<Bytes>,
    end: bool,
    priority: i32,
    drains: bool,
}

/// A receiving side: at rest because its reader is slow, or lent to a read that a stop can interrupt.
enum In {
    Paused(RecvStream),
    Lent(oneshot::Sender<u64>),
}

struct Driver {
    connection: Connection,
    shared: Arc<Shared>,
    outs: HashMap<StreamId, Out>,
    ins: HashMap<StreamId, In>,
    opening: Jobs<Opened>,
    writes: Jobs<Written>,
    reads: Jobs<Read>,
    stops: Jobs<Stopped>,
    received: u64,
    /// Writes under way, oldest first. One that a later write has overtaken waits for its own reader and fills nothing.
    waiting: Vec<Waiting>,
    /// Streams that are written to again at these times.
    resting: Vec<(Duration, StreamId)>,
    ahead: WriteAhead,
    attune: Attune,
    ends: Ends,
    datagrams: datagrams::Buffer,
}

struct Waiting {
    id: StreamId,
    since: Duration,
    overtaken: bool,
    /// Room was made for it.
    lent: bool,
}

/// Writes that may wait for the carrier at a time: it serves them in no order, so few may.
const MOST_WAITING: usize = 2;
/// Pieces take some 50 ms of the path: a write that waits for so long waits for its own reader, and holds up no datagrams.
const STALLS: Duration = Duration::from_secs(1);

/// Runs until the connection ends or the session gives it up.
pub(super) async fn run(connection: Connection, shared: Arc<Shared>, ahead: WriteAhead, end: End) {
    let mut driver = Driver {
        ends: congestion::ends(&connection),
        connection,
        shared,
        outs: HashMap::new(),
        ins: HashMap::new(),
        opening: FuturesUnordered::new(),
        writes: FuturesUnordered::new(),
        reads: FuturesUnordered::new(),
        stops: FuturesUnordered::new(),
        received: 0,
        waiting: Vec::new(),
        resting: Vec::new(),
        ahead,
        attune: Attune::new(end),
        datagrams: datagrams::Buffer::default(),
    };
    driver.shared.lock().datagrams = Some(driver.connection.clone());
    let reason = driver.serve().await;
    // A connection that has ended keeps the reason for whoever asks; closing it would put this end's own in its place.
    if driver.connection.close_reason().is_none() && reason != Closed::Unheard {
        driver.connection.close(VarInt::from_u32(0), reason.to_string().as_bytes());
    }
    let shared = Arc::clone(&driver.shared);
    let unaccepted = {
        let mut state = shared.lock();
        attune::keep(&state);
        state.datagrams = None;
        state.name = state.name.or_else(|| quic_name(&driver.connection));
        state.close(&shared, reason);
        std::mem::take(&mut state.incoming)
    };
    // Dropped without the lock: each handle takes it to say that it is gone.
    drop(unaccepted);
}

impl Driver {
    async fn serve(&mut self) -> Closed {
        loop {
            let wakeup = match self.pump() {
                Ok(wakeup) => wakeup,
                Err(reason) => return reason,
            };
            let shared = Arc::clone(&self.shared);
            let connection = self.connection.clone();
            // In a fixed order, so that the same happens again when a seed is lived again. Reads come last, since a flood of
            // them lasts; what is before them is bounded. `pump` does what work and time call for in any case.
            tokio::select! {
                biased;
                Some(written) = self.writes.next() => self.written(written),
                Some((id, stream)) = self.opening.next() => self.opened(id, stream),
                Some((id, result)) = self.stops.next() => self.stopped(id, result),
                datagram = connection.read_datagram() => match datagram {
                    Ok(datagram) if datagram == PROBE => self.shared.lock().session.handle_probe(),
                    Ok(datagram) => self.shared.lock().handle_datagram(&shared, datagram),
                    Err(error) => return Closed::Lost(error.to_string()),
                },
                stream = connection.accept_bi() => match stream {
                    Ok((send, recv)) => self.accepted(Some(send), recv),
                    Err(error) => return Closed::Lost(error.to_string()),
                },
                stream = connection.accept_uni() => match stream {
                    Ok(recv) => self.accepted(None, recv),
                    Err(error) => return Closed::Lost(error.to_string()),
                },
                Some((id, stream, result)) = self.reads.next() => self.read(id, stream, result),
                () = shared.work.notified() => {}
                () = sleep_until(&shared, wakeup) => {}
            }
        }
    }

    /// Does all that the session wants done; gives the time of the next wake-up.
    fn pump(&mut self) -> Result<Option<Duration>, Closed> {
        let shared = Arc::clone(&self.shared);
        let now = shared.now();
        let received = self.connection.stats().udp_rx.datagrams;
        let mut state = shared.lock();
        if received != self.received {
            self.received = received;
            state.session.handle_activity(now);
        }
        if let Some(reason) = state.closed.clone() {
            return Err(reason);
        }
        state.name = state.name.or_else(|| quic_name(&self.connection));
        // A stream counts until both of its sides have ended.
        let open = self.ins.len().max(self.outs.len());
        self.attune.look(now, &self.connection, open, &mut state);
        self.ahead.set_most(state.tuner.parameters().send_most);
        let given = Given { handed: state.session.handed_out(), is_calm: state.session.is_calm() };
        if let Some(pace) = self.ahead.adapt(now, &self.connection, given) {
            state.session.set_pace(now, pace);
        }
        state.sending = self.ahead.sending().or(state.sending);
        for (_, id) in self.resting.extract_if(.., |(until, _)| *until <= now) {
            state.session.handle_written(id);
        }
        loop {
            let full: Vec<StreamId> = self.waiting.iter().filter(|w| !w.overtaken).map(|w| w.id).collect();
            let most = if full.len() >= MOST_WAITING { full.len() } else { 0 };
            state.session.set_full(full.into_iter().take(most));
            if state.session.has_datagrams() {
                let floor = self.floor(now, &state);
                let has_room = self.datagrams.has_room(&self.connection, self.ahead.about());
                state.session.hold_datagrams(floor, has_room);
            }
            let Some(transmit) = state.session.poll_transmit(now) else { break };
            if let Transmit::Write { stream, .. } = &transmit {
                state.recount(*stream);
            }
            self.transmit(now, transmit);
        }
        let resume = std::mem::take(&mut state.resume);
        if let Some(reason) = state.dispatch(&shared) {
            return Err(reason);
        }
        let rested = self.resting.iter().map(|(until, _)| *until).min();
        let listen = now + if state.session.is_overdue(now) { LISTEN_CLOSELY } else { LISTEN };
        let listen = state.session.is_watched(now).then_some(listen);
        let look = state.session.has_datagrams().then_some(now + datagrams::LOOK);
        let wakeup = [state.session.next_wakeup(now), rested, listen, look].into_iter().flatten().min();
        drop(state);
        for id in resume {
            if let Some(In::Paused(_)) = self.ins.get(&id)
                && let Some(In::Paused(stream)) = self.ins.remove(&id)
            {
                self.start_read(id, stream);
            }
        }
        Ok(wakeup)
    }

    /// The most urgent class of the streams that the carrier is full of.
    fn floor(&self, now: Duration, state: &State) -> Option<Class> {
        let full = self.waiting.iter().filter(|it| !it.overtaken && now < it.since + STALLS);
        full.filter_map(|waiting| state.session.class(waiting.id)).min()
    }

    fn transmit(&mut self, now: Duration, transmit: Transmit) {
        match transmit {
            Transmit::Open(id, direction) => {
                self.outs.insert(id, Out::Opening { waiting: None });
                let connection = self.connection.clone();
                self.opening.push(Box::pin(async move {
                    let stream = match direction {
                        Direction::Both => {
                            connection.open_bi().await.ok().map(|(send, recv)| (send, Some(recv)))
                        }
                        Direction::One => connection.open_uni().await.ok().map(|send| (send, None)),
                    };
                    (id, stream)
                }));
            }
            Transmit::Write { stream, segments, end, priority, drains } => {
                let handed = Handed { segments, end, priority, drains };
                match self.outs.get_mut(&stream) {
                    Some(Out::Opening { waiting }) => *waiting = Some(handed),
                    Some(Out::Idle(_)) => {
                        if let Some(Out::Idle(side)) = self.outs.remove(&stream) {
                            self.start_write(stream, side, handed);
                        }
                    }
                    Some(Out::Lent(_)) | None => {}
                }
            }
            Transmit::Datagram(datagram) => {
                // The path may have become narrower since it was taken in: it is lost then.
                let _ = self.connection.send_datagram(datagram);
            }
            Transmit::Reset(id, code) => match self.outs.remove(&id) {
                Some(Out::Idle(mut side)) => {
                    // The peer may have stopped or finished it meanwhile: nothing is left to reset then.
                    let _ = side.stream.reset(varint(code));
                }
                Some(Out::Lent(interrupt)) => drop(interrupt.send(code)),
                Some(Out::Opening { .. }) | None => {}
            },
            Transmit::Stop(id, code) => match self.ins.remove(&id) {
                Some(In::Paused(mut recv)) => drop(recv.stop(varint(code))),
                Some(In::Lent(interrupt)) => drop(interrupt.send(code)),
                None => {}
            },
            Transmit::Probe => {
                if wake::wake(&self.connection, Instant::now().into_std()) {
                    self.ahead.wake(now, &self.connection);
                }
                // A datagram waits for no stream that is in disorder. A peer that takes none is woken by its own timers.
                let _ = self.connection.send_datagram(PROBE);
            }
        }
    }

    fn opened(&mut self, id: StreamId, stream: Option<(SendStream, Option<RecvStream>)>) {
        let Some((mut send, recv)) = stream else { return };
        if let Some(recv) = recv {
            self.start_read(id, recv);
        }
        match self.outs.remove(&id) {
            Some(Out::Opening { waiting }) => {
                self.watch(id, &send);
                match waiting {
                    Some(handed) => self.start_write(id, send.into(), handed),
                    None => drop(self.outs.insert(id, Out::Idle(send.into()))),
                }
            }
            // Cancelled before it was opened.
            _ => drop(send.reset(varint(farhop_htotp::session::code::CANCELLED))),
        }
    }

    fn accepted(&mut self, send: Option<SendStream>, recv: RecvStream) {
        let direction = if send.is_some() { Direction::Both } else { Direction::One };
        let id = self.shared.lock().session.handle_opened(direction);
        if let Some(send) = send {
            self.watch(id, &send);
            self.outs.insert(id, Out::Idle(send.into()));
        }
        self.start_read(id, recv);
    }

    /// Notices at once when the peer stops a stream on which nothing is being written.
    fn watch(&mut self, id: StreamId, send: &SendStream) {
        let stopped = send.stopped();
        self.stops.push(Box::pin(async move { (id, stopped.await) }));
    }

    fn stopped(&mut self, id: StreamId, result: Result<Option<VarInt>, StoppedError>) {
        if let (Ok(Some(code)), true) = (result, self.outs.contains_key(&id)) {
            self.shared.lock().session.handle_stopped(id, code.into_inner());
        }
    }

    fn start_write(&mut self, id: StreamId, mut side: Side, handed: Handed) {
        let Handed { segments, end, priority, drains } = handed;
        let mut segments = trickle::joined(segments);
        let last = Last { bytes: segments.iter().map(Bytes::len).sum(), urgent: priority >= URGENT };
        let ends = self.ends.clone();
        let (interrupt, interrupted) = oneshot::channel();
        self.outs.insert(id, Out::Lent(interrupt));
        let lent = drains && last.urgent && self.ahead.lend(last.bytes as u64, &self.connection);
        self.waiting.push(Waiting { id, since: self.shared.now(), overtaken: false, lent });
        self.writes.push(Box::pin(async move {
            let _ = side.stream.set_priority(priority);
            tokio::select! {
                biased;
                result = side.stream.write_all_chunks(&mut segments) => {
                    if drains && result.is_ok() {
                        // Before QUIC has sent it, as a rule: it is woken by the write.
                        ends.tell(last);
                    }
                    if end {
                        let _ = side.stream.finish();
                        return (id, None, last.bytes, result);
                    }
                    (id, Some(side), last.bytes, result)
                }
                Ok(code) = interrupted => {
                    let _ = side.stream.reset(varint(code));
                    (id, None, last.bytes, Ok(()))
                }
            }
        }));
    }

    fn written(&mut self, (id, side, bytes, result): Written) {
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.id == id) {
            if self.waiting.remove(place).lent {
                self.ahead.take_back(&self.connection);
            }
            self.waiting[..place].iter_mut().for_each(|earlier| earlier.overtaken = true);
        }
        if !matches!(self.outs.get(&id), Some(Out::Lent(_))) {
            // Reset while it was lent: a stream that is merely dropped would look finished.
            if let Some(mut side) = side {
                let _ = side.stream.reset(varint(farhop_htotp::session::code::CANCELLED));
            }
            return;
        }
        self.outs.remove(&id);
        let mut state = self.shared.lock();
        match (result, side) {
            (Err(WriteError::Stopped(code)), _) => state.session.handle_stopped(id, code.into_inner()),
            // The connection's end is reported by accept.
            (Err(_), _) => {}
            (Ok(()), None) => state.session.handle_written(id),
            (Ok(()), Some(mut side)) => {
                match side.trickle.wrote(self.shared.now(), bytes) {
                    Some(until) => self.resting.push((until, id)),
                    None => state.session.handle_written(id),
                }
                self.outs.insert(id, Out::Idle(side));
            }
        }
    }

    fn start_read(&mut self, id: StreamId, mut recv: RecvStream) {
        let (interrupt, interrupted) = oneshot::channel();
        self.ins.insert(id, In::Lent(interrupt));
        self.reads.push(Box::pin(async move {
            tokio::select! {
                biased;
                result = read_pieces(&mut recv) => (id, Some(recv), result),
                Ok(code) = interrupted => {
                    let _ = recv.stop(varint(code));
                    (id, None, Ok(None))
                }
            }
        }));
    }

    fn read(
        &mut self,
        id: StreamId,
        stream: Option<RecvStream>,
        result: Result<Option<Vec<Bytes>>, ReadError>,
    ) {
        let Some(mut recv) = stream else { return };
        if self.ins.remove(&id).is_none() {
            // Stopped while it was lent.
            let _ = recv.stop(varint(farhop_htotp::session::code::CANCELLED));
            return;
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        match result {
            Ok(Some(pieces)) => {
                let now = shared.now();
                pieces.into_iter().for_each(|piece| state.session.handle_data(now, id, piece));
                let broken = state.dispatch(&shared);
                if let Some(reason) = broken {
                    state.close(&shared, reason);
                }
                let pauses = state.pauses(id);
                drop(state);
                if pauses {
                    self.ins.insert(id, In::Paused(recv));
                } else {
                    self.start_read(id, recv);
                }
            }
            Ok(None) => state.session.handle_end(id),
            Err(ReadError::Reset(code)) => state.session.handle_reset(id, code.into_inner()),
            // The connection's end is reported by accept.
            Err(_) => {}
        }
    }
}

/// What is there of a stream, at least one piece and in order; none at its end. A read that waits holds no room for them. Cancel-safe,
/// as what it is made of is.
async fn read_pieces(recv: &mut RecvStream) -> Result<Option<Vec<Bytes>>, ReadError> {
    poll_fn(|cx| {
        let mut pieces = [const { Bytes::new() }; PIECES];
        // It keeps nothing between polls.
        let count = ready!(pin!(recv.read_chunks(&mut pieces)).poll(cx))?;
        Poll::Ready(Ok(count.map(|count| pieces.into_iter().take(count).collect())))
    })
    .await
}

fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

pub(super) async fn sleep_until(shared: &Shared, at: Option<Duration>) {
    match at {
        Some(at) if at < Duration::MAX => tokio::time::sleep_until(shared.epoch + at).await,
        _ => std::future::pending().await,
    }
}
