//! A document as its tokens come: each element to the tree, to the mark-up's hints and to the styles, each piece of
//! text to what it belongs to.

use crate::context::Context;
use crate::framed;
use crate::html::{
    Builder, Fold, Kind, Namespace, Placed, Start, StartTag, Token, pixels, raw_text, unescape,
};
use crate::markup::attributes::Attributes;
use crate::markup::{Markup, Mention, Opens, ScriptKind, background, is_late, is_lazy, svg, svg_references};
use crate::options::Options;
use crate::policy::{Inline, Judged};
use crate::scripts::{ScriptReader, Scripts};
use crate::sheets::Sheets;
use crate::style::SheetId;
use crate::tree::{NodeId, Tree};
use std::borrow::Cow;
use std::collections::HashMap;
use url::Url;

/// Frames remembered of one document.
const MOST_FRAMES: usize = 2_000;
/// Longest text that is held until its end, in bytes: of an import map, or of what a policy judges by its digest.
const MAX_HELD: usize = 256 * 1024;
/// What the elements of XHTML are named in.
const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// What the text within the innermost element is.
#[derive(Debug)]
enum Inside {
    /// Text of the page, or nothing of interest.
    Text,
    Script(Box<ScriptReader>),
    ImportMap(String),
    Style(SheetId),
    /// A policy judges it by its text.
    Judged(Box<Judging>),
}

/// Text that is one of the others if a policy allows it.
#[derive(Debug)]
struct Judging {
    kind: Inline,
    nonce: Option<String>,
    /// `None` where it is too long.
    text: Option<String>,
    inside: Inside,
}

/// What the tokenizer must know before the next token.
#[derive(Debug, Default)]
pub(crate) struct Next {
    pub(crate) raw_text: Option<&'static str>,
    pub(crate) foreign: bool,
    /// The document says its encoding.
    pub(crate) charset: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) context: Context,
    pub(crate) markup: Markup,
    pub(crate) scripts: Scripts,
    pub(crate) sheets: Sheets,
    pub(crate) tree: Tree,
    builder: Builder,
    fold: Fold,
    inside: Inside,
    /// Its frames by what they name, and the elements that they are, where there was room for them.
    frames: HashMap<Url, Vec<Option<NodeId>>>,
    /// It is XML, but no XHTML.
    foreign: bool,
}

impl Page {
    pub(crate) fn new(document: &Url, options: Options) -> Self {
        Page {
            tree: Tree::new(options.max_elements, options.max_element_bytes),
            builder: Builder::new(options.xml),
            sheets: Sheets::new(&options),
            fold: Fold::new(&options.viewport),
            inside: Inside::Text,
            frames: HashMap::new(),
            foreign: false,
            markup: Markup::default(),
            scripts: Scripts::default(),
            context: Context::new(document, options),
        }
    }

    /// It is now known whether the document is XML. To be said before its first token.
    pub(crate) fn answered(&mut self, xml: bool) {
        self.builder = Builder::new(xml);
        self.context.options.xml = xml;
    }

    /// The next token of the document.
    pub(crate) fn token(&mut self, token: Token<'_>) -> Next {
        let mut next = Next::default();
        if self.foreign {
            return next;
        }
        match token {
            Token::Start(tag) => self.start(&tag, &mut next),
            Token::End(name, offset) => self.end_tag(name, offset),
            Token::Text(text) => self.text(text, true),
            Token::Raw(text) => self.text(text, false),
        }
        next.foreign = self.context.options.xml || self.builder.is_foreign();
        next
    }

    /// The document is complete, `length` bytes long.
    pub(crate) fn end(&mut self, length: u64) {
        self.end_inside();
        self.markup.settle_icon(length, &mut self.context);
        self.sheets.styles.document_end(&self.tree);
        self.sheets.give(&self.tree, &mut self.context);
    }

    fn start(&mut self, tag: &StartTag<'_>, next: &mut Next) {
        let (attributes, kind) = (tag, Kind::of(tag.name));
        let xml = self.context.options.xml;
        if xml && self.tree.len() == 0 && (tag.name != "html" || attributes.value("xmlns") != Some(XHTML)) {
            self.foreign = true;
            return;
        }
        if tag.name == "noscript" && self.shows_noscript() {
            return;
        }
        let below_fold = self.fold.is_below();
        let start = Start {
            name: tag.name,
            kind,
            self_closing: tag.self_closing,
            shadow_root: tag.name == "template" && is_shadow_root(attributes),
            hidden: is_hidden(tag.name, attributes),
            below_fold,
            attributes: tag.attributes(),
        };
        let Some(placed) = self.builder.start(&mut self.tree, start) else { return };
        if placed.namespace == Namespace::Html && !xml {
            next.raw_text = raw_text(tag.name, kind);
        }
        if placed.inert {
            return;
        }
        // Not where a body is only implied: pages that leave out tags may name their icon anywhere.
        if tag.name == "body" {
            self.markup.settle_icon(tag.offset, &mut self.context);
            self.onload(tag);
        }
        let mention = Mention { attributes, offset: tag.offset, below_fold, far: self.fold.is_far() };
        let opens = match placed.namespace {
            Namespace::Html if !kind.is_telling() => background(&mention, &self.context),
            Namespace::Html => self.markup.element(tag.name, &mention, &placed, &mut self.context),
            Namespace::Svg if tag.name == "style" => Opens::Style { applies: true },
            Namespace::Svg => {
                svg(tag.name, &mention, &mut self.context);
                if placed.node.is_some_and(|node| !self.tree.get(node).hidden()) {
                    svg_references(tag.attributes(), &mention, &mut self.context);
                }
                Opens::Nothing
            }
            Namespace::MathMl => Opens::Nothing,
        };
        self.lay_out(tag, kind, &placed);
        match opens {
            // An XML declaration says it, or nothing.
            Opens::Charset(_) if xml => {}
            Opens::Charset(label) => next.charset = Some(label),
            // Without content it has no end tag either.
            Opens::Script(_) | Opens::Style { .. } if xml && tag.self_closing => {}
            Opens::Script(_) if !self.context.options.scripting => {}
            Opens::Script(ScriptKind::ImportMap) => {
                self.open(Inline::Script, attributes, |_, _| Inside::ImportMap(String::new()));
            }
            Opens::Script(kind) => {
                let module = kind == ScriptKind::Module;
                self.open(Inline::Script, attributes, |page, nonce| {
                    let reader = ScriptReader::inline(module, nonce, tag.offset, &page.context);
                    Inside::Script(Box::new(reader))
                });
            }
            Opens::Sheet(link) => {
                self.sheets.linked(link, placed.scope, &self.tree, &mut self.context);
            }
            Opens::Written(text, charset) => {
                self.sheets.written(&text, charset, placed.scope, &self.tree, &mut self.context);
            }
            Opens::Style { applies: true } => {
                self.open(Inline::Style, attributes, |page, _| {
                    Inside::Style(page.sheets.style(true, placed.scope, &page.tree, &page.context))
                });
            }
            Opens::Framed => framed::read(&mention, &mut self.context),
            Opens::Frame(url) if self.frames.len() < MOST_FRAMES => {
                self.frames.entry(url).or_default().push(placed.node);
            }
            Opens::Frame(_) => {}
            Opens::Lazy(hint) => self.sheets.lazy(placed.node, *hint, mention.far, &self.context),
            Opens::Nothing | Opens::Style { applies: false } => {}
        }
        if let (Some(node), Some(style)) = (placed.node, attributes.value("style")) {
            let Context { policies, base, charset, .. } = &self.context;
            if policies.allow_inline(Inline::StyleAttribute, None, style) {
                self.sheets.styles.inline(node, style, base, *charset);
            }
        }
        self.restyle();
    }

    /// What the script of a body's attribute names, as far as policies let it count: it runs with the page.
    fn onload(&mut self, tag: &StartTag<'_>) {
        let allowed = |text: &&str| {
            let policies = &self.context.policies;
            self.context.options.scripting && policies.allow_inline(Inline::ScriptAttribute, None, text)
        };
        if let Some(text) = tag.value("onload").filter(allowed) {
            let mut reader = ScriptReader::inline(false, None, tag.offset, &self.context);
            reader.feed(text, &mut self.scripts, &mut self.context);
            reader.end(&mut self.scripts, &mut self.context);
        }
    }

    /// An element holds inline text, which counts as far as policies let it.
    fn open(
        &mut self,
        kind: Inline,
        attributes: &StartTag<'_>,
        inside: impl FnOnce(&mut Self, Option<&str>) -> Inside,
    ) {
        let nonce = attributes.value("nonce");
        let judged = self.context.policies.judge(kind, nonce);
        if judged == Judged::Forbidden {
            return;
        }
        let inside = inside(self, nonce);
        self.inside = match judged {
            Judged::ByText => {
                let (nonce, text) = (nonce.map(str::to_owned), Some(String::new()));
                Inside::Judged(Box::new(Judging { kind, nonce, text, inside }))
            }
            _ => inside,
        };
    }

    /// Elements or texts came.
    fn restyle(&mut self) {
        self.sheets.styles.nodes(&self.tree);
        self.sheets.give(&self.tree, &mut self.context);
    }

    fn lay_out(&mut self, tag: &StartTag<'_>, kind: Kind, placed: &Placed) {
        if placed.node.is_some_and(|node| self.tree.get(node).hidden()) {
            return;
        }
        if !kind.is_box() {
            return self.fold.edge(kind);
        }
        let side = |side| tag.value(side).and_then(pixels);
        let is_lazy = || is_lazy(tag) || is_late(tag);
        if tag.name == "img" && side("width").or(side("height")).is_none() && is_lazy() {
            self.fold.unknown_lazy();
        }
        // An SVG without size is most often an icon in the text.
        if tag.name != "svg" && tag.name != "input" || side("width").is_some() {
            self.fold.image(side("width"), side("height"));
        }
    }

    /// Whether what stands in `<noscript>` is shown: as if it stood in its place without.
    fn shows_noscript(&self) -> bool {
        !self.context.options.scripting && !self.builder.is_foreign()
    }

    fn end_tag(&mut self, name: &str, offset: u64) {
        if name == "noscript" && self.shows_noscript() {
            return;
        }
        self.end_inside();
        let shown = self.builder.current().is_some_and(|node| !self.tree.get(node).hidden());
        let kind = Kind::of(name);
        if shown {
            self.fold.edge(kind);
        }
        if self.builder.end(name, kind) {
            self.markup.settle_icon(offset, &mut self.context);
        }
    }

    fn end_inside(&mut self) {
        if let Inside::Text = self.inside {
            return;
        }
        match std::mem::replace(&mut self.inside, Inside::Text) {
            Inside::Text => {}
            Inside::Script(mut reader) => reader.end(&mut self.scripts, &mut self.context),
            Inside::ImportMap(json) => self.context.import_map.merge(&json, &self.context.base),
            Inside::Style(sheet) => {
                self.sheets.styles.end(sheet, &self.tree);
                self.sheets.give(&self.tree, &mut self.context);
            }
            Inside::Judged(judging) => self.end_judged(*judging),
        }
    }

    fn end_judged(&mut self, judging: Judging) {
        let Judging { kind, nonce, text, inside } = judging;
        let policies = &self.context.policies;
        match text.filter(|text| policies.allow_inline(kind, nonce.as_deref(), text)) {
            Some(text) => {
                self.inside = inside;
                self.inner_text(&text);
                self.end_inside();
            }
            None => {
                if let Inside::Style(sheet) = inside {
                    self.sheets.styles.lost(sheet, &self.tree);
                    self.sheets.give(&self.tree, &mut self.context);
                }
            }
        }
    }

    /// A piece of text; with character references unless it is raw.
    fn text(&mut self, text: &str, references: bool) {
        if let Inside::Text = self.inside {
            return self.shown_text(text, references);
        }
        let text = if references { unescape(text) } else { Cow::Borrowed(text) };
        self.inner_text(&text);
    }

    /// Text of a script or style.
    fn inner_text(&mut self, text: &str) {
        match &mut self.inside {
            Inside::Script(reader) => reader.feed(text, &mut self.scripts, &mut self.context),
            Inside::ImportMap(json) => {
                if json.len() + text.len() <= MAX_HELD {
                    json.push_str(text);
                }
            }
            Inside::Style(sheet) => {
                self.sheets.styles.feed(*sheet, text);
                self.sheets.give(&self.tree, &mut self.context);
            }
            Inside::Judged(judging) => match &mut judging.text {
                Some(held) if held.len() + text.len() <= MAX_HELD => held.push_str(text),
                held => *held = None,
            },
            Inside::Text => {}
        }
    }

    /// Whether a frame with the document of `url` may be displayed, as far as is known by now: while a sheet is awaited, by its
    /// attributes.
    pub(crate) fn may_show_frame(&self, url: &Url) -> bool {
        let may_show = |node: NodeId| {
            let known = self.sheets.styles.displays(node, &self.tree);
            known.unwrap_or_else(|| !self.tree.get(node).hidden())
        };
        self.frames.get(url).is_none_or(|frames| frames.iter().any(|node| node.is_none_or(may_show)))
    }

    fn shown_text(&mut self, text: &str, references: bool) {
        let characters = no_blanks(text);
        if characters == 0 {
            return;
        }
        if references {
            self.builder.text(&mut self.tree);
        }
        let Some(node) = self.builder.current() else { return };
        if self.tree.get(node).hidden() {
            return;
        }
        self.fold.text(characters);
        self.sheets.styles.text(node, text, references);
    }
}

/// How many bytes of `text` are no blanks. Counted in pieces whose count fits a byte: a vector of them at a time.
fn no_blanks(text: &str) -> usize {
    let pieces = text.as_bytes().chunks(255);
    pieces.map(|piece| usize::from(piece.iter().map(|byte| u8::from(*byte > b' ')).sum::<u8>())).sum()
}

/// HTML, "shadowrootmode": of a `<template>`, any other value leaves it one.
fn is_shadow_root(attributes: &StartTag<'_>) -> bool {
    matches!(attributes.keyword("shadowrootmode").as_deref(), Some("open" | "closed"))
}

/// One is shown whether or not it could pop over (HTML, §15.3.1).
fn is_open_dialog(name: &str, attributes: &StartTag<'_>) -> bool {
    name == "dialog" && attributes.has("open")
}

/// Whether its attributes keep an element from being displayed (HTML, §15.3.1).
fn is_hidden(name: &str, attributes: &StartTag<'_>) -> bool {
    attributes.has("hidden")
        || ((name == "dialog" || attributes.has("popover")) && !is_open_dialog(name, attributes))
        || (name == "input" && attributes.keyword("type").as_deref() == Some("hidden"))
}
