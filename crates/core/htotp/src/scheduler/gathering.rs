//! Speech that waits a moment for other speech: what leaves together shares a packet, and most of what a packet of speech takes is
//! what stands around it.

use std::time::Duration;

use farhop_units::{BitRate, Bytes};

use super::pace::SMALLEST_GRANT;

/// The longest wait: a fifth of the time from one packet of a call to the next, as most calls have it.
const LONGEST: Duration = Duration::from_millis(4);
/// Where a large packet takes less on the link, nothing waits: there is room, and timers count milliseconds.
const SHORTEST: Duration = Duration::from_millis(1);
/// So many have to speak: then more than every other one meets another while it waits.
const FEW: usize = 4;
/// Those who have spoken within so long speak.
const SPEAKS: Duration = Duration::from_millis(100);
/// What stands around a datagram that goes alone: the headers of IPv4 and UDP, QUIC's with its tag, and the frame's …
pub(super) const AROUND: usize = 28 + 30 + FRAME;
/// … which is all that is around one that shares a packet.
const FRAME: usize = 3;
/// What a packet of QUIC's holds on any path (RFC 9000 §14), headers and all.
const PACKET: usize = 1_200;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Flows that wait, in the order of their coming.
    waiting: Vec<u64>,
    /// For so long.
    until: Duration,
    /// Who has spoken since then, as far as that matters, and whether enough had in the time before.
    spoke: Vec<u64>,
    since: Duration,
    were_enough: bool,
    /// When the last packet of speech began, and what is in it.
    packet: Option<(Duration, usize)>,
}

impl Gathering {
    /// A flow of speech has something to send again; whether it waits for others, on a link of about this rate.
    pub(super) fn waits(&mut self, now: Duration, flow: u64, rate: Option<BitRate>) -> bool {
        if now >= self.since + SPEAKS {
            self.were_enough = self.spoke.len() >= FEW && now < self.since + 2 * SPEAKS;
            self.since = now;
            self.spoke.clear();
        }
        if self.spoke.len() < FEW && !self.spoke.contains(&flow) {
            self.spoke.push(flow);
        }
        let packet = rate.map_or(Duration::ZERO, |rate| rate.time_for(Bytes(SMALLEST_GRANT as u64)));
        let are_enough = self.were_enough || self.spoke.len() >= FEW;
        if packet < SHORTEST || !are_enough {
            return false;
        }
        if self.waiting.is_empty() {
            self.until = now + packet.min(LONGEST);
        }
        self.waiting.push(flow);
        true
    }

    /// Those who have waited long enough: all, once the first has.
    pub(super) fn end(&mut self, now: Duration) -> Vec<u64> {
        if now < self.until { Vec::new() } else { std::mem::take(&mut self.waiting) }
    }

    /// It waits no more.
    pub(super) fn forget(&mut self, flow: u64) {
        self.waiting.retain(|waiting| *waiting != flow);
    }

    /// When those who wait have waited long enough.
    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        (!self.waiting.is_empty()).then_some(self.until)
    }

    /// What stands around a datagram of speech of this length that is sent now: less where it shares a packet with those before it.
    pub(super) fn around(&mut self, now: Duration, length: usize) -> usize {
        let before = self.packet.filter(|(at, held)| *at == now && held + length + FRAME <= PACKET);
        let (around, held) = before.map_or((AROUND, 0), |(_, held)| (FRAME, held));
        self.packet = Some((now, held + length + around));
        around
    }
}
