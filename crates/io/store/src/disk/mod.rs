//! Responses on disk: bodies in files, an index of them in a database, both sealed with the key of the installation.
//! Reading is for threads that may block; writing is one thread's, behind everyone's back.

mod files;
mod growth;
mod index;
mod place;
mod room;
mod row;
mod seal;
mod space;
mod users;
mod writer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use farhop_freshness::Stored;
use farhop_replacement::{Link, Replacement};
use http::HeaderMap;
use tokio::sync::oneshot;

use crate::Partition;
use crate::body::Whole;
use files::{Bodies, BodyFile, CHUNK, Chunks};
pub(crate) use growth::{Followed, Following};
use index::Begun;
use place::Place;
use room::Room;
pub(crate) use room::{BEGINNING, Seat};
use row::Row;
use seal::Keys;
pub use seal::{Key, KeyError};
use space::Space;
use users::Numbers;
pub(crate) use writer::{Done, Outcome};
use writer::{Job, Source, Uses, Waiting, Writer};

/// Entries whose uses are remembered until they are written down.
const USES: usize = 65_536;
/// Bytes of long bodies that may wait for the thread that writes: a disk that is slower than the link holds up nobody.
const WAITING: u64 = 8 << 20;

/// Where a store is, and how large.
#[derive(Clone)]
pub struct DiskOptions {
    /// Its folder, made if it is not there.
    pub folder: PathBuf,
    /// Bytes that it may take, a little more while it is written.
    pub size: u64,
    /// With what it is sealed.
    pub key: Key,
    /// What its entries would have to cross again.
    pub link: Link,
}

/// Why a store is not opened; each names the folder and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Another process has it.
    #[error("store {}: in use by another process, stop that one or name another folder", .0.display())]
    InUse(PathBuf),
    /// The system refused.
    #[error("store {}: {error}", folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

/// A store on disk, open.
pub struct Disk {
    reading: Reading,
    numbers: Arc<Numbers>,
    uses: Uses,
    next: u64,
    /// Bytes of long bodies that the thread has not written yet.
    waiting: Arc<AtomicU64>,
    room: Room,
    /// What the thread is made of, until it begins; then how to reach it.
    work: Mutex<Work>,
}

enum Work {
    Waits(Box<dyn FnOnce(writer::Tell) -> Writer + Send>, Sender<Job>),
    Goes(Sender<Job>, JoinHandle<()>),
    Ended,
}

/// A body that is written to its file while it comes.
pub(crate) struct Growing {
    id: u64,
    salt: seal::Salt,
    length: u64,
    followed: Followed,
}

impl Growing {
    /// It, for those who read it meanwhile.
    pub(crate) fn followed(&self) -> &Followed {
        &self.followed
    }
}

/// An entry, as far as one chooses by it.
pub(crate) struct Listed {
    pub(crate) id: u64,
    pub(crate) partition: Partition,
    pub(crate) url: Arc<str>,
    /// Of its body.
    pub(crate) bytes: u64,
}

/// What is on disk of a response.
pub(crate) struct OnDisk {
    pub(crate) id: u64,
    pub(crate) partition: Partition,
    pub(crate) url: Arc<str>,
    pub(crate) head: Stored,
    pub(crate) body: BodyOnDisk,
}

/// Where the body of a response is.
#[derive(Clone)]
pub(crate) struct BodyOnDisk {
    id: u64,
    row: Arc<Row>,
}

impl BodyOnDisk {
    pub(crate) fn length(&self) -> u64 {
        self.row.length
    }

    pub(crate) fn trailers(&self) -> Option<HeaderMap> {
        self.row.trailers.clone()
    }
}

/// Reads what is on disk. All of it blocks.
#[derive(Clone)]
pub(crate) struct Reading {
    place: Place,
    bodies: Bodies,
    keys: Keys,
}

impl Disk {
    /// Opens the store, in less than a second however much it holds.
    ///
    /// # Errors
    /// See [`DiskError`]. An index that cannot be used is none: it is set aside, and said so.
    pub fn open(options: DiskOptions) -> Result<Disk, DiskError> {
        let keys = options.key.keys();
        let (place, begun) = Place::take(&options.folder, keys.mark())?;
        let failed = |error| DiskError::Io { folder: options.folder.clone(), error };
        let bodies = Bodies::open(place.bodies()).map_err(failed)?;
        let Begun { users, next_user, next, age, .. } = begun;
        let numbers = Arc::new(Numbers::new(users, next_user));
        let uses = Uses::default();
        let reading = Reading { place: place.clone(), bodies: bodies.clone(), keys: keys.clone() };
        let (sender, jobs) = channel();
        let (link, size, room) = (options.link, options.size, Room::default());
        let refusing = room.clone();
        let own = (Arc::clone(&numbers), Arc::clone(&uses));
        let writer = move |tell| Writer {
            place,
            bodies,
            keys,
            numbers: own.0,
            uses: own.1,
            policy: age.map_or_else(Replacement::default, Replacement::aged),
            link,
            size,
            first: next,
            jobs,
            tell,
            failed: None,
            owed: Vec::new(),
            complained: None,
            space: Space::default(),
            room: refusing,
            growing: HashMap::new(),
        };
        let (waiting, work) = (Arc::default(), Mutex::new(Work::Waits(Box::new(writer), sender)));
        Ok(Disk { reading, numbers, uses, next, waiting, room, work })
    }

    fn work(&self) -> std::sync::MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to write; `tell` hears what became of everything.
    pub(crate) fn begin(&self, tell: impl Fn(Vec<Done>) + Send + 'static) -> std::io::Result<()> {
        let mut work = self.work();
        if let Work::Waits(writer, jobs) = std::mem::replace(&mut *work, Work::Ended) {
            let writer = writer(Box::new(tell));
            let thread = std::thread::Builder::new().name("store".into()).spawn(move || writer.run())?;
            *work = Work::Goes(jobs, thread);
        }
        Ok(())
    }

    /// `false`: it will not be done, since the store is closed.
    fn job(&self, job: Job) -> bool {
        match &*self.work() {
            Work::Waits(_, jobs) | Work::Goes(jobs, _) => jobs.send(job).is_ok(),
            Work::Ended => false,
        }
    }

    /// A number above those of all entries that there were when it was opened.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn reading(&self) -> Reading {
        self.reading.clone()
    }

    /// The number of a user, the same at each start.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.numbers.number(self.reading.keys.name(b'p', name))
    }

    /// Keeps a response that is whole. `false`: not even tried.
    pub(crate) fn keep(
        &self,
        id: u64,
        partition: Partition,
        url: &Arc<str>,
        head: &Stored,
        whole: Whole,
    ) -> bool {
        let Some(salt) = seal::salt() else { return false };
        let length = whole.pieces.iter().map(|piece| piece.len() as u64).sum();
        let (head, trailers) = (head.clone(), whole.trailers.clone());
        let row = Box::new(Row { partition, url: url.to_string(), head, trailers, length, salt });
        self.job(Job::Keep { id, url: Arc::clone(url), row, body: Source::Memory(whole) })
    }

    /// Where a body is kept while it comes for this one who asks.
    pub(crate) fn seat(&self, asker: u64) -> Seat {
        self.room.seat(asker)
    }

    /// Bodies that were not kept since there was no room for them, or the disk could not follow.
    pub(crate) fn refused(&self) -> u64 {
        self.room.refused()
    }

    /// Begins to write a body that is still coming.
    pub(crate) fn begin_body(&self, id: u64) -> Option<Growing> {
        let salt = seal::salt()?;
        let (growth, followed) = growth::begin(id, salt);
        self.job(Job::Begin { id, salt, growth }).then_some(Growing { id, salt, length: 0, followed })
    }

    /// More of it. `false`: the disk is too slow for it, or closed.
    pub(crate) fn grow(&self, growing: &mut Growing, bytes: &Bytes) -> bool {
        growing.length += bytes.len() as u64;
        growing.followed.grown(bytes.len() as u64);
        self.waiting.load(Ordering::Relaxed) <= WAITING
            && self.job(Job::More { id: growing.id, bytes: Waiting::new(bytes.clone(), &self.waiting) })
    }

    /// Has all that has come told to those who follow it, also what is in no file yet.
    pub(crate) fn tell(&self, following: &Following) {
        let nothing = Waiting::new(Bytes::new(), &self.waiting);
        self.job(Job::More { id: following.body().id, bytes: nothing });
    }

    /// That was all. Whether all of it is in its file, as soon as it is.
    pub(crate) async fn close_body(&self, growing: &Growing) -> bool {
        let (whole, length) = oneshot::channel();
        self.job(Job::Close { id: growing.id, whole }) && length.await == Ok(growing.length)
    }

    /// It is not wanted any more.
    pub(crate) fn abandon(&self, growing: &Growing) {
        self.job(Job::Abandon { id: growing.id });
    }

    /// Keeps a response whose body is in its file.
    pub(crate) fn keep_grown(
        &self,
        growing: &Growing,
        partition: Partition,
        url: &Arc<str>,
        head: &Stored,
        (trailers, crossed): (Option<HeaderMap>, u64),
    ) -> Option<BodyOnDisk> {
        let Growing { id, salt, length, .. } = *growing;
        let row = Row { partition, url: url.to_string(), head: head.clone(), trailers, length, salt };
        let body = BodyOnDisk { id, row: Arc::new(row.clone()) };
        let (row, source) = (Box::new(row), Source::File { crossed });
        self.job(Job::Keep { id, url: Arc::clone(url), row, body: source }).then_some(body)
    }

    /// Puts a new head in place of an entry's.
    pub(crate) fn renew(&self, id: u64, url: &Arc<str>, head: &Stored) -> bool {
        self.job(Job::Renew { id, url: Arc::clone(url), head: Box::new(head.clone()) })
    }

    /// Forgets an entry.
    pub(crate) fn remove(&self, id: u64, url: &Arc<str>) -> bool {
        self.job(Job::Remove { id, url: Arc::clone(url) })
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        self.job(Job::Clear);
    }

    /// An entry has been used.
    pub(crate) fn used(&self, id: u64) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() < USES || uses.contains_key(&id) {
            *uses.entry(id).or_default() += 1;
        }
    }

    /// Waits until all that was asked for is on disk.
    pub(crate) async fn settled(&self) {
        let (settled, waits) = oneshot::channel();
        if self.job(Job::Settle(settled)) {
            // A writer that has gone has nothing left to do.
            let _ = waits.await;
        }
    }

    /// Writes no more once all that was asked for is done, and gives the folder back. Blocks.
    pub(crate) fn end(&self) {
        let work = std::mem::replace(&mut *self.work(), Work::Ended);
        if let Work::Goes(jobs, thread) = work {
            drop(jobs);
            // The thread itself may be the last that has the store.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!(target: "farhop", "store {}: writing ended early", self.reading.place.name());
            }
        }
        self.reading.place.leave();
    }
}

impl Reading {
    /// What answers a URL, oldest first; `None` where the index cannot say. What is not there whole is given by number, to
    /// be forgotten.
    pub(crate) fn named(&self, url: &str) -> Option<(Vec<OnDisk>, Vec<u64>)> {
        let rows = self.asked(|index| index.named(self.keys.name(b'u', url)))?;
        let (mut found, mut torn) = (Vec::new(), Vec::new());
        for (id, sealed) in rows {
            match self.entry(id, &sealed).filter(|entry| &*entry.url == url) {
                Some(entry) => found.push(entry),
                None => torn.push(id),
            }
        }
        Some((found, torn))
    }

    /// The entry of this number.
    pub(crate) fn by_number(&self, id: u64) -> Option<OnDisk> {
        let sealed = self.asked(|index| index.row(id))??;
        self.entry(id, &sealed)
    }

    fn entry(&self, id: u64, sealed: &[u8]) -> Option<OnDisk> {
        let row = Row::open(id, sealed, &self.keys).filter(|row| self.bodies.has(id, row))?;
        let (partition, url, head) = (row.partition, row.url.as_str().into(), row.head.clone());
        Some(OnDisk { id, partition, url, head, body: BodyOnDisk { id, row: Arc::new(row) } })
    }

    /// Those of all entries that are chosen by partition and URL.
    pub(crate) fn listed(&self, is_chosen: impl Fn(Partition, &str) -> bool) -> Vec<Listed> {
        let mut listed = Vec::new();
        self.asked(|index| {
            index.each(|id, sealed| {
                if let Some(Row { partition, url, length, .. }) = Row::open(id, sealed, &self.keys)
                    && is_chosen(partition, &url)
                {
                    listed.push(Listed { id, partition, url: url.into(), bytes: length });
                }
            })
        });
        listed
    }

    /// The newest entries, newest first.
    pub(crate) fn newest(&self, most: usize) -> Vec<u64> {
        self.asked(|index| index.newest(most)).unwrap_or_default()
    }

    /// How many entries there are, and what they take.
    pub(crate) fn extent(&self) -> (u64, u64) {
        self.asked(|index| index.extent()).unwrap_or_default()
    }

    fn asked<T>(&self, ask: impl FnOnce(&index::Index) -> Result<T, redb::Error>) -> Option<T> {
        let answer = self.place.ask(ask)?;
        answer.inspect_err(|error| self.place.fail(error)).ok()
    }

    /// All of a body, if it is short; `Err` if it is not as it was written.
    pub(crate) fn short(&self, body: &BodyOnDisk) -> Result<Option<Bytes>, Torn> {
        if body.length() > CHUNK as u64 {
            return Ok(None);
        }
        self.open(body)?.chunk(0).map(|(bytes, _)| Some(bytes))
    }

    /// A body that grows, to be read from its beginning.
    pub(crate) fn follow(&self, body: &Followed) -> Result<OpenGrowing, Torn> {
        let chunks = self.bodies.growing(body.id, &body.salt, &self.keys).ok_or(Torn)?;
        Ok(OpenGrowing { chunks, next: 0 })
    }

    /// A body, to be read: all of it, whatever becomes of its entry meanwhile.
    pub(crate) fn open(&self, body: &BodyOnDisk) -> Result<OpenBody, Torn> {
        self.bodies.read(body.id, &body.row, &self.keys).map(OpenBody).ok_or(Torn)
    }
}

/// A body that is read while it grows.
pub(crate) struct OpenGrowing {
    chunks: Chunks,
    next: u64,
}

impl OpenGrowing {
    /// The next chunk: a whole one, or the last of a body of this length. Blocks.
    pub(crate) fn next(&mut self, whole: Option<u64>) -> Result<Bytes, Torn> {
        let place = self.next;
        self.next += 1;
        let length = whole.map_or(CHUNK as u64, |length| length.saturating_sub(place * CHUNK as u64));
        self.chunks.at(place, length.min(CHUNK as u64) as usize, whole.is_some()).ok_or(Torn)
    }

    /// Chunks that were read.
    pub(crate) fn read(&self) -> u64 {
        self.next
    }
}

/// A body that is being read. Who has begun to read it has its file, also once that has no name any more.
pub(crate) struct OpenBody(BodyFile);

impl OpenBody {
    /// A part of it, and whether it is the last. Blocks.
    pub(crate) fn chunk(&self, place: u64) -> Result<(Bytes, bool), Torn> {
        let bytes = self.0.chunk(place).ok_or(Torn)?;
        Ok((bytes, place + 1 == self.0.chunks()))
    }
}

/// A body on disk is not as it was written, or not there.
#[derive(Debug)]
pub(crate) struct Torn;
