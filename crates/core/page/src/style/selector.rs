//! Selectors as the matcher wants them: parsed once, right to left, with what can never hold without a pointing hand
//! (`:hover`), a script or a past visit settled while parsing.

use super::index::Key;
use cssparser::CowRcStr;
use std::sync::Arc;

/// A complex selector.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selector {
    /// Rightmost first. Never empty.
    pub(super) compounds: Box<[Compound]>,
    /// Packed: ids, classes, names, ten bits each.
    pub(super) specificity: u32,
    pub(super) target: Target,
    pub(super) reach: Reach,
    /// Holds something that only the end of the document decides (`:last-child`, `:has()`, …).
    pub(super) late: bool,
}

/// Which elements it is of, seen from the tree that its sheet is part of (CSS Scoping 1, §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Inside,
    /// `:host`: what that tree hangs on.
    Host,
    /// `::slotted()`: the host's other children.
    Slotted,
}

/// What of the element is styled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    Element,
    Before,
    After,
    Marker,
    FirstLine,
    FirstLetter,
    Placeholder,
    /// A part that shows nothing before someone acts on it, or none that this crate knows.
    Nothing,
}

/// Simple selectors for one element, and how it relates to the compound on its left.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compound {
    pub(super) parts: Box<[Part]>,
    pub(super) combinator: Option<Combinator>,
}

/// Between two compounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combinator {
    Descendant,
    Child,
    NextSibling,
    LaterSibling,
}

/// A simple selector.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Lower case.
    Name(Box<str>),
    Id(Box<str>),
    Class(Box<str>),
    Attribute(Box<Attribute>),
    Root,
    /// `:nth-child()` and its relatives, as step and offset.
    Nth {
        step: i32,
        offset: i32,
        of_type: bool,
        from_end: bool,
    },
    Empty,
    Link,
    Enabled,
    Lang(Box<[Box<str>]>),
    /// `:is()`, `:where()`, and `&` for the selectors around it.
    Any(Arc<[Selector]>),
    Not(Arc<[Selector]>),
    /// `:has()`: how the other element relates to this one, and what it is.
    Has(Box<[(Combinator, Selector)]>),
    /// `:host`, and what its argument asks of it.
    Host(Option<Arc<[Selector]>>),
    Never,
}

impl Compound {
    /// Whether it stands for the host of a shadow root.
    pub(super) fn is_host(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Host(_) => true,
            Part::Any(selectors) => selectors.iter().any(|own| own.compounds[0].is_host()),
            _ => false,
        })
    }
}

/// `[name operator value]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    /// Lower case.
    pub(super) name: Box<str>,
    pub(super) operator: Operator,
    pub(super) value: Box<str>,
    pub(super) ignore_case: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Exists,
    Equals,
    Includes,
    Dash,
    Prefix,
    Suffix,
    Substring,
}

impl Attribute {
    pub(super) fn present(name: &str) -> Part {
        Part::Attribute(Box::new(Attribute {
            name: name.into(),
            operator: Operator::Exists,
            value: "".into(),
            ignore_case: false,
        }))
    }

    /// Whether an attribute of this name with value `own` fits.
    pub(super) fn fits(&self, own: &str) -> bool {
        if self.ignore_case {
            self.operator.holds(&own.to_ascii_lowercase(), &self.value.to_ascii_lowercase())
        } else {
            self.operator.holds(own, &self.value)
        }
    }
}

impl Operator {
    /// Selectors 4, §6.1–6.2: the empty value is part of nothing.
    fn holds(self, own: &str, value: &str) -> bool {
        match self {
            Operator::Exists => true,
            Operator::Equals => own == value,
            Operator::Includes => own.split_ascii_whitespace().any(|word| word == value),
            Operator::Dash => {
                own.strip_prefix(value).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            }
            Operator::Prefix => !value.is_empty() && own.starts_with(value),
            Operator::Suffix => !value.is_empty() && own.ends_with(value),
            Operator::Substring => !value.is_empty() && own.contains(value),
        }
    }
}

/// Keys of one selector at most; one that needs more is universal.
const MAX_KEYS: usize = 16;

impl Selector {
    /// An element that matches has at least one of these; `None` where any may.
    pub(super) fn keys(&self) -> Option<Vec<Key>> {
        let mut keys = Vec::new();
        (self.add_keys(&mut keys) && keys.len() <= MAX_KEYS).then_some(keys)
    }

    /// Adds the most telling part that an element must have; false if it need not have any.
    fn add_keys(&self, keys: &mut Vec<Key>) -> bool {
        let parts = &self.compounds[0].parts;
        let first = |pick: fn(&Part) -> Option<Key>| parts.iter().find_map(pick);
        let single = first(|part| if let Part::Id(id) = part { Some(Key::id(id)) } else { None })
            .or_else(|| {
                first(|part| if let Part::Class(class) = part { Some(Key::class(class)) } else { None })
            })
            .or_else(|| {
                first(|part| match part {
                    Part::Name(name) => Some(Key::name(name)),
                    Part::Root => Some(Key::name("html")),
                    _ => None,
                })
            });
        if let Some(key) = single {
            keys.push(key);
            return true;
        }
        let any = parts.iter().find_map(|part| if let Part::Any(any) = part { Some(any) } else { None });
        any.is_some_and(|any| keys.len() + any.len() <= MAX_KEYS && any.iter().all(|own| own.add_keys(keys)))
    }

    /// Never matches, whatever the document: not worth keeping.
    pub(super) fn is_void(&self) -> bool {
        self.target == Target::Nothing
            || self.compounds.iter().any(|compound| compound.parts.contains(&Part::Never))
    }
}

/// Specificity of one part (Selectors 4, §17).
pub(super) fn specificity(part: &Part) -> u32 {
    const ID: u32 = 1 << 20;
    const CLASS: u32 = 1 << 10;
    let most = |selectors: &[Selector]| selectors.iter().map(|own| own.specificity).max().unwrap_or(0);
    match part {
        Part::Id(_) => ID,
        Part::Name(_) => 1,
        Part::Any(selectors) | Part::Not(selectors) => most(selectors),
        Part::Has(selectors) => selectors.iter().map(|(_, own)| own.specificity).max().unwrap_or(0),
        Part::Host(Some(selectors)) => add(CLASS, most(selectors)),
        _ => CLASS,
    }
}

/// Sum of two packed specificities: each field stays within its ten bits.
pub(super) fn add(a: u32, b: u32) -> u32 {
    let field = |shift: u32| (((a >> shift) & 0x3ff) + ((b >> shift) & 0x3ff)).min(0x3ff) << shift;
    field(0) | field(10) | field(20)
}

/// A pseudo-element by its lower-case name; `None` for one that browsers refuse, and its whole rule with it.
pub(super) fn pseudo_element(name: &CowRcStr<'_>) -> Option<Target> {
    Some(match name.to_ascii_lowercase().as_str() {
        "before" => Target::Before,
        "after" => Target::After,
        "marker" => Target::Marker,
        "first-line" => Target::FirstLine,
        "first-letter" => Target::FirstLetter,
        "placeholder" | "-webkit-input-placeholder" => Target::Placeholder,
        "selection"
        | "backdrop"
        | "cue"
        | "file-selector-button"
        | "target-text"
        | "spelling-error"
        | "grammar-error"
        | "highlight"
        | "part"
        | "slotted"
        | "details-content"
        | "view-transition" => Target::Nothing,
        name if name.starts_with("-webkit-")
            || name.starts_with("scroll-")
            || name.starts_with("view-transition") =>
        {
            Target::Nothing
        }
        _ => return None,
    })
}
