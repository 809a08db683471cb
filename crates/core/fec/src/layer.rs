//! Both directions between two ends: what one socket knows of one peer.

use std::time::Duration;

use crate::greeting::Greeting;
use crate::receiver::{Received, Receiver};
use crate::sender::{Sender, Sent};
use crate::wire::{Datagram, TOKEN, is_framable};

/// Datagrams below this length go out as they are: acknowledgements alone, of which the next says the same. QUIC puts 28 bytes
/// around a frame here at the least, 8 of them the connection id, and an acknowledgement without gaps takes 15 at most.
const SMALLEST: usize = 44;

/// What both ends draw from the keys of their connection, so that nobody else can say hello or guess a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    /// What this end's hello bears.
    pub own: [u8; TOKEN],
    /// What the other's does.
    pub theirs: [u8; TOKEN],
    /// Number of the first packet that this end sends.
    pub first_sent: u32,
    /// Number of the first that it receives.
    pub first_received: u32,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// How much is repaired, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Most bytes of repair for each byte sent, 0 to 1.
    pub most: f64,
    /// Whether what is brought back counts as a sign of congestion: for controllers that know none but loss.
    pub loud: bool,
}

/// Counters of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Counters {
    /// What this end sends.
    pub sent: Sent,
    /// What it receives.
    pub received: Received,
}

/// What came of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a QUIC packet, which begins at this byte.
    Packet(usize),
    /// It was the layer's own.
    Taken,
    /// It was not for this peer, or says nothing.
    Ignored,
}

/// See the module.
///
/// Calling order: [`Layer::frame`] and, once the batch is on its way, [`Layer::sent`]; [`Layer::handle`] for each datagram of
/// the layer that arrives. After either, drain [`Layer::poll_transmit`] and [`Layer::poll_recovered`]; then call these
/// again at [`Layer::next_wakeup`].
#[derive(Debug)]
pub struct Layer {
    greeting: Greeting,
    sender: Sender,
    receiver: Receiver,
    /// Set by a loud repair until its packets are taken.
    loud: bool,
}

impl Layer {
    /// A layer that has just come up, towards a peer at `rtt`.
    pub fn new(now: Duration, secret: &Secret, terms: Terms, rtt: Duration) -> Self {
        Layer {
            greeting: Greeting::new(now, secret.own, secret.theirs, rtt),
            sender: Sender::new(secret.first_sent, terms.most, terms.loud, rtt),
            receiver: Receiver::new(now, secret.first_received, rtt),
            loud: false,
        }
    }

    /// Says before anything is sent what an earlier connection saw this end's direction of the path lose, 0 to 1.
    pub fn remember(&mut self, loss: f64) {
        self.sender.remember(loss.clamp(0.0, 1.0));
    }

    /// QUIC has measured the round trip of the empty path, or finds that it has changed.
    pub fn fit(&mut self, rtt: Duration) {
        self.sender.fit(rtt);
    }

    /// QUIC has been given `bytes` of a stream that are all there is of it for now, and sends them next: a head, an object or the
    /// end of one. Once they are out they are repaired at once, as far as the share allows; an `urgent` one rather than others.
    pub fn expect(&mut self, bytes: usize, urgent: bool) {
        self.sender.expect(bytes, urgent);
    }

    /// Appends a batch of QUIC packets as sources to `out` and gives their stride; `None` if they go out as they are: the other
    /// end has not said hello yet, or they belong to a handshake, or they are too small to be worth it.
    pub fn frame(&self, packets: &[u8], stride: usize, out: &mut Vec<u8>) -> Option<usize> {
        let framable = self.greeting.heard()
            && packets.len() >= SMALLEST
            && stride > 0
            && packets.chunks(stride).all(is_framable);
        framable.then(|| self.sender.frame(packets, stride, out))
    }

    /// The batch of the last [`Layer::frame`] is on its way.
    pub fn sent(&mut self, now: Duration, packets: &[u8], stride: usize) {
        self.sender.sent(now, packets, stride.max(1));
        self.greeting.used(now);
    }

    /// Whether a hello with this token is this peer's.
    pub fn knows(&self, token: &[u8; TOKEN]) -> bool {
        self.greeting.knows(token)
    }

    /// A datagram of the layer has arrived.
    pub fn handle(&mut self, now: Duration, bytes: &[u8]) -> Outcome {
        match Datagram::decode(bytes) {
            Some(Datagram::Source(source)) => {
                self.receiver.handle_source(now, &source);
                Outcome::Packet(bytes.len() - source.packet.len())
            }
            Some(Datagram::Repair(repair)) => {
                self.loud = repair.loud;
                self.receiver.handle_repair(now, &repair);
                Outcome::Taken
            }
            Some(Datagram::Report(report)) => {
                self.sender.handle_report(now, &report);
                Outcome::Taken
            }
            Some(Datagram::Hello(hello)) if self.greeting.handle(now, &hello) => Outcome::Taken,
            Some(Datagram::Hello(_) | Datagram::Half(_)) | None => Outcome::Ignored,
        }
    }

    /// Appends the next datagram of the layer's own to `out`, if one is due.
    pub fn poll_transmit(&mut self, now: Duration, out: &mut Vec<u8>) -> bool {
        let datagram = if let Some(hello) = self.greeting.poll(now) {
            Datagram::Hello(hello)
        } else if let Some(report) = self.receiver.poll_report(now) {
            self.sender.suppose(self.receiver.loss());
            Datagram::Report(report)
        } else if let Some(repair) = self.sender.poll_repair(now) {
            Datagram::Repair(repair)
        } else {
            return false;
        };
        datagram.encode(out);
        true
    }

    /// The next QUIC packet brought back, and whether it counts as a sign of congestion.
    pub fn poll_recovered(&mut self) -> Option<(Vec<u8>, bool)> {
        self.receiver.poll_recovered().map(|packet| (packet, self.loud))
    }

    /// When [`Layer::poll_transmit`] has to be called though nothing is sent and nothing arrives.
    pub fn next_wakeup(&self) -> Option<Duration> {
        let wakeups = [self.greeting.next_wakeup(), self.sender.next_wakeup(), self.receiver.next_wakeup()];
        wakeups.into_iter().flatten().min()
    }

    /// Share of the packets sent that the path is believed to lose.
    pub fn loss(&self) -> f64 {
        self.sender.loss()
    }

    /// Bytes of repair for each byte sent, at present.
    pub fn share(&self) -> f64 {
        self.sender.share()
    }

    /// Counters and estimates.
    pub fn counters(&self) -> Counters {
        Counters { sent: self.sender.counters(), received: self.receiver.counters() }
    }
}
