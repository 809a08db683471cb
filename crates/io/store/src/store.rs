//! The repository of an end: in memory, bounded by its budget, and on disk where there is one. What memory holds of a URL
//! is all that there is of it; what it has to let go is asked of the disk when it is wanted again.

mod following;
mod forgetting;
mod keeping;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use farhop_freshness::{ResponseDirectives, Stored};
use farhop_replacement::can_answer_again;
use http::{HeaderMap, header};
use tokio::sync::{broadcast, watch};

use crate::body::{Body, Broken, Budget, Copier, Intake, Whole};
use crate::disk::{BodyOnDisk, Disk, Done, OnDisk, Outcome, Torn};
use crate::holdings::{Entry, Holdings, Source};
pub use keeping::Keeping;

use crate::repository::{Change, Eventually, Extent, Held, Meant, Partition, Repository};

/// Changes that a listener may fall behind before it misses some; room for each is kept, 72 bytes. It is a whole page's.
const CHANGES: usize = 512;

/// The share of the memory for responses from which on a body that is read from disk is not held there.
const LONG: u64 = 8;

/// A repository.
pub struct Store(Arc<Inner>);

struct Inner {
    holdings: Mutex<Holdings>,
    budget: Arc<Budget>,
    changes: broadcast::Sender<Change>,
    disk: Option<Disk>,
    /// Numbers of users, where no disk gives them.
    users: std::sync::atomic::AtomicU64,
    /// For those who may outlive it.
    own: Weak<Inner>,
}

/// What is on disk, with its body if that is short.
struct Brought {
    entry: OnDisk,
    bytes: Option<bytes::Bytes>,
}

impl Store {
    /// A repository in memory that shares `budget` with the bodies it is given.
    pub fn in_memory(budget: Arc<Budget>) -> Store {
        Store::new(budget, None)
    }

    /// One that keeps what it holds on `disk`, too.
    ///
    /// # Errors
    /// The thread that writes cannot be started.
    pub fn on(disk: Disk, budget: Arc<Budget>) -> std::io::Result<Store> {
        let store = Store::new(budget, Some(disk));
        let told = Weak::clone(&store.0.own);
        if let Some(disk) = &store.0.disk {
            disk.begin(move |done| {
                if let Some(inner) = told.upgrade() {
                    inner.handle_done(done);
                }
            })?;
        }
        Ok(store)
    }

    /// Waits until what is whole now is on disk, where there is one.
    pub async fn settled(&self) {
        self.0.keep_what_is_whole(&mut self.0.lock());
        if let Some(disk) = &self.0.disk {
            disk.settled().await;
        }
    }

    fn new(budget: Arc<Budget>, disk: Option<Disk>) -> Store {
        let next = disk.as_ref().map_or(0, Disk::next);
        Store(Arc::new_cyclic(|own| Inner {
            holdings: Mutex::new(Holdings::numbered_from(next)),
            budget,
            changes: broadcast::Sender::new(CHANGES),
            disk,
            users: std::sync::atomic::AtomicU64::new(1),
            own: Weak::clone(own),
        }))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(disk) = &self.disk {
            disk.end();
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Holdings> {
        self.holdings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, change: Change) {
        // Nobody may be listening.
        let _ = self.changes.send(change);
    }

    /// What memory says; nothing where the disk has to be asked first.
    fn held(&self, partition: Partition, url: &str, request: &HeaderMap, asks: bool) -> Option<Vec<Held>> {
        let mut holdings = self.lock();
        let holdings = &mut *holdings;
        if asks && self.disk.is_some() && !holdings.use_group(url).is_some_and(|group| group.is_known) {
            return None;
        }
        let mut found = Vec::new();
        for id in holdings.answering(partition, url, request) {
            let Some(entry) = holdings.entry_mut(id) else { continue };
            match &entry.source {
                Some(Source::Growing(growing)) if growing.is_given_up() => {
                    self.remove(holdings, id);
                    continue;
                }
                // Each at its own pace.
                Some(Source::Growing(growing)) => entry.held.body = self.growing(growing, id),
                Some(Source::File(file)) if entry.is_spent() => {
                    entry.held.body = self.asleep(file.clone(), id);
                }
                None if entry.is_spent() => {
                    self.remove(holdings, id);
                    continue;
                }
                Some(Source::File(_)) | None => {}
            }
            found.push(entry.held.clone());
            if let (true, Some(disk)) = (entry.on_disk, &self.disk) {
                disk.used(id);
            }
            holdings.use_entry(id);
        }
        holdings.use_group(url);
        Some(found)
    }

    fn remove(&self, holdings: &mut Holdings, id: u64) {
        let Some((url, entry)) = holdings.remove(id) else { return };
        self.forget_on_disk(holdings, id, &url);
        holdings.drop_if_empty(&url);
        // Of what grows nobody was told.
        if !entry.is_growing() {
            let (partition, bytes) = (entry.held.partition, entry.held.body.written());
            self.announce(Change::Evicted { id, partition, url, bytes });
        }
    }

    /// Also what is not there yet: it may be on its way.
    fn forget_on_disk(&self, holdings: &mut Holdings, id: u64, url: &Arc<str>) {
        if self.disk.as_ref().is_some_and(|disk| disk.remove(id, url)) {
            holdings.group_or_new(url).writes += 1;
        }
    }

    /// Makes room until an eighth of the budget is free for what arrives.
    fn make_room(&self, holdings: &mut Holdings) {
        let most = self.budget.most();
        let is_over = |holdings: &Holdings| self.budget.used() + holdings.costs() > most - most / 8;
        if is_over(holdings) {
            self.keep_what_is_whole(holdings);
        }
        while is_over(holdings) {
            let Some((url, entries)) = holdings.leave_oldest(self.disk.is_some()) else { break };
            for entry in entries.into_iter().filter(|entry| !entry.on_disk) {
                let Held { id, partition, body, .. } = entry.held;
                self.announce(Change::Evicted {
                    id,
                    partition,
                    url: Arc::clone(&url),
                    bytes: body.written(),
                });
            }
        }
    }

    fn store(&self, partition: Partition, url: &str, head: Stored, body: Body) -> u64 {
        let mut holdings = self.lock();
        let holdings = &mut *holdings;
        self.make_room(holdings);
        let id = holdings.number();
        if holdings.is_outdated(url, &head, SystemTime::now()) {
            return id;
        }
        for old in holdings.replaced_by(partition, url, &head) {
            self.remove(holdings, old);
        }
        let url: Arc<str> = url.into();
        if self.disk.is_some() && is_for_disk(&head, partition) {
            self.keep_when_whole(id, body.copier());
            holdings.await_disk(id);
        }
        let held = Held { id, partition, head: Arc::new(head), body };
        holdings.insert(&url, Entry::new(held, false, None));
        holdings.use_entry(id);
        if self.disk.is_some() && holdings.use_group(&url).is_some_and(|group| !group.is_known) {
            // What it replaces may be on disk.
            self.begin_to_bring(holdings, &url);
        }
        self.announce(Change::Stored { id, partition, url });
        id
    }

    fn keep_when_whole(&self, id: u64, copier: Copier) {
        let own = Weak::clone(&self.own);
        tokio::spawn(async move {
            let (Some(whole), Some(inner)) = (copier.whole().await, own.upgrade()) else { return };
            inner.keep(&mut inner.lock(), id, whole);
        });
    }

    /// Has an entry that is whole written down, unless it is gone by now: replaced, or given up.
    fn keep(&self, holdings: &mut Holdings, id: u64, whole: Whole) {
        if !holdings.awaits_disk_no_more(id) {
            return;
        }
        let (Some((url, entry)), Some(disk)) = (holdings.entry(id), &self.disk) else { return };
        let (url, partition, head) = (Arc::clone(url), entry.held.partition, Arc::clone(&entry.held.head));
        if disk.keep(id, partition, &url, &head, whole) {
            holdings.group_or_new(&url).writes += 1;
        }
    }

    /// Has everything written down that is whole, though nobody has noticed yet.
    fn keep_what_is_whole(&self, holdings: &mut Holdings) {
        for id in holdings.awaiting() {
            let entry = holdings.entry(id);
            if let Some(whole) = entry.and_then(|(_, entry)| entry.held.body.copier().now()) {
                self.keep(holdings, id, whole);
            }
        }
    }

    /// The disk's thread has done some of its jobs.
    fn handle_done(&self, done: Vec<Done>) {
        let mut holdings = self.lock();
        for Done { id, url, outcome } in done {
            if let Outcome::Evicted { partition, bytes } = outcome {
                match holdings.entry_mut(id) {
                    // Memory has all of it, for as long as there is room.
                    Some(entry) if entry.source.is_none() => entry.on_disk = false,
                    _ => {
                        holdings.remove(id);
                        holdings.drop_if_empty(&url);
                        self.announce(Change::Evicted { id, partition, url, bytes });
                    }
                }
                continue;
            }
            match (&outcome, holdings.entry_mut(id)) {
                (Outcome::Kept, Some(entry)) => entry.on_disk = true,
                // Memory has nothing of it.
                (Outcome::Refused, Some(entry)) if entry.source.is_some() => {
                    self.remove(&mut holdings, id);
                }
                _ => {}
            }
            if let Some(group) = holdings.group_mut(&url) {
                group.writes = group.writes.saturating_sub(1);
            }
            holdings.drop_if_empty(&url);
        }
    }

    /// Asks the disk for what it has of a URL, once for all who want to know.
    async fn bring(&self, url: &str) {
        // The sender only ever goes.
        let mut coming = self.begin_to_bring(&mut self.lock(), &url.into());
        let _ = coming.changed().await;
    }

    fn begin_to_bring(&self, holdings: &mut Holdings, url: &Arc<str>) -> watch::Receiver<()> {
        let url = Arc::clone(url);
        let group = holdings.group_or_new(&url);
        if let Some(coming) = &group.coming {
            return coming.clone();
        }
        let (brought, coming) = watch::channel(());
        group.coming = Some(coming.clone());
        let own = Weak::clone(&self.own);
        let reading = self.disk.as_ref().map(Disk::reading);
        tokio::spawn(async move {
            let asked = Arc::clone(&url);
            let found = tokio::task::spawn_blocking(move || {
                let reading = reading?;
                let (entries, mut torn) = reading.named(&asked)?;
                let mut found = Vec::new();
                for entry in entries {
                    match reading.short(&entry.body) {
                        Ok(bytes) => found.push(Brought { entry, bytes }),
                        Err(Torn) => torn.push(entry.id),
                    }
                }
                Some((found, torn))
            });
            // A thread that panicked has found nothing out.
            let found = found.await.ok().flatten();
            if let Some(inner) = own.upgrade() {
                inner.handle_brought(&url, found);
            }
            drop(brought);
        });
        coming
    }

    fn handle_brought(&self, url: &Arc<str>, found: Option<(Vec<Brought>, Vec<u64>)>) {
        let mut holdings = self.lock();
        let holdings = &mut *holdings;
        let group = holdings.group_or_new(url);
        group.coming = None;
        let Some((found, torn)) = found else { return holdings.drop_if_empty(url) };
        group.is_known = true;
        let is_outdated = std::mem::take(&mut group.is_outdated);
        let gone = std::mem::take(&mut group.gone);
        for id in torn {
            self.forget_on_disk(holdings, id, url);
        }
        // Newest first: what is older than what is held in its place goes.
        for Brought { entry, bytes } in found.into_iter().rev() {
            let OnDisk { id, partition, head, body, .. } = entry;
            if gone.contains(&id) || holdings.entry(id).is_some() {
                continue;
            }
            if is_outdated || !holdings.replaced_by(partition, url, &head).is_empty() {
                self.forget_on_disk(holdings, id, url);
                self.announce(Change::Evicted { id, partition, url: Arc::clone(url), bytes: body.length() });
                continue;
            }
            let (source, held) = (Some(Source::File(body.clone())), self.awake(body, id, bytes));
            let held = Held { id, partition, head: Arc::new(head), body: held };
            holdings.insert(url, Entry::new(held, true, source));
        }
        holdings.drop_if_empty(url);
    }

    /// A body on disk, of which all may be here already.
    fn awake(&self, body: BodyOnDisk, id: u64, bytes: Option<bytes::Bytes>) -> Body {
        match bytes {
            Some(bytes) => Body::whole(&self.budget, bytes, body.trailers()),
            None => self.asleep(body, id),
        }
    }

    /// A body on disk, which is read when somebody reads it.
    fn asleep(&self, body: BodyOnDisk, id: u64) -> Body {
        let own = Weak::clone(&self.own);
        // A long one only passes: it would take the room of everything else.
        let limit = if body.length() > self.budget.most() / LONG { 0 } else { u64::MAX };
        Body::asleep(&self.budget, limit, body.length(), move |intake| {
            tokio::spawn(async move {
                if let Some(inner) = own.upgrade() {
                    inner.read(body, id, intake).await;
                }
            });
        })
    }

    async fn read(&self, body: BodyOnDisk, id: u64, mut intake: Intake) {
        let Some(reading) = self.disk.as_ref().map(Disk::reading) else { return };
        let mut begun = None;
        for place in 0.. {
            let (reading, from, file) = (reading.clone(), body.clone(), begun.take());
            let chunk = tokio::task::spawn_blocking(move || {
                // Opened once: what is dropped, replaced or set aside while it is read is read to its end.
                let file = file.map_or_else(|| reading.open(&from), Ok)?;
                let (bytes, is_last) = file.chunk(place)?;
                Ok((file, bytes, is_last))
            });
            match chunk.await {
                Ok(Ok((file, bytes, is_last))) => {
                    begun = Some(file);
                    intake.write(bytes).await;
                    if is_last {
                        return intake.finish(body.trailers());
                    }
                    if intake.gives_up_unwanted() {
                        return;
                    }
                }
                Ok(Err(Torn)) | Err(_) => {
                    tracing::warn!(target: "farhop", "a response held on disk is damaged and is asked for anew");
                    self.remove(&mut self.lock(), id);
                    // As when a carrier is lost: whoever reads it goes on with what ground has of it.
                    return intake.fail(Broken::Lost);
                }
            }
        }
    }
}

/// Whether to write a response down: never what must not be, nor what could not answer anything when it is read.
fn is_for_disk(head: &Stored, partition: Partition) -> bool {
    let has_validator =
        head.fields.contains_key(header::ETAG) || head.fields.contains_key(header::LAST_MODIFIED);
    // RFC 9111 §5.2.2.5: what may not be stored is not here; if it were, it would still not be written.
    !ResponseDirectives::of(&head.fields).no_store
        && can_answer_again(head.lifetime(partition.scope()), has_validator)
}

impl Repository for Store {
    fn find<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        request: &'a HeaderMap,
    ) -> Eventually<'a, Vec<Held>> {
        if let Some(found) = self.0.held(partition, url, request, true) {
            return Box::pin(std::future::ready(found));
        }
        Box::pin(async move {
            self.0.bring(url).await;
            self.0.held(partition, url, request, false).unwrap_or_default()
        })
    }

    fn store<'a>(
        &'a self,
        partition: Partition,
        url: &'a str,
        head: Stored,
        body: Body,
    ) -> Eventually<'a, u64> {
        Box::pin(std::future::ready(self.0.store(partition, url, head, body)))
    }

    fn keep_passing(&self, partition: Partition, url: &str, head: &Stored, asker: u64) -> Option<Keeping> {
        Keeping::begin(&self.0, partition, url, head, asker)
    }

    fn keep_outgrown(&self, id: u64, asker: u64, most: u64) -> Option<Keeping> {
        Keeping::of_outgrown(&self.0, id, asker, most)
    }

    fn freshen<'a>(&'a self, id: u64, head: Stored) -> Eventually<'a, ()> {
        let mut holdings = self.0.lock();
        let head = Arc::new(head);
        if let Some((url, entry)) = holdings.renew(id, Arc::clone(&head)) {
            let partition = entry.held.partition;
            if self.0.disk.as_ref().is_some_and(|disk| disk.renew(id, &url, &head)) {
                holdings.group_or_new(&url).writes += 1;
            }
            self.0.announce(Change::Stored { id, partition, url });
        }
        Box::pin(std::future::ready(()))
    }

    fn invalidate<'a>(&'a self, url: &'a str) -> Eventually<'a, ()> {
        let mut holdings = self.0.lock();
        let url: Arc<str> = url.into();
        holdings.invalidate(Arc::clone(&url), SystemTime::now());
        let held = |group: &crate::holdings::Group| group.entries.iter().map(|entry| entry.held.id).collect();
        let ids: Vec<u64> = holdings.group(&url).map_or_else(Vec::new, held);
        ids.into_iter().for_each(|id| self.0.remove(&mut holdings, id));
        let mut coming = None;
        if self.0.disk.is_some() && !holdings.group_or_new(&url).is_known {
            holdings.group_or_new(&url).is_outdated = true;
            coming = Some(self.0.begin_to_bring(&mut holdings, &url));
        }
        drop(holdings);
        Box::pin(async move {
            if let Some(coming) = &mut coming {
                // The sender only ever goes.
                let _ = coming.changed().await;
            }
            // A process that is killed after this must not find it again.
            let is_to_go = self.0.lock().group(&url).is_some_and(|group| group.writes > 0);
            if let (Some(disk), true) = (&self.0.disk, is_to_go) {
                disk.settled().await;
            }
        })
    }

    fn evict(&self, id: u64) -> Eventually<'_, ()> {
        self.0.remove(&mut self.0.lock(), id);
        Box::pin(std::future::ready(()))
    }

    fn forget(&self, partition: Option<Partition>, is_meant: Meant) -> Eventually<'_, u64> {
        Box::pin(async move { self.0.forget(partition, is_meant).await })
    }

    fn clear(&self) -> Eventually<'_, ()> {
        let mut holdings = self.0.lock();
        let ids: Vec<u64> = holdings.ids().collect();
        ids.into_iter().for_each(|id| self.0.remove(&mut holdings, id));
        holdings.outdate_what_comes();
        if let Some(disk) = &self.0.disk {
            disk.clear();
            self.0.announce(Change::Cleared);
        }
        drop(holdings);
        Box::pin(async move {
            if let Some(disk) = &self.0.disk {
                disk.settled().await;
            }
        })
    }

    fn entry(&self, id: u64) -> Eventually<'_, Option<(Arc<str>, Held)>> {
        if let Some((url, entry)) = self.0.lock().entry(id) {
            let mut held = entry.held.clone();
            if let Some(Source::Growing(growing)) = &entry.source {
                held.body = self.0.growing(growing, id);
            }
            return Box::pin(std::future::ready(Some((Arc::clone(url), held))));
        }
        let Some(reading) = self.0.disk.as_ref().map(Disk::reading) else {
            return Box::pin(std::future::ready(None));
        };
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || reading.by_number(id)).await.ok().flatten()?;
            let holdings = self.0.lock();
            if holdings.group(&found.url).is_some() {
                // Memory's word counts.
                return holdings.entry(id).map(|(url, entry)| (Arc::clone(url), entry.held.clone()));
            }
            let body = self.0.asleep(found.body.clone(), id);
            Some((found.url, Held { id, partition: found.partition, head: Arc::new(found.head), body }))
        })
    }

    fn newest(&self, most: usize) -> Eventually<'_, Vec<u64>> {
        let mut ids: Vec<u64> = self.0.lock().ids().collect();
        let reading = self.0.disk.as_ref().map(Disk::reading);
        Box::pin(async move {
            if let Some(reading) = reading {
                // A thread that panicked has found nothing.
                ids.extend(
                    tokio::task::spawn_blocking(move || reading.newest(most)).await.unwrap_or_default(),
                );
            }
            ids.sort_unstable_by(|a, b| b.cmp(a));
            ids.dedup();
            ids.truncate(most);
            ids
        })
    }

    fn user(&self, name: &str) -> u64 {
        match &self.0.disk {
            Some(disk) => disk.number(name),
            None => self.0.users.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        }
    }

    fn on_disk(&self) -> Eventually<'_, Option<Extent>> {
        Box::pin(async move {
            let disk = self.0.disk.as_ref()?;
            let (reading, refused) = (disk.reading(), disk.refused());
            let (entries, bytes) = tokio::task::spawn_blocking(move || reading.extent()).await.ok()?;
            Some(Extent { entries, bytes, refused })
        })
    }

    fn close(&self) -> Eventually<'_, ()> {
        Box::pin(async move {
            self.settled().await;
            let inner = Arc::clone(&self.0);
            // A thread that panicked has closed what it could.
            let _ = tokio::task::spawn_blocking(move || inner.disk.as_ref().map(Disk::end)).await;
        })
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.0.changes.subscribe()
    }
}

#[cfg(test)]
mod tests;
