//! The first window of a carrier's connections, which the kernel takes from the route to the peer: put there, before a connection
//! begins, by whoever has the right to.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

type Put = dyn Fn(IpAddr) -> io::Result<()> + Send + Sync;

/// Puts a first window before connections to an address. Clones are one.
#[derive(Clone)]
pub struct FirstWindow {
    put: Arc<Put>,
    /// What could not be put is told once.
    refused: Arc<Mutex<HashSet<IpAddr>>>,
}

impl fmt::Debug for FirstWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FirstWindow")
    }
}

impl FirstWindow {
    /// Has `put` do it, which may block for a moment.
    pub fn new(put: impl Fn(IpAddr) -> io::Result<()> + Send + Sync + 'static) -> Self {
        FirstWindow { put: Arc::new(put), refused: Arc::default() }
    }

    /// For connections to `peer` that begin from now on. Where it cannot be, the log says so once, and they begin as the system
    /// has it.
    pub(super) async fn towards(&self, peer: IpAddr) {
        let peer = peer.to_canonical();
        if peer.is_loopback() {
            return; // no route leads there
        }
        let put = Arc::clone(&self.put);
        let done = tokio::task::spawn_blocking(move || put(peer)).await.map_err(io::Error::other);
        let Err(error) = done.and_then(|put| put) else { return };
        if self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(peer) {
            tracing::warn!("tcp_initial_window is not in force towards {peer}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_put_before_each_connection_but_those_within_this_machine_and_a_refusal_stops_none() {
        let asked: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let first_window = FirstWindow::new(move |peer| {
            noted.lock().unwrap().push(peer);
            Err(io::ErrorKind::PermissionDenied.into())
        });
        for peer in ["::ffff:192.0.2.7", "192.0.2.7", "127.0.0.1", "::1", "2001:db8::7"] {
            first_window.towards(peer.parse().unwrap()).await;
        }
        let asked: Vec<String> = asked.lock().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            asked,
            ["192.0.2.7", "192.0.2.7", "2001:db8::7"],
            "anew each time: the way may have changed"
        );
        assert_eq!(first_window.refused.lock().unwrap().len(), 2, "each is told once");
    }
}
