//! Values of the font properties.

use super::value::Fallible;
use cssparser::{Parser, Token};
use std::sync::Arc;

/// `font-weight`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Weight {
    /// 1 to 1000.
    Absolute(u16),
    Bolder,
    Lighter,
}

impl Weight {
    /// Against the parent's weight (CSS Fonts 4, §2.2.1).
    pub(super) fn computed(self, parent: u16) -> u16 {
        match (self, parent) {
            (Weight::Absolute(weight), _) => weight,
            (Weight::Bolder, ..350) => 400,
            (Weight::Bolder, 350..550) => 700,
            (Weight::Bolder, _) => parent.max(900),
            (Weight::Lighter, ..550) => parent.min(100),
            (Weight::Lighter, 550..750) => 400,
            (Weight::Lighter, _) => 700,
        }
    }
}

/// What `font` sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Font {
    pub(super) families: Arc<[Box<str>]>,
    pub(super) weight: Weight,
    pub(super) italic: bool,
}

/// An identifier that stands for what it says: no `\9` and the like, by which old browsers were told apart.
pub(super) fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// `font-family`: names in lower case.
pub(super) fn families<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Arc<[Box<str>]>> {
    Ok(input.parse_comma_separated(family)?.into())
}

/// One family name, in lower case.
pub(super) fn family<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Box<str>> {
    if let Ok(name) = input.try_parse(|input| input.expect_string_cloned()) {
        return Ok(name.to_lowercase().into());
    }
    let mut name = input.expect_ident()?.to_lowercase();
    while let Ok(word) = input.try_parse(|input| input.expect_ident_cloned()) {
        name.push(' ');
        name.push_str(&word.to_lowercase());
    }
    Ok(name.into())
}

/// `font-weight`.
pub(super) fn weight<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Weight> {
    match input.next()? {
        Token::Number { value, .. } if (1.0..=1000.0).contains(value) => Ok(Weight::Absolute(*value as u16)),
        Token::Ident(word) => match word.to_ascii_lowercase().as_str() {
            "normal" => Ok(Weight::Absolute(400)),
            "bold" => Ok(Weight::Absolute(700)),
            "bolder" => Ok(Weight::Bolder),
            "lighter" => Ok(Weight::Lighter),
            _ => Err(input.new_custom_error(())),
        },
        _ => Err(input.new_custom_error(())),
    }
}

/// `font-style`: whether slanted.
pub(super) fn italic<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, bool> {
    let word = input.expect_ident()?.to_ascii_lowercase();
    let italic = match word.as_str() {
        "normal" => false,
        "italic" | "oblique" => true,
        _ => return Err(input.new_custom_error(())),
    };
    while input.try_parse(|input| angle(input)).is_ok() {}
    Ok(italic)
}

fn angle<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, ()> {
    match input.next()? {
        Token::Dimension { .. } => Ok(()),
        _ => Err(input.new_custom_error(())),
    }
}

/// `font`: style and weight stand before the size, families after it (CSS Fonts 4, §4.7).
pub(super) fn shorthand<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Font> {
    const SYSTEM: [&str; 6] = ["caption", "icon", "menu", "message-box", "small-caption", "status-bar"];
    const SIZES: [&str; 10] = [
        "xx-small",
        "x-small",
        "small",
        "medium",
        "large",
        "x-large",
        "xx-large",
        "xxx-large",
        "smaller",
        "larger",
    ];
    let mut font = Font { families: [].into(), weight: Weight::Absolute(400), italic: false };
    loop {
        if let Ok(weight) = input.try_parse(weight) {
            // `normal` may be any of several properties: all the same here.
            font.weight = if weight == Weight::Absolute(400) { font.weight } else { weight };
            continue;
        }
        match input.next()?.clone() {
            Token::Ident(word) => match word.to_ascii_lowercase().as_str() {
                "italic" | "oblique" => font.italic = true,
                system if SYSTEM.contains(&system) => return Ok(font),
                size if SIZES.contains(&size) => break,
                // Small caps and widths.
                other if is_plain(other) => {}
                _ => return Err(input.new_custom_error(())),
            },
            Token::Dimension { .. } | Token::Percentage { .. } | Token::Number { value: 0.0, .. } => break,
            Token::Function(_) => {
                skip_block(input)?;
                break;
            }
            _ => return Err(input.new_custom_error(())),
        }
    }
    if input.try_parse(|input| input.expect_delim('/')).is_ok()
        && let Token::Function(_) = input.next()?
    {
        skip_block(input)?;
    }
    font.families = families(input)?;
    Ok(font)
}

/// Reads to the end of the function or bracket just opened.
pub(super) fn skip_block<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, ()> {
    input.parse_nested_block(|input| {
        while input.next().is_ok() {}
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cssparser::ParserInput;

    fn font(text: &str) -> Option<Font> {
        let mut input = ParserInput::new(text);
        Parser::new(&mut input).parse_entirely(shorthand).ok()
    }

    #[test]
    fn the_shorthand_is_read_as_browsers_do() {
        let cases = [
            ("16px/1.5 Roboto, sans-serif", 400, false, "roboto,sans-serif"),
            ("normal normal normal 14px/1 FontAwesome", 400, false, "fontawesome"),
            ("italic 700 1em \"Open Sans\"", 700, true, "open sans"),
            ("small-caps bold condensed larger/normal Times New Roman", 700, false, "times new roman"),
            ("calc(1px + 1em)/calc(2 * 1) x", 400, false, "x"),
            ("menu", 400, false, ""),
        ];
        for (text, weight, italic, families) in cases {
            let font = font(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(font.weight, Weight::Absolute(weight), "{text}");
            assert_eq!(font.italic, italic, "{text}");
            assert_eq!(font.families.join(","), families, "{text}");
        }
        for text in ["", "16px", "bold", "16px/1.5", "16px x !y"] {
            assert_eq!(font(text), None, "{text}");
        }
    }

    #[test]
    fn relative_weights_follow_the_standards_table() {
        let computed =
            |weight: Weight| [100, 300, 400, 500, 600, 700, 900].map(|parent| weight.computed(parent));
        assert_eq!(computed(Weight::Bolder), [400, 400, 700, 700, 900, 900, 900]);
        assert_eq!(computed(Weight::Lighter), [100, 100, 100, 100, 400, 400, 700]);
    }
}
