//! Finds rules by what an element must have for them: its id, one of its classes, or its name.

use foldhash::fast::RandomState;
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// What an element must have, as a number: names are told apart well enough, and matching sees to the rest. Its last bits
/// are a [`sketch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(u64);

/// Different sketches, a power of two.
const SKETCHES: u64 = 4096;

impl Key {
    pub(super) fn id(id: &str) -> Self {
        Key::of(ID, id)
    }

    pub(super) fn class(class: &str) -> Self {
        Key::of(CLASS, class)
    }

    pub(super) fn name(name: &str) -> Self {
        Key::of(NAME, name)
    }

    /// FNV-1a in lower case, however ids and classes are compared.
    fn of(kind: u8, text: &str) -> Self {
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let start = add(0xcbf2_9ce4_8422_2325, kind);
        let hash = text.bytes().fold(start, |hash, byte| add(hash, byte.to_ascii_lowercase()));
        Key(hash.wrapping_mul(SKETCHES) | sketch(kind, text))
    }
}

const ID: u8 = b'#';
const CLASS: u8 = b'.';
const NAME: u8 = b'<';

/// Told by length, first and last letter, in a fraction of the time that a key takes: most of what elements have no rule
/// asks for.
fn sketch(kind: u8, text: &str) -> u64 {
    let [Some(first), Some(last)] = [text.as_bytes().first(), text.as_bytes().last()] else { return 0 };
    let told = u32::from_be_bytes([kind, first | 0x20, last | 0x20, text.len() as u8]);
    u64::from(told).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SKETCHES.ilog2())
}

/// Rules by number, those with one key in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The first and the last of the rules with a key, by their places in `chained`.
    ends: HashMap<Key, (u32, u32), RandomState>,
    /// A rule, and the place of the next one with its key or [`NONE`].
    chained: Vec<(u32, u32)>,
    /// Those that any element may match.
    universal: Vec<u32>,
    /// The sketches of all keys, one bit each.
    sketches: Sketches,
}

#[derive(Debug)]
struct Sketches([u64; SKETCHES as usize / 64]);

impl Default for Sketches {
    fn default() -> Self {
        Sketches([0; SKETCHES as usize / 64])
    }
}

impl Index {
    /// So many rules will follow.
    pub(super) fn reserve(&mut self, rules: usize) {
        self.ends.reserve(rules);
        self.chained.reserve(rules);
    }

    pub(super) fn add(&mut self, key: Key, rule: u32) {
        let place = self.chained.len() as u32;
        let sketch = key.0 % SKETCHES;
        self.sketches.0[sketch as usize / 64] |= 1 << (sketch % 64);
        self.chained.push((rule, NONE));
        let (_, last) = self.ends.entry(key).or_insert((place, place));
        let before = std::mem::replace(last, place);
        if before != place {
            self.chained[before as usize].1 = place;
        }
    }

    pub(super) fn add_universal(&mut self, rule: u32) {
        self.universal.push(rule);
    }

    /// The rules for elements with this id.
    pub(super) fn with_id(&self, id: &str) -> impl Iterator<Item = u32> {
        self.with(ID, id)
    }

    pub(super) fn with_class(&self, class: &str) -> impl Iterator<Item = u32> {
        self.with(CLASS, class)
    }

    pub(super) fn with_name(&self, name: &str) -> impl Iterator<Item = u32> {
        self.with(NAME, name)
    }

    fn with(&self, kind: u8, text: &str) -> impl Iterator<Item = u32> {
        let sketch = sketch(kind, text);
        let may_be = self.sketches.0[sketch as usize / 64] >> (sketch % 64) & 1 == 1;
        let ends = may_be.then(|| self.ends.get(&Key::of(kind, text))).flatten();
        let mut next = ends.map_or(NONE, |(first, _)| *first);
        std::iter::from_fn(move || {
            let &(rule, following) = self.chained.get(next as usize)?;
            next = following;
            Some(rule)
        })
    }

    pub(super) fn universal(&self) -> &[u32] {
        &self.universal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_their_key_in_order() {
        let mut index = Index::default();
        index.add(Key::class("a"), 1);
        index.add(Key::id("a"), 2);
        index.add(Key::class("A"), 3);
        index.add(Key::class("a"), 5);
        index.add_universal(4);
        assert_eq!(index.with_class("a").collect::<Vec<_>>(), [1, 3, 5]);
        assert_eq!(index.with_id("A").collect::<Vec<_>>(), [2]);
        assert_eq!(index.with_name("a").count(), 0);
        assert_eq!(index.with_class("").count(), 0);
        assert_eq!(index.universal(), [4]);
    }
}
