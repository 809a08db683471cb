//! Tells ground what the repository holds, and by what origins can be asked about it: first all of it, newest first, then
//! every store and eviction; on another carrier only what ground has not heard. It goes in small portions, after everything
//! that someone waits for. Which of it answers a request is still `lookup`'s word.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use farhop_freshness::ResponseDirectives;
use farhop_htotp::mirror::{
    Bound, Content, Entry, Ledger, MOST, Opening, Position, Telling, Validators, Word, fingerprint,
};
use farhop_store::{Change, Held, Partition};
use farhop_transport::hop::Hop;
use http::header::{self, HeaderMap};
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::Remote;
use crate::lookup::{NO_ENTRY, depends_on};

/// Entries in one word.
const PORTION: usize = 128;
/// Bytes that may wait on the carrier before the next word.
const BACKLOG: usize = 2_048;
/// How often room for the next word, and bodies that have become whole, are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// What is not fresh for longer than this is only worth telling of if its origin can be asked about it: ground would not
/// count on it.
const SHORTEST: Duration = Duration::from_secs(10);
/// An entity tag that is longer is not worth telling of.
const LONGEST_TAG: usize = 128;

/// What ground says of the mirror.
pub(crate) enum Said {
    /// How far it has heard.
    Heard(Position),
    /// Which buckets of a summary, of so many, differ.
    Differ(u64, Vec<u64>),
}

/// Entries that ground has missed, and that are looked at next; of more it is told when it misses them again.
const MOST_MISSED: usize = 1_024;

/// What ground was told, on whichever carrier; one at a time is told more.
pub(crate) struct Mirror {
    log: tokio::sync::Mutex<Log>,
    missed: std::sync::Mutex<BTreeSet<u64>>,
    has_missed: Notify,
}

impl Mirror {
    /// Ground has promised what this entry answers: it was not told of it, or not any more, or knows it already and has its reasons.
    pub(crate) fn missed(&self, entry: u64) {
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        if entry != NO_ENTRY && missed.len() < MOST_MISSED && missed.insert(entry) {
            self.has_missed.notify_one();
        }
    }

    fn take_missed(&self) -> BTreeSet<u64> {
        std::mem::take(&mut *self.missed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Log {
    ledger: Ledger,
    /// None at first, and when some were missed.
    changes: Option<Receiver<Change>>,
    hasher: RandomState,
}

impl Default for Mirror {
    fn default() -> Self {
        let hasher = RandomState::new();
        // Chosen by the system: no other log of this remote has this name.
        let name = hasher.hash_one(std::process::id()) >> 2 | 1;
        let log = tokio::sync::Mutex::new(Log { ledger: Ledger::new(name), changes: None, hasher });
        Mirror { log, missed: <_>::default(), has_missed: Notify::new() }
    }
}

/// Keeps ground's mirror until it is dropped with the carrier.
pub(crate) async fn keep(remote: &Remote, hop: &Hop, mut said: UnboundedReceiver<Said>) -> Infallible {
    let mut log = remote.mirror().log.lock().await;
    // One that has nothing to go on with is told all.
    let (heard, is_kept) = heard(hop, &mut said).await;
    log.listen(remote).await;
    match log.ledger.resume(heard) {
        Opening::Anew(at) => begin_anew(hop, at, is_kept),
        Opening::From(at) => {
            hop.tell_mirror(Word::Log(at));
        }
        Opening::Compare(at, sums) => {
            hop.tell_mirror(Word::Log(at));
            hop.tell_mirror(Word::Summary(sums));
        }
    }
    loop {
        log.follow(remote, hop, &mut said, is_kept).await;
        log.tell(remote, hop).await;
    }
}

/// How far ground has heard, once it has said; and whether it will know on the next carrier.
async fn heard(hop: &Hop, said: &mut UnboundedReceiver<Said>) -> (Position, bool) {
    loop {
        if hop.log_kept() == Some(false) {
            return (Position::default(), false);
        }
        tokio::select! {
            Some(said) = said.recv() => {
                if let Said::Heard(position) = said {
                    return (position, true);
                }
            }
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

fn begin_anew(hop: &Hop, at: Position, is_kept: bool) {
    hop.tell_mirror(Word::Reset);
    if is_kept {
        hop.tell_mirror(Word::Log(at));
    }
}

impl Log {
    /// Listens to what changes; to all that is held, where some changes were missed.
    async fn listen(&mut self, remote: &Remote) {
        if self.changes.is_none() {
            // Before it is listed: what changes meanwhile is noted twice rather than never.
            let changes = remote.repository().changes();
            let held = remote.repository().newest(MOST).await;
            self.ledger.held(&held);
            self.changes = Some(changes);
        }
    }

    /// Takes in what changes, and what ground says, until something can be told.
    async fn follow(
        &mut self,
        remote: &Remote,
        hop: &Hop,
        said: &mut UnboundedReceiver<Said>,
        is_kept: bool,
    ) {
        self.listen(remote).await;
        let is_told = self.ledger.is_told();
        let Some(changes) = &mut self.changes else { return };
        let first = tokio::select! {
            biased;
            Some(said) = said.recv() => {
                if let Said::Differ(of, buckets) = said {
                    let of = usize::try_from(of).unwrap_or(usize::MAX);
                    hop.tell_mirror(Word::Log(self.ledger.differ(of, &buckets)));
                }
                return;
            }
            () = remote.mirror().has_missed.notified() => {
                let missed = remote.mirror().take_missed();
                return missed.into_iter().for_each(|entry| self.ledger.stored(entry));
            }
            change = changes.recv(), if is_told => Some(change),
            () = tokio::time::sleep(LOOK), if !is_told => None,
        };
        let mut next = match first {
            Some(Ok(change)) => Ok(change),
            Some(Err(RecvError::Lagged(count))) => Err(TryRecvError::Lagged(count)),
            // The repository outlives every carrier.
            Some(Err(RecvError::Closed)) => std::future::pending().await,
            None => changes.try_recv(),
        };
        loop {
            match next {
                Ok(Change::Stored { id, .. }) => self.ledger.stored(id),
                Ok(Change::Evicted { id, .. }) => self.ledger.evicted(id),
                Ok(Change::Cleared) => begin_anew(hop, self.ledger.clear(), is_kept),
                Err(TryRecvError::Lagged(_)) => return self.changes = None,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
            next = changes.try_recv();
        }
    }

    /// Tells the next portion, if the carrier has sent the last. Until it is told nothing of it is lost: this may be dropped
    /// while it looks.
    async fn tell(&mut self, remote: &Remote, hop: &Hop) {
        if hop.mirror_backlog() > BACKLOG {
            return;
        }
        let evicted = self.ledger.take_evicted(8 * PORTION);
        if !evicted.is_empty() {
            hop.tell_mirror(Word::Evicted(evicted));
        }
        let (mut found, mut untold) = (Vec::new(), Vec::new());
        for number in self.ledger.owed(PORTION) {
            match look(remote, number).await {
                Look::Whole(entry, until_s, validators) => found.push((entry, until_s, validators)),
                other => untold.push((number, other)),
            }
        }
        for (number, look) in untold {
            match look {
                Look::Arriving => self.ledger.put_off(number),
                Look::Whole(..) | Look::Untold => self.ledger.pass(number),
            }
        }
        let content = |(entry, until_s, validators): &(Entry, u64, Option<Validators>)| {
            // 0 is none.
            let validators = validators.as_ref().map_or(0, |own| self.hasher.hash_one(own) | 1);
            (entry.number, Content { fingerprint: entry.fingerprint, until_s: *until_s, validators })
        };
        let contents: Vec<_> = found.iter().map(content).collect();
        let Telling { stored, validators } = self.ledger.tell(&contents);
        let mut found: HashMap<u64, _> = found.into_iter().map(|one| (one.0.number, one)).collect();
        if !stored.is_empty() {
            let entries = stored.iter().filter_map(|number| found.get(number).map(|(entry, ..)| *entry));
            hop.tell_mirror(Word::Stored(entries.collect()));
        }
        if !validators.is_empty() {
            let none = |number| Validators { number, tag: Default::default(), modified: 0 };
            let own =
                |number: u64| found.remove(&number).and_then(|(.., own)| own).unwrap_or_else(|| none(number));
            hop.tell_mirror(Word::Validators(validators.into_iter().map(own).collect()));
        }
    }
}

/// Whether it is an image that ground has coded anew, by its tag.
fn is_made_at_ground(fields: &HeaderMap) -> bool {
    fields.get(header::ETAG).is_some_and(|tag| tag.as_bytes().starts_with(b"W/\"farhop."))
}

enum Look {
    /// With the end of its freshness in seconds since 1970, 0 where it has to be validated whenever it is used.
    Whole(Entry, u64, Option<Validators>),
    Arriving,
    /// Gone, broken, of no use to ground, or not to be told in these words.
    Untold,
}

async fn look(remote: &Remote, number: u64) -> Look {
    match remote.repository().entry(number).await {
        Some((_, held)) if held.body.is_broken() => Look::Untold,
        Some((_, held)) if !held.body.is_whole() => Look::Arriving,
        Some((url, held)) => entry(number, &url, &held).unwrap_or(Look::Untold),
        None => Look::Untold,
    }
}

fn entry(number: u64, url: &str, held: &Held) -> Option<Look> {
    let (head, now, scope) = (&held.head, SystemTime::now(), held.partition.scope());
    let validators = head.validators().and_then(|own| {
        let tag = own.tag.as_ref().map_or(&[][..], |tag| tag.as_bytes());
        let own = Validators { number, tag: tag.to_vec().into(), modified: own.modified.unwrap_or(0) };
        (own.tag.len() <= LONGEST_TAG).then_some(own)
    });
    let (lifetime, age) = (head.lifetime(scope), head.age(now));
    let is_checked = ResponseDirectives::of(&head.fields).no_cache;
    let fresh = if is_checked { Duration::ZERO } else { lifetime.saturating_sub(age) };
    if fresh <= SHORTEST && validators.is_none() {
        return None;
    }
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let until = if is_checked { Duration::ZERO } else { now.saturating_sub(age).saturating_add(lifetime) };
    let user = match held.partition {
        Partition::Shared => None,
        Partition::User(user) => Some(user),
    };
    let mut names = depends_on(held.partition, head)?;
    // What ground has made of an image depends on being asked for as one, and not for a canvas. Ground asks the origin by its tag for nothing else, and a
    // request for something else finds here that it is not answered.
    if is_made_at_ground(&head.fields) {
        names.retain(|name| !matches!(name.as_str(), "sec-fetch-dest" | "sec-fetch-mode"));
    }
    let bound = Bound::to(&names)?;
    let fingerprint = fingerprint(user, url, bound, &head.nominated);
    let entry = Entry { number, user, bound, fresh_s: fresh.as_secs(), fingerprint };
    Some(Look::Whole(entry, until.as_secs(), validators))
}
