//! What can wait, as the ends of a carrier tell it apart: each may have a ceiling and hours of its own.

use std::fmt;
use std::str::FromStr;

use farhop_units::BitRate;

/// Traffic that can wait. Earlier ones go before later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Patient {
    /// Media with a play rate.
    Streaming,
    /// Downloads, uploads, mail.
    Bulk,
    /// Updates, and what else nobody waits for.
    Updates,
    /// Backups.
    Backups,
    /// Peer to peer.
    PeerToPeer,
}

/// What some of it never exceeds, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// Of what.
    pub of: Patient,
    /// Within its hours; none where it has no ceiling then.
    pub rate: Option<BitRate>,
    /// Minutes after midnight at which they begin and end, which may pass it; none where it is all day.
    pub hours: Option<(u16, u16)>,
    /// At other times.
    pub outside: BitRate,
}

impl Ceiling {
    /// What holds at this minute of the day.
    pub fn at(&self, minute: u16) -> Option<BitRate> {
        let is_open = self.hours.is_none_or(|(from, to)| {
            if from <= to { from <= minute && minute < to } else { from <= minute || minute < to }
        });
        if is_open { self.rate } else { Some(self.outside) }
    }
}

impl Patient {
    /// All of them, in their order.
    pub const ALL: [Patient; 5] =
        [Patient::Streaming, Patient::Bulk, Patient::Updates, Patient::Backups, Patient::PeerToPeer];

    /// Those that nobody waits for, which wait in LE.
    pub const BACKGROUND: [Patient; 3] = [Patient::Updates, Patient::Backups, Patient::PeerToPeer];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Patient::Streaming => "streaming",
            Patient::Bulk => "bulk",
            Patient::Updates => "updates",
            Patient::Backups => "backups",
            Patient::PeerToPeer => "peer-to-peer",
        }
    }
}

impl fmt::Display for Patient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Patient {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        Patient::ALL.into_iter().find(|it| it.as_str() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Flow, Protocol, classify, standard};

    #[test]
    fn what_nobody_waits_for_is_told_apart() {
        let of = |port: u16, bytes: &[u8]| {
            let (from, to) = ("0.0.0.0:0".parse().unwrap(), format!("192.0.2.1:{port}").parse().unwrap());
            let mut flow = Flow::new(Protocol::Tcp, from, to);
            flow.first_bytes = bytes.to_vec();
            classify(&standard(), &flow).patient
        };
        assert_eq!(of(4711, b"\x13BitTorrent protocol"), Some(Patient::PeerToPeer));
        assert_eq!((of(6881, b""), of(873, b"")), (Some(Patient::PeerToPeer), Some(Patient::Backups)));
        assert_eq!(of(4711, b"@RSYNCD: 31.0\n"), Some(Patient::Backups));
        assert_eq!((of(25, b""), of(554, b"")), (Some(Patient::Bulk), Some(Patient::Streaming)));
        assert_eq!((of(443, b""), of(22, b"")), (None, None));
        for it in Patient::ALL {
            assert_eq!(it.to_string().parse(), Ok(it));
        }
    }

    #[test]
    fn a_ceiling_holds_within_its_hours_and_another_outside() {
        let night = Ceiling {
            of: Patient::Updates,
            rate: None,
            hours: Some((22 * 60, 6 * 60)),
            outside: BitRate::kbit(8),
        };
        let slow = Some(BitRate::kbit(8));
        assert_eq!((night.at(23 * 60), night.at(0), night.at(5 * 60 + 59)), (None, None, None));
        assert_eq!((night.at(6 * 60), night.at(21 * 60 + 59)), (slow, slow));
        let day = Ceiling { rate: Some(BitRate::mbit(1)), hours: Some((540, 1020)), ..night };
        assert_eq!((day.at(600), day.at(1020)), (Some(BitRate::mbit(1)), slow));
        let always = Ceiling { hours: None, ..day };
        assert_eq!(always.at(3), Some(BitRate::mbit(1)));
    }
}
