//! What the fuzz target of this crate calls.

use std::time::Duration;

use crate::halves::Joiner;
use crate::wire::{Datagram, is_ours};
use crate::{Layer, Outcome, Secret, Terms};

/// Feeds `data`, cut into datagrams by a length byte in front of each, to a layer that is in use. Panics on what must not
/// be: a datagram that is read but not written alike, a packet from outside its datagram, memory without bound.
#[doc(hidden)]
pub fn fuzz(mut data: &[u8]) {
    let secret = Secret { own: [1; 8], theirs: [2; 8], first_sent: 0, first_received: 0 };
    let terms = Terms { most: 0.25, loud: false };
    let mut layer = Layer::new(Duration::ZERO, &secret, terms, Duration::from_millis(600));
    let mut joiner = Joiner::default();
    let mut now = Duration::ZERO;
    let mut out = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let (datagram, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        data = rest;
        now += Duration::from_millis(5);
        if let Some(read) = Datagram::decode(datagram) {
            assert!(is_ours(datagram));
            out.clear();
            read.encode(&mut out);
            assert_eq!(Datagram::decode(&out), Some(read));
            if let Datagram::Half(half) = read
                && let Some(whole) = joiner.join((), &half)
            {
                assert!(whole.len() > half.bytes.len());
            }
        }
        if let Outcome::Packet(start) = layer.handle(now, datagram) {
            assert!(start < datagram.len());
        }
        while let Some((packet, _)) = layer.poll_recovered() {
            assert!(!packet.is_empty() && packet.len() <= usize::from(u8::MAX) + 1);
        }
        let packet = [0x40; 100];
        out.clear();
        if layer.frame(&packet, packet.len(), &mut out).is_some() {
            layer.sent(now, &packet, packet.len());
        }
        let mut sent = 0;
        out.clear();
        while layer.poll_transmit(now, &mut out) {
            sent += 1;
            assert!(sent < 300, "more is sent than can be due");
        }
    }
}
