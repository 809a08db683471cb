//! A bounded cache that forgets what was not asked for lately. Pure.

use std::collections::HashMap;
use std::hash::Hash;

/// Two generations: what is asked for moves to the younger one, and when that is full the older one is forgotten. Both
/// looking and keeping take constant time, and whatever was asked for among the last `capacity / 2` others is there.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq + Clone, V: Clone> Cache<K, V> {
    /// A cache of at most `capacity` entries, and of two at least.
    pub(crate) fn new(capacity: usize) -> Self {
        Cache { young: HashMap::new(), old: HashMap::new(), half: (capacity / 2).max(1) }
    }

    /// What is kept under `key`.
    pub(crate) fn look(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let value = self.old.remove(key)?;
        self.keep(key.clone(), value.clone());
        Some(value)
    }

    /// Keeps `value` under `key`, in place of what was there.
    pub(crate) fn keep(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_within_its_bound_and_forgets_what_was_not_asked_for() {
        let mut cache = Cache::new(8);
        for key in 0..1000 {
            cache.keep(key, key);
            assert_eq!(cache.look(&0), Some(0), "asked for all the time");
            assert!(cache.young.len() + cache.old.len() <= 8, "at {key}");
        }
        assert_eq!(cache.look(&500), None);
        assert_eq!(cache.look(&999), Some(999));
    }

    #[test]
    fn a_key_has_the_value_it_was_last_given() {
        let mut cache = Cache::new(4);
        cache.keep("a", 1);
        cache.keep("b", 2);
        cache.keep("c", 3);
        cache.keep("a", 4);
        assert_eq!(cache.look(&"a"), Some(4));
        assert_eq!(cache.young.len() + cache.old.len(), 3);
    }
}
