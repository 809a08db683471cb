//! How most halves speak with each other: one question, one answer, a stream for each; and how a question that many ask at once
//! is asked once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use farhop_htotp::frame::{Failure, Tunnel};
use farhop_transport::hop::{Arrival, Hop, Receiver, Sender};
use tokio::sync::watch;

/// Asks the ground half; the answer, of at most so many bytes, or nothing where there is none.
pub async fn ask(hop: &Hop, asked: Tunnel, question: Bytes, most: usize) -> Option<Vec<u8>> {
    let (mut sender, mut receiver) = hop.open_tunnel(asked);
    sender.write(question).await.ok()?;
    sender.finish(None);
    hear(&mut receiver, most).await
}

/// All that the other half says, of at most so many bytes.
pub async fn hear(receiver: &mut Receiver, most: usize) -> Option<Vec<u8>> {
    let mut said = Vec::new();
    loop {
        match receiver.next().await {
            Arrival::TunnelOpened => {}
            Arrival::Body(bytes) if said.len() + bytes.len() <= most => said.extend_from_slice(&bytes),
            Arrival::Ended => return Some(said),
            _ => return None,
        }
    }
}

/// Answers the remote half with what comes of `finding`, unless it loses interest before.
pub async fn answer(mut sender: Sender, finding: impl Future<Output = Result<Vec<u8>, Failure>>) {
    let found = tokio::select! {
        found = finding => found,
        _ = sender.gone() => return,
    };
    match found {
        Ok(answer) => {
            sender.accept_tunnel();
            if sender.write(answer.into()).await.is_ok() {
                sender.finish(None);
            }
        }
        Err(failure) => sender.fail(failure),
    }
}

/// Things that are being found out, each once however many want to know.
#[derive(Debug)]
pub struct Once<K, V>(Mutex<HashMap<K, watch::Sender<Option<V>>>>);

impl<K, V> Default for Once<K, V> {
    fn default() -> Self {
        Once(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone + Send + 'static, V: Clone + Send + Sync + 'static> Once<K, V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<Option<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins `finding` in a task of its own, which goes on though nobody waits, or joins who has begun it.
    pub fn find<F>(self: &Arc<Self>, key: K, finding: F) -> impl Future<Output = Option<V>> + use<K, V, F>
    where
        F: Future<Output = Option<V>> + Send + 'static,
    {
        let mut asked = self.lock();
        let mut told = match asked.get(&key) {
            Some(tell) => tell.subscribe(),
            None => {
                let (tell, told) = watch::channel(None);
                asked.insert(key.clone(), tell);
                let once = Arc::clone(self);
                tokio::spawn(async move {
                    let found = finding.await;
                    let tell = once.lock().remove(&key);
                    // Nobody may be waiting.
                    tell.into_iter().for_each(|tell| drop(tell.send_replace(found.clone())));
                });
                told
            }
        };
        drop(asked);
        async move {
            told.changed().await.ok()?;
            told.borrow().clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::oneshot;

    #[tokio::test(start_paused = true)]
    async fn what_many_want_to_know_is_found_out_once() {
        let (once, begun) = (Arc::new(Once::<u8, u32>::default()), Arc::new(AtomicUsize::new(0)));
        let (tell, told) = oneshot::channel();
        let counted = Arc::clone(&begun);
        let first = once.find(1, async move {
            counted.fetch_add(1, Ordering::Relaxed);
            told.await.ok()
        });
        let second = once.find(1, async { panic!("it is being found out") });
        let other = once.find(2, async { None });
        assert_eq!(other.await, None);
        tell.send(7).unwrap();
        assert_eq!((first.await, second.await), (Some(7), Some(7)));
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        assert_eq!(once.find(1, async { Some(8) }).await, Some(8), "it is not kept here");
    }
}
