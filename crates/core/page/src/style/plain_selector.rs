//! The selectors of most rules, read without a parser: names, ids, classes, the four combinators, `::before`, `::after`,
//! and states like `:hover`. Whatever has anything else in it is `selector_text`'s as a whole.

use super::index::Key;
use super::selector::{Combinator, Compound, Part, Selector, Target};
use super::selector_text::{MAX_COMPOUNDS, finish, needs_hand};
use std::ops::Range;

/// Tells of each selector of a list that can match where it stands and what an element must have for it. False where one
/// of them is not plain: what was told of the others is void then.
pub(super) fn each(text: &str, mut tell: impl FnMut(Range<usize>, Key)) -> bool {
    let mut start = 0;
    for selector in text.split(',') {
        let end = start + selector.len();
        match key(selector) {
            None => return false,
            Some(None) => {}
            Some(Some(key)) => tell(start..end, key),
        }
        start = end + 1;
    }
    true
}

/// A selector, if it is plain.
pub(super) fn one(text: &str) -> Option<Selector> {
    let (mut compounds, mut parts) = (Vec::with_capacity(1), Vec::with_capacity(1));
    let target = walk(text, |step| match step {
        Step::Name(name) => parts.push(Part::Name(name.to_ascii_lowercase().into())),
        Step::Class(class) => parts.push(Part::Class(class.into())),
        Step::Id(id) => parts.push(Part::Id(id.into())),
        Step::Never => parts.push(Part::Never),
        Step::End(combinator) => {
            compounds.push(Compound { parts: std::mem::take(&mut parts).into(), combinator });
        }
    })?;
    Some(finish(compounds, target))
}

/// The most telling part of its last compound: its id, else its first class, else its name. `Some(None)` if the selector
/// never matches, `None` if it is not plain.
fn key(text: &str) -> Option<Option<Key>> {
    let (mut telling, mut last, mut never) = (None, None, false);
    walk(text, |step| match (step, telling) {
        (Step::End(_), _) => last = telling.take(),
        (Step::Never, _) => never = true,
        (Step::Id(_), Some(Step::Id(_))) | (Step::Class(_), Some(Step::Class(_) | Step::Id(_))) => {}
        _ => telling = Some(step),
    })?;
    Some(match last.filter(|_| !never) {
        Some(Step::Id(id)) => Some(Key::id(id)),
        Some(Step::Class(class)) => Some(Key::class(class)),
        Some(Step::Name(name)) => Some(Key::name(name)),
        _ => None,
    })
}

/// A piece of a selector, from left to right.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// As written.
    Name(&'a str),
    Class(&'a str),
    Id(&'a str),
    /// A state that needs a hand.
    Never,
    /// The end of a compound, and what relates it to the one on its left.
    End(Option<Combinator>),
}

/// Gives what a selector is made of; `None` if it is not plain.
fn walk<'a>(text: &'a str, mut give: impl FnMut(Step<'a>)) -> Option<Target> {
    let mut plain = Plain { rest: text };
    let mut combinator = None;
    plain.blanks();
    for _ in 0..MAX_COMPOUNDS {
        let target = plain.compound(&mut give)?;
        give(Step::End(combinator));
        combinator = plain.combinator();
        match (combinator, target) {
            (None, target) => return plain.rest.is_empty().then_some(target),
            (Some(_), Target::Element) => {}
            _ => return None,
        }
    }
    None
}

struct Plain<'a> {
    rest: &'a str,
}

impl<'a> Plain<'a> {
    /// Simple selectors for one element, at least one, and what of it is styled.
    fn compound(&mut self, give: &mut impl FnMut(Step<'a>)) -> Option<Target> {
        let mut any = false;
        if self.rest.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
            give(Step::Name(self.word()?));
            any = true;
        }
        while let Some(sign @ (b'.' | b'#' | b':')) = self.rest.as_bytes().first() {
            self.rest = &self.rest[1..];
            let step = match sign {
                b'.' => Step::Class(self.word()?),
                b'#' => Step::Id(self.word()?),
                _ => {
                    let element = self.rest.strip_prefix(':');
                    self.rest = element.unwrap_or(self.rest);
                    match self.word()? {
                        "before" if any => return Some(Target::Before),
                        "after" if any => return Some(Target::After),
                        state if element.is_none() && needs_hand(state) => Step::Never,
                        _ => return None,
                    }
                }
            };
            give(step);
            any = true;
        }
        any.then_some(Target::Element)
    }

    /// An identifier of ASCII without escapes.
    fn word(&mut self) -> Option<&'a str> {
        let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let length = self.rest.bytes().position(|byte| !goes_on(byte)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        let begins = |first: &u8| first.is_ascii_alphabetic() || *first == b'_';
        word.as_bytes().first().is_some_and(begins).then_some(word)
    }

    /// What relates this compound to the next; `None` at the end.
    fn combinator(&mut self) -> Option<Combinator> {
        let spaced = self.blanks();
        let sign = match self.rest.as_bytes().first()? {
            b'>' => Combinator::Child,
            b'+' => Combinator::NextSibling,
            b'~' => Combinator::LaterSibling,
            _ => return spaced.then_some(Combinator::Descendant),
        };
        self.rest = &self.rest[1..];
        self.blanks();
        Some(sign)
    }

    /// Skips blanks; whether there were any.
    fn blanks(&mut self) -> bool {
        let rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let any = rest.len() < self.rest.len();
        self.rest = rest;
        any
    }
}

#[cfg(test)]
mod tests {
    use super::super::selector_text;
    use super::*;
    use proptest::prelude::*;

    /// Whether a list is plain. If it is, what is told of it and read of it is what the parser finds.
    fn is_plain(text: &str) -> bool {
        let mut told = Vec::new();
        let plain = each(text, |place, key| told.push((one(&text[place]), Some(vec![key]))));
        if plain {
            let parsed = selector_text::parse(text, None).into_iter().filter(|own| !own.is_void());
            let expected: Vec<_> = parsed.map(|own| (Some(own.clone()), own.keys())).collect();
            assert_eq!(told, expected, "{text:?}");
        }
        plain
    }

    #[test]
    fn what_is_plain_is_read_here() {
        let cases = [
            (".a", true),
            (" Div.b#c > .d::before , p + q ~ r:after", true),
            ("p.b.c#d#e,p.f.g", true),
            ("._a-1", true),
            (".1a", false),
            (".-a", false),
            ("a:hover,b.c:focus-visible d:hover::before,:active", true),
            ("a:hover.b", true),
            ("a:first-child", false),
            ("a:HOVER", false),
            ("a::hover", false),
            ("::before", false),
            ("a::before b", false),
            ("> a", false),
            ("a >", false),
            ("a,", false),
            ("", false),
            ("a/**/b", false),
            ("*", false),
            (".\u{e4}", false),
        ];
        for (text, plain) in cases {
            assert_eq!(is_plain(text), plain, "{text:?}");
        }
        assert!(!is_plain(&"a ".repeat(40)));
    }

    proptest! {
        #[test]
        fn what_is_read_here_is_what_the_parser_reads(text in "([aB1_-]{0,2}|[.#:> +~,\n*]|::?before|:?:after|:hover){1,9}") {
            is_plain(&text);
        }
    }
}
