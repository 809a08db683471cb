//! What goes out beside QUIC's own bytes on one connection, so that a controller that keeps to a rate leaves room
//! for it. The repair layer sets it, the controller's adapter reads it; neither knows the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use farhop_units::BitRate;

/// Parts of a byte in which it is counted.
const PARTS: f64 = 10_000.0;

/// Bytes beside each of QUIC's, 0 to 1. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surcharge(Arc<AtomicU32>);

impl Surcharge {
    /// From now on it is `share` bytes for each of QUIC's.
    pub(crate) fn set(&self, share: f64) {
        self.0.store((share * PARTS) as u32, Ordering::Relaxed);
    }

    /// What is left to QUIC of `rate`.
    pub(crate) fn relieve(&self, rate: BitRate) -> BitRate {
        match self.0.load(Ordering::Relaxed) {
            0 => rate,
            parts => BitRate((rate.0 as f64 / (1.0 + f64::from(parts) / PARTS)) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_and_packets_together_keep_to_the_rate() {
        let surcharge = Surcharge::default();
        assert_eq!(surcharge.relieve(BitRate::mbit(8)), BitRate::mbit(8));
        surcharge.clone().set(0.25);
        assert_eq!(surcharge.relieve(BitRate::mbit(8)), BitRate(6_400_000));
        surcharge.set(0.0);
        assert_eq!(surcharge.relieve(BitRate::mbit(8)), BitRate::mbit(8));
    }
}
