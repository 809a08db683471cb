//! Connections to origins: kept for the user who opened them, bounded in number, closed when long unused. Knows
//! nothing of requests.

mod held;
mod kept;
mod place;

pub(crate) use held::{Lent, Opened, Opening, Share};
pub(crate) use place::{Connection, Next};

use kept::Kept;
use place::Place;

use crate::connect::Destination;
use crate::request::Scheme;
use crate::settings::Settings;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Whose connections: exchanges of different partitions never share one, so that nothing that an origin ties to a
/// connection passes from one user to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partition {
    name: Arc<str>,
    single: bool,
}

impl Partition {
    /// The partition of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Partition {
        Partition { name: name.into(), single: false }
    }

    /// One that has a single connection to each origin, and speaks HTTP/1.1 on it as browsers do: what a person has
    /// logged in by NTLM or Negotiate is the connection (RFC 4559 §6). Equal to no partition of [`Partition::new`].
    pub fn single(name: impl Into<Arc<str>>) -> Partition {
        Partition { name: name.into(), single: true }
    }

    pub(crate) fn is_single(&self) -> bool {
        self.single
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    partition: Partition,
    scheme: Scheme,
    destination: Destination,
}

/// All connections.
pub(crate) struct Pool {
    places: Mutex<HashMap<Key, Arc<Place>>>,
    settings: Arc<Settings>,
    /// How many more connections may be opened ahead of requests.
    prepared: Arc<Semaphore>,
    kept: Arc<Kept>,
    /// Whether a task is closing what has long been unused.
    sweeping: Mutex<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(crate) fn new(settings: Arc<Settings>) -> Arc<Pool> {
        let prepared = Arc::new(Semaphore::new(settings.prepared));
        let kept = Kept::new(settings.clone());
        Arc::new(Pool { places: Mutex::default(), settings, prepared, kept, sweeping: Mutex::new(false) })
    }

    /// Where this user's connections to this destination are.
    pub(crate) fn place(
        self: &Arc<Self>,
        partition: &Partition,
        scheme: Scheme,
        destination: &Destination,
    ) -> Arc<Place> {
        let key = Key { partition: partition.clone(), scheme, destination: destination.clone() };
        let (settings, kept) = (self.settings.clone(), self.kept.clone());
        let new = || Arc::new(Place::new(scheme, destination.host(), partition.single, settings, kept));
        let place = lock(&self.places).entry(key).or_insert_with(new).clone();
        self.watch();
        place
    }

    /// Forgets the places of a partition, whose connections close: those in use when they are given back.
    pub(crate) fn leave(&self, partition: &Partition) {
        let left: Vec<Arc<Place>> = {
            let mut places = lock(&self.places);
            places.extract_if(|key, _| key.partition == *partition).map(|(_, place)| place).collect()
        };
        // Without the lock: what closes takes others. A connection in use holds its place, and goes with it.
        drop(left);
    }

    /// The right to open a connection ahead of any request, held until the connection is used or closed; `None` when
    /// too many wait already.
    pub(crate) fn reserve(&self) -> Option<OwnedSemaphorePermit> {
        self.prepared.clone().try_acquire_owned().ok()
    }

    /// Closes what is unused for too long and forgets places that hold nothing; whether anything is left to watch.
    fn sweep(&self) -> bool {
        let mut places = lock(&self.places);
        places.retain(|_, place| place.sweep() || Arc::strong_count(place) > 1);
        !places.is_empty()
    }

    /// Starts the sweeper unless it runs. It ends when nothing is left, or with the pool.
    fn watch(self: &Arc<Self>) {
        if std::mem::replace(&mut *lock(&self.sweeping), true) {
            return;
        }
        let pool: Weak<Pool> = Arc::downgrade(self);
        let pause =
            (self.settings.idle_timeout.min(self.settings.prepared_timeout) / 2).max(Duration::from_secs(1));
        tokio::spawn(async move {
            loop {
                sleep(pause).await;
                let Some(pool) = pool.upgrade() else { return };
                let mut sweeping = lock(&pool.sweeping);
                if !pool.sweep() {
                    *sweeping = false;
                    return;
                }
            }
        });
    }
}
