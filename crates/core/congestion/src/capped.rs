//! The controller for a link of one's own: starts with the whole contracted bandwidth × delay in
//! flight, grows as TCP Hybla does, and stops a quarter above. It must not judge the contract
//! itself: that is `trust`.
//!
//! Why these numbers: over 600 ms a search from ten packets costs more round trips than the page
//! is worth, so it starts at the BDP. A quarter above the BDP keeps the link busy through
//! acknowledgement jitter and costs at most a quarter RTT of queue; more only delays what is urgent.
//!
//! ```text
//!            loss: min(window, BDP)            persistent congestion: 2 packets
//!   BDP ───────────────────────────▶ BDP ◀──────────┐
//!    │  acks: Hybla avoidance, ρ² packets per RTT   │ acks: at most ×8 more per RTT
//!    ▼                                              │
//!   1.25 BDP (cap)                            slow start
//! ```

use std::time::Duration;

use farhop_units::Bytes;

use crate::trust::Trust;
use crate::{Ack, Contract, Controller, Loss};

/// The window never exceeds the bandwidth × delay by more than this factor.
pub const CAP: f64 = 1.25;

/// Hybla's reference connection: windows grow as they would over 25 ms (Caini & Firrincieli 2004).
const REFERENCE_RTT: Duration = Duration::from_millis(25);
/// Hybla's slow start multiplies by 2^ρ − 1, absurd at ρ = 24; an eightfold already refills a GEO link in three round trips.
const SLOW_START_LIMIT: f64 = 8.0;
/// Hosts wake up and acknowledge in steps of milliseconds, so no path is treated as shorter than this.
const SHORTEST_RTT: Duration = Duration::from_millis(5);
/// IPv4 and UDP headers: the contract counts them, the window does not.
const HEADERS: u64 = 28;
/// RFC 9002 §7.2 asks for two packets at least.
const MINIMUM_PACKETS: u64 = 2;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Capped {
    trust: Trust,
    /// Round-trip time of the empty path: the contract's until one is measured.
    base_rtt: Duration,
    mtu: u64,
    window: f64,
    /// No second reduction for packets sent before the last one (RFC 9002 §7.3.2).
    recovery_start: Option<Duration>,
}

impl Capped {
    /// A controller for a direction that follows `contract`, on a path that carries packets of
    /// `mtu` bytes of UDP payload.
    pub fn new(contract: Contract, mtu: Bytes) -> Self {
        let mut controller = Capped {
            trust: Trust::new(contract.rate),
            base_rtt: contract.rtt,
            mtu: mtu.0.max(1),
            window: 0.0,
            recovery_start: None,
        };
        controller.window = controller.bdp();
        controller
    }

    /// The window above which nothing is gained.
    pub fn cap(&self) -> Bytes {
        Bytes(self.limit() as u64)
    }

    /// Bytes of payload that fill the empty path at the rate believed in.
    fn bdp(&self) -> f64 {
        let payload_share = self.mtu as f64 / (self.mtu + HEADERS) as f64;
        let bytes = self.trust.rate() * payload_share * self.base_rtt.max(SHORTEST_RTT).as_secs_f64();
        bytes.max(self.minimum())
    }

    fn limit(&self) -> f64 {
        // A sender stops before the packet that would reach its window: two packets of room keep it busy.
        CAP * self.bdp() + self.minimum()
    }

    fn minimum(&self) -> f64 {
        (MINIMUM_PACKETS * self.mtu) as f64
    }

    /// Hybla's ρ: how many reference round trips one of ours takes.
    fn rho(&self) -> f64 {
        (self.base_rtt.as_secs_f64() / REFERENCE_RTT.as_secs_f64()).max(1.0)
    }

    fn grow(&mut self, acked: f64) {
        let rho = self.rho();
        self.window += if self.window < self.bdp() {
            acked * (rho.exp2() - 1.0).min(SLOW_START_LIMIT)
        } else {
            rho * rho * self.mtu as f64 * acked / self.window
        };
    }
}

impl Controller for Capped {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(min_rtt) = ack.min_rtt {
            self.base_rtt = min_rtt;
        }
        self.trust.on_ack(ack, self.base_rtt);
        let recovering = self.recovery_start.is_some_and(|start| ack.sent <= start);
        // RFC 9002 §7.8: a window that is not used does not grow.
        if !recovering && !ack.app_limited {
            self.grow(ack.bytes.0 as f64);
        }
        self.window = self.window.min(self.limit());
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.persistent {
            // RFC 9002 §7.6.2. Most often the link was cut; the contract still holds when it comes back.
            self.trust.forget_round(loss.now);
            self.window = self.minimum();
            self.recovery_start = None;
            return;
        }
        self.trust.on_loss(loss);
        if self.recovery_start.is_some_and(|start| loss.sent <= start) {
            return;
        }
        self.recovery_start = Some(loss.now);
        // What is above the BDP stands in a queue: give it back. What is below is ours by contract;
        // whether the contract is true is not read from one loss.
        self.window = self.window.min(self.bdp());
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.mtu = mtu.0.max(1);
        self.window = self.window.max(self.minimum());
    }

    fn window(&self) -> Bytes {
        Bytes(self.window as u64)
    }

    fn initial_window(&self) -> Bytes {
        Bytes(self.bdp() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::BitRate;

    const RTT: Duration = Duration::from_millis(650);
    const MTU: Bytes = Bytes(1200);

    fn hylas() -> Capped {
        Capped::new(Contract { rate: BitRate::mbit(8), rtt: RTT }, MTU)
    }

    fn ack(now_ms: u64, bytes: u64) -> Ack {
        let now = Duration::from_millis(now_ms);
        Ack {
            now,
            sent: now.saturating_sub(RTT),
            bytes: Bytes(bytes),
            app_limited: false,
            min_rtt: Some(RTT),
            rtt: RTT,
        }
    }

    fn loss(now_ms: u64, sent_ms: u64, persistent: bool) -> Loss {
        let at = Duration::from_millis;
        Loss { now: at(now_ms), sent: at(sent_ms), bytes: MTU, persistent }
    }

    #[test]
    fn the_first_window_fills_the_contracted_link() {
        let window = hylas().window().0 as f64;
        let link = 650_000.0; // 8 Mbit/s × 650 ms, headers included
        assert!((0.95..=1.0).contains(&(window / link)), "{window}");
        assert_eq!(hylas().initial_window(), hylas().window());
    }

    #[test]
    fn acknowledgements_lead_to_the_cap_within_a_round_trip_and_no_further() {
        let mut controller = hylas();
        for packet in 0..550 {
            controller.on_ack(&ack(650 + packet, 1200));
        }
        assert_eq!(controller.window(), controller.cap());
        let ratio = controller.cap().0 as f64 / controller.initial_window().0 as f64;
        assert!((1.25..1.26).contains(&ratio), "{ratio}");
    }

    #[test]
    fn one_loss_gives_back_the_queue_and_a_second_of_the_same_flight_nothing_more() {
        let mut controller = hylas();
        for packet in 0..550 {
            controller.on_ack(&ack(650 + packet, 1200));
        }
        controller.on_loss(&loss(1300, 700, false));
        assert_eq!(controller.window(), controller.initial_window());
        controller.on_loss(&loss(1310, 720, false));
        assert_eq!(controller.window(), controller.initial_window());
    }

    #[test]
    fn after_persistent_congestion_three_round_trips_refill_the_link() {
        let mut controller = hylas();
        controller.on_loss(&loss(10_000, 9_000, true));
        assert_eq!(controller.window(), Bytes(2400));
        for round in 0..3u64 {
            let flight = controller.window().0 / 1200;
            for packet in 0..flight {
                controller.on_ack(&ack(10_700 + round * 700 + packet, 1200));
            }
        }
        assert!(controller.window() >= controller.initial_window(), "{:?}", controller.window());
    }

    #[test]
    fn an_idle_sender_does_not_grow_its_window() {
        let mut controller = hylas();
        let before = controller.window();
        controller.on_ack(&Ack { app_limited: true, ..ack(650, 1200) });
        assert_eq!(controller.window(), before);
    }

    #[test]
    fn the_measured_round_trip_replaces_the_written_one() {
        let mut controller = hylas();
        let half = RTT / 2;
        controller.on_ack(&Ack { min_rtt: Some(half), rtt: half, ..ack(325, 1200) });
        let ratio = controller.initial_window().0 as f64 / hylas().initial_window().0 as f64;
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
        assert_eq!(controller.window(), controller.cap());
    }

    #[test]
    fn a_tiny_link_still_gets_two_packets() {
        let slow = Contract { rate: BitRate(1_000), rtt: Duration::from_millis(1) };
        assert_eq!(Capped::new(slow, MTU).window(), Bytes(2400));
    }
}
