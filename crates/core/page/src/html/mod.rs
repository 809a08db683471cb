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

use std::borrow::Cow;

/// `text` with its character references decoded; most has none.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    match memchr::memchr(b'&', text.as_bytes()) {
        Some(_) => htmlize::unescape(text),
        None => Cow::Borrowed(text),
    }
}

/// As `memchr`, which takes a while to begin: in mark-up, what is sought is mostly near.
fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    const NEAR: usize = 16;
    let (first, rest) = bytes.split_at(bytes.len().min(NEAR));
    let near = first.iter().position(|own| *own == byte);
    near.or_else(|| memchr::memchr(byte, rest).map(|at| NEAR + at))
}

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
