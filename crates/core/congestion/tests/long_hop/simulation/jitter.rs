//! Delay that varies, as by the frames of a shared return link: what comes off a path waits a little more, how long is
//! drawn anew every 200 ms. Nothing overtakes.

use std::collections::VecDeque;
use std::time::Duration;

use farhop_orbit::Rng;

const STEADY: Duration = Duration::from_millis(200);

/// What one way of a path adds.
pub(super) struct Jitter<P> {
    most: Duration,
    rng: Rng,
    wait: Duration,
    /// When it is drawn again.
    next_draw: Duration,
    /// In the order in which it came, with the time at which it goes on.
    waiting: VecDeque<(Duration, P)>,
}

impl<P> Jitter<P> {
    /// Waits of up to `most`.
    pub(super) fn new(most: Duration, seed: u64) -> Self {
        let (wait, next_draw) = (Duration::ZERO, Duration::ZERO);
        Jitter { most, rng: Rng::new(seed), wait, next_draw, waiting: VecDeque::new() }
    }

    pub(super) fn push(&mut self, now: Duration, packet: P) {
        while self.next_draw <= now {
            self.wait = self.most.mul_f64(self.rng.next_f64());
            self.next_draw += STEADY;
        }
        let before = self.waiting.back().map_or(now, |(due, _)| *due);
        self.waiting.push_back((before.max(now + self.wait), packet));
    }

    pub(super) fn pop(&mut self, now: Duration) -> Option<P> {
        self.waiting.pop_front_if(|(due, _)| *due <= now).map(|(_, packet)| packet)
    }

    pub(super) fn next_event(&self) -> Option<Duration> {
        self.waiting.front().map(|(due, _)| *due)
    }
}
