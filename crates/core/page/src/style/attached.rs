//! The `style` attributes of a page. Many elements have the same one.

use super::blocks::SourceId;
use crate::tree::NodeId;
use std::collections::HashMap;

/// Different ones that are told apart; more are kept each by itself.
const MAX_KNOWN: usize = 4_096;

/// Which block each element has, by number.
#[derive(Debug, Default)]
pub(super) struct Attached {
    by_node: Vec<Option<u32>>,
    /// By what of them can cause a fetch.
    known: HashMap<Box<str>, u32>,
    /// Where they are written, as long as their URLs are resolved alike.
    source: Option<SourceId>,
}

impl Attached {
    pub(super) fn source(&self) -> Option<SourceId> {
        self.source
    }

    /// What follows is written there.
    pub(super) fn begin(&mut self, source: SourceId) {
        self.known.clear();
        self.source = Some(source);
    }

    /// The block that says `text`.
    pub(super) fn known(&self, text: &str) -> Option<u32> {
        self.known.get(text).copied()
    }

    pub(super) fn learn(&mut self, text: &str, block: u32) {
        if self.known.len() < MAX_KNOWN {
            self.known.insert(text.into(), block);
        }
    }

    pub(super) fn put(&mut self, node: NodeId, block: u32) {
        let at = node.0 as usize;
        if self.by_node.len() <= at {
            self.by_node.resize(at + 1, None);
        }
        self.by_node[at] = Some(block);
    }

    pub(super) fn of(&self, node: NodeId) -> Option<u32> {
        self.by_node.get(node.0 as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_with_the_same_attribute_share_a_block_until_urls_are_resolved_otherwise() {
        let mut attached = Attached::default();
        attached.begin(SourceId(0));
        attached.learn("display:none", 7);
        attached.put(NodeId(3), 7);
        assert_eq!(attached.known("display:none"), Some(7));
        assert_eq!(
            (attached.of(NodeId(3)), attached.of(NodeId(2)), attached.of(NodeId(9))),
            (Some(7), None, None)
        );
        attached.begin(SourceId(1));
        assert_eq!((attached.known("display:none"), attached.source()), (None, Some(SourceId(1))));
        assert_eq!(attached.of(NodeId(3)), Some(7));
    }

    #[test]
    fn what_is_told_apart_is_bounded() {
        let mut attached = Attached::default();
        (0..10_000).for_each(|block| attached.learn(&block.to_string(), block));
        assert_eq!(attached.known.len(), MAX_KNOWN);
    }
}
