//! The congestion window as RFC 9002 keeps it: slow start up to a threshold, one reduction for each
//! flight, two packets after persistent congestion. How it grows beyond slow start, and by how much it
//! shrinks, is for the controllers that hold one.

use std::time::Duration;

use farhop_units::Bytes;

use crate::{Ack, Loss};

/// RFC 9002 §7.2 asks for two packets at least.
pub(crate) const MINIMUM_PACKETS: u64 = 2;
/// RFC 9002 §7.2: ten packets, within 14,720 bytes unless two packets are more.
const INITIAL_PACKETS: u64 = 10;
const INITIAL_BYTES: u64 = 14_720;

/// The window with which RFC 9002 §7.2 starts on a path that carries packets of `mtu` bytes.
pub(crate) fn initial(mtu: Bytes) -> Bytes {
    Bytes((INITIAL_PACKETS * mtu.0).min(INITIAL_BYTES.max(MINIMUM_PACKETS * mtu.0)))
}

/// See the module's text.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// Bytes that may be in flight.
    pub(crate) bytes: f64,
    /// Below this it grows as in slow start.
    pub(crate) threshold: f64,
    /// Bytes of a full packet.
    pub(crate) mtu: f64,
    /// No second reduction for packets sent before the last one (RFC 9002 §7.3.2).
    recovery_start: Option<Duration>,
}

impl Window {
    pub(crate) fn new(mtu: Bytes) -> Self {
        let mtu = Bytes(mtu.0.max(1));
        Window {
            bytes: initial(mtu).0 as f64,
            threshold: f64::INFINITY,
            mtu: mtu.0 as f64,
            recovery_start: None,
        }
    }

    pub(crate) fn minimum(&self) -> f64 {
        MINIMUM_PACKETS as f64 * self.mtu
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.bytes < self.threshold
    }

    /// Whether this acknowledgement may raise the window: not for packets of a flight that was reduced
    /// for, nor when the window was not used (RFC 9002 §7.3.2 and §7.8).
    pub(crate) fn may_grow(&self, ack: &Ack) -> bool {
        !ack.app_limited && self.recovery_start.is_none_or(|start| ack.sent > start)
    }

    /// RFC 9002 §7.3.1 and §7.3.3: what was acknowledged in slow start, a packet for each window in avoidance.
    pub(crate) fn grow_as_reno(&mut self, ack: &Ack) {
        let acked = ack.bytes.0 as f64;
        self.bytes += if self.in_slow_start() { acked } else { self.mtu * acked / self.bytes };
    }

    /// Whether `loss` asks for a reduction of its own; then those of the same flight do not.
    pub(crate) fn begins_recovery(&mut self, loss: &Loss) -> bool {
        let begins = self.recovery_start.is_none_or(|start| loss.sent > start);
        if begins {
            self.recovery_start = Some(loss.now);
        }
        begins
    }

    /// Shrinks to `bytes`, and grows slowly from there.
    pub(crate) fn reduce(&mut self, bytes: f64) {
        self.bytes = bytes.max(self.minimum());
        self.threshold = self.bytes;
    }

    /// Persistent congestion (RFC 9002 §7.6.2).
    pub(crate) fn collapse(&mut self) {
        self.bytes = self.minimum();
        self.recovery_start = None;
    }

    pub(crate) fn steer(&mut self, window: Bytes, threshold: Option<Bytes>) {
        self.bytes = (window.0 as f64).max(self.minimum());
        self.threshold = threshold.map_or(f64::INFINITY, |threshold| threshold.0 as f64);
    }

    pub(crate) fn set_mtu(&mut self, mtu: Bytes) {
        self.mtu = mtu.0.max(1) as f64;
        self.bytes = self.bytes.max(self.minimum());
    }

    pub(crate) fn get(&self) -> Bytes {
        Bytes(self.bytes as u64)
    }

    pub(crate) fn initial(&self) -> Bytes {
        initial(Bytes(self.mtu as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_window_is_ten_packets_or_about_fifteen_kilobytes() {
        assert_eq!([1200, 1452, 9000].map(|mtu| initial(Bytes(mtu)).0), [12_000, 14_520, 18_000]);
    }
}
