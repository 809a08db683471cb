//! What was under way on carriers that have ended, until it goes on on the next one, cannot, or has waited too long.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_transport::hop::Hop;
use tokio::time::timeout;

use crate::uplink::Carrier;

/// See the module.
pub(crate) struct Adrift {
    state: Mutex<State>,
    /// How long a request waits for a carrier.
    patience: Box<dyn Fn() -> Duration + Send + Sync>,
}

#[derive(Default)]
struct State {
    /// The carrier on which ground has answered last.
    current: Option<Carrier>,
    /// Carriers that have ended, and the ground that each led to.
    ended: Vec<(String, Hop)>,
}

impl Adrift {
    pub(crate) fn new(patience: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Adrift { state: Mutex::default(), patience: Box::new(patience) }
    }

    /// Ground has answered on this carrier: what it may still know goes on here.
    pub(crate) fn landed(&self, carrier: &Carrier) {
        let mut state = self.lock();
        state.current = Some(carrier.clone());
        for (peer, hop) in state.ended.drain(..) {
            go_on(&peer, &hop, carrier);
        }
    }

    /// A carrier has ended.
    pub(crate) fn ended(&self, carrier: &Carrier) {
        let hop = &carrier.hop;
        if hop.kept().is_none() {
            return hop.give_up();
        }
        let patience = (self.patience)();
        let waiting = hop.clone();
        tokio::spawn(async move {
            let _ = timeout(patience, waiting.all_left()).await;
            waiting.give_up();
        });
        let mut state = self.lock();
        state.ended.retain(|(_, hop)| hop.kept().is_some());
        match &state.current {
            Some(current) if current.hop.closed().is_none() => go_on(&carrier.peer, hop, current),
            _ => state.ended.push((carrier.peer.clone(), hop.clone())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Adrift {
    fn drop(&mut self) {
        for (_, hop) in self.lock().ended.drain(..) {
            hop.give_up();
        }
    }
}

/// Another ground knows nothing of it.
fn go_on(peer: &str, hop: &Hop, carrier: &Carrier) {
    if peer == carrier.peer {
        let streams = carrier.hop.adopt(hop);
        tracing::debug!(target: "farhop", "ground {peer} is asked for {streams} streams of a lost carrier");
    } else {
        hop.give_up();
    }
}
