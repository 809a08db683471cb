//! One direction, live: the loop between the TUN devices of one side, the model and those of the other. The only place
//! of the emulator that reads a clock or blocks.

use farhop_netdev::{Tun, Waker, cpu_time, precise_timers, realtime_priority, wait_readable};
use farhop_orbit::{Counters, Direction, Label, Transmit};
use farhop_units::Bytes;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::flows::Flows;
use crate::header;
use crate::lateness::Lateness;

/// Packets read before those that are due are written: enough to spread the cost of a wake-up, few enough
/// that no packet waits for a whole burst.
const BATCH: usize = 64;

/// The largest packet: IPv4's own limit, since the device's MTU is the testbed's choice.
const LARGEST: usize = 65_536;

/// Above ordinary work, below the kernel's own real-time threads (which start at 50).
const PRIORITY: i32 = 49;

/// A thread that sleeps until a packet is due wakes tens of microseconds late, so it sleeps this much less
/// and looks again and again for the rest: about 3 % of a core at 8 Mbit/s.
const AWAKE_BEFORE: Duration = Duration::from_micros(80);

/// A packet under way, and the terminal that it comes from or goes to.
pub(crate) struct Packet {
    terminal: u16,
    bytes: Box<[u8]>,
}

/// What the thread and its controllers share.
pub(crate) struct Lane {
    state: Mutex<State>,
    waker: Waker,
    stop: AtomicBool,
    epoch: Instant,
}

/// Guarded by the lane's lock, which is held for microseconds at most.
pub(crate) struct State {
    pub(crate) direction: Direction<Packet>,
    pub(crate) seen: Seen,
    pub(crate) realtime: bool,
    pub(crate) failure: Option<String>,
}

/// What a lane has seen since the last reset, besides the model's counters.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) lateness: Lateness,
    pub(crate) flows: Flows,
    pub(crate) refused: u64,
    pub(crate) cpu: Duration,
}

impl Seen {
    pub(crate) fn nothing() -> Self {
        Seen { lateness: Lateness::new(), flows: Flows::default(), refused: 0, cpu: Duration::ZERO }
    }
}

impl Lane {
    /// A lane for `direction`, on a clock that starts at `epoch`.
    pub(crate) fn new(direction: Direction<Packet>, epoch: Instant) -> io::Result<Self> {
        let state = State { direction, seen: Seen::nothing(), realtime: false, failure: None };
        let (state, stop) = (Mutex::new(state), AtomicBool::new(false));
        Ok(Lane { state, waker: Waker::new()?, stop, epoch })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panicking holder leaves counters at worst half updated, never a broken model.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the model at the present moment and lets the thread look at its timers again.
    pub(crate) fn control(&self, change: impl FnOnce(Duration, &mut Direction<Packet>)) {
        let mut state = self.state();
        change(self.epoch.elapsed(), &mut state.direction);
        drop(state);
        self.waker.wake();
    }

    /// Reads everything and starts it afresh.
    pub(crate) fn take(&self) -> (Counters, Seen) {
        let mut fresh = Seen::nothing(); // made before the lock is taken: the thread must not wait for it
        let mut state = self.state();
        std::mem::swap(&mut state.seen, &mut fresh);
        (state.direction.take_counters(), fresh)
    }

    /// Ends the thread after what it is doing.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Carries packets until told to stop or a device is gone: what is read from the first device on one side comes out of the first
    /// on the other, and so on.
    pub(crate) fn run(self: Arc<Self>, from: &[Tun], to: &[Tun]) {
        precise_timers();
        self.state().realtime = realtime_priority(PRIORITY).is_ok();
        if let Err(failure) = self.carry(from, to) {
            self.state().failure = Some(failure);
        }
    }

    fn carry(&self, from: &[Tun], to: &[Tun]) -> Result<(), String> {
        let mut buffer = vec![0; LARGEST];
        let mut read: Vec<(Duration, Packet)> = Vec::with_capacity(BATCH);
        let mut due: Vec<Transmit<Packet>> = Vec::with_capacity(BATCH);
        let mut turn = 0;
        let mut cpu = cpu_time();
        let sources: Vec<_> = from.iter().map(|tun| tun.as_fd()).chain([self.waker.source()]).collect();
        while !self.stop.load(Ordering::Relaxed) {
            let busy = self.read(from, &mut turn, &mut buffer, &mut read)?;

            let mut state = self.state();
            for (at, packet) in read.drain(..) {
                state.seen.flows.note(&packet.bytes);
                let label = Label { terminal: packet.terminal, ..header::label(&packet.bytes) };
                state.direction.handle_labelled(at, Bytes(packet.bytes.len() as u64), label, packet);
            }
            let now = self.epoch.elapsed();
            while due.len() < BATCH
                && let Some(transmit) = state.direction.poll_transmit(now)
            {
                due.push(transmit);
            }
            let next = state.direction.next_wakeup();
            drop(state);

            if !due.is_empty() {
                self.deliver(to, &mut due, &mut cpu);
            } else if !busy {
                let timeout = next.map(|at| at.saturating_sub(now + AWAKE_BEFORE));
                if timeout != Some(Duration::ZERO) {
                    wait_readable(&sources, timeout)
                        .map_err(|error| format!("waiting for the link's devices failed: {error}"))?;
                    self.waker.clear();
                }
            }
        }
        Ok(())
    }

    /// Reads what the devices have, a share of the batch from each, and tells whether one of them has more.
    fn read(
        &self,
        from: &[Tun],
        turn: &mut usize,
        buffer: &mut [u8],
        read: &mut Vec<(Duration, Packet)>,
    ) -> Result<bool, String> {
        let (share, mut busy) = ((BATCH / from.len().max(1)).max(1), false);
        // Another begins each time, so that where the batch is too small for all nobody is left out for long.
        *turn = turn.wrapping_add(1);
        for step in 0..from.len() {
            let terminal = turn.wrapping_add(step) % from.len();
            let Some(tun) = from.get(terminal) else { continue };
            let mut taken = 0;
            while taken < share && read.len() < BATCH {
                let received = tun
                    .receive(buffer)
                    .map_err(|error| format!("the link's device {} failed: {error}", tun.name()))?;
                let Some(length) = received else { break };
                let terminal = u16::try_from(terminal).unwrap_or(u16::MAX);
                let bytes = buffer.get(..length).unwrap_or_default().into();
                read.push((self.epoch.elapsed(), Packet { terminal, bytes }));
                taken += 1;
            }
            busy |= taken == share;
        }
        Ok(busy)
    }

    /// Writes the packets out and notes how late each was.
    fn deliver(&self, to: &[Tun], due: &mut Vec<Transmit<Packet>>, cpu: &mut Duration) {
        let mut late = [Duration::ZERO; BATCH];
        let mut refused = 0;
        for (transmit, late) in due.iter_mut().zip(&mut late) {
            if transmit.marked {
                header::mark(&mut transmit.packet.bytes);
            }
            *late = self.epoch.elapsed().saturating_sub(transmit.due);
            // A refusal loses this packet as a router without a route would; the load's record tells.
            let to = to.get(usize::from(transmit.packet.terminal));
            refused += u64::from(to.is_none_or(|to| to.send(&transmit.packet.bytes).is_err()));
        }
        let before = std::mem::replace(cpu, cpu_time());
        let mut state = self.state();
        for late in &late[..due.len()] {
            state.seen.lateness.record(*late);
        }
        state.seen.refused += refused;
        state.seen.cpu += *cpu - before;
        drop(state);
        due.clear();
    }
}
