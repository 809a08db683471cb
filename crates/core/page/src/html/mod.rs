//! HTML as a stream: text in, tags and text out, and where each element hangs.

mod builder;
mod doctype;
mod fold;
mod names;
mod tag;
mod tokenizer;

#[cfg(test)]
mod tests;

pub(crate) use builder::{Builder, Namespace, Placed, Start};
pub(crate) use doctype::Doctype;
pub(crate) use fold::{Fold, pixels};
pub(crate) use names::Kind;
pub(crate) use tokenizer::{StartTag, Token, Tokenizer};

/// The name of an element of this kind whose content is text up to its end tag.
pub(crate) fn raw_text(name: &str, kind: Kind) -> Option<&'static str> {
    const NAMES: [&str; 10] = [
        "script",
        "style",
        "textarea",
        "title",
        "iframe",
        "noscript",
        "noembed",
        "noframes",
        "xmp",
        "plaintext",
    ];
    NAMES.into_iter().filter(|_| kind.groups.holds_text()).find(|own| *own == name)
}
