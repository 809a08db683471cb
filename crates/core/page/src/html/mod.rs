//! HTML as a stream: text in, tags and text out, and where each element hangs.

mod builder;
mod fold;
mod names;
mod tag;
mod tokenizer;

#[cfg(test)]
mod tests;

pub(crate) use builder::{Builder, Namespace, Placed, Start};
pub(crate) use fold::{Fold, pixels};
pub(crate) use tokenizer::{StartTag, Token, Tokenizer};

/// The elements whose content is text up to their end tag, for a browser that runs scripts (HTML, §13.2.6).
pub(crate) fn raw_text(name: &str) -> Option<&'static str> {
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
    NAMES.into_iter().find(|own| *own == name)
}
