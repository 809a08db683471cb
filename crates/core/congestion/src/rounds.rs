//! Round trips, told apart by the times at which packets were sent: one ends with the acknowledgement
//! of the first packet sent after the last one ended. What came through in one, over its length, is the
//! rate at which the path delivers.

use std::collections::VecDeque;
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
    /// From the sending of the one's packet to the other's.
    pub(crate) sending: Duration,
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

    /// The same, of a path that is kept full: acknowledgements that were held up on their way may come closer than what they
    /// acknowledge was sent, and that no faster than the path delivers.
    pub(crate) fn steady_rate(&self) -> f64 {
        self.acked as f64 / self.elapsed.max(self.sending).as_secs_f64()
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
    /// When the packet was sent whose acknowledgement began it.
    first: Duration,
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
            self.begin(ack.now, ack.sent);
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
            sending: ack.sent.saturating_sub(self.first),
            min_rtt: self.min_rtt.unwrap_or(elapsed),
            app_limited: self.app_limited,
        })
    }

    pub(crate) fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.bytes.0;
    }

    /// Counts anew from `now`; the round trip under way gives nothing.
    pub(crate) fn restart(&mut self, now: Duration) {
        self.begin(now, now);
    }

    fn begin(&mut self, start: Duration, first: Duration) {
        *self = Rounds { start, first, ..Rounds::default() };
    }
}

/// For how many round trips, and how long at least, a rate is believed: a whole cycle of cruising and probing, and where
/// round trips are short, several waits of a link that gives its frames out in turn.
const MEMORY: usize = 12;
const MEMORY_LEAST: Duration = Duration::from_secs(2);

/// The rates of the last round trips, of which the best counts as what the path delivers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rates {
    /// When, and how many bytes a second.
    last: VecDeque<(Duration, f64)>,
    /// The best of them: it is asked for with each packet that is acknowledged.
    best: f64,
}

impl Rates {
    pub(crate) fn push(&mut self, now: Duration, rate: f64) {
        self.last.push_back((now, rate));
        while self.last.len() > MEMORY && now.saturating_sub(self.last[0].0) > MEMORY_LEAST {
            self.last.pop_front();
        }
        self.best = self.last.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    }

    /// Forgets all others.
    pub(crate) fn replace(&mut self, now: Duration, rate: f64) {
        self.last.clear();
        self.push(now, rate);
    }

    /// The newest, zero if there is none.
    pub(crate) fn last(&self) -> f64 {
        self.last.back().map_or(0.0, |(_, rate)| *rate)
    }

    /// The best, zero if there is none.
    pub(crate) fn best(&self) -> f64 {
        self.best
    }
}
