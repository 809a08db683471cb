//! Connections to origins: kept for the user who opened them, bounded in number, closed when long unused. Knows
//! nothing of requests.

use crate::connect::Destination;
use crate::error::Error;
use crate::settings::Settings;
use crate::upload::UploadBody;
use hyper::client::conn::http1::SendRequest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

/// Whose connections: exchanges of different partitions never share one, so that nothing that an origin ties to a
/// connection passes from one user to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partition(Arc<str>);

impl Partition {
    /// The partition of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Partition {
        Partition(name.into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    partition: Partition,
    destination: Destination,
}

/// An HTTP/1 connection. Dropping it closes it, whatever it was doing.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<UploadBody>,
    driver: AbortHandle,
}

impl Connection {
    pub(crate) fn new(sender: SendRequest<UploadBody>, driver: AbortHandle) -> Self {
        Connection { sender, driver }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// What is kept for one key.
struct Place {
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
}

pub(crate) struct Pool {
    places: Mutex<HashMap<Key, Arc<Place>>>,
    settings: Arc<Settings>,
    /// Whether a task is closing what has long been unused.
    sweeping: Mutex<bool>,
}

/// The right to use one connection of a key; given back on drop.
pub(crate) struct Slot {
    pool: Arc<Pool>,
    place: Arc<Place>,
    _permit: OwnedSemaphorePermit,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    pub(crate) fn new(settings: Arc<Settings>) -> Arc<Pool> {
        Arc::new(Pool { places: Mutex::default(), settings, sweeping: Mutex::new(false) })
    }

    /// Waits until this user may use another connection to this destination.
    pub(crate) async fn slot(
        self: &Arc<Self>,
        partition: Partition,
        to: &Destination,
    ) -> Result<Slot, Error> {
        let place = {
            let key = Key { partition, destination: to.clone() };
            let new = || {
                let slots = Arc::new(Semaphore::new(self.settings.connections.max(1)));
                Arc::new(Place { slots, idle: Mutex::default() })
            };
            lock(&self.places).entry(key).or_insert_with(new).clone()
        };
        let waiting = place.slots.clone().acquire_owned();
        match timeout(self.settings.queue_timeout, waiting).await {
            Ok(Ok(permit)) => Ok(Slot { pool: self.clone(), place, _permit: permit }),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(Error::Busy { host: to.host().into() }),
        }
    }

    /// Closes what is unused for too long and forgets keys that hold nothing; whether anything is left to watch.
    fn sweep(&self) -> bool {
        let mut places = lock(&self.places);
        places.retain(|_, place| {
            let mut idle = lock(&place.idle);
            idle.retain(|entry| self.is_usable(entry));
            !idle.is_empty() || Arc::strong_count(place) > 1
        });
        !places.is_empty()
    }

    fn is_usable(&self, idle: &Idle) -> bool {
        idle.connection.sender.is_ready() && idle.since.elapsed() < self.settings.idle_timeout
    }

    /// Starts the sweeper unless it runs. It ends when nothing is left, or with the pool.
    fn watch(self: &Arc<Self>) {
        if std::mem::replace(&mut *lock(&self.sweeping), true) {
            return;
        }
        let pool: Weak<Pool> = Arc::downgrade(self);
        let pause = self.settings.idle_timeout / 2;
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

impl Slot {
    /// A kept connection that can be used, the one used last.
    pub(crate) fn kept(&self) -> Option<Connection> {
        let mut idle = lock(&self.place.idle);
        while let Some(entry) = idle.pop() {
            if self.pool.is_usable(&entry) {
                return Some(entry.connection);
            }
        }
        None
    }

    /// Keeps a connection for the next exchange.
    pub(crate) fn keep(self, connection: Connection) {
        lock(&self.place.idle).push(Idle { connection, since: Instant::now() });
        self.pool.watch();
    }
}
