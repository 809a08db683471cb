//! How fast writes may go, in pieces of what size, and how far ahead of the link.

use std::time::Duration;

use farhop_units::BitRate;

/// Share of a contracted rate that payload gets: IP, UDP, QUIC and frame headers take the rest of a
/// 1,452-byte packet.
pub const PAYLOAD_SHARE: f64 = 0.95;
/// The most that one grant hands to the carrier, and the least worth waking up for: about a packet. In between it is
/// [`Pace::ahead`] of link time. A user may send as much before the next user's turn.
pub(super) const LARGEST_GRANT: usize = 16 * 1024;
pub(super) const SMALLEST_GRANT: usize = 1_400;

/// Link time for which a stream that is not incremental keeps its turn; where no rate is kept to, so many bytes at the most.
/// RFC 9218 §10 has it served to its end; but a download of minutes, of which nobody says what it is, must not starve what is
/// asked after it.
pub(super) const STRETCH: Duration = Duration::from_millis(500);
pub(super) const STRETCH_WITHOUT_RATE: u64 = 256 * 1024;

/// How fast writes may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Payload rate of the direction this end writes; `None` leaves it to the carrier's windows.
    pub rate: Option<BitRate>,
    /// About what the link takes where no rate is kept to: pieces and turns are sized by it. `None` where nobody knows.
    pub about: Option<BitRate>,
    /// Link time that may be written ahead.
    pub ahead: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { rate: None, about: None, ahead: Duration::from_millis(50) }
    }
}

impl Pace {
    /// What the link takes, as far as anybody knows.
    pub(super) fn known(&self) -> Option<BitRate> {
        self.rate.or(self.about)
    }

    /// Bytes that one grant takes at the most, and that a user may send before the next one's turn: what is asked meanwhile
    /// waits for that, so on a slow link it is little. Whole packets, since the carrier sends the rest of a grant in a short one.
    pub(super) fn piece(&self) -> usize {
        let ahead = |rate: BitRate| match rate.bytes_in(self.ahead).0 as usize {
            many if many < LARGEST_GRANT && self.ahead > CALM => many - many % SMALLEST_GRANT,
            many => many,
        };
        self.known().map_or(LARGEST_GRANT, |rate| ahead(rate).clamp(self.smallest(), LARGEST_GRANT))
    }

    /// Bytes of the smallest grant.
    fn smallest(&self) -> usize {
        if self.ahead > CALM { SMALLEST_GRANT } else { CALM_GRANT }
    }

    /// Bytes for which a stream that is not incremental keeps its turn.
    pub(super) fn stretch(&self) -> u64 {
        let about = || self.about.map_or(u64::MAX, |rate| rate.bytes_in(STRETCH).0);
        let unpaced = || about().clamp(LARGEST_GRANT as u64 / 8, STRETCH_WITHOUT_RATE);
        self.rate.map_or_else(unpaced, |rate| rate.bytes_in(STRETCH).0)
    }

    /// Bytes that may be ahead of the link.
    fn allowance(&self) -> f64 {
        let ahead = |rate: BitRate| rate.bytes_in(self.ahead).0.max(self.smallest() as u64) as f64;
        self.rate.map_or(f64::MAX, ahead)
    }
}

/// While someone speaks or waits for each small answer in datagrams, so little goes ahead, until this long after the last of them:
/// what goes ahead stands in the link's queue before them.
pub const CALM: Duration = Duration::from_millis(10);
/// Then grants are less than a packet where that takes the link longer, so that packets are short, whatever headers take: on
/// 512 kbit/s speech would wait 23 ms for a full one.
const CALM_GRANT: usize = 500;
const CALM_FOR: Duration = Duration::from_secs(2);

/// What the pace allows to be written at a time.
pub(super) struct Allowance {
    /// As it is in force.
    pub(super) pace: Pace,
    /// As it was set.
    set: Pace,
    calm_until: Option<Duration>,
    tokens: f64,
    filled: Duration,
    handed: u64,
}

impl Allowance {
    /// A full one.
    pub(super) fn new(now: Duration, pace: Pace) -> Allowance {
        Allowance { pace, set: pace, calm_until: None, tokens: pace.allowance(), filled: now, handed: 0 }
    }

    pub(super) fn set_pace(&mut self, now: Duration, pace: Pace) {
        self.refill(now);
        self.set = pace;
        self.pace = self.in_force();
        self.tokens = self.tokens.min(self.pace.allowance());
    }

    /// Little goes ahead for a while; what has gone ahead beyond that is waited for.
    pub(super) fn calm(&mut self, now: Duration) {
        self.calm_until = Some(now + CALM_FOR);
        self.put_in_force();
    }

    /// Whether little goes ahead.
    pub(super) fn is_calm(&self) -> bool {
        self.calm_until.is_some()
    }

    fn in_force(&self) -> Pace {
        let ahead = if self.is_calm() { self.set.ahead.min(CALM) } else { self.set.ahead };
        Pace { ahead, ..self.set }
    }

    fn put_in_force(&mut self) {
        let pace = self.in_force();
        if self.pace != pace {
            // As much less or more as may stand in the link's queue.
            self.tokens += pace.allowance() - self.pace.allowance();
            self.pace = pace;
        }
    }

    pub(super) fn refill(&mut self, now: Duration) {
        if self.calm_until.is_some_and(|until| now >= until) {
            self.calm_until = None;
            self.put_in_force();
        }
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        match self.pace.rate {
            Some(rate) => {
                self.tokens = (self.tokens + passed * payload(rate)).min(self.pace.allowance());
            }
            None => self.tokens = f64::MAX,
        }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.tokens <= 0.0
    }

    /// What does not wait for the pace has had as much again as that would have allowed at once. While little goes ahead, what had
    /// gone ahead before is no debt of its.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.tokens <= -(2.0 * self.set.allowance() + self.set.piece() as f64)
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
        self.handed += bytes as u64;
    }

    /// All that was taken.
    pub(super) fn handed(&self) -> u64 {
        self.handed
    }

    /// When it is worth asking again.
    pub(super) fn next_wakeup(&self, now: Duration) -> Option<Duration> {
        let rate = self.pace.rate?;
        let wanted = (self.pace.allowance() / 4.0).min(self.pace.smallest() as f64) - self.tokens;
        // A rate of nothing never allows anything.
        let wait = Duration::try_from_secs_f64((wanted / payload(rate)).max(0.0)).ok()?;
        now.checked_add(wait)
    }
}

/// Bytes of payload in a second.
fn payload(rate: BitRate) -> f64 {
    rate.0 as f64 / 8.0 * PAYLOAD_SHARE
}
