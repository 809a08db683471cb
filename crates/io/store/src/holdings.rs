//! What is held in memory, by URL: all of what answers it, or, where there is a disk, nothing until that was asked. Under
//! one lock, and nothing in here waits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use farhop_freshness::Stored;
use http::HeaderMap;
use tokio::sync::watch;

use crate::disk::{BodyOnDisk, Followed};
use crate::invalidations::Invalidations;
use crate::repository::{Held, Partition};

/// Variants of one URL that are held at a time for anyone, and for each user (by `Vary`): as many as there are browsers in use
/// behind one store.
pub(crate) const VARIANTS: usize = 32;
/// What an entry costs besides its body, and each of its fields besides its name and value.
const OVERHEAD: u64 = 1024;
const FIELD: u64 = 104;

/// A response that is held.
pub(crate) struct Entry {
    pub(crate) held: Held,
    pub(crate) on_disk: bool,
    /// Where its body is read from, if not from memory alone.
    pub(crate) source: Option<Source>,
    /// When it answered last; what has not so far comes before all that have.
    used: u64,
}

/// A body that is not in memory alone.
#[derive(Clone)]
pub(crate) enum Source {
    /// It is in its file.
    File(BodyOnDisk),
    /// It is written there while it comes.
    Growing(Followed),
}

impl Entry {
    /// What has answered nothing so far.
    pub(crate) fn new(held: Held, on_disk: bool, source: Option<Source>) -> Entry {
        Entry { held, on_disk, source, used: 0 }
    }

    /// Bytes that it takes besides its body.
    fn cost(&self, url: &str) -> u64 {
        let head = &self.held.head;
        let fields = head.fields.iter().chain(&head.nominated);
        let fields = fields.map(|(name, value)| FIELD + (name.as_str().len() + value.len()) as u64);
        OVERHEAD + url.len() as u64 + fields.sum::<u64>()
    }

    /// It cannot be read from its beginning.
    pub(crate) fn is_spent(&self) -> bool {
        self.held.body.is_broken() || !self.held.body.can_be_joined()
    }

    pub(crate) fn is_growing(&self) -> bool {
        matches!(self.source, Some(Source::Growing(_)))
    }
}

/// All that is held of a URL, oldest first.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) entries: Vec<Entry>,
    /// What the disk has of it is among the entries.
    pub(crate) is_known: bool,
    /// The disk is being asked; closed when that is over.
    pub(crate) coming: Option<watch::Receiver<()>>,
    /// What the disk has of it was invalidated, or these entries of it were, before the disk was asked.
    pub(crate) is_outdated: bool,
    pub(crate) gone: Vec<u64>,
    /// Changes that are not on disk yet: till then memory's word is what counts.
    pub(crate) writes: u32,
    used: u64,
}

impl Group {
    /// Nothing would be lost or read anew too early if memory forgot it.
    fn can_be_left_to_the_disk(&self) -> bool {
        let grows = self.entries.iter().any(Entry::is_growing);
        self.writes == 0 && self.coming.is_none() && !self.is_outdated && !grows
    }
}

/// What is in memory.
#[derive(Default)]
pub(crate) struct Holdings {
    groups: HashMap<Arc<str>, Group>,
    urls: HashMap<u64, Arc<str>>,
    /// Last use → URL: the first has been unused longest.
    by_use: BTreeMap<u64, Arc<str>>,
    /// Bytes of all entries besides their bodies.
    costs: u64,
    invalidated: Invalidations,
    /// Bodies that come and will be held once they are whole, and what they answer. An invalidation takes them from here.
    coming: HashMap<u64, Arc<str>>,
    /// Entries that are to be written down as soon as they are whole.
    awaiting: HashSet<u64>,
    next: u64,
    clock: u64,
}

impl Holdings {
    /// With numbers from `next` on for what comes.
    pub(crate) fn numbered_from(next: u64) -> Holdings {
        Holdings { next, ..Holdings::default() }
    }

    /// A number that no entry has had.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Bytes of all entries besides their bodies.
    pub(crate) fn costs(&self) -> u64 {
        self.costs
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        self.urls.keys().copied()
    }

    pub(crate) fn group(&self, url: &str) -> Option<&Group> {
        self.groups.get(url)
    }

    /// What is held of this URL, to be changed; nothing of it is used by that.
    pub(crate) fn group_mut(&mut self, url: &str) -> Option<&mut Group> {
        self.groups.get_mut(url)
    }

    /// The same, which is there afterwards.
    pub(crate) fn group_or_new(&mut self, url: &Arc<str>) -> &mut Group {
        if !self.groups.contains_key(url) {
            self.clock += 1;
            self.by_use.insert(self.clock, Arc::clone(url));
            self.groups.insert(Arc::clone(url), Group { used: self.clock, ..Group::default() });
        }
        self.groups.get_mut(url).expect("it is there now")
    }

    /// What is held of this URL is used.
    pub(crate) fn use_group(&mut self, url: &str) -> Option<&mut Group> {
        let group = self.groups.get_mut(url)?;
        if let Some(name) = self.by_use.remove(&group.used) {
            self.clock += 1;
            group.used = self.clock;
            self.by_use.insert(self.clock, name);
        }
        Some(group)
    }

    /// Forgets a URL of which there is nothing to know.
    pub(crate) fn drop_if_empty(&mut self, url: &str) {
        let is_empty = |group: &&Group| group.entries.is_empty() && group.can_be_left_to_the_disk();
        if let Some(group) = self.groups.get(url).filter(is_empty) {
            self.by_use.remove(&group.used);
            self.groups.remove(url);
        }
    }

    /// An entry is to be written down as soon as it is whole.
    pub(crate) fn await_disk(&mut self, id: u64) {
        self.awaiting.insert(id);
    }

    /// Whether it was to be written down; from now on it is not.
    pub(crate) fn awaits_disk_no_more(&mut self, id: u64) -> bool {
        self.awaiting.remove(&id)
    }

    /// The body `id` begins to come, which will be held once it is whole.
    pub(crate) fn await_body(&mut self, id: u64, url: &Arc<str>) {
        self.coming.insert(id, Arc::clone(url));
    }

    /// Whether it may be held: it was awaited, and nothing has made it doubtful since. From now on it is not awaited.
    pub(crate) fn awaits_body_no_more(&mut self, id: u64) -> bool {
        self.coming.remove(&id).is_some()
    }

    /// What the disk is being asked for is invalid, and so is what is coming.
    pub(crate) fn outdate_what_comes(&mut self) {
        self.coming.clear();
        let coming = self.groups.values_mut().filter(|group| group.coming.is_some());
        coming.for_each(|group| group.is_outdated = true);
    }

    /// What is to be written down as soon as it is whole.
    pub(crate) fn awaiting(&self) -> Vec<u64> {
        self.awaiting.iter().copied().collect()
    }

    /// The entry of this number, with its URL.
    pub(crate) fn entry(&self, id: u64) -> Option<(&Arc<str>, &Entry)> {
        let url = self.urls.get(&id)?;
        Some((url, self.groups.get(url)?.entries.iter().find(|entry| entry.held.id == id)?))
    }

    pub(crate) fn entry_mut(&mut self, id: u64) -> Option<&mut Entry> {
        let url = self.urls.get(&id)?;
        self.groups.get_mut(url)?.entries.iter_mut().find(|entry| entry.held.id == id)
    }

    /// An entry answers.
    pub(crate) fn use_entry(&mut self, id: u64) {
        self.clock += 1;
        let now = self.clock;
        self.entry_mut(id).into_iter().for_each(|entry| entry.used = now);
    }

    /// Entries in whose place `head` comes: the same words asked for them, or it was unused longest of too many.
    pub(crate) fn replaced_by(&self, partition: Partition, url: &str, head: &Stored) -> Vec<u64> {
        let Some(group) = self.groups.get(url) else { return Vec::new() };
        let own = group.entries.iter().filter(|entry| entry.held.partition == partition);
        let (mut gone, others): (Vec<&Entry>, Vec<&Entry>) =
            own.partition(|entry| entry.held.head.nominated == head.nominated);
        if others.len() >= VARIANTS {
            gone.extend(others.into_iter().min_by_key(|entry| (entry.used, entry.held.id)));
        }
        gone.into_iter().map(|entry| entry.held.id).collect()
    }

    /// Holds an entry.
    pub(crate) fn insert(&mut self, url: &Arc<str>, entry: Entry) {
        self.costs += entry.cost(url);
        self.urls.insert(entry.held.id, Arc::clone(url));
        let entries = &mut self.group_or_new(url).entries;
        let place = entries.partition_point(|other| other.held.id < entry.held.id);
        entries.insert(place, entry);
    }

    /// Puts a new head in place of an entry's; gives the entry as it was changed.
    pub(crate) fn renew(&mut self, id: u64, head: Arc<Stored>) -> Option<(Arc<str>, &Entry)> {
        let url = Arc::clone(self.urls.get(&id)?);
        let group = self.groups.get_mut(&url)?;
        let entry = group.entries.iter_mut().find(|entry| entry.held.id == id)?;
        self.costs -= entry.cost(&url);
        entry.held.head = head;
        self.costs += entry.cost(&url);
        Some((url, entry))
    }

    /// Holds an entry no longer.
    pub(crate) fn remove(&mut self, id: u64) -> Option<(Arc<str>, Entry)> {
        let url = self.urls.remove(&id)?;
        let group = self.groups.get_mut(&url)?;
        let place = group.entries.iter().position(|entry| entry.held.id == id)?;
        let entry = group.entries.remove(place);
        self.awaiting.remove(&id);
        if !group.is_known {
            group.gone.push(id);
        }
        self.costs -= entry.cost(&url);
        Some((url, entry))
    }

    /// Forgets the URL that was unused longest, of those that can be left to the disk; gives what was held of it.
    pub(crate) fn leave_oldest(&mut self, to_the_disk: bool) -> Option<(Arc<str>, Vec<Entry>)> {
        let may_go = |url: &&Arc<str>| {
            !to_the_disk || self.groups.get(*url).is_none_or(Group::can_be_left_to_the_disk)
        };
        let url = Arc::clone(self.by_use.values().find(may_go)?);
        let group = self.groups.remove(&url)?;
        self.by_use.remove(&group.used);
        for entry in &group.entries {
            self.urls.remove(&entry.held.id);
            self.awaiting.remove(&entry.held.id);
            self.costs -= entry.cost(&url);
        }
        Some((url, group.entries))
    }

    /// What was asked for until now and comes later is not to be held.
    pub(crate) fn invalidate(&mut self, url: Arc<str>, now: SystemTime) {
        self.coming.retain(|_, own| *own != url);
        self.invalidated.note(url, now);
    }

    #[cfg(test)]
    pub(crate) fn invalidations(&self) -> usize {
        self.invalidated.len()
    }

    /// Whether it was asked for before its URL was invalidated, or may have been.
    pub(crate) fn is_outdated(&mut self, url: &str, head: &Stored, now: SystemTime) -> bool {
        self.invalidated.is_outdated(url, head.requested_at, now)
    }

    /// What of this URL answers such a request is given by number, newest first.
    pub(crate) fn answering(&self, partition: Partition, url: &str, request: &HeaderMap) -> Vec<u64> {
        let entries = self.groups.get(url).map_or(&[][..], |group| &group.entries);
        let answers = |entry: &&Entry| entry.held.partition == partition && entry.held.head.answers(request);
        entries.iter().rev().filter(answers).map(|entry| entry.held.id).collect()
    }
}
