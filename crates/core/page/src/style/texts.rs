//! What elements show themselves, apart from those within them. Which characters that are matters only to web fonts; until
//! a page has one its texts are only kept.

use super::characters::Characters;
use crate::html::unescape;
use crate::tree::NodeId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Bytes of text kept; of more only the characters are.
const MOST_KEPT: usize = 1 << 20;

/// A piece of what is kept.
#[derive(Debug, Clone, Copy)]
struct Piece {
    node: NodeId,
    /// Where it ends in `kept`.
    end: u32,
    /// It has character references as written.
    references: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Texts {
    kept: String,
    pieces: Vec<Piece>,
    /// The ASCII characters by node; none after the last with text that is not only kept.
    ascii: Vec<u128>,
    /// All characters of the nodes that have others.
    others: HashMap<NodeId, Characters>,
    /// By node, in bits: whether it has any text.
    any: Vec<u64>,
}

impl Texts {
    /// Keeps the text of an element, of which some can be seen; with character references as written if `references`.
    pub(super) fn keep(&mut self, node: NodeId, text: &str, references: bool) {
        self.note(node);
        self.kept.push_str(text);
        self.pieces.push(Piece { node, end: self.kept.len() as u32, references });
        if self.kept.len() > MOST_KEPT {
            self.read_kept();
        }
    }

    /// Adds characters of an element.
    pub(super) fn add(&mut self, node: NodeId, characters: &Characters) {
        self.note(node);
        let at = node.0 as usize;
        if self.ascii.len() <= at {
            self.ascii.resize(at + 1, 0);
        }
        self.ascii[at] |= characters.ascii();
        if !characters.is_ascii() {
            match self.others.entry(node) {
                Entry::Vacant(new) => {
                    new.insert(characters.clone());
                }
                Entry::Occupied(mut own) => {
                    own.get_mut().add(characters);
                }
            }
        }
    }

    fn note(&mut self, node: NodeId) {
        let at = node.0 as usize / 64;
        if self.any.len() <= at {
            self.any.resize(at + 1, 0);
        }
        self.any[at] |= 1 << (node.0 % 64);
    }

    /// Turns what is kept into characters.
    pub(super) fn read_kept(&mut self) {
        if self.pieces.is_empty() {
            return;
        }
        let (kept, pieces) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.pieces));
        let mut start = 0;
        for Piece { node, end, references } in pieces {
            let text = &kept[start..end as usize];
            let text = if references { unescape(text) } else { Cow::Borrowed(text) };
            self.add(node, &Characters::of(&text));
            start = end as usize;
        }
    }

    /// The characters of an element, as far as they are not only kept.
    pub(super) fn of(&self, node: NodeId) -> Option<Characters> {
        let mut own = Characters::of_ascii(*self.ascii.get(node.0 as usize)?);
        if let Some(others) = self.others.get(&node) {
            own.add(others);
        }
        Some(own)
    }

    /// Whether an element has any text.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.any.get(node.0 as usize / 64).is_some_and(|bits| bits >> (node.0 % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_read_when_it_is_wanted_or_too_much() {
        let mut texts = Texts::default();
        for (node, text) in [(1, "ab"), (70, "c"), (1, "&#xe4;")] {
            texts.keep(NodeId(node), text, node == 1);
        }
        assert!(
            texts.has(NodeId(1)) && texts.has(NodeId(70)) && !texts.has(NodeId(6)) && !texts.has(NodeId(900))
        );
        assert_eq!(texts.of(NodeId(1)), None);
        texts.read_kept();
        assert_eq!(texts.of(NodeId(1)), Some(Characters::of("ab\u{e4}")));
        assert_eq!(texts.of(NodeId(70)), Some(Characters::of("c")));
        texts.keep(NodeId(2), &"x".repeat(MOST_KEPT + 1), true);
        assert!(texts.kept.is_empty() && texts.of(NodeId(2)) == Some(Characters::of("x")));
    }
}
