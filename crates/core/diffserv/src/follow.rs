//! A rate that stays a little below that of a link which changes: rain, another modulation, capacity granted on demand. A queue in
//! the modem shows in the round trip, and who sees one sends less until it is gone; who sees none while sending at its rate
//! sends a little more. So do `sqm-autorate` and `cake-autorate` (OpenWrt), in whose terms this is: base, load, bufferbloat. How far
//! two echoes are pulled apart on their way says what the link carried between them (Keshav, 1991, packet pairs), so that
//! one step is enough.
//!
//! Pure: it is handed the time, what has left, and round trips of small packets that do not wait here.

use std::collections::VecDeque;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

/// The least round trip of so long is that of the empty path: ten minutes outlast a download.
const BASE_OVER: Duration = Duration::from_secs(600);
/// It is kept as the least of each minute.
const BASE_STEP: Duration = Duration::from_secs(60);
/// What leaves is counted over so long: one packet more or less shows little then.
const LOAD_OVER: Duration = Duration::from_secs(1);
/// Samples in a row that have to be late: one alone is a superframe, or somebody's processor.
const LATE: u32 = 2;
/// What is late for so long at the least rate waits for nothing that left here: the path has become longer.
const LONGER: Duration = Duration::from_secs(10);
/// Below so much of its rate nobody knows whether more would have gone.
const LOADED: f64 = 0.75;
/// Of what the link was found to carry.
const BELOW: f64 = 0.95;
/// What is added each second while there is no queue; ever more by each second since the last step, up to the last.
const AHEAD: (f64, f64, f64) = (0.005, 0.0015, 0.05);
/// A queue is to be gone by then, as far as at least so much of the rate still leaves.
const DRAINED_IN: f64 = 2.0;
const AT_LEAST: f64 = 0.4;
/// Echoes that come so close tell nothing of what went between them.
const APART: Duration = Duration::from_millis(50);

/// Between which rates, and what counts as a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Never less, whatever the round trip says.
    pub least: BitRate,
    /// Never more: what there is at best.
    pub most: BitRate,
    /// Round trip beyond the least that is a queue in the modem, and not its own unrest.
    pub queue: Duration,
}

/// The rate of a link, followed.
#[derive(Debug, Clone)]
pub struct Follower {
    bounds: Bounds,
    rate: f64,
    /// The least round trip of each of the last minutes, with its beginning.
    least: VecDeque<(Duration, Duration)>,
    /// What has left until when, of late.
    left: VecDeque<(Duration, u64)>,
    late: u32,
    /// Since when it has been late at the least rate.
    in_vain: Option<Duration>,
    /// What left before then left at another rate.
    stepped: Duration,
    /// What the link was found to carry, to go on a little below when its queue is gone.
    found: Option<f64>,
    /// The last echo: when it came, and its round trip.
    last: Option<(Duration, Duration)>,
}

impl Follower {
    /// Begins at the most.
    pub fn new(bounds: Bounds) -> Follower {
        Follower {
            bounds,
            rate: bounds.most.0 as f64,
            least: VecDeque::new(),
            left: VecDeque::new(),
            late: 0,
            in_vain: None,
            stepped: Duration::ZERO,
            found: None,
            last: None,
        }
    }

    /// The rate to send at now.
    pub fn rate(&self) -> BitRate {
        BitRate(self.rate as u64)
    }

    /// The least round trip, if there was one.
    pub fn base(&self) -> Option<Duration> {
        self.least.iter().map(|(_, least)| *least).min()
    }

    /// All that has left by `now`, counted from any beginning.
    pub fn handle_left(&mut self, now: Duration, all: Bytes) {
        // Counters begin anew with what they count.
        if self.left.back().is_some_and(|(_, before)| all.0 < *before) {
            self.left.clear();
        }
        self.left.push_back((now, all.0));
        while self.left.len() > 2 && self.left[1].0 + LOAD_OVER <= now {
            self.left.pop_front();
        }
    }

    /// A round trip that came to its end at `now`; the rate from now on.
    pub fn handle_round_trip(&mut self, now: Duration, round_trip: Duration) -> BitRate {
        let base = self.note(now, round_trip);
        let before = self.last.replace((now, round_trip));
        let passed = before.map_or(Duration::ZERO, |(then, _)| now.saturating_sub(then)).min(LOAD_OVER);
        let queue = round_trip.saturating_sub(base);
        self.late = if queue > self.bounds.queue { self.late + 1 } else { 0 };
        let load = self.load();
        if self.late >= LATE {
            if let Some(carried) = before.and_then(|before| self.carried(before, (now, round_trip))) {
                self.rate = carried * (1.0 - queue.as_secs_f64() / DRAINED_IN).max(AT_LEAST);
                (self.found, self.stepped) = (Some(carried), now);
            }
        } else if self.late == 0 {
            if let Some(found) = self.found.take() {
                (self.rate, self.stepped) = (self.rate.max(found * BELOW), now);
            } else if load.is_some_and(|load| load >= LOADED * self.rate) {
                let (first, more, most) = AHEAD;
                let since = now.saturating_sub(self.stepped).as_secs_f64();
                self.rate *= 1.0 + (first + more * since).min(most) * passed.as_secs_f64();
            }
        }
        self.rate = self.rate.clamp(self.bounds.least.0 as f64, self.bounds.most.0 as f64);
        if self.late == 0 || self.rate() > self.bounds.least {
            self.in_vain = None;
        } else if now >= self.in_vain.get_or_insert(now).saturating_add(LONGER) {
            self.least.clear();
            (self.late, self.in_vain) = (0, None);
        }
        self.rate()
    }

    fn note(&mut self, now: Duration, round_trip: Duration) -> Duration {
        match self.least.back_mut() {
            Some((since, least)) if now < *since + BASE_STEP => *least = (*least).min(round_trip),
            _ => self.least.push_back((now, round_trip)),
        }
        while self.least.front().is_some_and(|(since, _)| *since + BASE_OVER < now) {
            self.least.pop_front();
        }
        self.base().unwrap_or(round_trip)
    }

    /// What the link carried between two echoes, in bits/s: what left in the time between their departures, which it took the time
    /// between their arrivals for. `None` where they left at another rate than now, or nothing left: then the queue is not of
    /// what leaves here.
    fn carried(&self, before: (Duration, Duration), after: (Duration, Duration)) -> Option<f64> {
        let arrivals = after.0.checked_sub(before.0).filter(|time| *time >= APART)?;
        let since = before.0.checked_sub(before.1).filter(|since| *since >= self.stepped)?;
        let departures = after.0.saturating_sub(after.1).checked_sub(since)?;
        let load = self.load().filter(|load| *load > 0.0)?;
        Some(load * departures.as_secs_f64() / arrivals.as_secs_f64())
    }

    /// What has left of late, in bits/s.
    fn load(&self) -> Option<f64> {
        let (&(since, before), &(until, after)) = (self.left.front()?, self.left.back()?);
        let time = until.checked_sub(since).filter(|time| !time.is_zero())?;
        Some((after - before) as f64 * 8.0 / time.as_secs_f64())
    }
}
