//! The carrier to ground as those see it who need it: they wait here while it is away. `caller` keeps it up.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhop_transport::Connection;
use farhop_transport::hop::Hop;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// One carrier, while it lasts.
#[derive(Debug, Clone)]
pub(crate) struct Carrier {
    pub(crate) hop: Hop,
    /// Tells the carriers of a process apart: promises are numbered anew on each.
    pub(crate) generation: u64,
    pub(crate) peer: String,
    pub(crate) address: SocketAddr,
    pub(crate) connection: Connection,
    pub(crate) since: Instant,
    /// Ground has answered. Before, only what may be said twice is said.
    pub(crate) answered: Arc<watch::Sender<bool>>,
}

/// The current carrier, if there is one, and those that are left and still bring what was promised on them.
#[derive(Clone)]
pub(crate) struct Uplink {
    current: watch::Receiver<Option<Carrier>>,
    left: Left,
}

/// Carriers that others have taken the place of, for as long as they last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Left(Arc<Mutex<Vec<Carrier>>>);

impl Left {
    pub(crate) fn add(&self, carrier: Carrier) {
        self.lock().push(carrier);
    }

    pub(crate) fn remove(&self, generation: u64) {
        self.lock().retain(|carrier| carrier.generation != generation);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Carrier>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Uplink {
    pub(crate) fn new(current: watch::Receiver<Option<Carrier>>, left: Left) -> Uplink {
        Uplink { current, left }
    }

    /// The carrier, waiting for it until `deadline` while there is none or it is silent.
    pub(crate) async fn carrier(&self, deadline: Instant) -> Option<Carrier> {
        timeout_at(deadline, self.speaking(false)).await.ok()?
    }

    /// As [`Uplink::carrier`], for what may be said twice: ground need not have answered.
    pub(crate) async fn early_carrier(&self, deadline: Instant) -> Option<Carrier> {
        timeout_at(deadline, self.speaking(true)).await.ok()?
    }

    async fn speaking(&self, early: bool) -> Option<Carrier> {
        let mut current = self.current.clone();
        let usable = |carrier: &Option<Carrier>| carrier.as_ref().is_some_and(|c| c.hop.closed().is_none());
        loop {
            let carrier = current.wait_for(usable).await.ok()?.clone()?;
            let (mut silent, mut answered) = (carrier.hop.silent(), carrier.answered.subscribe());
            if silent.borrow_and_update().is_none() && (*answered.borrow_and_update() || early) {
                return Some(carrier);
            }
            tokio::select! {
                _ = silent.changed() => {}
                _ = answered.changed() => {}
                changed = current.changed() => changed.ok()?,
            }
        }
    }

    /// Whether what is new goes by this carrier.
    pub(crate) fn is_by(&self, carrier: &Carrier) -> bool {
        self.current.borrow().as_ref().is_some_and(|current| current.generation == carrier.generation)
    }

    /// Completes once no carrier has spoken for so long.
    pub(crate) async fn down_for(&self, patience: Duration) {
        loop {
            self.until_down().await;
            if timeout(patience, self.speaking(false)).await.is_err() {
                return;
            }
        }
    }

    async fn until_down(&self) {
        let mut current = self.current.clone();
        loop {
            let carrier =
                current.borrow_and_update().clone().filter(|carrier| carrier.hop.closed().is_none());
            let Some(carrier) = carrier else { return };
            let mut silent = carrier.hop.silent();
            if silent.borrow_and_update().is_some() || !*carrier.answered.borrow() {
                return;
            }
            let changed = tokio::select! {
                changed = silent.changed() => changed,
                changed = current.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// The carrier if it is up now.
    pub(crate) fn now(&self) -> Option<Carrier> {
        let is_up = |carrier: &Carrier| carrier.hop.closed().is_none() && *carrier.answered.borrow();
        self.current.borrow().clone().filter(is_up)
    }

    /// The carrier of this generation, while it is up.
    pub(crate) fn of(&self, generation: u64) -> Option<Carrier> {
        let left = || self.left.lock().iter().find(|carrier| carrier.generation == generation).cloned();
        self.now().filter(|carrier| carrier.generation == generation).or_else(left)
    }
}
