//! What the link manager is told by its operator.

use std::path::PathBuf;
use std::time::Duration;

use farhop_diffserv::Shares;
use farhop_diffserv::calls::Hop;
use farhop_diffserv::classify::Rule;
use farhop_units::BitRate;

/// One device, and what is to be done there.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The device that the link is behind.
    pub interface: String,
    /// The rate of the link in the direction that the device sends in.
    pub rate: BitRate,
    /// Hundredths of it that are left unused, so that no queue builds in the modem.
    pub margin: u32,
    /// What each class has.
    pub shares: Shares,
    /// The round trip of connections that cross.
    pub round_trip: Duration,
    /// Rules of the classifier, in order.
    pub rules: Vec<Rule>,
    /// What calls take and how long they are kept.
    pub calls: CallTerms,
    /// The file in which calls are written down.
    pub state: PathBuf,
}

/// What a call takes, and how long it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct CallTerms {
    /// What the link puts around speech.
    pub hop: Hop,
    /// What every call takes, whatever its codec.
    pub plain: Option<BitRate>,
    /// How long a call is kept for which nobody speaks.
    pub lease: Duration,
}
