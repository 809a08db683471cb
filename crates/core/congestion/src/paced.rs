//! The controller for a link of one's own: packets leave at the contracted rate from the first one on,
//! so there is nothing to search for and no queue to fill. The window only bounds what may be lost in
//! an outage. It must not judge the contract itself: that is `trust`.
//!
//! Why these numbers: a quarter above the bandwidth × delay keeps the link busy through acknowledgement
//! jitter and while a loss is noticed (9/8 RTT); more only fills a queue when the contract is not kept.
//!
//! ```text
//!                  persistent congestion
//! 1.25 × BDP ─────────────────────────────▶ 2 packets
//!      ▲                                        │
//!      └──────────── an acknowledgement ────────┘
//! ```

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use crate::trust::Trust;
use crate::window::MINIMUM_PACKETS;
use crate::{Ack, Contract, Controller, Loss};

/// The window never exceeds the bandwidth × delay by more than this factor.
pub const CAP: f64 = 1.25;

/// A window used so far held the sender back, though it seems to have had nothing more to send: whoever feeds it at the
/// rate knows no window.
const FULL: f64 = 0.95;
/// Hosts wake up and acknowledge in steps of milliseconds, so no path is treated as shorter than this.
const SHORTEST_RTT: Duration = Duration::from_millis(5);
/// IPv4 and UDP headers: the contract counts them, the window does not.
const HEADERS: u64 = 28;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Paced {
    contract: BitRate,
    trust: Trust,
    /// Round-trip time of the empty path: the contract's until one is measured.
    base_rtt: Duration,
    mtu: u64,
    /// Nothing comes through: all was lost for several probe timeouts.
    cut: bool,
}

impl Paced {
    /// A controller for a direction that follows `contract`, on a path that carries packets of
    /// `mtu` bytes of UDP payload.
    pub fn new(contract: Contract, mtu: Bytes) -> Self {
        Paced {
            contract: contract.rate,
            trust: Trust::new(contract.rate),
            base_rtt: contract.rtt,
            mtu: mtu.0.max(1),
            cut: false,
        }
    }

    fn minimum(&self) -> u64 {
        MINIMUM_PACKETS * self.mtu
    }

    /// A quarter above the payload that fills the empty path at the rate believed in.
    fn cap(&self) -> u64 {
        let payload_share = self.mtu as f64 / (self.mtu + HEADERS) as f64;
        let bdp = self.trust.rate() * payload_share * self.base_rtt.max(SHORTEST_RTT).as_secs_f64();
        // A sender stops before the packet that would reach its window: two packets of room keep it busy.
        (CAP * bdp) as u64 + self.minimum()
    }
}

impl Controller for Paced {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(min_rtt) = ack.min_rtt {
            self.base_rtt = min_rtt;
        }
        let in_flight = ack.in_flight + ack.bytes;
        let is_full = in_flight.0 as f64 >= FULL * self.cap() as f64;
        self.trust.on_ack(ack, self.base_rtt, is_full);
        self.cut = false;
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.persistent {
            // RFC 9002 §7.6.2. Most often the link was cut: probes find out when it is back, and the
            // contract holds again from their first acknowledgement on.
            self.trust.forget_round(loss.now);
            self.cut = true;
        } else {
            // Whether the contract is true is not read from one loss.
            self.trust.on_loss(loss);
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.mtu = mtu.0.max(1);
    }

    /// The contract says all that there is to say.
    fn steer(&mut self, _window: Bytes, _threshold: Option<Bytes>) {}

    fn window(&self) -> Bytes {
        Bytes(if self.cut { self.minimum() } else { self.cap() })
    }

    fn initial_window(&self) -> Bytes {
        Bytes(self.cap())
    }

    fn pacing(&self) -> Option<BitRate> {
        // Below the contract it is the window that holds back, so that a rate which has come back shows.
        let rate = if self.trust.is_whole() {
            self.contract
        } else {
            BitRate((CAP * 8.0 * self.trust.rate()) as u64).min(self.contract)
        };
        Some(rate)
    }

    fn boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RTT, ack_at, loss_at};

    const MTU: Bytes = Bytes(1200);

    fn geo() -> Paced {
        Paced::new(Contract { rate: BitRate::mbit(8), rtt: RTT }, MTU)
    }

    #[test]
    fn the_first_window_fills_the_contracted_link_and_a_quarter_more() {
        let window = geo().window().0 as f64;
        let link = 600_000.0; // 8 Mbit/s × 600 ms, headers included
        assert!((1.2..=1.25).contains(&(window / link)), "{window}");
        assert_eq!(geo().initial_window(), geo().window());
        assert_eq!(geo().pacing(), Some(BitRate::mbit(8)));
    }

    #[test]
    fn neither_a_loss_nor_a_thousand_acknowledgements_move_it() {
        let mut controller = geo();
        for packet in 0..1000 {
            controller.on_ack(&ack_at(650 + packet));
        }
        controller.on_loss(&loss_at(1700, 1000));
        assert_eq!((controller.window(), controller.pacing()), (geo().window(), geo().pacing()));
    }

    #[test]
    fn a_cut_stops_it_and_the_first_acknowledgement_after_it_lets_it_go_on() {
        let mut controller = geo();
        controller.on_loss(&Loss { persistent: true, ..loss_at(10_000, 9_000) });
        assert_eq!(controller.window(), Bytes(2400));
        controller.on_ack(&ack_at(12_000));
        assert_eq!(controller.window(), geo().window());
    }

    #[test]
    fn the_measured_round_trip_replaces_the_written_one() {
        let mut controller = geo();
        let half = RTT / 2;
        controller.on_ack(&Ack { min_rtt: Some(half), rtt: half, ..ack_at(325) });
        let ratio = controller.window().0 as f64 / geo().window().0 as f64;
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn a_tiny_link_still_gets_two_packets() {
        let slow = Contract { rate: BitRate(1_000), rtt: Duration::from_millis(1) };
        assert_eq!(Paced::new(slow, MTU).window(), Bytes(2400));
    }
}
