//! What was answered, for as long as it may answer again, in bounded memory; and what is asked for often enough to be
//! asked anew before it runs out. Handed the time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::answer::Answer;
use crate::query::Wanted;

/// Times that an answer is used before it counts as popular.
const POPULAR: u32 = 2;
/// An answer is asked for anew in the last part of its life: a tenth, and at the least what a question takes over a long hop.
const LAST_PART: u32 = 10;
const LEAST_AHEAD: Duration = Duration::from_secs(2);
/// Bytes of maps and pointers for each entry, about.
const OVERHEAD: usize = 256;

/// Answers by what was asked. Those unused for the longest go first.
#[derive(Debug)]
pub struct Cache {
    most: usize,
    size: usize,
    held: HashMap<Wanted, Entry>,
    by_use: BTreeMap<u64, Wanted>,
    due: BTreeSet<(Duration, Wanted)>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    answer: Arc<Answer>,
    came: Duration,
    lifetime: Duration,
    used: u64,
    hits: u32,
    due: Option<Duration>,
}

impl Entry {
    fn size(&self, wanted: &Wanted) -> usize {
        // The name is shared by its three places.
        self.answer.size() + 3 * wanted.size() + OVERHEAD
    }
}

impl Cache {
    /// One that takes so many bytes of memory.
    pub fn new(most: usize) -> Cache {
        Cache { most, size: 0, held: HashMap::new(), by_use: BTreeMap::new(), due: BTreeSet::new(), clock: 0 }
    }

    /// Answers held.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Bytes held, about.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The answer, and how many seconds old it is.
    pub fn find(&mut self, now: Duration, wanted: &Wanted) -> Option<(Arc<Answer>, u32)> {
        self.clock += 1;
        let entry = self.held.get_mut(wanted)?;
        let age = now.saturating_sub(entry.came);
        if age >= entry.lifetime {
            self.remove(wanted);
            return None;
        }
        if let Some(wanted) = self.by_use.remove(&entry.used) {
            entry.used = self.clock;
            self.by_use.insert(self.clock, wanted);
        }
        entry.hits += 1;
        if entry.hits == POPULAR {
            let ahead = (entry.lifetime / LAST_PART).max(LEAST_AHEAD);
            let due = (entry.came + entry.lifetime.saturating_sub(ahead)).max(now);
            entry.due = Some(due);
            self.due.insert((due, wanted.clone()));
        }
        Some((Arc::clone(&entry.answer), age.as_secs() as u32))
    }

    /// Keeps an answer if it may be kept, in place of what was held.
    pub fn put(&mut self, now: Duration, wanted: &Wanted, answer: &Arc<Answer>) {
        self.remove(wanted);
        let Some(lifetime) = answer.lifetime else { return };
        self.clock += 1;
        let lifetime = Duration::from_secs(lifetime.into());
        let answer = Arc::clone(answer);
        let entry = Entry { answer, came: now, lifetime, used: self.clock, hits: 0, due: None };
        self.size += entry.size(wanted);
        self.by_use.insert(self.clock, wanted.clone());
        self.held.insert(wanted.clone(), entry);
        while self.size > self.most
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.remove(&oldest);
        }
    }

    /// The next that is to be asked for anew: it is popular and about to run out. Each is told once.
    pub fn poll_due(&mut self, now: Duration) -> Option<Wanted> {
        self.due.first().filter(|(due, _)| *due <= now)?;
        let (_, wanted) = self.due.pop_first()?;
        if let Some(entry) = self.held.get_mut(&wanted) {
            entry.due = None;
        }
        Some(wanted)
    }

    /// When [`Cache::poll_due`] has something next.
    pub fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(due, _)| *due)
    }

    fn remove(&mut self, wanted: &Wanted) {
        let Some(entry) = self.held.remove(wanted) else { return };
        self.size -= entry.size(wanted);
        self.by_use.remove(&entry.used);
        if let Some(due) = entry.due {
            self.due.remove(&(due, wanted.clone()));
        }
    }
}
