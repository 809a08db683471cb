//! What is in flight on a connection, as far as waking it depends on that: what counts, what is overdue, what an outage took,
//! and whether large packets still pass. Pure.

use std::time::{Duration, Instant};

/// No path carries less (RFC 9000 §14), and QUIC's probes are no larger.
pub(super) const SMALL: u64 = 1200;

/// What is in flight, in bytes as QUIC counts them.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// All, as far as is known without the packets that were given up by time alone.
    bytes: u64,
    /// Of these, what holds up nothing.
    passed_over: u64,
    /// When it was last woken, and when something was last acknowledged.
    woken: Option<Instant>,
    acknowledged: Option<Instant>,
    /// Woken, and nothing acknowledged since.
    asleep: bool,
    /// When the packet was sent whose acknowledgement ended an outage: those before it were lost in that.
    crossed: Option<Instant>,
    /// Since when something has been in flight and nothing was acknowledged.
    waiting: Option<Instant>,
    rtt: Duration,
    /// When the newest large packet was sent of which an acknowledgement came, and bytes of later ones that were lost since.
    large: Option<Instant>,
    lost: u64,
    /// Larger packets have been found to pass, and the acknowledgement that says so has not been told yet.
    is_raised: bool,
}

impl Flight {
    /// When the acknowledgement should be here of what was sent at that time.
    fn due(&self, sent: Instant) -> Instant {
        sent + self.rtt * 5 / 4
    }

    /// Something that was sent should have been acknowledged.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.waiting.is_some_and(|since| now >= self.due(since))
    }

    pub(super) fn send(&mut self, now: Instant, bytes: u64) {
        self.bytes += bytes;
        self.waiting.get_or_insert(now);
    }

    /// Passes over what is in flight, unless acknowledgements come, or those of what followed the last waking still may.
    pub(super) fn wake(&mut self, now: Instant) -> bool {
        let is_due = |at: Option<Instant>| at.is_none_or(|at| now >= self.due(at));
        if !is_due(self.acknowledged) || !is_due(self.woken) {
            return false;
        }
        (self.passed_over, self.woken, self.asleep) = (self.bytes, Some(now), true);
        true
    }

    /// A packet that was sent at `sent` is acknowledged, with the round trip as QUIC has it. An acknowledgement that waited
    /// for the end of an outage makes that many times too long for a while.
    pub(super) fn acknowledge(&mut self, now: Instant, sent: Instant, bytes: u64, rtt: Duration) {
        if std::mem::take(&mut self.is_raised) {
            (self.large, self.lost) = (Some(now), 0);
        } else if bytes > SMALL {
            (self.large, self.lost) = (self.large.max(Some(sent)), 0);
        }
        self.rtt = rtt.min(now.saturating_duration_since(sent));
        if self.asleep {
            self.crossed = self.crossed.max(Some(sent));
        }
    }

    /// All acknowledgements of a batch have been told.
    pub(super) fn settle(&mut self, now: Instant, in_flight: u64) {
        (self.bytes, self.passed_over, self.asleep, self.acknowledged) = (in_flight, 0, false, Some(now));
        self.waiting = (in_flight > 0).then_some(now);
    }

    /// Whether packets, the last of which was sent at `sent`, were lost in an outage: all of them, or some.
    pub(super) fn lose(&mut self, sent: Instant, bytes: u64) -> (bool, bool) {
        self.bytes = self.bytes.saturating_sub(bytes);
        match self.crossed {
            Some(crossed) if sent <= crossed => (true, true),
            crossed => {
                self.crossed = None;
                (false, crossed.is_some())
            }
        }
    }

    /// Packets, the last of which was sent at `sent`, were lost: whether that looks as if the path carried no large ones any more.
    /// Some of those sent later are acknowledged, but not one that is large, and more than one was lost.
    pub(super) fn is_narrow(&mut self, sent: Instant, bytes: u64) -> bool {
        if self.large >= Some(sent) {
            return false;
        }
        self.lost += bytes;
        self.lost > 2 * SMALL
    }

    /// Packets are larger from now on: of what is in flight nothing is.
    pub(super) fn raise(&mut self) {
        self.is_raised = true;
    }

    /// Bytes that hold up nothing.
    pub(super) fn passed_over(&self) -> u64 {
        self.passed_over
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.rtt
    }
}
