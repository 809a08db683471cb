//! What the samples of a path say of its delay: the smallest, by how much it varies where nothing waits in a queue, and
//! whether something may do so now.

use std::time::Duration;

/// What the peer's delayed acknowledgements keep back (RFC 9000 §18.2, `max_ack_delay`).
pub(super) const ACK_DELAY: Duration = Duration::from_millis(25);

/// Samples so much above the smallest, or above what the delay varies by, so many in a row, may be a queue.
const QUEUE_SHARE: f64 = 1.125;
const QUEUE_LEAST: Duration = Duration::from_millis(20);
/// … and on a short way by what it takes once more, or by this.
const QUEUE_SHORT: Duration = Duration::from_millis(5);
const QUEUE_SAMPLES: u32 = 8;
/// What varies may vary by so much more.
const MARGIN: f64 = 1.25;
/// And is stretched above so many smallest samples.
const STRETCHED: f64 = 1.5;
/// More than this, or than the smallest sample, is not taken for variation.
const MOST: Duration = Duration::from_millis(150);
/// What was seen of the variation counts so much after each cruise.
const FADES: f64 = 0.75;
/// The smallest sample is taken anew when none has been within so much of it for so long.
const REFRESHES: f64 = 1.02;
const STALE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Delay {
    min: Option<Duration>,
    /// When a sample last confirmed it.
    confirmed: Duration,
    /// By how much the delay has varied where there was no queue.
    variation: Duration,
    /// The largest sample while as much was sent as now.
    peak: Duration,
    /// Samples in a row that may show a queue.
    queued: u32,
}

impl Delay {
    pub(super) fn on_sample(&mut self, now: Duration, sample: Duration) {
        let min = self.min.map_or(sample, |min| min.min(sample));
        self.min = Some(min);
        if sample <= min.mul_f64(REFRESHES) {
            self.confirmed = now;
        }
        let usual = min + self.variation.mul_f64(MARGIN);
        let least = QUEUE_LEAST.min(min.max(QUEUE_SHORT));
        let queued = sample > min.mul_f64(QUEUE_SHARE).max(min + least).max(usual);
        self.queued = if queued { self.queued + 1 } else { 0 };
    }

    /// The smallest round trip, zero before the first.
    pub(super) fn min(&self) -> Duration {
        self.min.unwrap_or_default()
    }

    /// By how much it varies.
    pub(super) fn variation(&self) -> Duration {
        self.variation
    }

    /// A sample above this is stretched.
    pub(super) fn longest(&self) -> Duration {
        let min = self.min().max(Duration::from_millis(1));
        min.mul_f64(STRETCHED).max(min + self.variation.mul_f64(MARGIN))
    }

    /// The last samples were such as a queue would give.
    pub(super) fn may_be_queue(&self) -> bool {
        self.queued >= QUEUE_SAMPLES
    }

    /// Whether the smallest round trip may be one of a path that is no more.
    pub(super) fn is_stale(&self, now: Duration) -> bool {
        now.saturating_sub(self.confirmed) > STALE
    }

    /// What has been seen of a queue says nothing any more.
    pub(super) fn forget_queue(&mut self) {
        self.queued = 0;
    }

    /// As much is sent from now on as the path delivers.
    pub(super) fn settle(&mut self) {
        self.variation = self.variation.mul_f64(FADES);
        self.peak = Duration::ZERO;
    }

    /// A sample of what was sent since then: a delay that goes away though no less is sent came from no queue. What is within
    /// `steady` is no variation.
    pub(super) fn swing(&mut self, sample: Duration, steady: Duration) {
        self.peak = self.peak.max(sample);
        self.raise(self.peak.saturating_sub(sample + steady));
    }

    /// A sample that shows no queue, however long it is.
    pub(super) fn vary(&mut self, sample: Duration) {
        self.raise(sample.saturating_sub(self.min()));
    }

    fn raise(&mut self, variation: Duration) {
        self.variation = self.variation.max(variation.min(self.most()));
    }

    /// The most that is taken for variation.
    fn most(&self) -> Duration {
        self.min().max(MOST)
    }

    /// Whether a sample that shows no queue is too long for a delay that varies: the way has become longer.
    pub(super) fn is_longer_way(&self, sample: Duration) -> bool {
        sample > self.min() + self.most()
    }

    /// The way has become longer: this is its smallest sample, and what varied on the old one says nothing.
    pub(super) fn lengthen(&mut self, now: Duration, sample: Duration) {
        *self = Delay { min: Some(sample), confirmed: now, ..Delay::default() };
    }

    /// A sample of the empty path: it is the smallest, whatever was measured before.
    pub(super) fn renew(&mut self, now: Duration, sample: Duration) {
        self.vary(sample);
        (self.min, self.confirmed) = (Some(sample), now);
    }
}
