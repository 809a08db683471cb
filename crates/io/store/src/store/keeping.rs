//! A response that is kept while it passes, and held once it is whole: its beginning waits in memory, and what is longer is written
//! to disk as it comes. Until then nobody finds it, and when it is dropped before, nothing of it stays.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use farhop_freshness::Stored;
use http::HeaderMap;

use super::{Inner, is_for_disk};
use crate::body::Body;
use crate::disk::{BEGINNING, Disk, Followed, Growing, Seat};
use crate::holdings::{Entry, Source};
use crate::repository::{Change, Held, Partition};

/// Bytes that are given to the disk at once.
const AT_ONCE: usize = 2 << 20;

/// See the module.
pub struct Keeping {
    inner: Arc<Inner>,
    id: u64,
    partition: Partition,
    url: Arc<str>,
    head: Stored,
    seat: Seat,
    so_far: SoFar,
    /// Its bytes so far, and how many more it may have.
    length: u64,
    room: u64,
    /// It is found already.
    is_offered: bool,
    /// Its trailers and what came across for it, once that is known.
    ended: Option<Ended>,
}

type Ended = (Option<HeaderMap>, u64);

/// What has come of it.
enum SoFar {
    /// Little.
    InMemory(BytesMut),
    OnDisk(Growing),
    /// It will not become whole.
    Lost,
}

impl Keeping {
    pub(super) fn begin(
        inner: &Arc<Inner>,
        partition: Partition,
        url: &str,
        head: &Stored,
        asker: u64,
    ) -> Option<Keeping> {
        let disk = inner.disk.as_ref().filter(|_| is_for_disk(head, partition))?;
        let url: Arc<str> = url.into();
        let mut holdings = inner.lock();
        if holdings.is_outdated(&url, head, SystemTime::now()) {
            return None;
        }
        let id = holdings.number();
        // From now on what makes it doubtful is known, whatever else is invalidated meanwhile.
        holdings.await_body(id, &url);
        drop(holdings);
        Some(Keeping::new(inner, (id, partition, url, head.clone()), disk.seat(asker), u64::MAX))
    }

    /// See [`Repository::keep_outgrown`](crate::Repository::keep_outgrown). Its number is a new one: whatever is held in its place by
    /// now would have taken the entry away.
    pub(super) fn of_outgrown(inner: &Arc<Inner>, id: u64, asker: u64, most: u64) -> Option<Keeping> {
        let mut holdings = inner.lock();
        let (url, Held { partition, head, .. }) =
            holdings.entry(id).map(|(url, entry)| (Arc::clone(url), entry.held.clone()))?;
        let disk = inner.disk.as_ref().filter(|_| is_for_disk(&head, partition))?;
        inner.remove(&mut holdings, id);
        let id = holdings.number();
        holdings.await_body(id, &url);
        drop(holdings);
        Some(Keeping::new(inner, (id, partition, url, (*head).clone()), disk.seat(asker), most))
    }

    fn new(
        inner: &Arc<Inner>,
        (id, partition, url, head): (u64, Partition, Arc<str>, Stored),
        seat: Seat,
        room: u64,
    ) -> Keeping {
        let (inner, so_far) = (Arc::clone(inner), SoFar::InMemory(BytesMut::new()));
        Keeping {
            inner,
            id,
            partition,
            url,
            head,
            seat,
            so_far,
            length: 0,
            room,
            is_offered: false,
            ended: None,
        }
    }

    /// Lets it be found and read from now on, as it comes; `false` where there is no room for its file.
    pub fn offer(&mut self) -> bool {
        let SoFar::InMemory(beginning) = std::mem::replace(&mut self.so_far, SoFar::Lost) else {
            return false;
        };
        let Some(growing) = self.begin_file(beginning.freeze()) else {
            self.seat.refuse();
            return false;
        };
        let followed = growing.followed().clone();
        self.so_far = SoFar::OnDisk(growing);
        self.is_offered = self.show(followed);
        self.is_offered
    }

    /// It is found from now on, unless something has made it doubtful already. That it is held is told once it is whole, which may be
    /// long after.
    fn show(&self, followed: Followed) -> bool {
        let Keeping { inner, id, partition, url, head, .. } = self;
        let (id, partition) = (*id, *partition);
        let mut holdings = inner.lock();
        let holdings = &mut *holdings;
        if !holdings.awaits_body_no_more(id) {
            return false;
        }
        inner.make_room(holdings);
        for old in holdings.replaced_by(partition, url, head) {
            inner.remove(holdings, old);
        }
        let held = self.held(inner.growing(&followed, id));
        holdings.insert(url, Entry::new(held, false, Some(Source::Growing(followed))));
        holdings.use_entry(id);
        if holdings.use_group(url).is_some_and(|group| !group.is_known) {
            // What it replaces may be on disk.
            inner.begin_to_bring(holdings, url);
        }
        true
    }

    /// The number under which it is found, if it is.
    pub fn offered(&self) -> Option<u64> {
        (self.is_offered && matches!(self.so_far, SoFar::OnDisk(_))).then_some(self.id)
    }

    /// Completes when somebody who has found it has read all there is, and waits for more.
    pub async fn awaited(&self) {
        match self.followed() {
            Some(followed) => followed.awaited().await,
            None => std::future::pending().await,
        }
    }

    /// Completes when nobody who has found it reads it.
    pub async fn left(&self) {
        if let Some(followed) = self.followed() {
            followed.left().await;
        }
    }

    /// So many bytes came across for it that whoever asked for it does not answer for.
    pub fn crossed(&self, bytes: u64) {
        self.followed().into_iter().for_each(|followed| followed.crossed(bytes));
    }

    fn followed(&self) -> Option<&Followed> {
        match &self.so_far {
            SoFar::OnDisk(growing) => Some(growing.followed()),
            SoFar::InMemory(_) | SoFar::Lost => None,
        }
    }

    fn disk(&self) -> Option<&Disk> {
        self.inner.disk.as_ref()
    }

    /// More of its body. Waits for nothing: where there is no room for it or the disk cannot follow, nothing is kept.
    pub fn write(&mut self, bytes: &Bytes) {
        self.length += bytes.len() as u64;
        if self.length > self.room {
            return self.give_up();
        }
        let was_lost = matches!(self.so_far, SoFar::Lost);
        self.so_far = match std::mem::replace(&mut self.so_far, SoFar::Lost) {
            SoFar::InMemory(mut beginning) => {
                if (beginning.len() + bytes.len()) as u64 <= BEGINNING && self.seat.take_bytes(bytes.len()) {
                    beginning.extend_from_slice(bytes);
                    SoFar::InMemory(beginning)
                } else {
                    let growing = self.begin_file(beginning.freeze());
                    self.grow(growing, bytes)
                }
            }
            SoFar::OnDisk(growing) => self.grow(Some(growing), bytes),
            SoFar::Lost => SoFar::Lost,
        };
        if !was_lost && matches!(self.so_far, SoFar::Lost) {
            self.seat.refuse();
        }
    }

    /// The same with all that came so far, however much that is: it waits for the disk.
    pub async fn write_all(&mut self, pieces: Vec<Bytes>) {
        let mut unsettled = 0;
        for piece in pieces {
            unsettled += piece.len();
            self.write(&piece);
            if let Some(disk) = self.disk().filter(|_| unsettled > AT_ONCE) {
                disk.settled().await;
                unsettled = 0;
            }
        }
    }

    /// Bytes of it that have come.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// It goes on under another head, that of the answer that brings its rest. Nothing if it is not kept so far, or not for the same.
    pub fn goes_on(mut self, partition: Partition, head: &Stored) -> Option<Keeping> {
        let may_go_on = partition == self.partition && !matches!(self.so_far, SoFar::Lost);
        self.head = head.clone();
        if self.is_offered {
            self.inner.lock().renew(self.id, Arc::new(head.clone()));
        }
        may_go_on.then_some(self)
    }

    /// It is too long.
    fn give_up(&mut self) {
        if let (Some(disk), SoFar::OnDisk(growing)) = (self.disk(), &self.so_far) {
            disk.abandon(growing);
        }
        self.so_far = SoFar::Lost;
        self.seat.leave();
    }

    fn begin_file(&mut self, beginning: Bytes) -> Option<Growing> {
        if !self.seat.take_file() {
            return None;
        }
        let growing = self.disk()?.begin_body(self.id)?;
        match self.grow(Some(growing), &beginning) {
            SoFar::OnDisk(growing) => Some(growing),
            _ => None,
        }
    }

    fn grow(&self, growing: Option<Growing>, bytes: &Bytes) -> SoFar {
        let (Some(mut growing), Some(disk)) = (growing, self.disk()) else { return SoFar::Lost };
        if disk.grow(&mut growing, bytes) {
            return SoFar::OnDisk(growing);
        }
        disk.abandon(&growing);
        SoFar::Lost
    }

    /// That was all of its body, for which so many bytes came across.
    pub fn ended(&mut self, trailers: Option<HeaderMap>, crossed: u64) {
        self.followed().into_iter().for_each(|followed| followed.ended(trailers.clone()));
        self.ended = Some((trailers, crossed));
    }

    /// Holds it, if all of it came and nothing has made it doubtful; its number, once it is on disk.
    pub async fn finish(mut self) -> Option<u64> {
        let about = self.ended.take()?;
        let was_lost = matches!(self.so_far, SoFar::Lost);
        self.leave_memory_where_it_is_short();
        let is_whole = match (self.disk(), &self.so_far) {
            (Some(disk), SoFar::OnDisk(growing)) => disk.close_body(growing).await,
            (_, so_far) => matches!(so_far, SoFar::InMemory(_)),
        };
        if !is_whole && !was_lost {
            self.seat.refuse();
        }
        let held = match std::mem::replace(&mut self.so_far, SoFar::Lost) {
            SoFar::InMemory(bytes) => self.hold(|own| Some(own.whole(bytes.freeze(), about))),
            SoFar::OnDisk(growing) => {
                let hold = || match self.is_offered {
                    true => self.settle(&growing, about),
                    false => self.hold(|own| own.grown(&growing, about)),
                };
                let held = is_whole.then(hold).flatten();
                if let (None, Some(disk)) = (held, self.disk()) {
                    disk.abandon(&growing);
                }
                held
            }
            SoFar::Lost => None,
        };
        if let (Some(_), Some(disk)) = (held, self.disk()) {
            disk.settled().await;
        }
        held
    }

    /// What is whole stays in memory, too, as long as it is used: where there is no room for that, it goes by its file.
    fn leave_memory_where_it_is_short(&mut self) {
        let SoFar::InMemory(beginning) = &mut self.so_far else { return };
        self.inner.make_room(&mut self.inner.lock());
        let budget = &self.inner.budget;
        if budget.used() + beginning.len() as u64 > budget.most() {
            let beginning = std::mem::take(beginning).freeze();
            self.so_far = self.begin_file(beginning).map_or(SoFar::Lost, SoFar::OnDisk);
        }
    }

    /// Holds the entry that `make` makes of what came.
    fn hold(&self, make: impl FnOnce(&Self) -> Option<Entry>) -> Option<u64> {
        let Keeping { inner, id, partition, url, head, .. } = self;
        let (id, partition) = (*id, *partition);
        let mut holdings = inner.lock();
        let holdings = &mut *holdings;
        // What was asked for later may have come sooner.
        let is_newer = |entry: &Entry| {
            let Held { id: other, partition: of, head: known, .. } = &entry.held;
            *other > id && *of == partition && known.nominated == head.nominated
        };
        let is_replaced = holdings.group(url).is_some_and(|group| group.entries.iter().any(is_newer));
        if !holdings.awaits_body_no_more(id) || is_replaced {
            return None;
        }
        inner.make_room(holdings);
        let entry = make(self)?;
        for old in holdings.replaced_by(partition, url, head) {
            inner.remove(holdings, old);
        }
        let (is_written, body) = (entry.source.is_some(), entry.held.body.clone());
        holdings.insert(url, entry);
        holdings.use_entry(id);
        match (is_written, body.copier().now()) {
            (true, _) => holdings.group_or_new(url).writes += 1,
            (false, Some(whole)) => {
                holdings.await_disk(id);
                inner.keep(holdings, id, whole);
            }
            (false, None) => {}
        }
        if !holdings.group_or_new(url).is_known {
            // What it replaces may be on disk.
            inner.begin_to_bring(holdings, url);
        }
        inner.announce(Change::Stored { id, partition, url: Arc::clone(url) });
        Some(id)
    }

    /// What is found already is in its file from now on, unless it is gone by now: invalidated, or replaced.
    fn settle(&self, growing: &Growing, about: Ended) -> Option<u64> {
        let mut holdings = self.inner.lock();
        holdings.entry(self.id)?;
        let body = self.disk()?.keep_grown(growing, self.partition, &self.url, &self.head, about)?;
        let entry = holdings.entry_mut(self.id)?;
        entry.held.body = self.inner.asleep(body.clone(), self.id);
        entry.source = Some(Source::File(body));
        holdings.group_or_new(&self.url).writes += 1;
        let (id, partition, url) = (self.id, self.partition, Arc::clone(&self.url));
        self.inner.announce(Change::Stored { id, partition, url });
        Some(id)
    }

    /// What is whole in memory, and is written from there.
    fn whole(&self, bytes: Bytes, (trailers, crossed): Ended) -> Entry {
        let body = Body::whole_after(&self.inner.budget, bytes, trailers, crossed);
        Entry::new(self.held(body), false, None)
    }

    /// What is in its file.
    fn grown(&self, growing: &Growing, about: Ended) -> Option<Entry> {
        let body = self.disk()?.keep_grown(growing, self.partition, &self.url, &self.head, about)?;
        let asleep = self.inner.asleep(body.clone(), self.id);
        Some(Entry::new(self.held(asleep), false, Some(Source::File(body))))
    }

    fn held(&self, body: Body) -> Held {
        Held { id: self.id, partition: self.partition, head: Arc::new(self.head.clone()), body }
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let mut holdings = self.inner.lock();
        holdings.awaits_body_no_more(self.id);
        if holdings.entry(self.id).is_some_and(|(_, entry)| entry.is_growing()) {
            self.inner.remove(&mut holdings, self.id);
        }
        drop(holdings);
        if let (Some(disk), SoFar::OnDisk(growing)) = (self.disk(), &self.so_far) {
            disk.abandon(growing);
        }
    }
}
