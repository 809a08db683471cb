//! Whether an image is worth the time that coding it anew takes. Pure: what work took and what waits ahead are passed in.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::Format;

/// What coding takes until something was measured (record 0014: `gentle`, one core).
const ASSUMED_NS: f64 = 110.0;
/// How much the latest image counts in what the next is expected to take.
const LATEST: f64 = 0.25;
/// Pixels in a byte of a photograph as the web has them: 1.6 bits for one.
const PIXELS_IN_BYTE: u64 = 5;
/// So much is nobody's wait beside the round trip of a satellite, and the bytes saved are the next image's.
const UNNOTICED: Duration = Duration::from_millis(150);

/// A machine that was busy is so no longer after a few of these: what was measured then counts half as much.
const FORGOTTEN_BY_HALF: Duration = Duration::from_secs(10);

/// How long coding a pixel takes, as measured: of photographs, which are coded with loss, and of graphics, which are not.
///
/// What was measured fades: an image that was slow by chance must not keep those that come later from being tried.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PixelPace {
    photographs: Pace,
    graphics: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Pace {
    nanoseconds: f64,
    measured: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { nanoseconds: ASSUMED_NS, measured: Duration::ZERO }
    }
}

impl Pace {
    fn at(self, now: Duration) -> f64 {
        let halvings = now.saturating_sub(self.measured).div_duration_f64(FORGOTTEN_BY_HALF);
        ASSUMED_NS + (self.nanoseconds - ASSUMED_NS) * (-halvings).exp2()
    }
}

impl PixelPace {
    fn of(&self, from: Format) -> Pace {
        if from == Format::Png { self.graphics } else { self.photographs }
    }

    /// How long so many pixels of a picture that is `from` are expected to take at `now`, a time since the same start as before.
    pub fn time_for(&self, from: Format, pixels: u64, now: Duration) -> Duration {
        Duration::from_nanos((self.of(from).at(now) * pixels as f64) as u64)
    }

    /// The same for an image of which only the length in bytes is known.
    pub fn time_for_file(&self, from: Format, length: u64, now: Duration) -> Duration {
        self.time_for(from, length.saturating_mul(PIXELS_IN_BYTE), now)
    }

    /// Coding so many pixels, at least one, took so long.
    pub fn learn(&mut self, from: Format, pixels: u64, took: Duration, now: Duration) {
        let latest = took.as_nanos() as f64 / pixels.max(1) as f64;
        let expected = self.of(from).at(now);
        let pace = if from == Format::Png { &mut self.graphics } else { &mut self.photographs };
        *pace = Pace { nanoseconds: expected + (latest - expected) * LATEST, measured: now };
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
            let wait = Duration::from_millis(ahead)
                + PixelPace::default().time_for_file(Format::Jpeg, length, Duration::ZERO);
            let rate = Some(BitRate::mbit(megabits));
            assert_eq!(is_worth_waiting(length, rate, wait), expected, "{length} {megabits} {ahead}");
        }
        assert!(is_worth_waiting(2_000, None, Duration::from_secs(9)));
    }

    #[test]
    fn what_coding_takes_is_learnt_of_each_kind_and_fades() {
        let (mut pace, then) = (PixelPace::default(), Duration::from_secs(100));
        let ms = |pace: &PixelPace, from, now| pace.time_for(from, 1_000_000, now).as_millis().div_ceil(10);
        assert_eq!(ms(&pace, Format::Jpeg, then), 11);
        for _ in 0..40 {
            pace.learn(Format::Png, 1_000, Duration::from_millis(1), then);
        }
        assert_eq!(ms(&pace, Format::Png, then), 100);
        assert_eq!(ms(&pace, Format::Jpeg, then), 11, "graphics say nothing of photographs");
        assert_eq!(ms(&pace, Format::Png, then + FORGOTTEN_BY_HALF), 56);
        assert_eq!(ms(&pace, Format::Png, then + 10 * FORGOTTEN_BY_HALF), 11);
    }
}
