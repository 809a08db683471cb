//! What a repository of responses is. Bodies may still be arriving while they are read. Whether a response may be
//! stored or used is `farhop_freshness`'s word.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use farhop_freshness::{Scope, Stored};
use http::HeaderMap;
use tokio::sync::broadcast;

use crate::body::Body;
use crate::store::Keeping;

/// A future as a repository returns it: memory answers at once, a disk does not.
pub type Eventually<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which URLs are meant.
pub type Meant = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Whose responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Partition {
    /// Everyone's: only what RFC 9111 lets a shared cache keep.
    Shared,
    /// One user's own.
    User(u64),
}

impl Partition {
    /// By which rules its responses are judged.
    pub fn scope(self) -> Scope {
        match self {
            Partition::Shared => Scope::Shared,
            Partition::User(_) => Scope::Private,
        }
    }
}

/// A response as it is held.
#[derive(Debug, Clone)]
pub struct Held {
    /// Names this entry.
    pub id: u64,
    /// Whose it is.
    pub partition: Partition,
    /// Its head.
    pub head: Arc<Stored>,
    /// Its body, perhaps still arriving.
    pub body: Body,
}

/// What changed; ground's mirror follows these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A response is held from now on, or its head was renewed.
    Stored {
        /// Names the entry.
        id: u64,
        /// Whose.
        partition: Partition,
        /// What it answers.
        url: Arc<str>,
    },
    /// It is held no longer.
    Evicted {
        /// Names the entry.
        id: u64,
        /// Whose.
        partition: Partition,
        /// What it answered.
        url: Arc<str>,
        /// Bytes of its body.
        bytes: u64,
    },
    /// Nothing is held any longer.
    Cleared,
}

/// Where responses are held.
pub trait Repository: Send + Sync + 'static {
    /// Responses to GET `url` whose `Vary` matches `request`, newest first.
    fn find<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        request: &'a HeaderMap,
    ) -> Eventually<'a, Vec<Held>>;
    /// Holds a response; what it replaces goes. The body may still be arriving; when it breaks the entry goes. One that was
    /// asked for before its URL was invalidated is not held: its number names nothing.
    fn store<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        head: Stored,
        body: Body,
    ) -> Eventually<'a, u64>;
    /// Begins to keep a response while its body passes, which is only found once it is whole: one that may be too long for memory. It
    /// comes for `asker`, who gets no more than a share of the room for such bodies. Nothing where there is no disk, or it is not
    /// worth its room, or was asked for before its URL was invalidated.
    fn keep_passing(&self, partition: Partition, url: &str, head: &Stored, asker: u64) -> Option<Keeping>;
    /// Goes on on disk with the entry `id`, whose body has become too long for memory: it is found again once it is whole, and given up
    /// if it comes to more than `most` bytes. Nothing where there is no disk, or the entry is gone or not worth its room.
    fn keep_outgrown(&self, id: u64, asker: u64, most: u64) -> Option<Keeping>;
    /// Puts a new head (after a 304) in place of the old.
    fn freshen<'a>(&'a self, id: u64, head: Stored) -> Eventually<'a, ()>;
    /// Drops every variant of `url`, in every partition: at once, and on disk before it completes.
    fn invalidate<'a>(&'a self, url: &'a str) -> Eventually<'a, ()>;
    /// Drops one entry.
    fn evict(&self, id: u64) -> Eventually<'_, ()>;
    /// Drops what answers the URLs that are meant, in every partition or in this one alone, in memory and on disk before it
    /// completes; gives how many entries.
    fn forget(&self, partition: Option<Partition>, is_meant: Meant) -> Eventually<'_, u64>;
    /// Drops everything.
    fn clear(&self) -> Eventually<'_, ()>;
    /// The entry of this number, and what it answers.
    fn entry(&self, id: u64) -> Eventually<'_, Option<(Arc<str>, Held)>>;
    /// The numbers of the newest entries, newest first, at most so many.
    fn newest(&self, most: usize) -> Eventually<'_, Vec<u64>>;
    /// The number of the user of this name: never another's, and the same after a restart where anything outlives one.
    fn user(&self, name: &str) -> u64;
    /// What is held on disk, if there is one.
    fn on_disk(&self) -> Eventually<'_, Option<Extent>>;
    /// Ends the disk's part, after writing down what is whole. What is held goes on to be held in memory.
    fn close(&self) -> Eventually<'_, ()>;
    /// Every store and evict from now on.
    fn changes(&self) -> broadcast::Receiver<Change>;
}

/// What a disk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Responses.
    pub entries: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Bodies that were not kept, since there was no room while they came or the disk could not follow.
    pub refused: u64,
}
