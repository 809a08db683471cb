//! A sender and a receiver around the satellite model, in virtual time: packets, acknowledgements, loss
//! detection and pacing as RFC 9002 has them, reduced to what a controller can notice. No streams, no
//! handshake; what is lost is sent again.

use std::collections::BTreeMap;
use std::time::Duration;

use farhop_congestion::{Ack, Contract, Controller, Loss};
use farhop_orbit::{Path, Profile, Way};
use farhop_units::Bytes;

const PAYLOAD: u64 = 1200;
const HEADERS: u64 = 28;
const ACK_SIZE: Bytes = Bytes(70);
/// RFC 9002 §6.1.1 and §7.6.1.
const PACKET_THRESHOLD: u64 = 3;
const PERSISTENT: u32 = 3;

/// What crosses the model: which sender, which packet.
type Packet = (usize, u64);

struct Sender {
    controller: Box<dyn Controller>,
    /// Bytes still to be sent, lost ones included.
    left: u64,
    goal: u64,
    acked: u64,
    next: u64,
    in_flight: BTreeMap<u64, Duration>,
    /// When the pacer lets the next packet go.
    paced: Duration,
    min_rtt: Option<Duration>,
    rtt: Duration,
    probe: Option<Duration>,
    probes: u32,
    done: Option<Duration>,
}

/// One link with its senders on the ground side.
pub(crate) struct Simulation {
    path: Path<Packet>,
    senders: Vec<Sender>,
    now: Duration,
}

impl Sender {
    fn pto(&self) -> Duration {
        self.rtt * 3 / 2
    }

    fn may_send(&self) -> bool {
        let used = self.in_flight.len() as u64 * PAYLOAD;
        self.left > 0 && used + PAYLOAD <= self.controller.window().0
    }

    /// quinn's pacer: 5/4 windows per round trip.
    fn spacing(&self) -> Duration {
        self.rtt.mul_f64(PAYLOAD as f64 / (1.25 * self.controller.window().0 as f64))
    }

    fn send(&mut self, now: Duration) -> u64 {
        let number = self.next;
        self.next += 1;
        self.left = self.left.saturating_sub(PAYLOAD);
        self.in_flight.insert(number, now);
        self.probe = Some(now + self.pto() * 2u32.pow(self.probes.min(6)));
        number
    }

    fn handle_ack(&mut self, now: Duration, number: u64) {
        let Some(sent) = self.in_flight.remove(&number) else { return };
        let sample = now - sent;
        self.min_rtt = Some(self.min_rtt.map_or(sample, |min| min.min(sample)));
        self.rtt = (self.rtt * 7 + sample) / 8;
        self.acked += PAYLOAD;
        self.probes = 0;
        self.probe = (!self.in_flight.is_empty()).then(|| now + self.pto());
        let app_limited = self.left == 0;
        let bytes = Bytes(PAYLOAD);
        self.controller.on_ack(&Ack { now, sent, bytes, app_limited, min_rtt: self.min_rtt, rtt: self.rtt });
        self.detect_loss(now, number);
        if self.acked >= self.goal {
            self.done.get_or_insert(now);
        }
    }

    fn detect_loss(&mut self, now: Duration, acked: u64) {
        let Some(limit) = acked.checked_sub(PACKET_THRESHOLD - 1) else { return };
        let kept = self.in_flight.split_off(&limit);
        let lost = std::mem::replace(&mut self.in_flight, kept);
        let (Some((_, &oldest)), Some((_, &newest))) = (lost.first_key_value(), lost.last_key_value()) else {
            return;
        };
        let bytes = Bytes(lost.len() as u64 * PAYLOAD);
        self.left += bytes.0;
        let persistent = newest - oldest > self.pto() * PERSISTENT;
        self.controller.on_loss(&Loss { now, sent: newest, bytes, persistent });
    }
}

impl Simulation {
    pub(crate) fn new(profile: &Profile, seed: u64) -> Self {
        Simulation { path: Path::new(profile, seed), senders: Vec::new(), now: Duration::ZERO }
    }

    /// Adds a sender of `bytes` that starts now.
    pub(crate) fn add(&mut self, controller: Box<dyn Controller>, contract: Contract, bytes: u64) {
        let goal = bytes.div_ceil(PAYLOAD) * PAYLOAD;
        self.senders.push(Sender {
            controller,
            left: goal,
            goal,
            acked: 0,
            next: 0,
            in_flight: BTreeMap::new(),
            paced: self.now,
            min_rtt: None,
            rtt: contract.rtt,
            probe: None,
            probes: 0,
            done: None,
        });
    }

    /// The path, to cut, restore or switch it between runs.
    pub(crate) fn path(&mut self) -> (&mut Path<Packet>, Duration) {
        (&mut self.path, self.now)
    }

    pub(crate) fn delivered(&self, sender: usize) -> u64 {
        self.senders[sender].acked
    }

    /// When a sender's last byte was acknowledged.
    pub(crate) fn done(&self, sender: usize) -> Option<Duration> {
        self.senders[sender].done
    }

    /// Runs until `end` or until every sender is done.
    pub(crate) fn run_until(&mut self, end: Duration) {
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.step();
            if self.senders.iter().all(|sender| sender.done.is_some()) {
                return;
            }
        }
        self.now = end;
    }

    fn next_event(&self) -> Option<Duration> {
        let pacers = self.senders.iter().filter(|sender| sender.may_send()).map(|sender| sender.paced);
        let probes = self.senders.iter().filter_map(|sender| sender.probe);
        self.path.next_wakeup().into_iter().chain(pacers).chain(probes).min()
    }

    fn step(&mut self) {
        while let Some((way, arrived)) = self.path.poll_transmit(self.now) {
            let (sender, number) = arrived.packet;
            match way {
                Way::Forward => {
                    self.path.handle_packet(self.now, Way::Return, ACK_SIZE, arrived.packet);
                }
                Way::Return => self.senders[sender].handle_ack(self.now, number),
            }
        }
        for index in 0..self.senders.len() {
            let sender = &mut self.senders[index];
            let probing = sender.probe.is_some_and(|at| at <= self.now);
            let paced = sender.may_send() && sender.paced <= self.now;
            if probing {
                sender.probes += 1;
            } else if !paced {
                continue;
            }
            sender.paced = self.now.max(sender.paced) + sender.spacing();
            let number = sender.send(self.now);
            self.path.handle_packet(self.now, Way::Forward, Bytes(PAYLOAD + HEADERS), (index, number));
        }
    }
}
