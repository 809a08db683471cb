//! Round trips, told apart by the times at which packets were sent: one ends with the acknowledgement
//! of the first packet sent after the last one ended. What came through in one, over its length, is the
//! rate at which the path delivers.

use std::time::Duration;

use crate::{Ack, Loss};

/// One finished round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Round {
    /// Bytes acknowledged in it.
    pub(crate) acked: u64,
    /// Bytes found lost in it.
    pub(crate) lost: u64,
    /// From the acknowledgement before it to its last.
    pub(crate) elapsed: Duration,
    /// The smallest sample in it.
    pub(crate) min_rtt: Duration,
    /// The sender ran out of data in it, so the path may carry more.
    pub(crate) app_limited: bool,
}

impl Round {
    /// Bytes a second that came through.
    pub(crate) fn rate(&self) -> f64 {
        self.acked as f64 / self.elapsed.as_secs_f64()
    }

    /// Share of the bytes that did not come through.
    pub(crate) fn lost_share(&self) -> f64 {
        self.lost as f64 / (self.lost + self.acked).max(1) as f64
    }
}

/// Counts the round trip under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    start: Duration,
    acked: u64,
    lost: u64,
    min_rtt: Option<Duration>,
    app_limited: bool,
}

impl Rounds {
    /// Takes an acknowledgement in; gives the round trip that it ends.
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> Option<Round> {
        let ended = (ack.sent >= self.start).then(|| {
            let round = self.finish(ack);
            self.restart(ack.now);
            round
        });
        self.acked += ack.bytes.0;
        self.min_rtt = Some(self.min_rtt.map_or(ack.sample(), |min| min.min(ack.sample())));
        self.app_limited |= ack.app_limited;
        ended.flatten()
    }

    fn finish(&self, ack: &Ack) -> Option<Round> {
        let elapsed = ack.now.saturating_sub(self.start);
        (self.acked > 0 && !elapsed.is_zero()).then(|| Round {
            acked: self.acked,
            lost: self.lost,
            elapsed,
            min_rtt: self.min_rtt.unwrap_or(elapsed),
            app_limited: self.app_limited,
        })
    }

    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.bytes.0;
    }

    /// Counts anew from `now`; the round trip under way gives nothing.
    pub(crate) fn restart(&mut self, now: Duration) {
        *self = Rounds { start: now, ..Rounds::default() };
    }
}
