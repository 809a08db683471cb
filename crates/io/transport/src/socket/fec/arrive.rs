//! What arrives: packets are taken out of their frames and others brought back, in QUIC's own buffers as far as they fit.

use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};

use farhop_fec::Outcome;
use farhop_fec::wire::{Datagram, Half, Hello, is_ours};
use quinn::udp::{EcnCodepoint, RecvMeta};

use super::{FecSocket, canonical, lock};

/// Hellos kept that came before the handshake they belong to was through.
const EARLY: usize = 64;
/// Packets that wait for QUIC to read them; it always does at once.
const INBOX: usize = 1024;

/// A packet that was brought back, or found no place in its buffer.
#[derive(Debug)]
pub(super) struct Recovered {
    packet: Vec<u8>,
    addr: SocketAddr,
    dst_ip: Option<IpAddr>,
    ecn: Option<EcnCodepoint>,
}

impl FecSocket {
    /// Takes the layer's datagrams out of a buffer and the packets out of their frames. What stays has one stride; the rest
    /// goes into the inbox.
    pub(super) fn unwrap(&self, buf: &mut [u8], meta: &mut RecvMeta) {
        let stride = meta.stride.max(1);
        if !buf[..meta.len].chunks(stride).any(is_ours) {
            return;
        }
        let peer = self.peer(meta.addr);
        let mut state = peer.as_ref().map(|peer| (peer.now(), lock(&peer.state)));
        let mut aside = Vec::new();
        let mut out = Packed::default();
        for start in (0..meta.len).step_by(stride) {
            let end = meta.len.min(start + stride);
            let datagram = &buf[start..end];
            let packet = match &mut state {
                _ if !is_ours(datagram) => Some(start),
                Some((now, state)) => match state.layer.handle(*now, datagram) {
                    Outcome::Packet(header) => Some(start + header),
                    Outcome::Taken => None,
                    Outcome::Ignored => {
                        aside.push(datagram.to_vec());
                        None
                    }
                },
                None => match Datagram::decode(datagram) {
                    Some(Datagram::Source(source)) => Some(end - source.packet.len()),
                    _ => {
                        aside.push(datagram.to_vec());
                        None
                    }
                },
            };
            if let Some(from) = packet
                && !out.append(buf, from, end)
            {
                self.deliver(Recovered {
                    packet: buf[from..end].to_vec(),
                    addr: meta.addr,
                    dst_ip: meta.dst_ip,
                    ecn: meta.ecn,
                });
            }
        }
        if let (Some(peer), Some((now, state))) = (&peer, &mut state) {
            state.last_used = *now;
            while let Some((packet, loud)) = state.layer.poll_recovered() {
                // As if received; marked where the sender knows no other sign of congestion (RFC 9265 §2).
                let ecn = if loud { meta.ecn.and(Some(EcnCodepoint::Ce)) } else { meta.ecn };
                self.deliver(Recovered { packet, addr: meta.addr, dst_ip: meta.dst_ip, ecn });
            }
            state.ties.spend(state.layer.share() + self.halving.share(meta.addr));
            state.ties.recall.note_loss(state.layer.loss());
            self.flush(state, *now);
            Self::arm(peer, state);
        }
        drop(state);
        for datagram in aside {
            self.handle_stray(meta, &datagram);
        }
        (meta.len, meta.stride) = (out.len, out.stride.max(1));
    }

    fn deliver(&self, recovered: Recovered) {
        let mut inbox = lock(&self.inbox);
        if inbox.len() < INBOX {
            inbox.push_back(recovered);
        }
    }

    /// Hands over packets that were brought back.
    pub(super) fn take_recovered(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let mut inbox = lock(&self.inbox);
        let mut filled = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let Some(Recovered { packet, addr, dst_ip, ecn }) = inbox.pop_front() else { break };
            let len = packet.len().min(buf.len());
            buf[..len].copy_from_slice(&packet[..len]);
            *meta = RecvMeta { addr, len, stride: len, ecn, dst_ip };
            filled += 1;
        }
        filled
    }

    /// What no layer knows.
    fn handle_stray(&self, meta: &RecvMeta, datagram: &[u8]) {
        match Datagram::decode(datagram) {
            Some(Datagram::Hello(hello)) => self.handle_hello(meta.addr, hello),
            Some(Datagram::Half(half)) => self.handle_half(meta, &half),
            _ => {}
        }
    }

    /// A hello from an address without a layer that knows it: of one whose handshake is not through yet, perhaps. It proves
    /// nothing, since it crosses in the clear and always the same, and so moves no layer: that is [`FecSocket::follow`]'s.
    fn handle_hello(&self, addr: SocketAddr, hello: Hello) {
        let mut early = lock(&self.early);
        early.truncate(EARLY - 1);
        early.push_front((canonical(addr), hello));
    }

    /// Half of a datagram; what comes of two is as if it had come whole.
    fn handle_half(&self, meta: &RecvMeta, half: &Half<'_>) {
        let Some(mut whole) = lock(&self.halves).join(canonical(meta.addr), half) else { return };
        if let Some(Datagram::Half(_)) = Datagram::decode(&whole) {
            return; // nobody sends halves of halves
        }
        let mut joined = RecvMeta { len: whole.len(), stride: whole.len(), ..*meta };
        self.unwrap(&mut whole, &mut joined);
        whole.truncate(joined.len);
        if !whole.is_empty() {
            self.deliver(Recovered { packet: whole, addr: meta.addr, dst_ip: meta.dst_ip, ecn: meta.ecn });
        }
    }
}

/// Datagrams moved together at the front of a buffer: all of one size, but for the last.
#[derive(Default)]
struct Packed {
    len: usize,
    stride: usize,
    is_closed: bool,
}

impl Packed {
    /// Moves `buf[from..end]` to the front; false if it does not fit in with what is there.
    fn append(&mut self, buf: &mut [u8], from: usize, end: usize) -> bool {
        let size = end - from;
        if self.len == 0 {
            self.stride = size;
        }
        if self.is_closed || size > self.stride {
            return false;
        }
        self.is_closed = size < self.stride;
        buf.copy_within(from..end, self.len);
        self.len += size;
        true
    }
}
