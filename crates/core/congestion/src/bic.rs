//! BIC TCP: L. Xu, K. Harfoush, I. Rhee, "Binary increase congestion control for fast long-distance networks", INFOCOM 2004, §III.
//! Between the window before the last loss and the one after it the window goes half of the way in each round trip, by `LARGEST`
//! packets at most and `SMALLEST` at least; beyond it probes as slow start does, up to the same step. Below `LOW` packets it is Reno.
//!
//! ```text
//!          loss                     at the old window         step > LARGEST
//! any ─────────────▶ Between ──────────────────────▶ Probing ───────────────▶ Beyond
//! ```
//!
//! Here to compare with: CUBIC came out of it.

use farhop_units::Bytes;

use crate::window::Window;
use crate::{Ack, Controller, Loss};

/// The steps S_max and S_min, in packets a round trip.
const LARGEST: f64 = 32.0;
const SMALLEST: f64 = 0.01;
/// β: what a loss takes of the window.
const BETA: f64 = 0.125;
/// `low_window`, in packets.
const LOW: f64 = 14.0;
/// As NewReno's, below that.
const REDUCTION: f64 = 0.5;

/// How the window grows in congestion avoidance; all in packets.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Growth {
    /// Binary search towards the window before the last loss.
    Between { most: f64 },
    /// That was too little: by `step` in a round trip, twice it from `until` on.
    Probing { step: f64, until: f64 },
    /// By the largest step.
    Beyond,
}

/// See the module's text.
#[derive(Debug, Clone)]
pub struct Bic {
    window: Window,
    growth: Growth,
}

impl Bic {
    /// A controller for a path that carries packets of `mtu` bytes of UDP payload.
    pub fn new(mtu: Bytes) -> Self {
        Bic { window: Window::new(mtu), growth: Growth::Beyond }
    }

    fn packets(&self) -> f64 {
        self.window.bytes / self.window.mtu
    }

    /// Packets that the window grows by in a round trip.
    fn step(&self) -> f64 {
        match self.growth {
            Growth::Between { most } => ((most - self.packets()) / 2.0).clamp(SMALLEST, LARGEST),
            Growth::Probing { step, .. } => step,
            Growth::Beyond => LARGEST,
        }
    }

    fn avoid(&mut self, ack: &Ack) {
        if self.packets() < LOW {
            return self.window.grow_as_reno(ack);
        }
        self.window.bytes += self.step() * self.window.mtu * ack.bytes.0 as f64 / self.window.bytes;
        let packets = self.packets();
        self.growth = match self.growth {
            Growth::Between { most } if packets >= most => {
                Growth::Probing { step: 1.0, until: packets + 1.0 }
            }
            Growth::Probing { step, until } if packets >= until => {
                let step = 2.0 * step;
                if step < LARGEST { Growth::Probing { step, until: packets + step } } else { Growth::Beyond }
            }
            growth => growth,
        };
    }
}

impl Controller for Bic {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.window.may_grow(ack) {
            return;
        }
        if self.window.in_slow_start() {
            self.window.grow_as_reno(ack);
        } else {
            self.avoid(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.window.begins_recovery(loss) {
            let packets = self.packets();
            if packets < LOW {
                self.growth = Growth::Beyond;
                self.window.reduce(self.window.bytes * REDUCTION);
            } else {
                let after = packets * (1.0 - BETA);
                // Fast convergence: who did not come back to its old window leaves room for others.
                let is_lower = matches!(self.growth, Growth::Between { most } if packets < most);
                self.growth =
                    Growth::Between { most: if is_lower { (packets + after) / 2.0 } else { packets } };
                self.window.reduce(after * self.window.mtu);
            }
        }
        if loss.persistent {
            self.window.collapse();
            self.growth = Growth::Beyond;
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        // What is counted in packets stays as many bytes.
        let old = self.window.mtu;
        self.window.set_mtu(mtu);
        let scale = old / self.window.mtu;
        self.growth = match self.growth {
            Growth::Between { most } => Growth::Between { most: most * scale },
            Growth::Probing { step, until } => Growth::Probing { step, until: until * scale },
            Growth::Beyond => Growth::Beyond,
        };
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.window.steer(window, threshold);
        self.growth = Growth::Beyond;
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
    use crate::testing::{loss_at, packets_after_rounds};

    /// One that has just lost at `packets`; rounds go on from the second.
    fn lost_at(packets: u64) -> Bic {
        let mut bic = Bic::new(Bytes(1200));
        bic.steer(Bytes(packets * 1200), Some(Bytes(0)));
        bic.on_loss(&loss_at(600, 300));
        bic
    }

    #[test]
    fn after_a_loss_it_goes_half_of_the_way_by_32_packets_at_most_and_beyond_ever_faster() {
        let mut bic = lost_at(640);
        assert_eq!(bic.window(), Bytes(560 * 1200));
        let windows = packets_after_rounds(&mut bic, 2, 30);
        // Each acknowledgement is a step of its own, so that a round trip goes a little less far than half of the way.
        assert!(windows[0].abs_diff(590) <= 2, "by the largest step: {windows:?}");
        let back = windows.iter().position(|window| *window >= 640).unwrap();
        assert!((6..=24).contains(&back), "{windows:?}");
        assert!(windows[back - 1] - windows[back - 2] <= 2, "slowest where the loss was: {windows:?}");
        let steps: Vec<u64> = windows[back..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.is_sorted_by(|a, b| *a <= *b + 1), "{windows:?}");
        assert!(steps.last().unwrap().abs_diff(32) <= 1, "{windows:?}");
    }

    #[test]
    fn a_second_loss_below_the_old_window_leaves_room_for_others() {
        let mut bic = lost_at(640);
        let before = packets_after_rounds(&mut bic, 2, 2)[1] as f64;
        bic.on_loss(&loss_at(2400, 2390));
        let Growth::Between { most } = bic.growth else { panic!("{:?}", bic.growth) };
        assert!((most - before * (1.0 - BETA / 2.0)).abs() < 2.0, "{before}, {most}");
    }

    #[test]
    fn small_windows_are_renos() {
        let mut bic = lost_at(12);
        assert_eq!(bic.window(), Bytes(6 * 1200));
        assert_eq!(packets_after_rounds(&mut bic, 2, 4), [6, 7, 8, 9]);
    }

    #[test]
    fn persistent_congestion_leaves_two_packets_and_slow_start() {
        let mut bic = lost_at(640);
        bic.on_loss(&Loss { persistent: true, ..loss_at(9000, 8000) });
        assert_eq!(bic.window(), Bytes(2_400));
        assert!(bic.is_searching());
    }
}
