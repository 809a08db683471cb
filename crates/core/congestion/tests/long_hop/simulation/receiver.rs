//! The end that acknowledges: every tenth packet at once, the rest within 25 ms, a gap and the handshake
//! without delay.

use std::collections::BTreeMap;
use std::time::Duration;

use super::sender::Sender;

/// As the carrier asks its peer to (`io/transport`).
const ACK_EVERY: usize = 10;
const ACK_DELAY: Duration = Duration::from_millis(25);
/// Packets of the handshake, RFC 9000 §13.2.1.
const HANDSHAKE: u64 = 3;

#[derive(Default)]
pub(super) struct Receiver {
    /// When each packet came.
    arrived: BTreeMap<u64, Duration>,
    pending: Vec<u64>,
    next_expected: u64,
    due: Option<Duration>,
}

impl Receiver {
    pub(super) fn handle_packet(&mut self, now: Duration, number: u64) {
        self.arrived.insert(number, now);
        self.pending.push(number);
        let in_order = number == self.next_expected && number >= HANDSHAKE;
        self.next_expected = self.next_expected.max(number + 1);
        let due = if in_order && self.pending.len() < ACK_EVERY { now + ACK_DELAY } else { now };
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    pub(super) fn next_event(&self) -> Option<Duration> {
        self.due
    }

    pub(super) fn poll_ack(&mut self, now: Duration) -> Option<Vec<u64>> {
        self.due.take_if(|due| *due <= now).map(|_| std::mem::take(&mut self.pending))
    }

    /// Packets that came, and those that are missing among them.
    pub(super) fn counts(&self) -> (u64, u64) {
        let packets = self.arrived.len() as u64;
        (packets, self.next_expected - packets)
    }

    /// When the last piece of an object came; `None` while some are missing.
    pub(super) fn completed(&self, sender: &Sender, object: usize) -> Option<Duration> {
        let mut pieces: Vec<Option<Duration>> = vec![None; sender.objects[object].pieces() as usize];
        for (number, piece) in sender.carried(object) {
            let place = &mut pieces[piece as usize];
            let arrived = self.arrived.get(&number).copied();
            *place = place.iter().copied().chain(arrived).min();
        }
        pieces.into_iter().try_fold(Duration::ZERO, |last, arrived| Some(last.max(arrived?)))
    }
}
