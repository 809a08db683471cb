//! `@supports`: what a current Chromium would answer, told by what it is known to lack. A list of all that it
//! has would age; how its properties begin changes seldom.

use super::value::Fallible;
use cssparser::{ParseError, Parser, ParserInput, Token};

const MAX_DEPTH: u32 = 16;

/// Properties that only others have, asked for to tell browsers apart.
const LACKING: [&str; 8] = [
    "-webkit-touch-callout",
    "-webkit-hyphens",
    "-webkit-overflow-scrolling",
    "-webkit-backdrop-filter",
    "-webkit-nbsp-mode",
    "-webkit-marquee-repetition",
    "margin-trim",
    "hanging-punctuation",
];

/// The first words of its properties (listed by `document.body.style` of Chromium 156): what begins otherwise is none.
const FAMILIES: &str = "accent align alignment all anchor animation app appearance aspect backdrop backface background baseline \
    block border bottom box break buffered caption caret clear clip color column columns contain container \
    content corner counter cursor cx cy d direction display dominant dynamic empty field fill filter flex \
    float flood font forced frame gap grid height hyphenate hyphens image initial inline inset interactivity \
    interest interpolate isolation justify left letter lighting line list locale logical margin marker mask \
    math max min mix object offset opacity order orphans outline overflow overlay override overscroll \
    padding page paint perspective place pointer position print quotes r reading resize right rotate row rtl \
    ruby rule rx ry scale scroll scrollbar shape speak stop stroke tab table tap text timeline top touch \
    transform transition translate trigger unicode user vector vertical view visibility white widows width \
    will window word writing x y z zoom";

/// Prefixes of properties and values that Chromium refuses.
const FOREIGN: [&str; 5] = ["-moz-", "-ms-", "-o-", "-apple-", "-khtml-"];

/// Whether a supports condition, or the declaration in an `@import`'s `supports()`, holds.
pub(super) fn holds(condition: &str) -> bool {
    let mut input = ParserInput::new(condition);
    let mut input = Parser::new(&mut input);
    match input.try_parse(|input| input.parse_entirely(|input| any(input, 0))) {
        Ok(verdict) => verdict,
        Err(_) => declaration(&mut input).unwrap_or(false),
    }
}

fn any<'i>(input: &mut Parser<'i, '_>, depth: u32) -> Fallible<'i, bool> {
    if depth > MAX_DEPTH {
        return Err(input.new_custom_error(()));
    }
    if input.try_parse(|input| input.expect_ident_matching("not")).is_ok() {
        return Ok(!one(input, depth)?);
    }
    let mut verdict = one(input, depth)?;
    loop {
        if input.try_parse(|input| input.expect_ident_matching("and")).is_ok() {
            verdict &= one(input, depth)?;
        } else if input.try_parse(|input| input.expect_ident_matching("or")).is_ok() {
            verdict |= one(input, depth)?;
        } else {
            return Ok(verdict);
        }
    }
}

fn one<'i>(input: &mut Parser<'i, '_>, depth: u32) -> Fallible<'i, bool> {
    match input.next()?.clone() {
        Token::ParenthesisBlock => input.parse_nested_block(|input| {
            if let Ok(verdict) = input.try_parse(|input| input.parse_entirely(|input| any(input, depth + 1)))
            {
                return Ok(verdict);
            }
            // Anything that is neither is unknown, and unknown is false (CSS Conditional 3, §6).
            Ok(input.try_parse(declaration).unwrap_or_else(|_| {
                while input.next().is_ok() {}
                false
            }))
        }),
        Token::Function(name) => input.parse_nested_block(|input| {
            let start = input.position();
            while input.next().is_ok() {}
            let text = input.slice_from(start);
            Ok(match name.to_ascii_lowercase().as_str() {
                "selector" => !super::selector_text::parse(text, None).is_empty(),
                "font-format" => super::face::supports_format(text.trim()),
                "font-tech" => super::face::supports_techs(text),
                _ => false,
            })
        }),
        _ => Err(input.new_custom_error(())),
    }
}

fn declaration<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, bool> {
    let name = input.expect_ident()?.to_ascii_lowercase();
    input.expect_colon()?;
    let foreign = |word: &str| FOREIGN.iter().any(|prefix| word.starts_with(prefix));
    let mut holds = !foreign(&name) && !LACKING.contains(&name.as_str()) && is_of_a_family(&name);
    let mut empty = true;
    while let Ok(token) = input.next().cloned() {
        empty = false;
        match token {
            Token::Ident(word) => holds &= !foreign(&word.to_ascii_lowercase()),
            Token::Function(function) => {
                holds &= !foreign(&function.to_ascii_lowercase());
                super::font_value::skip_block(input)?;
            }
            _ => {}
        }
    }
    if empty && !name.starts_with("--") {
        return Err(input.new_custom_error::<(), ()>(())).map_err(|error: ParseError<'i, ()>| error);
    }
    Ok(holds)
}

fn is_of_a_family(name: &str) -> bool {
    let first = name.strip_prefix("-webkit-").unwrap_or(name).split('-').next().unwrap_or_default();
    name.starts_with("--") || FAMILIES.split(' ').any(|family| family == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_answered_as_chromium_does() {
        let cases = [
            ("(display:grid)", true),
            ("not (display:grid)", false),
            ("(display:grid) and (not (display:inline-grid))", false),
            ("(-moz-appearance:none)", false),
            ("not (-moz-appearance:none)", true),
            ("(-webkit-touch-callout:none)", false),
            ("(font:-apple-system-body) and (-webkit-appearance:none)", false),
            ("(-ms-ime-align:auto) or (color:red)", true),
            ("((-webkit-hyphens:none) and (not (margin-trim:inline))) or (-moz-orient:inline)", false),
            ("(--css:variables)", true),
            ("selector(:focus-visible)", true),
            ("selector(:-moz-focusring)", false),
            ("selector(:has(a > b))", true),
            ("font-tech(color-COLRv1)", true),
            ("font-tech(color-SVG)", false),
            ("unknown(x)", false),
            ("(what is this)", false),
            ("display:grid", true),
            ("", false),
            ("foo:bar", false),
            ("(not (foo:bar)) and (grid-template-rows:masonry)", true),
            ("(-webkit-line-clamp:2) and (anchor-name:--a)", true),
            ("(mask-image:url(x)) or (-webkit-mask-image:url(x))", true),
        ];
        for (condition, expected) in cases {
            assert_eq!(holds(condition), expected, "{condition}");
        }
        assert!(!holds(&"(".repeat(100_000)));
    }
}
