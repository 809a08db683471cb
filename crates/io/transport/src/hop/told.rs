//! What is told of a carrier: whether it lives, what both ends call it, what was measured of its path and what is decided by that.

use std::net::IpAddr;
use std::time::Duration;

use farhop_tuning::{Measured, Parameters, Told};
use farhop_units::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use super::attune::Lesson;
use super::{Closed, Hop};
use crate::connection::{Kind, Name};
use crate::learned::Learned;

impl Hop {
    /// Why the carrier ended, if it has.
    pub fn closed(&self) -> Option<Closed> {
        self.0.lock().closed.clone()
    }

    /// When the carrier ended, if it has.
    pub fn ended(&self) -> Option<Instant> {
        self.0.lock().ended
    }

    /// Remote: since when the peer gives no sign of life though asked; none while it does. A silent carrier may come back,
    /// with all that was under way.
    pub fn silent(&self) -> watch::Receiver<Option<Instant>> {
        self.0.silent.subscribe()
    }

    /// How long nothing was heard of the peer. Nobody is asked before 15 s of it where nothing is under way.
    pub fn silence(&self) -> Duration {
        self.0.lock().session.silence(self.0.now())
    }

    /// What both ends call the connection; none before its handshake is over at this end.
    pub fn name(&self) -> Option<Name> {
        self.0.lock().name
    }

    /// Round-trip time of the last ping.
    pub fn rtt(&self) -> Option<Duration> {
        self.0.lock().rtt
    }

    /// Keeps what this carrier measures of the way to `peer` in `learned`, from which its first sizes came.
    pub fn learn(&self, learned: &Learned, peer: IpAddr) {
        let mut state = self.0.lock();
        let first = learned.sizes(state.tuner.set(), peer);
        state.tuner.learn(learned.of(peer), first);
        state.sizes.send_replace(first);
        state.lesson = Some(Lesson { learned: learned.clone(), peer });
    }

    /// What is measured of the path of a carrier of this kind, and what is decided by it, with reasons.
    pub fn path(&self, kind: Kind) -> Told {
        let state = self.0.lock();
        match kind {
            Kind::Quic => state.tuner.told(state.sending.as_ref()),
            Kind::Tcp => {
                let windows = state.mux_windows;
                state.tuner.told_over_tcp(Bytes(windows.stream), Bytes(windows.total))
            }
        }
    }

    /// What is measured of the path, here, at the peer, and on earlier carriers.
    pub fn measured(&self) -> Measured {
        self.0.lock().tuner.measured()
    }

    /// Another carrier would be quicker, since the windows of this one's streams are too small for the path and QUIC does not change
    /// them under way. Over TCP they grow.
    pub fn has_outgrown(&self, kind: Kind) -> bool {
        kind == Kind::Quic && self.0.lock().tuner.has_outgrown()
    }

    /// The sizes that fit the path, whenever they change.
    pub fn sizes(&self) -> watch::Receiver<Parameters> {
        self.0.lock().sizes.subscribe()
    }

    /// Exchanges and tunnels that were open when the carrier ended; none before.
    pub fn lost(&self) -> u64 {
        self.0.lock().lost
    }

    /// Bytes that have gone out on exchanges and tunnels and that the other end has not taken yet: they are on their way, or
    /// wait there for clients or origins that do not read.
    pub fn unread(&self) -> Bytes {
        Bytes(self.0.lock().unread.all())
    }

    /// Whether something that this end says waits for room.
    pub fn is_held_up(&self) -> bool {
        self.0.lock().slots.values().any(|slot| slot.full)
    }

    /// Remote: whether something was promised that has not begun to come, and is still wanted.
    pub fn is_owed(&self) -> bool {
        self.0.lock().session.is_owed()
    }

    /// True while exchanges or tunnels are open.
    pub fn is_active(&self) -> bool {
        self.0.lock().session.is_active()
    }
}
