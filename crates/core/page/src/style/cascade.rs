//! Which declarations win for an element: rules found by id, class or name, matched, and compared as CSS Cascade 5 §6
//! says.

use super::layers::{self, UNLAYERED};
use super::matching::Matcher;
use super::selector::{Key, Reach, Selector, Target};
use super::sheet::{Block, Custom, Declaration, Sheet};
use super::value::{Property, Value};
use super::variables::references;
use crate::hint::{Initiator, Source};
use crate::tree::{Element, NodeId, Scope};
use encoding_rs::Encoding;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
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
    pub(super) encoding: &'static Encoding,
    pub(super) initiator: Initiator,
    pub(super) source: Source,
}

#[derive(Debug)]
struct Placed {
    selector: Selector,
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
}

/// The rules of all sheets that count.
#[derive(Debug, Default)]
pub(super) struct Cascade {
    rules: Vec<Placed>,
    blocks: Vec<(Block, Arc<Origin>)>,
    /// By id and by class in lower case, however they are compared.
    by_id: HashMap<Box<str>, Vec<u32>>,
    by_class: HashMap<Box<str>, Vec<u32>>,
    by_name: HashMap<Box<str>, Vec<u32>>,
    universal: Vec<u32>,
    /// Blocks of `style` attributes.
    attached: HashMap<NodeId, u32>,
    /// Place of each sheet in the cascade, by its number.
    sheet_ranks: Vec<u32>,
    /// What each sheet styles, by its number.
    scopes: Vec<Vec<Scope>>,
    has_containers: bool,
    /// Some selector waits for the end of the document.
    pub(super) has_late: bool,
    /// Custom properties that can reach a declaration kept.
    referenced: HashSet<Box<str>>,
}

impl Cascade {
    /// Takes the rules of a complete sheet. [`rank`](Cascade::rank) must follow before anything is matched.
    pub(super) fn add_sheet(&mut self, number: u32, sheet: &mut Sheet, origin: &Arc<Origin>) {
        self.has_containers |= sheet.has_containers;
        let first = self.blocks.len() as u32;
        for rule in sheet.rules.drain(..) {
            let at = self.rules.len() as u32;
            if self.rules.len() >= MAX_RULES {
                break;
            }
            self.has_late |= rule.selector.late;
            for key in rule.selector.keys() {
                match key {
                    Key::Id(id) => self.by_id.entry(folded(&id).into()).or_default().push(at),
                    Key::Class(class) => self.by_class.entry(folded(&class).into()).or_default().push(at),
                    Key::Name(name) => self.by_name.entry(name).or_default().push(at),
                    Key::Universal => self.universal.push(at),
                }
            }
            self.rules.push(Placed {
                selector: rule.selector,
                block: first + rule.block as u32,
                sheet: number,
                layer: rule.layer,
                layer_rank: UNLAYERED,
                contained: rule.contained,
            });
        }
        self.blocks.extend(sheet.blocks.drain(..).map(|block| (block, Arc::clone(origin))));
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
        matcher: &Matcher<'_>,
        element: Element<'_>,
        node: NodeId,
    ) -> Option<(Scope, bool)> {
        let scopes = &self.scopes[rule.sheet as usize];
        let own = element.scope();
        let host = |scope: &&Scope| matcher.tree.host(**scope);
        match rule.selector.reach {
            Reach::Inside => scopes.contains(&own).then_some((own, true)),
            Reach::Host => scopes.iter().find(|scope| host(scope) == Some(node)).map(|scope| (*scope, false)),
            Reach::Slotted => {
                let parent = element.parent()?;
                let is_light = matcher.tree.get(parent).scope() == own;
                scopes.iter().find(|scope| is_light && host(scope) == Some(parent)).map(|_| (own, false))
            }
        }
    }

    /// Takes a `style` attribute.
    pub(super) fn attach(&mut self, node: NodeId, block: Block, origin: Arc<Origin>) {
        let pending = block.declarations.iter().filter_map(|declaration| pending(&declaration.value));
        let names: Vec<Box<str>> = pending.flat_map(references).map(Into::into).collect();
        names.into_iter().for_each(|name| self.refer(name));
        self.attached.insert(node, self.blocks.len() as u32);
        self.blocks.push((block, origin));
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
        let declarations = self.blocks.iter().flat_map(|(block, _)| &block.declarations);
        let pending = declarations.filter_map(|declaration| pending(&declaration.value));
        let names: Vec<Box<str>> = pending.flat_map(references).map(Into::into).collect();
        self.referenced.clear();
        names.into_iter().for_each(|name| self.refer(name));
        // What those refer to in turn, until nothing is added.
        for _ in 0..MAX_REFERENCES {
            let known = self.referenced.len();
            let custom = self.blocks.iter().flat_map(|(block, _)| &block.custom);
            let reached = custom.filter(|custom| self.referenced.contains(&custom.name));
            let names: Vec<Box<str>> =
                reached.flat_map(|custom| references(&custom.text)).map(Into::into).collect();
            names.into_iter().for_each(|name| self.refer(name));
            if self.referenced.len() == known {
                break;
            }
        }
    }

    fn refer(&mut self, name: Box<str>) {
        self.referenced.insert(name);
    }

    /// Finds what wins for `node`.
    pub(super) fn collect(&self, matcher: &Matcher<'_>, node: NodeId, winners: &mut Winners) {
        winners.declared.clear();
        winners.custom.clear();
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
            let Some((scope, outer)) = self.scope(rule, matcher, element, node) else { continue };
            if !matcher.matches(&rule.selector, node, scope) {
                continue;
            }
            let priority = Priority {
                important: false,
                outer,
                attached: false,
                layer: rule.layer_rank,
                specificity: rule.selector.specificity,
                sheet: self.sheet_ranks.get(rule.sheet as usize).copied().unwrap_or_default(),
                rule: at,
                declaration: 0,
            };
            self.pay_for_block(matcher, rule.block, winners);
            self.offer(rule.block, rule.selector.target, priority, winners);
        }
        winners.candidates = candidates;
        if let Some(&block) = self.attached.get(&node) {
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
            self.offer(block, Target::Element, priority, winners);
        }
    }

    /// Each declaration is compared with each winner so far.
    fn pay_for_block(&self, matcher: &Matcher<'_>, block: u32, winners: &Winners) {
        let (own, _) = &self.blocks[block as usize];
        let comparisons =
            own.declarations.len() * winners.declared.len() + own.custom.len() * winners.custom.len();
        matcher.pay_for(comparisons / 8);
    }

    /// It sets nothing but variables that nothing refers to.
    fn is_idle(&self, block: u32) -> bool {
        let (own, _) = &self.blocks[block as usize];
        own.declarations.is_empty() && !own.custom.iter().any(|own| self.referenced.contains(&own.name))
    }

    /// No element can have a style but the browser's own.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Rules and `style` attributes so far: what ordering them costs.
    pub(super) fn size(&self) -> usize {
        self.rules.len() + self.blocks.len()
    }

    fn candidates(&self, element: Element<'_>, candidates: &mut Vec<u32>) {
        let mut take =
            |rules: Option<&Vec<u32>>| candidates.extend_from_slice(rules.map_or(&[], |rules| rules));
        take(element.id().and_then(|id| self.by_id.get(&*folded(id))));
        element.classes().for_each(|class| take(self.by_class.get(&*folded(class))));
        take(self.by_name.get(element.name()));
        take(Some(&self.universal));
    }

    fn offer(&self, block: u32, target: Target, rule: Priority, winners: &mut Winners) {
        let (own, _) = &self.blocks[block as usize];
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
                None => winners.declared.push(new),
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

    fn custom(&self, winner: &CustomWinner) -> &Custom {
        &self.blocks[winner.block as usize].0.custom[winner.at as usize]
    }

    /// The winning value of a property and where it was written.
    pub(super) fn value<'a>(
        &'a self,
        winners: &Winners,
        target: Target,
        property: Property,
    ) -> Option<(&'a Value, &'a Arc<Origin>)> {
        let winner = winners.declared.iter().find(|own| (own.target, own.property) == (target, property))?;
        let (block, origin) = &self.blocks[winner.block as usize];
        let declaration: &Declaration = &block.declarations[winner.at as usize];
        Some((&declaration.value, origin))
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
        self.declared.is_empty()
    }

    /// Of which properties of one target anything is declared.
    pub(super) fn properties(&self, target: Target) -> impl Iterator<Item = Property> {
        self.declared.iter().filter(move |winner| winner.target == target).map(|winner| winner.property)
    }

    /// Targets of which anything is said.
    pub(super) fn speaks_of(&self, target: Target) -> bool {
        self.declared.iter().any(|winner| winner.target == target)
    }
}

/// In lower case; most is.
fn folded(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

fn pending(value: &Value) -> Option<&str> {
    match value {
        Value::Pending(pending) => Some(&pending.1),
        _ => None,
    }
}
