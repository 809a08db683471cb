//! Liveness: the remote asks for a sign of life when it has heard nothing for a while, and goes on probing at a steady pace
//! for as long as the peer is silent. It does not wait for the backoff of the carrier's own timers.
//!
//! ```text
//!           silence            patience             hold
//!  heard ─────────────▶ asked ───────────▶ silent ────────▶ dead
//!    ▲  ◀── a sign of life ──┴──────────────┘
//! ```

use std::collections::VecDeque;
use std::time::Duration;

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Silence before a ping while exchanges are open, and for a minute after.
    pub active: Duration,
    /// Silence before a ping otherwise.
    pub idle: Duration,
    /// Silence after the first ping before the peer counts as silent; at least two round trips.
    pub patience: Duration,
    /// How long a silent peer is asked on before it counts as dead. Zero for a carrier that is as quick when it is made
    /// anew.
    pub hold: Duration,
}

impl Default for Probe {
    /// Chosen for a geostationary link: silence is noticed within 3 s while anything is open, and a cut of two minutes
    /// ridden out.
    fn default() -> Self {
        let ms = Duration::from_millis;
        Probe { active: ms(800), idle: ms(15_000), patience: ms(1900), hold: ms(150_000) }
    }
}

/// Whoever asked a moment ago is likely to ask again, and should not be the one to find the carrier dead.
const RECENT: Duration = Duration::from_secs(60);

/// Bounds of the time between probes.
const SHORTEST_REPEAT: Duration = Duration::from_millis(25);
const REPEAT: Duration = Duration::from_millis(250);

/// How often a peer at this round trip is probed after the first ping while nothing comes: so often that neither a loss nor
/// the end of an outage is noticed a round trip late, and where the path is long four times a second.
pub fn repeat(round_trip: Duration) -> Duration {
    round_trip.clamp(SHORTEST_REPEAT, REPEAT)
}

/// Pings whose answers still count.
const MOST_PINGS: usize = 16;

pub(super) enum Action {
    Ping(u64),
    Probe,
    Silent,
    Dead,
}

pub(super) struct State {
    probe: Probe,
    heard: Duration,
    /// When a ping since the last sign of life went out, and when the latest probe after it.
    asked: Option<(Duration, Duration)>,
    /// Tokens of the latest pings, oldest first.
    pings: VecDeque<u64>,
    silent: bool,
    dead: bool,
    rtt: Duration,
    repeat: Duration,
    used: Option<Duration>,
}

impl State {
    pub(super) fn new(probe: Probe, now: Duration) -> Self {
        State {
            probe,
            heard: now,
            asked: None,
            pings: VecDeque::new(),
            silent: false,
            dead: false,
            rtt: Duration::ZERO,
            repeat: REPEAT,
            used: None,
        }
    }

    /// The carrier has measured the round trip of the empty path.
    pub(super) fn measured(&mut self, round_trip: Duration) {
        self.repeat = repeat(round_trip);
    }

    /// A sign of life: gives how long none had come, and whether the peer had been taken for silent.
    pub(super) fn heard(&mut self, now: Duration) -> (Duration, bool) {
        let silence = now.saturating_sub(std::mem::replace(&mut self.heard, now));
        self.asked = None;
        (silence, std::mem::take(&mut self.silent))
    }

    /// How long there has been no sign of life.
    pub(super) fn silence(&self, now: Duration) -> Duration {
        now.saturating_sub(self.heard)
    }

    /// No sign of life for longer than anything under way explains.
    pub(super) fn is_overdue(&self, now: Duration) -> bool {
        now >= self.heard + self.patience()
    }

    /// Something is open.
    pub(super) fn used(&mut self, now: Duration) {
        self.used = Some(now);
    }

    pub(super) fn is_recent(&self, now: Duration) -> bool {
        self.used.is_some_and(|used| now < used + RECENT)
    }

    /// The round trip, if a ping with this token is open. It is the time it was sent, in microseconds; another
    /// would let the peer choose the round trip, and with it how long its silence is borne.
    pub(super) fn answered(&mut self, now: Duration, token: u64) -> Option<Duration> {
        let place = self.pings.iter().position(|sent| *sent == token)?;
        self.pings.drain(..=place);
        self.rtt = now.saturating_sub(Duration::from_micros(token));
        Some(self.rtt)
    }

    fn due(&self, active: bool) -> Duration {
        match self.asked {
            Some((first, latest)) => (latest + self.repeat).min(self.verdict(first)),
            None => self.heard + if active { self.probe.active } else { self.probe.idle },
        }
    }

    /// When the peer is silent or, if it is already, dead.
    fn verdict(&self, first: Duration) -> Duration {
        first + self.patience() + if self.silent { self.probe.hold } else { Duration::ZERO }
    }

    fn patience(&self) -> Duration {
        self.probe.patience.max(self.rtt * 2)
    }

    pub(super) fn next_wakeup(&self, active: bool) -> Duration {
        if self.dead { Duration::MAX } else { self.due(active) }
    }

    pub(super) fn poll(&mut self, now: Duration, active: bool) -> Option<Action> {
        if self.dead || now < self.due(active) {
            return None;
        }
        if let Some((first, _)) = self.asked
            && now >= self.verdict(first)
        {
            self.dead = self.silent || self.probe.hold.is_zero();
            self.silent = true;
            return Some(if self.dead { Action::Dead } else { Action::Silent });
        }
        if let Some((_, latest)) = &mut self.asked {
            *latest = now;
            return Some(Action::Probe);
        }
        self.asked = Some((now, now));
        let token = now.as_micros() as u64;
        if self.pings.len() == MOST_PINGS {
            self.pings.pop_front();
        }
        self.pings.push_back(token);
        Some(Action::Ping(token))
    }
}
