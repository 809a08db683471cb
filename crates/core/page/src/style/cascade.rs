//! Which declarations win for an element: rules found by id, class or name, matched, and compared as CSS Cascade 5 §6
//! says.

use super::attached::Attached;
use super::block::{Block, Custom, Declaration, Outline};
use super::blocks::{Blocks, SourceId};
use super::index::Index;
use super::layers::{self, UNLAYERED};
use super::matching::Matcher;
use super::plain_selector;
use super::selector::{Reach, Selector, Target};
use super::sheet::{Declared, Selecting, Sheet};
use super::value::{Property, Value};
use super::variables::references;
use crate::decode::Charset;
use crate::hint::{Initiator, Source};
use crate::options::Options;
use crate::tree::{Element, NodeId, Scope};
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use url::Url;

/// Custom properties that refer to others that refer to others: no deeper than they are replaced.
const MAX_REFERENCES: usize = 16;
/// Scopes that one sheet styles.
const MAX_SCOPES: usize = 256;
/// Rules kept of one page.
const MAX_RULES: usize = 100_000;

/// Where a declaration was written.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// Against which its URLs are resolved.
    pub(super) base: Url,
    /// In which their queries are written.
    pub(super) charset: Charset,
    pub(super) initiator: Initiator,
    pub(super) source: Source,
}

#[derive(Debug)]
struct Placed {
    /// Read when the first element asks for it.
    selector: OnceLock<Option<Box<Selector>>>,
    /// Where it stands beside its block, if it was not read at once.
    place: Range<u32>,
    block: u32,
    sheet: u32,
    layer: Option<Arc<str>>,
    layer_rank: u32,
    contained: bool,
}

/// What wins: compared from the first field to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Priority {
    important: bool,
    /// From the tree that the element is part of, not from a shadow root of its own or of its parent; the other way round
    /// where important (CSS Cascade 5, §6.1 "context").
    outer: bool,
    /// From a `style` attribute.
    attached: bool,
    layer: u32,
    specificity: u32,
    sheet: u32,
    rule: u32,
    declaration: u32,
}

/// A winning declaration, by its place.
#[derive(Debug, Clone, Copy)]
struct Winner {
    target: Target,
    property: Property,
    priority: Priority,
    block: u32,
    at: u32,
}

#[derive(Debug, Clone, Copy)]
struct CustomWinner {
    target: Target,
    priority: Priority,
    block: u32,
    at: u32,
}

/// All that rules and `style` attribute say of one element and its pseudo-elements.
#[derive(Debug, Default)]
pub(super) struct Winners {
    declared: Vec<Winner>,
    custom: Vec<CustomWinner>,
    candidates: Vec<u32>,
    /// The targets and properties of `declared`, one bit each: most are not among them.
    targets: u32,
    properties: u32,
}

/// The rules of all sheets that count.
#[derive(Debug, Default)]
pub(super) struct Cascade {
    rules: Vec<Placed>,
    blocks: Blocks,
    index: Index,
    /// Blocks of `style` attributes.
    attached: Attached,
    /// Place of each sheet in the cascade, by its number.
    sheet_ranks: Vec<u32>,
    /// What each sheet styles, by its number.
    scopes: Vec<Vec<Scope>>,
    has_containers: bool,
    /// Some selector waits for the end of the document.
    pub(super) has_late: bool,
    /// Custom properties that can reach a declaration kept.
    referenced: HashSet<Box<str>, RandomState>,
}

impl Cascade {
    /// Takes the rules of a complete sheet. [`rank`](Cascade::rank) must follow before anything is matched.
    pub(super) fn add_sheet(&mut self, number: u32, sheet: &mut Sheet, origin: &Origin) -> SourceId {
        self.has_containers |= sheet.has_containers;
        let first = self.blocks.len() as u32;
        self.index.reserve(sheet.rules.len());
        self.rules.reserve(sheet.rules.len());
        self.blocks.reserve(sheet.blocks.len());
        for rule in std::mem::take(&mut sheet.rules) {
            let at = self.rules.len() as u32;
            if self.rules.len() >= MAX_RULES {
                break;
            }
            let (selector, place) = match rule.selector {
                Selecting::Read(selector) => {
                    self.has_late |= selector.late;
                    match selector.keys() {
                        Some(keys) => keys.into_iter().for_each(|key| self.index.add(key, at)),
                        None => self.index.add_universal(at),
                    }
                    (OnceLock::from(Some(selector)), 0..0)
                }
                Selecting::Unread(place, key) => {
                    self.index.add(key, at);
                    (OnceLock::new(), place)
                }
            };
            self.rules.push(Placed {
                selector,
                place,
                block: first + rule.block,
                sheet: number,
                layer: rule.layer,
                layer_rank: UNLAYERED,
                contained: rule.contained,
            });
        }
        let source = self.blocks.add_source(origin.clone(), std::mem::take(&mut sheet.text));
        for declared in std::mem::take(&mut sheet.blocks) {
            self.blocks.add(source, declared);
        }
        source
    }

    fn selector<'a>(&self, rule: &'a Placed) -> Option<&'a Selector> {
        let read = || plain_selector::one(self.blocks.text(rule.block, &rule.place)).map(Box::new);
        rule.selector.get_or_init(read).as_deref()
    }

    /// The sheet of this number styles `scope`; whether that is new.
    pub(super) fn put(&mut self, number: u32, scope: Scope) -> bool {
        let number = number as usize;
        if self.scopes.len() <= number {
            self.scopes.resize(number + 1, Vec::new());
        }
        let scopes = &mut self.scopes[number];
        let new = !scopes.contains(&scope) && scopes.len() < MAX_SCOPES;
        if new {
            scopes.push(scope);
        }
        new
    }

    /// The scope in which the rule may match `element`, and whether the element is part of the one that it was written for.
    fn scope(
        &self,
        rule: &Placed,
        reach: Reach,
        matcher: &Matcher<'_>,
        element: Element<'_>,
        node: NodeId,
    ) -> Option<(Scope, bool)> {
        let scopes = &self.scopes[rule.sheet as usize];
        let own = element.scope();
        let host = |scope: &&Scope| matcher.tree.host(**scope);
        match reach {
            Reach::Inside => scopes.contains(&own).then_some((own, true)),
            Reach::Host => scopes.iter().find(|scope| host(scope) == Some(node)).map(|scope| (*scope, false)),
            Reach::Slotted => {
                let parent = element.parent()?;
                let is_light = matcher.tree.get(parent).scope() == own;
                scopes.iter().find(|scope| is_light && host(scope) == Some(parent)).map(|_| (own, false))
            }
        }
    }

    /// Takes a `style` attribute of a document with this base and encoding. Of its text only what can cause a fetch.
    pub(super) fn attach(
        &mut self,
        node: NodeId,
        (text, outline): (&str, &Outline),
        (base, charset): (&Url, Charset),
        options: &Options,
    ) {
        let alike = |origin: &Origin| origin.base == *base && origin.charset == charset;
        let known = self.attached.source().filter(|source| alike(self.blocks.origin(*source)));
        let source = known.unwrap_or_else(|| {
            let (initiator, source) = (Initiator::Document, Source::StyleAttribute);
            let origin = Origin { base: base.clone(), charset, initiator, source };
            let source = self.blocks.add_source(origin, String::new());
            self.attached.begin(source);
            source
        });
        let block = self.attached.known(text).unwrap_or_else(|| {
            let declared = match outline.at_once {
                true => Declared::Read(Box::new(Block::of(text, options))),
                false => Declared::Unread(self.blocks.write(source, text)),
            };
            let block = self.blocks.add(source, declared);
            let names = self.blocks.known(block).into_iter().flat_map(|block| block.referred());
            self.referenced.extend(names.map(Box::from));
            self.attached.learn(text, block);
            block
        });
        self.attached.put(node, block);
    }

    /// Orders sheets (`ranks`, by number) and layers (names in the order of the page), and sees which custom properties
    /// matter.
    pub(super) fn rank<'a>(&mut self, ranks: Vec<u32>, layers: impl Iterator<Item = &'a str>) {
        self.sheet_ranks = ranks;
        let layers = layers::rank(layers);
        for rule in &mut self.rules {
            rule.layer_rank =
                rule.layer.as_deref().and_then(|layer| layers.get(layer).copied()).unwrap_or(UNLAYERED);
        }
        self.referenced = self.blocks.read().flat_map(Block::referred).map(Box::from).collect();
        // What those refer to in turn, until nothing is added.
        for _ in 0..MAX_REFERENCES {
            let known = self.referenced.len();
            let custom = self.blocks.read().flat_map(|block| &block.custom);
            let reached = custom.filter(|custom| self.referenced.contains(&custom.name));
            let names: Vec<Box<str>> =
                reached.flat_map(|custom| references(&custom.text)).map(Into::into).collect();
            self.referenced.extend(names);
            if self.referenced.len() == known {
                break;
            }
        }
    }

    /// Finds what wins for `node`.
    pub(super) fn collect(
        &self,
        matcher: &Matcher<'_>,
        node: NodeId,
        options: &Options,
        winners: &mut Winners,
    ) {
        winners.declared.clear();
        winners.custom.clear();
        (winners.targets, winners.properties) = (0, 0);
        let element = matcher.tree.get(node);
        let mut candidates = std::mem::take(&mut winners.candidates);
        candidates.clear();
        self.candidates(element, &mut candidates);
        // Rules that wait for the end of the document are looked at too.
        matcher.pay_for(candidates.len() / 4);
        for &at in &candidates {
            let rule = &self.rules[at as usize];
            if rule.contained && !self.has_containers {
                continue;
            }
            if self.is_idle(rule.block) {
                continue;
            }
            let Some(selector) = self.selector(rule) else { continue };
            let Some((scope, outer)) = self.scope(rule, selector.reach, matcher, element, node) else {
                continue;
            };
            if !matcher.matches(selector, node, scope) {
                continue;
            }
            let priority = Priority {
                important: false,
                outer,
                attached: false,
                layer: rule.layer_rank,
                specificity: selector.specificity,
                sheet: self.sheet_ranks.get(rule.sheet as usize).copied().unwrap_or_default(),
                rule: at,
                declaration: 0,
            };
            let own = self.blocks.get(rule.block, options);
            // Each declaration is compared with each winner so far.
            let comparisons =
                own.declarations.len() * winners.declared.len() + own.custom.len() * winners.custom.len();
            matcher.pay_for(comparisons / 8);
            self.offer((rule.block, own), selector.target, priority, winners);
        }
        winners.candidates = candidates;
        if let Some(block) = self.attached.of(node) {
            let priority = Priority {
                important: false,
                outer: true,
                attached: true,
                layer: UNLAYERED,
                specificity: 0,
                sheet: 0,
                rule: 0,
                declaration: 0,
            };
            self.offer((block, self.blocks.get(block, options)), Target::Element, priority, winners);
        }
    }

    /// It sets nothing but variables that nothing refers to.
    fn is_idle(&self, block: u32) -> bool {
        let counts = |own: &Block| {
            !own.declarations.is_empty() || own.custom.iter().any(|own| self.referenced.contains(&own.name))
        };
        self.blocks.known(block).is_some_and(|own| !counts(own))
    }

    /// No element can have a style but the browser's own.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.len() == 0
    }

    /// Rules and `style` attributes so far: what ordering them costs.
    pub(super) fn size(&self) -> usize {
        self.rules.len() + self.blocks.len()
    }

    fn candidates(&self, element: Element<'_>, candidates: &mut Vec<u32>) {
        if let Some(id) = element.id() {
            candidates.extend(self.index.with_id(id));
        }
        for class in element.classes() {
            candidates.extend(self.index.with_class(class));
        }
        candidates.extend(self.index.with_name(element.name()));
        candidates.extend_from_slice(self.index.universal());
    }

    fn offer(&self, (block, own): (u32, &Block), target: Target, rule: Priority, winners: &mut Winners) {
        // Important declarations turn the order of layers round (CSS Cascade 5, §6.4.2).
        let priority = |important: bool, declaration: usize| Priority {
            important,
            outer: rule.outer != important,
            layer: if important { UNLAYERED - rule.layer } else { rule.layer },
            declaration: declaration as u32,
            ..rule
        };
        for (at, declaration) in own.declarations.iter().enumerate() {
            let new = Winner {
                target,
                property: declaration.property,
                priority: priority(declaration.important, at),
                block,
                at: at as u32,
            };
            let old =
                winners.declared.iter_mut().find(|old| (old.target, old.property) == (target, new.property));
            match old {
                Some(old) if old.priority < new.priority => *old = new,
                Some(_) => {}
                None => {
                    winners.declared.push(new);
                    winners.targets |= 1 << target as u32;
                    winners.properties |= 1 << new.property as u32;
                }
            }
        }
        for (at, custom) in own.custom.iter().enumerate() {
            if !self.referenced.contains(&custom.name) {
                continue;
            }
            let new = CustomWinner { target, priority: priority(custom.important, at), block, at: at as u32 };
            let old = winners
                .custom
                .iter_mut()
                .find(|old| old.target == target && self.custom(old).name == custom.name);
            match old {
                Some(old) if old.priority < new.priority => *old = new,
                Some(_) => {}
                None => winners.custom.push(new),
            }
        }
    }

    /// A block of which something wins, and which was read for that.
    fn read(&self, block: u32) -> &Block {
        self.blocks.known(block).expect("what wins was read")
    }

    fn custom(&self, winner: &CustomWinner) -> &Custom {
        &self.read(winner.block).custom[winner.at as usize]
    }

    /// What was written in a source that was added.
    pub(super) fn origin(&self, source: SourceId) -> &Origin {
        self.blocks.origin(source)
    }

    /// The winning value of a property and where it was written.
    pub(super) fn value<'a>(
        &'a self,
        winners: &Winners,
        target: Target,
        property: Property,
    ) -> Option<(&'a Value, SourceId)> {
        let winner = winners.declared.iter().find(|own| (own.target, own.property) == (target, property))?;
        let declaration: &Declaration = &self.read(winner.block).declarations[winner.at as usize];
        Some((&declaration.value, self.blocks.source(winner.block)))
    }

    /// The custom properties set on one target.
    pub(super) fn variables(&self, winners: &Winners, target: Target) -> Vec<(Box<str>, Arc<str>)> {
        let own = winners.custom.iter().filter(|winner| winner.target == target);
        own.map(|winner| self.custom(winner))
            .map(|custom| (custom.name.clone(), Arc::clone(&custom.text)))
            .collect()
    }
}

impl Winners {
    /// Nothing is declared of the element or its pseudo-elements.
    pub(super) fn is_silent(&self) -> bool {
        self.declared.is_empty() && self.custom.is_empty()
    }

    /// Of which properties of one target anything is declared.
    pub(super) fn properties(&self, target: Target) -> impl Iterator<Item = Property> {
        self.declared.iter().filter(move |winner| winner.target == target).map(|winner| winner.property)
    }

    /// Whether anything is said about a property, of whatever target.
    pub(super) fn speaks_about(&self, property: Property) -> bool {
        self.properties & 1 << property as u32 != 0
    }

    /// Targets of which anything is said.
    pub(super) fn speaks_of(&self, target: Target) -> bool {
        self.targets & 1 << target as u32 != 0
    }
}
