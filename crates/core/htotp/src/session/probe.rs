//! Liveness: the remote asks for a sign of life when it has heard nothing for a while, and gives the
//! carrier up when none comes. It does not wait for the backoff of the carrier's own timers.

use std::time::Duration;

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Silence before a ping while exchanges are open.
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

/// Pings go out this often while none is answered, so that one lost packet does not matter.
const REPEAT: Duration = Duration::from_millis(500);

pub(super) enum Action {
    Ping(u64),
    Dead,
}

pub(super) struct State {
    probe: Probe,
    heard: Duration,
    /// When the first ping since the last sign of life went out, and when the latest.
    asked: Option<(Duration, Duration)>,
    dead: bool,
    rtt: Duration,
}

impl State {
    pub(super) fn new(probe: Probe, now: Duration) -> Self {
        State { probe, heard: now, asked: None, dead: false, rtt: Duration::ZERO }
    }

    pub(super) fn heard(&mut self, now: Duration) {
        self.heard = now;
        self.asked = None;
    }

    /// The token of a ping is the time it was sent, in microseconds.
    pub(super) fn answered(&mut self, now: Duration, token: u64) -> Duration {
        self.rtt = now.saturating_sub(Duration::from_micros(token));
        self.rtt
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
        Some(Action::Ping(now.as_micros() as u64))
    }
}
