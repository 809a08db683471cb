//! `<image>` values: the URLs that a browser with this screen would load.

use super::font_value::is_plain;
use super::value::Fallible;
use crate::hint::Destination;
use crate::options::Options;
use crate::types;
use cssparser::{Delimiter, ParseError, Parser, Token};

const MAX_DEPTH: u32 = 8;

/// By what a browser chooses from an `image-set()`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageSet {
    density: f64,
    jpeg_xl: bool,
}

impl ImageSet {
    pub(super) fn of(options: &Options) -> Self {
        ImageSet { density: options.viewport.density, jpeg_xl: options.jpeg_xl }
    }
}

/// All images of a value. `alone`: of a longhand, which takes nothing besides; else of a shorthand that contains them.
pub(super) fn images<'i>(
    input: &mut Parser<'i, '_>,
    set: &ImageSet,
    alone: bool,
) -> Fallible<'i, Vec<Box<str>>> {
    let mut urls = Vec::new();
    // The layers of a longhand are one image each.
    let mut is_next = true;
    while let Ok(token) = input.next().cloned() {
        let is_apart = std::mem::replace(&mut is_next, token == Token::Comma);
        match token {
            Token::Comma => {}
            _ if alone && !is_apart => return Err(input.new_custom_error(())),
            Token::UnquotedUrl(url) => urls.push(Box::from(&*url)),
            Token::Function(name) => urls.extend(function(&name, input, set, 0)?),
            Token::Ident(word) if word.eq_ignore_ascii_case("none") || (is_plain(&word) && !alone) => {}
            Token::Delim('/')
            | Token::Hash(_)
            | Token::IDHash(_)
            | Token::Number { .. }
            | Token::Percentage { .. }
            | Token::Dimension { .. }
                if !alone => {}
            _ => return Err(input.new_custom_error(())),
        }
    }
    Ok(urls)
}

/// The images of function `name`, whose parenthesis was just read. Errs for functions that no current browser knows.
pub(super) fn function<'i>(
    name: &str,
    input: &mut Parser<'i, '_>,
    set: &ImageSet,
    depth: u32,
) -> Fallible<'i, Vec<Box<str>>> {
    if depth > MAX_DEPTH {
        return Err(input.new_custom_error(()));
    }
    let name = name.to_ascii_lowercase();
    match name.strip_prefix("-webkit-").unwrap_or(&name) {
        // Chromium has neither `src()` nor `cross-fade()` without its prefix (recorded).
        "url" if !name.starts_with('-') => input.parse_nested_block(|input| {
            let url = Box::from(&**input.expect_string()?);
            // Modifiers such as `crossorigin()` may follow.
            while input.next().is_ok() {}
            Ok(vec![url])
        }),
        "image-set" => input.parse_nested_block(|input| {
            let choices = input.parse_comma_separated(|input| choice(input, set, depth))?;
            Ok(best(choices, set.density))
        }),
        // Which is taken `color-scheme` says; where nothing is said of it, the one for light.
        "light-dark" => input.parse_nested_block(|input| {
            let light = input.parse_until_before(Delimiter::Comma, |input| nested(input, set, depth))?;
            while input.next().is_ok() {}
            Ok(light)
        }),
        "cross-fade" if name.starts_with('-') => input.parse_nested_block(|input| nested(input, set, depth)),
        "linear-gradient"
        | "radial-gradient"
        | "conic-gradient"
        | "repeating-linear-gradient"
        | "repeating-radial-gradient"
        | "repeating-conic-gradient"
        | "gradient"
        | "rgb"
        | "rgba"
        | "hsl"
        | "hsla"
        | "hwb"
        | "lab"
        | "lch"
        | "oklab"
        | "oklch"
        | "color"
        | "color-mix"
        | "calc"
        | "min"
        | "max"
        | "clamp"
        | "round"
        | "mod"
        | "rem"
        | "abs"
        | "sign"
        | "sin"
        | "cos"
        | "tan"
        | "pow"
        | "sqrt"
        | "hypot"
        | "env"
        | "circle"
        | "ellipse"
        | "polygon"
        | "inset"
        | "path"
        | "rect"
        | "xywh"
        | "paint" => input.parse_nested_block(|input| {
            while input.next().is_ok() {}
            Ok(Vec::new())
        }),
        _ => Err(input.new_custom_error(())),
    }
}

/// All images among other things.
fn nested<'i>(input: &mut Parser<'i, '_>, set: &ImageSet, depth: u32) -> Fallible<'i, Vec<Box<str>>> {
    let mut urls = Vec::new();
    while let Ok(token) = input.next().cloned() {
        match token {
            Token::UnquotedUrl(url) => urls.push(Box::from(&*url)),
            Token::Function(name) => urls.extend(function(&name, input, set, depth + 1)?),
            _ => {}
        }
    }
    Ok(urls)
}

/// One entry of an `image-set()`: its resolution in dots per pixel and its images; `None` if it cannot be shown.
type Choice = Option<(f64, Vec<Box<str>>)>;

fn choice<'i>(input: &mut Parser<'i, '_>, set: &ImageSet, depth: u32) -> Fallible<'i, Choice> {
    let urls = match input.next()?.clone() {
        Token::UnquotedUrl(url) | Token::QuotedString(url) => vec![Box::from(&*url)],
        Token::Function(name) => function(&name, input, set, depth + 1)?,
        _ => return Err(input.new_custom_error(())),
    };
    let (mut density, mut shown) = (1.0, true);
    while let Ok(token) = input.next().cloned() {
        match token {
            Token::Dimension { value, unit, .. } => {
                density = f64::from(value)
                    * match unit.to_ascii_lowercase().as_str() {
                        "x" | "dppx" => 1.0,
                        "dpi" => 1.0 / 96.0,
                        "dpcm" => 2.54 / 96.0,
                        _ => return Err(input.new_custom_error(())),
                    };
            }
            Token::Function(name) if name.eq_ignore_ascii_case("type") => {
                let kind = input
                    .parse_nested_block(|input| Ok::<_, ParseError<'i, ()>>(input.expect_string_cloned()?))?;
                shown = types::fits(Destination::Image, &kind.to_ascii_lowercase(), set.jpeg_xl);
            }
            _ => return Err(input.new_custom_error(())),
        }
    }
    Ok(shown.then_some((density, urls)))
}

/// As Blink chooses: the smallest resolution that suffices, else the largest; the first of equals.
fn best(choices: Vec<Choice>, density: f64) -> Vec<Box<str>> {
    let mut choices: Vec<(f64, Vec<Box<str>>)> = choices.into_iter().flatten().collect();
    choices.sort_by(|a, b| a.0.total_cmp(&b.0));
    let chosen = choices.iter().position(|(own, _)| *own >= density).or(choices.len().checked_sub(1));
    chosen.map(|at| choices.swap_remove(at).1).unwrap_or_default()
}
