//! The zstd level for text: as high as encoding still keeps well ahead of the link, on the processor time there is.

use crate::Load;
use farhop_units::BitRate;

/// Levels by the rate of the link, from the slowest up. Each compresses at least four times as fast as the link takes
/// its output, on one core (text, M = 1,000,000 bytes read a second: 19 2 M, 15 6 M, 12 14 M, 9 35 M, 3 260 M, 1 400 M).
const LEVELS: [(u64, i32); 4] = [(600_000, 19), (2_000_000, 15), (25_000_000, 9), (250_000_000, 3)];
const FASTEST: i32 = 1;
/// Where there is little time, all but the slowest links take what costs a tenth.
const CHEAP: i32 = 3;

/// The level for text towards a link of this rate; none is known of a link that limits nothing.
pub fn text_level(rate: Option<BitRate>, load: Load) -> i32 {
    let bits = rate.map_or(u64::MAX, |rate| rate.0);
    let level = LEVELS.iter().find(|(most, _)| bits <= *most).map_or(FASTEST, |(_, level)| *level);
    match load {
        Load::Light => level,
        Load::Heavy => level.min(CHEAP),
        // It is hardly more work than copying, and nothing makes a slow link slower than text as it is.
        Load::Spent => FASTEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_links_justify_slow_levels() {
        let rows = [
            ("128 kbit/s", 19),
            ("256 kbit/s", 19),
            ("2 Mbit/s", 15),
            ("8 Mbit/s", 9),
            ("20 Mbit/s", 9),
            ("100 Mbit/s", 3),
            ("1 Gbit/s", 1),
        ];
        for (rate, expected) in rows {
            assert_eq!(text_level(Some(rate.parse().unwrap()), Load::Light), expected, "{rate}");
        }
        assert_eq!(text_level(None, Load::Light), 1);
    }

    #[test]
    fn less_time_means_a_lower_level_or_the_same() {
        for rate in [1, 500_000, 8_000_000, 1_000_000_000] {
            let levels =
                [Load::Light, Load::Heavy, Load::Spent].map(|load| text_level(Some(BitRate(rate)), load));
            assert!(levels.is_sorted_by(|one, next| one >= next) && levels[2] >= 1, "{levels:?}");
        }
    }
}
