//! Media queries, evaluated for a desktop screen: enough to tell which stylesheets, preloads and picture sources
//! a browser would take (Media Queries 4). Features it does not know are unknown, and unknown does not match.

use crate::options::Viewport;
use crate::source_size::{Quantity, value};
use cssparser::{ParseError, Parser, ParserInput, Token};

type Verdict = Option<bool>; // `None`: unknown (Media Queries 4, §3.1, Kleene's three-valued logic)
type Parsed<'i> = Result<Verdict, ParseError<'i, ()>>;

const MAX_DEPTH: u32 = 16;

/// Whether a media query list holds for a screen. The empty list holds.
pub(crate) fn matches(list: &str, viewport: &Viewport) -> bool {
    let mut input = ParserInput::new(list);
    let mut parser = Parser::new(&mut input);
    if parser.is_exhausted() {
        return true;
    }
    let verdicts = parser.parse_comma_separated_ignoring_errors(|entry| {
        let verdict = query(entry, viewport)?;
        entry.expect_exhausted()?;
        Ok::<_, ParseError<'_, ()>>(verdict)
    });
    verdicts.contains(&Some(true))
}

fn query<'i>(input: &mut Parser<'i, '_>, viewport: &Viewport) -> Parsed<'i> {
    if let Ok(verdict) = input.try_parse(|input| {
        let verdict = condition(input, viewport, 0)?;
        input.expect_exhausted()?;
        Ok::<_, ParseError<'i, ()>>(verdict)
    }) {
        return Ok(verdict);
    }
    let mut word = input.expect_ident_cloned()?;
    let negated = word.eq_ignore_ascii_case("not");
    if negated || word.eq_ignore_ascii_case("only") {
        word = input.expect_ident_cloned()?;
    }
    let mut verdict = Some(word.eq_ignore_ascii_case("screen") || word.eq_ignore_ascii_case("all"));
    if input.try_parse(|input| input.expect_ident_matching("and")).is_ok() {
        verdict = and(verdict, condition(input, viewport, 0)?);
    }
    Ok(if negated { verdict.map(|holds| !holds) } else { verdict })
}

fn and(a: Verdict, b: Verdict) -> Verdict {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// `<media-condition>`, up to where it ends.
pub(crate) fn condition<'i>(input: &mut Parser<'i, '_>, viewport: &Viewport, depth: u32) -> Parsed<'i> {
    if depth > MAX_DEPTH {
        return Err(input.new_custom_error(()));
    }
    if input.try_parse(|input| input.expect_ident_matching("not")).is_ok() {
        return Ok(in_parentheses(input, viewport, depth)?.map(|holds| !holds));
    }
    let mut verdict = in_parentheses(input, viewport, depth)?;
    loop {
        if input.try_parse(|input| input.expect_ident_matching("and")).is_ok() {
            verdict = and(verdict, in_parentheses(input, viewport, depth)?);
        } else if input.try_parse(|input| input.expect_ident_matching("or")).is_ok() {
            let other = in_parentheses(input, viewport, depth)?;
            // De Morgan: a or b = not (not a and not b).
            verdict = and(verdict.map(|holds| !holds), other.map(|holds| !holds)).map(|holds| !holds);
        } else {
            return Ok(verdict);
        }
    }
}

fn in_parentheses<'i>(input: &mut Parser<'i, '_>, viewport: &Viewport, depth: u32) -> Parsed<'i> {
    match input.next()?.clone() {
        Token::ParenthesisBlock => input.parse_nested_block(|inner| {
            if let Ok(verdict) = inner.try_parse(|inner| {
                let verdict = condition(inner, viewport, depth + 1)?;
                inner.expect_exhausted()?;
                Ok::<_, ParseError<'i, ()>>(verdict)
            }) {
                return Ok(verdict);
            }
            let verdict = inner.try_parse(|inner| feature(inner, viewport)).unwrap_or(None);
            // <general-enclosed>: whatever else stands there is unknown, not an error.
            while inner.next().is_ok() {}
            Ok(verdict)
        }),
        Token::Function(_) => input.parse_nested_block(|inner| {
            while inner.next().is_ok() {}
            Ok(None)
        }),
        _ => Err(input.new_custom_error(())),
    }
}

/// `name`, `name: value`, `name < value`, `value < name` or `value < name < value`.
fn feature<'i>(input: &mut Parser<'i, '_>, viewport: &Viewport) -> Parsed<'i> {
    if let Ok(name) = input.try_parse(|input| input.expect_ident_cloned()) {
        let name = name.to_ascii_lowercase();
        if input.is_exhausted() {
            return Ok(boolean(&name, viewport));
        }
        if input.try_parse(|input| input.expect_colon()).is_ok() {
            return plain(&name, input, viewport);
        }
        let comparison = comparison(input)?;
        let right = number(input, viewport)?;
        input.expect_exhausted()?;
        return Ok(measured(&name, viewport).map(|left| comparison.holds(left, right)));
    }
    let left = number(input, viewport)?;
    let first = comparison(input)?;
    let name = input.expect_ident_cloned()?.to_ascii_lowercase();
    let Some(middle) = measured(&name, viewport) else { return Ok(None) };
    let mut holds = first.holds(left, middle);
    if !input.is_exhausted() {
        let second = comparison(input)?;
        holds &= second.holds(middle, number(input, viewport)?);
        input.expect_exhausted()?;
    }
    Ok(Some(holds))
}

fn plain<'i>(name: &str, input: &mut Parser<'i, '_>, viewport: &Viewport) -> Parsed<'i> {
    if let Ok(word) = input.try_parse(|input| input.expect_ident_cloned()) {
        return Ok(discrete(name, &word.to_ascii_lowercase(), viewport));
    }
    let right = number(input, viewport)?;
    input.expect_exhausted()?;
    let name = name.strip_prefix("-webkit-").unwrap_or(name);
    let (comparison, base) = if let Some(base) = name.strip_prefix("min-") {
        (Comparison::AtLeast, base)
    } else if let Some(base) = name.strip_prefix("max-") {
        (Comparison::AtMost, base)
    } else {
        (Comparison::Equal, name)
    };
    Ok(measured(base, viewport).map(|left| comparison.holds(left, right)))
}

#[derive(Clone, Copy)]
enum Comparison {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::Equal => (left - right).abs() < 1e-6,
            Comparison::AtLeast => left >= right,
            Comparison::More => left > right,
        }
    }
}

fn comparison<'i>(input: &mut Parser<'i, '_>) -> Result<Comparison, ParseError<'i, ()>> {
    let first = match input.next()? {
        Token::Delim(sign) => *sign,
        _ => return Err(input.new_custom_error(())),
    };
    let or_equal = first != '=' && input.try_parse(|input| input.expect_delim('=')).is_ok();
    match (first, or_equal) {
        ('<', false) => Ok(Comparison::Less),
        ('<', true) => Ok(Comparison::AtMost),
        ('=', _) => Ok(Comparison::Equal),
        ('>', true) => Ok(Comparison::AtLeast),
        ('>', false) => Ok(Comparison::More),
        _ => Err(input.new_custom_error(())),
    }
}

/// A length in pixels, a resolution in dots per pixel, a ratio or a number.
fn number<'i>(input: &mut Parser<'i, '_>, viewport: &Viewport) -> Result<f64, ParseError<'i, ()>> {
    let resolution = input.try_parse(|input| match input.next()? {
        Token::Dimension { value, unit, .. } => match unit.to_ascii_lowercase().as_str() {
            "dppx" | "x" => Ok(f64::from(*value)),
            "dpi" => Ok(f64::from(*value) / 96.0),
            "dpcm" => Ok(f64::from(*value) * 2.54 / 96.0),
            _ => Err(input.new_custom_error::<(), ()>(())),
        },
        _ => Err(input.new_custom_error(())),
    });
    if let Ok(value) = resolution {
        return Ok(value);
    }
    let (Quantity::Pixels(left) | Quantity::Number(left)) = value(input, viewport, 0)?;
    if input.try_parse(|input| input.expect_delim('/')).is_ok() {
        let right = f64::from(input.expect_number()?);
        return Ok(left / right);
    }
    Ok(left)
}

fn measured(name: &str, viewport: &Viewport) -> Option<f64> {
    Some(match name {
        "width" | "device-width" => viewport.width,
        "height" | "device-height" => viewport.height,
        "aspect-ratio" | "device-aspect-ratio" => viewport.width / viewport.height,
        "resolution" | "device-pixel-ratio" => viewport.density,
        "color" => 8.0,
        "monochrome" | "color-index" | "grid" => 0.0,
        _ => return None,
    })
}

/// A feature without value: does it have any other value than none or zero?
fn boolean(name: &str, viewport: &Viewport) -> Verdict {
    match name {
        "hover" | "any-hover" => Some(!viewport.touch),
        "width"
        | "height"
        | "aspect-ratio"
        | "resolution"
        | "color"
        | "pointer"
        | "any-pointer"
        | "orientation"
        | "scripting"
        | "update"
        | "overflow-block"
        | "color-gamut"
        | "prefers-color-scheme" => Some(true),
        "monochrome"
        | "color-index"
        | "grid"
        | "prefers-reduced-motion"
        | "prefers-contrast"
        | "forced-colors"
        | "inverted-colors"
        | "prefers-reduced-data"
        | "prefers-reduced-transparency" => Some(false),
        _ => None,
    }
}

/// A feature with a keyword, as a browser with default settings answers. A dark scheme is learnt, not assumed.
fn discrete(name: &str, word: &str, viewport: &Viewport) -> Verdict {
    let landscape = viewport.width > viewport.height;
    let holds = match name {
        "orientation" => word == if landscape { "landscape" } else { "portrait" },
        "hover" | "any-hover" => word == if viewport.touch { "none" } else { "hover" },
        "pointer" | "any-pointer" => word == if viewport.touch { "coarse" } else { "fine" },
        "prefers-color-scheme" => word == if viewport.dark { "dark" } else { "light" },
        "prefers-reduced-motion"
        | "prefers-contrast"
        | "prefers-reduced-data"
        | "prefers-reduced-transparency" => word == "no-preference",
        "forced-colors" | "inverted-colors" => word == "none",
        "scripting" => word == "enabled",
        "update" => word == "fast",
        "display-mode" => word == "browser",
        "color-gamut" => word == "srgb",
        "dynamic-range" | "video-dynamic-range" => word == "standard",
        "overflow-block" | "overflow-inline" => word == "scroll",
        _ => return None,
    };
    Some(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_answer_as_a_desktop_browser_does() {
        let viewport = Viewport::default();
        let hold = [
            "",
            "all",
            "screen",
            "SCREEN",
            "only screen",
            "not print",
            "screen, print",
            "print, (min-width: 600px)",
            "screen and (min-width: 600px)",
            "(min-width: 600px) and (max-width: 1280px)",
            "(width >= 600px)",
            "(600px < width <= 1280px)",
            "(400px <= width)",
            "not all and (min-width: 2000px)",
            "(orientation: landscape)",
            "(prefers-color-scheme: light)",
            "(min-resolution: 96dpi)",
            "(-webkit-min-device-pixel-ratio: 1)",
            "(hover: hover) and (pointer: fine)",
            "(dynamic-range: standard) and (not (dynamic-range: high))",
            "(min-width: 2000px) or (min-width: 20em)",
            "(not (max-width: 600px))",
            "not (max-width: 600px)",
            "(min-aspect-ratio: 16/9)",
            "((min-width: 1px) and (hover))",
        ];
        for query in hold {
            assert!(matches(query, &viewport), "{query:?} should hold");
        }
        let fail = [
            "print",
            "not screen",
            "(max-width: 600px)",
            "screen and (max-width: 600px)",
            "(width < 600px)",
            "(orientation: portrait)",
            "(prefers-color-scheme: dark)",
            "(min-resolution: 2dppx)",
            "speech",
            "(prefers-reduced-motion: reduce)",
            "(unknown: 1)",
            "not (unknown: 1)",
            "only",
            "screen and",
            "(",
            "}{",
            "(min-width: 600px) and",
            "(monochrome)",
            "(-webkit-min-device-pixel-ratio: 1.5)",
        ];
        for query in fail {
            assert!(!matches(query, &viewport), "{query:?} should not hold");
        }
    }

    #[test]
    fn fingers_do_not_hover() {
        let telephone =
            Viewport::assumed("Mozilla/5.0 (Linux; Android 10; K) Chrome/156.0.0.0 Mobile Safari/537.36");
        for (query, holds) in [
            ("(hover: hover)", false),
            ("(hover)", false),
            ("(hover: none) and (pointer: coarse)", true),
            ("(any-pointer: fine)", false),
            ("(pointer)", true),
        ] {
            assert_eq!(matches(query, &telephone), holds, "{query}");
        }
        assert!(!Viewport::assumed("Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0").touch);
    }

    #[test]
    fn endless_nesting_is_refused_without_exhausting_the_stack() {
        assert!(!matches(&"(".repeat(100_000), &Viewport::default()));
    }
}
