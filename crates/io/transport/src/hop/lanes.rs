//! Joins a session to a mux over the lanes of a carrier over TCP: does what the session transmits, tells it what
//! comes. The counterpart of `driver`, which does so for QUIC.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use farhop_htotp::mux::{Event, Id, MOST_LANES, Mux, Read};
use farhop_htotp::scheduler::StreamId;
use farhop_htotp::session::Transmit;
use farhop_tuning::Totals;
use farhop_units::Bytes;
use tokio::sync::mpsc;

use super::driver::sleep_until;
use super::{Closed, Shared, State, attune};
use crate::quic::CarrierError;
use crate::tcp::{Connection, Lane, LaneError, Parts};

/// Writes that may wait for each lane: what waits is overtaken only by what is more urgent.
const MOST_WAITING: usize = 2;
/// How often the kernel is asked for the round trip.
const MEASURE: Duration = Duration::from_secs(1);
/// The payload of a full segment.
const SEGMENT: u64 = 1400;
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(2);

struct Driver {
    connection: Connection,
    shared: Arc<Shared>,
    mux: Mux,
    lanes: Vec<Lane>,
    joining: mpsc::Receiver<Box<Lane>>,
    /// The session's streams as the mux names them, and back.
    ids: HashMap<StreamId, Id>,
    names: HashMap<Id, StreamId>,
    /// Streams whose readers are slow: what comes waits in the mux, and the peer at its window.
    paused: HashSet<StreamId>,
    /// Something was received since the session was last told.
    heard: bool,
    /// Bytes received on all lanes.
    received: u64,
    measured: Option<Duration>,
    /// The smallest round trip that was measured.
    least: Duration,
}

/// Runs until the carrier ends or the session gives it up.
pub(super) async fn run(connection: Connection, parts: Parts, shared: Arc<Shared>) {
    let mut driver = Driver {
        connection,
        shared,
        mux: parts.mux,
        lanes: vec![parts.first],
        joining: parts.joining,
        ids: HashMap::new(),
        names: HashMap::new(),
        paused: HashSet::new(),
        heard: false,
        received: 0,
        measured: None,
        least: Duration::MAX,
    };
    let reason = driver.serve().await;
    let shared = Arc::clone(&driver.shared);
    let unaccepted = {
        let mut state = shared.lock();
        attune::keep(&state);
        state.close(&shared, reason.clone());
        std::mem::take(&mut state.incoming)
    };
    // Dropped without the lock: each handle takes it to say that it is gone.
    drop(unaccepted);
    if !matches!(reason, Closed::Lost(_)) {
        driver.connection.end(CarrierError::ClosedHere { addr: driver.connection.remote_address() });
        driver.mux.close(0, &reason.to_string());
        let _ = tokio::time::timeout(FAREWELL, driver.farewell()).await;
    }
}

impl Driver {
    async fn serve(&mut self) -> Closed {
        loop {
            let wakeup = match self.pump() {
                Ok(wakeup) => wakeup,
                Err(reason) => return reason,
            };
            let Driver { connection, shared, lanes, mux, joining, .. } = self;
            tokio::select! {
                () = shared.work.notified() => {}
                () = sleep_until(shared, wakeup) => {}
                Some(lane) = joining.recv(), if lanes.len() < MOST_LANES => {
                    mux.add_lane();
                    lanes.push(*lane);
                    connection.set_lanes(lanes.len());
                }
                moved = poll_fn(|cx| poll_lanes(lanes, mux, cx)) => match moved {
                    Ok(received) => {
                        connection.count(received);
                        self.heard |= received > 0;
                        self.received += received as u64;
                    }
                    Err(error) => return self.lost(error),
                },
            }
        }
    }

    /// Why the carrier ends when a lane does. The peer's last words may have come before the end.
    fn lost(&mut self, error: LaneError) -> Closed {
        while let Some(event) = self.mux.poll_event() {
            if let Event::Closed { code, reason } = event {
                return self.closed(code, reason);
            }
        }
        match error {
            LaneError::Mux(error) => Closed::Broken(error.to_string()),
            LaneError::Io(error) => {
                let reason = self.connection.explain(&error);
                self.connection.end(reason.clone());
                Closed::Lost(reason.to_string())
            }
        }
    }

    fn closed(&self, code: u64, reason: String) -> Closed {
        let reason = CarrierError::Closed { addr: self.connection.remote_address(), code, reason };
        self.connection.end(reason.clone());
        Closed::Lost(reason.to_string())
    }

    /// Does all that the session wants done and tells it what has come; gives the time of the next wake-up.
    fn pump(&mut self) -> Result<Option<Duration>, Closed> {
        let shared = Arc::clone(&self.shared);
        let now = shared.now();
        let mut state = shared.lock();
        if std::mem::take(&mut self.heard) {
            state.session.handle_activity(now);
        }
        self.measure(now, &mut state);
        if let Some(reason) = state.closed.clone() {
            return Err(reason);
        }
        while let Some(event) = self.mux.poll_event() {
            self.handle(now, &mut state, event)?;
        }
        state.dispatch(&shared).map_or(Ok(()), Err)?;
        for id in std::mem::take(&mut state.resume) {
            if self.paused.remove(&id)
                && let Some(name) = self.ids.get(&id)
            {
                self.read(now, &mut state, *name)?;
            }
        }
        loop {
            self.tell_full(&mut state);
            let Some(transmit) = state.session.poll_transmit(now) else { break };
            if let Transmit::Write { stream, .. } = &transmit {
                state.recount(*stream);
            }
            self.transmit(transmit);
        }
        state.dispatch(&shared).map_or(Ok(()), Err)?;
        Ok(state.session.next_wakeup(now))
    }

    fn handle(&mut self, now: Duration, state: &mut State, event: Event) -> Result<(), Closed> {
        match event {
            Event::Opened(id) => {
                let name = state.session.handle_opened(id.direction());
                self.bind(name, id);
            }
            Event::Readable(id) => self.read(now, state, id)?,
            Event::Stopped(id, code) => {
                if let Some(name) = self.names.get(&id) {
                    state.session.handle_stopped(*name, code);
                }
            }
            Event::Written(id) => {
                if let Some(name) = self.names.get(&id) {
                    state.session.handle_written(*name);
                }
            }
            Event::Gone(id) => {
                if let Some(name) = self.names.remove(&id) {
                    self.ids.remove(&name);
                    self.paused.remove(&name);
                }
            }
            Event::Closed { code, reason } => return Err(self.closed(code, reason)),
        }
        Ok(())
    }

    fn bind(&mut self, name: StreamId, id: Id) {
        self.ids.insert(name, id);
        self.names.insert(id, name);
    }

    /// Hands on what waits on a stream, until its reader has enough.
    fn read(&mut self, now: Duration, state: &mut State, id: Id) -> Result<(), Closed> {
        let Some(name) = self.names.get(&id).copied() else { return Ok(()) };
        while !self.paused.contains(&name)
            && let Some(read) = self.mux.read(id)
        {
            match read {
                Read::Data(bytes) => state.session.handle_data(now, name, bytes),
                Read::End => state.session.handle_end(name),
                Read::Reset(code) => state.session.handle_reset(name, code),
            }
            state.dispatch(&self.shared).map_or(Ok(()), Err)?;
            if state.pauses(name) {
                self.paused.insert(name);
            }
        }
        Ok(())
    }

    /// Says how full the carrier is, so that little waits in it that could be overtaken outside.
    fn tell_full(&self, state: &mut State) {
        let waiting: Vec<StreamId> =
            self.mux.waiting().filter_map(|id| self.names.get(&id).copied()).collect();
        let most = if waiting.len() >= MOST_WAITING * self.lanes.len() { waiting.len() } else { 0 };
        state.session.set_full(waiting.into_iter().take(most));
    }

    fn transmit(&mut self, transmit: Transmit) {
        let known = |id| self.ids.get(&id).copied();
        match transmit {
            Transmit::Open(name, direction) => {
                let id = self.mux.open(direction);
                self.bind(name, id);
            }
            Transmit::Write { stream, segments, end, priority, .. } => {
                if let Some(id) = known(stream) {
                    self.mux.write(id, segments, end, priority);
                }
            }
            Transmit::Reset(stream, code) => {
                if let Some(id) = known(stream) {
                    self.mux.reset(id, code);
                }
            }
            Transmit::Stop(stream, code) => {
                if let Some(id) = known(stream) {
                    self.mux.stop(id, code);
                }
            }
            // Repeating is the kernel's affair here, and its timer cannot be hurried. Flows use their streams.
            Transmit::Probe | Transmit::Datagram(_) => {}
        }
    }

    /// The remote's pings tell the round trip of the hop; at ground, the kernel that of its own connection.
    fn measure(&mut self, now: Duration, state: &mut State) {
        if self.measured.is_some_and(|last| now < last + MEASURE) {
            return;
        }
        self.measured = Some(now);
        self.widen(state);
        self.connection.set_acknowledged(self.lanes.iter().map(|lane| lane.acknowledged()).sum());
        if let Some(round_trip) = state.rtt.or_else(|| self.lanes[0].round_trip()) {
            self.connection.set_rtt(round_trip);
            self.least = self.least.min(round_trip);
            let totals = Totals {
                received: Bytes(self.received),
                // The kernel counts them and does not tell.
                received_packets: self.received / SEGMENT,
                round_trip: Some((round_trip, self.least)),
                ..Totals::default()
            };
            attune::observe(now, &totals, self.ids.len(), state);
            attune::report(now, state);
            attune::keep(state);
            if let Some(rate) = state.tuner.measured().sending {
                state.session.set_about(rate);
                self.mux.fit(rate);
                // A rate that is set has sized this already.
                if state.tuner.set().sending().is_none() {
                    self.lanes.iter().for_each(|lane| lane.fit(rate));
                }
            }
        }
    }

    /// What this end takes unread follows what is measured, now or on earlier carriers.
    fn widen(&mut self, state: &mut State) {
        let sizes = state.tuner.parameters();
        self.mux.widen(sizes.stream_window.0, sizes.carrier_window.0);
        state.mux_windows = self.mux.windows();
    }

    /// Tells the peer that the carrier has ended, and why. The other lanes stay open meanwhile: the end of one could arrive
    /// before the reason.
    async fn farewell(&mut self) {
        let Driver { lanes, mux, .. } = self;
        // A peer that is gone needs no farewell.
        let _ = poll_fn(|cx| lanes[0].poll_farewell(cx, 0, mux)).await;
    }
}

/// Ready when something has moved on any lane: how many bytes were received.
fn poll_lanes(lanes: &mut [Lane], mux: &mut Mux, cx: &mut Context<'_>) -> Poll<Result<usize, LaneError>> {
    let mut moved = None;
    for (number, lane) in lanes.iter_mut().enumerate() {
        match lane.poll(cx, number, mux) {
            Poll::Ready(Ok(received)) => moved = Some(moved.unwrap_or(0) + received),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => {}
        }
    }
    moved.map_or(Poll::Pending, |received| Poll::Ready(Ok(received)))
}
