//! Whether an image is worth the time that coding it anew takes. Pure: what work took and what waits ahead are passed in.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

/// What coding takes until something was measured (record 0014: `gentle`, one core).
const ASSUMED_NS: f64 = 110.0;
/// How much the latest image counts in what the next is expected to take.
const LATEST: f64 = 0.25;
/// Pixels in a byte of a photograph as the web has them: 1.6 bits for one.
const PIXELS_IN_BYTE: u64 = 5;
/// So much is nobody's wait beside the round trip of a satellite, and the bytes saved are the next image's.
const UNNOTICED: Duration = Duration::from_millis(150);

/// How long coding a pixel takes, as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelPace {
    nanoseconds: f64,
}

impl Default for PixelPace {
    fn default() -> Self {
        PixelPace { nanoseconds: ASSUMED_NS }
    }
}

impl PixelPace {
    /// The processor time that so many pixels are expected to take.
    pub fn time_for(self, pixels: u64) -> Duration {
        Duration::from_nanos((self.nanoseconds * pixels as f64) as u64)
    }

    /// The same for an image of which only the length in bytes is known.
    pub fn time_for_file(self, length: u64) -> Duration {
        self.time_for(length.saturating_mul(PIXELS_IN_BYTE))
    }

    /// Coding so many pixels, at least one, took so long.
    pub fn learn(&mut self, pixels: u64, took: Duration) {
        let latest = took.as_nanos() as f64 / pixels.max(1) as f64;
        self.nanoseconds += (latest - self.nanoseconds) * LATEST;
    }
}

/// Whether an image of `length` bytes, which would be coded after `wait` in all (what is ahead of it, and itself),
/// arrives no later over a link of this rate than as it is: half of it is expected to be saved. Where the rate is not
/// known, it is taken to be slow.
pub fn is_worth_waiting(length: u64, rate: Option<BitRate>, wait: Duration) -> bool {
    rate.is_none_or(|rate| wait < rate.time_for(Bytes(length / 2)).max(UNNOTICED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_coded_only_if_that_is_quicker_than_the_bytes_it_saves() {
        // Bytes, Mbit/s, what is ahead in ms, worth it?
        let rows = [
            (1_850_000, 20, 0, false),
            (1_850_000, 2, 0, true),
            (1_850_000, 2, 2_000, true),
            (1_850_000, 2, 3_000, false),
            (400_000, 8, 0, false),
            (400_000, 2, 0, true),
            (400_000, 2, 700, false),
            (15_000, 20, 0, true),
            (15_000, 20, 130, true),
            (15_000, 20, 150, false),
        ];
        for (length, megabits, ahead, expected) in rows {
            let wait = Duration::from_millis(ahead) + PixelPace::default().time_for_file(length);
            let rate = Some(BitRate::mbit(megabits));
            assert_eq!(is_worth_waiting(length, rate, wait), expected, "{length} {megabits} {ahead}");
        }
        assert!(is_worth_waiting(2_000, None, Duration::from_secs(9)));
    }

    #[test]
    fn what_coding_takes_is_learnt() {
        let mut pace = PixelPace::default();
        assert_eq!(pace.time_for(1_000_000), Duration::from_millis(110));
        for _ in 0..40 {
            pace.learn(1_000, Duration::from_millis(1));
        }
        assert_eq!(pace.time_for(1_000_000).as_millis().div_ceil(10), 100);
    }
}
