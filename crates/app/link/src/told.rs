//! What the manager tells of itself and of its calls, as JSON.

use farhop_diffserv::calls::Call;
use farhop_diffserv::{Losses, Queue};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

use crate::arguments::milliseconds;

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallTold {
    /// Its name.
    pub call: String,
    /// What it holds in each direction, in bits/s.
    pub rate_bps: u64,
    /// Its codec, where it is said.
    pub codec: Option<String>,
    /// How long the speech of a packet is, where it is said.
    pub packet_time: Option<String>,
    /// Where its packets go.
    pub media: Vec<String>,
    /// In how many seconds it lapses unless somebody speaks for it.
    pub lapses_in_s: u64,
}

/// The state of the manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The device.
    pub interface: String,
    /// The rate of the link and what is sent at, in bits/s.
    pub link_bps: u64,
    /// As above.
    pub shaped_bps: u64,
    /// Who says what is sent at: settings, a profile, measured or granted.
    #[serde(default)]
    pub source: String,
    /// Whether the classes are in force there.
    pub in_force: bool,
    /// Why not, where they are not.
    pub trouble: Option<String>,
    /// What is set aside for calls, in bits/s.
    pub share_bps: u64,
    /// What calls hold of it.
    pub held_bps: u64,
    /// How many calls there are.
    pub calls: usize,
    /// Where calls that announce themselves by SIP are to be heard: why they are not, and empty where they are.
    pub sip: Option<String>,
    /// Datagrams at the ports of SIP that could not be read as messages of calls.
    #[serde(default)]
    pub sip_ignored: u64,
    /// Calls whose speech goes to hosts by name, which are not resolved: they have no place in EF.
    #[serde(default)]
    pub sip_unplaced: u64,
    /// Where the link's rate is to be followed: why it is not, and empty where it is.
    pub follow: Option<String>,
    /// Classes that have hours, and what they have now.
    #[serde(default)]
    pub hours: Vec<HoursTold>,
    /// Classes of whose packets some are dropped before they wait, by their drop precedence.
    #[serde(default)]
    pub losing: Vec<LossTold>,
    /// Why drop precedences are not acted on, where they are not.
    #[serde(default)]
    pub early: Option<String>,
}

/// An overloaded class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossTold {
    /// Which.
    pub class: String,
    /// Hundredths of its packets of medium drop precedence that are dropped.
    pub medium: u8,
    /// And of those of high drop precedence.
    pub high: u8,
}

/// A class that may use less outside of its hours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoursTold {
    /// The class, and what it is for.
    pub class: String,
    /// As above.
    pub service: String,
    /// Its hours, in UTC: `22:00-06:00`.
    pub hours: String,
    /// Whether it is within them now.
    pub is_within: bool,
    /// What it never exceeds now, in bits/s.
    pub most_bps: u64,
}

/// `AF4: of its packets of medium and high drop precedence 0 % and 80 % are dropped before they wait`.
impl fmt::Display for LossTold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LossTold { class, medium, high } = self;
        write!(
            f,
            "{class}: of its packets of medium and high drop precedence {medium} % and {high} % are dropped before they wait"
        )
    }
}

impl LossTold {
    pub(crate) fn of((queue, losses): &(Queue, Losses)) -> LossTold {
        LossTold { class: queue.to_string(), medium: losses.medium, high: losses.high }
    }
}

impl CallTold {
    pub(crate) fn of(call: &Call, now: Duration) -> CallTold {
        let offer = &call.offer;
        CallTold {
            call: offer.id.to_string(),
            rate_bps: offer.rate.0,
            codec: offer.codec.map(|(codec, _)| codec.to_string()),
            packet_time: offer.codec.map(|(_, time)| milliseconds(time)),
            media: offer.media.iter().map(ToString::to_string).collect(),
            lapses_in_s: call.until.saturating_sub(now).as_secs(),
        }
    }
}
