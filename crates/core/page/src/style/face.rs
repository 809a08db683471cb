//! `@font-face`: what it says, and which faces a text takes (CSS Fonts 4, §4 and §5).

use super::characters::Characters;
use super::cut::{Item, items};
use super::font_value::{self, Weight, skip_block};
use super::value::{self, Fallible};
use cssparser::{Parser, ParserInput, Token, UnicodeRange};

/// Ranges kept of one face.
const MAX_RANGES: usize = 1024;

/// One face of a family.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Face {
    /// Lower case.
    pub(super) family: Box<str>,
    weight: (u16, u16),
    italic: bool,
    /// `font-stretch` in per cent.
    stretch: (u16, u16),
    /// First and last code points.
    ranges: Box<[(u32, u32)]>,
    /// The file that a browser takes. `None` where it takes none.
    pub(super) source: Option<FontFile>,
}

/// One entry of `src`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FontFile {
    /// As written.
    pub(super) url: Box<str>,
    /// What `format()` says, in lower case.
    pub(super) format: Option<Box<str>>,
}

impl Face {
    /// Reads the block of an `@font-face`; `None` without family or source.
    pub(super) fn parse(body: &str) -> Option<Face> {
        let mut face = Face {
            family: "".into(),
            weight: (400, 400),
            italic: false,
            stretch: (100, 100),
            ranges: [(0, 0x10_ffff)].into(),
            source: None,
        };
        let mut sourced = false;
        for item in items(body) {
            let Item::Statement(text) = item else { continue };
            let Some((name, text, _)) = value::split(text) else { continue };
            match name.to_ascii_lowercase().as_str() {
                "font-family" => face.family = read(text, font_value::family).unwrap_or(face.family),
                "font-weight" => face.weight = read(text, weights).unwrap_or(face.weight),
                "font-style" => face.italic = read(text, font_value::italic).unwrap_or(face.italic),
                "font-stretch" | "font-width" => face.stretch = read(text, stretches).unwrap_or(face.stretch),
                "unicode-range" => face.ranges = read(text, ranges).unwrap_or(face.ranges),
                "src" => {
                    if let Some(source) = read(text, source) {
                        (sourced, face.source) = (true, source);
                    }
                }
                _ => {}
            }
        }
        (sourced && !face.family.is_empty()).then_some(face)
    }
}

fn read<T>(text: &str, parse: impl for<'i> FnOnce(&mut Parser<'i, '_>) -> Fallible<'i, T>) -> Option<T> {
    let mut input = ParserInput::new(text);
    Parser::new(&mut input).parse_entirely(parse).ok()
}

fn weights<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, (u16, u16)> {
    let one = |weight| match weight {
        Weight::Absolute(weight) => weight,
        _ => 400,
    };
    if input.try_parse(|input| input.expect_ident_matching("auto")).is_ok() {
        return Ok((1, 1000));
    }
    let first = one(font_value::weight(input)?);
    let last = input.try_parse(font_value::weight).map_or(first, one);
    Ok((first.min(last), first.max(last)))
}

fn stretches<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, (u16, u16)> {
    let one = |input: &mut Parser<'i, '_>| match input.next()? {
        Token::Percentage { unit_value, .. } => Ok((unit_value * 100.0) as u16),
        Token::Ident(word) => Ok(match word.to_ascii_lowercase().as_str() {
            "ultra-condensed" => 50,
            "extra-condensed" => 62,
            "condensed" => 75,
            "semi-condensed" => 87,
            "semi-expanded" => 112,
            "expanded" => 125,
            "extra-expanded" => 150,
            "ultra-expanded" => 200,
            _ => 100,
        }),
        _ => Err(input.new_custom_error::<(), ()>(())),
    };
    let first = one(input)?;
    let last = input.try_parse(one).unwrap_or(first);
    Ok((first.min(last), first.max(last)))
}

fn ranges<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Box<[(u32, u32)]>> {
    let mut ranges = input.parse_comma_separated(|input| {
        let range = UnicodeRange::parse(input)?;
        Ok::<_, cssparser::ParseError<'i, ()>>((range.start, range.end))
    })?;
    ranges.truncate(MAX_RANGES);
    Ok(ranges.into())
}

/// The first source that a current browser takes. `local()` is passed over: whether the browser finds it is not known
/// here, and most do not.
fn source<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Option<FontFile>> {
    let sources = input.parse_comma_separated_ignoring_errors(one_source);
    Ok(sources.into_iter().flatten().next())
}

fn one_source<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Option<FontFile>> {
    let url: Box<str> = match input.next()?.clone() {
        Token::UnquotedUrl(url) => Box::from(&*url),
        Token::Function(name) if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") => {
            input.parse_nested_block(|input| {
                Ok::<_, cssparser::ParseError<'i, ()>>(Box::from(&**input.expect_string()?))
            })?
        }
        Token::Function(_) => {
            skip_block(input)?;
            return Ok(None);
        }
        _ => return Err(input.new_custom_error(())),
    };
    // As Blink: without a format any file is tried, except those of old Internet Explorers.
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let mut taken = !path.to_ascii_lowercase().ends_with(".eot");
    let mut format = None;
    while let Ok(token) = input.next().cloned() {
        let Token::Function(name) = token else { return Err(input.new_custom_error(())) };
        let start = input.position();
        skip_block(input)?;
        let written = input.slice_from(start).trim_end_matches(')').trim();
        let text = written.trim_matches(['"', '\'']);
        match name.to_ascii_lowercase().as_str() {
            "format" => {
                // CSS Fonts 4, §4.3.2: these are strings of before, no keywords.
                let is_no_keyword = text == written && text.to_ascii_lowercase().ends_with("-variations");
                taken = supports_format(text) && !is_no_keyword;
                format = Some(text.to_ascii_lowercase().into());
            }
            "tech" => taken &= supports_techs(text),
            _ => taken = false,
        }
    }
    Ok(taken.then_some(FontFile { url, format }))
}

/// Whether a current browser reads fonts of this `format()`.
pub(super) fn supports_format(format: &str) -> bool {
    let format = format.trim_matches(['"', '\'']).to_ascii_lowercase();
    let base = format.strip_suffix("-variations").unwrap_or(&format);
    matches!(base, "woff2" | "woff" | "truetype" | "opentype" | "collection")
}

/// Whether Chromium reads fonts that need these `tech()`s (recorded). What only others do, as glyphs in SVG, has another
/// source beside it.
pub(super) fn supports_techs(techs: &str) -> bool {
    const KNOWN: [&str; 8] = [
        "features-opentype",
        "features-aat",
        "color-colrv0",
        "color-colrv1",
        "color-sbix",
        "color-cbdt",
        "variations",
        "palettes",
    ];
    techs.split(',').all(|tech| KNOWN.contains(&tech.trim().to_ascii_lowercase().as_str()))
}

/// The faces of one family that a text in `weight` takes, in the order asked for; what they have is taken out of
/// `characters`.
pub(super) fn choose<'f>(
    family: &[&'f Face],
    weight: u16,
    italic: bool,
    characters: &mut Characters,
) -> Vec<&'f Face> {
    let stretch = |face: &Face| face.stretch.0.saturating_sub(100) + 100_u16.saturating_sub(face.stretch.1);
    // CSS Fonts 4, §5.2: width first, then style, then weight; all faces alike in these share the text by their ranges.
    let rank = |face: &Face| (stretch(face), face.italic != italic, distance(face.weight, weight));
    let Some(best) = family.iter().map(|face| rank(face)).min() else { return Vec::new() };
    // Of two that have a character, the one written later is asked.
    family
        .iter()
        .rev()
        .filter(|face| rank(face) == best)
        .filter(|face| characters.take(&face.ranges))
        .copied()
        .collect()
}

/// How far a face's weights are from the one wanted, in the standard's order of preference.
fn distance((low, high): (u16, u16), wanted: u16) -> u16 {
    const FAR: u16 = 2_000;
    if (low..=high).contains(&wanted) {
        return 0;
    }
    let above = low > wanted;
    let gap = if above { low - wanted } else { wanted - high };
    match wanted {
        // First up to 500, then below, then above.
        400..=500 if above && low <= 500 => gap,
        400..=500 if above => FAR * 2 + gap,
        400..=500 => FAR + gap,
        ..400 if above => FAR + gap,
        501.. if !above => FAR + gap,
        _ => gap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(face: &Face) -> Option<&str> {
        face.source.as_ref().map(|file| &*file.url)
    }

    fn face(body: &str) -> Face {
        Face::parse(body).unwrap_or_else(|| panic!("{body}"))
    }

    #[test]
    fn the_source_is_the_one_a_current_browser_takes() {
        let cases = [
            ("url(a.woff2) format('woff2'),url(a.woff) format('woff')", Some("a.woff2")),
            ("url(a.eot?#iefix) format('embedded-opentype'),url(a.woff) format('woff')", Some("a.woff")),
            (
                "url(a.eot);src:url(a.eot?) format('embedded-opentype'),url(a.ttf) format(truetype)",
                Some("a.ttf"),
            ),
            ("url(a.eot),url(b.woff2)", Some("b.woff2")),
            ("local('A'),local(A-Regular),url(a.woff2)", Some("a.woff2")),
            ("url(a.svg#a) format('svg')", None),
            ("url(a.woff2) format('woff2') tech(variations)", Some("a.woff2")),
            ("url(a.woff2) format('woff2-variations')", Some("a.woff2")),
            ("url(a.ttf) format(truetype-variations),url(b.ttc) format(\"collection\")", Some("b.ttc")),
            ("url(a.woff2) tech(color-SVG),url(b.woff2) tech(palettes, color-COLRv1)", Some("b.woff2")),
            ("url(a.woff2) format(woff2) tech(incremental),url(b.woff2)", Some("b.woff2")),
            ("url(a.woff2) tech(features-graphite),url(b.woff2) tech(unknown)", None),
            ("url('a.ttf') format(\"truetype\")", Some("a.ttf")),
            ("nonsense,url(a.woff)", Some("a.woff")),
        ];
        for (sources, expected) in cases {
            let face = face(&format!("font-family:A;src:{sources}"));
            assert_eq!(file(&face), expected, "{sources}");
        }
        assert_eq!(Face::parse("font-family:A"), None);
        assert_eq!(Face::parse("src:url(a)"), None);
    }

    #[test]
    fn the_nearest_weight_is_taken_in_the_standards_order() {
        let cases: &[(u16, &[u16], u16)] = &[
            (400, &[400, 700], 400),
            (700, &[400], 400),
            (600, &[400, 700], 700),
            (400, &[300, 500], 500),
            (400, &[300, 600], 300),
            (500, &[400, 600], 400),
            (300, &[200, 400], 200),
            (300, &[400, 700], 400),
            (900, &[300, 700], 700),
        ];
        for &(wanted, weights, expected) in cases {
            let faces: Vec<Face> = weights
                .iter()
                .map(|weight| face(&format!("font-family:a;font-weight:{weight};src:url({weight})")))
                .collect();
            let faces: Vec<&Face> = faces.iter().collect();
            let mut characters = Characters::of("x");
            let chosen = choose(&faces, wanted, false, &mut characters);
            assert_eq!(file(chosen[0]), Some(&*expected.to_string()), "{wanted} of {weights:?}");
        }
    }

    #[test]
    fn faces_that_differ_in_range_share_a_text() {
        let faces = [
            face("font-family:a;src:url(latin-ext);unicode-range:U+0100-02BA,U+1E??"),
            face("font-family:a;src:url(latin);unicode-range:U+0000-00FF, U+2013"),
            face("font-family:a;src:url(slanted);font-style:italic"),
        ];
        let faces: Vec<&Face> = faces.iter().collect();
        let taken = |text: &str, italic| {
            let mut characters = Characters::of(text);
            let chosen = choose(&faces, 400, italic, &mut characters);
            let names: Vec<&str> = chosen.iter().filter_map(|face| file(face)).collect();
            (names.join(" "), characters.is_empty())
        };
        assert_eq!(taken("plain", false), ("latin".into(), true));
        assert_eq!(taken("plain Ā", false), ("latin latin-ext".into(), true));
        assert_eq!(taken("Ж", false), (String::new(), false));
        assert_eq!(taken("x Ж", true), ("slanted".into(), true));
    }
}
