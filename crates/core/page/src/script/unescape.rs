//! Escapes in string literals (ECMA-262, §12.9.4.1).

use std::borrow::Cow;

/// The value of a string literal's inside; an escape that is none stands for itself.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        value.push_str(plain);
        let mut characters = escaped.chars();
        rest = match characters.next() {
            Some('x') => code(escaped, 1, 3, &mut value),
            Some('u') if escaped.starts_with("u{") => match escaped.find('}') {
                Some(end) => {
                    push(&escaped[2..end], &mut value);
                    &escaped[end + 1..]
                }
                None => &escaped[1..],
            },
            Some('u') => code(escaped, 1, 5, &mut value),
            Some('n') => plainly('\n', characters.as_str(), &mut value),
            Some('r') => plainly('\r', characters.as_str(), &mut value),
            Some('t') => plainly('\t', characters.as_str(), &mut value),
            Some('\n' | '\r') => characters.as_str(), // a continued line
            Some(other) => plainly(other, characters.as_str(), &mut value),
            None => "",
        };
    }
    value.push_str(rest);
    Cow::Owned(value)
}

fn plainly<'a>(character: char, rest: &'a str, value: &mut String) -> &'a str {
    value.push(character);
    rest
}

fn code<'a>(escaped: &'a str, from: usize, to: usize, value: &mut String) -> &'a str {
    match escaped.get(from..to) {
        Some(digits) => {
            push(digits, value);
            &escaped[to..]
        }
        None => escaped, // no escape: its letter stands for itself
    }
}

fn push(digits: &str, value: &mut String) {
    // Halves of surrogate pairs occur in no URL that is meant.
    value.push(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).unwrap_or('\u{FFFD}'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        let cases = [
            ("a/b.js", "a/b.js"),
            (r"https:\/\/a.test\/b.js", "https://a.test/b.js"),
            (r"\x2fa\u002Fb\u{2f}c", "/a/b/c"),
            (r"a\'b\\c", r"a'b\c"),
            ("a\\\nb", "ab"),
            (r"\n\t", "\n\t"),
            (r"\u00", "u00"),
            (r"\u{", "{"),
            (r"\xzz", "\u{FFFD}"),
            ("\\", ""),
            (r"\ä\uä", "äuä"),
        ];
        for (text, expected) in cases {
            assert_eq!(unescape(text), expected, "{text}");
        }
    }
}
