//! One direction as its sender has it: numbers what goes out, and decides when a repair follows.

use std::collections::VecDeque;
use std::time::Duration;

use crate::encoder::Encoder;
use crate::ends::{Ended, Ends};
use crate::estimate::Estimate;
use crate::queue::Queue;
use crate::symbol::LENGTH;
use crate::wire::{self, HEADER, ROOM, Repair, Report, Source};

/// Bytes of repair that may be saved up, for the ends of bursts.
const SAVINGS: f64 = 24e3;
/// Repairs that may be sent before the share has called for them, for what is urgent and for the rest. They are made up for
/// afterwards, so that in all as much is repaired as without haste.
const AHEAD_URGENT: f64 = 2.0;
const AHEAD: f64 = 1.0;
/// Repairs whose places are remembered.
const REMEMBERED: usize = 16;
/// A burst may pause for so long at the least before it counts as over.
const SHORTEST_QUIET: Duration = Duration::from_millis(1);

/// Counters of one direction at its sender.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Sent {
    /// QUIC packets sent in this layer.
    pub sources: u64,
    /// Bytes in them.
    pub source_bytes: u64,
    /// Repairs sent.
    pub repairs: u64,
    /// Bytes of these.
    pub repair_bytes: u64,
    /// Packets lost, as the other end reports.
    pub lost: u64,
    /// Those of them that were brought back.
    pub recovered: u64,
    /// Share of packets that the path is believed to lose.
    pub loss: f64,
    /// Bytes of repair for each byte sent, at present.
    pub share: f64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sender {
    next: u32,
    encoder: Encoder,
    estimate: Estimate,
    queue: Queue,
    /// Most bytes of repair for each byte sent.
    most: f64,
    share: f64,
    loud: bool,
    rtt: Duration,
    /// Bytes of repair that the share has called for and that are not sent.
    owed: f64,
    /// Bytes of repair that may be sent.
    savings: f64,
    /// Numbers of the packets next to be sent when the last repairs were, newest first.
    repaired: VecDeque<u32>,
    /// The longest packet that the path is tried with.
    longest: usize,
    last: Duration,
    /// The longest of the last pauses between the batches of a burst.
    gap: Duration,
    /// When the burst counts as over.
    tail: Option<Duration>,
    /// Repairs that its end still wants.
    tail_repairs: usize,
    ends: Ends,
    counters: Sent,
    reported: Report,
}

impl Sender {
    /// A sender whose first packet is number `first`, with at most `most` bytes of repair for each byte sent. What is brought
    /// back by `loud` repairs counts as a sign of congestion.
    pub(crate) fn new(first: u32, most: f64, loud: bool, rtt: Duration) -> Self {
        Sender {
            next: first,
            encoder: Encoder::new(first),
            estimate: Estimate::new(first.wrapping_sub(1)),
            queue: Queue::new(rtt),
            most,
            share: 0.0,
            loud,
            rtt,
            owed: 0.0,
            savings: SAVINGS / 2.0,
            repaired: VecDeque::new(),
            longest: 0,
            last: Duration::ZERO,
            gap: Duration::ZERO,
            tail: None,
            tail_repairs: 0,
            ends: Ends::default(),
            counters: Sent::default(),
            reported: Report::default(),
        }
    }

    /// Appends `packets`, one every `stride` bytes and the last possibly shorter, as sources to `out`; gives the
    /// stride of these. Nothing counts as sent before [`Sender::sent`] is told.
    pub(crate) fn frame(&self, packets: &[u8], stride: usize, out: &mut Vec<u8>) -> usize {
        let roomy = stride > self.longest;
        let numbers = (0..).map(|index| self.next.wrapping_add(index));
        for (packet, sequence) in packets.chunks(stride).zip(numbers) {
            wire::encode_source(out, &Source { sequence, kept: self.share > 0.0, packet }, roomy);
        }
        stride + if roomy { ROOM } else { HEADER }
    }

    /// The next `bytes` of streams in packets not yet sent are all that there is of something for now. It is repaired as soon
    /// as it is out, if the share allows that; an `urgent` one rather than others.
    pub(crate) fn expect(&mut self, bytes: usize, urgent: bool) {
        if self.share > 0.0 {
            self.ends.expect(self.next, bytes, urgent);
        }
    }

    /// The packets of the last [`Sender::frame`] are on their way.
    pub(crate) fn sent(&mut self, now: Duration, packets: &[u8], stride: usize) {
        self.longest = self.longest.max(stride);
        self.queue.sent(now, self.next);
        for packet in packets.chunks(stride) {
            if self.share > 0.0 {
                self.encoder.push(now, self.next, packet);
            }
            self.ends.sent(self.next, packet.len());
            self.next = self.next.wrapping_add(1);
            let bytes = (packet.len() + HEADER) as f64;
            self.owed += self.share * bytes;
            self.savings = (self.savings + self.most * bytes).min(SAVINGS);
            self.counters.sources += 1;
            self.counters.source_bytes += packet.len() as u64;
        }
        let pause = now.saturating_sub(self.last);
        if pause < self.rtt / 8 {
            self.gap = pause.max(self.gap * 15 / 16);
        }
        self.last = now;
        if self.share > 0.0 {
            let quiet = (self.gap * 3 / 2).clamp(self.rtt / 64, self.rtt / 8).max(SHORTEST_QUIET);
            self.tail = Some(now + quiet);
        }
    }

    /// Takes in what the other end has seen.
    pub(crate) fn handle_report(&mut self, now: Duration, report: &Report) {
        let sent = self.next.wrapping_sub(1);
        if !self.estimate.is_news(report, sent) {
            return;
        }
        if self.queue.stands(now, report.newest) {
            self.estimate.pass_over(report);
        } else {
            self.estimate.update(report, sent);
        }
        let new = |new: u32, old: u32| u64::from(new.wrapping_sub(old));
        self.counters.lost += new(report.lost, self.reported.lost);
        self.counters.recovered += new(report.recovered, self.reported.recovered);
        self.reported = *report;
        self.follow();
    }

    /// Takes in what is lost of what comes from the other end: as long as little is known of this direction, it counts here
    /// too.
    pub(crate) fn suppose(&mut self, loss: f64) {
        self.estimate.suppose(loss);
        self.follow();
    }

    /// Takes in what an earlier connection saw this direction lose, before anything is sent.
    pub(crate) fn remember(&mut self, loss: f64) {
        self.estimate.remember(loss);
        self.follow();
    }

    /// Takes in the round trip of the empty path.
    pub(crate) fn fit(&mut self, rtt: Duration) {
        self.queue.fit(rtt);
    }

    fn follow(&mut self) {
        self.share = self.estimate.share(self.most);
        if self.share == 0.0 {
            self.encoder.forget(Duration::MAX);
            (self.owed, self.tail, self.tail_repairs) = (0.0, None, 0);
            self.ends.clear();
        }
    }

    /// Repairs that the last packets of the window want should nothing more be sent: for each of the last stretches between
    /// repairs, what it wants without what has covered it.
    fn wanting(&self, packets: usize) -> usize {
        let window = self.encoder.len().min(packets);
        let since = |place: &u32| (self.next.wrapping_sub(*place) as usize).min(window);
        let stretches = self.repaired.iter().map(since).chain([window]);
        let wants = stretches
            .enumerate()
            .map(|(covered, packets)| self.estimate.tail(packets).saturating_sub(covered));
        wants.max().unwrap_or(0)
    }

    /// Whether a repair of this size goes out before its time, for what has just ended. What may not go now does not go later.
    fn hastens(&mut self, size: f64) -> bool {
        let Some(Ended { first, urgent }) = self.ends.ended() else { return false };
        let ahead = if urgent { AHEAD_URGENT } else { AHEAD };
        let packets = self.next.wrapping_sub(first) as usize;
        let hastens = self.owed - size >= -ahead * size && self.wanting(packets) > 0;
        if !hastens {
            self.ends.settle();
        }
        hastens
    }

    /// The next repair to be sent, if one is due.
    pub(crate) fn poll_repair(&mut self, now: Duration) -> Option<Repair<'_>> {
        self.encoder.forget(now.saturating_sub(self.rtt.max(4 * SHORTEST_QUIET)));
        if self.encoder.is_empty() {
            (self.owed, self.tail_repairs) = (0.0, 0);
            self.ends.settle();
            return None;
        }
        if self.tail.take_if(|tail| *tail <= now).is_some() {
            self.tail_repairs = self.wanting(usize::MAX);
            // What has not come by now was given up, or waits for a window.
            self.ends.clear();
        }
        let size = (ROOM - LENGTH + self.encoder.sum_len()) as f64;
        let hastens = self.tail_repairs == 0 && self.hastens(size);
        if self.owed < size && self.tail_repairs == 0 && !hastens {
            return None;
        }
        if self.savings < size {
            // What cannot be paid for is not saved up either.
            (self.owed, self.tail_repairs) = (self.owed.min(size), 0);
            self.ends.settle();
            return None;
        }
        self.savings -= size;
        // What haste took in advance is made up for; of what the ends of bursts want beyond the share, one repair is.
        let least = if hastens { f64::MIN } else { self.owed.min(-size) };
        self.owed = (self.owed - size).max(least);
        self.tail_repairs = self.tail_repairs.saturating_sub(1);
        self.repaired.push_front(self.next);
        self.repaired.truncate(REMEMBERED);
        self.counters.repairs += 1;
        self.counters.repair_bytes += size as u64;
        self.encoder.repair(self.loud)
    }

    /// When [`Sender::poll_repair`] has to be called though nothing is sent.
    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        let stale =
            self.encoder.oldest().map(|sent| sent + self.rtt.max(4 * SHORTEST_QUIET) + SHORTEST_QUIET);
        [self.tail, stale].into_iter().flatten().min()
    }

    /// Bytes of repair for each byte sent, at present.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// Share of packets that this direction is believed to lose.
    pub(crate) fn loss(&self) -> f64 {
        self.estimate.loss()
    }

    /// Counters and estimates.
    pub(crate) fn counters(&self) -> Sent {
        Sent { loss: self.estimate.loss(), share: self.share, ..self.counters }
    }
}
