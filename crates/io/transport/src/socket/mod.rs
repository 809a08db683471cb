//! What QUIC sends and receives through: a UDP socket of the system, or an emulated link inside the
//! process. Both count what passes. Neither may look into the datagrams. Over either may lie a layer that
//! repairs what gets lost.

pub mod fec;
mod inbox;
pub mod link;
pub mod udp;

use std::sync::atomic::{AtomicU64, Ordering};

use farhop_units::Bytes;

/// Datagrams and the bytes of their UDP payload that one socket has passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes in them.
    pub sent: Bytes,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Bytes in them.
    pub received: Bytes,
}

/// Counts without a lock; readers may see a datagram before its bytes.
#[derive(Debug, Default)]
struct Meter {
    sent_datagrams: AtomicU64,
    sent: AtomicU64,
    received_datagrams: AtomicU64,
    received: AtomicU64,
}

impl Meter {
    /// Counts a buffer of datagrams of `stride` bytes, the last possibly shorter.
    fn count_sent(&self, len: usize, stride: usize) {
        self.sent_datagrams.fetch_add(datagrams(len, stride), Ordering::Relaxed);
        self.sent.fetch_add(len as u64, Ordering::Relaxed);
    }

    fn count_received(&self, len: usize, stride: usize) {
        self.received_datagrams.fetch_add(datagrams(len, stride), Ordering::Relaxed);
        self.received.fetch_add(len as u64, Ordering::Relaxed);
    }

    fn traffic(&self) -> Traffic {
        Traffic {
            sent_datagrams: self.sent_datagrams.load(Ordering::Relaxed),
            sent: Bytes(self.sent.load(Ordering::Relaxed)),
            received_datagrams: self.received_datagrams.load(Ordering::Relaxed),
            received: Bytes(self.received.load(Ordering::Relaxed)),
        }
    }
}

fn datagrams(len: usize, stride: usize) -> u64 {
    len.max(1).div_ceil(stride.max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_of_segments_counts_as_many_datagrams() {
        assert_eq!([datagrams(0, 0), datagrams(10, 10), datagrams(11, 10), datagrams(30, 10)], [1, 1, 2, 3]);
    }
}
