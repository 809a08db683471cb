//! Whether an element matches a selector: right to left, as browsers do, with a budget instead of trust.

use super::selector::{Combinator, Compound, Part, Selector};
use crate::steps::Steps;
use crate::tree::{Element, NodeId, Scope, Tree};

/// What the tree does not say of its elements by itself: places among siblings, and, once the document has ended, what
/// follows.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Place among siblings, from 1, by node.
    place: Vec<u32>,
    /// The sibling after each node; filled at the end of the document.
    next: Vec<Option<NodeId>>,
    has_child: Vec<bool>,
    pub(super) complete: bool,
}

impl Shape {
    /// Takes in what was pushed since.
    pub(super) fn extend(&mut self, tree: &Tree) {
        for at in self.place.len()..tree.len() {
            let previous = tree.get(NodeId(at as u32)).previous();
            self.place.push(previous.map_or(1, |previous| self.place[previous.0 as usize] + 1));
        }
    }

    /// The document is complete.
    pub(super) fn complete(&mut self, tree: &Tree) {
        self.next = vec![None; tree.len()];
        self.has_child = vec![false; tree.len()];
        for at in 0..tree.len() {
            let node = NodeId(at as u32);
            let element = tree.get(node);
            if let Some(previous) = element.previous() {
                self.next[previous.0 as usize] = Some(node);
            }
            if let Some(parent) = element.parent() {
                self.has_child[parent.0 as usize] = true;
            }
        }
        self.complete = true;
    }
}

/// Classes that are compared for one step.
const PER_STEP: usize = 4;
/// Steps that looking through an element's attributes, or an attribute's value, is worth.
const ATTRIBUTE: usize = 4;

/// Matches selectors against one tree.
pub(super) struct Matcher<'a> {
    pub(super) tree: &'a Tree,
    pub(super) shape: &'a Shape,
    /// Elements with text of their own, for `:empty`.
    pub(super) with_text: &'a dyn Fn(NodeId) -> bool,
    /// In quirks mode ids and classes are not told apart by the case of their letters (Selectors 4, §6.6 and §6.7).
    pub(super) quirks: bool,
    /// Steps left; at 0 nothing matches any more.
    pub(super) budget: &'a Steps,
}

/// As Blink's `SelectorChecker`: a failure further up that no other ancestor can mend ends the search, so that a
/// chain of descendants costs no more than the depth of the tree.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Matches,
    Fails,
    FailsForAll,
}

/// To what the first compound of a relative selector has to stand, and how.
#[derive(Clone, Copy)]
struct Anchor {
    relation: Combinator,
    node: NodeId,
}

impl Matcher<'_> {
    /// Whether `node` matches, of the elements of `scope`, and its host where `:host` stands for it.
    pub(super) fn matches(&self, selector: &Selector, node: NodeId, scope: Scope) -> bool {
        (!selector.late || self.shape.complete)
            && self.chain(&selector.compounds, node, scope, None) == Outcome::Matches
    }

    /// Pays for one step; false once the budget is spent.
    fn pay(&self) -> bool {
        self.pay_for(1)
    }

    /// Pays for work that is worth so many steps of matching; false once the budget is spent.
    pub(super) fn pay_for(&self, steps: usize) -> bool {
        self.budget.pay(steps)
    }

    /// Matches from the last compound on; what is the first has to stand in this relation to the anchor, if there is one.
    fn chain(&self, compounds: &[Compound], node: NodeId, scope: Scope, anchor: Option<Anchor>) -> Outcome {
        if !self.pay() {
            return Outcome::FailsForAll;
        }
        let Some((compound, rest)) = compounds.split_first() else { return Outcome::Matches };
        let element = self.tree.get(node);
        if element.scope() != scope && !compound.is_host() {
            return Outcome::FailsForAll;
        }
        if !compound.parts.iter().all(|part| self.pay() && self.part(part, element, node, scope)) {
            return Outcome::Fails;
        }
        let Some(combinator) = compound.combinator else {
            let is_there = anchor.is_none_or(|anchor| self.is_related(node, anchor));
            return if is_there { Outcome::Matches } else { Outcome::Fails };
        };
        let step = |node: NodeId| match combinator {
            Combinator::Descendant | Combinator::Child => self.tree.get(node).parent(),
            Combinator::NextSibling | Combinator::LaterSibling => self.tree.get(node).previous(),
        };
        let mut next = step(node);
        while let Some(node) = next {
            match (self.chain(rest, node, scope, anchor), combinator) {
                (Outcome::Fails, Combinator::Descendant | Combinator::LaterSibling) => next = step(node),
                (outcome, _) => return outcome,
            }
        }
        match combinator {
            Combinator::Descendant | Combinator::Child => Outcome::FailsForAll,
            _ => Outcome::Fails,
        }
    }

    fn part(&self, part: &Part, element: Element<'_>, node: NodeId, scope: Scope) -> bool {
        match part {
            Part::Name(name) => element.name() == &**name,
            Part::Id(id) => element.id().is_some_and(|own| self.is_same(own, id)),
            Part::Class(class) => {
                self.pay_for(element.classes().len() / PER_STEP)
                    && element.classes().any(|own| self.is_same(own, class))
            }
            Part::Attribute(attribute) => {
                self.pay_for(ATTRIBUTE)
                    && element.attribute(&attribute.name).is_some_and(|value| attribute.fits(value))
            }
            Part::Root => element.parent().is_none(),
            &Part::Nth { step, offset, of_type, from_end } => {
                let place = self.place(node, of_type, from_end);
                let distance = i64::from(place) - i64::from(offset);
                match i64::from(step) {
                    0 => distance == 0,
                    step => distance % step == 0 && distance / step >= 0,
                }
            }
            Part::Empty => {
                !self.shape.has_child.get(node.0 as usize).copied().unwrap_or(true) && !(self.with_text)(node)
            }
            Part::Link => matches!(element.name(), "a" | "area") && element.attribute("href").is_some(),
            Part::Enabled => {
                matches!(element.name(), "input" | "button" | "select" | "textarea" | "option" | "fieldset")
                    && element.attribute("disabled").is_none()
            }
            Part::Lang(tags) => self.speaks(node, tags),
            Part::Any(selectors) => selectors.iter().any(|own| self.pay() && self.matches(own, node, scope)),
            Part::Not(selectors) => {
                !selectors.iter().any(|own| !self.pay() || self.matches(own, node, scope))
            }
            Part::Has(relatives) => {
                relatives.iter().any(|(relation, own)| self.has(node, *relation, own, scope))
            }
            Part::Host(selectors) => {
                let fits = |own| self.pay() && self.matches(own, node, element.scope());
                self.tree.host(scope) == Some(node)
                    && selectors.as_ref().is_none_or(|own| own.iter().any(fits))
            }
            Part::Never => false,
        }
    }

    fn is_same(&self, own: &str, asked: &str) -> bool {
        own == asked || (self.quirks && own.eq_ignore_ascii_case(asked))
    }

    /// Place among siblings, from 1.
    fn place(&self, node: NodeId, of_type: bool, from_end: bool) -> u32 {
        if !of_type && !from_end {
            return self.shape.place[node.0 as usize];
        }
        let name = self.tree.get(node).name();
        let step = |node: NodeId| {
            if from_end {
                self.shape.next.get(node.0 as usize).copied().flatten()
            } else {
                self.tree.get(node).previous()
            }
        };
        let mut place = 1;
        let mut next = step(node);
        while let Some(node) = next.filter(|_| self.pay()) {
            place += u32::from(!of_type || self.tree.get(node).name() == name);
            next = step(node);
        }
        place
    }

    fn speaks(&self, node: NodeId, tags: &[Box<str>]) -> bool {
        let mut next = Some(node);
        while let Some(node) = next.filter(|_| self.pay()) {
            let element = self.tree.get(node);
            self.pay_for(ATTRIBUTE);
            if let Some(language) = element.attribute("lang") {
                let language = language.to_ascii_lowercase();
                return tags.iter().any(|tag| {
                    language.strip_prefix(&**tag).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                });
            }
            next = element.parent();
        }
        false
    }

    /// `:has()` (Selectors 4, §4.5): something behind `node` or within it that the selector matches, its first compound related to `node`.
    fn has(&self, node: NodeId, relation: Combinator, selector: &Selector, scope: Scope) -> bool {
        if selector.late && !self.shape.complete {
            return false;
        }
        let anchor = Some(Anchor { relation, node });
        let next = |node: NodeId| self.shape.next.get(node.0 as usize).copied().flatten();
        let fits = |at| self.chain(&selector.compounds, at, scope, anchor) == Outcome::Matches;
        // Document order: what an element contains follows it without a gap.
        let within = |node: NodeId| {
            let inner = (node.0 + 1..self.tree.len() as u32).map(NodeId);
            inner.take_while(move |at| {
                self.tree.get(*at).parent().is_some_and(|parent| parent.0 >= node.0) && self.pay()
            })
        };
        if matches!(relation, Combinator::Descendant | Combinator::Child) {
            return within(node).any(fits);
        }
        let mut sibling = next(node);
        while let Some(node) = sibling.filter(|_| self.pay()) {
            // What stands on its own is the sibling itself.
            if fits(node) || (selector.compounds.len() > 1 && within(node).any(fits)) {
                return true;
            }
            let goes_on = relation == Combinator::LaterSibling || selector.compounds.len() > 1;
            sibling = next(node).filter(|_| goes_on);
        }
        false
    }

    fn is_related(&self, node: NodeId, anchor: Anchor) -> bool {
        let step = |node: NodeId| match anchor.relation {
            Combinator::Descendant | Combinator::Child => self.tree.get(node).parent(),
            Combinator::NextSibling | Combinator::LaterSibling => self.tree.get(node).previous(),
        };
        let mut next = step(node);
        while let Some(node) = next.filter(|_| self.pay()) {
            if node == anchor.node {
                return true;
            }
            let goes_on = matches!(anchor.relation, Combinator::Descendant | Combinator::LaterSibling);
            next = step(node).filter(|_| goes_on);
        }
        false
    }
}
