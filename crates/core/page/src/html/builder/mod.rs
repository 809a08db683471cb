//! Which elements are open, and so where each element hangs in the tree: HTML's tree construction with its implied
//! tags, short of moving elements about. Not followed: the adoption agency and the reconstruction of formatting elements
//! (a block in a misnested `<b>` stays its child), foster parenting (what is misplaced in a table stays in it), quirks
//! mode, frames. XML has none of that: what is open is what no end tag has closed.

mod implied;

use super::names::{Kind, Name, name};
use crate::tree::{NodeId, Position, Scope, Tree};

/// Elements open within each other; deeper ones become siblings (as in Blink).
const MAX_DEPTH: usize = 512;
/// Templates open within each other beyond [`MAX_DEPTH`]; deeper, everything counts as within a template.
const MAX_TEMPLATES: usize = 1024;

/// Elements open are counted in so many groups.
const NAMED: usize = 64;

/// What language an element is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Namespace {
    Html,
    Svg,
    MathMl,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    kind: Kind,
    namespace: Namespace,
    node: Option<NodeId>,
    last_child: Option<NodeId>,
    /// Of its children.
    scope: Scope,
    summary_seen: bool,
}

impl Open {
    fn new(kind: Kind, namespace: Namespace) -> Self {
        Open { kind, namespace, node: None, last_child: None, scope: Scope::DOCUMENT, summary_seen: false }
    }
}

/// What became of a start tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    /// `None` in templates and beyond the tree's bounds.
    pub(crate) node: Option<NodeId>,
    pub(crate) namespace: Namespace,
    /// Within a `<template>`: not part of the page.
    pub(crate) inert: bool,
    /// What it is part of.
    pub(crate) scope: Scope,
    /// It is a child of `<picture>`.
    pub(crate) in_picture: bool,
    /// It is a child of `<head>`.
    pub(crate) in_head: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Builder {
    xml: bool,
    stack: Vec<Open>,
    /// How many elements of it have a name with these last bits: where none has, it need not be searched.
    named: [u16; NAMED],
    templates: usize,
    overflown: bool,
    head_seen: bool,
    body_seen: bool,
}

/// What the builder asks of a tag.
pub(crate) struct Start<'a, A> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) self_closing: bool,
    /// A `<template>` with `shadowrootmode`.
    pub(crate) shadow_root: bool,
    /// By its attributes the browser displays nothing of it.
    pub(crate) hidden: bool,
    pub(crate) below_fold: bool,
    pub(crate) attributes: A,
}

impl Builder {
    pub(crate) fn new(xml: bool) -> Self {
        Builder {
            xml,
            stack: Vec::new(),
            named: [0; NAMED],
            templates: 0,
            overflown: false,
            head_seen: false,
            body_seen: false,
        }
    }

    /// Whether what comes next stands in SVG or MathML.
    pub(crate) fn is_foreign(&self) -> bool {
        self.stack
            .last()
            .is_some_and(|open| open.namespace != Namespace::Html && !open.kind.groups.holds_html())
    }

    /// The innermost open element, unless it is in a template or not in the tree.
    pub(crate) fn current(&self) -> Option<NodeId> {
        self.stack.last().filter(|_| !self.is_inert()).and_then(|open| open.node)
    }

    fn is_inert(&self) -> bool {
        self.templates > 0 || self.overflown
    }

    /// Takes a start tag in. `None` where it makes no element (a second `<body>`).
    pub(crate) fn start<'a, 't>(
        &mut self,
        tree: &mut Tree,
        start: Start<'a, impl Iterator<Item = (&'t str, &'t str)>>,
    ) -> Option<Placed> {
        let kind = start.kind;
        let namespace = if self.is_foreign() && !self.leave_foreign(kind) {
            self.stack.last().map_or(Namespace::Html, |open| open.namespace)
        } else {
            match start.name {
                "svg" => Namespace::Svg,
                "math" => Namespace::MathMl,
                _ => Namespace::Html,
            }
        };
        if !self.is_foreign() && self.templates == 0 && !self.imply(tree, kind) {
            return None;
        }
        if namespace == Namespace::Html && !self.xml {
            self.end_implied(kind);
            self.begin_implied(tree, kind);
        }
        // In XML, `<noscript>` holds elements like any other: they are for browsers without scripts all the same.
        let template = namespace == Namespace::Html
            && (start.name == "template" || (self.xml && start.name == "noscript"));
        let inert = self.is_inert();
        let parent = self.stack.last().copied();
        let details = parent.is_some_and(|parent| parent.kind.name == name("details"));
        let first_summary =
            details && start.name == "summary" && parent.is_some_and(|parent| !parent.summary_seen);
        let held_back = details
            && !first_summary
            && parent
                .and_then(|parent| parent.node)
                .is_some_and(|node| tree.get(node).attribute("open").is_none());
        let scope = parent.map_or(Scope::DOCUMENT, |parent| parent.scope);
        let position = Position {
            hidden_itself: start.hidden
                || held_back
                || (namespace == Namespace::Html && kind.groups.is_undisplayed()),
            below_fold: start.below_fold,
            scope,
        };
        // A shadow root is no element: what is in it counts as its host's.
        let shadow = template && start.shadow_root && !inert;
        let node = (!inert && !shadow)
            .then(|| {
                let (above, before) = parent.map_or((None, None), |open| (open.node, open.last_child));
                tree.push(start.name, start.attributes, above, before, position)
            })
            .flatten();
        if let Some(open) = self.stack.last_mut() {
            open.last_child = node.or(open.last_child);
            open.summary_seen |= first_summary;
        }
        let in_picture = parent.is_some_and(|parent| parent.kind.name == name("picture"));
        // Behind the head's end tag, what belongs in it still goes there (HTML, §13.2.6.4.6).
        let after_head = !self.xml && !self.body_seen && self.stack.len() == 1 && kind.groups.is_metadata();
        let in_head = after_head || parent.is_some_and(|parent| parent.kind.name == name("head"));
        let html = namespace == Namespace::Html && !self.xml;
        let empty = if html { kind.groups.is_void() } else { start.self_closing };
        if shadow {
            let host = parent.and_then(|parent| parent.node);
            let scope = tree.shadow(host);
            self.push(Open { node: host, scope, ..Open::new(kind, namespace) }, false);
        } else if !empty {
            self.push(Open { node, scope, ..Open::new(kind, namespace) }, template && !start.shadow_root);
        }
        Some(Placed { node, namespace, inert, scope, in_picture, in_head })
    }

    fn push(&mut self, open: Open, template: bool) {
        if self.stack.len() >= MAX_DEPTH {
            if !template {
                return;
            }
            self.overflown |= self.stack.len() >= MAX_DEPTH + MAX_TEMPLATES;
            if self.overflown {
                return;
            }
        }
        self.templates += usize::from(template);
        // A shadow root's template is open like any other element, but what is in it counts.
        let kind = if template { TEMPLATE } else { open.kind };
        self.named[kind.name as usize % NAMED] += 1;
        self.stack.push(Open { kind, ..open });
    }

    fn pop(&mut self) {
        if let Some(open) = self.stack.pop() {
            self.closed(open.kind);
        }
    }

    fn remove(&mut self, depth: usize) {
        let open = self.stack.remove(depth);
        self.closed(open.kind);
    }

    fn closed(&mut self, kind: Kind) {
        self.named[kind.name as usize % NAMED] -= 1;
        self.templates -= usize::from(kind == TEMPLATE);
    }

    /// Whether an element of this name may be open.
    fn may_be_open(&self, which: Name) -> bool {
        self.named[which as usize % NAMED] > 0
    }

    fn pop_to(&mut self, depth: usize) {
        while self.stack.len() > depth {
            self.pop();
        }
    }

    /// Leaves SVG or MathML if an HTML element of this name cannot stand in it.
    fn leave_foreign(&mut self, kind: Kind) -> bool {
        if self.xml || !kind.groups.leaves_foreign() {
            return false;
        }
        while self.is_foreign() {
            self.pop();
        }
        true
    }

    /// Opens and closes `<html>`, `<head>` and `<body>` around an element. False if it makes no element of its own.
    fn imply(&mut self, tree: &mut Tree, kind: Kind) -> bool {
        if self.xml {
            return true;
        }
        const HTML: Name = name("html");
        const HEAD: Name = name("head");
        const BODY: Name = name("body");
        if kind.name == HTML {
            return self.stack.is_empty();
        }
        if self.stack.is_empty() {
            self.open_implied(tree, "html");
        }
        match kind.name {
            HEAD => return !std::mem::replace(&mut self.head_seen, true),
            BODY if self.body_seen => return false,
            BODY => {
                (self.head_seen, self.body_seen) = (true, true);
                self.pop_to(1);
                return true;
            }
            _ => {}
        }
        if self.body_seen {
            return true;
        }
        if kind.groups.is_metadata() {
            if !std::mem::replace(&mut self.head_seen, true) {
                self.open_implied(tree, "head");
            }
            return true;
        }
        self.open_body(tree);
        true
    }

    /// The body begins, named or not.
    fn open_body(&mut self, tree: &mut Tree) {
        if self.stack.is_empty() {
            self.open_implied(tree, "html");
        }
        (self.head_seen, self.body_seen) = (true, true);
        self.pop_to(1);
        self.open_implied(tree, "body");
    }

    /// Text that is no white space begins the body.
    pub(crate) fn text(&mut self, tree: &mut Tree) {
        if !self.body_seen && !self.xml && self.templates == 0 && !self.is_foreign() {
            self.open_body(tree);
        }
    }

    fn open_implied(&mut self, tree: &mut Tree, element: &str) {
        let parent = self.stack.last().copied();
        let (above, before) = parent.map_or((None, None), |open| (open.node, open.last_child));
        let scope = parent.map_or(Scope::DOCUMENT, |open| open.scope);
        let position = Position { hidden_itself: element == "head", scope, ..Position::default() };
        let node = tree.push(element, std::iter::empty(), above, before, position);
        if let Some(open) = self.stack.last_mut() {
            open.last_child = node.or(open.last_child);
        }
        self.push(Open { node, scope, ..Open::new(Kind::of(element), Namespace::Html) }, false);
    }

    /// Takes an end tag in. True if it ended the head.
    pub(crate) fn end(&mut self, element: &str, kind: Kind) -> bool {
        let which = kind.name;
        if self.xml {
            return self.end_in_xml(element, kind);
        }
        match element {
            // What follows them is still body.
            "html" | "body" | "br" => return false,
            "head" => {
                if self.templates == 0 && !self.body_seen && self.head_seen {
                    self.pop_to(1);
                    return true;
                }
                return false;
            }
            "p" => {
                self.close_in_scope(which);
                return false;
            }
            "template" => {
                let shadow = name("template");
                if let Some(depth) =
                    self.stack.iter().rposition(|open| open.kind == TEMPLATE || open.kind.name == shadow)
                {
                    self.pop_to(depth);
                }
                return false;
            }
            _ => {}
        }
        if !self.may_be_open(which) && !kind.groups.is_heading() {
            return false;
        }
        let groups = kind.groups;
        if groups.is_formatting() && !self.is_foreign() {
            self.end_formatting(which);
        } else if groups.is_heading() {
            if let Some(depth) = self.in_scope(|open| open.groups.is_heading(), false) {
                self.pop_to(depth);
            }
        } else if groups.bounds_list_item() || groups.ends_paragraph() {
            // Special elements: anything but the bounds of scope is closed with them.
            let table_part =
                matches!(element, "table" | "tbody" | "thead" | "tfoot" | "tr" | "td" | "th" | "caption");
            let found = if table_part {
                self.stack
                    .iter()
                    .rposition(|open| {
                        let open = open.kind;
                        open.name == which || open.name == name("table") || open == TEMPLATE
                    })
                    .filter(|&depth| self.stack[depth].kind.name == which)
            } else {
                self.in_scope(|open| open.name == which, false)
            };
            if let Some(depth) = found {
                self.pop_to(depth);
            }
        } else {
            // "Any other end tag": a special element in between keeps it out.
            let found = self.stack.iter().rposition(|open| {
                let (kind, groups) = (open.kind, open.kind.groups);
                kind.name == which
                    || (open.namespace == Namespace::Html
                        && (groups.bounds_list_item() || groups.ends_paragraph() || kind == TEMPLATE))
            });
            if let Some(depth) = found.filter(|&depth| self.stack[depth].kind.name == which) {
                self.pop_to(depth);
            }
        }
        false
    }

    fn end_in_xml(&mut self, element: &str, kind: Kind) -> bool {
        let held = matches!(element, "template" | "noscript");
        let open = |open: &Open| open.kind == kind || (held && open.kind == TEMPLATE);
        if let Some(depth) = self.stack.iter().rposition(open) {
            self.pop_to(depth);
        }
        element == "head" && self.templates == 0
    }
}

/// An open `<template>` whose content is not part of the page.
const TEMPLATE: Kind = Kind::bare(name("template") ^ 1);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_open_is_counted(tags in prop::collection::vec((0..14_usize, any::<bool>(), any::<bool>()), 0..60)) {
            const NAMES: [&str; 14] = [
                "p", "a", "b", "div", "li", "ul", "button", "table", "td", "tr", "template", "svg", "h1", "body",
            ];
            let mut tree = Tree::new(100, 10_000);
            let mut builder = Builder::new(false);
            for (at, begins, shadow_root) in tags {
                let (name, kind) = (NAMES[at], Kind::of(NAMES[at]));
                if begins {
                    let attributes = std::iter::empty();
                    let (self_closing, hidden, below_fold) = (false, false, false);
                    let start = Start { name, kind, self_closing, shadow_root, hidden, below_fold, attributes };
                    builder.start(&mut tree, start);
                } else {
                    builder.end(name, kind);
                }
                let mut named = [0; NAMED];
                builder.stack.iter().for_each(|open| named[open.kind.name as usize % NAMED] += 1);
                prop_assert_eq!(builder.named, named);
            }
        }
    }
}
