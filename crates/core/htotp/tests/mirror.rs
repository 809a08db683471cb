//! The mirror against a plain set: whatever carriers lose, and whenever one takes the place of another, ground knows in the end
//! what the remote holds, and is told nothing again that it knows.

use std::collections::{BTreeMap, VecDeque};

use farhop_htotp::mirror::{Bound, Content, Entry, Heard, Ledger, MOST, Opening, Position, Validators, Word};
use proptest::prelude::*;

/// The remote's and ground's ends, and what is under way between them.
struct World {
    /// What the remote holds: the plain set.
    held: BTreeMap<u64, Content>,
    ledger: Ledger,
    heard: Heard,
    /// What ground knows.
    known: BTreeMap<u64, Content>,
    up: VecDeque<Word>,
    down: VecDeque<Back>,
    /// The remote may speak: it has heard from ground on this carrier.
    speaks: bool,
    next: u64,
    /// Entries in all words so far.
    said: usize,
    portions: usize,
}

enum Back {
    Heard(Position),
    Differ(usize, Vec<u64>),
}

#[derive(Debug, Clone)]
enum Step {
    Store(u64),
    Renew(usize),
    Revalidate(usize),
    Evict(usize),
    /// All is given up at once.
    Clear,
    /// So many changes are missed by who tells: all that is held is listed then.
    Miss(usize),
    Say,
    Deliver(usize),
    /// The carrier is lost with all but the first of what is under way, and another comes.
    Lose(usize),
}

impl World {
    fn new(log: u64) -> World {
        let mut world = World {
            held: BTreeMap::new(),
            ledger: Ledger::new(log),
            heard: Heard::default(),
            known: BTreeMap::new(),
            up: VecDeque::new(),
            down: VecDeque::new(),
            speaks: false,
            next: 0,
            said: 0,
            portions: 0,
        };
        world.connect();
        world
    }

    fn connect(&mut self) {
        self.up.clear();
        self.speaks = false;
        self.down = VecDeque::from([Back::Heard(self.heard.position())]);
    }

    fn store(&mut self, validators: u64) -> u64 {
        self.next += 1;
        let content = Content { fingerprint: self.next * 7, until_s: 1_000, validators };
        self.held.insert(self.next, content);
        self.next
    }

    fn pick(&self, choice: usize) -> Option<u64> {
        self.held.keys().nth(choice % self.held.len().max(1)).copied()
    }

    fn change(&mut self, choice: usize, change: impl FnOnce(&mut Content)) {
        let Some(number) = self.pick(choice) else { return };
        self.held.entry(number).and_modify(change);
        self.ledger.stored(number);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Store(validators) => {
                let number = self.store(*validators);
                self.ledger.stored(number);
            }
            Step::Renew(choice) => self.change(*choice, |content| content.until_s += 100),
            Step::Revalidate(choice) => self.change(*choice, |content| content.validators += 1),
            Step::Evict(choice) => {
                if let Some(number) = self.pick(*choice) {
                    self.held.remove(&number);
                    self.ledger.evicted(number);
                }
            }
            // On no carrier it is noted when there is one.
            Step::Clear if !self.speaks => {}
            Step::Clear => {
                self.held.clear();
                let at = self.ledger.clear();
                [Word::Reset, Word::Log(at)].into_iter().for_each(|word| self.put(word));
            }
            Step::Miss(count) => {
                for place in 0..*count {
                    self.store(place as u64 % 3);
                    if let Some(number) = self.pick(place * 5) {
                        self.held.remove(&number);
                    }
                    if let Some(number) = self.pick(place * 3) {
                        self.held.entry(number).and_modify(|content| content.until_s += 100);
                    }
                }
                let all: Vec<u64> = self.held.keys().rev().copied().collect();
                self.ledger.held(&all);
            }
            Step::Say => self.say(),
            Step::Deliver(count) => (0..*count).for_each(|_| self.deliver()),
            Step::Lose(first) => {
                (0..*first).for_each(|_| self.deliver());
                self.connect();
            }
        }
    }

    /// The remote tells a portion, if it may.
    fn say(&mut self) {
        if !self.speaks {
            return;
        }
        let evicted = self.ledger.take_evicted(3);
        if !evicted.is_empty() {
            self.put(Word::Evicted(evicted));
        }
        self.portions += 1;
        let numbers = self.ledger.owed(4);
        let (mut held, mut put_off) = (Vec::new(), 0);
        for number in numbers {
            match self.held.get(&number) {
                // Now and then one is not whole yet.
                Some(_) if self.portions % 5 == 4 && put_off == 0 => {
                    self.ledger.put_off(number);
                    put_off += 1;
                }
                Some(content) => held.push((number, *content)),
                None => self.ledger.pass(number),
            }
        }
        let telling = self.ledger.tell(&held);
        let entry = |number: &u64| {
            let content = self.held[number];
            let (fresh_s, fingerprint) = (content.until_s, content.fingerprint);
            Entry { number: *number, user: None, bound: Bound::default(), fresh_s, fingerprint }
        };
        let validators = |number: &u64| {
            let modified = self.held[number].validators;
            Validators { number: *number, tag: Default::default(), modified }
        };
        let stored = Word::Stored(telling.stored.iter().map(entry).collect());
        let validators = Word::Validators(telling.validators.iter().map(validators).collect());
        [stored, validators].into_iter().for_each(|word| self.put(word));
    }

    fn put(&mut self, word: Word) {
        self.said += match &word {
            Word::Stored(all) => all.len(),
            Word::Validators(all) => all.len(),
            Word::Evicted(all) => all.len(),
            Word::Reset | Word::Log(_) | Word::Summary(_) | Word::Holds(_) | Word::Lacks(_) => 0,
        };
        if !matches!(&word, Word::Stored(all) if all.is_empty())
            && !matches!(&word, Word::Validators(all) if all.is_empty())
        {
            self.up.push_back(word);
        }
    }

    /// One word each way arrives.
    fn deliver(&mut self) {
        if let Some(word) = self.up.pop_front() {
            self.hear(word);
        }
        match self.down.pop_front() {
            Some(Back::Heard(position)) => {
                self.speaks = true;
                let (first, more) = match self.ledger.resume(position) {
                    Opening::Anew(at) => (Some(Word::Reset), vec![Word::Log(at)]),
                    Opening::From(at) => (None, vec![Word::Log(at)]),
                    Opening::Compare(at, sums) => (None, vec![Word::Log(at), Word::Summary(sums)]),
                };
                first.into_iter().chain(more).for_each(|word| self.put(word));
            }
            Some(Back::Differ(of, buckets)) => {
                let at = self.ledger.differ(of, &buckets);
                self.put(Word::Log(at));
            }
            None => {}
        }
    }

    fn hear(&mut self, word: Word) {
        let effect = self.heard.hear(&word);
        for number in &effect.forgotten {
            self.known.remove(number);
        }
        match word {
            Word::Reset | Word::Log(_) | Word::Summary(_) | Word::Holds(_) | Word::Lacks(_) => {}
            Word::Stored(all) => {
                for Entry { number, fresh_s, fingerprint, .. } in all {
                    let known = self.known.entry(number).or_insert(Content {
                        fingerprint,
                        until_s: 0,
                        validators: 0,
                    });
                    (known.until_s, known.fingerprint) = (fresh_s, fingerprint);
                }
            }
            Word::Validators(all) => all.iter().for_each(|own| {
                self.known.entry(own.number).and_modify(|known| known.validators = own.modified);
            }),
            Word::Evicted(numbers) => {
                for number in &numbers {
                    self.known.remove(number);
                }
            }
        }
        self.down.extend(effect.differ.map(|(of, buckets)| Back::Differ(of, buckets)));
    }

    /// Lets all be said and heard; gives how many entries that took.
    fn settle(&mut self) -> usize {
        let before = self.said;
        while !(self.up.is_empty() && self.down.is_empty() && self.ledger.is_told()) {
            self.say();
            self.deliver();
        }
        self.said - before
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3_u64).prop_map(Step::Store),
        2 => any::<usize>().prop_map(Step::Renew),
        1 => any::<usize>().prop_map(Step::Revalidate),
        2 => any::<usize>().prop_map(Step::Evict),
        1 => Just(Step::Clear),
        1 => (1..20_usize).prop_map(Step::Miss),
        6 => Just(Step::Say),
        6 => (1..4_usize).prop_map(Step::Deliver),
        2 => (0..4_usize).prop_map(Step::Lose),
    ];
    proptest::collection::vec(step, 0..120)
}

proptest! {
    #[test]
    fn ground_knows_in_the_end_what_the_remote_holds(steps in steps()) {
        let mut world = World::new(9);
        for step in &steps {
            world.step(step);
        }
        world.settle();
        prop_assert_eq!(&world.known, &world.held);
        prop_assert_eq!(world.heard.len(), world.ledger.len());
        // And on the next carrier it is told nothing.
        world.step(&Step::Lose(0));
        prop_assert_eq!(world.settle(), 0);
        prop_assert_eq!(&world.known, &world.held);
    }

    #[test]
    fn a_ground_that_has_forgotten_where_it_stood_is_told_only_what_differs(
        steps in steps(),
        forgets in any::<bool>(),
        changes in 0..6_usize,
    ) {
        let mut world = World::new(9);
        for step in &steps {
            world.step(step);
        }
        (0..100).for_each(|number| world.step(&Step::Store(number % 2)));
        world.settle();
        // What it has heard is there, but not up to where: as after more changes than the remote remembers.
        world.connect();
        world.down = VecDeque::from([Back::Heard(Position { log: 9, next: 0 })]);
        for choice in 0..changes {
            world.step(&Step::Evict(choice * 17));
        }
        let held = world.held.len();
        let said = world.settle();
        prop_assert_eq!(&world.known, &world.held);
        prop_assert!(said <= changes, "{said} entries were said for {changes} changes of {held}");
        if forgets {
            // One that knows nothing is told all.
            (world.heard, world.known) = (Heard::default(), BTreeMap::new());
            world.connect();
            prop_assert!(world.settle() >= held.saturating_sub(changes));
            prop_assert_eq!(&world.known, &world.held);
        }
    }
}

#[test]
fn a_remote_that_begins_a_log_of_its_own_voids_what_was_known() {
    let mut world = World::new(9);
    (0..50).for_each(|number| world.step(&Step::Store(number % 2)));
    world.settle();
    world.ledger = Ledger::new(10);
    world.ledger.held(&world.held.keys().rev().copied().collect::<Vec<_>>());
    world.connect();
    assert!(world.settle() >= 50);
    assert_eq!(world.known, world.held);
}

#[test]
fn that_all_was_given_up_is_found_out_where_the_word_of_it_is_lost() {
    let mut world = World::new(9);
    (0..50).for_each(|number| world.step(&Step::Store(number % 2)));
    world.settle();
    world.step(&Step::Clear);
    world.step(&Step::Lose(0));
    world.settle();
    assert!(world.known.is_empty(), "{:?}", world.known);
}

#[test]
fn what_was_to_be_compared_is_compared_on_the_next_carrier() {
    for heard in 0..4 {
        let mut world = World::new(9);
        (0..50).for_each(|number| world.step(&Step::Store(number % 2)));
        world.settle();
        world.step(&Step::Clear);
        world.step(&Step::Lose(0));
        world.step(&Step::Lose(heard));
        world.settle();
        assert!(world.known.is_empty(), "after {heard} words: {:?}", world.known);
    }
}

#[test]
fn more_changes_than_are_remembered_are_found_by_comparing() {
    let mut world = World::new(9);
    (0..3_000).for_each(|_| world.step(&Step::Store(1)));
    world.settle();
    // These are said, and lost.
    (0..9_000).for_each(|choice| world.step(&Step::Renew(choice % 20)));
    for choice in 0..9_000 {
        world.step(&Step::Renew(choice % 20));
        world.say();
    }
    world.step(&Step::Lose(0));
    let said = world.settle();
    assert_eq!(world.known, world.held);
    // Twenty entries differ; those of their buckets are said with them, each with its validators.
    assert!((20..2 * 20 * 64).contains(&said), "{said}");
}

#[test]
fn of_too_many_both_ends_forget_the_same() {
    let mut world = World::new(9);
    let count = MOST as u64 + 500;
    (0..count).for_each(|_| world.step(&Step::Store(0)));
    world.settle();
    assert_eq!((world.heard.len(), world.ledger.len(), world.known.len()), (MOST, MOST, MOST));
    world.step(&Step::Lose(0));
    assert_eq!(world.settle(), 0);
    assert!(!world.known.contains_key(&500) && world.known.contains_key(&501));
    // What is still held, and ground would have known of.
    world.ledger.stored(7);
    assert_eq!(world.settle(), 2, "one is told of, one gives way");
    assert!(world.known.contains_key(&7) && !world.known.contains_key(&501));
    // From now on it is as new as any.
    (0..100).for_each(|_| world.step(&Step::Store(0)));
    world.settle();
    assert!(world.known.contains_key(&7) && !world.known.contains_key(&601));
    assert_eq!((world.heard.len(), world.ledger.len(), world.known.len()), (MOST, MOST, MOST));
    world.step(&Step::Lose(0));
    assert_eq!(world.settle(), 0, "both know the same");
}
