//! Styles elements in document order: what each shows, inherits and needs.

use super::blocks::SourceId;
use super::browser_font::BrowserFont;
use super::cascade::{Cascade, Winners};
use super::characters::Characters;
use super::fonts::{Font, FontId, Fonts};
use super::matching::{Matcher, Shape};
use super::selector::Target;
use super::sheet::Keyframes;
use super::texts::Texts;
use super::value::{self, Fetched, Property, Value};
use super::variables::Variables;
use crate::hint::Mode;
use crate::html::unescape;
use crate::options::Options;
use crate::steps::Steps;
use crate::tree::{Element, NodeId, Tree};
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Steps of matching that styling an element is worth, matching apart.
const STYLING: usize = 32;

/// Pseudo-elements that can need something; the first three exist only with `content`.
const PSEUDO: [Target; 6] = [
    Target::Before,
    Target::After,
    Target::Marker,
    Target::FirstLine,
    Target::FirstLetter,
    Target::Placeholder,
];

/// What an element passes on to those within it.
#[derive(Debug, Clone, Copy)]
struct Inherited {
    /// `None`: `display: none`, here or above.
    font: Option<FontId>,
    /// Of its first letter or line, where that has another one.
    first: Option<FontId>,
    variables: Option<u32>,
}

/// An image that the page shows.
#[derive(Debug)]
pub(super) struct Need {
    /// As written.
    pub(super) url: Box<str>,
    pub(super) source: SourceId,
    pub(super) fetched: Fetched,
    pub(super) below_fold: bool,
}

/// What the page was seen to need, each once.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// As written, by where that stands and how it is fetched.
    known: HashMap<(SourceId, Mode), HashSet<Box<str>, RandomState>, RandomState>,
    new: Vec<Need>,
    /// So often something was needed, known or not.
    count: usize,
}

impl Needs {
    /// Whether `text`, written in `source`, was not needed before to be fetched so.
    pub(super) fn is_new(&mut self, text: &str, source: SourceId, mode: Mode) -> bool {
        let known = self.known.entry((source, mode)).or_default();
        !known.contains(text) && known.insert(text.into())
    }

    /// What came since the last call.
    pub(super) fn take(&mut self) -> Vec<Need> {
        std::mem::take(&mut self.new)
    }
}

/// The styles of all elements so far.
#[derive(Debug)]
pub(super) struct Styling {
    inherited: Vec<Inherited>,
    pub(super) shape: Shape,
    texts: Texts,
    variables: Variables,
    pub(super) fonts: Fonts,
    pub(super) keyframes: HashMap<Box<str>, (Keyframes, SourceId)>,
    budget: Steps,
    /// The document is in quirks mode.
    pub(super) quirks: bool,
}

impl Styling {
    /// `budget`: for the whole page.
    pub(super) fn new(budget: Steps) -> Self {
        Styling {
            inherited: Vec::new(),
            shape: Shape::default(),
            texts: Texts::default(),
            variables: Variables::default(),
            fonts: Fonts::new(),
            keyframes: HashMap::new(),
            budget,
            quirks: false,
        }
    }

    /// Adds an initial value of a custom property.
    pub(super) fn initial(&mut self, name: Box<str>, text: Arc<str>) {
        self.variables.initial.insert(name, text);
    }

    /// `node` shows `text`.
    pub(super) fn text(&mut self, node: NodeId, text: &str, references: bool) {
        // What has been styled by then is styled anew when the first font comes.
        if !self.fonts.has_faces() {
            return self.texts.keep(node, text, references);
        }
        let characters = match references {
            true => Characters::of(&unescape(text)),
            false => Characters::of(text),
        };
        if characters.is_empty() {
            return;
        }
        if let Some(Inherited { font, first, .. }) = self.inherited.get(node.0 as usize) {
            font.iter().chain(first).for_each(|font| self.fonts.show(*font, &characters));
        }
        self.texts.add(node, &characters);
    }

    /// Forgets all styles: rules have changed.
    pub(super) fn restart(&mut self) {
        self.inherited.clear();
        self.variables.clear();
    }

    /// Styles the elements that are not yet, giving what they need. `winners` is only room for it.
    pub(super) fn run(
        &mut self,
        cascade: &Cascade,
        tree: &Tree,
        options: &Options,
        winners: &mut Winners,
        needs: &mut Needs,
    ) {
        self.shape.extend(tree);
        if self.fonts.has_faces() {
            self.texts.read_kept();
        }
        for at in self.inherited.len()..tree.len() {
            let node = NodeId(at as u32);
            let element = tree.get(node);
            let parent = match element.parent() {
                Some(parent) => self.inherited[parent.0 as usize],
                None => Inherited { font: Some(Fonts::INITIAL), first: None, variables: None },
            };
            let Some(parent_font) = parent.font else {
                // Nothing within what is not displayed is styled at all.
                self.inherited.push(Inherited { first: None, ..parent });
                continue;
            };
            let texts = &self.texts;
            let matcher = Matcher {
                tree,
                shape: &self.shape,
                with_text: &|node| texts.has(node),
                quirks: self.quirks,
                budget: &self.budget,
            };
            if !matcher.pay_for(STYLING) {
                self.inherited.push(Inherited { first: None, ..parent });
                continue;
            }
            cascade.collect(&matcher, node, options, winners);
            let needed = needs.count;
            let mut one = One { cascade, options, element, winners: &*winners, needs: &mut *needs };
            let own = one.style(self, parent.variables, parent_font);
            self.inherited.push(own);
            self.pay_for((needs.count - needed) * STYLING);
            if let Some(font) = own.font {
                if let Some(characters) = self.texts.of(node).filter(|own| !own.is_empty()) {
                    [Some(font), own.first]
                        .iter()
                        .flatten()
                        .for_each(|font| self.fonts.show(*font, &characters));
                }
                if let Some(text) = drawn_by_itself(element) {
                    self.show_text(font, text);
                }
            }
        }
    }

    /// Whether `node` is displayed; `None` if it is not styled yet.
    pub(super) fn displays(&self, node: NodeId) -> Option<bool> {
        self.inherited.get(node.0 as usize).map(|own| own.font.is_some())
    }

    /// Pays for work beside matching, in steps of that; false once the budget is spent.
    pub(super) fn pay_for(&self, steps: usize) -> bool {
        self.budget.pay(steps)
    }

    fn show_text(&mut self, font: FontId, text: &str) {
        self.fonts.show(font, &Characters::of(text));
    }
}

/// Text of controls, which stands in attributes. `None` of those that have no line for any.
fn drawn_by_itself<'t>(element: Element<'t>) -> Option<&'t str> {
    match element.name() {
        "input" | "textarea" => {}
        "select" => return Some(""),
        _ => return None,
    }
    let kind = element.attribute("type").unwrap_or("text").to_ascii_lowercase();
    match kind.as_str() {
        "hidden" | "checkbox" | "radio" | "range" | "color" | "image" => None,
        "submit" => Some(element.attribute("value").unwrap_or("Submit")),
        _ => {
            let filled = element.attribute("value").filter(|value| !value.is_empty());
            filled.or_else(|| element.attribute("placeholder")).or(Some(""))
        }
    }
}

/// One element while it is styled.
struct One<'a> {
    cascade: &'a Cascade,
    options: &'a Options,
    element: Element<'a>,
    winners: &'a Winners,
    needs: &'a mut Needs,
}

impl<'a> One<'a> {
    fn style(&mut self, styling: &mut Styling, variables: Option<u32>, parent: FontId) -> Inherited {
        // Of most elements no rule says anything.
        if self.winners.is_silent() {
            let shown = !self.element.hidden_itself();
            let font = shown.then(|| styling.fonts.plain(parent, BrowserFont::of(self.element.name())));
            return Inherited { font, first: None, variables };
        }
        let own = self.cascade.variables(self.winners, Target::Element);
        let variables = styling.variables.scope(variables, own);
        let display = self.value(styling, Target::Element, Property::Display, variables);
        let hidden = match display.as_ref().map(|(value, _)| &**value) {
            Some(Value::Hidden(hidden)) => *hidden,
            // Nothing said, `revert` and what is invalid leave it to the browser's own sheet.
            _ => self.element.hidden_itself(),
        };
        if hidden {
            return Inherited { font: None, first: None, variables };
        }
        let font = self.font(styling, Target::Element, parent, variables);
        self.images(styling, Target::Element, variables);
        self.content(styling, Target::Element, variables);
        let mut first = None;
        for target in PSEUDO {
            if self.winners.speaks_of(target) {
                let own = self.pseudo(styling, target, variables, font);
                if matches!(target, Target::FirstLine | Target::FirstLetter) {
                    first = own.or(first);
                }
            }
        }
        Inherited { font: Some(font), first, variables }
    }

    /// Gives its font, if it shows anything.
    fn pseudo(
        &mut self,
        styling: &mut Styling,
        target: Target,
        variables: Option<u32>,
        parent: FontId,
    ) -> Option<FontId> {
        let own = self.cascade.variables(self.winners, target);
        let variables = styling.variables.scope(variables, own);
        let display = self.value(styling, target, Property::Display, variables);
        if display.is_some_and(|(value, _)| *value == Value::Hidden(true)) {
            return None;
        }
        let text = self.content(styling, target, variables);
        if matches!(target, Target::Before | Target::After) && text.is_none() {
            return None;
        }
        self.images(styling, target, variables);
        let font = self.font(styling, target, parent, variables);
        if let Some(text) = text {
            styling.show_text(font, &text);
        }
        Some(font)
    }

    /// The winning value, variables replaced. `Initial` where that fails. Of most properties nothing is said.
    #[inline]
    fn value(
        &self,
        styling: &Styling,
        target: Target,
        property: Property,
        variables: Option<u32>,
    ) -> Option<(Cow<'a, Value>, SourceId)> {
        self.winners.speaks_about(property).then(|| self.said(styling, target, property, variables))?
    }

    fn said(
        &self,
        styling: &Styling,
        target: Target,
        property: Property,
        variables: Option<u32>,
    ) -> Option<(Cow<'a, Value>, SourceId)> {
        let (value, source) = self.cascade.value(self.winners, target, property)?;
        let Value::Pending(pending) = value else { return Some((Cow::Borrowed(value), source)) };
        let mut found = None;
        if let Some(text) = styling.variables.replace(&pending.1, variables)
            && !value::has_variables(&text)
        {
            value::parse(
                &pending.0,
                value::longhands(&pending.0),
                text.trim(),
                self.options,
                |own, value| {
                    if own == property {
                        found = Some(value);
                    }
                },
            );
        }
        // Invalid at computed-value time: as `unset` (CSS Variables 1, §3.1).
        let inherits = matches!(property, Property::FontFamily | Property::FontWeight | Property::FontStyle);
        let unset = if inherits { Value::Inherit } else { Value::Initial };
        Some((Cow::Owned(found.unwrap_or(unset)), source))
    }

    fn need(&mut self, url: &str, source: SourceId, fetched: Fetched) {
        self.needs.count += 1;
        if self.needs.is_new(url, source, fetched.mode()) {
            let below_fold = self.element.below_fold();
            self.needs.new.push(Need { url: url.into(), source, fetched, below_fold });
        }
    }

    fn images(&mut self, styling: &Styling, target: Target, variables: Option<u32>) {
        let winners = self.winners;
        for property in winners.properties(target) {
            if let Some(fetched) = property.fetched()
                && let Some((value, source)) = self.value(styling, target, property, variables)
                && let Value::Images(urls) = &*value
            {
                urls.iter().for_each(|url| self.need(url, source, fetched));
            }
        }
        if let Some((value, _)) = self.value(styling, target, Property::AnimationName, variables)
            && let Value::Animations(names) = &*value
        {
            for name in names {
                if let Some((keyframes, source)) = styling.keyframes.get(name) {
                    keyframes.images.iter().for_each(|(url, fetched)| self.need(url, *source, *fetched));
                }
            }
        }
    }

    /// The text that `content` draws; `None` if it makes no box.
    fn content(&mut self, styling: &Styling, target: Target, variables: Option<u32>) -> Option<String> {
        let (value, source) = self.value(styling, target, Property::Content, variables)?;
        let Value::Content(content) = &*value else { return None };
        if !content.shown {
            return None;
        }
        content.images.iter().for_each(|url| self.need(url, source, Fetched::Image));
        let mut text = content.text.to_string();
        for name in &content.attributes {
            text.push_str(self.element.attribute(name).unwrap_or_default());
        }
        Some(text)
    }

    fn font(&self, styling: &mut Styling, target: Target, parent: FontId, variables: Option<u32>) -> FontId {
        // As it is where rules say nothing of it.
        let plain = match target {
            Target::Element => styling.fonts.plain(parent, BrowserFont::of(self.element.name())),
            _ => parent,
        };
        const FONT: [Property; 3] = [Property::FontFamily, Property::FontWeight, Property::FontStyle];
        if !FONT.iter().any(|property| self.winners.speaks_about(*property)) {
            return plain;
        }
        let get =
            |property| self.value(styling, target, property, variables).map(|(value, _)| value.into_owned());
        let own = |property| match get(property) {
            Some(Value::Inherit) => Some(None),
            Some(value) => Some(Some(value)),
            None => None,
        };
        let (families, weight, italic) =
            (own(Property::FontFamily), own(Property::FontWeight), own(Property::FontStyle));
        if families.is_none() && weight.is_none() && italic.is_none() {
            return plain;
        }
        let (above, plain) = (styling.fonts.get(parent).clone(), styling.fonts.get(plain).clone());
        let font = Font {
            families: match families {
                Some(Some(Value::Families(families))) => families,
                Some(Some(_)) => [].into(),
                Some(None) => above.families,
                None => plain.families,
            },
            weight: match weight {
                Some(Some(Value::Weight(weight))) => weight.computed(above.weight),
                Some(Some(_)) => 400,
                Some(None) => above.weight,
                None => plain.weight,
            },
            italic: match italic {
                Some(Some(Value::Italic(italic))) => italic,
                Some(Some(_)) => false,
                Some(None) => above.italic,
                None => plain.italic,
            },
        };
        styling.fonts.number(font)
    }
}
