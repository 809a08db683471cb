//! The end that sends: what goes next, when the pacer lets it go, and what is lost (RFC 9002 §6).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use farhop_congestion::{Ack, Controller, Loss, Sent};
use farhop_units::Bytes;

use super::{HEADERS, Object, PAYLOAD};

/// RFC 9002 §6.1.2 and §7.6.1; the packet threshold as the carrier sets it for jittery links.
const PACKET_THRESHOLD: u64 = 13;
const TIME_THRESHOLD: (u32, u32) = (9, 8);
const PERSISTENT: u32 = 3;

impl Object {
    /// How many packets it takes.
    pub(super) fn pieces(&self) -> u64 {
        self.bytes.div_ceil(PAYLOAD)
    }
}

/// A piece of an object: which object, which packet's worth of it.
type Piece = (usize, u64);

#[derive(Debug, Clone, Copy)]
struct Flight {
    sent: Duration,
    piece: Piece,
}

pub(super) struct Sender {
    pub(super) controller: Box<dyn Controller>,
    pub(super) objects: Vec<Object>,
    pub(super) acked: u64,
    /// Pieces of each object to be sent, lost ones included.
    waiting: Vec<VecDeque<u64>>,
    arrived: HashSet<Piece>,
    /// What each packet carried.
    cargo: HashMap<u64, Piece>,
    next: u64,
    in_flight: BTreeMap<u64, Flight>,
    largest_acked: Option<u64>,
    now: Duration,
    /// Packets that the pacer lets go, since when.
    credit: f64,
    filled: Duration,
    min_rtt: Option<Duration>,
    rtt: Duration,
    probe: Option<Duration>,
    probes: u32,
    /// The window held the sender back when it last could have sent.
    blocked: bool,
}

impl Sender {
    pub(super) fn new(
        controller: Box<dyn Controller>,
        now: Duration,
        rtt: Duration,
        objects: &[Object],
    ) -> Self {
        Sender {
            controller,
            objects: objects.to_vec(),
            acked: 0,
            waiting: objects.iter().map(|object| (0..object.pieces()).collect()).collect(),
            arrived: HashSet::new(),
            cargo: HashMap::new(),
            next: 0,
            in_flight: BTreeMap::new(),
            largest_acked: None,
            now,
            credit: 10.0,
            filled: now,
            min_rtt: None,
            rtt,
            probe: None,
            probes: 0,
            blocked: false,
        }
    }

    pub(super) fn ask(&mut self, object: Object) {
        self.waiting.push((0..object.pieces()).collect());
        self.objects.push(object);
    }

    /// The round trip at present, and the shortest.
    pub(super) fn round_trip(&self) -> Option<(Duration, Duration)> {
        self.min_rtt.map(|least| (self.rtt, least))
    }

    pub(super) fn is_done(&self) -> bool {
        self.arrived.len() as u64 == self.objects.iter().map(Object::pieces).sum::<u64>()
    }

    /// The packets that carried a piece of an object, and which.
    pub(super) fn carried(&self, object: usize) -> impl Iterator<Item = (u64, u64)> {
        self.cargo
            .iter()
            .filter(move |(_, piece)| piece.0 == object)
            .map(|(number, piece)| (*number, piece.1))
    }

    fn flight(&self) -> u64 {
        self.in_flight.len() as u64 * PAYLOAD
    }

    fn pto(&self) -> Duration {
        self.rtt * 3 / 2
    }

    /// What goes next of what has been asked for.
    fn next_object(&self, now: Duration) -> Option<usize> {
        let ready = |index: &usize| !self.waiting[*index].is_empty() && self.objects[*index].at <= now;
        (0..self.objects.len()).filter(ready).min_by_key(|index| !self.objects[*index].urgent)
    }

    fn has_room(&self) -> bool {
        self.flight() + PAYLOAD < self.controller.window().0
    }

    /// What feeds the carrier keeps to the controller's rate; without one the carrier's pacer spreads 5/4
    /// windows over a round trip.
    fn spacing(&self) -> Duration {
        match self.controller.pacing() {
            Some(rate) => rate.time_for(Bytes(PAYLOAD + HEADERS)),
            None => self.rtt.mul_f64(PAYLOAD as f64 / (1.25 * self.controller.window().0 as f64)),
        }
    }

    /// The pacer's credit has grown until `now`.
    fn refill(&mut self, now: Duration) {
        // The carrier's pacer lets ten packets go together.
        let most = if self.controller.pacing().is_some() { 1.0 } else { 10.0 };
        let gained = (now - self.filled).as_secs_f64() / self.spacing().as_secs_f64();
        self.credit = (self.credit + gained).min(most);
        self.filled = now;
    }

    /// When the pacer lets the next packet go.
    fn paced(&self) -> Duration {
        self.filled + self.spacing().mul_f64((1.0 - self.credit).max(0.0))
    }

    pub(super) fn next_event(&self) -> Option<Duration> {
        let asked = (0..self.objects.len()).filter(|index| !self.waiting[*index].is_empty());
        let send = asked.map(|index| self.objects[index].at.max(self.paced()).max(self.now)).min();
        let send = send.filter(|_| self.has_room());
        let late = self.largest_acked.and_then(|acked| self.in_flight.range(..acked).next());
        let overdue = late.map(|(_, flight)| flight.sent + self.patience());
        send.into_iter().chain(self.probe).chain(overdue).min()
    }

    fn patience(&self) -> Duration {
        self.rtt * TIME_THRESHOLD.0 / TIME_THRESHOLD.1
    }

    /// The number of a packet that leaves now.
    pub(super) fn poll_transmit(&mut self, now: Duration) -> Option<u64> {
        self.now = now;
        self.detect_loss(now);
        self.refill(now);
        let probing = self.probe.take_if(|at| *at <= now).is_some();
        if probing {
            self.probes += 1;
            // A probe carries anew what has waited longest for its acknowledgement.
            if let Some((_, flight)) = self.in_flight.pop_first() {
                return Some(self.launch(now, flight.piece));
            }
        }
        let object = self.next_object(now)?;
        self.blocked = !self.has_room();
        if self.blocked || self.paced() > now {
            return None;
        }
        self.credit -= 1.0;
        let piece = self.waiting[object].pop_front()?;
        Some(self.launch(now, (object, piece)))
    }

    fn launch(&mut self, now: Duration, piece: Piece) -> u64 {
        let number = self.next;
        self.next += 1;
        self.cargo.insert(number, piece);
        self.in_flight.insert(number, Flight { sent: now, piece });
        self.probe = Some(now + self.pto() * 2u32.pow(self.probes.min(6)));
        self.controller.on_sent(&Sent { now, in_flight: Bytes(self.flight()) });
        number
    }

    pub(super) fn handle_ack(&mut self, now: Duration, numbers: &[u64]) {
        self.now = now;
        let Some(&newest) = numbers.iter().max() else { return };
        // As the carrier sees it: held back by whoever feeds it, it has nothing to send.
        let fed = self.controller.pacing().is_some() && !self.blocked;
        let app_limited = fed || self.next_object(now).is_none();
        for number in numbers {
            let Some(flight) = self.in_flight.remove(number) else { continue };
            self.acked += PAYLOAD;
            self.arrived.insert(flight.piece);
            self.controller.on_ack(&Ack {
                now,
                sent: flight.sent,
                bytes: Bytes(PAYLOAD),
                in_flight: Bytes(self.flight()),
                app_limited,
                min_rtt: self.min_rtt,
                rtt: self.rtt,
            });
            if *number == newest {
                let sample = now - flight.sent;
                self.min_rtt = Some(self.min_rtt.map_or(sample, |min| min.min(sample)));
                self.rtt = (self.rtt * 7 + sample) / 8;
            }
        }
        self.largest_acked = self.largest_acked.max(Some(newest));
        self.probes = 0;
        self.probe = (!self.in_flight.is_empty()).then(|| now + self.pto());
    }

    fn detect_loss(&mut self, now: Duration) {
        let Some(acked) = self.largest_acked else { return };
        let overtaken = acked.saturating_sub(PACKET_THRESHOLD - 1);
        let patience = self.patience();
        let lost: Vec<(u64, Flight)> = self
            .in_flight
            .range(..acked)
            .filter(|(number, flight)| **number < overtaken || flight.sent + patience <= now)
            .map(|(number, flight)| (*number, *flight))
            .collect();
        let (Some((_, oldest)), Some((_, newest))) = (lost.first(), lost.last()) else { return };
        let persistent = newest.sent - oldest.sent > self.pto() * PERSISTENT;
        let (sent, bytes) = (newest.sent, Bytes(lost.len() as u64 * PAYLOAD));
        for (number, flight) in &lost {
            self.in_flight.remove(number);
            self.waiting[flight.piece.0].push_front(flight.piece.1);
        }
        self.controller.on_loss(&Loss { now, sent, bytes, persistent });
    }
}
