//! What scripts load: JavaScript text in, specifiers and paths out. Nothing is run.

mod finder;
mod import_map;
mod lexer;
mod literal;
mod mentions;
mod unescape;

#[cfg(test)]
mod tests;

pub(crate) use finder::{Finder, Finding, ModuleKind, Place};
pub(crate) use import_map::ImportMap;
pub(crate) use literal::destination;
pub(crate) use mentions::{MentionScanner, Mentions};
