//! Units of the field: byte counts, bit rates and durations, read and written with their unit
//! (`8 Mbit/s`, `600 KB`, `650 ms`). Prefixes are decimal for rates (as the field counts them), and
//! `KB`/`MB` are 1000-based, `KiB`/`MiB` 1024-based for sizes.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A count of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(pub u64);

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {wanted}, write it like '{example}'")]
pub struct QuantityError {
    text: String,
    wanted: &'static str,
    example: &'static str,
}

impl BitRate {
    /// `n` kilobits per second.
    pub const fn kbit(n: u64) -> Self {
        BitRate(n * 1_000)
    }

    /// `n` megabits per second.
    pub const fn mbit(n: u64) -> Self {
        BitRate(n * 1_000_000)
    }

    /// How long `bytes` occupy a line of this rate; a rate of zero gives `Duration::MAX`.
    pub fn time_for(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = u128::from(bytes.0) * 8 * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes pass in `time`.
    pub fn bytes_in(self, time: Duration) -> Bytes {
        let bytes = u128::from(self.0) * time.as_nanos() / 8 / 1_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

/// Splits `8 Mbit/s` into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse::<f64>().ok()?;
    Some((number, text[end..].trim()))
}

fn scaled(number: f64, factor: f64) -> Option<u64> {
    let value = number * factor;
    (value.is_finite() && (0.0..9.0e18).contains(&value)).then_some(value.round() as u64)
}

impl FromStr for BitRate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = || QuantityError { text: text.into(), wanted: "a bit rate", example: "8 Mbit/s" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let factor = match unit {
            "bit/s" => 1.0,
            "kbit/s" => 1e3,
            "Mbit/s" => 1e6,
            "Gbit/s" => 1e9,
            _ => return Err(error()),
        };
        scaled(number, factor).map(BitRate).ok_or_else(error)
    }
}

impl FromStr for Bytes {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let error = || QuantityError { text: text.into(), wanted: "a size", example: "64 KB" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let factor = match unit {
            "B" => 1.0,
            "KB" | "kB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" => 1024.0,
            "MiB" => 1024.0 * 1024.0,
            "GiB" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(error()),
        };
        scaled(number, factor).map(Bytes).ok_or_else(error)
    }
}

/// Reads a duration such as `650 ms`, `1.5 s`, `10 min` or `20 us`.
///
/// # Errors
/// The text has no number or a unit that is none of `us ms s min h`.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let error = || QuantityError { text: text.into(), wanted: "a duration", example: "650 ms" };
    let (number, unit) = split(text).ok_or_else(error)?;
    let nanos = match unit {
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(error()),
    };
    scaled(number, nanos).map(Duration::from_nanos).ok_or_else(error)
}

/// Reads a share of a whole such as `1 %`, or `0.01`, which is the same.
///
/// # Errors
/// The text is no number, or not from 0 to 100 %.
pub fn parse_share(text: &str) -> Result<f64, QuantityError> {
    let percent = text.trim().strip_suffix('%');
    let number = percent.unwrap_or(text).trim().parse::<f64>().ok();
    let share = number.map(|number| if percent.is_some() { number / 100.0 } else { number });
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| QuantityError {
        text: text.into(),
        wanted: "a share",
        example: "1 %",
    })
}

/// Writes a duration so that [`parse_duration`] reads it back.
pub fn format_duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    match nanos {
        0 => "0 s".into(),
        n if n % 1_000_000_000 == 0 => format!("{} s", n / 1_000_000_000),
        n if n % 1_000_000 == 0 => format!("{} ms", n / 1_000_000),
        n => format!("{} us", n as f64 / 1e3),
    }
}

impl BitRate {
    /// As people say it, to three digits: `302 kbit/s`.
    pub fn in_words(self) -> String {
        BitRate(three_digits(self.0)).to_string()
    }
}

/// To three digits, as people say a quantity.
pub fn three_digits(number: u64) -> u64 {
    let step = 10u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(2));
    (number + step / 2) / step * step
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            n if n >= 1_000_000_000 && n % 1_000_000 == 0 => (1e9, "Gbit/s"),
            n if n >= 1_000_000 && n % 1_000 == 0 => (1e6, "Mbit/s"),
            n if n >= 1_000 => (1e3, "kbit/s"),
            _ => (1.0, "bit/s"),
        };
        write!(f, "{} {unit}", self.0 as f64 / divisor)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            n if n >= 1_000_000 && n % 1_000 == 0 => (1e6, "MB"),
            n if n >= 1_000 => (1e3, "KB"),
            _ => (1.0, "B"),
        };
        write!(f, "{} {unit}", self.0 as f64 / divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_read_as_the_field_writes_them() {
        assert_eq!("8 Mbit/s".parse(), Ok(BitRate::mbit(8)));
        assert_eq!("512kbit/s".parse(), Ok(BitRate::kbit(512)));
        assert_eq!("64 KB".parse(), Ok(Bytes(64_000)));
        assert_eq!("1 MiB".parse(), Ok(Bytes(1 << 20)));
        assert_eq!(parse_duration("1.5 s"), Ok(Duration::from_millis(1500)));
    }

    #[test]
    fn rates_are_said_to_three_digits() {
        for (bits, text) in [
            (24_326, "24.3 kbit/s"),
            (301_568, "302 kbit/s"),
            (1_178_627, "1.18 Mbit/s"),
            (1_178_627_999, "1.18 Gbit/s"),
            (999_999, "1 Mbit/s"),
            (8, "8 bit/s"),
            (0, "0 bit/s"),
        ] {
            assert_eq!(BitRate(bits).in_words(), text);
        }
    }

    #[test]
    fn a_number_without_its_unit_is_refused_with_an_example() {
        let error = "8".parse::<BitRate>().unwrap_err().to_string();
        assert_eq!(error, "'8' is not a bit rate, write it like '8 Mbit/s'");
        assert!("MB".parse::<Bytes>().is_err());
        assert!(parse_duration("-1 s").is_err());
    }

    #[test]
    fn shares_are_read_with_and_without_their_sign() {
        assert_eq!(
            (parse_share("1 %"), parse_share("0.03"), parse_share("100%")),
            (Ok(0.01), Ok(0.03), Ok(1.0))
        );
        let error = parse_share("101 %").unwrap_err().to_string();
        assert_eq!(error, "'101 %' is not a share, write it like '1 %'");
        assert!(
            parse_share("many").is_err() && parse_share("-1 %").is_err() && parse_share("1 % %").is_err()
        );
    }

    #[test]
    fn a_packet_occupies_the_line_for_its_bits() {
        assert_eq!(BitRate::mbit(8).time_for(Bytes(1000)), Duration::from_millis(1));
        assert_eq!(BitRate(0).time_for(Bytes(1)), Duration::MAX);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(rate in 0u64..1_000_000_000_000, size in 0u64..1_000_000_000_000, ms in 0u64..100_000_000) {
            prop_assert_eq!(BitRate(rate).to_string().parse(), Ok(BitRate(rate)));
            prop_assert_eq!(Bytes(size).to_string().parse(), Ok(Bytes(size)));
            let time = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&format_duration(time)), Ok(time));
        }
    }
}
