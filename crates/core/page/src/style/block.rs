//! The declarations of a rule or a `style` attribute, as far as they can cause a fetch: first told apart by their names
//! and put together as text, then read. Nearly all rules of a sheet match nothing, and are never read.

use super::cut::{Item, items, trim_start};
use super::value::{self, Property, Value};
use super::variables::references;
use crate::options::Options;
use std::sync::Arc;

/// Declarations kept of one rule, short custom properties apart.
const MAX_DECLARATIONS: usize = 256;
/// Custom properties kept of one rule that are colours and lengths.
pub(super) const MAX_PLAIN: usize = 1024;
/// Longest of these, in bytes.
pub(super) const LONGEST_PLAIN: usize = 64;

/// What is known of declarations before they are read.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Some of them can cause a fetch.
    pub(super) tells: bool,
    /// Custom properties are set or referred to: which of them matter, all rules together decide.
    pub(super) at_once: bool,
    /// Makes its elements containers.
    pub(super) contains: bool,
}

impl Outline {
    /// Adds `declaration` to `text` if it can cause a fetch. Most cannot, and their values are not looked at.
    pub(super) fn add(&mut self, declaration: &str, text: &mut String) {
        let declaration = trim_start(declaration);
        let Some((name, value)) = value::split_name(declaration) else { return };
        let longhands = value::longhands(name);
        if name.starts_with("--") {
            self.at_once = true;
        } else if longhands.is_empty() {
            self.contains |= matches!(name, "container" | "container-type");
            return;
        } else if !value::may_tell(longhands, value) {
            return;
        } else {
            self.at_once |= value::has_variables(value);
        }
        if std::mem::replace(&mut self.tells, true) {
            text.push(';');
        }
        text.push_str(declaration);
    }
}

/// Declarations that were read.
#[derive(Debug, Default, Clone)]
pub(super) struct Block {
    pub(super) declarations: Vec<Declaration>,
    pub(super) custom: Vec<Custom>,
    /// How many of these name nothing by themselves.
    plain: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Declaration {
    pub(super) property: Property,
    pub(super) important: bool,
    pub(super) value: Value,
}

/// A custom property.
#[derive(Debug, Clone)]
pub(super) struct Custom {
    pub(super) name: Box<str>,
    pub(super) important: bool,
    pub(super) text: Arc<str>,
}

impl Block {
    /// Of declarations as they stand in a block; rules among them are passed over.
    pub(super) fn of(text: &str, options: &Options) -> Self {
        let mut block = Block::default();
        for item in items(text) {
            if let Item::Statement(declaration) = item {
                block.declare(declaration, options);
            }
        }
        block
    }

    /// Adds declaration `text` if it can cause a fetch.
    pub(super) fn declare(&mut self, text: &str, options: &Options) {
        let Some((name, value)) = value::split_name(trim_start(text)) else { return };
        let custom = name.starts_with("--");
        let longhands = value::longhands(name);
        if !custom && longhands.is_empty() {
            return;
        }
        let (text, important) = value::split_importance(value);
        if custom {
            self.declare_custom(name, text, important);
            return;
        }
        if self.is_full() {
            return;
        }
        value::parse(name, longhands, text, options, |property, value| {
            self.declarations.push(Declaration { property, important, value });
        });
    }

    /// A colour or a length counts too: what refers to it is invalid without, or takes what it names instead.
    fn declare_custom(&mut self, name: &str, text: &str, important: bool) {
        let plain = is_plain(text);
        let fits = match plain {
            true => text.len() <= LONGEST_PLAIN && self.plain < MAX_PLAIN,
            false => !self.is_full(),
        };
        if fits {
            self.plain += usize::from(plain);
            self.custom.push(Custom { name: name.into(), important, text: text.into() });
        }
    }

    fn is_full(&self) -> bool {
        self.declarations.len() + self.custom.len() - self.plain >= MAX_DECLARATIONS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.declarations.is_empty() && self.custom.is_empty()
    }

    /// The custom properties that its declarations refer to.
    pub(super) fn referred(&self) -> impl Iterator<Item = &str> {
        let pending = self.declarations.iter().filter_map(|own| match &own.value {
            Value::Pending(pending) => Some(&*pending.1),
            _ => None,
        });
        pending.flat_map(references)
    }
}

/// Whether a custom property is a colour or a length, as most are: nothing that names anything.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let one_word = !bytes.iter().any(u8::is_ascii_whitespace);
    let color = bytes.first() == Some(&b'#');
    let measure = matches!(bytes, [b'0'..=b'9' | b'.' | b'-', ..])
        && bytes.last().is_some_and(|last| !last.is_ascii_digit())
        && !text.starts_with("--");
    one_word && (color || measure)
}
