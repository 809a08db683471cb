//! Values of a satellite's file that are written as texts with their unit.

use farhop_units::{BitRate, Bytes};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;
use std::time::Duration;

/// Something that is written as a text.
pub(super) trait Quantity: Sized {
    /// Reads it, or says how it is written.
    fn read(text: &str) -> Result<Self, String>;
}

/// A quantity as serde meets it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said<T>(pub(super) T);

impl<'de, T: Quantity> Deserialize<'de> for Said<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<T>(PhantomData<T>);
        impl<T: Quantity> Visitor<'_> for Text<T> {
            type Value = Said<T>;

            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a text with its unit")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Said<T>, E> {
                T::read(text).map(Said).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text(PhantomData))
    }
}

/// A count as serde meets it, from 0 to a largest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count<const MOST: u16>(pub(super) u16);

impl<'de, const MOST: u16> Deserialize<'de> for Count<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let said = i64::deserialize(deserializer)?;
        let count = u16::try_from(said).ok().filter(|count| *count <= MOST);
        count.map(Count).ok_or_else(|| D::Error::custom(format!("{said} is none of 0 to {MOST}")))
    }
}

/// A share of a whole, `0.0..=1.0`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share(pub(super) f64);

/// Longer than anything that happens on a link, and short enough to be added up.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// More than any link carries, and little enough to be multiplied.
const FASTEST: BitRate = BitRate::mbit(1_000_000);
const LARGEST: Bytes = Bytes(1_000_000_000_000);

fn words(error: impl Display) -> String {
    error.to_string()
}

impl Quantity for Duration {
    fn read(text: &str) -> Result<Self, String> {
        let time = farhop_units::parse_duration(text).map_err(words)?;
        if time <= LONGEST { Ok(time) } else { Err(format!("'{text}' is more than a day")) }
    }
}

impl Quantity for BitRate {
    fn read(text: &str) -> Result<Self, String> {
        let rate: BitRate = text.parse().map_err(words)?;
        if rate <= FASTEST { Ok(rate) } else { Err(format!("'{text}' is more than {FASTEST}")) }
    }
}

impl Quantity for Bytes {
    fn read(text: &str) -> Result<Self, String> {
        let size: Bytes = text.parse().map_err(words)?;
        if size <= LARGEST { Ok(size) } else { Err(format!("'{text}' is more than {LARGEST}")) }
    }
}

impl Quantity for Share {
    fn read(text: &str) -> Result<Self, String> {
        farhop_units::parse_share(text).map(Share).map_err(words)
    }
}
