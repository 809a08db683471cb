//! What the link manager is told by its operator.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use farhop_diffserv::calls::Hop;
use farhop_diffserv::classify::{Net, Rule};
use farhop_diffserv::{Ceiling, Patient, Queue, Shares};
use farhop_units::BitRate;

/// One device, and what is to be done there.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The device that the link is behind.
    pub interface: String,
    /// The rate of the link in the direction that the device sends in.
    pub rate: BitRate,
    /// Whose word that is: a profile's, by its name, or the settings' own.
    pub profile: Option<String>,
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
    /// Where calls announce themselves by SIP, if that is to be heard.
    pub sip: Option<SipTerms>,
    /// Hours of classes.
    pub windows: Vec<Window>,
    /// What kinds of what can wait never exceed, and when.
    pub ceilings: Vec<Ceiling>,
    /// How the link's rate is followed, if it is.
    pub follow: Option<FollowTerms>,
    /// How grants are followed, by whoever tells them.
    pub grants: GrantTerms,
}

/// What classes have at a time of the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hour {
    /// Of the link.
    pub shares: Shares,
    /// What kinds of what can wait never exceed then.
    pub ceilings: Vec<(Patient, BitRate)>,
}

/// Hours of a day, outside of which a class may use less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The class.
    pub queue: Queue,
    /// When they begin and end, after midnight; they may pass it.
    pub hours: (Duration, Duration),
    /// What it never exceeds outside, in hundredths.
    pub outside: u32,
}

impl Window {
    /// Whether `time` of the day is within.
    pub fn is_open(&self, time: Duration) -> bool {
        let (from, to) = self.hours;
        if from <= to { from <= time && time < to } else { from <= time || time < to }
    }
}

impl Config {
    /// Where the rate comes from while nobody has measured or granted another.
    pub fn source(&self) -> RateSource {
        self.profile.clone().map_or(RateSource::Settings, RateSource::Profile)
    }

    /// What each class has at this time of the day.
    pub fn at(&self, time: Duration) -> Hour {
        let closed = self.windows.iter().filter(|window| !window.is_open(time));
        let shares =
            closed.fold(self.shares, |shares, window| shares.with_ceiling(window.queue, window.outside));
        let minute = u16::try_from(time.as_secs() / 60 % 1440).unwrap_or(0);
        let ceilings = self.ceilings.iter().filter_map(|ceiling| Some((ceiling.of, ceiling.at(minute)?)));
        Hour { shares, ceilings: ceilings.collect() }
    }

    /// What each has within its hours.
    pub fn within_hours(&self) -> Hour {
        let ceilings = self.ceilings.iter().filter_map(|ceiling| Some((ceiling.of, ceiling.rate?)));
        Hour { shares: self.shares, ceilings: ceilings.collect() }
    }
}

/// How the rate of a link that changes is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowTerms {
    /// Whose echoes are measured: the nearest machine beyond the link that answers.
    pub echo: IpAddr,
    /// Hundredths of the rate that is sent at otherwise, of which there is never less.
    pub least: u32,
    /// Round trip beyond the least that is a queue in the modem.
    pub queue: Duration,
}

/// How the capacity that is granted is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantTerms {
    /// The modem, or the network control centre, that is asked: a host with a port. None where others tell.
    pub modem: Option<String>,
    /// For which terminal, where it is a centre.
    pub terminal: Option<u16>,
    /// Most bytes that it is told of which wait here.
    pub ahead: u64,
    /// Hundredths of the rate that is sent at otherwise, of which there is never less.
    pub least: u32,
}

/// Where the rate comes from that is sent at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateSource {
    /// The settings say it.
    Settings,
    /// The profile of this name says it.
    Profile(String),
    /// It was measured, by echoes.
    Measured,
    /// The network control centre grants it.
    Granted,
}

impl fmt::Display for RateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateSource::Settings => f.write_str("settings"),
            RateSource::Profile(name) => write!(f, "profile {name}"),
            RateSource::Measured => f.write_str("measured"),
            RateSource::Granted => f.write_str("granted"),
        }
    }
}

/// Which SIP is heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SipTerms {
    /// UDP ports of servers and phones, first and last.
    pub ports: Vec<(u16, u16)>,
    /// One of the two ends of a message has to be in one of these; anywhere where there are none.
    pub from: Vec<Net>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_pass_midnight() {
        let hour = |hour: u64| Duration::from_secs(hour * 3600);
        let window = |from, to| Window { queue: Queue::Le, hours: (hour(from), hour(to)), outside: 5 };
        let open = |window: Window| (0..24).filter(|it| window.is_open(hour(*it))).collect::<Vec<_>>();
        assert_eq!(open(window(22, 3)), [0, 1, 2, 22, 23]);
        assert_eq!(open(window(9, 11)), [9, 10]);
    }
}
