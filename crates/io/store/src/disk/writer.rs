//! Writes what is to be kept, behind everyone's back: one thread, one thing after the other, several in one transaction.
//! A body is in its file before the index knows of it, and its file is gone before the index forgets it: whatever
//! happens between, what the index names and is not there whole is not served.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use farhop_freshness::Stored;
use farhop_replacement::{Link, Replacement, Response};
use farhop_units::Bytes;
use tokio::sync::oneshot;

use super::files::{Bodies, CHUNK, FOLDERS, Growing};
use super::growth::Growth;
use super::index::{Index, Tables};
use super::place::Place;
use super::room::Room;
use super::row::Row;
use super::seal::{Keys, Salt};
use super::space::Space;
use super::users::Numbers;
use crate::Partition;
use crate::body::Whole;

/// Jobs that are done in one transaction.
const TOGETHER: usize = 128;
/// How long uses may wait to be written down, and how often files that belong to nothing are looked for.
const IDLE: Duration = Duration::from_secs(5);
/// How long to leave a disk alone that has failed.
pub(super) const PAUSE: Duration = Duration::from_secs(30);
/// What an entry takes besides its body: its row, its places in the tables, what the last block of its file leaves empty.
const OVERHEAD: u64 = 4096;
/// Room that is made at once for a long body where the disk is full.
const AT_ONCE: u64 = 4 * CHUNK as u64;
/// The share of the room that one entry may take.
pub(super) const SHARE: u64 = 8;

/// What there is to do. Each names its URL, which stays in memory until it is done.
pub(super) enum Job {
    Keep {
        id: u64,
        url: Arc<str>,
        row: Box<Row>,
        body: Source,
    },
    /// A long body begins, to be written while it comes.
    Begin {
        id: u64,
        salt: Salt,
        growth: Growth,
    },
    /// More of it.
    More {
        id: u64,
        bytes: Waiting,
    },
    /// That was all: answered with its length once that is in its file, and not at all if it is not.
    Close {
        id: u64,
        whole: oneshot::Sender<u64>,
    },
    /// It will not become whole, or nobody wants it any more.
    Abandon {
        id: u64,
    },
    Renew {
        id: u64,
        url: Arc<str>,
        head: Box<Stored>,
    },
    Remove {
        id: u64,
        url: Arc<str>,
    },
    Clear,
    /// Answered when all that came before is done.
    Settle(oneshot::Sender<()>),
}

impl Job {
    /// Whether it is about a long body alone, of which the index knows nothing yet.
    fn is_of_body(&self) -> bool {
        matches!(self, Job::Begin { .. } | Job::More { .. } | Job::Close { .. } | Job::Abandon { .. })
    }
}

/// Where the body is of what is to be kept.
pub(super) enum Source {
    /// In memory.
    Memory(Whole),
    /// In its file, written while so many bytes came across for it.
    File { crossed: u64 },
}

/// Bytes on their way to the thread that writes; they are counted for as long as they wait.
pub(super) struct Waiting {
    bytes: bytes::Bytes,
    count: Arc<AtomicU64>,
}

impl Waiting {
    pub(super) fn new(bytes: bytes::Bytes, count: &Arc<AtomicU64>) -> Waiting {
        count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Waiting { bytes, count: Arc::clone(count) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.count.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The entry is on disk.
    Kept,
    /// It is not, and will not be.
    Refused,
    /// A change of what is on disk is made, or will be before anything is read again.
    Changed,
    /// It had to go to make room.
    Evicted { partition: Partition, bytes: u64 },
}

/// What became of a job, or of an entry that had to go.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) id: u64,
    pub(crate) url: Arc<str>,
    pub(crate) outcome: Outcome,
}

pub(super) type Tell = Box<dyn Fn(Vec<Done>) + Send>;

/// How often entries were used since that was last written down.
pub(super) type Uses = Arc<Mutex<HashMap<u64, u32>>>;

pub(super) struct Writer {
    pub(super) place: Place,
    pub(super) bodies: Bodies,
    pub(super) keys: Keys,
    pub(super) numbers: Arc<Numbers>,
    pub(super) uses: Uses,
    pub(super) policy: Replacement,
    pub(super) link: Link,
    /// Most that all entries may take.
    pub(super) size: u64,
    /// Entries from this number on are this process's.
    pub(super) first: u64,
    pub(super) jobs: Receiver<Job>,
    pub(super) tell: Tell,
    /// When a transaction failed; nothing is written for a while then.
    pub(super) failed: Option<Instant>,
    /// Removals that the index has not taken yet. Their files are gone.
    pub(super) owed: Vec<u64>,
    /// When it was last said that a file cannot be written.
    pub(super) complained: Option<Instant>,
    pub(super) space: Space,
    /// What is refused is counted here.
    pub(super) room: Room,
    /// Long bodies that are still coming.
    pub(super) growing: HashMap<u64, (Growing, Growth)>,
}

/// What one transaction is to do, once the bodies are in their files.
#[derive(Default)]
pub(super) struct Batch {
    kept: Vec<(u64, Arc<str>, Box<Row>, Response)>,
    renewed: Vec<(u64, Arc<str>, Box<Stored>)>,
    pub(super) removed: Vec<u64>,
    pub(super) done: Vec<Done>,
    settled: Vec<oneshot::Sender<()>>,
    clears: bool,
    /// Whether there is anything to be written down but more of long bodies.
    is_due: bool,
}

impl Writer {
    /// Works until whoever has jobs has gone, and all are done.
    pub(super) fn run(mut self) {
        let mut sweep = 0;
        loop {
            let first = match self.jobs.recv_timeout(IDLE) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let is_idle = first.is_none();
            self.work(first);
            if is_idle && sweep <= FOLDERS {
                match sweep.checked_sub(1) {
                    None => self.place.tidy(),
                    Some(folder) => self.sweep(folder),
                }
                sweep += 1;
            }
        }
    }

    /// Does this job and those that wait behind it.
    fn work(&mut self, first: Option<Job>) {
        if self.failed.is_none() && !self.place.has_index() {
            // It failed under a reader.
            self.failed = Some(Instant::now());
        }
        if self.failed.is_some_and(|at| at.elapsed() >= PAUSE) {
            self.failed = None;
            if !self.place.has_index() && self.place.open_again().is_err() {
                self.failed = Some(Instant::now());
            }
        }
        let can_write = self.failed.is_none() && self.place.has_index();
        let is_idle = first.is_none();
        let mut batch =
            Batch { removed: std::mem::take(&mut self.owed), is_due: is_idle, ..Batch::default() };
        let more = self.jobs.try_iter().take(TOGETHER - 1).collect::<Vec<_>>();
        for job in first.into_iter().chain(more) {
            batch.is_due |= !job.is_of_body();
            self.prepare(can_write, job, &mut batch);
        }
        let committed = can_write.then(|| self.commit_with_room(&mut batch)).flatten();
        if let Some(Err(error)) = &committed {
            self.failed = Some(Instant::now());
            self.place.fail(error);
            // What is there can be read again, also where nothing can be written.
            let _ = self.place.open_again();
        }
        if !matches!(committed, Some(Ok(()))) {
            self.give_up(&mut batch);
        }
        (self.tell)(batch.done);
        for settled in batch.settled {
            // Whoever asked may have gone.
            let _ = settled.send(());
        }
    }

    /// Does what can be done before the transaction: writes bodies, removes them.
    fn prepare(&mut self, can_write: bool, job: Job, batch: &mut Batch) {
        match job {
            Job::Keep { id, url, row, body } => match self.keep(can_write, id, (&row, &body), batch) {
                Some(response) => batch.kept.push((id, url, row, response)),
                None => batch.done.push(Done { id, url, outcome: Outcome::Refused }),
            },
            Job::Begin { id, salt, growth } if can_write => {
                let (keys, coming) = (self.keys.clone(), self.coming(0));
                match self.with_room(batch, &coming, AT_ONCE, |bodies| bodies.begin(id, &salt, &keys)) {
                    Ok(growing) => drop(self.growing.insert(id, (growing, growth))),
                    Err(error) => self.complain(&error),
                }
            }
            Job::Begin { .. } => {}
            Job::More { id, bytes } => self.grow(id, &bytes.bytes, batch),
            Job::Close { id, whole } => {
                let Some((mut growing, growth)) = self.growing.remove(&id) else { return };
                let coming = self.coming(growing.length());
                match self.with_room(batch, &coming, AT_ONCE, |_| growing.close()) {
                    Ok(length) => {
                        growth.whole(length);
                        // Whoever asked may have gone.
                        let _ = whole.send(length).inspect_err(|_| self.bodies.remove(id));
                    }
                    Err(error) => {
                        self.bodies.remove(id);
                        self.complain(&error);
                    }
                }
            }
            Job::Abandon { id } => {
                self.growing.remove(&id);
                self.bodies.remove(id);
            }
            Job::Renew { id, url, head } => batch.renewed.push((id, url, head)),
            Job::Remove { id, url } => {
                self.bodies.remove(id);
                // What was to be kept by the same transaction is not.
                batch.kept.retain(|(kept, ..)| *kept != id);
                batch.removed.push(id);
                batch.done.push(Done { id, url, outcome: Outcome::Changed });
            }
            Job::Clear => {
                for (id, url, ..) in batch.kept.drain(..) {
                    batch.done.push(Done { id, url, outcome: Outcome::Refused });
                }
                self.growing.clear();
                if let Err(error) = self.bodies.clear() {
                    self.complain(&error);
                }
                batch.clears = true;
            }
            Job::Settle(settled) => batch.settled.push(settled),
        }
    }

    /// More of a long body. What cannot be written, or takes more room than one may, is given up.
    fn grow(&mut self, id: u64, mut bytes: &[u8], batch: &mut Batch) {
        let Some((mut growing, growth)) = self.growing.remove(&id) else { return };
        let coming = self.coming(growing.length());
        let written = self.with_room(batch, &coming, AT_ONCE, |_| growing.take(&mut bytes));
        if written.is_err() || growing.length() > self.size / SHARE {
            self.bodies.remove(id);
        } else {
            growth.reach(growing.chunks(), growing.tail());
            self.growing.insert(id, (growing, growth));
        }
        if let Err(error) = written {
            self.complain(&error);
        }
    }

    /// What is known of a long body of which so many bytes have come.
    fn coming(&self, length: u64) -> Response {
        Response { uses: 1, cost: self.link.cost(Bytes(length)), size: Bytes(OVERHEAD + length) }
    }

    fn keep(
        &mut self,
        can_write: bool,
        id: u64,
        (row, body): (&Row, &Source),
        batch: &mut Batch,
    ) -> Option<Response> {
        let fields = row.head.fields.iter().chain(&row.head.nominated);
        let head: usize = fields.map(|(name, value)| name.as_str().len() + value.len()).sum();
        let size = OVERHEAD + row.length + (row.url.len() + head) as u64;
        if !can_write || size > self.size / SHARE {
            self.bodies.remove(id);
            if !can_write {
                self.room.refuse();
            }
            return None;
        }
        let crossed = match body {
            Source::Memory(whole) => whole.crossed,
            Source::File { crossed } => *crossed,
        };
        // What came without being counted came as it is.
        let crossed = if crossed == 0 { row.length } else { crossed };
        let response = Response { uses: 1, cost: self.link.cost(Bytes(crossed)), size: Bytes(size) };
        let keys = self.keys.clone();
        let written = match body {
            Source::Memory(whole) => {
                self.with_room(batch, &response, size, |bodies| bodies.write(id, row, &keys, &whole.pieces))
            }
            // It may have been taken away since.
            Source::File { .. } if self.bodies.has(id, row) => Ok(()),
            Source::File { .. } => return None,
        };
        match written {
            Ok(()) => Some(response),
            Err(error) => {
                self.room.refuse();
                self.complain(&error);
                None
            }
        }
    }

    pub(super) fn commit(&mut self, index: &Index, batch: &mut Batch) -> Result<(), redb::Error> {
        // Uses alone are not worth a transaction for each piece of a body.
        if !batch.is_due && batch.removed.is_empty() {
            return Ok(());
        }
        let uses = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
        let is_idle = batch.kept.is_empty() && batch.renewed.is_empty() && batch.removed.is_empty();
        if is_idle && uses.is_empty() && !batch.clears {
            return Ok(());
        }
        let mut policy = self.policy;
        let gone = index.change(|tables| {
            if batch.clears {
                tables.clear()?;
            }
            for id in &batch.removed {
                tables.remove(*id)?;
            }
            for (id, times) in &uses {
                tables.used_again(*id, *times, |response| policy.worth(response))?;
            }
            for (id, url, row, response) in &batch.kept {
                self.insert(tables, *id, url, row, response, &policy)?;
            }
            for (id, _, head) in &batch.renewed {
                self.renew(tables, *id, head)?;
            }
            let gone = self.make_room(tables, &mut policy)?;
            tables.set_age(policy.age())?;
            Ok(gone)
        })?;
        self.policy = policy;
        batch.removed.clear();
        for (id, url, ..) in batch.kept.drain(..) {
            batch.done.push(Done { id, url, outcome: Outcome::Kept });
        }
        for (id, url, _) in batch.renewed.drain(..) {
            batch.done.push(Done { id, url, outcome: Outcome::Changed });
        }
        for (id, row) in gone {
            self.bodies.remove(id);
            if let Some(row) = row {
                let outcome = Outcome::Evicted { partition: row.partition, bytes: row.length };
                batch.done.push(Done { id, url: row.url.into(), outcome });
            }
        }
        Ok(())
    }

    fn insert(
        &self,
        tables: &mut Tables<'_>,
        id: u64,
        url: &str,
        row: &Row,
        response: &Response,
        policy: &Replacement,
    ) -> Result<(), redb::Error> {
        if let Partition::User(number) = row.partition {
            // In the same transaction: nothing is kept for a number that could be given to another.
            let Some(name) = self.numbers.name(number) else { return Ok(()) };
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            tables.user(name, number, now.map_or(0, |now| now.as_secs()))?;
        }
        match row.sealed(id, &self.keys) {
            Some(sealed) => {
                tables.insert(id, self.keys.name(b'u', url), &sealed, response, policy.worth(response))
            }
            None => Ok(()),
        }
    }

    fn renew(&self, tables: &mut Tables<'_>, id: u64, head: &Stored) -> Result<(), redb::Error> {
        let Some(row) = tables.row(id)?.and_then(|sealed| Row::open(id, &sealed, &self.keys)) else {
            return Ok(());
        };
        match (Row { head: head.clone(), ..row }).sealed(id, &self.keys) {
            Some(sealed) => tables.renew(id, &sealed),
            None => Ok(()),
        }
    }

    /// What is worth the least goes until the rest fits; what has just come may be among it.
    fn make_room(
        &self,
        tables: &mut Tables<'_>,
        policy: &mut Replacement,
    ) -> Result<Vec<(u64, Option<Row>)>, redb::Error> {
        let mut gone = Vec::new();
        while tables.used() > self.size {
            let Some((worth, id)) = tables.least()? else { break };
            policy.handle_gone(worth);
            let row = tables.remove(id)?;
            gone.push((id, row.and_then(|sealed| Row::open(id, &sealed, &self.keys))));
        }
        Ok(gone)
    }

    /// The index has not taken it: nothing of it is kept.
    fn give_up(&mut self, batch: &mut Batch) {
        self.owed.append(&mut batch.removed);
        for (id, url, ..) in batch.kept.drain(..) {
            self.bodies.remove(id);
            self.room.refuse();
            batch.done.push(Done { id, url, outcome: Outcome::Refused });
        }
        for (id, url, _) in batch.renewed.drain(..) {
            batch.done.push(Done { id, url, outcome: Outcome::Changed });
        }
    }

    /// Removes files that the index does not know: their process ended before it could write down that they are there.
    fn sweep(&self, folder: u64) {
        let ids = self.bodies.listed(folder).into_iter().filter(|id| *id < self.first).collect();
        if let Some(Ok(missing)) = self.place.ask(|index| index.missing(ids)) {
            missing.into_iter().for_each(|id| self.bodies.remove(id));
        }
    }

    fn complain(&mut self, error: &io::Error) {
        if self.complained.is_none_or(|at| at.elapsed() >= PAUSE) {
            self.complained = Some(Instant::now());
            let name = self.place.name();
            tracing::warn!(target: "farhop", "store {name}: {error}; what cannot be written is held in memory only");
        }
    }
}
