//! What happens in one run: a trace that is the same whenever the seed is, and how long nothing came.
//!
//! A stall is time in which something is open and nothing arrives at either end, although the path takes nothing: each
//! datagram that is lost, damaged or dropped from a full queue, and each cut's end, begins it anew. Whoever loses a packet
//! may need a round trip more, but not be asleep when all is well again. Beside it the longest time without any arrival is
//! kept, cuts not counted.
//!
//! Some sleep is allowed: the remote asks whether ground is there when it has heard no datagram for 0.8 s, for which it looks five
//! times a second, and every round trip or four times a second from then on, and what was lost is found with that (`core/htotp`, `session/probe.rs`). So a stall
//! counts from when a question was due: the second, where the remote has heard something before, and else the next.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_htotp::session::{Probe, repeat};
use farhop_orbit::Way;
use tokio::time::Instant;

/// By how much later the remote notices that it has heard something.
const NOTICED: Duration = Duration::from_millis(200);

/// When the remote has asked twice after it last heard something, of which the second question is that which wakes QUIC.
pub(crate) fn asked(round_trip: Duration) -> Duration {
    Probe::default().active + NOTICED + repeat(round_trip)
}

/// A time in which nothing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Silence {
    /// When it began, since the start of the run.
    pub from: Duration,
    /// How long it was.
    pub long: Duration,
    /// Cuts that it went on through.
    pub cuts: u32,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Log {
    epoch: Instant,
    is_told: bool,
    round_trip: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    trace: DefaultHasher,
    faults: Vec<String>,
    /// Errands and pushes under way.
    open: i64,
    /// When the carrier stood.
    standing: Option<Duration>,
    /// The last arrival, or when the first thing was opened.
    arrived: Duration,
    /// Since when nothing was taken.
    calm: Duration,
    /// When something was last sent that the remote has heard.
    heard: Duration,
    cut: Option<(Duration, Option<Way>)>,
    /// Of the time since the last arrival, and the cuts that this was.
    away: Duration,
    cuts: u32,
    stall: Silence,
    pause: Silence,
}

/// What is left when a run is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entries {
    pub(crate) trace: u64,
    pub(crate) faults: Vec<String>,
    pub(crate) stall: Silence,
    pub(crate) pause: Silence,
}

impl Log {
    /// Of a path with this round trip; told on standard error as it happens, or not.
    pub(crate) fn new(round_trip: Duration, is_told: bool) -> Log {
        Log { epoch: Instant::now(), is_told, round_trip, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every step under the lock is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Adds to the trace.
    fn note(&self, state: &mut State, what: &str, numbers: [u64; 3]) {
        let now = self.now();
        (now.as_nanos(), what, numbers).hash(&mut state.trace);
        if self.is_told {
            eprintln!("{:>12.6} {what} {numbers:?}", now.as_secs_f64());
        }
    }

    /// The carrier stands.
    pub(crate) fn stands(&self) {
        let mut state = self.lock();
        self.note(&mut state, "the carrier stands", [0; 3]);
        state.standing = Some(self.now());
    }

    /// How long the carrier has stood.
    pub(crate) fn standing(&self) -> Option<Duration> {
        Some(self.now() - self.lock().standing?)
    }

    /// Something without consequence.
    pub(crate) fn told(&self, what: &str) {
        self.note(&mut self.lock(), what, [0; 3]);
    }

    /// A datagram went out as it was.
    pub(crate) fn sent(&self, way: Way, numbers: [u64; 3]) {
        let mut state = self.lock();
        self.note(&mut state, "sent", numbers);
        let is_cut = state.cut.is_some_and(|(_, cut)| cut.is_none_or(|cut| cut == way));
        if way == Way::Forward && !is_cut {
            state.heard = self.now();
        }
    }

    /// A datagram was taken.
    pub(crate) fn taken(&self, what: &str, numbers: [u64; 3]) {
        let mut state = self.lock();
        self.note(&mut state, what, numbers);
        state.disturb(self.now(), self.round_trip);
    }

    /// Nothing gets through any more, on one way or on both.
    pub(crate) fn cut(&self, way: Option<Way>) {
        let (mut state, now) = (self.lock(), self.now());
        self.note(&mut state, "cut", [0; 3]);
        state.disturb(now, self.round_trip);
        state.cut = Some((now, way));
    }

    pub(crate) fn restored(&self) {
        let (mut state, now) = (self.lock(), self.now());
        self.note(&mut state, "restored", [0; 3]);
        if let Some((since, _)) = state.cut.take() {
            let counted = now - since.max(state.arrived);
            state.away += counted;
            state.cuts += 1;
        }
        state.calm = now;
    }

    /// Something is under way from now on.
    pub(crate) fn opened(&self, number: u64) {
        let mut state = self.lock();
        self.note(&mut state, "opened", [number, 0, 0]);
        if state.open == 0 {
            state.begin(self.now());
        }
        state.open += 1;
    }

    /// Something has come.
    pub(crate) fn arrived(&self, what: &str, number: u64, bytes: usize) {
        let mut state = self.lock();
        self.note(&mut state, what, [number, bytes as u64, 0]);
        state.arrive(self.now(), self.round_trip);
    }

    /// Something is over.
    pub(crate) fn closed(&self, number: u64) {
        let mut state = self.lock();
        self.note(&mut state, "closed", [number, 0, 0]);
        state.arrive(self.now(), self.round_trip);
        state.open -= 1;
    }

    /// Something went wrong.
    pub(crate) fn fault(&self, fault: String) {
        let now = self.now();
        self.lock().faults.push(format!("at {:.3} s: {fault}", now.as_secs_f64()));
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.lock().faults.is_empty()
    }

    pub(crate) fn entries(&self) -> Entries {
        let mut state = self.lock();
        // What never came counts as well.
        state.arrive(self.now(), self.round_trip);
        let faults = state.faults.clone();
        Entries { trace: state.trace.finish(), faults, stall: state.stall, pause: state.pause }
    }
}

impl State {
    fn begin(&mut self, now: Duration) {
        (self.arrived, self.calm, self.away, self.cuts) = (now, now, Duration::ZERO, 0);
    }

    /// Ends the time in which nothing was taken.
    fn disturb(&mut self, now: Duration, round_trip: Duration) {
        if self.open > 0 && self.cut.is_none() {
            let calm = self.calm.max(self.arrived);
            let from = (self.heard.max(self.arrived) + asked(round_trip)).max(calm + repeat(round_trip));
            self.stall = longer(self.stall, Silence { from, long: now.saturating_sub(from), cuts: 0 });
        }
        self.calm = now;
    }

    fn arrive(&mut self, now: Duration, round_trip: Duration) {
        if self.open > 0 {
            let calm = self.calm;
            self.disturb(now, round_trip);
            self.calm = calm;
            let cut = self.cut.map_or(Duration::ZERO, |(since, _)| now - since.max(self.arrived));
            let long = (now - self.arrived).saturating_sub(self.away + cut);
            let cuts = self.cuts + u32::from(self.cut.is_some());
            self.pause = longer(self.pause, Silence { from: self.arrived, long, cuts });
        }
        (self.arrived, self.away, self.cuts) = (now, Duration::ZERO, 0);
    }
}

fn longer(one: Silence, other: Silence) -> Silence {
    if other.long > one.long { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log in which something has been open since the start.
    fn open() -> Log {
        let log = Log::new(Duration::from_millis(600), false);
        log.opened(1);
        log
    }

    async fn after(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn seconds(silence: Silence) -> f64 {
        silence.long.as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_is_a_stall_from_when_the_remote_had_asked() {
        let log = open();
        after(5).await;
        log.arrived("", 1, 1);
        let entries = log.entries();
        assert_eq!((seconds(entries.stall), seconds(entries.pause)), (3.75, 5.0));
        assert_eq!(seconds(open().entries().stall), 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_never_closed_is_a_stall_as_well() {
        let log = open();
        after(9).await;
        assert_eq!(seconds(log.entries().stall), 7.75);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_begins_a_stall_anew_and_a_pause_goes_on() {
        let log = open();
        after(3).await;
        log.taken("", [0; 3]);
        after(4).await;
        log.arrived("", 1, 1);
        let entries = log.entries();
        assert_eq!((seconds(entries.stall), seconds(entries.pause)), (3.75, 7.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cut_is_neither_but_what_follows_it_is() {
        let log = open();
        after(1).await;
        log.cut(None);
        after(60).await;
        log.restored();
        after(2).await;
        log.arrived("", 1, 1);
        let entries = log.entries();
        assert_eq!((seconds(entries.stall), seconds(entries.pause), entries.pause.cuts), (1.75, 3.0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn while_nothing_is_open_nothing_stalls() {
        let log = open();
        log.closed(1);
        after(60).await;
        log.opened(2);
        log.arrived("", 2, 1);
        assert_eq!(seconds(log.entries().stall), 0.0);
    }
}
