//! The declarations of all rules and `style` attributes of a page, each read when the first element wants it.

use super::block::Block;
use super::cascade::Origin;
use super::sheet::Declared;
use crate::options::Options;
use std::ops::Range;
use std::sync::OnceLock;

/// A sheet that was read, or all `style` attributes whose URLs are resolved alike, by number: what names a file as another of
/// the same source does names the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SourceId(pub(super) u32);

/// Where blocks and selectors were written.
#[derive(Debug)]
struct Source {
    /// As far as it was not read at once.
    text: String,
    origin: Origin,
}

#[derive(Debug)]
struct Kept {
    read: OnceLock<Box<Block>>,
    /// Where it stands in the text of its source.
    place: Range<u32>,
    source: SourceId,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Kept>,
    sources: Vec<Source>,
}

impl Blocks {
    /// Adds a source; `text` is what of it was not read at once.
    pub(super) fn add_source(&mut self, origin: Origin, text: String) -> SourceId {
        self.sources.push(Source { text, origin });
        SourceId(self.sources.len() as u32 - 1)
    }

    pub(super) fn origin(&self, source: SourceId) -> &Origin {
        &self.sources[source.0 as usize].origin
    }

    /// Adds text to a source; gives its place.
    pub(super) fn write(&mut self, source: SourceId, text: &str) -> Range<u32> {
        let own = &mut self.sources[source.0 as usize].text;
        let start = own.len() as u32;
        own.push_str(text);
        start..own.len() as u32
    }

    /// Adds a block; gives its number.
    pub(super) fn add(&mut self, source: SourceId, declared: Declared) -> u32 {
        let (read, place) = match declared {
            Declared::Read(block) => (OnceLock::from(block), 0..0),
            Declared::Unread(place) => (OnceLock::new(), place),
        };
        self.blocks.push(Kept { read, place, source });
        self.blocks.len() as u32 - 1
    }

    /// So many blocks will follow.
    pub(super) fn reserve(&mut self, blocks: usize) {
        self.blocks.reserve(blocks);
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Those that have been read.
    pub(super) fn read(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter_map(|kept| kept.read.get().map(|block| &**block))
    }

    /// Block `number`, if it has been read.
    pub(super) fn known(&self, number: u32) -> Option<&Block> {
        self.blocks[number as usize].read.get().map(|block| &**block)
    }

    /// Block `number`, read now if it was not.
    pub(super) fn get(&self, number: u32, options: &Options) -> &Block {
        let kept = &self.blocks[number as usize];
        kept.read.get_or_init(|| Box::new(Block::of(self.text(number, &kept.place), options)))
    }

    /// What stands at `place` of the source of block `number`.
    pub(super) fn text(&self, number: u32, place: &Range<u32>) -> &str {
        let source = self.blocks[number as usize].source;
        &self.sources[source.0 as usize].text[place.start as usize..place.end as usize]
    }

    /// Where block `number` was written.
    pub(super) fn source(&self, number: u32) -> SourceId {
        self.blocks[number as usize].source
    }
}
