//! Accepts TCP connections and bounds how many are served at once. No HTTP here.

use crate::connection::Connection;
use crate::settings::Settings;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// That further clients wait is said once in so long.
const AGAIN: Duration = Duration::from_secs(60);

/// Why no clients can be accepted.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another program has the port.
    #[error("{0} is in use by another program: stop that one, or set another listen address")]
    InUse(SocketAddr),
    /// The address is of no interface here.
    #[error("{0} is no address of this machine: set one that `ip address` shows")]
    NoSuchAddress(SocketAddr),
    /// A port below 1024 without the right to it.
    #[error(
        "no permission to listen on {0}: set a port of 1024 or above, or let the service manager pass the socket"
    )]
    Forbidden(SocketAddr),
    /// Anything else.
    #[error("can't listen on {address}: {cause}")]
    Other {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    settings: Arc<Settings>,
    places: Arc<Semaphore>,
    /// When it was last said that there is none.
    told: Mutex<Option<Instant>>,
}

/// A place among the connections served at once, until it is dropped.
#[derive(Debug)]
pub struct Place(OwnedSemaphorePermit);

impl Listener {
    /// Listens on `address`.
    ///
    /// # Errors
    /// One that names the address and what to do.
    pub async fn bind(address: SocketAddr, settings: Settings) -> Result<Listener, ListenError> {
        let listener = TcpListener::bind(address).await.map_err(|cause| match cause.kind() {
            io::ErrorKind::AddrInUse => ListenError::InUse(address),
            io::ErrorKind::AddrNotAvailable => ListenError::NoSuchAddress(address),
            io::ErrorKind::PermissionDenied => ListenError::Forbidden(address),
            _ => ListenError::Other { address, cause },
        })?;
        Ok(Listener::from_listener(listener, settings))
    }

    /// Takes over a socket that listens already, such as an inherited one.
    pub fn from_listener(listener: TcpListener, settings: Settings) -> Listener {
        let places = Arc::new(Semaphore::new(settings.connections));
        Listener { listener, settings: Arc::new(settings), places, told: Mutex::default() }
    }

    /// The address listened on, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// The system can't tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next client and its address, once there is a place for it. Never fails for good: a client that left
    /// already is skipped, and when descriptors run out it waits for some. Dropping the future loses nothing.
    pub async fn accept(&self) -> (Connection, SocketAddr) {
        self.accept_with(|| self.settings.clone()).await
    }

    /// The same for one that is told what `settings` say when it comes.
    pub async fn accept_with(&self, settings: impl Fn() -> Arc<Settings>) -> (Connection, SocketAddr) {
        let (stream, peer, place) = self.accept_raw().await;
        let settings = settings();
        settings.trips.measure(&stream);
        (Connection::new(stream, settings).holding(Some(place.0)), peer)
    }

    /// A place, as soon as there is one.
    async fn place(&self) -> OwnedSemaphorePermit {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return place;
        }
        if self.is_news(Instant::now()) {
            let most = self.settings.connections;
            tracing::warn!(
                "{most} connections are open, as many as `connections` lets be: further ones wait for one to end"
            );
        }
        self.places.clone().acquire_owned().await.expect("nobody closes the semaphore")
    }

    /// Whether it has not been said lately that clients wait.
    fn is_news(&self, now: Instant) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = told.is_none_or(|told| now.duration_since(told) >= AGAIN);
        if is_news {
            *told = Some(now);
        }
        is_news
    }

    /// As [`Listener::accept`], for connections that may not be HTTP.
    pub async fn accept_raw(&self) -> (TcpStream, SocketAddr, Place) {
        let place = self.place().await;
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // Responses leave at once, small tails included.
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "client left before it was served");
                        continue;
                    }
                    // It is worth no client.
                    let _ = farhop_netdev::keep_urgent_in_place(&stream);
                    return (stream, peer, Place(place));
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "can't accept a client, trying again in 100 ms");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn that_clients_wait_is_told_when_it_begins_and_once_a_minute_then() {
        let settings = Settings { connections: 1, ..Settings::default() };
        let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), settings).await.unwrap();
        let first = listener.place().await;
        assert!(listener.told.lock().unwrap().is_none(), "the last place is no lack");
        assert!(tokio::time::timeout(Duration::from_secs(1), listener.place()).await.is_err());
        assert!(listener.told.lock().unwrap().is_some());
        assert!(!listener.is_news(Instant::now()), "a flood is one line");
        assert!(listener.is_news(Instant::now() + AGAIN));
        drop(first);
        drop(listener.place().await);
    }
}
