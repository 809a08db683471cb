//! Liveness: the remote asks for a sign of life when it has heard nothing for a while, and gives the
//! carrier up when none comes. It does not wait for the backoff of the carrier's own timers.

use std::collections::VecDeque;
use std::time::Duration;

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Silence before a ping while exchanges are open, and for a minute after.
    pub active: Duration,
    /// Silence before a ping otherwise.
    pub idle: Duration,
    /// Silence after the first ping before the peer counts as dead; at least two round trips.
    pub patience: Duration,
}

impl Default for Probe {
    /// Chosen for a geostationary link: a dead ground is noticed within 3 s while anything is open.
    fn default() -> Self {
        let ms = Duration::from_millis;
        Probe { active: ms(800), idle: ms(15_000), patience: ms(1900) }
    }
}

/// Whoever asked a moment ago is likely to ask again, and should not be the one to find the carrier dead.
const RECENT: Duration = Duration::from_secs(60);

/// Pings go out this often while none is answered, so that one lost packet does not matter.
const REPEAT: Duration = Duration::from_millis(500);

/// Pings whose answers still count.
const MOST_PINGS: usize = 16;

pub(super) enum Action {
    Ping(u64),
    Dead,
}

pub(super) struct State {
    probe: Probe,
    heard: Duration,
    /// When the first ping since the last sign of life went out, and when the latest.
    asked: Option<(Duration, Duration)>,
    /// Tokens of the latest pings, oldest first.
    pings: VecDeque<u64>,
    dead: bool,
    rtt: Duration,
    used: Option<Duration>,
}

impl State {
    pub(super) fn new(probe: Probe, now: Duration) -> Self {
        State {
            probe,
            heard: now,
            asked: None,
            pings: VecDeque::new(),
            dead: false,
            rtt: Duration::ZERO,
            used: None,
        }
    }

    pub(super) fn heard(&mut self, now: Duration) {
        self.heard = now;
        self.asked = None;
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
            Some((first, latest)) => (first + self.patience()).min(latest + REPEAT),
            None => self.heard + if active { self.probe.active } else { self.probe.idle },
        }
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
        if self.asked.is_some_and(|(first, _)| now >= first + self.patience()) {
            self.dead = true;
            return Some(Action::Dead);
        }
        let first = self.asked.map_or(now, |(first, _)| first);
        self.asked = Some((first, now));
        let token = now.as_micros() as u64;
        if self.pings.len() == MOST_PINGS {
            self.pings.pop_front();
        }
        self.pings.push_back(token);
        Some(Action::Ping(token))
    }
}
