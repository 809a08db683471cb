//! Careful Resume (RFC 9959): a connection over a path that an earlier one has measured does not search
//! for its capacity from ten packets, but tries half of what was there, and takes that back at the first
//! sign that it is too much. It wraps a controller that searches, and watches what the path delivers, to
//! be kept for the next connection. Where that is kept, and for which pair of endpoints, is the
//! carrier's to know.
//!
//! ```text
//!                 first flight acknowledged, window full
//! Reconnaissance ───────────────────────────────────────▶ Unvalidated (half the capacity)
//!       │                                                   │      │
//!       │ nothing saved, other path,            a round trip│      │ loss
//!       │ loss, or window large enough      or a full flight│      │
//!       ▼                                                   ▼      ▼
//!    Normal ◀───────────────────────────────────── Validating ──▶ Retreat (half of what got through)
//!       ▲        last unvalidated acknowledged                loss   │
//!       └────────────────────────────────────────────────────────────┘
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::rounds::Rounds;
use crate::window::{MINIMUM_PACKETS, initial};
use crate::{Ack, Controller, Loss, Sent};

/// What one connection measured of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// Bytes that got through in a round trip.
    pub capacity: Bytes,
    /// The smallest round trip.
    pub rtt: Duration,
    /// What got through when a search had found that there is no more; nothing where none had ended. It does not age: who searches up
    /// to it takes nothing that an empty path would not give.
    pub full: Option<Bytes>,
}

impl Saved {
    /// What is measured is forgotten after so long (RFC 9959 §4.3.1: hours on stable paths).
    pub const LIFETIME: Duration = Duration::from_secs(24 * 3600);
    /// And counts half after each of these: others may have come since.
    const HALF_LIFE: Duration = Duration::from_secs(4 * 3600);

    /// What it is worth when it is `age` old; nothing once it is too old.
    pub fn aged(self, age: Duration) -> Option<Saved> {
        let share = (-age.as_secs_f64() / Saved::HALF_LIFE.as_secs_f64()).exp2();
        let capacity = Bytes((self.capacity.0 as f64 * share) as u64);
        (age <= Saved::LIFETIME).then_some(Saved { capacity, ..self })
    }
}

/// Where a connection is (RFC 9959 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Looks whether the path is the one that was measured.
    Reconnaissance,
    /// Sends what has not been found right yet.
    Unvalidated,
    /// Waits for the last of that to be acknowledged.
    Validating,
    /// It was too much.
    Retreat,
    /// Careful Resume has ended, or was not needed.
    Normal,
}

impl Phase {
    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Reconnaissance => "reconnaissance",
            Phase::Unvalidated => "unvalidated",
            Phase::Validating => "validating",
            Phase::Retreat => "retreat",
            Phase::Normal => "normal",
        }
    }
}

/// RFC 9959 §3.3: at most half of what was there, so that others who came since are not starved.
const JUMP: f64 = 0.5;
/// RFC 9959 §3.5, default β.
const BETA: f64 = 0.5;
/// RFC 9959 §3.2 and §4.2.1: round trips shorter or longer by these factors belong to another path.
const SHORTER: u32 = 2;
const LONGER: u32 = 10;
/// RFC 9959 §3.1: less than four initial windows is found anew as quickly.
const WORTHWHILE: u64 = 4;
/// Of the volume of a round trip, what stood in a queue counts up to this factor over the empty path's.
const QUEUE: f64 = 1.25;
/// Round trips of which the best counts as what the path carries.
const MEMORY: usize = 8;

#[derive(Debug, Clone, Copy)]
enum State {
    /// `first` is what was sent before any acknowledgement came.
    Reconnaissance {
        first: Option<Flight>,
        is_confirmed: bool,
    },
    /// `pipe` is what has got through (PipeSize), `since` when the jump began.
    Unvalidated {
        jump: f64,
        pipe: u64,
        since: Duration,
    },
    /// `last` is when the last unvalidated packet was sent.
    Validating {
        pipe: u64,
        last: Duration,
    },
    Retreat {
        window: f64,
        pipe: u64,
        last: Duration,
    },
    Normal,
}

/// What was sent before `until`, in bytes not yet acknowledged.
#[derive(Debug, Clone, Copy)]
struct Flight {
    until: Duration,
    unacked: u64,
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Resume {
    inner: Box<dyn Controller>,
    state: State,
    saved: Option<Saved>,
    was_offered: bool,
    mtu: Bytes,
    in_flight: u64,
    min_rtt: Option<Duration>,
    rounds: Rounds,
    /// Capacities that the last round trips showed.
    seen: VecDeque<u64>,
    retreated: bool,
    /// A search has ended.
    is_full_known: bool,
}

impl Resume {
    /// Lets `inner` start from what is saved, once [`Resume::offer`] says what that is.
    pub fn new(inner: Box<dyn Controller>, mtu: Bytes) -> Self {
        Resume {
            inner,
            state: State::Reconnaissance { first: None, is_confirmed: false },
            saved: None,
            was_offered: false,
            mtu,
            in_flight: 0,
            min_rtt: None,
            rounds: Rounds::default(),
            seen: VecDeque::new(),
            retreated: false,
            is_full_known: false,
        }
    }

    /// Tells what an earlier connection measured, already aged, or that nothing is known. Until it is
    /// told, reconnaissance goes on; after it, it is too late.
    pub fn offer(&mut self, saved: Option<Saved>) {
        self.was_offered = true;
        if let State::Reconnaissance { .. } = self.state {
            self.saved = saved;
            if saved.is_none() {
                self.state = State::Normal;
            }
        }
    }

    /// Whether it still makes sense to offer something.
    pub fn awaits_offer(&self) -> bool {
        !self.was_offered && matches!(self.state, State::Reconnaissance { .. })
    }

    /// Where it is.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Reconnaissance { .. } => Phase::Reconnaissance,
            State::Unvalidated { .. } => Phase::Unvalidated,
            State::Validating { .. } => Phase::Validating,
            State::Retreat { .. } => Phase::Retreat,
            State::Normal => Phase::Normal,
        }
    }

    /// What the window may become with the next packet: before a jump that.
    pub fn prospect(&self) -> Bytes {
        let window = self.window();
        match (self.state, self.saved) {
            (State::Reconnaissance { .. }, Some(saved)) => {
                window.max(Bytes((JUMP * saved.capacity.0 as f64) as u64))
            }
            _ => window,
        }
    }

    /// Whether what was offered has proved too much, so that it is not to be offered to others
    /// (RFC 9959 §3.5).
    pub fn has_retreated(&self) -> bool {
        self.retreated
    }

    fn observe(&mut self, ack: &Ack) {
        let sample = ack.sample();
        self.min_rtt = Some(self.min_rtt.map_or(sample, |min| min.min(sample)));
        let (Some(round), Some(min_rtt)) = (self.rounds.on_ack(ack), self.min_rtt) else { return };
        // RFC 9959 §3.1: the volume of a round trip; what stood in a long queue is not the path's.
        let empty = round.rate() * min_rtt.as_secs_f64();
        let capacity = round.acked.min((QUEUE * empty) as u64);
        // What an application that sent little got through is there too, but there may be more.
        if !round.app_limited || self.seen.iter().all(|seen| *seen < capacity) {
            self.seen.push_back(capacity);
            let surplus = self.seen.len().saturating_sub(MEMORY);
            self.seen.drain(..surplus);
        }
    }

    /// The jump that reconnaissance allows; `None` if there is nothing to resume.
    fn jump(&self) -> Option<f64> {
        let (saved, min_rtt) = (self.saved?, self.min_rtt?);
        let same_path = min_rtt > saved.rtt / SHORTER && min_rtt <= saved.rtt * LONGER;
        let jump = JUMP * saved.capacity.0 as f64;
        (same_path && jump > self.inner.window().0 as f64).then_some(jump)
    }

    /// Whether the next packets have to wait for the window.
    fn is_full(&self, window: f64) -> bool {
        (self.in_flight + 2 * self.mtu.0) as f64 >= window
    }

    fn minimum(&self) -> f64 {
        (MINIMUM_PACKETS * self.mtu.0) as f64
    }

    /// RFC 9959 §3.3, last part: what has been sent of the jump is what has to be found right. From there on the search goes up to where
    /// one has ended; what merely happened to be sent, or has aged, is no end.
    fn leave_unvalidated(&mut self, now: Duration, pipe: u64) {
        let full = self.saved.and_then(|saved| saved.full);
        if self.in_flight <= pipe.max(initial(self.mtu).0) {
            // The application did not use it.
            let window = Bytes(pipe.max(initial(self.mtu).0));
            self.inner.steer(window, full);
            self.state = State::Normal;
        } else {
            self.inner.steer(Bytes(self.in_flight), full);
            self.state = State::Validating { pipe, last: now };
        }
    }

    /// RFC 9959 §3.5.
    fn retreat(&mut self, pipe: u64, last: Duration) {
        let window = (pipe as f64 / 2.0).max(self.minimum());
        self.retreated = true;
        self.seen.clear();
        self.state = State::Retreat { window, pipe, last };
    }
}

impl Controller for Resume {
    fn on_sent(&mut self, sent: &Sent) {
        self.in_flight = sent.in_flight.0;
        self.inner.on_sent(sent);
        match self.state {
            // RFC 9959 §3.2: deferred until more is to be sent than the controller would allow.
            State::Reconnaissance { is_confirmed: true, .. }
                if self.saved.is_some() && self.is_full(self.inner.window().0 as f64) =>
            {
                let begun = |jump| State::Unvalidated { jump, pipe: self.in_flight, since: sent.now };
                self.state = self.jump().map_or(State::Normal, begun);
            }
            State::Unvalidated { jump, pipe, .. } if self.is_full(jump) => {
                self.leave_unvalidated(sent.now, pipe);
            }
            _ => {}
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.in_flight = ack.in_flight.0;
        self.observe(ack);
        self.is_full_known |= matches!(self.state, State::Normal) && !self.inner.is_searching();
        match &mut self.state {
            State::Reconnaissance { first, is_confirmed } => {
                let unacked = ack.in_flight.0 + ack.bytes.0;
                let first = first.get_or_insert(Flight { until: ack.now, unacked });
                let is_of_it = ack.sent < first.until;
                first.unacked -= if is_of_it { ack.bytes.0.min(first.unacked) } else { 0 };
                // The acknowledgement of the last packet may be delayed (RFC 9000 §13.2.1).
                *is_confirmed |= !is_of_it || first.unacked <= self.mtu.0;
                self.inner.on_ack(ack);
            }
            State::Unvalidated { pipe, since, .. } => {
                *pipe += ack.bytes.0;
                let (pipe, since) = (*pipe, *since);
                if ack.sent >= since || ack.now.saturating_sub(since) > ack.rtt {
                    self.leave_unvalidated(ack.now, pipe);
                }
            }
            State::Validating { pipe, last } => {
                *pipe += ack.bytes.0;
                if ack.sent >= *last {
                    self.state = State::Normal;
                }
                self.inner.on_ack(ack);
            }
            State::Retreat { window, pipe, last } => {
                *pipe += ack.bytes.0;
                if ack.sent >= *last {
                    // RFC 9959 §3.5: the threshold is no larger than what got through times β.
                    let (window, threshold) = (*window, BETA * *pipe as f64);
                    self.inner.steer(Bytes(window as u64), Some(Bytes(threshold as u64)));
                    self.state = State::Normal;
                }
            }
            State::Normal => self.inner.on_ack(ack),
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.in_flight = self.in_flight.saturating_sub(loss.bytes.0);
        self.rounds.on_loss(loss);
        match self.state {
            State::Unvalidated { pipe, .. } => self.retreat(pipe, loss.now),
            State::Validating { pipe, last } => self.retreat(pipe, last),
            // What is lost of the same flight is what was retreated for.
            State::Retreat { .. } => {}
            State::Reconnaissance { .. } | State::Normal => {
                self.state = State::Normal;
                self.inner.on_loss(loss);
            }
        }
        if loss.persistent && self.phase() == Phase::Retreat {
            // Nothing at all comes through: the controller begins anew.
            self.state = State::Normal;
            self.inner.on_loss(loss);
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.mtu = mtu;
        self.inner.on_mtu(mtu);
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.state = State::Normal;
        self.inner.steer(window, threshold);
    }

    fn window(&self) -> Bytes {
        match self.state {
            State::Unvalidated { jump, .. } => Bytes(jump as u64),
            State::Retreat { window, .. } => Bytes(window as u64),
            State::Reconnaissance { .. } | State::Validating { .. } | State::Normal => self.inner.window(),
        }
    }

    fn initial_window(&self) -> Bytes {
        self.inner.initial_window()
    }

    fn pacing(&self) -> Option<BitRate> {
        self.inner.pacing()
    }

    fn observed(&self) -> Option<Saved> {
        let capacity = Bytes(self.seen.iter().copied().max()?);
        let worthwhile = capacity.0 >= WORTHWHILE * initial(self.mtu).0;
        let full = self.is_full_known.then_some(capacity);
        worthwhile.then_some(Saved { capacity, rtt: self.min_rtt?, full })
    }

    fn is_searching(&self) -> bool {
        !matches!(self.state, State::Normal) || self.inner.is_searching()
    }

    fn boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
