//! A response that is too long for memory: written to disk while it passes, and held once it is whole. Until then nobody finds
//! it, and when it is dropped before, nothing of it stays.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use farhop_freshness::Stored;
use http::HeaderMap;

use super::{Inner, is_for_disk};
use crate::disk::{Disk, Growing};
use crate::holdings::Entry;
use crate::repository::{Change, Held, Partition};

/// See the module.
pub struct Keeping {
    inner: Arc<Inner>,
    partition: Partition,
    url: Arc<str>,
    head: Stored,
    /// As long as it may become whole.
    growing: Option<Growing>,
    /// Its trailers and what came across for it, once that is known.
    ended: Option<(Option<HeaderMap>, u64)>,
}

impl Keeping {
    pub(super) fn begin(
        inner: &Arc<Inner>,
        partition: Partition,
        url: &str,
        head: &Stored,
    ) -> Option<Keeping> {
        let disk = inner.disk.as_ref().filter(|_| is_for_disk(head, partition))?;
        let id = inner.lock().number();
        let growing = Some(disk.begin_body(id)?);
        let (url, head) = (url.into(), head.clone());
        Some(Keeping { inner: Arc::clone(inner), partition, url, head, growing, ended: None })
    }

    fn disk(&self) -> Option<&Disk> {
        self.inner.disk.as_ref()
    }

    /// More of its body. Waits for nothing: where the disk cannot follow, nothing is kept.
    pub fn write(&mut self, bytes: &Bytes) {
        let Some(mut growing) = self.growing.take() else { return };
        let Some(disk) = self.disk() else { return };
        match disk.grow(&mut growing, bytes) {
            true => self.growing = Some(growing),
            false => disk.abandon(&growing),
        }
    }

    /// That was all of its body, for which so many bytes came across.
    pub fn ended(&mut self, trailers: Option<HeaderMap>, crossed: u64) {
        self.ended = Some((trailers, crossed));
    }

    /// Holds it, if all of it is on disk; its number then.
    pub async fn finish(mut self) -> Option<u64> {
        let about = self.ended.take()?;
        let is_whole = match (self.disk(), &self.growing) {
            (Some(disk), Some(growing)) => disk.close_body(growing).await,
            _ => false,
        };
        let growing = self.growing.take()?;
        let number = is_whole.then(|| self.hold(&growing, about)).flatten();
        if let (None, Some(disk)) = (number, self.disk()) {
            disk.abandon(&growing);
        }
        number
    }

    fn hold(&self, growing: &Growing, about: (Option<HeaderMap>, u64)) -> Option<u64> {
        let Keeping { inner, partition, url, head, .. } = self;
        let (id, partition) = (growing.id(), *partition);
        let mut holdings = inner.lock();
        let holdings = &mut *holdings;
        // What was asked for later may have come sooner.
        let is_newer = |entry: &Entry| {
            let Held { id: other, partition: of, head: known, .. } = &entry.held;
            *other > id && *of == partition && known.nominated == head.nominated
        };
        let is_replaced = holdings.group(url).is_some_and(|group| group.entries.iter().any(is_newer));
        if is_replaced || holdings.is_outdated(url, head, SystemTime::now()) {
            return None;
        }
        let body = self.disk()?.keep_grown(growing, partition, url, head, about)?;
        for old in holdings.replaced_by(partition, url, head) {
            inner.remove(holdings, old);
        }
        let source = Some(body.clone());
        let held = Held { id, partition, head: Arc::new(head.clone()), body: inner.asleep(body, id) };
        holdings.insert(url, Entry { held, on_disk: false, source });
        let group = holdings.group_or_new(url);
        group.writes += 1;
        if !group.is_known {
            // What it replaces may be on disk.
            inner.begin_to_bring(holdings, url);
        }
        inner.announce(Change::Stored { id, partition, url: Arc::clone(url) });
        Some(id)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if let (Some(disk), Some(growing)) = (self.disk(), &self.growing) {
            disk.abandon(growing);
        }
    }
}
