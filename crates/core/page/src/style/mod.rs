//! Style sheets: what of them this page will fetch, decided by matching their rules against the elements seen.
//!
//! [`Styles`] is told of sheets, of their text, of elements and of their text, in any interleaving, and gives what the
//! page needs. A browser fetches what rules name only once every sheet that holds up rendering is there, since a later
//! rule may overrule an earlier one. So does this: nothing but imports comes out while such a sheet is awaited.
//!
//! ```text
//! sheet ──► feed* ──► end | lost        @import: a sheet of its own, announced with its hint
//! element pushed ──► inline, text* ──► nodes
//!                    └─ all needs of what is styled so far: take
//! ```
//!
//! Pure, and bounded: a page that exceeds a bound gets fewer hints. See `docs/decisions/0012-css-by-matching.md`.

mod attached;
mod block;
mod blocks;
mod browser_font;
mod cascade;
mod characters;
mod cut;
mod face;
mod font_value;
mod fonts;
mod image_value;
mod index;
mod layers;
mod matching;
mod plain_selector;
mod selector;
mod selector_text;
mod sheet;
mod styling;
mod supports;
mod texts;
mod value;
mod variables;

#[cfg(test)]
mod tests;

use crate::address::resolve_in;
use crate::decode::Charset;
use crate::hint::{Confidence, Destination, Initiator, Mode, Source};
use crate::options::Options;
use crate::tree::{NodeId, Scope, Tree};
use block::Outline;
use blocks::SourceId;
use cascade::{Cascade, Origin, Winners};
use cut::{Cutter, Item, items};
use sheet::{Import, Reader};
use std::collections::HashMap;
use std::sync::Arc;
use styling::{Need, Needs, Styling};
use url::Url;
use value::{Fetched, Value};

/// Sheets of one page that are read.
const MAX_SHEETS: usize = 512;
/// Imports within imports that are followed.
const MAX_IMPORT_DEPTH: usize = 32;
/// Longest `style` attribute that is read, in bytes.
const MAX_INLINE: usize = 16 * 1024;

/// What presentation attribute `name` of an SVG element names with this value, and how that is fetched (SVG 2, §6.6).
pub(crate) fn presented(name: &str, value: &str, options: &Options) -> Vec<(Box<str>, Fetched)> {
    let mut files = Vec::new();
    value::parse(name, value::longhands(name), value, options, |property, value| {
        if let (Value::Images(urls), Some(fetched)) = (value, property.fetched()) {
            files.extend(urls.into_iter().map(|url| (url, fetched)));
        }
    });
    files
}

/// A sheet of this page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SheetId(u32);

/// What names a sheet.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// A `<style>` element, its URLs resolved against the document's base.
    Document { base: Url },
    /// A file at this URL.
    File { url: Url },
}

/// What stands around a sheet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around {
    /// Of the document or sheet that names it.
    pub(crate) charset: Charset,
    /// Whose elements it styles.
    pub(crate) scope: Scope,
}

/// A fetch that a sheet or a `style` attribute causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) url: Url,
    pub(crate) destination: Destination,
    pub(crate) mode: Mode,
    pub(crate) source: Source,
    pub(crate) initiator: Initiator,
    pub(crate) confidence: Confidence,
    /// False for imports whose media do not match: fetched all the same, last.
    pub(crate) applies: bool,
    pub(crate) below_fold: bool,
    /// Of a font: its `format()`.
    pub(crate) format: Option<Box<str>>,
    /// Of an import: the sheet to feed or to declare lost.
    pub(crate) sheet: Option<SheetId>,
}

#[derive(Debug)]
struct Open {
    /// Orders sheets as if imports stood in the place of their `@import`.
    key: Vec<u32>,
    origin: Origin,
    scope: Scope,
    blocking: bool,
    imports: u32,
    layers: Vec<Box<str>>,
    early: usize,
    /// `None` once it has ended or is lost.
    reading: Option<(Cutter, Reader)>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Styles {
    options: Options,
    sheets: Vec<Open>,
    /// Sheets that hold up rendering and have not ended.
    awaited: usize,
    /// Bytes of style sheets that may still be read.
    bytes_left: usize,
    by_url: HashMap<Url, SheetId>,
    roots: u32,
    cascade: Cascade,
    styling: Styling,
    /// Rules came that elements were not styled by yet.
    changed: bool,
    winners: Winners,
    needs: Needs,
    found: Vec<Found>,
}

impl Styles {
    /// For one document.
    pub(crate) fn new(options: &Options) -> Self {
        Styles {
            options: options.clone(),
            sheets: Vec::new(),
            awaited: 0,
            bytes_left: options.max_css,
            by_url: HashMap::new(),
            roots: 0,
            cascade: Cascade::default(),
            styling: Styling::new(options.matching.clone()),
            changed: false,
            winners: Winners::default(),
            needs: Needs::default(),
            found: Vec::new(),
        }
    }

    /// Announces a sheet whose media match, in document order; elements before it must be in the tree. `blocking`: the
    /// browser shows nothing more before it is there. The sheet must then be ended or lost.
    pub(crate) fn sheet(&mut self, owner: Owner, around: Around, blocking: bool, tree: &Tree) -> SheetId {
        // What stands before it is shown without waiting for it.
        self.nodes(tree);
        self.roots += 1;
        self.announce(vec![self.roots], owner, around, blocking, None)
    }

    fn announce(
        &mut self,
        key: Vec<u32>,
        owner: Owner,
        Around { charset, scope }: Around,
        blocking: bool,
        layer: Option<Arc<str>>,
    ) -> SheetId {
        let id = SheetId(self.sheets.len() as u32);
        let (base, initiator) = match owner {
            Owner::Document { base } => (base, Initiator::Document),
            Owner::File { url } => {
                self.by_url.insert(url.clone(), id);
                (url.clone(), Initiator::Sheet(url))
            }
        };
        let readable = self.sheets.len() < MAX_SHEETS;
        self.cascade.put(id.0, scope);
        self.awaited += usize::from(blocking && readable);
        self.sheets.push(Open {
            key,
            origin: Origin { base, charset, initiator, source: Source::Rule },
            scope,
            blocking,
            imports: 0,
            layers: Vec::new(),
            early: 0,
            reading: readable.then(|| (Cutter::new(), Reader::new(id.0 as usize, layer))),
        });
        id
    }

    /// The file of sheet `id` came from `url`, after redirects. Before the first [`feed`](Styles::feed).
    pub(crate) fn redirected(&mut self, id: SheetId, url: &Url) {
        let sheet = &mut self.sheets[id.0 as usize];
        if sheet.origin.base != *url {
            (sheet.origin.base, sheet.origin.initiator) = (url.clone(), Initiator::Sheet(url.clone()));
        }
    }

    /// Sheet `again` is the file of sheet `first`, which styles the scope of both.
    pub(crate) fn share(&mut self, first: SheetId, again: SheetId) {
        let scope = self.sheets[again.0 as usize].scope;
        self.changed |= self.cascade.put(first.0, scope);
    }

    /// The text of sheet `id` is in this encoding, as far as it is known. Before each [`feed`](Styles::feed).
    pub(crate) fn encoded(&mut self, id: SheetId, charset: Charset) {
        self.sheets[id.0 as usize].origin.charset = charset;
    }

    /// The encoding of sheet `id`; before its text came, that of the sheet or document around it.
    pub(crate) fn charset(&self, id: SheetId) -> Charset {
        self.sheets[id.0 as usize].origin.charset
    }

    /// Takes the next piece of a sheet's text. Imports that it completes are found at once.
    pub(crate) fn feed(&mut self, id: SheetId, text: &str) {
        let Some(left) = self.bytes_left.checked_sub(text.len()) else { return };
        self.bytes_left = left;
        if let Some((cutter, _)) = &mut self.sheets[id.0 as usize].reading {
            cutter.push(text);
            self.read(id, false);
        }
    }

    fn read(&mut self, id: SheetId, last: bool) {
        let sheet = &mut self.sheets[id.0 as usize];
        let Some((cutter, reader)) = &mut sheet.reading else { return };
        while let Some(item) = cutter.next(last) {
            reader.item(item, &self.options);
        }
        for import in std::mem::take(&mut reader.sheet.imports) {
            self.import(id, import);
        }
    }

    fn import(&mut self, parent: SheetId, import: Import) {
        let sheet = &mut self.sheets[parent.0 as usize];
        let around = Around { charset: sheet.origin.charset, scope: sheet.scope };
        let Some(url) = resolve_in(around.charset, &import.url, &sheet.origin.base, self.options.max_url)
        else {
            return;
        };
        sheet.imports += 1;
        let key: Vec<u32> = sheet.key.iter().copied().chain([sheet.imports]).collect();
        let (blocking, initiator) = (sheet.blocking, sheet.origin.initiator.clone());
        // A sheet imported twice, or by itself, counts where it was first.
        if self.by_url.contains_key(&url) || self.sheets.len() >= MAX_SHEETS || key.len() > MAX_IMPORT_DEPTH {
            return;
        }
        let owner = Owner::File { url: url.clone() };
        let child = import.applies.then(|| self.announce(key, owner, around, blocking, import.layer));
        self.found.push(Found {
            url,
            destination: Destination::Style,
            mode: Mode::NoCors,
            source: Source::Import,
            initiator,
            confidence: Confidence::Sure,
            applies: import.applies,
            below_fold: false,
            format: None,
            sheet: child,
        });
    }

    /// A sheet is complete. What it names is found now, unless others are still awaited.
    pub(crate) fn end(&mut self, id: SheetId, tree: &Tree) {
        self.read(id, true);
        let sheet = &mut self.sheets[id.0 as usize];
        let Some((_, reader)) = sheet.reading.take() else { return };
        self.awaited -= usize::from(sheet.blocking);
        let mut told = reader.sheet;
        if sheet.scope != Scope::DOCUMENT {
            // Chromium takes no fonts from shadow roots (recorded).
            told.faces.clear();
        }
        self.changed |= !told.rules.is_empty()
            || !told.faces.is_empty()
            || !told.keyframes.is_empty()
            || !told.initial.is_empty()
            || told.has_containers;
        let source = self.cascade.add_sheet(id.0, &mut told, &sheet.origin);
        self.styling.fonts.add_sheet(id.0, &mut told.faces, source);
        for keyframes in told.keyframes {
            let name = keyframes.name.clone();
            self.styling.keyframes.insert(name, (keyframes, source));
        }
        for (name, text) in told.initial {
            self.styling.initial(name, text);
        }
        (sheet.layers, sheet.early) = (told.layers, told.early);
        self.nodes(tree);
    }

    /// A sheet will not come: what waited for it goes on without.
    pub(crate) fn lost(&mut self, id: SheetId, tree: &Tree) {
        let sheet = &mut self.sheets[id.0 as usize];
        if sheet.reading.take().is_some() {
            self.awaited -= usize::from(sheet.blocking);
            self.nodes(tree);
        }
    }

    /// Element `node` has a `style` attribute, whose document has this base and encoding. Before the element is styled: at
    /// once after it was pushed.
    pub(crate) fn inline(&mut self, node: NodeId, text: &str, base: &Url, charset: Charset) {
        if text.len() > MAX_INLINE {
            return;
        }
        let (mut outline, mut kept) = (Outline::default(), String::new());
        for item in items(text) {
            if let Item::Statement(declaration) = item {
                outline.add(declaration, &mut kept);
            }
        }
        if outline.tells {
            self.cascade.attach(node, (&kept, &outline), (base, charset), &self.options);
        }
    }

    /// Whether the document is in quirks mode; to be said before its elements are pushed.
    pub(crate) fn set_quirks(&mut self, quirks: bool) {
        self.styling.quirks = quirks;
    }

    /// Element `node` shows `text`, apart from the elements within it; in any pieces that cut no character reference, if it
    /// has `references`.
    pub(crate) fn text(&mut self, node: NodeId, text: &str, references: bool) {
        self.styling.text(node, text, references);
    }

    /// Elements were pushed, or texts came: what they need is found, unless a sheet is awaited.
    pub(crate) fn nodes(&mut self, tree: &Tree) {
        // Without any rule nothing is needed, and nobody asks how elements look.
        if self.awaited > 0 || self.cascade.is_empty() {
            return;
        }
        if std::mem::take(&mut self.changed) && self.styling.pay_for(self.cascade.size()) {
            self.rank();
            self.styling.restart();
        }
        self.styling.run(&self.cascade, tree, &self.options, &mut self.winners, &mut self.needs);
        for need in self.needs.take() {
            self.find_image(need);
        }
        if self.styling.fonts.has_new_text() {
            self.find_fonts();
        }
    }

    /// Whether element `node` is displayed; `None` while a sheet is awaited that may decide it.
    pub(crate) fn displays(&self, node: NodeId, tree: &Tree) -> Option<bool> {
        match () {
            () if self.awaited > 0 => None,
            () if self.cascade.is_empty() => Some(!tree.get(node).hidden()),
            () => self.styling.displays(node),
        }
    }

    /// The document is complete: what selectors say of last and of empty elements is decided.
    pub(crate) fn document_end(&mut self, tree: &Tree) {
        self.styling.shape.complete(tree);
        self.changed |= self.cascade.has_late;
        self.nodes(tree);
    }

    /// Whether anything was, of what [`take`](Styles::take) gives.
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// What was found since the last call.
    pub(crate) fn take(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// Puts sheets and layers into the order of the document.
    fn rank(&mut self) {
        let mut order = Vec::new();
        for (at, sheet) in self.sheets.iter().enumerate() {
            let (early, late) = sheet.layers.split_at(sheet.early);
            let place = |last: u32| -> Vec<u32> { sheet.key.iter().copied().chain([last]).collect() };
            order.push((place(0), at, early));
            order.push((place(u32::MAX), at, late));
        }
        order.sort();
        let mut ranks = vec![0; self.sheets.len()];
        for (rank, (_, at, _)) in order.iter().enumerate() {
            ranks[*at] = rank as u32;
        }
        self.styling.fonts.rank(&ranks);
        let layers = order.iter().flat_map(|(_, _, layers)| layers.iter().map(|layer| &**layer));
        self.cascade.rank(ranks, layers);
    }

    fn find_image(&mut self, need: Need) {
        let Need { url, source, fetched, below_fold } = need;
        let named = if fetched.is_part() { Source::RulePart } else { self.cascade.origin(source).source };
        self.find(&url, source, Destination::Image, fetched.mode(), named, below_fold);
    }

    fn find_fonts(&mut self) {
        let needed = self.styling.fonts.needed();
        let files =
            needed.into_iter().filter_map(|placed| Some((placed.face.source.clone()?, placed.source)));
        for (file, source) in files.collect::<Vec<_>>() {
            if !self.needs.is_new(&file.url, source, Mode::Cors) {
                continue;
            }
            let found = self.find(&file.url, source, Destination::Font, Mode::Cors, Source::FontFace, false);
            if let Some(found) = found {
                found.format = file.format;
            }
        }
    }

    fn find(
        &mut self,
        text: &str,
        source: SourceId,
        destination: Destination,
        mode: Mode,
        named: Source,
        below_fold: bool,
    ) -> Option<&mut Found> {
        let origin = self.cascade.origin(source);
        // A fragment alone names a part of the page itself.
        let fetched = !text.trim_start().starts_with('#');
        let url = resolve_in(origin.charset, text, &origin.base, self.options.max_url).filter(|_| fetched)?;
        self.found.push(Found {
            url,
            destination,
            mode,
            source: named,
            initiator: origin.initiator.clone(),
            confidence: Confidence::Likely,
            applies: true,
            below_fold,
            format: None,
            sheet: None,
        });
        self.found.last_mut()
    }
}
