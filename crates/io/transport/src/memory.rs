//! What earlier connections measured of each path, kept on disk, so that the next one over the same path
//! need not search (RFC 9959). A path is a peer, by key and address, and the local address that leads to
//! it. It must not judge what is measured: that is `core/congestion`.

mod file;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use farhop_congestion::Saved;
use farhop_units::BitRate;

use crate::identity::PublicKey;

/// How often what has changed is written.
const WRITE_EVERY: Duration = Duration::from_secs(30);
/// A connection that has begun to use what is saved, and has not said how it went, keeps others from it
/// for so long (RFC 9959 §3.2: one at a time).
const CLAIM: Duration = Duration::from_secs(30);
/// A loss that differs by less is no news.
const LOSS_STEP: f64 = 0.0005;
/// More paths than a ground has remotes; beyond it the oldest go.
const MOST_PATHS: usize = 4096;

/// Where one connection leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PathKey {
    /// The peer's key, in hexadecimal.
    peer: String,
    remote: IpAddr,
    /// `None` where the system does not tell.
    local: Option<IpAddr>,
}

/// One path's measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Entry {
    /// `None` where no controller had to search, or what it found has proved too much.
    saved: Option<Saved>,
    /// `None` where next to nothing has been lost, or nobody counts.
    loss: Option<Loss>,
    /// When `saved` was measured, or the path first used.
    at: SystemTime,
}

/// How many of this end's packets a path loses, 0 to 1, and since when it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Loss {
    share: f64,
    at: SystemTime,
}

/// The paths of one end.
#[derive(Debug)]
pub struct Memory {
    file: PathBuf,
    state: Mutex<State>,
}

/// What is in the file.
#[derive(Debug, Clone, PartialEq, Default)]
struct Kept {
    paths: HashMap<PathKey, Entry>,
    carried: HashMap<Way, Carried>,
}

/// Where carriers lead, whatever peer is there: its address, and ours that leads to it, where the system tells.
pub(crate) type Way = (IpAddr, Option<IpAddr>);

/// The most that the way to a peer has carried, from it and to it, and when that was last seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Carried {
    pub(crate) hither: Option<BitRate>,
    pub(crate) thither: Option<BitRate>,
    at: SystemTime,
}

#[derive(Debug, Default)]
struct State {
    kept: Kept,
    claims: HashMap<PathKey, Instant>,
    changed: bool,
}

impl State {
    /// Has `change` enter what was measured of a path.
    fn keep(&mut self, key: &PathKey, change: impl FnOnce(&mut Entry)) {
        let new = || Entry { saved: None, loss: None, at: SystemTime::now() };
        change(self.kept.paths.entry(key.clone()).or_insert_with(new));
        self.changed = true;
        if self.kept.paths.len() > MOST_PATHS
            && let Some(oldest) =
                self.kept.paths.iter().min_by_key(|(_, entry)| entry.at).map(|(key, _)| key.clone())
        {
            self.kept.paths.remove(&oldest);
        }
    }
}

/// Why paths cannot be remembered.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot keep what is measured of paths ({error}); give 'paths' as a file in a folder that exists and is writable", file.display())]
pub struct MemoryError {
    file: PathBuf,
    error: io::Error,
}

impl Memory {
    /// What `file` holds; nothing where there is none yet. From now on it is written when it changes, and
    /// when [`Memory::save`] is called. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The file cannot be read or written. One of another version, or damaged, is set aside with a line
    /// in the log.
    pub fn open(file: impl Into<PathBuf>) -> Result<Arc<Memory>, MemoryError> {
        let file = file.into();
        let failed = |error| MemoryError { file: file.clone(), error };
        let kept = file::load(&file).map_err(failed)?;
        file::store(&file, &kept).map_err(failed)?;
        let state = Mutex::new(State { kept, ..State::default() });
        let memory = Arc::new(Memory { file, state });
        tokio::spawn(write_now_and_then(Arc::downgrade(&memory)));
        Ok(memory)
    }

    /// Writes what has changed.
    pub fn save(&self) {
        let kept = {
            let mut state = self.lock();
            if !std::mem::take(&mut state.changed) {
                return;
            }
            state.kept.clone()
        };
        if let Err(error) = file::store(&self.file, &kept) {
            let error = MemoryError { file: self.file.clone(), error };
            tracing::warn!(target: "farhop", "{error}");
        }
    }

    /// What a way has carried within a day.
    pub(crate) fn carried(&self, way: Way) -> Option<Carried> {
        let carried = self.lock().kept.carried.get(&way).copied();
        carried.filter(|carried| carried.at.elapsed().unwrap_or_default() < Saved::LIFETIME)
    }

    /// Keeps what a way carries, where that is news.
    pub(crate) fn note_carried(&self, way: Way, hither: Option<BitRate>, thither: Option<BitRate>) {
        let known = self.carried(way);
        let (known_hither, known_thither) = known.map_or((None, None), |known| (known.hither, known.thither));
        let grows = |known: Option<BitRate>, seen: Option<BitRate>| {
            seen.is_some_and(|seen| known.is_none_or(|known| seen.0 > known.0 + known.0 / 4))
        };
        let (hither, thither) = (hither.max(known_hither), thither.max(known_thither));
        if grows(known_hither, hither) || grows(known_thither, thither) {
            let mut state = self.lock();
            state.kept.carried.insert(way, Carried { hither, thither, at: SystemTime::now() });
            state.changed = true;
            let carried = &mut state.kept.carried;
            if carried.len() > MOST_PATHS
                && let Some(oldest) = carried.iter().min_by_key(|(_, known)| known.at).map(|(way, _)| *way)
            {
                carried.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write_now_and_then(memory: std::sync::Weak<Memory>) {
    let mut ticks = tokio::time::interval(WRITE_EVERY);
    loop {
        ticks.tick().await;
        let Some(memory) = memory.upgrade() else { return };
        // A few kilobytes at most each half minute, but a disk may be asleep.
        let _ = tokio::task::spawn_blocking(move || memory.save()).await;
    }
}

/// What one connection has to do with it: it is told what is known of its path, and tells what it
/// measures. Clones are the same connection's.
#[derive(Debug, Clone, Default)]
pub struct Recall(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    memory: Arc<Memory>,
    key: OnceLock<PathKey>,
}

impl Recall {
    /// For a connection of which nothing is known or kept.
    pub fn nothing() -> Self {
        Recall::default()
    }

    /// For a connection whose peer will be known later.
    pub fn from(memory: &Arc<Memory>) -> Self {
        Recall(Some(Arc::new(Inner { memory: Arc::clone(memory), key: OnceLock::new() })))
    }

    /// Says where the connection leads. The first word counts.
    pub(crate) fn identify(&self, peer: &PublicKey, remote: IpAddr, local: Option<IpAddr>) {
        if let Some(inner) = &self.0 {
            let peer = peer.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            let key = PathKey { peer, remote: remote.to_canonical(), local };
            let _ = inner.key.set(key); // set already: the same connection
        }
    }

    /// What is saved of the path, aged; `None` as long as the peer is not known. The path is then this
    /// connection's until [`Recall::release`].
    pub(crate) fn claim(&self) -> Option<Option<Saved>> {
        let Some(inner) = &self.0 else { return Some(None) };
        let key = inner.key.get()?;
        let mut state = inner.memory.lock();
        let now = Instant::now();
        if state.claims.get(key).is_some_and(|since| now.duration_since(*since) < CLAIM) {
            return Some(None);
        }
        let Some(entry) = state.kept.paths.get(key).copied() else { return Some(None) };
        state.claims.insert(key.clone(), now);
        // A clock that was set back makes it young, not invalid.
        let age = entry.at.elapsed().unwrap_or_default();
        Some(entry.saved.and_then(|saved| saved.aged(age)))
    }

    /// Share of this end's packets that the path lost when it was last in use, 0 to 1; 0 where that is not known, or was too
    /// long ago.
    pub(crate) fn loss(&self) -> f64 {
        let mut known = None;
        self.with_key(|state, key| known = state.kept.paths.get(key).and_then(|entry| entry.loss));
        let young = known.filter(|loss| loss.at.elapsed().unwrap_or_default() < Saved::LIFETIME);
        young.map_or(0.0, |loss| loss.share)
    }

    /// Keeps what the path is believed to lose, where that is news.
    pub(crate) fn note_loss(&self, loss: f64) {
        self.with_key(|state, key| {
            let known =
                state.kept.paths.get(key).and_then(|entry| entry.loss).map_or(0.0, |known| known.share);
            if (loss - known).abs() > (known / 4.0).max(LOSS_STEP) {
                let at = SystemTime::now();
                state.keep(key, |entry| entry.loss = Some(Loss { share: loss, at }));
            }
        });
    }

    /// The connection has done with what was saved.
    pub(crate) fn release(&self) {
        self.with_key(|state, key| {
            state.claims.remove(key);
        });
    }

    /// Keeps what the connection has measured.
    /// A connection that has carried little says only that so much passes: what is known to be more stays.
    pub(crate) fn note(&self, saved: Saved) {
        let at = SystemTime::now();
        self.with_key(|state, key| {
            let known = state
                .kept
                .paths
                .get(key)
                .and_then(|entry| entry.saved?.aged(at.duration_since(entry.at).unwrap_or_default()));
            if saved.full.is_some() || known.is_none_or(|known| known.capacity <= saved.capacity) {
                let full = saved.full.or(known.and_then(|known| known.full));
                let saved = Saved { full: full.filter(|full| *full >= saved.capacity), ..saved };
                state.keep(key, |entry| (entry.saved, entry.at) = (Some(saved), at));
            }
        });
    }

    /// What was saved has proved too much (RFC 9959 §3.5).
    pub(crate) fn forget(&self) {
        self.with_key(|state, key| {
            if let Some(entry) = state.kept.paths.get_mut(key) {
                entry.saved = None;
                state.changed = true;
            }
        });
    }

    fn with_key(&self, change: impl FnOnce(&mut State, &PathKey)) {
        if let Some(inner) = &self.0
            && let Some(key) = inner.key.get()
        {
            change(&mut inner.memory.lock(), key);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(key) = self.key.get() {
            self.memory.lock().claims.remove(key);
        }
    }
}

/// The way to `remote` as the routes stand.
pub(crate) fn way_to(remote: std::net::SocketAddr) -> Way {
    (remote.ip().to_canonical(), local_address(remote))
}

/// The local address from which packets to `remote` leave, as the routes stand.
pub(crate) fn local_address(remote: std::net::SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match remote.ip() {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    // A datagram socket that is connected asks for the route and sends nothing.
    let socket = std::net::UdpSocket::bind((any, 0)).ok()?;
    socket.connect(remote).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farhop_units::Bytes;

    const MEASURED: Saved =
        Saved { capacity: Bytes(600_000), rtt: Duration::from_millis(650), full: Some(Bytes(600_000)) };

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn recall(memory: &Arc<Memory>, remote: u8, local: u8) -> Recall {
        let recall = Recall::from(memory);
        recall.identify(&PublicKey::from_bytes([1; 32]), ip(remote), Some(ip(local)));
        recall
    }

    fn memory() -> (tempfile::TempDir, Arc<Memory>) {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::open(folder.path().join("paths")).unwrap();
        (folder, memory)
    }

    #[tokio::test]
    async fn what_was_measured_is_there_for_the_same_pair_of_addresses_alone() {
        let (folder, memory) = memory();
        recall(&memory, 1, 2).note(MEASURED);
        memory.save();
        let again = Memory::open(folder.path().join("paths")).unwrap();
        let known = |remote, local| recall(&again, remote, local).claim().unwrap();
        assert_eq!(known(1, 2).map(|saved| saved.rtt), Some(MEASURED.rtt));
        assert_eq!((known(1, 3), known(3, 2)), (None, None));
        let other = Recall::from(&again);
        other.identify(&PublicKey::from_bytes([2; 32]), ip(1), Some(ip(2)));
        assert_eq!(other.claim(), Some(None));
    }

    #[tokio::test]
    async fn a_connection_that_carried_little_takes_nothing_from_what_is_known() {
        let (_folder, memory) = memory();
        let known = || {
            let recall = recall(&memory, 1, 2);
            let saved = recall.claim().flatten();
            recall.release();
            saved.map(|saved| (saved.capacity.0 / 10_000, saved.full))
        };
        let little = Saved { capacity: Bytes(90_000), full: None, ..MEASURED };
        recall(&memory, 1, 2).note(little);
        assert_eq!(known(), Some((8, None)), "a moment old");
        recall(&memory, 1, 2).note(MEASURED);
        recall(&memory, 1, 2).note(little);
        assert_eq!(known(), Some((59, MEASURED.full)));
        // A path that was full with less has become narrower.
        let narrower = Saved { capacity: Bytes(90_000), full: Some(Bytes(90_000)), ..MEASURED };
        recall(&memory, 1, 2).note(narrower);
        assert_eq!(known(), Some((8, narrower.full)));
    }

    #[tokio::test]
    async fn nothing_is_said_before_the_peer_is_known() {
        let (_folder, memory) = memory();
        let unknown = Recall::from(&memory);
        assert_eq!(unknown.claim(), None);
        unknown.note(MEASURED);
        unknown.identify(&PublicKey::from_bytes([1; 32]), ip(1), None);
        assert_eq!(unknown.claim(), Some(None));
        assert_eq!(Recall::nothing().claim(), Some(None));
    }

    #[tokio::test]
    async fn two_connections_do_not_use_it_at_once() {
        let (_folder, memory) = memory();
        let first = recall(&memory, 1, 2);
        first.note(MEASURED);
        assert!(first.claim().unwrap().is_some());
        assert_eq!(recall(&memory, 1, 2).claim(), Some(None));
    }

    #[tokio::test]
    async fn one_that_has_done_with_it_leaves_it_to_the_next() {
        let (_folder, memory) = memory();
        let first = recall(&memory, 1, 2);
        first.note(MEASURED);
        assert!(first.claim().unwrap().is_some());
        first.release();
        assert!(recall(&memory, 1, 2).claim().unwrap().is_some());
    }

    #[tokio::test]
    async fn what_proved_too_much_is_forgotten() {
        let (folder, memory) = memory();
        let first = recall(&memory, 1, 2);
        first.note(MEASURED);
        memory.save();
        first.forget();
        memory.save();
        let again = Memory::open(folder.path().join("paths")).unwrap();
        assert_eq!(recall(&again, 1, 2).claim(), Some(None));
    }

    #[tokio::test]
    async fn what_a_path_loses_is_there_for_the_next_connection() {
        let (folder, memory) = memory();
        let first = recall(&memory, 1, 2);
        first.note_loss(0.0);
        memory.save();
        assert!(memory.lock().kept.paths.is_empty(), "no path is kept for nothing");
        first.note_loss(0.012);
        first.note(MEASURED);
        first.note_loss(0.0125);
        first.forget();
        memory.save();
        let again = Memory::open(folder.path().join("paths")).unwrap();
        assert_eq!([recall(&again, 1, 2).loss(), recall(&again, 1, 3).loss()], [0.012, 0.0]);
        recall(&again, 1, 2).note_loss(0.0);
        assert_eq!(recall(&again, 1, 2).loss(), 0.0);
        assert_eq!(Recall::nothing().loss(), 0.0);
    }

    #[tokio::test]
    async fn what_a_way_has_carried_is_there_after_a_restart() {
        let (folder, memory) = memory();
        let mbit = |rate| Some(BitRate::mbit(rate));
        let (way, other) = ((ip(1), Some(ip(2))), (ip(1), Some(ip(3))));
        memory.note_carried(way, mbit(6), None);
        memory.note_carried(way, mbit(2), mbit(1));
        memory.note_carried(way, None, None);
        memory.save();
        let again = Memory::open(folder.path().join("paths")).unwrap();
        let known = again.carried(way).map(|carried| (carried.hither, carried.thither));
        assert_eq!((known, again.carried(other)), (Some((mbit(6), mbit(1))), None));
        let old = SystemTime::now() - Saved::LIFETIME;
        again.lock().kept.carried.values_mut().for_each(|carried| carried.at = old);
        assert_eq!(again.carried(way), None);
    }

    #[tokio::test]
    async fn a_folder_that_is_not_there_is_named_at_the_start() {
        let error = Memory::open("/nowhere/paths").unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/paths: cannot keep"), "{error}");
    }
}
