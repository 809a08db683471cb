//! What declarations say, as far as it can cause a fetch: images, generated content, fonts, `display`. Values that a
//! current browser would not take are no values, so that fallbacks written before them stand.

use super::font_value::{self, Weight};
use super::image_value::{self, ImageSet};
use crate::hint::Mode;
use crate::options::Options;
use cssparser::{ParseError, Parser, ParserInput, Token};
use std::sync::Arc;

pub(super) type Fallible<'i, T> = Result<T, ParseError<'i, ()>>;

/// Properties that the cascade decides, longhands only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Property {
    BackgroundImage,
    BorderImage,
    ListStyleImage,
    MaskImage,
    ShapeOutside,
    BoxReflect,
    MaskBoxImage,
    Cursor,
    Content,
    Display,
    FontFamily,
    FontWeight,
    FontStyle,
    AnimationName,
    ClipPath,
    Filter,
    BackdropFilter,
    Fill,
    Stroke,
    MarkerStart,
    MarkerMid,
    MarkerEnd,
}

/// How Chromium fetches a file that a style names (recorded).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// An image, as ever.
    Image,
    /// A mask or a shape, with CORS.
    Mask,
    /// An SVG file of which a part is referred to, with CORS.
    Part,
    /// One that only the document's own origin may give.
    OwnPart,
}

impl Fetched {
    pub(crate) fn mode(self) -> Mode {
        match self {
            Fetched::Image => Mode::NoCors,
            Fetched::Mask | Fetched::Part => Mode::Cors,
            Fetched::OwnPart => Mode::SameOrigin,
        }
    }

    pub(crate) fn is_part(self) -> bool {
        matches!(self, Fetched::Part | Fetched::OwnPart)
    }
}

impl Property {
    /// How the files that it names are fetched; `None` if it names none.
    pub(super) fn fetched(self) -> Option<Fetched> {
        use Property as P;
        match self {
            P::BackgroundImage
            | P::BorderImage
            | P::ListStyleImage
            | P::BoxReflect
            | P::MaskBoxImage
            | P::Cursor => Some(Fetched::Image),
            P::MaskImage | P::ShapeOutside => Some(Fetched::Mask),
            P::ClipPath | P::Fill | P::Stroke | P::MarkerStart | P::MarkerMid | P::MarkerEnd => {
                Some(Fetched::Part)
            }
            P::Filter | P::BackdropFilter => Some(Fetched::OwnPart),
            P::Content | P::Display | P::FontFamily | P::FontWeight | P::FontStyle | P::AnimationName => None,
        }
    }

    /// Whether it refers to parts of SVG files, as its values seldom do.
    fn refers(self) -> bool {
        self.fetched().is_some_and(Fetched::is_part)
    }
}

/// A computed-value-to-be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// URLs as written, resolved against the sheet's when used; none for `none`.
    Images(Box<[Box<str>]>),
    Content(Content),
    /// `display`: whether it is `none`.
    Hidden(bool),
    Families(Arc<[Box<str>]>),
    Weight(Weight),
    Italic(bool),
    Animations(Box<[Box<str>]>),
    /// `inherit`, or `unset` of a property that inherits.
    Inherit,
    /// `initial`, `revert` and the like.
    Initial,
    /// Contains `var()`: the property as written, and its text, read once the element's variables are known.
    Pending(Box<(Box<str>, Box<str>)>),
}

/// `content`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Content {
    /// A pseudo-element has a box: neither `none` nor `normal`.
    pub(super) shown: bool,
    pub(super) text: Box<str>,
    /// Names in `attr()`.
    pub(super) attributes: Box<[Box<str>]>,
    pub(super) images: Box<[Box<str>]>,
}

/// What a property name stands for.
pub(super) type Longhands = &'static [Property];

/// The longhands that declaration `name` sets, none if it cannot cause a fetch. Lower or upper case.
pub(super) fn longhands(name: &str) -> Longhands {
    // Most declarations end here.
    const LONGEST: usize = "-webkit-animation-name".len();
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..name.len()) else { return &[] };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    of_lower(lower)
}

fn of_lower(name: &[u8]) -> Longhands {
    use Property::{
        AnimationName, BackdropFilter, BackgroundImage, BorderImage, BoxReflect, ClipPath, Content, Cursor,
        Display, Fill, Filter, FontFamily, FontStyle, FontWeight, ListStyleImage, MarkerEnd, MarkerMid,
        MarkerStart, MaskBoxImage, MaskImage, ShapeOutside, Stroke,
    };
    match name {
        b"background" | b"background-image" => &[BackgroundImage],
        b"border-image" | b"border-image-source" | b"-webkit-border-image" => &[BorderImage],
        b"list-style" | b"list-style-image" => &[ListStyleImage],
        b"mask" | b"mask-image" | b"-webkit-mask" | b"-webkit-mask-image" => &[MaskImage],
        b"shape-outside" => &[ShapeOutside],
        b"-webkit-box-reflect" => &[BoxReflect],
        b"-webkit-mask-box-image" => &[MaskBoxImage],
        b"cursor" => &[Cursor],
        b"content" => &[Content],
        b"display" => &[Display],
        b"font" => &[FontFamily, FontWeight, FontStyle],
        b"font-family" => &[FontFamily],
        b"font-weight" => &[FontWeight],
        b"font-style" => &[FontStyle],
        b"animation" | b"animation-name" | b"-webkit-animation" | b"-webkit-animation-name" => {
            &[AnimationName]
        }
        b"clip-path" | b"-webkit-clip-path" => &[ClipPath],
        b"filter" | b"-webkit-filter" => &[Filter],
        b"backdrop-filter" => &[BackdropFilter],
        b"fill" => &[Fill],
        b"stroke" => &[Stroke],
        b"marker" => &[MarkerStart, MarkerMid, MarkerEnd],
        b"marker-start" => &[MarkerStart],
        b"marker-mid" => &[MarkerMid],
        b"marker-end" => &[MarkerEnd],
        _ => &[],
    }
}

/// Cuts a declaration into name, value and whether it is important. `None` if it is none.
pub(super) fn split(declaration: &str) -> Option<(&str, &str, bool)> {
    let (name, value) = split_name(super::cut::trim_start(declaration))?;
    let (value, important) = split_importance(value);
    Some((name, value, important))
}

/// Cuts a declaration, which begins with its name, behind that.
pub(super) fn split_name(declaration: &str) -> Option<(&str, &str)> {
    // Names are short.
    let colon = declaration.bytes().position(|byte| byte == b':')?;
    let name = declaration[..colon].trim_ascii_end();
    (!name.is_empty()).then_some((name, &declaration[colon + 1..]))
}

/// Cuts `!important` off a value.
pub(super) fn split_importance(value: &str) -> (&str, bool) {
    let value = value.trim();
    let plain = |rest: &str| rest.trim_end().strip_suffix('!').map(str::trim_end).map(str::len);
    let important = value
        .len()
        .checked_sub("important".len())
        .filter(|&at| value.is_char_boundary(at) && value[at..].eq_ignore_ascii_case("important"))
        .and_then(|at| plain(&value[..at]));
    (&value[..important.unwrap_or(value.len())], important.is_some())
}

/// Whether `text` waits for the value of a custom property.
pub(super) fn has_variables(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'(', bytes).any(|at| at >= 3 && bytes[at - 3..at].eq_ignore_ascii_case(b"var"))
}

/// Whether `text` names a file and not only a part of the document (`url(#…)`).
fn names_file(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'(', bytes).any(|at| {
        let argument = text[at + 1..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c', '"', '\'']);
        at >= 3 && bytes[at - 3..at].eq_ignore_ascii_case(b"url") && !argument.starts_with('#')
    })
}

/// Whether `text` can say anything of `longhands`: of those that refer to parts of SVG files only what names one is kept.
/// What of these is overruled by another value is not known.
pub(super) fn may_tell(longhands: Longhands, text: &str) -> bool {
    !longhands.first().is_some_and(|property| property.refers()) || names_file(text)
}

/// Gives what `name: text` says to each of its `longhands`; nothing if a browser would refuse the value, or if it says
/// nothing of them.
pub(super) fn parse(
    name: &str,
    longhands: Longhands,
    text: &str,
    options: &Options,
    mut give: impl FnMut(Property, Value),
) {
    if !may_tell(longhands, text) {
        return;
    }
    if has_variables(text) {
        for &property in longhands {
            give(property, Value::Pending(Box::new((name.into(), text.into()))));
        }
        return;
    }
    if let Some(value) = wide(text, longhands) {
        longhands.iter().for_each(|&property| give(property, value.clone()));
        return;
    }
    let mut input = ParserInput::new(text);
    let mut input = Parser::new(&mut input);
    if longhands.first().is_some_and(|property| property.refers()) {
        if let Ok(urls) = input.parse_entirely(|input| references(input, longhands[0])) {
            longhands.iter().for_each(|&property| give(property, Value::Images(urls.clone())));
        }
        return;
    }
    if let [_, _, _] = longhands {
        if let Ok(font) = input.parse_entirely(font_value::shorthand) {
            give(Property::FontFamily, Value::Families(font.families));
            give(Property::FontWeight, Value::Weight(font.weight));
            give(Property::FontStyle, Value::Italic(font.italic));
        }
        return;
    }
    let Some(&property) = longhands.first() else { return };
    let parsed = input.parse_entirely(|input| match property {
        Property::Content => content(input, options).map(Value::Content),
        Property::Display => display(input),
        Property::FontFamily => font_value::families(input).map(Value::Families),
        Property::FontWeight => font_value::weight(input).map(Value::Weight),
        Property::FontStyle => font_value::italic(input).map(Value::Italic),
        Property::AnimationName => animations(input).map(Value::Animations),
        _ => image_value::images(input, &ImageSet::of(options), takes_images_alone(name))
            .map(|urls| Value::Images(urls.into())),
    });
    if let Ok(value) = parsed {
        give(property, value);
    }
}

/// The files that a value names among other things (CSS Masking 1, §5.1; Filter Effects 1, §5; SVG 2, §13.2).
fn references<'i>(input: &mut Parser<'i, '_>, property: Property) -> Fallible<'i, Box<[Box<str>]>> {
    // No box may stand beside it.
    if property == Property::ClipPath {
        return Ok([Box::from(&*input.expect_url()?)].into());
    }
    let mut urls = Vec::new();
    loop {
        match input.try_parse(|input| input.expect_url()) {
            Ok(url) => urls.push(Box::from(&*url)),
            Err(_) if input.next().is_err() => return Ok(urls.into()),
            Err(_) => {}
        }
    }
}

/// Whether this is a longhand of images.
fn takes_images_alone(name: &str) -> bool {
    let ends = |end: &str| {
        let start = name.len().checked_sub(end.len());
        start.is_some_and(|start| name.as_bytes()[start..].eq_ignore_ascii_case(end.as_bytes()))
    };
    (ends("-image") && !ends("border-image") && !ends("box-image")) || ends("-source")
}

/// CSS-wide keywords (CSS Cascade 5, §7.3).
fn wide(text: &str, longhands: Longhands) -> Option<Value> {
    let inherits = matches!(
        longhands.first(),
        Some(
            Property::FontFamily
                | Property::FontWeight
                | Property::FontStyle
                | Property::ListStyleImage
                | Property::Cursor
        )
    );
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("inherit") || (inherits && is("unset")) {
        return Some(Value::Inherit);
    }
    ["initial", "unset", "revert", "revert-layer"].into_iter().any(is).then_some(Value::Initial)
}

fn display<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Value> {
    let word = input.expect_ident_cloned()?;
    if !font_value::is_plain(&word) {
        return Err(input.new_custom_error(()));
    }
    // The two-word syntax; `-ms-flexbox` and its kind are unknown to browsers of today.
    while let Ok(more) = input.try_parse(|input| input.expect_ident_cloned()) {
        if !font_value::is_plain(&more) {
            return Err(input.new_custom_error(()));
        }
    }
    let foreign = ["-ms-", "-moz-", "-o-", "-khtml-"];
    if foreign.iter().any(|prefix| word.to_ascii_lowercase().starts_with(prefix)) {
        return Err(input.new_custom_error(()));
    }
    Ok(Value::Hidden(word.eq_ignore_ascii_case("none")))
}

fn content<'i>(input: &mut Parser<'i, '_>, options: &Options) -> Fallible<'i, Content> {
    let (mut text, mut attributes, mut images) = (String::new(), Vec::new(), Vec::<Box<str>>::new());
    let mut shown = true;
    let mut alternative = false;
    while let Ok(token) = input.next().cloned() {
        match token {
            Token::QuotedString(string) if !alternative => text.push_str(&string),
            Token::UnquotedUrl(url) => images.push(Box::from(&*url)),
            // `/` begins the alternative text, which is read aloud and not drawn.
            Token::Delim('/') => alternative = true,
            Token::Ident(word) => match word.to_ascii_lowercase().as_str() {
                "none" | "normal" => shown = false,
                "open-quote" | "close-quote" => text.push_str("\u{201c}\u{201d}"),
                _ => {}
            },
            Token::Function(name) => match name.to_ascii_lowercase().as_str() {
                "attr" => input.parse_nested_block(|input| {
                    attributes.push(Box::from(input.expect_ident()?.to_ascii_lowercase()));
                    while input.next().is_ok() {}
                    Ok::<_, ParseError<'_, ()>>(())
                })?,
                "counter" | "counters" => {
                    text.push_str("0123456789");
                    input.parse_nested_block(|input| {
                        while let Ok(token) = input.next() {
                            if let Token::QuotedString(string) = token {
                                text.push_str(string);
                            }
                        }
                        Ok::<_, ParseError<'_, ()>>(())
                    })?;
                }
                function => {
                    images.extend(image_value::function(function, input, &ImageSet::of(options), 0)?);
                }
            },
            Token::QuotedString(_) => {}
            _ => return Err(input.new_custom_error(())),
        }
    }
    Ok(Content { shown, text: text.into(), attributes: attributes.into(), images: images.into() })
}

/// Every word of `animation` that could name one: keywords name no `@keyframes` in practice.
fn animations<'i>(input: &mut Parser<'i, '_>) -> Fallible<'i, Box<[Box<str>]>> {
    let mut names = Vec::new();
    while let Ok(token) = input.next().cloned() {
        match token {
            Token::Ident(word) | Token::QuotedString(word) => names.push(Box::from(&*word)),
            Token::Function(_) => {
                input.parse_nested_block(|input| {
                    while input.next().is_ok() {}
                    Ok::<_, ParseError<'_, ()>>(())
                })?;
            }
            _ => {}
        }
    }
    Ok(names.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(declaration: &str) -> Vec<(Property, Value)> {
        let mut values = Vec::new();
        let (name, text, _) = split(declaration).unwrap();
        parse(name, longhands(name), text, &Options::default(), |property, value| {
            values.push((property, value))
        });
        values
    }

    #[test]
    fn a_declaration_is_cut_into_its_parts() {
        assert_eq!(split(" a : b "), Some(("a", "b", false)));
        assert_eq!(split("/* c */a:b ! IMPORTANT"), Some(("a", "b", true)));
        assert_eq!(split("a:b!important"), Some(("a", "b", true)));
        assert_eq!(split("a:important"), Some(("a", "important", false)));
        assert_eq!(split("a"), None);
        assert_eq!(split(":a"), None);
    }

    #[test]
    fn images_are_those_that_a_current_browser_would_load() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("background:url(a.png)", Some(&["a.png"])),
            ("BACKGROUND: #fff URL( \"a b.png\" ) no-repeat 0 0 / cover", Some(&["a b.png"])),
            ("background-image:url(a.png),url('b.png')", Some(&["a.png", "b.png"])),
            ("background:none", Some(&[])),
            ("background:red", Some(&[])),
            ("background:rgba(0,0,0,.5)", Some(&[])),
            ("background-image:linear-gradient(red,blue),url(a.png)", Some(&["a.png"])),
            // What no current browser takes leaves the fallback before it in force.
            ("background-image:-moz-linear-gradient(red,blue),url(a.png)", None),
            ("background:url(a.png)\\9", None),
            ("background:url(a.png) !ie", None),
            ("background-image:url(a.png) no-repeat", None),
            ("background-image:image-set('1.png' 1x,'2.png' 2x)", Some(&["1.png"])),
            ("background-image:-webkit-image-set(url(2.png) 2x,url(1.png) 1x)", Some(&["1.png"])),
            ("background-image:image-set('2.png' 192dpi,'3.png' 3x)", Some(&["2.png"])),
            (
                "background-image:image-set('a.xyz' type('image/xyz'),'a.png' type('image/png'))",
                Some(&["a.png"]),
            ),
            ("background-image:image-set(linear-gradient(red,red) 1x,'2.png' 2x)", Some(&[])),
            ("background-image:-webkit-cross-fade(url(a.png),url(b.png),50%)", Some(&["a.png", "b.png"])),
            ("list-style:square inside url(a.png)", Some(&["a.png"])),
            ("mask:url(a.svg) center / contain no-repeat", Some(&["a.svg"])),
            ("border-image:url(a.png) 30 fill / 1px stretch", Some(&["a.png"])),
            ("cursor:url(a.cur) 4 12,auto", Some(&["a.cur"])),
            ("shape-outside:circle(50%)", Some(&[])),
            ("-webkit-box-reflect:below 1px url(a.png)", Some(&["a.png"])),
            ("-webkit-mask-box-image:url(a.png) 2 stretch", Some(&["a.png"])),
            ("clip-path:url(a.svg#b)", Some(&["a.svg#b"])),
            ("-webkit-clip-path:url('a.svg#b')", Some(&["a.svg#b"])),
            ("clip-path:url(a.svg#b) border-box", None),
            ("clip-path:circle(50%)", None),
            ("filter:blur(1px) url(a.svg#b) drop-shadow(0 0 1px red)", Some(&["a.svg#b"])),
            ("filter:url( '#b' )", None),
            ("marker:url(a.svg#b)", Some(&["a.svg#b"])),
            ("fill:URL(a.svg#b) red", Some(&["a.svg#b"])),
            ("fill:#fff", None),
            ("background:src(\"a.png\")", None),
            ("background:cross-fade(url(a.png),url(b.png),50%)", None),
            ("background:image-set(src(\"a.png\") 1x)", None),
            ("background-image:url(a.png) url(b.png)", None),
            ("background-image:url(a.png) , url(b.png)", Some(&["a.png", "b.png"])),
            ("background:light-dark(url(light.png),url(dark.png))", Some(&["light.png"])),
            ("background-image:light-dark(none,url(dark.png)),url(b.png)", Some(&["b.png"])),
            ("background:light-dark(#fff,rgb(0 0 0/.5)) url(a.png)", Some(&["a.png"])),
            ("background:url(\\61.png)", Some(&["a.png"])),
        ];
        for (declaration, expected) in cases {
            let found = parsed(declaration).into_iter().next().map(|(_, value)| match value {
                Value::Images(urls) => urls.into_vec(),
                other => panic!("{declaration}: {other:?}"),
            });
            let found: Option<Vec<&str>> = found.as_ref().map(|urls| urls.iter().map(|url| &**url).collect());
            assert_eq!(found.as_deref(), *expected, "{declaration}");
        }
    }

    #[test]
    fn content_tells_what_is_drawn() {
        let content = |declaration: &str| match parsed(declaration).pop() {
            Some((Property::Content, Value::Content(content))) => content,
            other => panic!("{other:?}"),
        };
        assert_eq!(&*content("content:'\\f015'").text, "\u{f015}");
        assert!(content("content:''").shown);
        assert!(!content("content:none").shown);
        assert_eq!(*content("content:url(a.png) 'b'").images, ["a.png".into()]);
        assert_eq!(*content("content:attr(Data-X)").attributes, ["data-x".into()]);
        assert_eq!(&*content("content:'a' / 'read aloud'").text, "a");
    }

    #[test]
    fn display_is_none_or_not() {
        assert_eq!(parsed("display:none"), [(Property::Display, Value::Hidden(true))]);
        assert_eq!(parsed("display:inline flex"), [(Property::Display, Value::Hidden(false))]);
        assert_eq!(parsed("display:none\\9"), []);
        assert_eq!(parsed("display:-ms-flexbox"), []);
    }

    #[test]
    fn variables_wait() {
        let values = parsed("font:var(--a)");
        assert_eq!(values.len(), 3);
        assert!(values.iter().all(|(_, value)| matches!(value, Value::Pending(_))));
    }
}
