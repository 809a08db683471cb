//! NewReno as QUIC describes it (RFC 9002 §7.3 and appendix B): the yardstick. Over 600 ms it needs
//! hundreds of round trips to come back from a loss, so it is here to compare with.

use farhop_units::Bytes;

use crate::window::Window;
use crate::{Ack, Controller, Loss};

/// RFC 9002 §7.3.2.
const REDUCTION: f64 = 0.5;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct NewReno(Window);

impl NewReno {
    /// A controller for a path that carries packets of `mtu` bytes of UDP payload.
    pub fn new(mtu: Bytes) -> Self {
        NewReno(Window::new(mtu))
    }
}

impl Controller for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        if self.0.may_grow(ack) {
            self.0.grow_as_reno(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if self.0.begins_recovery(loss) {
            self.0.reduce(self.0.bytes * REDUCTION);
        }
        if loss.persistent {
            self.0.collapse();
        }
    }

    fn on_mtu(&mut self, mtu: Bytes) {
        self.0.set_mtu(mtu);
    }

    fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.0.steer(window, threshold);
    }

    fn window(&self) -> Bytes {
        self.0.get()
    }

    fn initial_window(&self) -> Bytes {
        self.0.initial()
    }

    fn is_searching(&self) -> bool {
        self.0.in_slow_start()
    }

    fn boxed(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ack_at, loss_at};

    #[test]
    fn slow_start_doubles_and_avoidance_adds_a_packet_in_each_round_trip() {
        let mut reno = NewReno::new(Bytes(1200));
        for packet in 0..10 {
            reno.on_ack(&ack_at(600 + packet));
        }
        assert_eq!(reno.window(), Bytes(24_000));
        reno.on_loss(&loss_at(1300, 1000));
        assert_eq!(reno.window(), Bytes(12_000));
        for packet in 0..10 {
            reno.on_ack(&ack_at(2000 + packet));
        }
        let grown = reno.window().0;
        assert!((13_100..=13_200).contains(&grown), "{grown}");
    }

    #[test]
    fn one_flight_reduces_once_and_its_acknowledgements_do_not_grow() {
        let mut reno = NewReno::new(Bytes(1200));
        reno.on_loss(&loss_at(1300, 1000));
        reno.on_loss(&loss_at(1310, 1290));
        reno.on_ack(&ack_at(1800)); // sent at 1200
        assert_eq!(reno.window(), Bytes(6_000));
        reno.on_loss(&loss_at(2000, 1400));
        assert_eq!(reno.window(), Bytes(3_000));
    }

    #[test]
    fn persistent_congestion_leaves_two_packets_and_slow_start() {
        let mut reno = NewReno::new(Bytes(1200));
        reno.on_loss(&Loss { persistent: true, ..loss_at(9000, 8000) });
        assert_eq!(reno.window(), Bytes(2_400));
        reno.on_ack(&ack_at(9700));
        assert_eq!(reno.window(), Bytes(3_600));
    }
}
