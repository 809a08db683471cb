//! A sender and a receiver around the satellite model, in virtual time: packets, acknowledgements, loss
//! detection and pacing as RFC 9002 has them and the carrier sets them, reduced to what a controller can
//! notice. What is sent are objects, the urgent before the others; what is lost is sent again.

mod jitter;
mod receiver;
pub(crate) mod scenes;
mod sender;

use std::time::Duration;

use farhop_congestion::{Arrived, Controller, Wanted};
use farhop_orbit::{Path, Profile, Way};
use farhop_units::Bytes;

use jitter::Jitter;
use receiver::Receiver;
use sender::Sender;

/// UDP payload of a packet, and what IPv4 and UDP add.
pub(crate) const PAYLOAD: u64 = 1200;
const HEADERS: u64 = 28;
const ACK_SIZE: Bytes = Bytes(70);

/// What crosses the model.
#[derive(Debug)]
pub(crate) enum Packet {
    Data { flow: usize, number: u64 },
    Ack { flow: usize, numbers: Vec<u64> },
}

/// Something to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object {
    pub(crate) bytes: u64,
    /// Goes ahead of what is not.
    pub(crate) urgent: bool,
    /// When its request comes.
    pub(crate) at: Duration,
}

/// A connection that sends one way, and has its acknowledgements the other.
struct Flow {
    way: Way,
    sender: Sender,
    receiver: Receiver,
}

impl Flow {
    fn back(&self) -> Way {
        match self.way {
            Way::Forward => Way::Return,
            Way::Return => Way::Forward,
        }
    }
}

/// One link with its senders, on the ground side unless it is said.
pub(crate) struct Simulation {
    path: Path<Packet>,
    /// What it adds to the delay, forward and return.
    jitter: [Jitter<Packet>; 2],
    flows: Vec<Flow>,
    now: Duration,
    /// How long an answer's last byte takes from its request, on the way that the request goes.
    request: Duration,
}

impl Simulation {
    pub(crate) fn new(profile: &Profile, seed: u64) -> Self {
        let request = profile.return_.delay;
        let path = Path::new(profile, seed);
        let jitter = [0, 1].map(|way| Jitter::new(Duration::ZERO, seed + way));
        Simulation { path, jitter, flows: Vec::new(), now: Duration::ZERO, request }
    }

    /// Lets each way take up to `most` longer.
    pub(crate) fn jittered(self, most: Duration, seed: u64) -> Self {
        let jitter = [0, 1].map(|way| Jitter::new(most, 2 * seed + way));
        Simulation { jitter, ..self }
    }

    /// Adds a connection that sends `objects`; `rtt` is what it expects before it has measured.
    pub(crate) fn connect(
        &mut self,
        controller: Box<dyn Controller>,
        rtt: Duration,
        objects: &[Object],
    ) -> usize {
        self.connect_on(Way::Forward, controller, rtt, objects)
    }

    /// The same for what is sent on either way.
    pub(crate) fn connect_on(
        &mut self,
        way: Way,
        controller: Box<dyn Controller>,
        rtt: Duration,
        objects: &[Object],
    ) -> usize {
        let sender = Sender::new(controller, self.now, rtt, objects);
        self.flows.push(Flow { way, sender, receiver: Receiver::default() });
        self.flows.len() - 1
    }

    /// Adds a connection that sends `bytes` from now on.
    pub(crate) fn add(&mut self, controller: Box<dyn Controller>, rtt: Duration, bytes: u64) -> usize {
        let at = self.now;
        self.connect(controller, rtt, &[Object { bytes, urgent: false, at }])
    }

    /// Asks a connection for one more object.
    pub(crate) fn ask(&mut self, flow: usize, object: Object) {
        self.flows[flow].sender.ask(object);
    }

    /// The path, to cut, restore or switch it between runs.
    pub(crate) fn path(&mut self) -> (&mut Path<Packet>, Duration) {
        (&mut self.path, self.now)
    }

    /// A connection's controller, to look at or to tell something.
    pub(crate) fn controller(&mut self, flow: usize) -> &mut dyn Controller {
        self.flows[flow].sender.controller.as_mut()
    }

    /// Bytes that a connection's peer has acknowledged.
    pub(crate) fn delivered(&self, flow: usize) -> u64 {
        self.flows[flow].sender.acked
    }

    /// What has come of a connection, of which more is to come, as its receiver has it.
    pub(crate) fn arrived(&self, flow: usize) -> Arrived {
        let Flow { sender, receiver, .. } = &self.flows[flow];
        let (packets, lost) = receiver.counts();
        let wanted = if sender.is_done() { Wanted::Nothing } else { Wanted::Perhaps };
        let bytes = Bytes(packets * PAYLOAD);
        Arrived { now: self.now, bytes, packets, lost, wanted, round_trip: sender.round_trip() }
    }

    /// From an object's request to its last byte at the receiver, had the request crossed the link.
    pub(crate) fn took(&self, flow: usize, object: usize) -> Option<Duration> {
        let Flow { sender, receiver, .. } = &self.flows[flow];
        let begun = sender.objects[object].at;
        receiver.completed(sender, object).map(|last| last + self.request - begun)
    }

    /// Runs until `end`, or until every sender is done.
    pub(crate) fn run_until(&mut self, end: Duration) {
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.step();
            if self.flows.iter().all(|flow| flow.sender.is_done()) {
                return;
            }
        }
        self.now = end;
    }

    fn next_event(&self) -> Option<Duration> {
        let senders = self.flows.iter().filter_map(|flow| flow.sender.next_event());
        let receivers = self.flows.iter().filter_map(|flow| flow.receiver.next_event());
        let jitter = self.jitter.iter().filter_map(Jitter::next_event);
        self.path.next_wakeup().into_iter().chain(jitter).chain(senders).chain(receivers).min()
    }

    fn step(&mut self) {
        while let Some((way, arrived)) = self.path.poll_transmit(self.now) {
            self.jitter[usize::from(way == Way::Return)].push(self.now, arrived.packet);
        }
        while let Some(packet) = self.jitter.iter_mut().find_map(|jitter| jitter.pop(self.now)) {
            match packet {
                Packet::Data { flow, number } => self.flows[flow].receiver.handle_packet(self.now, number),
                Packet::Ack { flow, numbers } => self.flows[flow].sender.handle_ack(self.now, &numbers),
            }
        }
        for (flow, one) in self.flows.iter_mut().enumerate() {
            if let Some(numbers) = one.receiver.poll_ack(self.now) {
                self.path.handle_packet(self.now, one.back(), ACK_SIZE, Packet::Ack { flow, numbers });
            }
            while let Some(number) = one.sender.poll_transmit(self.now) {
                let packet = Packet::Data { flow, number };
                self.path.handle_packet(self.now, one.way, Bytes(PAYLOAD + HEADERS), packet);
            }
        }
    }
}
