//! Ground's side of the mirror's log: how far it has heard, and by which records it knows what it knows. It outlasts carriers,
//! of which one at a time is heard.

use std::collections::BTreeMap;

use super::summary::{MOST_BUCKETS, Stamp, bucket, summary};
use super::{MOST, Position, Word};

/// See the module.
#[derive(Debug, Default)]
pub struct Heard {
    at: Position,
    /// The remote has not heard yet how its summary compares: until then some of what it told is forgotten here.
    is_comparing: bool,
    entries: BTreeMap<u64, Stamp>,
}

/// What follows from a word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effect {
    /// These entries are forgotten, besides those that the word itself names.
    pub forgotten: Vec<u64>,
    /// To be said to the remote: of so many buckets these differ.
    pub differ: Option<(usize, Vec<u64>)>,
}

impl Heard {
    /// Takes a word in.
    pub fn hear(&mut self, word: &Word) -> Effect {
        let mut effect = Effect::default();
        match word {
            Word::Reset => effect.forgotten = self.clear(Position::default()),
            Word::Log(at) if at.log == self.at.log => (self.at, self.is_comparing) = (*at, false),
            Word::Log(at) => effect.forgotten = self.clear(*at),
            Word::Summary(theirs) => effect = self.compare(theirs),
            Word::Stored(entries) => {
                for entry in entries {
                    let stored = self.count();
                    // An honest remote says before long what it has given up.
                    if self.entries.len() >= 2 * MOST && !self.entries.contains_key(&entry.number) {
                        effect.forgotten.extend(self.entries.pop_first().map(|(number, _)| number));
                    }
                    self.entries.entry(entry.number).or_default().stored = stored;
                }
            }
            Word::Validators(all) => {
                for validators in all {
                    let record = self.count();
                    if let Some(stamp) = self.entries.get_mut(&validators.number) {
                        stamp.validators = record;
                    }
                }
            }
            Word::Evicted(numbers) => {
                for number in numbers {
                    self.count();
                    self.entries.remove(number);
                }
            }
            // Of bodies, whatever they answer: they are no records of the log.
            Word::Holds(_) | Word::Lacks(_) => {}
        }
        effect
    }

    /// How far this end has heard, for the remote of the next carrier.
    pub fn position(&self) -> Position {
        match self.is_comparing {
            true => Position { next: 0, ..self.at },
            false => self.at,
        }
    }

    fn count(&mut self) -> u64 {
        let number = self.at.next;
        self.at.next += 1;
        number
    }

    fn clear(&mut self, at: Position) -> Vec<u64> {
        (self.at, self.is_comparing) = (at, false);
        std::mem::take(&mut self.entries).into_keys().collect()
    }

    fn compare(&mut self, theirs: &[u32]) -> Effect {
        let of = theirs.len();
        if of == 0 || of > MOST_BUCKETS {
            return Effect { forgotten: self.clear(Position::default()), differ: None };
        }
        let own = summary(self.entries.iter().map(|(number, stamp)| (*number, *stamp)), of);
        let buckets: Vec<u64> =
            (0..of).filter(|place| own[*place] != theirs[*place]).map(|place| place as u64).collect();
        let differs = |number: &u64| buckets.binary_search(&bucket(*number, of)).is_ok();
        let forgotten: Vec<u64> = self.entries.keys().copied().filter(|number| differs(number)).collect();
        for number in &forgotten {
            self.entries.remove(number);
        }
        self.is_comparing = true;
        Effect { forgotten, differ: Some((of, buckets)) }
    }

    /// Whether this entry is known.
    pub fn knows(&self, number: u64) -> bool {
        self.entries.contains_key(&number)
    }

    /// Entries that are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
