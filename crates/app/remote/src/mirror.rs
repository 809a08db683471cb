//! Tells ground what the repository holds: on each new carrier all of it, newest first, and from then on every store
//! and eviction. It goes in small portions, after everything that someone waits for. Which of it answers a request is
//! still `lookup`'s word.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use farhop_freshness::ResponseDirectives;
use farhop_htotp::mirror::{Bound, Entry, Word, fingerprint};
use farhop_store::{Change, Held, Partition};
use farhop_transport::hop::Hop;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::Remote;
use crate::lookup::depends_on;

/// Entries that are told of when a carrier comes up.
const MOST: usize = 50_000;
/// Entries in one word.
const PORTION: usize = 128;
/// Bytes that may wait on the carrier before the next word.
const BACKLOG: usize = 2_048;
/// How often room for the next word, and bodies that have become whole, are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// What is not fresh for longer than this is not worth telling of: ground would not count on it.
const SHORTEST: Duration = Duration::from_secs(10);

/// What has to be told.
#[derive(Default)]
struct Log {
    /// Of what was there before, newest first.
    listing: VecDeque<u64>,
    /// Stored since; told of once their bodies are whole.
    stored: VecDeque<u64>,
    evicted: Vec<u64>,
}

/// Keeps ground's mirror until it is dropped with the carrier.
pub(crate) async fn keep(remote: &Remote, hop: &Hop) -> Infallible {
    loop {
        let mut changes = remote.repository().changes();
        let mut log = Log::default();
        log.listing.extend(remote.repository().newest(MOST).await);
        hop.tell_mirror(Word::Reset);
        while log.follow(&mut changes).await.is_ok() {
            log.tell(remote, hop).await;
        }
        // More changed than the channel holds: what is held is told anew.
    }
}

/// Some changes were missed, or are too many to be told one by one.
struct Missed;

impl Log {
    /// Takes changes in until something can be told.
    async fn follow(&mut self, changes: &mut Receiver<Change>) -> Result<(), Missed> {
        if self.is_told() {
            match changes.recv().await {
                Ok(change) => self.note(change)?,
                Err(RecvError::Lagged(_)) => return Err(Missed),
                // The repository outlives every carrier.
                Err(RecvError::Closed) => std::future::pending::<()>().await,
            }
        } else {
            tokio::time::sleep(LOOK).await;
        }
        loop {
            match changes.try_recv() {
                Ok(change) => self.note(change)?,
                Err(TryRecvError::Lagged(_)) => return Err(Missed),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    fn is_told(&self) -> bool {
        self.listing.is_empty() && self.stored.is_empty() && self.evicted.is_empty()
    }

    fn note(&mut self, change: Change) -> Result<(), Missed> {
        match change {
            Change::Stored { id, .. } => self.stored.push_back(id),
            // What is still to be told of is looked up then, and not found.
            Change::Evicted { id, .. } => self.evicted.push(id),
            // All of it is told anew: nothing.
            Change::Cleared => return Err(Missed),
        }
        Ok(())
    }

    /// Tells the next portion, if the carrier has sent the last.
    async fn tell(&mut self, remote: &Remote, hop: &Hop) {
        if hop.mirror_backlog() > BACKLOG {
            return;
        }
        if !self.evicted.is_empty() {
            let first = self.evicted.len().min(8 * PORTION);
            hop.tell_mirror(Word::Evicted(self.evicted.drain(..first).collect()));
        }
        let (mut entries, mut arriving) = (Vec::new(), VecDeque::new());
        while entries.len() < PORTION {
            let Some(number) = self.stored.pop_front() else { break };
            match look(remote, number).await {
                Look::Whole(entry) => entries.push(entry),
                Look::Arriving => arriving.push_back(number),
                Look::Untold => {}
            }
        }
        arriving.append(&mut self.stored);
        self.stored = arriving;
        while entries.len() < PORTION {
            let Some(number) = self.listing.pop_front() else { break };
            match look(remote, number).await {
                Look::Whole(entry) => entries.push(entry),
                Look::Arriving => self.stored.push_back(number),
                Look::Untold => {}
            }
        }
        if !entries.is_empty() {
            hop.tell_mirror(Word::Stored(entries));
        }
    }
}

enum Look {
    Whole(Entry),
    Arriving,
    /// Gone, broken, stale, or not to be told in these words.
    Untold,
}

async fn look(remote: &Remote, number: u64) -> Look {
    match remote.repository().entry(number).await {
        Some((_, held)) if held.body.is_broken() => Look::Untold,
        Some((_, held)) if !held.body.is_whole() => Look::Arriving,
        Some((url, held)) => entry(number, &url, &held).map_or(Look::Untold, Look::Whole),
        None => Look::Untold,
    }
}

fn entry(number: u64, url: &str, held: &Held) -> Option<Entry> {
    let (head, now, scope) = (&held.head, SystemTime::now(), held.partition.scope());
    let fresh = head.lifetime(scope).saturating_sub(head.age(now));
    if fresh <= SHORTEST || ResponseDirectives::of(&head.fields).no_cache {
        return None;
    }
    let user = match held.partition {
        Partition::Shared => None,
        Partition::User(user) => Some(user),
    };
    let names = depends_on(held.partition, head)?;
    let bound = Bound::to(&names)?;
    let fingerprint = fingerprint(user, url, bound, &head.nominated);
    Some(Entry { number, user, bound, fresh_s: fresh.as_secs(), fingerprint })
}
