//! The remote's side of the mirror's log: what ground was told of, under which number, and what it has still to be told.
//! It outlasts carriers. When one is lost, ground says how far it has heard; what was said after that is said again, and
//! nothing else. Where that is too long ago, both compare summaries of all that was told.
//!
//! ```text
//!   resume(heard) ──► From: goes on after what was heard
//!        │      └───► Anew: all is void, all is owed
//!        └──────────► Compare ──► differ(buckets) ──► goes on with what these hold
//! ```
//! Records are numbered in the order in which they are said; each entry that is stored, evicted or given validators is one.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::summary::{Stamp, bucket, buckets_for, summary};
use super::{MOST, Position};

/// Records that can be said again without comparing.
const RECENT: usize = 8_192;
/// Seconds by which the end of an entry's freshness may differ from what was told: it is reckoned anew each time.
const SLACK: u64 = 2;

/// What ground is told of an entry, as far as a change of it has to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Whose it is, and what it answers.
    pub fingerprint: u64,
    /// When it is stale, in seconds since 1970; 0 where it has to be validated whenever it is used.
    pub until_s: u64,
    /// A hash of its validators; 0 for none.
    pub validators: u64,
}

/// What has to be told of some entries, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Telling {
    /// Of these that they are stored: [`super::Word::Stored`], …
    pub stored: Vec<u64>,
    /// … then of these their validators, be they none: [`super::Word::Validators`].
    pub validators: Vec<u64>,
}

/// How a carrier goes on with the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// All that was said is void: [`super::Word::Reset`], then [`super::Word::Log`] at this position.
    Anew(Position),
    /// [`super::Word::Log`] at this position.
    From(Position),
    /// The same, then [`super::Word::Summary`] of these, to which ground answers.
    Compare(Position, Vec<u32>),
}

#[derive(Debug, Clone, Copy)]
struct Told {
    stamp: Stamp,
    /// `None` where ground may have heard something older.
    content: Option<Content>,
}

/// See the module.
#[derive(Debug)]
pub struct Ledger {
    log: u64,
    /// Number of the next record.
    next: u64,
    told: BTreeMap<u64, Told>,
    /// What is told of, each by the rank by which it stays: the highest number that there was when it was last stored, renewed or
    /// missed. Those of the lowest give way.
    by_rank: BTreeSet<(u64, u64)>,
    /// Ranks that are not an entry's own number.
    lifted: HashMap<u64, u64>,
    /// The highest number so far.
    newest: u64,
    /// What the last records were about, oldest first.
    recent: VecDeque<(u64, u64)>,
    /// Of all records from this one on it is known what they were about.
    floor: u64,
    /// Ground was asked to compare, and has not answered: where it stands does not tell what it knows.
    is_comparing: bool,
    /// To be told, by turn.
    owed: BTreeMap<u64, u64>,
    /// The same: each one's turn.
    turns: HashMap<u64, u64>,
    turn: u64,
    evicted: BTreeSet<u64>,
}

impl Ledger {
    /// A log of this name, which no other of this remote may have had, not even before a restart.
    pub fn new(log: u64) -> Ledger {
        Ledger {
            log,
            next: 1,
            told: BTreeMap::new(),
            by_rank: BTreeSet::new(),
            lifted: HashMap::new(),
            newest: 0,
            recent: VecDeque::new(),
            floor: 1,
            is_comparing: false,
            owed: BTreeMap::new(),
            turns: HashMap::new(),
            turn: 0,
            evicted: BTreeSet::new(),
        }
    }

    /// This entry is held from now on, or was renewed; or it is held, and ground does not seem to know.
    pub fn stored(&mut self, number: u64) {
        self.newest = self.newest.max(number);
        self.lift(number);
        self.evicted.remove(&number);
        self.owe(number);
    }

    /// It is held no longer.
    pub fn evicted(&mut self, number: u64) {
        self.pass(number);
        if self.told.contains_key(&number) {
            self.evicted.insert(number);
        }
    }

    fn rank(&self, number: u64) -> u64 {
        self.lifted.get(&number).copied().unwrap_or(number)
    }

    /// It stays as long as what has come last.
    fn lift(&mut self, number: u64) {
        let before = (self.rank(number), number);
        if before.0 < self.newest {
            self.lifted.insert(number, self.newest);
            if self.by_rank.remove(&before) {
                self.by_rank.insert((self.newest, number));
            }
        }
    }

    /// Ground was told of it, and is not any more.
    fn forget(&mut self, number: u64) {
        self.told.remove(&number);
        self.by_rank.remove(&(self.rank(number), number));
        if !self.turns.contains_key(&number) {
            self.lifted.remove(&number);
        }
    }

    /// These are held, newest first, and no others: some changes were missed.
    pub fn held(&mut self, numbers: &[u64]) {
        let all: BTreeSet<u64> = numbers.iter().copied().collect();
        let gone: Vec<u64> = self.told.keys().filter(|number| !all.contains(number)).copied().collect();
        self.owed.clear();
        self.turns.clear();
        self.newest = numbers.first().copied().unwrap_or_default().max(self.newest);
        self.lifted.retain(|number, _| all.contains(number) || self.told.contains_key(number));
        numbers.iter().for_each(|number| self.owe(*number));
        gone.into_iter().for_each(|number| self.evicted(number));
    }

    /// A carrier has come up on which ground says that it has heard so much.
    pub fn resume(&mut self, heard: Position) -> Opening {
        let here = Position { log: self.log, next: self.next };
        if heard.log != self.log || heard.next > self.next {
            self.told.clear();
            // What is worth most first.
            let told = std::mem::take(&mut self.by_rank).into_iter().rev().map(|(_, number)| number);
            for number in told {
                if self.evicted.contains(&number) {
                    self.lifted.remove(&number);
                } else {
                    self.owe(number);
                }
            }
            self.evicted.clear();
            self.recent.clear();
            (self.floor, self.is_comparing) = (self.next, false);
            return Opening::Anew(here);
        }
        if heard.next < self.floor || self.is_comparing {
            self.is_comparing = true;
            return Opening::Compare(here, self.summary());
        }
        // What was not heard is said again under new numbers: these go on, so that a number never means two records.
        while let Some((_, entry)) = self.recent.pop_back_if(|(number, _)| *number >= heard.next) {
            self.doubt(entry);
        }
        Opening::From(here)
    }

    /// Ground's word on the summary of so many buckets: these differ, and it has forgotten what they held.
    pub fn differ(&mut self, of: usize, buckets: &[u64]) -> Position {
        self.is_comparing = false;
        let differ: BTreeSet<u64> = buckets.iter().copied().collect();
        let numbers: Vec<u64> =
            self.told.keys().filter(|number| differ.contains(&bucket(**number, of))).copied().collect();
        numbers.into_iter().rev().for_each(|number| self.doubt(number));
        Position { log: self.log, next: self.next }
    }

    /// It is not known what ground has heard of this entry.
    fn doubt(&mut self, entry: u64) {
        match self.told.get_mut(&entry) {
            Some(told) => {
                told.content = None;
                if !self.evicted.contains(&entry) {
                    self.owe(entry);
                }
            }
            None if self.turns.contains_key(&entry) => {}
            // Ground may not have heard that it is gone.
            None => {
                self.evicted.insert(entry);
            }
        }
    }

    fn owe(&mut self, number: u64) {
        if !self.turns.contains_key(&number) {
            self.turn += 1;
            self.turns.insert(number, self.turn);
            self.owed.insert(self.turn, number);
        }
    }

    fn settle(&mut self, number: u64) {
        if let Some(turn) = self.turns.remove(&number) {
            self.owed.remove(&turn);
        }
    }

    /// Nothing is held any longer, and all that was said is void: [`Opening::Anew`].
    pub fn clear(&mut self) -> Position {
        self.told.clear();
        self.by_rank.clear();
        self.lifted.clear();
        self.recent.clear();
        self.owed.clear();
        self.turns.clear();
        self.evicted.clear();
        // A record of its own: where its word is lost, ground has heard less than was said.
        self.next += 1;
        self.floor = self.next;
        Position { log: self.log, next: self.next }
    }

    /// Whether ground knows all.
    pub fn is_told(&self) -> bool {
        self.owed.is_empty() && self.evicted.is_empty()
    }

    /// The next entries to be looked at, at most so many: then [`Ledger::tell`] gives what to tell of them, or, where one
    /// cannot be told of, [`Ledger::pass`] or [`Ledger::put_off`] takes its turn from it.
    pub fn owed(&self, most: usize) -> Vec<u64> {
        self.owed.values().take(most).copied().collect()
    }

    /// Nothing is to be told of this entry.
    pub fn pass(&mut self, number: u64) {
        self.settle(number);
        if !self.told.contains_key(&number) {
            self.lifted.remove(&number);
        }
    }

    /// Nothing can be told of it yet: others come first.
    pub fn put_off(&mut self, number: u64) {
        self.settle(number);
        self.owe(number);
    }

    /// What has to be told of entries that are so; they count as told from then on.
    pub fn tell(&mut self, entries: &[(u64, Content)]) -> Telling {
        let mut telling = Telling::default();
        for (number, content) in entries {
            self.settle(*number);
            let before = self.told.get(number).copied();
            let known = before.and_then(|before| before.content);
            if known.is_some_and(|known| known.is_like(content)) {
                continue;
            }
            if before.is_none() && !self.has_room(*number) {
                // It may have given way before, and ground has not heard of that.
                self.evicted.insert(*number);
                self.lifted.remove(number);
                continue;
            }
            let validators = before.map_or(0, |before| before.stamp.validators);
            let stamp = Stamp { stored: self.record(*number), validators };
            self.told.insert(*number, Told { stamp, content: Some(*content) });
            self.by_rank.insert((self.rank(*number), *number));
            telling.stored.push(*number);
            let has_changed = match (before, known) {
                // Ground takes it that there are none.
                (None, _) => content.validators != 0,
                (Some(_), None) => true,
                (Some(_), Some(known)) => known.validators != content.validators,
            };
            if has_changed {
                telling.validators.push(*number);
            }
        }
        for number in &telling.validators {
            let record = self.record(*number);
            if let Some(told) = self.told.get_mut(number) {
                told.stamp.validators = record;
            }
        }
        telling
    }

    /// Whether a further entry may be told of; one of a lower rank gives way.
    fn has_room(&mut self, number: u64) -> bool {
        if self.told.len() < MOST {
            return true;
        }
        let own = (self.rank(number), number);
        let Some((_, lowest)) = self.by_rank.first().filter(|lowest| **lowest < own).copied() else {
            return false;
        };
        self.forget(lowest);
        self.evicted.insert(lowest);
        true
    }

    /// At most so many entries of which it has to be told that they are gone; they count as told from then on.
    pub fn take_evicted(&mut self, most: usize) -> Vec<u64> {
        let numbers: Vec<u64> = self.evicted.iter().take(most).copied().collect();
        for number in &numbers {
            self.evicted.remove(number);
            self.forget(*number);
            self.record(*number);
        }
        numbers
    }

    fn record(&mut self, entry: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        self.recent.push_back((number, entry));
        if self.recent.len() > RECENT
            && let Some((oldest, _)) = self.recent.pop_front()
        {
            self.floor = oldest + 1;
        }
        number
    }

    fn summary(&self) -> Vec<u32> {
        let all = self.told.iter().map(|(number, told)| (*number, told.stamp));
        summary(all, buckets_for(self.told.len()))
    }

    /// Entries that ground was told of.
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

impl Content {
    fn is_like(&self, other: &Content) -> bool {
        self.fingerprint == other.fingerprint
            && self.validators == other.validators
            && self.until_s.abs_diff(other.until_s) <= SLACK
    }
}
