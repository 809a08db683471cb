//! The texts that are held, by their hashes: ground is told of them, and sends what has changed as what differs from one
//! (docs/htotp.md, "Deltas"). Whether a base is what ground means is checked here, before anything is decoded against it.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use farhop_freshness::Stored;
use farhop_htotp::frame::{Coding, Resume};
use farhop_htotp::mirror::{BodyHash, HeldBody, Word};
use farhop_squeeze::{DICTIONARY_MEMORY, HopDecoder, LARGEST_BASE, can_be_base, delta_memory, is_text};
use farhop_store::{Body, Change, Partition, Piece};
use farhop_transport::hop::Hop;
use http::{StatusCode, header};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Remote;

/// Entries that are looked at when a carrier comes up.
const MOST_LISTED: usize = 1_024;
/// Entries whose hashes are remembered.
const MOST: usize = 4_096;
/// What is shorter is not worth the word.
const SMALLEST: u64 = 512;
/// Bodies in one word, and bytes that may wait on the carrier before the next.
const PORTION: usize = 64;
const BACKLOG: usize = 2_048;
/// How often room for the next word, and bodies that have become whole, are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// Looks for ground's settings come less and less often, in case it has none.
const LONGEST_LOOK: Duration = Duration::from_secs(60);
/// Bytes of bases that are remembered after their use: what came against one takes its place in the repository, and
/// another answer against it may be on its way.
const MOST_RECENT: usize = 8 << 20;
/// What all that are decoded against a base take at a time, in KB. What has no room is asked for plainly.
const DECODERS_KB: usize = 64 * 1024;

/// With this a request asks for a body that is coded against nothing (docs/htotp.md, "Deltas").
pub(crate) fn plainly() -> Resume {
    Resume { offset: 0, prefix: *blake3::hash(&[]).as_bytes() }
}

/// See the module.
pub(crate) struct Bodies {
    state: Mutex<State>,
    decoders: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    /// By the number of their entry.
    held: BTreeMap<u64, HeldBody>,
    recent: VecDeque<(HeldBody, Bytes)>,
    recent_bytes: usize,
}

impl Default for Bodies {
    fn default() -> Self {
        Bodies { state: Mutex::default(), decoders: Arc::new(Semaphore::new(DECODERS_KB)) }
    }
}

/// How a body is to be decoded.
pub(crate) enum Decoding {
    /// Not at all.
    Identity,
    /// With what counts it among those that are decoded against a base.
    Coded(HopDecoder, Option<OwnedSemaphorePermit>),
}

/// How a body of this coding is decoded for this user; `None` where the base is not at hand, of which ground is told.
pub(crate) async fn decoding(remote: &Remote, hop: &Hop, user: u64, coding: Coding) -> Option<Decoding> {
    let hash = match coding {
        Coding::Identity => return Some(Decoding::Identity),
        Coding::Zstd => return Some(Decoding::Coded(HopDecoder::default(), None)),
        Coding::Brotli => return Some(Decoding::Coded(HopDecoder::brotli(), None)),
        Coding::Gzip => return Some(Decoding::Coded(HopDecoder::gzip(), None)),
        Coding::Dictionary(hash) => {
            if let Some(dictionary) = remote.dictionaries().find(hash) {
                return taught(remote, hop, &dictionary).await;
            }
            hop.tell_mirror(Word::Lacks(vec![HeldBody { user: None, hash }]));
            return None;
        }
        Coding::Delta(hash) => hash,
    };
    let bodies = remote.bodies();
    for whose in [Some(user), None] {
        let wanted = HeldBody { user: whose, hash };
        if let Some(base) = bodies.bytes(remote, wanted).await {
            let kilobytes = u32::try_from(delta_memory(base.len()).div_ceil(1024)).ok()?;
            let permit = bodies.room(hop, kilobytes).await?;
            return Some(Decoding::Coded(HopDecoder::against(&base).ok()?, Some(permit)));
        }
    }
    hop.tell_mirror(Word::Lacks([Some(user), None].map(|user| HeldBody { user, hash }).into()));
    None
}

/// How a body is decoded that was coded with this dictionary, if there is room.
async fn taught(remote: &Remote, hop: &Hop, dictionary: &[u8]) -> Option<Decoding> {
    let kilobytes = u32::try_from(DICTIONARY_MEMORY.div_ceil(1024)).ok()?;
    let permit = remote.bodies().room(hop, kilobytes).await?;
    Some(Decoding::Coded(HopDecoder::with_dictionary(dictionary).ok()?, Some(permit)))
}

impl Bodies {
    /// Room for a decoder of so many KB; to ask anew takes a round trip at the least, and so long it is waited for.
    async fn room(&self, hop: &Hop, kilobytes: u32) -> Option<OwnedSemaphorePermit> {
        let room = Arc::clone(&self.decoders).acquire_many_owned(kilobytes);
        tokio::time::timeout(hop.rtt().unwrap_or_default(), room).await.ok()?.ok()
    }

    /// The bytes of a body that is held, if they are still what they were.
    async fn bytes(&self, remote: &Remote, wanted: HeldBody) -> Option<Bytes> {
        let entries: Vec<u64> = {
            let state = self.lock();
            if let Some((_, bytes)) = state.recent.iter().find(|(body, _)| *body == wanted) {
                return Some(bytes.clone());
            }
            state.held.iter().filter(|(_, body)| **body == wanted).map(|(id, _)| *id).collect()
        };
        for id in entries {
            if let Some((_, held)) = remote.repository().entry(id).await
                && whose(held.partition) == wanted.user
                && let Some(bytes) = whole(&held.body).await
                && BodyHash::of(&bytes) == wanted.hash
            {
                self.lock().remember(wanted, bytes.clone());
                return Some(bytes);
            }
            self.lock().held.remove(&id);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, body: HeldBody, bytes: Bytes) {
        self.recent_bytes += bytes.len();
        self.recent.push_back((body, bytes));
        while self.recent_bytes > MOST_RECENT
            && let Some((_, oldest)) = self.recent.pop_front()
        {
            self.recent_bytes -= oldest.len();
        }
    }

    fn hold(&mut self, id: u64, body: HeldBody) {
        self.held.insert(id, body);
        while self.held.len() > MOST {
            self.held.pop_first();
        }
    }
}

/// What has to be told.
#[derive(Default)]
struct Log {
    /// Entries that were there before, newest first, and then those that come. They are told of once they are whole.
    entries: VecDeque<u64>,
    gone: Vec<HeldBody>,
}

/// Tells ground which texts are held, until it is dropped with the carrier.
pub(crate) async fn keep(remote: &Remote, hop: &Hop) -> Infallible {
    let mut look = LOOK;
    // What goes on with the log of an earlier carrier has to come first.
    while !(hop.takes_bodies() && hop.mirror_begun()) {
        tokio::time::sleep(look).await;
        look = (look * 2).min(LONGEST_LOOK);
    }
    loop {
        let mut changes = remote.repository().changes();
        let mut log = Log::default();
        log.entries.extend(remote.repository().newest(MOST_LISTED).await);
        while log.follow(remote, &mut changes).await.is_ok() {
            log.tell(remote, hop).await;
        }
        // More changed than the channel holds: what is held is told anew, and what is not is noticed when it is needed.
    }
}

/// Some changes were missed, or are too many to be told one by one.
struct Missed;

impl Log {
    /// Takes changes in until something can be told.
    async fn follow(&mut self, remote: &Remote, changes: &mut Receiver<Change>) -> Result<(), Missed> {
        if self.entries.is_empty() && self.gone.is_empty() {
            match changes.recv().await {
                Ok(change) => self.note(remote, &change)?,
                Err(RecvError::Lagged(_)) => return Err(Missed),
                // The repository outlives every carrier.
                Err(RecvError::Closed) => std::future::pending::<()>().await,
            }
        } else {
            tokio::time::sleep(LOOK).await;
        }
        loop {
            match changes.try_recv() {
                Ok(change) => self.note(remote, &change)?,
                Err(TryRecvError::Lagged(_)) => return Err(Missed),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(()),
            }
        }
    }

    fn note(&mut self, remote: &Remote, change: &Change) -> Result<(), Missed> {
        match change {
            // What is known is only held on with another head.
            Change::Stored { id, .. } if remote.bodies().lock().held.contains_key(id) => {}
            Change::Stored { id, .. } => self.entries.push_back(*id),
            Change::Evicted { id, .. } => {
                let mut state = remote.bodies().lock();
                if let Some(body) = state.held.remove(id)
                    && !state.held.values().any(|other| *other == body)
                {
                    self.gone.push(body);
                }
            }
            Change::Cleared => {
                let mut state = remote.bodies().lock();
                self.gone.extend(std::mem::take(&mut state.held).into_values());
                (state.recent, state.recent_bytes) = (VecDeque::new(), 0);
                remote.dictionaries().clear();
            }
        }
        Ok(())
    }

    /// Tells the next portion, if the carrier has sent the last.
    async fn tell(&mut self, remote: &Remote, hop: &Hop) {
        if hop.mirror_backlog() > BACKLOG {
            return;
        }
        if !self.gone.is_empty() {
            let first = self.gone.len().min(PORTION);
            hop.tell_mirror(Word::Lacks(self.gone.drain(..first).collect()));
        }
        let (mut bodies, mut arriving) = (Vec::new(), VecDeque::new());
        while bodies.len() < PORTION {
            let Some(id) = self.entries.pop_front() else { break };
            match look(remote, id).await {
                Look::Whole(body) => {
                    remote.bodies().lock().hold(id, body);
                    bodies.push(body);
                }
                Look::Arriving => arriving.push_back(id),
                Look::Untold => {}
            }
        }
        arriving.append(&mut self.entries);
        self.entries = arriving;
        if !bodies.is_empty() {
            hop.tell_mirror(Word::Holds(bodies));
        }
    }
}

enum Look {
    Whole(HeldBody),
    Arriving,
    /// Gone, broken, or not of use.
    Untold,
}

async fn look(remote: &Remote, id: u64) -> Look {
    // An entry's body never changes; its head may.
    let known = remote.bodies().lock().held.get(&id).copied();
    if let Some(body) = known {
        return Look::Whole(body);
    }
    let Some((_, held)) = remote.repository().entry(id).await else { return Look::Untold };
    if held.body.is_broken() || !is_of_use(&held.head) {
        return Look::Untold;
    }
    if !held.body.is_whole() {
        return Look::Arriving;
    }
    if !(SMALLEST..=LARGEST_BASE as u64).contains(&held.body.written()) {
        return Look::Untold;
    }
    match whole(&held.body).await.filter(|bytes| can_be_base(bytes)) {
        Some(bytes) => Look::Whole(HeldBody { user: whose(held.partition), hash: BodyHash::of(&bytes) }),
        None => Look::Untold,
    }
}

/// A text as it is delivered, whole.
fn is_of_use(head: &Stored) -> bool {
    let media = head.fields.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    head.status == StatusCode::OK
        && media.is_some_and(is_text)
        && !head.fields.contains_key(header::CONTENT_ENCODING)
}

fn whose(partition: Partition) -> Option<u64> {
    match partition {
        Partition::Shared => None,
        Partition::User(user) => Some(user),
    }
}

/// All of a body that is whole and not too long.
async fn whole(body: &Body) -> Option<Bytes> {
    let mut reader = body.reader()?;
    let mut bytes = BytesMut::new();
    loop {
        match reader.next().await {
            Ok(Piece::Data(piece)) => {
                bytes.extend_from_slice(&piece);
                if bytes.len() > LARGEST_BASE {
                    return None;
                }
            }
            Ok(Piece::End(_)) => return Some(bytes.freeze()),
            Err(_) => return None,
        }
    }
}
