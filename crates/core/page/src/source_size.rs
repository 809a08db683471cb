//! CSS lengths as `sizes` uses them: evaluated to CSS pixels for a given screen.
//! Knows `px`, font-relative and viewport units, absolute units, `calc`, `min`, `max` and `clamp`.

use crate::media;
use crate::options::Viewport;
use cssparser::{ParseError, Parser, ParserInput, Token};

/// Nesting of parentheses that is followed; deeper input is invalid.
const MAX_DEPTH: u32 = 16;

/// The slot width in CSS pixels that a `sizes` attribute gives (HTML, "parse a sizes attribute"); `100vw` where it
/// says nothing usable.
pub(crate) fn evaluate(sizes: &str, viewport: &Viewport) -> f64 {
    sizes
        .split(',')
        .count()
        .le(&256)
        .then(|| {
            let mut input = ParserInput::new(sizes);
            let mut parser = Parser::new(&mut input);
            let parsed = parser.parse_comma_separated_ignoring_errors(|entry| entry_width(entry, viewport));
            parsed.into_iter().flatten().next()
        })
        .flatten()
        .unwrap_or(viewport.width)
}

/// Whether an element's `sizes` leave the width to the layout if it is lazy (HTML, "allows auto-sizes"). If it is not,
/// `auto` is passed over.
pub(crate) fn is_auto(sizes: &str) -> bool {
    let first = sizes.split(',').next().unwrap_or_default();
    first.trim().eq_ignore_ascii_case("auto")
}

/// `<media-condition>? <length>`: the width if the condition holds.
fn entry_width<'i>(
    entry: &mut Parser<'i, '_>,
    viewport: &Viewport,
) -> Result<Option<f64>, ParseError<'i, ()>> {
    if let Ok(width) = entry.try_parse(|entry| {
        let width = width(entry, viewport)?;
        entry.expect_exhausted()?;
        Ok::<_, ParseError<'i, ()>>(width)
    }) {
        return Ok(Some(width));
    }
    let holds = media::condition(entry, viewport, 0)?;
    let width = width(entry, viewport)?;
    entry.expect_exhausted()?;
    Ok((holds == Some(true)).then_some(width))
}

fn width<'i>(entry: &mut Parser<'i, '_>, viewport: &Viewport) -> Result<f64, ParseError<'i, ()>> {
    match value(entry, viewport, 0)? {
        Quantity::Pixels(pixels) if pixels >= 0.0 => Ok(pixels),
        Quantity::Number(0.0) => Ok(0.0),
        _ => Err(entry.new_custom_error(())),
    }
}

/// A number with or without a unit of length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Quantity {
    Pixels(f64),
    Number(f64),
}

/// One length, number or math function.
pub(crate) fn value<'i>(
    input: &mut Parser<'i, '_>,
    viewport: &Viewport,
    depth: u32,
) -> Result<Quantity, ParseError<'i, ()>> {
    if depth > MAX_DEPTH {
        return Err(input.new_custom_error(()));
    }
    match input.next()?.clone() {
        Token::Number { value, .. } => Ok(Quantity::Number(value.into())),
        Token::Dimension { value, unit, .. } => pixels_per(&unit, viewport)
            .map(|scale| Quantity::Pixels(f64::from(value) * scale))
            .ok_or_else(|| input.new_custom_error(())),
        Token::ParenthesisBlock => input.parse_nested_block(|inner| sum(inner, viewport, depth + 1)),
        Token::Function(name) => input.parse_nested_block(|inner| {
            let arguments = inner.parse_comma_separated(|argument| sum(argument, viewport, depth + 1))?;
            math(&name, &arguments).ok_or_else(|| inner.new_custom_error(()))
        }),
        _ => Err(input.new_custom_error(())),
    }
}

fn pixels_per(unit: &str, viewport: &Viewport) -> Option<f64> {
    let (width, height) = (viewport.width / 100.0, viewport.height / 100.0);
    Some(match unit.to_ascii_lowercase().as_str() {
        "px" => 1.0,
        // Media queries and `sizes` use the initial font size (Media Queries 4, §1.3).
        "em" | "rem" | "ic" => 16.0,
        "ex" | "ch" => 8.0,
        "vw" | "svw" | "lvw" | "dvw" | "vi" => width,
        "vh" | "svh" | "lvh" | "dvh" | "vb" => height,
        "vmin" => width.min(height),
        "vmax" => width.max(height),
        "in" => 96.0,
        "cm" => 96.0 / 2.54,
        "mm" => 96.0 / 25.4,
        "q" => 96.0 / 101.6,
        "pt" => 96.0 / 72.0,
        "pc" => 16.0,
        _ => return None,
    })
}

fn math(name: &str, arguments: &[Quantity]) -> Option<Quantity> {
    let first = *arguments.first()?;
    let numbers: Option<Vec<f64>> = arguments.iter().map(|&argument| same_kind(first, argument)).collect();
    let numbers = numbers?;
    let result = match (name.to_ascii_lowercase().as_str(), numbers.as_slice()) {
        ("calc", [only]) => *only,
        ("min", all) => all.iter().copied().fold(f64::INFINITY, f64::min),
        ("max", all) => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ("clamp", [low, middle, high]) => middle.min(*high).max(*low),
        _ => return None,
    };
    Some(match first {
        Quantity::Pixels(_) => Quantity::Pixels(result),
        Quantity::Number(_) => Quantity::Number(result),
    })
}

fn same_kind(kind: Quantity, quantity: Quantity) -> Option<f64> {
    match (kind, quantity) {
        (Quantity::Pixels(_), Quantity::Pixels(value)) | (Quantity::Number(_), Quantity::Number(value)) => {
            Some(value)
        }
        _ => None,
    }
}

fn sum<'i>(
    input: &mut Parser<'i, '_>,
    viewport: &Viewport,
    depth: u32,
) -> Result<Quantity, ParseError<'i, ()>> {
    let mut total = product(input, viewport, depth)?;
    while !input.is_exhausted() {
        let sign = match input.next()? {
            Token::Delim('+') => 1.0,
            Token::Delim('-') => -1.0,
            _ => return Err(input.new_custom_error(())),
        };
        total = match (total, product(input, viewport, depth)?) {
            (Quantity::Pixels(a), Quantity::Pixels(b)) => Quantity::Pixels(a + sign * b),
            (Quantity::Number(a), Quantity::Number(b)) => Quantity::Number(a + sign * b),
            _ => return Err(input.new_custom_error(())),
        };
    }
    Ok(total)
}

fn product<'i>(
    input: &mut Parser<'i, '_>,
    viewport: &Viewport,
    depth: u32,
) -> Result<Quantity, ParseError<'i, ()>> {
    let mut total = value(input, viewport, depth)?;
    loop {
        let state = input.state();
        let multiply = match input.next() {
            Ok(Token::Delim('*')) => true,
            Ok(Token::Delim('/')) => false,
            _ => {
                input.reset(&state);
                return Ok(total);
            }
        };
        total = match (total, value(input, viewport, depth)?, multiply) {
            (Quantity::Number(a), Quantity::Number(b), true) => Quantity::Number(a * b),
            (Quantity::Pixels(a), Quantity::Number(b), true) => Quantity::Pixels(a * b),
            (Quantity::Number(a), Quantity::Pixels(b), true) => Quantity::Pixels(a * b),
            (Quantity::Number(a), Quantity::Number(b), false) if b != 0.0 => Quantity::Number(a / b),
            (Quantity::Pixels(a), Quantity::Number(b), false) if b != 0.0 => Quantity::Pixels(a / b),
            _ => return Err(input.new_custom_error(())),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_give_the_slot_width_of_the_first_condition_that_holds() {
        let viewport = Viewport::default();
        let cases = [
            ("", 1280.0),
            ("100vw", 1280.0),
            ("(min-width: 990px) 330px, 50vw", 330.0),
            ("(min-width: 2000px) 330px, 50vw", 640.0),
            ("(max-width: 600px) 100vw, (max-width: 1200px) 50vw, 33.5vw", 428.8),
            ("calc(100vw - 2 * 20px)", 1240.0),
            ("calc((100vw - 40px) / 4)", 310.0),
            ("min(100vw, 600px)", 600.0),
            ("clamp(200px, 10vw, 400px)", 200.0),
            ("20em", 320.0),
            ("nonsense, 300px", 300.0),
            ("(unknown-thing: 3) 10px, 300px", 300.0),
            ("(min-width: 500px) and (orientation: landscape) 40vw, 10px", 512.0),
            // Of an element that is not lazy.
            ("auto", 1280.0),
            ("auto, (max-width: 300px) 100vw, 300px", 300.0),
            ("-5px", 1280.0),
            ("calc(10px / 0)", 1280.0),
            ("50%", 1280.0),
        ];
        for (sizes, expected) in cases {
            assert!(
                (evaluate(sizes, &viewport) - expected).abs() < 1e-3,
                "{sizes}: {}",
                evaluate(sizes, &viewport)
            );
        }
    }

    #[test]
    fn endless_nesting_is_refused_without_exhausting_the_stack() {
        let sizes = format!("calc({}1px", "(".repeat(100_000));
        assert_eq!(evaluate(&sizes, &Viewport::default()), 1280.0);
    }
}
