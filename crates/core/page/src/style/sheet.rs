//! Reads one style sheet, keeping of it only what can cause a fetch.

use super::block::{Block, Outline};
use super::cut::{Item, items, trim_start};
use super::face::Face;
use super::index::Key;
use super::selector::Selector;
use super::value::{self, Fetched, Value};
use super::{layers, plain_selector, selector_text, supports};
use crate::media;
use crate::options::Options;
use cssparser::{Parser, ParserInput};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Rules and conditions within each other that are followed.
const MAX_DEPTH: u32 = 32;
/// Rules kept of one sheet, selectors of a list counted apart.
const MAX_RULES: usize = 50_000;
/// Faces kept of one sheet.
const MAX_FACES: usize = 2_000;
/// Layers told apart of one sheet.
const MAX_LAYERS: usize = 1_000;
/// Lists of media queries remembered of one sheet.
const MAX_MEDIA: usize = 16;
/// Imports of one sheet that are followed.
const MAX_IMPORTS: usize = 64;

/// What a sheet says, in its order.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) rules: Vec<Rule>,
    pub(super) blocks: Vec<Declared>,
    /// What of these is not read yet.
    pub(super) text: String,
    pub(super) faces: Vec<Face>,
    pub(super) keyframes: Vec<Keyframes>,
    /// Full names of layers as they are first named; `early` of them stand before the imports.
    pub(super) layers: Vec<Box<str>>,
    pub(super) early: usize,
    /// `initial-value` of `@property`.
    pub(super) initial: Vec<(Box<str>, Arc<str>)>,
    pub(super) imports: Vec<Import>,
    /// Some element is a container, so that `@container` can hold.
    pub(super) has_containers: bool,
}

/// A selector and what it styles.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) selector: Selecting,
    /// Of [`Sheet::blocks`].
    pub(super) block: u32,
    /// Full name.
    pub(super) layer: Option<Arc<str>>,
    /// Stands within `@container`.
    pub(super) contained: bool,
}

/// A selector.
#[derive(Debug)]
pub(super) enum Selecting {
    Read(Box<Selector>),
    /// One that is plain: where it stands in [`Sheet::text`], and what an element must have for it.
    Unread(Range<u32>, Key),
}

/// Declarations.
#[derive(Debug)]
pub(super) enum Declared {
    Read(Box<Block>),
    /// Where they stand in [`Sheet::text`].
    Unread(Range<u32>),
}

/// `@keyframes`, where it names images.
#[derive(Debug)]
pub(super) struct Keyframes {
    pub(super) name: Box<str>,
    /// As written, and how each is fetched.
    pub(super) images: Box<[(Box<str>, Fetched)]>,
}

/// `@import`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// As written.
    pub(super) url: Box<str>,
    /// Its media match a screen. Where they don't, browsers still fetch it, late.
    pub(super) applies: bool,
    /// Full name of the layer it is imported into.
    pub(super) layer: Option<Arc<str>>,
}

#[derive(Clone, Default)]
struct Context {
    layer: Option<Arc<str>>,
    /// Selectors of the rule around.
    parents: Option<Arc<[Selector]>>,
    contained: bool,
    /// Those are the roots of an `@scope`.
    scoped: bool,
    depth: u32,
}

/// Reads a sheet item by item.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) sheet: Sheet,
    /// Layer that the whole sheet was imported into.
    layer: Option<Arc<str>>,
    /// Only `@charset` and `@layer` statements came so far (CSS Cascade 5, §2).
    importable: bool,
    imported: usize,
    /// Distinguishes this sheet's layers without a name from those of others.
    number: usize,
    unnamed: usize,
    /// Lists of media queries, and whether they hold: sheets repeat a few of them.
    media: Vec<(Box<str>, bool)>,
}

impl Sheet {
    /// Adds a selector for the next block.
    fn add(&mut self, selector: Selecting, context: &Context) {
        if self.rules.len() < MAX_RULES {
            let (block, layer) = (self.blocks.len() as u32, context.layer.clone());
            self.rules.push(Rule { selector, block, layer, contained: context.contained });
        }
    }
}

impl Declared {
    fn is_empty(&self) -> bool {
        match self {
            Declared::Read(block) => block.is_empty(),
            Declared::Unread(place) => place.is_empty(),
        }
    }
}

impl Reader {
    /// For the `number`th sheet of the page, imported into `layer`.
    pub(super) fn new(number: usize, layer: Option<Arc<str>>) -> Self {
        let mut sheet = Sheet::default();
        sheet.layers.extend(layer.iter().map(|layer| Box::from(&**layer)));
        sheet.early = sheet.layers.len();
        Reader { sheet, layer, importable: true, imported: 0, number, unnamed: 0, media: Vec::new() }
    }

    /// Takes the next top-level item.
    pub(super) fn item(&mut self, item: Item<'_>, options: &Options) {
        let context = Context { layer: self.layer.clone(), ..Context::default() };
        match item {
            Item::Statement(text) => self.statement(trim_start(text), &context, options),
            Item::Block { prelude, body } => {
                self.importable = false;
                let mut prelude = trim_start(prelude);
                while let Some(rest) = prelude.strip_prefix("<!--").or_else(|| prelude.strip_prefix("-->")) {
                    prelude = trim_start(rest);
                }
                self.block(prelude, body, &context, options);
            }
        }
    }

    fn statement(&mut self, text: &str, context: &Context, options: &Options) {
        let Some((name, rest)) = at_rule(text) else { return };
        match name.as_str() {
            "import" if self.importable && self.imported < MAX_IMPORTS => {
                if let Some(import) = self.import(rest, options) {
                    self.imported += 1;
                    self.sheet.imports.push(import);
                }
            }
            "layer" => {
                for name in rest.split(',') {
                    self.name_layer(context, name.trim());
                }
            }
            "charset" | "import" => {}
            _ => self.importable = false,
        }
        if self.importable && self.imported == 0 {
            self.sheet.early = self.sheet.layers.len();
        }
    }

    fn name_layer(&mut self, context: &Context, name: &str) -> Arc<str> {
        let name = if name.is_empty() {
            self.unnamed += 1;
            // No identifier begins with a number.
            layers::within(context.layer.as_deref(), &format!("{}/{}", self.number, self.unnamed))
        } else {
            layers::within(context.layer.as_deref(), name)
        };
        if self.sheet.layers.len() < MAX_LAYERS && !self.sheet.layers.contains(&name) {
            self.sheet.layers.push(name.clone());
        }
        name.into()
    }

    /// `@import url layer? supports()? media` (CSS Cascade 5, §2). `None` where it is not fetched at all.
    fn import(&mut self, text: &str, options: &Options) -> Option<Import> {
        let mut input = ParserInput::new(text);
        let mut input = Parser::new(&mut input);
        let url = Box::from(&*input.expect_url_or_string().ok()?);
        let own = Context { layer: self.layer.clone(), ..Context::default() };
        let mut layer = self.layer.clone();
        if input.try_parse(|input| input.expect_ident_matching("layer")).is_ok() {
            layer = Some(self.name_layer(&own, ""));
        } else if let Ok(name) = input.try_parse(|input| function(input, "layer")) {
            layer = Some(self.name_layer(&own, name.trim()));
        }
        if let Ok(condition) = input.try_parse(|input| function(input, "supports"))
            && !supports::holds(condition)
        {
            return None;
        }
        input.skip_whitespace();
        let start = input.position();
        while input.next().is_ok() {}
        let applies = media::matches(input.slice_from(start), &options.viewport);
        Some(Import { url, applies, layer })
    }

    fn block(&mut self, prelude: &str, body: &str, context: &Context, options: &Options) {
        if context.depth >= MAX_DEPTH {
            return;
        }
        let inner = Context { depth: context.depth + 1, ..context.clone() };
        let Some((name, rest)) = at_rule(prelude) else {
            self.style(prelude, body, &inner, options);
            return;
        };
        match name.as_str() {
            "media" if self.media_hold(rest, options) => self.contents(body, &inner, options),
            "supports" if supports::holds(rest) => self.contents(body, &inner, options),
            "layer" => {
                let layer = Some(self.name_layer(context, rest.trim()));
                self.contents(body, &Context { layer, ..inner }, options);
            }
            // Measured against the container, which is no wider than the screen.
            "container" if container_may_hold(rest, options) => {
                self.contents(body, &Context { contained: true, ..inner }, options);
            }
            "scope" => self.scope(rest, body, &inner, options),
            "font-face" if self.sheet.faces.len() < MAX_FACES => self.sheet.faces.extend(Face::parse(body)),
            "keyframes" | "-webkit-keyframes" => self.keyframes(rest, body, options),
            "property" => self.property(rest.trim(), body),
            _ => {}
        }
    }

    fn media_hold(&mut self, list: &str, options: &Options) -> bool {
        if let Some((_, holds)) = self.media.iter().find(|(known, _)| **known == *list) {
            return *holds;
        }
        let holds = media::matches(list, &options.viewport);
        if self.media.len() < MAX_MEDIA {
            self.media.push((list.into(), holds));
        }
        holds
    }

    /// `@scope (root) to (limit)` (CSS Cascade 6, §2.5): its rules are read like rules within that of the root. What has no
    /// root of its own counts everywhere, and limits are not looked at.
    fn scope(&mut self, prelude: &str, body: &str, context: &Context, options: &Options) {
        let mut input = ParserInput::new(prelude);
        let Some(root) = parenthesized(&mut Parser::new(&mut input)) else {
            return self.contents(body, context, options);
        };
        let roots = selector_text::parse(root, context.parents.as_ref());
        if !roots.is_empty() {
            let context = Context { parents: Some(roots.into()), scoped: true, ..context.clone() };
            self.contents(body, &context, options);
        }
    }

    /// What a conditional group holds: rules, and declarations for the rule around it.
    fn contents(&mut self, body: &str, context: &Context, options: &Options) {
        let mut block = Block::default();
        for item in items(body) {
            match item {
                Item::Statement(text) if context.parents.is_some() => block.declare(text, options),
                Item::Statement(text) => self.statement(trim_start(text), context, options),
                Item::Block { prelude, body } => self.block(trim_start(prelude), body, context, options),
            }
        }
        if let Some(parents) = &context.parents {
            self.add(parents.to_vec(), Declared::Read(Box::new(block)), context);
        }
    }

    fn style(&mut self, prelude: &str, body: &str, context: &Context, options: &Options) {
        let start = self.sheet.text.len();
        let mut outline = Outline::default();
        let mut nested = Vec::new();
        for item in items(body) {
            match item {
                Item::Statement(text) => outline.add(text, &mut self.sheet.text),
                Item::Block { prelude, body } => nested.push((trim_start(prelude), body)),
            }
        }
        self.sheet.has_containers |= outline.contains;
        // Most rules end here, their selectors unread.
        if !outline.tells && nested.is_empty() {
            return;
        }
        let declared = match outline.at_once {
            true => Declared::Read(Box::new(Block::of(&self.sheet.text[start..], options))),
            false => Declared::Unread(start as u32..self.sheet.text.len() as u32),
        };
        if outline.at_once {
            self.sheet.text.truncate(start);
        }
        let rules = self.sheet.rules.len();
        if nested.is_empty() && context.parents.is_none() && self.add_unread(prelude, context) {
            if self.sheet.rules.len() > rules {
                self.sheet.blocks.push(declared);
            }
            return;
        }
        let prelude = match context.scoped {
            true => Cow::Owned(prelude.replace(":scope", "&")),
            false => Cow::Borrowed(prelude),
        };
        let selectors = selector_text::parse(&prelude, context.parents.as_ref());
        if nested.is_empty() || selectors.is_empty() {
            self.add(selectors, declared, context);
            return;
        }
        let parents: Arc<[Selector]> = selectors.clone().into();
        self.add(selectors, declared, context);
        let inner = Context { parents: Some(parents), ..context.clone() };
        for (prelude, body) in nested {
            self.block(prelude, body, &inner, options);
        }
    }

    fn add(&mut self, selectors: Vec<Selector>, declared: Declared, context: &Context) {
        if declared.is_empty() {
            return;
        }
        let rules = self.sheet.rules.len();
        for selector in selectors.into_iter().filter(|selector| !selector.is_void()) {
            self.sheet.add(Selecting::Read(Box::new(selector)), context);
        }
        if self.sheet.rules.len() > rules {
            self.sheet.blocks.push(declared);
        }
    }

    /// Adds selectors for the next block if all of them are plain, none of them read.
    fn add_unread(&mut self, prelude: &str, context: &Context) -> bool {
        let (rules, text) = (self.sheet.rules.len(), self.sheet.text.len());
        self.sheet.text.push_str(prelude);
        let plain = plain_selector::each(prelude, |place, key| {
            let place = (text + place.start) as u32..(text + place.end) as u32;
            self.sheet.add(Selecting::Unread(place, key), context);
        });
        if !plain {
            self.sheet.rules.truncate(rules);
            self.sheet.text.truncate(text);
        }
        plain
    }

    fn keyframes(&mut self, name: &str, body: &str, options: &Options) {
        let name = name.trim().trim_matches(['"', '\'']);
        let mut images = Vec::new();
        for frame in items(body) {
            let Item::Block { body, .. } = frame else { continue };
            for declaration in Block::of(body, options).declarations {
                if let (Value::Images(urls), Some(fetched)) =
                    (declaration.value, declaration.property.fetched())
                {
                    images.extend(urls.into_iter().map(|url| (url, fetched)));
                }
            }
        }
        if !images.is_empty() && self.sheet.keyframes.len() < MAX_RULES {
            self.sheet.keyframes.push(Keyframes { name: name.into(), images: images.into() });
        }
    }

    fn property(&mut self, name: &str, body: &str) {
        for item in items(body) {
            if let Item::Statement(text) = item
                && let Some((descriptor, text, _)) = value::split(text)
                && descriptor.eq_ignore_ascii_case("initial-value")
                && self.sheet.initial.len() < MAX_RULES
            {
                self.sheet.initial.push((name.into(), text.into()));
            }
        }
    }
}

/// Lower-case name of an at-rule, and what follows it.
fn at_rule(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('@')?;
    let end =
        text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))).unwrap_or(text.len());
    Some((text[..end].to_ascii_lowercase(), &text[end..]))
}

/// The text within parentheses.
fn parenthesized<'i>(input: &mut Parser<'i, '_>) -> Option<&'i str> {
    input.expect_parenthesis_block().ok()?;
    let text = input.parse_nested_block(|input| {
        let start = input.position();
        while input.next().is_ok() {}
        Ok::<_, cssparser::ParseError<'i, ()>>(input.slice_from(start))
    });
    text.ok()
}

/// The text within the parentheses of function `name`.
fn function<'i>(input: &mut Parser<'i, '_>, name: &str) -> value::Fallible<'i, &'i str> {
    input.expect_function_matching(name)?;
    input.parse_nested_block(|input| {
        let start = input.position();
        while input.next().is_ok() {}
        Ok(input.slice_from(start))
    })
}

/// `@container name? (condition)`: sizes as if the container were as wide as the screen; queries of styles hold.
fn container_may_hold(prelude: &str, options: &Options) -> bool {
    let condition = prelude.find('(').map_or("", |at| &prelude[at..]);
    let negated = prelude.trim_start().starts_with("not");
    // CSS Containment 3, §4.1; as in a page that is written from left to right.
    let condition =
        condition.to_ascii_lowercase().replace("inline-size", "width").replace("block-size", "height");
    prelude.contains("style(") || media::matches(&condition, &options.viewport) != negated
}

#[cfg(test)]
mod tests {
    use super::super::block::{Custom, LONGEST_PLAIN, MAX_PLAIN};
    use super::*;
    use crate::style::cut::Cutter;

    fn read(text: &str) -> Sheet {
        let mut reader = Reader::new(0, None);
        let mut cutter = Cutter::new();
        cutter.push(text);
        while let Some(item) = cutter.next(true) {
            reader.item(item, &Options::default());
        }
        reader.sheet
    }

    fn imports(text: &str) -> Vec<(String, bool, Option<String>)> {
        let told = |import: Import| {
            (import.url.into_string(), import.applies, import.layer.map(|layer| layer.to_string()))
        };
        read(text).imports.into_iter().map(told).collect()
    }

    #[test]
    fn imports_stand_first_and_carry_their_conditions() {
        let plain = |url: &str| vec![(url.to_owned(), true, None)];
        assert_eq!(imports("@import 'a.css';"), plain("a.css"));
        assert_eq!(imports("@charset \"utf-8\";/*c*/@IMPORT url( a.css ) screen;"), plain("a.css"));
        assert_eq!(
            imports("@import url(\"a.css\") supports(display: grid) (min-width:1px);"),
            plain("a.css")
        );
        assert_eq!(imports("@import 'a.css' print;"), [("a.css".to_owned(), false, None)]);
        assert_eq!(imports("@import 'a.css' supports(-moz-x: y);"), []);
        assert_eq!(imports("a{}@import 'a.css';"), []);
        assert_eq!(imports("@font-face{}@import 'a.css';"), []);
        assert_eq!(
            imports("@layer x;@import 'a.css' layer(y.z);"),
            [("a.css".to_owned(), true, Some("y.z".to_owned()))]
        );
        assert_eq!(imports("@import 'a.css'").len(), 1, "the end of the sheet ends it");
    }

    /// What the first rule sets.
    fn custom(sheet: &Sheet) -> &[Custom] {
        match &sheet.blocks[0] {
            Declared::Read(block) => &block.custom,
            Declared::Unread(_) => panic!("custom properties are read at once"),
        }
    }

    #[test]
    fn rules_that_fetch_nothing_are_not_kept() {
        let sheet = read(
            "a{color:red;margin:0}b{background:url(b)}c:hover{background:url(c)}d::selection{background:url(d)}",
        );
        assert_eq!(sheet.rules.len(), 1);
        assert_eq!(sheet.blocks.len(), 1);
        let sheet = read(":root{--color:#fff;--gap:1.5rem;--icon:url(x)}");
        assert_eq!(custom(&sheet).len(), 3);
        let many: String = (0..5000).map(|at| format!("--c{at}:#fff;")).collect();
        let sheet = read(&format!(":root{{{many}--long:#{};--icon:url(x)}}", "f".repeat(LONGEST_PLAIN)));
        assert_eq!(custom(&sheet).len(), MAX_PLAIN + 1);
        assert_eq!(&*custom(&sheet)[MAX_PLAIN].name, "--icon");
    }

    #[test]
    fn rules_are_left_unread_where_no_other_rule_depends_on_them() {
        let cases = [
            ("a.b:after,i{color:red;background:url(x)}", "a.b:after,i|background:url(x)", true),
            (
                "p{display:none;fill:none;content:'a;}b' ;filter:blur(1px)}",
                "p|display:none;content:'a;}b' ",
                true,
            ),
            ("a:first-child{cursor:url(x)}", "|cursor:url(x)", false),
            ("a{&.b{cursor:url(x)}}", "|cursor:url(x)", false),
            ("a{--b:url(x)}", "a|", true),
            ("a{font-family:VAR(--b)}", "a|", true),
        ];
        for (text, expected, selectors) in cases {
            let sheet = read(text);
            let unread = |rule: &Rule| matches!(rule.selector, Selecting::Unread(..));
            assert!(sheet.rules.iter().all(|rule| unread(rule) == selectors), "{text}");
            let declared = match &sheet.blocks[0] {
                Declared::Read(_) => "",
                Declared::Unread(place) => &sheet.text[place.start as usize..place.end as usize],
            };
            let written = sheet.text.replacen(declared, "", usize::from(!declared.is_empty()));
            assert_eq!(format!("{written}|{declared}"), expected, "{text}");
        }
    }

    #[test]
    fn conditions_decide_what_counts() {
        let cases = [
            ("@media screen{a{background:url(x)}}", 1),
            ("@media print{a{background:url(x)}}", 0),
            (
                "@media print{a{background:url(x)}}@media screen{b{background:url(x)}}@media print{c{background:url(y)}}",
                1,
            ),
            ("@media (max-width:600px){a{background:url(x)}}", 0),
            ("@supports (display:grid){@media screen{a{background:url(x)}}}", 1),
            ("@supports not (display:grid){a{background:url(x)}}", 0),
            ("@layer a{a{background:url(x)}}", 1),
            ("@container (min-inline-size:300px){a{background:url(x)}}", 1),
            ("@container side (inline-size > 30em) and (BLOCK-SIZE > 1px){a{background:url(x)}}", 1),
            ("@container (inline-size < 300px){a{background:url(x)}}", 0),
            ("@media (min-inline-size:300px){a{background:url(x)}}", 0),
            ("a{&.b{background:url(x)}.c &{background:url(y)}}", 2),
            ("a{@media screen{background:url(x)}}", 1),
            ("a,b:-moz-x{background:url(x)}", 0),
            ("};a{background:url(x)}", 0),
            ("<!-- a{background:url(x)} -->", 1),
            ("@starting-style{a{background:url(x)}}", 0),
        ];
        for (text, rules) in cases {
            assert_eq!(read(text).rules.len(), rules, "{text}");
        }
    }

    #[test]
    fn nesting_bombs_are_bounded() {
        let bomb = format!("{}background:url(x)", "a,b,c,d{&,& &,&>&{".repeat(30));
        assert!(read(&bomb).rules.len() <= MAX_RULES);
        let many = format!("{}{{background:url(x)}}", "a,".repeat(100_000) + "b");
        assert!(read(&many).rules.len() <= MAX_RULES);
    }
}
