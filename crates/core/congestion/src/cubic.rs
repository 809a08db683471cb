//! CUBIC (RFC 9438) with HyStart++: what most of the internet's servers do, for paths that are shared
//! with others. Windows are counted in bytes, the cubic function in packets, as the RFC has it.

use std::time::Duration;

use farhop_units::Bytes;

use crate::hystart::{HyStart, Verdict};
use crate::window::Window;
use crate::{Ack, Controller, Loss};

/// RFC 9438 §5, in packets per second³.
const C: f64 = 0.4;
/// RFC 9438 §4.6.
const BETA: f64 = 0.7;
/// RFC 9438 §4.3: this much for each window acknowledged makes an AIMD as quick as Reno's.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// RFC 9438 §4.2: the window grows by half in a round trip at most.
const STEEPEST: f64 = 1.5;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Cubic {
    window: Window,
    hystart: HyStart,
    /// The window before the last reduction, in packets; lower after two in a row (RFC 9438 §4.7).
    w_max: f64,
    epoch: Option<Epoch>,
    /// Since when the application has sent too little to fill the window.
    idle_since: Option<Duration>,
}

/// One stretch of congestion avoidance.
#[derive(Debug, Clone)]
struct Epoch {
    start: Duration,
    /// Seconds from its start to the plateau (RFC 9438 equation 2).
    k: f64,
    plateau: f64,
    /// What Reno would have, in packets (RFC 9438 §4.3), and what it had before the reduction.
    w_est: f64,
    prior: f64,
}

impl Cubic {
    /// A controller for a path that carries packets of `mtu` bytes of UDP payload.
    pub fn new(mtu: Bytes) -> Self {
        Cubic {
            window: Window::new(mtu),
            hystart: HyStart::default(),
            w_max: 0.0,
            epoch: None,
            idle_since: None,
        }
    }

    fn packets(&self) -> f64 {
        self.window.bytes / self.window.mtu
    }

    fn begin_epoch(&self, now: Duration) -> Epoch {
        let packets = self.packets();
        let plateau = self.w_max.max(packets);
        // Equation 2.
        Epoch { start: now, k: ((plateau - packets) / C).cbrt(), plateau, w_est: packets, prior: plateau }
    }

    /// Congestion avoidance, RFC 9438 §4.2 to §4.5.
    fn avoid(&mut self, ack: &Ack) {
        let packets = self.packets();
        let fresh = self.begin_epoch(ack.now);
        let epoch = self.epoch.get_or_insert(fresh);
        let segments = ack.bytes.0 as f64 / self.window.mtu;
        // Equation 4; beyond the old window Reno's own pace.
        let alpha = if epoch.w_est < epoch.prior { ALPHA } else { 1.0 };
        epoch.w_est += alpha * segments / packets;
        let t = ack.now.saturating_sub(epoch.start).as_secs_f64();
        // Equation 1.
        let cubic = |t: f64| C * (t - epoch.k).powi(3) + epoch.plateau;
        if cubic(t) < epoch.w_est {
            self.window.bytes = self.window.bytes.max(epoch.w_est * self.window.mtu);
            return;
        }
        let target = cubic(t + ack.rtt.as_secs_f64()).clamp(packets, STEEPEST * packets);
        self.window.bytes += (target - packets) / packets * ack.bytes.0 as f64;
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.app_limited {
            self.idle_since.get_or_insert(ack.now);
        } else if let (Some(since), Some(epoch)) = (self.idle_since.take(), &mut self.epoch) {
            // RFC 9438 §5.8: time in which the window was not used does not count.
            epoch.start += ack.now.saturating_sub(since);
        }
        if !self.window.may_grow(ack) {
            return;
        }
        if !self.window.in_slow_start() {
            return self.avoid(ack);
        }
        match self.hystart.on_ack(ack) {
            Verdict::Grow(share) => self.window.bytes += share * ack.bytes.0 as f64,
            Verdict::Leave => self.window.threshold = self.window.bytes,
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.window.begins_recovery(loss) {
            let packets = self.packets();
            // Fast convergence, RFC 9438 §4.7.
            self.w_max = if packets < self.w_max { packets * (1.0 + BETA) / 2.0 } else { packets };
            self.window.reduce(self.window.bytes * BETA);
            self.epoch = None;
        }
        if loss.persistent {
            self.window.collapse();
            self.hystart = HyStart::default();
            self.epoch = None;
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        // What is counted in packets stays as many bytes.
        let old = self.window.mtu;
        self.window.set_mtu(mtu);
        self.w_max *= old / self.window.mtu;
        self.epoch = None;
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.window.steer(window, threshold);
        self.hystart = HyStart::default();
        self.epoch = None;
        self.w_max = 0.0;
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
    use crate::testing::{ack_at, loss_at};

    /// Acknowledges a window a round trip of 100 ms each, until `until_ms`; gives the window in packets.
    fn play(cubic: &mut Cubic, from_ms: u64, until_ms: u64) -> f64 {
        let mut now = from_ms;
        while now < until_ms {
            let flight = cubic.window().0 / 1200;
            let step = Duration::from_millis(100) / flight as u32;
            for packet in 0..flight as u32 {
                let at = Duration::from_millis(now) + step * packet;
                let rtt = Duration::from_millis(100);
                cubic.on_ack(&Ack { now: at, sent: at - rtt, rtt, ..ack_at(0) });
            }
            now += 100;
        }
        cubic.packets()
    }

    #[test]
    fn after_a_loss_the_window_is_back_at_its_old_size_after_k_and_then_grows_faster() {
        let mut cubic = Cubic::new(Bytes(1200));
        cubic.steer(Bytes(1_200_000), Some(Bytes(0)));
        cubic.on_loss(&loss_at(1000, 950));
        assert_eq!(cubic.window(), Bytes(840_000));
        // K = ∛(1000 × 0.3 / 0.4) = 9.09 s.
        let at_k = play(&mut cubic, 1100, 10_200);
        assert!((at_k - 1000.0).abs() < 5.0, "{at_k}");
        let later = play(&mut cubic, 10_200, 15_200);
        // 0.4 × 5³ = 50 packets above the plateau.
        assert!((later - 1050.0).abs() < 10.0, "{later}");
    }

    #[test]
    fn a_second_loss_below_the_old_window_leaves_room_for_others() {
        let mut cubic = Cubic::new(Bytes(1200));
        cubic.steer(Bytes(1_200_000), Some(Bytes(0)));
        cubic.on_loss(&loss_at(1000, 950));
        cubic.on_loss(&loss_at(1200, 1150));
        assert_eq!(cubic.w_max, 700.0 * 0.85);
    }

    #[test]
    fn small_windows_grow_as_renos_do() {
        let mut cubic = Cubic::new(Bytes(1200));
        cubic.steer(Bytes(12_000), Some(Bytes(0)));
        cubic.on_loss(&loss_at(1000, 950));
        let after = play(&mut cubic, 1100, 2100);
        // From 7 packets: 0.53 in each round trip up to 10, then one. The cubic function alone gives 9.7.
        assert!((12.5..14.8).contains(&after), "{after}");
    }

    #[test]
    fn time_in_which_nothing_is_sent_does_not_grow_the_window() {
        let mut cubic = Cubic::new(Bytes(1200));
        cubic.steer(Bytes(1_200_000), Some(Bytes(0)));
        cubic.on_loss(&loss_at(1000, 950));
        let before = play(&mut cubic, 1100, 2100);
        cubic.on_ack(&Ack { app_limited: true, ..ack_at(2100) });
        let after = play(&mut cubic, 62_100, 62_200);
        assert!(after - before < 60.0, "{before} to {after}");
    }
}
