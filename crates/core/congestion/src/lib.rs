//! Congestion control for the long hop: how many bytes may be in flight, decided from what was
//! acknowledged and what was lost. Pure: time and events come in, a window comes out; the carrier
//! that owns sockets and clocks adapts these controllers to its own trait (`io/transport`).
//!
//! A link whose rate is contracted is driven by [`Capped`], which fills the contracted
//! bandwidth × delay from the first packet and never queues more than a quarter above it.
//! A path of unknown rate needs a controller that searches; those live in the carrier and are
//! only named here ([`Choice`]), so that settings and reports speak one language.
//!
//! Calling order: [`Controller::on_ack`] for each newly acknowledged packet and
//! [`Controller::on_loss`] once for each batch of packets found lost, in the order of their `now`;
//! [`Controller::window`] may be asked at any time.

mod capped;
mod trust;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

pub use capped::{CAP, Capped};

/// What the operator says about one direction of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// The rate that this direction is entitled to, counted in IP packets.
    pub rate: BitRate,
    /// Round-trip time of the empty path; used until one has been measured.
    pub rtt: Duration,
}

/// One packet was acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When the acknowledgement came, since the controller's epoch.
    pub now: Duration,
    /// When the packet had been sent, on the same clock.
    pub sent: Duration,
    /// Its size, without IP and UDP headers.
    pub bytes: Bytes,
    /// The sender had nothing more to send, so a full window proves nothing.
    pub app_limited: bool,
    /// Smallest round-trip time seen on this path, `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub rtt: Duration,
}

/// Packets were found lost, or a mark said that a queue builds up.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// When it was noticed.
    pub now: Duration,
    /// When the newest of the lost packets had been sent.
    pub sent: Duration,
    /// How much was lost; zero for an ECN mark.
    pub bytes: Bytes,
    /// Nothing came through for several probe timeouts (RFC 9002 §7.6).
    pub persistent: bool,
}

/// Decides how many bytes may be in flight.
pub trait Controller: fmt::Debug + Send + Sync {
    /// A packet was acknowledged.
    fn on_ack(&mut self, ack: &Ack);
    /// A batch of packets was found lost.
    fn on_loss(&mut self, loss: &Loss);
    /// The largest packet that the path carries has changed (UDP payload).
    fn on_mtu(&mut self, mtu: Bytes);
    /// Bytes that may be in flight now, never zero.
    fn window(&self) -> Bytes;
    /// The window with which a fresh path starts.
    fn initial_window(&self) -> Bytes;
}

/// Which controller drives a direction, as written in settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// [`Capped`], for a link whose rate is contracted.
    Capped,
    /// CUBIC (RFC 9438) as the carrier brings it, for paths of unknown rate.
    Cubic,
    /// NewReno (RFC 9002 §7) as the carrier brings it.
    NewReno,
}

impl Choice {
    /// Every controller there is.
    pub const ALL: [Choice; 3] = [Choice::Capped, Choice::Cubic, Choice::NewReno];

    /// The sensible controller: [`Choice::Capped`] where the rate is known, else [`Choice::Cubic`].
    pub fn for_rate(rate: Option<BitRate>) -> Choice {
        if rate.is_some() { Choice::Capped } else { Choice::Cubic }
    }

    /// The name used in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Choice::Capped => "capped",
            Choice::Cubic => "cubic",
            Choice::NewReno => "newreno",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no controller bears.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no congestion controller is called '{0}', use one of: {known}", known = Choice::ALL.map(Choice::name).join(", "))]
pub struct UnknownChoice(String);

impl FromStr for Choice {
    type Err = UnknownChoice;
    fn from_str(name: &str) -> Result<Self, UnknownChoice> {
        let known = Choice::ALL.into_iter().find(|choice| choice.name() == name);
        known.ok_or_else(|| UnknownChoice(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_is_found_by_its_name_and_others_are_refused_with_the_list() {
        for choice in Choice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        let error = "reno".parse::<Choice>().unwrap_err().to_string();
        assert_eq!(error, "no congestion controller is called 'reno', use one of: capped, cubic, newreno");
    }

    #[test]
    fn a_known_rate_is_driven_by_the_capped_controller() {
        assert_eq!(Choice::for_rate(Some(BitRate::mbit(8))), Choice::Capped);
        assert_eq!(Choice::for_rate(None), Choice::Cubic);
    }
}
