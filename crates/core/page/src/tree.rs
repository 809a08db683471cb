//! The light tree: the elements of a document seen so far, for matching selectors against.
//!
//! All text lies in one arena and all attributes in one list, so that an element costs no allocation of its own.
//! Bounded in elements and bytes: what comes after a bound is not in the tree, and nothing matches it.

/// An element by its place in document order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

/// Longest attribute value kept, in bytes; longer ones are cut at a character.
const MAX_VALUE: usize = 256;
/// Attributes kept of one element, `id` and `class` included.
const MAX_ATTRIBUTES: usize = 32;
/// Classes kept of one element.
const MAX_CLASSES: usize = 64;

/// Elements for which there is room from the beginning.
const USUAL: usize = 256;

/// A piece of the arena.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    end: u32,
}

/// Another element, or none: half of what an `Option` takes, in the largest list there is.
#[derive(Debug, Clone, Copy)]
struct Link(u32);

impl From<Option<NodeId>> for Link {
    fn from(node: Option<NodeId>) -> Self {
        Link(node.map_or(u32::MAX, |node| node.0))
    }
}

impl Link {
    fn node(self) -> Option<NodeId> {
        (self.0 != u32::MAX).then_some(NodeId(self.0))
    }
}

#[derive(Debug, Clone, Copy)]
struct Node {
    name: Span,
    /// Empty if it has none.
    id: Span,
    first_class: u32,
    first_attribute: u32,
    classes: u16,
    attributes: u16,
    parent: Link,
    previous: Link,
    position: Position,
    /// It or an ancestor is hidden.
    hidden: bool,
}

/// A tree of elements with styles of its own: the document, or a shadow root (DOM, §4.8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scope(u32);

impl Scope {
    /// What stands in no shadow root.
    pub(crate) const DOCUMENT: Scope = Scope(0);
}

/// What the builder of the tree knows of an element besides its tag.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    /// The browser's own style sheet displays nothing of it (`hidden`, `<head>`, `<script>`, a closed `<dialog>`, what
    /// a closed `<details>` holds back).
    pub(crate) hidden_itself: bool,
    /// Stands below the first screenful, by estimate.
    pub(crate) below_fold: bool,
    /// What it is part of.
    pub(crate) scope: Scope,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tree {
    text: String,
    nodes: Vec<Node>,
    classes: Vec<Span>,
    attributes: Vec<(Span, Span)>,
    /// The elements that shadow roots hang on.
    hosts: Vec<Link>,
    max_nodes: usize,
    max_bytes: usize,
}

impl Tree {
    /// A tree of at most `max_nodes` elements whose names and attributes take at most `max_bytes`.
    pub(crate) fn new(max_nodes: usize, max_bytes: usize) -> Self {
        Tree {
            text: String::with_capacity(16 * USUAL.min(max_nodes)),
            nodes: Vec::with_capacity(USUAL.min(max_nodes)),
            classes: Vec::with_capacity(USUAL.min(max_nodes)),
            attributes: Vec::with_capacity(USUAL.min(max_nodes)),
            hosts: Vec::new(),
            max_nodes: max_nodes.min(u32::MAX as usize - 1),
            max_bytes: max_bytes.min(u32::MAX as usize),
        }
    }

    /// Adds the next element in document order; names in lower case, values with entities decoded. `None` beyond a
    /// bound. `previous` is the element before it under the same parent.
    pub(crate) fn push<'a>(
        &mut self,
        name: &str,
        attributes: impl Iterator<Item = (&'a str, &'a str)>,
        parent: Option<NodeId>,
        previous: Option<NodeId>,
        position: Position,
    ) -> Option<NodeId> {
        if self.nodes.len() >= self.max_nodes || self.text.len() + name.len() > self.max_bytes {
            return None;
        }
        let first_class = self.classes.len();
        let first_attribute = self.attributes.len();
        let mut id = Span::default();
        let name = self.keep(name);
        for (name, value) in attributes.take(MAX_ATTRIBUTES) {
            let limit = if name == "class" { MAX_VALUE * 16 } else { MAX_VALUE };
            let value = &value[..value.floor_char_boundary(limit)];
            if self.text.len() + name.len() + value.len() > self.max_bytes {
                break;
            }
            let name_span = self.keep(name);
            let value_span = self.keep(value);
            match name {
                "id" => id = value_span,
                "class" => self.keep_classes(value, value_span.start),
                _ => {}
            }
            self.attributes.push((name_span, value_span));
        }
        let node = NodeId(self.nodes.len() as u32);
        let hidden =
            position.hidden_itself || parent.is_some_and(|parent| self.nodes[parent.0 as usize].hidden);
        self.nodes.push(Node {
            name,
            id,
            first_class: first_class as u32,
            first_attribute: first_attribute as u32,
            classes: (self.classes.len() - first_class) as u16,
            attributes: (self.attributes.len() - first_attribute) as u16,
            parent: parent.into(),
            previous: previous.into(),
            position,
            hidden,
        });
        Some(node)
    }

    fn keep(&mut self, text: &str) -> Span {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        Span { start, end: self.text.len() as u32 }
    }

    fn keep_classes(&mut self, value: &str, start: u32) {
        let words = value.split_ascii_whitespace().take(MAX_CLASSES);
        self.classes.extend(words.map(|word| {
            // `word` is a piece of `value`, so the distance of their starts is its place.
            let at = start + (word.as_ptr() as usize - value.as_ptr() as usize) as u32;
            Span { start: at, end: at + word.len() as u32 }
        }));
    }

    /// A shadow root begins, of `host`, whose children its elements count as. Beyond as many as there may be elements, all are one.
    pub(crate) fn shadow(&mut self, host: Option<NodeId>) -> Scope {
        if self.hosts.len() < self.max_nodes {
            self.hosts.push(host.into());
        }
        Scope(self.hosts.len() as u32)
    }

    /// What the shadow root hangs on; `None` for the document.
    pub(crate) fn host(&self, scope: Scope) -> Option<NodeId> {
        self.hosts.get((scope.0 as usize).checked_sub(1)?)?.node()
    }

    /// Elements so far; ids run from 0 to here.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The element `node`, which this tree gave.
    pub(crate) fn get(&self, node: NodeId) -> Element<'_> {
        Element { tree: self, node: &self.nodes[node.0 as usize] }
    }

    fn text(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }
}

/// One element of a tree.
#[derive(Clone, Copy)]
pub(crate) struct Element<'t> {
    tree: &'t Tree,
    node: &'t Node,
}

impl<'t> Element<'t> {
    /// Lower-case name.
    pub(crate) fn name(self) -> &'t str {
        self.tree.text(self.node.name)
    }

    /// Its `id`, unless empty.
    pub(crate) fn id(self) -> Option<&'t str> {
        Some(self.tree.text(self.node.id)).filter(|id| !id.is_empty())
    }

    /// Words of its `class`, as written.
    pub(crate) fn classes(self) -> impl ExactSizeIterator<Item = &'t str> {
        let first = self.node.first_class as usize;
        let spans = &self.tree.classes[first..first + usize::from(self.node.classes)];
        spans.iter().map(move |&span| self.tree.text(span))
    }

    /// Its attributes, `id` and `class` among them: lower-case name, value with entities decoded, cut when long.
    pub(crate) fn attributes(self) -> impl Iterator<Item = (&'t str, &'t str)> {
        let first = self.node.first_attribute as usize;
        let pairs = &self.tree.attributes[first..first + usize::from(self.node.attributes)];
        pairs.iter().map(move |&(name, value)| (self.tree.text(name), self.tree.text(value)))
    }

    /// The value of one attribute.
    pub(crate) fn attribute(self, name: &str) -> Option<&'t str> {
        self.attributes().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The element that contains it; `None` for the root.
    pub(crate) fn parent(self) -> Option<NodeId> {
        self.node.parent.node()
    }

    /// The sibling element before it.
    pub(crate) fn previous(self) -> Option<NodeId> {
        self.node.previous.node()
    }

    /// The browser's own style sheet displays nothing of it, unless an author's `display` overrides that.
    pub(crate) fn hidden_itself(self) -> bool {
        self.node.position.hidden_itself
    }

    /// It or an ancestor is [`hidden_itself`](Element::hidden_itself).
    pub(crate) fn hidden(self) -> bool {
        self.node.hidden
    }

    /// What it is part of.
    pub(crate) fn scope(self) -> Scope {
        self.node.position.scope
    }

    /// Stands below the first screenful, by estimate.
    pub(crate) fn below_fold(self) -> bool {
        self.node.position.below_fold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_told_as_it_was_given() {
        let mut tree = Tree::new(10, 1000);
        let root = tree.push("html", [].into_iter(), None, None, Position::default()).unwrap();
        let attributes = [("id", "main"), ("class", " a  b\nc "), ("data-x", "ä")];
        let hidden = Position { hidden_itself: true, ..Position::default() };
        let div = tree.push("div", attributes.into_iter(), Some(root), None, hidden).unwrap();
        let child = tree.push("b", [].into_iter(), Some(div), None, Position::default()).unwrap();
        let element = tree.get(div);
        assert_eq!((element.name(), element.id()), ("div", Some("main")));
        assert_eq!(element.classes().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(element.attribute("data-x"), Some("ä"));
        assert_eq!(element.parent(), Some(root));
        assert!(!tree.get(root).hidden() && element.hidden_itself());
        assert!(tree.get(child).hidden() && !tree.get(child).hidden_itself());
    }

    #[test]
    fn bounds_hold() {
        let mut tree = Tree::new(2, 1000);
        let long = "ä".repeat(1000);
        let first = tree.push("a", [("title", long.as_str())].into_iter(), None, None, Position::default());
        assert!(tree.get(first.unwrap()).attribute("title").unwrap().len() <= MAX_VALUE);
        assert!(tree.push("a", [].into_iter(), None, None, Position::default()).is_some());
        assert!(tree.push("a", [].into_iter(), None, None, Position::default()).is_none());
        let mut small = Tree::new(10, 20);
        for _ in 0..100 {
            small.push("div", [("class", "x y z")].into_iter(), None, None, Position::default());
        }
        assert!(small.text.len() <= 20);
    }
}
