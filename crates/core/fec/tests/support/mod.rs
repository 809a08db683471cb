//! A path for these tests: delay, losses alone or in bursts, and two layers across it in virtual time.
#![allow(dead_code)] // each test uses its part

use std::collections::BTreeMap;
use std::time::Duration;

use farhop_fec::{Layer, Outcome, Secret, Terms};
use farhop_orbit::Rng;

/// Gilbert's channel: in its bad state every packet is lost.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    enter: f64,
    leave: f64,
    is_bad: bool,
    rng: Rng,
}

impl Channel {
    /// Loses a share `loss` of packets, in runs of `burst` on average; 1 for losses that know nothing of each other.
    pub(crate) fn new(loss: f64, burst: f64, seed: u64) -> Self {
        // Independent losses have runs of 1 ÷ (1 − loss).
        let leave = if burst <= 1.0 { 1.0 - loss } else { 1.0 / burst };
        let enter = leave * loss / (1.0 - loss);
        Channel { enter, leave, is_bad: false, rng: Rng::new(seed) }
    }

    pub(crate) fn loses(&mut self) -> bool {
        let turn = if self.is_bad { self.leave } else { self.enter };
        if self.rng.chance(turn) {
            self.is_bad = !self.is_bad;
        }
        self.is_bad
    }
}

/// A QUIC packet of an established connection, as far as this layer can tell, with its number inside.
pub(crate) fn packet(number: u32, len: usize) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..len).map(|at| (at as u32 * 7 + number * 31) as u8).collect();
    packet[0] = 0x40 | (number as u8 & 0x3f);
    packet[1..5].copy_from_slice(&number.to_be_bytes());
    packet
}

pub(crate) fn number_of(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[1..5].try_into().expect("four bytes"))
}

pub(crate) const DELAY: Duration = Duration::from_millis(325);
const TERMS: Terms = Terms { most: 0.25, loud: false };

/// A link with a queue that drops what finds no room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bottleneck {
    /// Bytes per second.
    pub(crate) rate: f64,
    /// Bytes that may wait.
    pub(crate) limit: f64,
    /// When it has sent all that it has.
    pub(crate) free: Duration,
}

impl Bottleneck {
    /// How long so many bytes take to wait and to go; `None` if they are dropped.
    fn pass(&mut self, now: Duration, bytes: usize) -> Option<Duration> {
        let waits = self.free.saturating_sub(now).as_secs_f64();
        if waits * self.rate + bytes as f64 > self.limit {
            return None;
        }
        self.free = self.free.max(now) + Duration::from_secs_f64(bytes as f64 / self.rate);
        Some(self.free - now)
    }
}

/// Two ends; packets go from `near` to `far`.
pub(crate) struct Pair {
    pub(crate) near: Layer,
    pub(crate) far: Layer,
    pub(crate) now: Duration,
    /// By due time and order: whether it goes to `far`, and what.
    air: BTreeMap<(Duration, u64), (bool, Vec<u8>)>,
    order: u64,
    channels: [Channel; 2],
    /// Number and time of what `far` has handed to QUIC, whether it was brought back.
    pub(crate) arrived: Vec<(u32, Duration, bool)>,
    /// When each packet was sent.
    pub(crate) sent: BTreeMap<u32, (Duration, Vec<u8>)>,
    next: u32,
    /// Changes datagrams on their way.
    pub(crate) meddle: Option<fn(&mut Vec<u8>, &mut Rng)>,
    /// Holds one in so many datagrams back by so long.
    pub(crate) reorder: Option<(f64, Duration)>,
    /// What datagrams to `far` go through.
    pub(crate) bottleneck: Option<Bottleneck>,
    rng: Rng,
}

impl Pair {
    /// Two ends that have greeted each other, over a path that loses so much both ways.
    pub(crate) fn new(loss: f64, burst: f64, seed: u64) -> Self {
        let (one, two) = ([1; 8], [2; 8]);
        let secret =
            |own, theirs, first_sent, first_received| Secret { own, theirs, first_sent, first_received };
        // The wrap of both sequences falls into every test.
        let (first, back) = (u32::MAX - 700, u32::MAX - 10);
        let rtt = 2 * DELAY;
        let near = Layer::new(Duration::ZERO, &secret(one, two, first, back), TERMS, rtt);
        let far = Layer::new(Duration::ZERO, &secret(two, one, back, first), TERMS, rtt);
        let lossless = [Channel::new(0.0, 1.0, 0), Channel::new(0.0, 1.0, 0)];
        let mut pair = Pair {
            near,
            far,
            now: Duration::ZERO,
            air: BTreeMap::new(),
            order: 0,
            channels: lossless,
            arrived: Vec::new(),
            sent: BTreeMap::new(),
            next: 0,
            meddle: None,
            reorder: None,
            bottleneck: None,
            rng: Rng::new(!seed),
        };
        pair.run_until(Duration::from_secs(2));
        pair.channels = [Channel::new(loss, burst, seed), Channel::new(loss, burst, seed + 1)];
        pair
    }

    pub(crate) fn set_loss(&mut self, loss: f64, burst: f64, seed: u64) {
        self.channels = [Channel::new(loss, burst, seed), Channel::new(loss, burst, seed + 1)];
    }

    fn launch(&mut self, to_far: bool, mut datagram: Vec<u8>) {
        if self.channels[usize::from(!to_far)].loses() {
            return;
        }
        if let Some(meddle) = self.meddle {
            meddle(&mut datagram, &mut self.rng);
        }
        let late =
            self.reorder.filter(|(share, _)| self.rng.chance(*share)).map_or(Duration::ZERO, |(_, by)| by);
        let now = self.now;
        let passes = match &mut self.bottleneck {
            Some(bottleneck) if to_far => bottleneck.pass(now, datagram.len()),
            _ => Some(Duration::ZERO),
        };
        let Some(waits) = passes else { return };
        self.order += 1;
        self.air.insert((now + waits + DELAY + late, self.order), (to_far, datagram));
    }

    /// Sends a batch of `count` packets of `len` bytes, the last of `last` bytes.
    pub(crate) fn send(&mut self, count: usize, len: usize, last: usize) {
        let packets: Vec<Vec<u8>> = (0..count)
            .map(|index| packet(self.next + index as u32, if index + 1 == count { last } else { len }))
            .collect();
        self.next += count as u32;
        for packet in &packets {
            self.sent.insert(number_of(packet), (self.now, packet.clone()));
        }
        let (batch, stride) = (packets.concat(), if count == 1 { last } else { len });
        let mut framed = Vec::new();
        match self.near.frame(&batch, stride, &mut framed) {
            Some(stride_framed) => {
                for datagram in framed.chunks(stride_framed) {
                    self.launch(true, datagram.to_vec());
                }
                self.near.sent(self.now, &batch, stride);
            }
            None => packets.into_iter().for_each(|packet| self.launch(true, packet)),
        }
        self.flush();
    }

    fn flush(&mut self) {
        for to_far in [true, false] {
            let mut datagram = Vec::new();
            while if to_far { &mut self.near } else { &mut self.far }.poll_transmit(self.now, &mut datagram) {
                self.launch(to_far, std::mem::take(&mut datagram));
            }
        }
        while let Some((packet, _)) = self.far.poll_recovered() {
            self.take(&packet, true);
        }
    }

    fn take(&mut self, packet: &[u8], is_recovered: bool) {
        let whole =
            packet.len() > 4 && self.sent.get(&number_of(packet)).is_some_and(|(_, sent)| sent == packet);
        assert!(whole || self.meddle.is_some(), "a packet that was never sent");
        if whole {
            self.arrived.push((number_of(packet), self.now, is_recovered));
        }
    }

    /// Lets time pass, with all that happens meanwhile.
    pub(crate) fn run_until(&mut self, end: Duration) {
        loop {
            let due = self.air.first_key_value().map(|((due, _), _)| *due);
            let wakeups = [due, self.near.next_wakeup(), self.far.next_wakeup()];
            let Some(at) = wakeups.into_iter().flatten().min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            while self.air.first_key_value().is_some_and(|((due, _), _)| *due <= self.now) {
                let Some((_, (to_far, datagram))) = self.air.pop_first() else { break };
                let layer = if to_far { &mut self.far } else { &mut self.near };
                match layer.handle(self.now, &datagram) {
                    Outcome::Packet(start) if to_far => self.take(&datagram[start..], false),
                    Outcome::Ignored if to_far && farhop_fec::wire::is_framable(&datagram) => {
                        self.take(&datagram, false)
                    }
                    _ => {}
                }
            }
            self.flush();
        }
        self.now = end;
    }

    /// Sends `packets` at 8 Mbit/s, ten at a time, and waits until all has arrived.
    pub(crate) fn bulk(&mut self, packets: usize) {
        for _ in 0..packets / 10 {
            self.send(10, 1400, 1400);
            self.run_until(self.now + Duration::from_millis(14));
        }
        self.run_until(self.now + 4 * DELAY);
    }

    /// Packets among those from number `from` on that never arrived.
    pub(crate) fn missing(&self, from: u32) -> usize {
        let here: std::collections::BTreeSet<u32> = self.arrived.iter().map(|(number, ..)| *number).collect();
        (from..self.next).filter(|number| !here.contains(number)).count()
    }

    pub(crate) fn next(&self) -> u32 {
        self.next
    }
}
