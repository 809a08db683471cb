//! Codepoints and the per-hop behaviours that they ask for.

use std::fmt;
use std::str::FromStr;

/// A differentiated services codepoint: the upper six bits of the DS field (RFC 2474 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Codepoint(u8);

/// One of the four assured forwarding classes (RFC 2597 §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // their names are all that there is to say
pub enum AfClass {
    Af1 = 1,
    Af2 = 2,
    Af3 = 3,
    Af4 = 4,
}

/// How readily a packet of an assured class is dropped (RFC 2597 §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum DropPrecedence {
    Low = 1,
    Medium = 2,
    High = 3,
}

/// A per-hop behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phb {
    /// Expedited forwarding (RFC 3246).
    Ef,
    /// Assured forwarding (RFC 2597).
    Af(AfClass, DropPrecedence),
    /// The default behaviour (RFC 2474 §4.1).
    De,
    /// Lower effort (RFC 8622): what may starve.
    Le,
}

/// A text that names no codepoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no codepoint, write it like 'EF', 'AF41', 'CS1', 'DE', 'LE' or a number from 0 to 63")]
pub struct UnknownName(pub String);

impl Codepoint {
    /// The codepoint of this number; `None` above 63.
    pub const fn new(number: u8) -> Option<Codepoint> {
        if number < 64 { Some(Codepoint(number)) } else { None }
    }

    /// The codepoint in a DS field, whose lower two bits are ECN's (RFC 3168 §5).
    pub const fn of_field(octet: u8) -> Codepoint {
        Codepoint(octet >> 2)
    }

    /// From 0 to 63.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// What it asks for. One that stands for nothing here is forwarded as the default is (RFC 2474 §4.1).
    pub fn phb(self) -> Phb {
        Phb::all().find(|phb| phb.codepoint() == self).unwrap_or(Phb::De)
    }
}

impl AfClass {
    /// From the most to the least urgent, as Farhop uses them; RFC 2597 gives them no order.
    pub const ALL: [AfClass; 4] = [AfClass::Af4, AfClass::Af3, AfClass::Af2, AfClass::Af1];
}

impl DropPrecedence {
    /// All of them.
    pub const ALL: [DropPrecedence; 3] = [DropPrecedence::Low, DropPrecedence::Medium, DropPrecedence::High];
}

impl fmt::Display for DropPrecedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DropPrecedence::Low => "low",
            DropPrecedence::Medium => "medium",
            DropPrecedence::High => "high",
        })
    }
}

impl FromStr for DropPrecedence {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        DropPrecedence::ALL.into_iter().find(|drop| drop.to_string() == text).ok_or(())
    }
}

impl Phb {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Phb> {
        let af =
            AfClass::ALL.into_iter().flat_map(|class| DropPrecedence::ALL.map(|drop| Phb::Af(class, drop)));
        [Phb::Ef].into_iter().chain(af).chain([Phb::De, Phb::Le])
    }

    /// The recommended codepoint.
    pub const fn codepoint(self) -> Codepoint {
        Codepoint(match self {
            Phb::Ef => 0b10_1110,                                           // RFC 3246 §2.7
            Phb::Af(class, drop) => (class as u8) << 3 | (drop as u8) << 1, // RFC 2597 §6
            Phb::De => 0,                                                   // RFC 2474 §4.1
            Phb::Le => 1,                                                   // RFC 8622 §4
        })
    }
}

impl fmt::Display for Phb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Phb::Ef => f.write_str("EF"),
            Phb::Af(class, drop) => write!(f, "AF{}{}", *class as u8, *drop as u8),
            Phb::De => f.write_str("DE"),
            Phb::Le => f.write_str("LE"),
        }
    }
}

/// By name where it has one, else by number.
impl fmt::Display for Codepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Phb::all().find(|phb| phb.codepoint() == *self) {
            Some(phb) => phb.fmt(f),
            // RFC 2474 §4.2.2.2: xxx000 are the class selectors.
            None if self.0.is_multiple_of(8) => write!(f, "CS{}", self.0 / 8),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Codepoint {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let word = text.trim().to_ascii_uppercase();
        let unknown = || UnknownName(text.into());
        if let Some(phb) = Phb::all().find(|phb| phb.to_string() == word) {
            return Ok(phb.codepoint());
        }
        if matches!(&*word, "DF" | "BE" | "CS0") {
            return Ok(Phb::De.codepoint());
        }
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (number, factor) = match word.strip_prefix("CS") {
            Some(selector) if selector.len() == 1 && digits(selector) => (selector.parse::<u8>(), 8),
            Some(_) => return Err(unknown()),
            None if digits(&word) => (word.parse::<u8>(), 1),
            None => return Err(unknown()),
        };
        let number = number.ok().and_then(|number| number.checked_mul(factor));
        number.and_then(Codepoint::new).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_are_those_of_the_rfcs() {
        let of = |name: &str| name.parse::<Codepoint>().map(Codepoint::number);
        // RFC 3246 §2.7; RFC 2597 §6's table; RFC 2474 §4.1; RFC 8622 §4.
        assert_eq!(of("EF"), Ok(46));
        let table = [("AF11", 10), ("AF12", 12), ("AF13", 14), ("AF21", 18), ("AF22", 20), ("AF23", 22)];
        let rest = [("AF31", 26), ("AF32", 28), ("AF33", 30), ("AF41", 34), ("AF42", 36), ("AF43", 38)];
        for (name, number) in table.into_iter().chain(rest) {
            assert_eq!(of(name), Ok(number), "{name}");
        }
        assert_eq!(
            (of("DE"), of("LE"), of("CS1"), of("cs7"), of("63")),
            (Ok(0), Ok(1), Ok(8), Ok(56), Ok(63))
        );
    }

    #[test]
    fn what_names_no_codepoint_is_refused() {
        for text in ["", "64", "AF14", "AF51", "CS8", "CS", "CS10", "+1", "EF "] {
            let read = text.parse::<Codepoint>();
            assert_eq!(read.is_ok(), text == "EF ", "{text}: {read:?}");
        }
    }

    #[test]
    fn every_codepoint_reads_back_and_asks_for_something() {
        for number in 0..64 {
            let codepoint = Codepoint::new(number).unwrap();
            assert_eq!(codepoint.to_string().parse(), Ok(codepoint));
            let phb = codepoint.phb();
            assert!(phb.codepoint() == codepoint || phb == Phb::De, "{codepoint} asks for {phb}");
        }
        assert_eq!((Codepoint::new(64), Codepoint::of_field(0xbb)), (None, Phb::Ef.codepoint()));
    }
}
