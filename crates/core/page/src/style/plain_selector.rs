//! The selectors of most rules, read without a parser: names, ids, classes, the four combinators, `::before` and
//! `::after`. Whatever has anything else in it is `selector_text`'s as a whole.

use super::selector::{Combinator, Compound, Part, Selector, Target};
use super::selector_text::finish;

/// The selectors of a list, of at most so many compounds each; `None` if one of them is not plain.
pub(super) fn list(text: &str, max_compounds: usize) -> Option<Vec<Selector>> {
    text.split(',').map(|text| Plain { rest: text.as_bytes() }.selector(max_compounds)).collect()
}

struct Plain<'a> {
    rest: &'a [u8],
}

impl<'a> Plain<'a> {
    fn selector(mut self, max_compounds: usize) -> Option<Selector> {
        let (mut compounds, mut combinator) = (Vec::new(), None);
        self.blanks();
        loop {
            let parts = self.compound()?;
            let target = self.target()?;
            compounds.push(Compound { parts, combinator });
            combinator = self.combinator();
            match (combinator, target) {
                (None, target) => return self.rest.is_empty().then(|| finish(compounds, target)),
                (Some(_), Target::Element) if compounds.len() < max_compounds => {}
                _ => return None,
            }
        }
    }

    /// Simple selectors for one element, at least one.
    fn compound(&mut self) -> Option<Box<[Part]>> {
        let mut parts = Vec::with_capacity(1);
        if self.rest.first().is_some_and(u8::is_ascii_alphabetic) {
            parts.push(Part::Name(self.word()?.to_ascii_lowercase().into()));
        }
        while let Some((sign @ (b'.' | b'#'), rest)) = self.rest.split_first() {
            self.rest = rest;
            let word = self.word()?.into();
            parts.push(if *sign == b'.' { Part::Class(word) } else { Part::Id(word) });
        }
        (!parts.is_empty()).then(|| parts.into())
    }

    /// An identifier of ASCII without escapes.
    fn word(&mut self) -> Option<&'a str> {
        let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let length = self.rest.iter().position(|byte| !goes_on(byte)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        let begins = word.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_');
        std::str::from_utf8(word).ok().filter(|_| begins)
    }

    fn target(&mut self) -> Option<Target> {
        let Some(name) = self.rest.strip_prefix(b":") else { return Some(Target::Element) };
        self.rest = name.strip_prefix(b":").unwrap_or(name);
        match self.word()? {
            "before" => Some(Target::Before),
            "after" => Some(Target::After),
            _ => None,
        }
    }

    /// What relates this compound to the next; `None` at the end.
    fn combinator(&mut self) -> Option<Combinator> {
        let spaced = self.blanks();
        let sign = match self.rest.first()? {
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
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
        let length = self.rest.iter().position(|byte| !blank(byte)).unwrap_or(self.rest.len());
        self.rest = &self.rest[length..];
        length > 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::selector_text;
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Vec<Selector> {
        selector_text::parse_with_parser(text, None)
    }

    #[test]
    fn what_is_plain_is_read_here() {
        let cases = [
            (".a", true),
            (" Div.b#c > .d::before , p + q ~ r:after", true),
            ("._a-1", true),
            (".1a", false),
            (".-a", false),
            ("a:hover", false),
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
            let read = list(text, 32);
            assert_eq!(read.is_some(), plain, "{text:?}");
            if let Some(read) = read {
                assert_eq!(read, parsed(text), "{text:?}");
            }
        }
        assert_eq!(list(&"a ".repeat(40), 32), None);
    }

    proptest! {
        #[test]
        fn what_is_read_here_is_what_the_parser_reads(text in "([aB1_-]{0,2}|[.#:> +~,\n*]|::?before|:?:after){1,9}") {
            if let Some(read) = list(&text, 32) {
                prop_assert_eq!(read, parsed(&text), "{}", text);
            }
        }
    }
}
