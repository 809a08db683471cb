//! Tells of what the repository has taken in whole, and of what it has given up.

use farhop_events::Event;
use farhop_store::Change;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::Remote;

/// An entry's body is whole. An entry that is gone by now is not told of.
pub(crate) async fn tell_stored(remote: &Remote, stored: u64) {
    if let Some((url, held)) = remote.repository().entry(stored).await {
        let url = remote.bus().url(&url);
        remote.bus().emit(Event::Stored { url, bytes: held.body.written() });
    }
}

/// Tells of what is given up, until it is dropped.
pub(crate) async fn tell_evicted(remote: &Remote, mut changes: Receiver<Change>) {
    loop {
        match changes.recv().await {
            Ok(Change::Evicted { url, bytes, .. }) => {
                remote.bus().emit(Event::Evicted { url: remote.bus().url(&url), bytes });
            }
            // More was given up at once than the channel holds.
            Ok(Change::Stored { .. } | Change::Cleared) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
