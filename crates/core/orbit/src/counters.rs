//! What one direction of the link counts. Sizes are those of the packets as handed in (IP packets in the
//! emulator), without any framing of the satellite link.

use farhop_units::Bytes;

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many packets.
    pub packets: u64,
    /// How many bytes in them.
    pub bytes: Bytes,
}

impl Tally {
    pub(crate) fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size;
    }
}

/// Counters of one direction since the last reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Accepted onto the link: they took capacity, whether they arrived or not.
    pub sent: Tally,
    /// Handed out at the far end.
    pub delivered: Tally,
    /// Refused because the queue was full.
    pub queue_drops: Tally,
    /// Refused because they exceeded what the service plan lets through.
    pub policer_drops: Tally,
    /// Delivered with a mark of a queue that was too long.
    pub marked: u64,
    /// Lost at random, on the satellite or on the ground.
    pub loss_drops: Tally,
    /// Lost to an outage: offered during it, or under way to arrive during it.
    pub cut_drops: Tally,
    /// Capacity given to our terminals where it is given on demand, used or not.
    pub given: Bytes,
    /// The largest backlog, the packet being sent included.
    pub queue_peak: Bytes,
}

impl Counters {
    /// Packets dropped for whatever reason.
    pub fn drops(&self) -> u64 {
        self.queue_drops.packets
            + self.policer_drops.packets
            + self.loss_drops.packets
            + self.cut_drops.packets
    }
}
