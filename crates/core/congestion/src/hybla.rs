//! TCP Hybla (Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J.
//! Satell. Commun. Netw. 22, 2004): windows grow in time as they would over 25 ms, however long the path.
//! With ρ = RTT / 25 ms each acknowledged packet adds 2^ρ − 1 packets in slow start and ρ²/W in
//! avoidance (equation 6 there).
//!
//! By the book it cannot be used beyond some 100 ms: at ρ = 24 slow start multiplies by sixteen million.
//! So slow start multiplies by nine at most and only up to a known bandwidth × delay, where there is a
//! contract; without one it doubles, until round trips lengthen (HyStart++). In avoidance the window
//! stays within 1.5 times what is known, or has been measured, to fill the path.

use std::time::Duration;

use farhop_units::Bytes;

use crate::hystart::{HyStart, Verdict};
use crate::rounds::{Rates, Rounds};
use crate::window::Window;
use crate::{Ack, Contract, Controller, Loss};

/// The reference connection.
const REFERENCE_RTT: Duration = Duration::from_millis(25);
/// What each acknowledged byte adds at most in slow start, towards a window that is known to be right.
const STEEPEST: f64 = 8.0;
/// The window above which only a queue grows, over the bandwidth × delay.
const CAP: f64 = 1.5;
/// As NewReno's, in the paper too.
const REDUCTION: f64 = 0.5;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Hybla {
    window: Window,
    contract: Option<Contract>,
    hystart: HyStart,
    rounds: Rounds,
    min_rtt: Option<Duration>,
    /// What the last round trips have delivered: a path that has become slower has another cap.
    rates: Rates,
}

impl Hybla {
    /// A controller for a path that carries packets of `mtu` bytes of UDP payload, whose rate is known
    /// where there is a `contract`.
    pub fn new(contract: Option<Contract>, mtu: Bytes) -> Self {
        let mut hybla = Hybla {
            window: Window::new(mtu),
            contract,
            hystart: HyStart::default(),
            rounds: Rounds::default(),
            min_rtt: contract.map(|contract| contract.rtt),
            rates: Rates::default(),
        };
        hybla.window.threshold = hybla.contracted().unwrap_or(f64::INFINITY);
        hybla
    }

    /// How many reference round trips one of ours takes.
    fn rho(&self) -> f64 {
        let rtt = self.min_rtt.unwrap_or(REFERENCE_RTT);
        (rtt.as_secs_f64() / REFERENCE_RTT.as_secs_f64()).max(1.0)
    }

    /// Bytes that fill the empty path by contract.
    fn contracted(&self) -> Option<f64> {
        self.contract.map(|contract| contract.rate.bytes_in(self.min_rtt.unwrap_or(contract.rtt)).0 as f64)
    }

    /// The window above which nothing is gained; none while the path is unknown.
    fn cap(&self) -> f64 {
        let measured = self.rates.best() * self.min_rtt.unwrap_or_default().as_secs_f64();
        match self.contracted() {
            Some(contracted) => CAP * contracted,
            None if self.window.in_slow_start() || measured <= 0.0 => f64::INFINITY,
            None => CAP * measured,
        }
    }

    fn search(&mut self, ack: &Ack) {
        let acked = ack.bytes.0 as f64;
        if self.window.threshold.is_finite() {
            let gain = (self.rho().exp2() - 1.0).min(STEEPEST);
            self.window.bytes =
                (self.window.bytes + gain * acked).min(self.window.threshold.max(self.window.bytes));
            return;
        }
        match self.hystart.on_ack(ack) {
            Verdict::Grow(share) => self.window.bytes += share * acked,
            Verdict::Leave => self.window.threshold = self.window.bytes,
        }
    }
}

impl Controller for Hybla {
    fn on_ack(&mut self, ack: &Ack) {
        self.min_rtt = ack.min_rtt.or(self.min_rtt);
        if let Some(round) = self.rounds.on_ack(ack) {
            // What an application that sent little got through says nothing, unless it is more.
            if !round.app_limited || round.rate() > self.rates.best() {
                self.rates.push(ack.now, round.rate());
            }
        }
        if !self.window.may_grow(ack) {
            return;
        }
        if self.window.in_slow_start() {
            self.search(ack);
        } else {
            let rho = self.rho();
            self.window.bytes += rho * rho * self.window.mtu * ack.bytes.0 as f64 / self.window.bytes;
        }
        self.window.bytes = self.window.bytes.min(self.cap().max(self.window.minimum()));
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.window.begins_recovery(loss) {
            self.window.reduce(self.window.bytes * REDUCTION);
        }
        if loss.persistent {
            self.window.collapse();
            self.window.threshold = self.contracted().unwrap_or(self.window.threshold);
            self.rounds.restart(loss.now);
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.window.set_mtu(mtu);
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.window.steer(window, threshold);
        self.hystart = HyStart::default();
    }

    fn window(&self) -> Bytes {
        self.window.get()
    }

    fn initial_window(&self) -> Bytes {
        self.window.initial()
    }

    fn is_searching(&self) -> bool {
        self.window.in_slow_start()
    }

    fn boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RTT, ack_at, loss_at};
    use farhop_units::BitRate;

    const CONTRACT: Contract = Contract { rate: BitRate::mbit(8), rtt: RTT };

    /// Acknowledges a full window at `now_ms`.
    fn round(hybla: &mut Hybla, now_ms: u64) -> u64 {
        for _ in 0..hybla.window().0 / 1200 {
            hybla.on_ack(&ack_at(now_ms));
        }
        hybla.window().0 / 1000
    }

    #[test]
    fn a_known_link_is_full_after_two_round_trips_and_never_over_one_and_a_half() {
        let mut hybla = Hybla::new(Some(CONTRACT), Bytes(1200));
        let windows: Vec<u64> = (1..6).map(|number| round(&mut hybla, number * 600)).collect();
        assert_eq!(windows, [108, 650, 900, 900, 900]);
    }

    #[test]
    fn avoidance_comes_back_from_a_loss_in_one_round_trip() {
        let mut hybla = Hybla::new(Some(CONTRACT), Bytes(1200));
        for number in 1..6 {
            round(&mut hybla, number * 600);
        }
        hybla.on_loss(&loss_at(3700, 3600));
        assert_eq!(hybla.window(), Bytes(450_000));
        // ρ² = 576 packets in a round trip.
        assert_eq!(round(&mut hybla, 4400), 900);
    }

    #[test]
    fn a_path_that_has_become_slower_is_not_overfilled_for_ever() {
        let mut hybla = Hybla::new(None, Bytes(1200));
        hybla.steer(Bytes(600_000), Some(Bytes(0)));
        let mut now = 0;
        let mut deliver = |packets: u32, rounds: u32| {
            for _ in 0..rounds {
                now += 600;
                (0..packets).for_each(|_| hybla.on_ack(&Ack { min_rtt: Some(RTT), ..ack_at(now) }));
            }
            hybla.window().0 / 1000
        };
        // 8 Mbit/s, then 2.
        assert_eq!(deliver(500, 6), 900);
        assert_eq!(deliver(125, 6), 900, "it may be a pause");
        assert_eq!(deliver(125, 12), 225);
    }

    #[test]
    fn a_short_path_is_newrenos() {
        let mut hybla = Hybla::new(None, Bytes(1200));
        hybla.on_loss(&loss_at(1000, 900));
        let rtt = Duration::from_millis(20);
        for packet in 0..5 {
            let now = Duration::from_millis(1100 + packet);
            hybla.on_ack(&Ack { now, sent: now - rtt, rtt, min_rtt: Some(rtt), ..ack_at(0) });
        }
        let grown = hybla.window().0;
        assert!((7_000..=7_200).contains(&grown), "{grown}");
    }
}
