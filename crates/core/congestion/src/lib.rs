//! Congestion control for the long hop: how many bytes may be in flight and how fast they leave,
//! decided from what was sent, acknowledged and lost. Pure: time and events come in, a window comes
//! out; the carrier that owns sockets and clocks adapts these controllers to its own trait
//! (`io/transport`).
//!
//! [`Choice`] names them and builds one. A link whose rate is contracted is driven by [`Paced`], which
//! needs no search. On any other the rate is searched for, by [`Bbr`], [`Hybla`] or [`Cubic`], or, to
//! compare with, by [`NewReno`], [`Westwood`], [`Vegas`] or [`Bic`], each inside [`Resume`], which lets
//! it start from what an earlier connection over the same path had measured (RFC 9959).
//!
//! Calling order: [`Controller::on_sent`] after each batch of packets that leaves together,
//! [`Controller::on_ack`] for each newly acknowledged packet and [`Controller::on_loss`] once for each
//! batch of packets found lost, in the order of their `now`; [`Controller::window`] and
//! [`Controller::pacing`] may be asked at any time.

mod bbr;
mod bic;
mod choice;
mod cubic;
mod hybla;
mod hystart;
mod newreno;
mod paced;
mod resume;
mod rounds;
#[cfg(test)]
mod testing;
mod throttled;
mod trust;
mod vegas;
mod westwood;
mod window;

use std::fmt;
use std::time::Duration;

use farhop_units::{BitRate, Bytes};

pub use bbr::Bbr;
pub use bic::Bic;
pub use choice::{Choice, UnknownChoice};
pub use cubic::Cubic;
pub use hybla::Hybla;
pub use newreno::NewReno;
pub use paced::{CAP, Paced};
pub use resume::{Phase, Resume, Saved};
pub use throttled::{Arrived, Trial, Wanted, Watch};
pub use vegas::Vegas;
pub use westwood::Westwood;

/// What the operator says about one direction of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// The rate that this direction is entitled to, counted in IP packets.
    pub rate: BitRate,
    /// Round-trip time of the empty path; used until one has been measured.
    pub rtt: Duration,
}

/// Packets have left.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// When, since the controller's epoch.
    pub now: Duration,
    /// Bytes in flight with them, without IP and UDP headers.
    pub in_flight: Bytes,
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
    /// Bytes in flight without it.
    pub in_flight: Bytes,
    /// The sender had nothing more to send, so a full window proves nothing.
    pub app_limited: bool,
    /// Smallest round-trip time seen on this path, `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Smoothed round-trip time.
    pub rtt: Duration,
}

impl Ack {
    /// How long this packet and its acknowledgement took.
    fn sample(&self) -> Duration {
        self.now.saturating_sub(self.sent)
    }
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
    /// Packets have left.
    fn on_sent(&mut self, _sent: &Sent) {}
    /// A packet was acknowledged.
    fn on_ack(&mut self, ack: &Ack);
    /// A batch of packets was found lost.
    fn on_loss(&mut self, loss: &Loss);
    /// The largest packet that the path carries has changed (UDP payload).
    fn on_mtu(&mut self, mtu: Bytes);
    /// Goes on from `window`, as someone else has found it right; below `threshold`, where there is
    /// one, it may search quickly, above it only carefully.
    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>);
    /// Bytes that may be in flight now, never zero.
    fn window(&self) -> Bytes;
    /// The window with which a fresh path starts.
    fn initial_window(&self) -> Bytes;
    /// The rate of IP packets that whoever feeds the carrier must not exceed. `None` leaves it to the
    /// carrier's own pacer, which spreads a window over a round trip (RFC 9002 §7.7).
    fn pacing(&self) -> Option<BitRate> {
        None
    }
    /// Whether the window may double within the next round trip, so that whoever feeds the carrier
    /// must keep more at hand.
    fn is_searching(&self) -> bool {
        false
    }
    /// What it has measured of the path, if that is worth keeping for the next connection.
    fn observed(&self) -> Option<Saved> {
        None
    }
    /// A copy in the same state.
    fn boxed(&self) -> Box<dyn Controller>;
}

impl Clone for Box<dyn Controller> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}
