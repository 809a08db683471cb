//! Datagrams of flows on a carrier over QUIC (RFC 9221): few are given to QUIC ahead, so that what is late can still be
//! dropped and what is more urgent still overtakes. Over TCP there are none: flows use their streams.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::datagram::{self, Form};
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
    /// carries none so long: it can go by the flow's stream. It is of `class` unless the flow has shown to be of another
    /// ([`super::Sender::tell_class`]).
    pub fn send_datagram(&self, flow: u64, form: Form, user: u64, class: Class, payload: &[u8]) -> bool {
        let mut state = self.0.lock();
        // It grows while the path is probed, of which nobody is told.
        let longest = state.datagrams.as_ref().and_then(Connection::max_datagram_size).unwrap_or(0);
        if payload.len() + datagram::overhead(flow) > longest || state.closed.is_some() {
            return false;
        }
        let class = state.class_shown(flow).unwrap_or(class);
        state.session.send_datagram(self.0.now(), flow, form, user, class, payload);
        drop(state);
        self.0.work.notify_one();
        true
    }

    /// Whether datagrams go that the other end takes with small headers.
    pub fn takes_small_headers(&self) -> bool {
        let state = self.0.lock();
        state.datagrams.is_some() && state.session.takes_small_headers()
    }

    /// Datagrams that were dropped here: too late, or for want of room.
    pub fn dropped_datagrams(&self) -> u64 {
        self.0.lock().session.dropped_datagrams()
    }
}

impl State {
    /// Which class a flow of datagrams has shown to be of since it began.
    fn class_shown(&self, flow: u64) -> Option<Class> {
        self.slots.get(self.exchanges.get(&flow)?)?.kept.as_ref()?.nature.shown()
    }

    pub(super) fn handle_datagram(&mut self, shared: &Arc<Shared>, datagram: Bytes) {
        if let Some((flow, form, payload)) = datagram::decode(datagram)
            && self.incoming.len() < MOST_INCOMING
        {
            self.incoming.push_back(Incoming::Datagram { flow, form, payload });
            shared.accept.notify_one();
        }
    }
}

/// What QUIC's own buffer for datagrams holds.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// What it has room for when it is empty.
    room: usize,
}

impl Buffer {
    /// Whether QUIC may be given another: it has less than it can send at about this `rate` until it is looked twice. One is
    /// always given: what is more urgent waits behind it.
    pub(super) fn has_room(&mut self, connection: &Connection, rate: Option<BitRate>) -> bool {
        let left = connection.datagram_send_buffer_space();
        self.room = self.room.max(left);
        let ahead = rate.map_or(0, |rate| rate.bytes_in(2 * LOOK).0);
        let ahead = usize::try_from(ahead).unwrap_or(MOST_AHEAD).clamp(1, MOST_AHEAD);
        self.room - left < ahead
    }
}
