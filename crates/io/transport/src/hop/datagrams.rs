//! Datagrams of flows on a carrier over QUIC (RFC 9221): few are given to QUIC ahead, so that what is late can still be
//! dropped and what is more urgent still overtakes. Over TCP there are none: flows use their streams.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::datagram;
use farhop_htotp::frame::Class;
use farhop_units::BitRate;
use quinn::Connection;

use super::{Hop, Incoming, Shared, State};

/// QUIC's own buffer for datagrams. Where it overflows it drops the oldest, whatever they are: it is never to be full.
pub(crate) const BUFFER: usize = 128 << 10;
/// Bytes that QUIC is given ahead of what it can send, at the most; on a slow path it is a packet.
const MOST_AHEAD: usize = BUFFER / 2;
/// How soon it is looked whether QUIC has sent some: half of a packet's time at 2 Mbit/s.
pub(super) const LOOK: Duration = Duration::from_millis(3);
/// What waits for who accepts; beyond it, the network has lost it.
const MOST_INCOMING: usize = 4096;

impl Hop {
    /// Sends a datagram of this flow, or drops it: when it is late, or there is too much of what is as urgent. False where the carrier
    /// carries none so long: it can go by the flow's stream.
    pub fn send_datagram(&self, flow: u64, class: Class, payload: &[u8]) -> bool {
        let mut state = self.0.lock();
        if payload.len() + datagram::overhead(flow) > state.longest_datagram || state.closed.is_some() {
            return false;
        }
        state.outbox.push(self.0.now(), class, datagram::encode(flow, payload));
        drop(state);
        self.0.work.notify_one();
        true
    }

    /// Datagrams that were dropped here: too late, or for want of room.
    pub fn dropped_datagrams(&self) -> u64 {
        let state = self.0.lock();
        state.outbox.late + state.outbox.crowded_out
    }
}

impl State {
    pub(super) fn handle_datagram(&mut self, shared: &Arc<Shared>, datagram: Bytes) {
        if let Some((flow, payload)) = datagram::decode(datagram)
            && self.incoming.len() < MOST_INCOMING
        {
            self.incoming.push_back(Incoming::Datagram { flow, payload });
            shared.accept.notify_one();
        }
    }

    /// Gives QUIC what it can send at about this `rate` until it is looked twice, a datagram at the least: what is more urgent
    /// waits behind it. `full` is the most urgent class of the streams that it is full of; what is less urgent waits behind
    /// them. `room` is what QUIC's own buffer has when it is empty.
    pub(super) fn send_datagrams(
        &mut self,
        now: Duration,
        connection: &Connection,
        rate: Option<BitRate>,
        room: &mut usize,
        full: Option<Class>,
    ) {
        self.longest_datagram = connection.max_datagram_size().unwrap_or(0);
        *room = (*room).max(connection.datagram_send_buffer_space());
        let ahead = rate.map_or(0, |rate| rate.bytes_in(2 * LOOK).0);
        let ahead = usize::try_from(ahead).unwrap_or(MOST_AHEAD).clamp(1, MOST_AHEAD);
        while room.saturating_sub(connection.datagram_send_buffer_space()) < ahead
            && let Some(datagram) = self.outbox.poll(now, full)
        {
            // The path may have become narrower since it was taken in: it is lost then.
            let _ = connection.send_datagram(datagram);
        }
    }
}
