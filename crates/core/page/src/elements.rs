//! From elements to hints: which attribute of which element a browser fetches, and how.
//! Holds what of the page's state that depends on: base URL, referrer policy, open `<picture>`, icons so far.

use crate::address;
use crate::attributes::Attributes;
use crate::collector::Collector;
use crate::hint::{Confidence, Destination, Hint, Initiator, Mode, ReferrerPolicy, Source, Timing};
use crate::icons::{self, IconLink};
use crate::media;
use crate::options::Options;
use crate::source_size;
use crate::srcset;
use crate::types;
use url::Url;

/// Icon links considered; a page that names more keeps the first.
const MAX_ICONS: usize = 32;

/// What has been learnt of one page so far.
#[derive(Debug)]
pub(crate) struct Page {
    document: Url,
    base: Url,
    base_is_set: bool,
    options: Options,
    policy: Option<ReferrerPolicy>,
    picture: Option<Picture>,
    icons: Vec<IconLink<Option<Hint>>>,
    icon_is_given: bool,
    /// Open `<template>` elements: nothing in them is fetched.
    pub(crate) templates: usize,
    collector: Collector,
}

/// An open `<picture>` and the first of its sources that fits.
#[derive(Debug, Default)]
struct Picture {
    chosen: Option<String>,
}

/// What every hint is made from.
struct Mention<'a> {
    attributes: &'a dyn Attributes,
    offset: u64,
}

impl Page {
    pub(crate) fn new(document: &Url, options: Options) -> Self {
        Page {
            document: document.clone(),
            base: document.clone(),
            base_is_set: false,
            policy: None,
            picture: None,
            icons: Vec::new(),
            icon_is_given: false,
            templates: 0,
            collector: Collector::new(options.max_hints),
            options,
        }
    }

    pub(crate) fn take_hints(&mut self) -> Vec<Hint> {
        self.collector.take()
    }

    /// An HTML element named `name` (lower case) whose tag starts at `offset`.
    pub(crate) fn element(&mut self, name: &str, attributes: &dyn Attributes, offset: u64) {
        let mention = Mention { attributes, offset };
        match name {
            "base" => self.set_base(attributes),
            "meta" => self.meta(attributes),
            "script" => self.script(&mention),
            "link" => self.link(&mention, false),
            "picture" => self.picture = Some(Picture::default()),
            "source" => self.picture_source(attributes),
            "img" | "image" => self.image(&mention),
            "input" => self.input(&mention),
            "video" => {
                let poster = attributes.value("poster");
                self.plain_image(&mention, poster, Source::Poster);
            }
            "body" => self.settle_icon(offset),
            _ => {}
        }
    }

    /// An `<image>` inside SVG.
    pub(crate) fn svg_image(&mut self, attributes: &dyn Attributes, offset: u64) {
        let address = attributes.value("href").or_else(|| attributes.value("xlink:href"));
        self.plain_image(&Mention { attributes, offset }, address, Source::Image);
    }

    pub(crate) fn picture_ended(&mut self) {
        self.picture = None;
    }

    /// A `Link` response field's entry; its parameters are read like attributes.
    pub(crate) fn link_field(&mut self, attributes: &dyn Attributes) {
        self.link(&Mention { attributes, offset: 0 }, true);
    }

    fn set_base(&mut self, attributes: &dyn Attributes) {
        // HTML, "document base URL": only the first base element with an href counts, even if it is invalid.
        let Some(href) = attributes.value("href").filter(|_| !self.base_is_set) else { return };
        self.base_is_set = true;
        match self.document.join(href.trim()) {
            Ok(url) if !matches!(url.scheme(), "data" | "javascript") => self.base = url,
            _ => {}
        }
    }

    fn meta(&mut self, attributes: &dyn Attributes) {
        if attributes.keyword("name").as_deref() == Some("referrer")
            && let Some(policy) = attributes.value("content").as_deref().and_then(ReferrerPolicy::from_meta)
        {
            self.policy = Some(policy);
        }
    }

    fn hint(
        &self,
        mention: &Mention<'_>,
        text: &str,
        destination: Destination,
        source: Source,
    ) -> Option<Hint> {
        let url = address::resolve(text, &self.base, &self.document, self.options.max_url)?;
        let own = mention.attributes.value("referrerpolicy").as_deref().and_then(ReferrerPolicy::from_token);
        Some(Hint {
            url,
            destination,
            mode: mention.attributes.mode(Mode::NoCors),
            source,
            timing: Timing::Async,
            priority: mention.attributes.fetch_priority(),
            applies: true,
            referrer_policy: own.or(self.policy),
            initiator: Initiator::Document,
            confidence: Confidence::Sure,
            below_fold: false,
            nonce: mention.attributes.value("nonce").filter(|nonce| !nonce.is_empty()).map(Into::into),
            integrity: mention.attributes.value("integrity").is_some_and(|value| !value.trim().is_empty()),
            order: 0, // set by the collector
            offset: mention.offset,
        })
    }

    fn script(&mut self, mention: &Mention<'_>) {
        let attributes = mention.attributes;
        let Some(src) = attributes.value("src") else { return };
        let kind = match attributes.keyword("type") {
            Some(kind) => kind,
            // HTML, "prepare the script element": an absent type with a language means text/LANGUAGE.
            None => match attributes.keyword("language").filter(|language| !language.is_empty()) {
                Some(language) => format!("text/{language}"),
                None => String::new(),
            },
        };
        let module = kind == "module";
        if !module && (!types::is_classic_script(&kind) || attributes.has("nomodule")) {
            return;
        }
        let source = if module { Source::ModuleScript } else { Source::Script };
        let Some(mut hint) = self.hint(mention, &src, Destination::Script, source) else { return };
        if module {
            hint.mode = attributes.mode(Mode::Cors);
        }
        hint.timing = match (attributes.has("async"), module || attributes.has("defer")) {
            (true, _) => Timing::Async,
            (false, true) => Timing::Deferred,
            (false, false) => Timing::Blocking,
        };
        self.collector.add(hint);
    }

    fn link(&mut self, mention: &Mention<'_>, field: bool) {
        let attributes = mention.attributes;
        let rel = attributes.keyword("rel").unwrap_or_default();
        let named = |word: &str| rel.split_ascii_whitespace().any(|token| token == word);
        let source = |source: Source| if field { Source::LinkField } else { source };
        if named("stylesheet") && !named("alternate") && !attributes.has("disabled") {
            self.stylesheet(mention, source(Source::Stylesheet));
        }
        if named("preload") {
            self.preload(mention, source(Source::Preload));
        }
        if named("modulepreload") {
            self.module_preload(mention, source(Source::ModulePreload));
        }
        if named("manifest") {
            self.manifest(mention, source(Source::Manifest));
        }
        if named("icon") {
            self.icon(mention, source(Source::Icon));
        }
    }

    fn media_holds(&self, attributes: &dyn Attributes) -> bool {
        attributes.value("media").is_none_or(|query| media::matches(&query, &self.options.viewport))
    }

    fn stylesheet(&mut self, mention: &Mention<'_>, source: Source) {
        let kind = mention.attributes.keyword("type").unwrap_or_default();
        if !matches!(kind.split(';').next().unwrap_or_default().trim(), "" | "text/css") {
            return;
        }
        let Some(href) = mention.attributes.value("href") else { return };
        let Some(mut hint) = self.hint(mention, &href, Destination::Style, source) else { return };
        // Browsers fetch a stylesheet whose media does not match as well, with the lowest priority.
        hint.applies = self.media_holds(mention.attributes);
        hint.timing = if hint.applies { Timing::Blocking } else { Timing::Lazy };
        self.collector.add(hint);
    }

    fn preload(&mut self, mention: &Mention<'_>, source: Source) {
        let attributes = mention.attributes;
        let destination = match attributes.keyword("as").as_deref() {
            Some("script") => Destination::Script,
            Some("style") => Destination::Style,
            Some("image") => Destination::Image,
            Some("font") => Destination::Font,
            Some("fetch") => Destination::Fetch,
            Some("track") => Destination::Track,
            _ => return, // HTML, "translate a preload destination": nothing else is preloaded
        };
        let kind = attributes.keyword("type").unwrap_or_default();
        if !self.media_holds(attributes) || !types::fits(destination, &kind, self.options.jpeg_xl) {
            return;
        }
        let href = attributes.value("href").filter(|href| !href.trim().is_empty());
        let text = match (destination, attributes.value("imagesrcset")) {
            (Destination::Image, Some(set)) => {
                self.choose(&set, attributes.value("imagesizes"), href.as_deref())
            }
            _ => href,
        };
        if let Some(hint) = text.and_then(|text| self.hint(mention, &text, destination, source)) {
            self.collector.add(hint);
        }
    }

    fn module_preload(&mut self, mention: &Mention<'_>, source: Source) {
        let script_like =
            mention.attributes.keyword("as").is_none_or(|kind| matches!(kind.as_str(), "" | "script"));
        if !script_like || !self.media_holds(mention.attributes) {
            return;
        }
        let Some(href) = mention.attributes.value("href") else { return };
        if let Some(mut hint) = self.hint(mention, &href, Destination::Script, source) {
            hint.mode = mention.attributes.mode(Mode::Cors);
            self.collector.add(hint);
        }
    }

    fn manifest(&mut self, mention: &Mention<'_>, source: Source) {
        let Some(href) = mention.attributes.value("href") else { return };
        if let Some(mut hint) = self.hint(mention, &href, Destination::Manifest, source) {
            // Web App Manifest, §"link type manifest": credentials only when asked for.
            hint.mode = match mention.attributes.mode(Mode::Cors) {
                Mode::CorsWithCredentials => Mode::CorsWithCredentials,
                _ => Mode::CorsAnonymous,
            };
            hint.timing = Timing::Lazy;
            self.collector.add(hint);
        }
    }

    fn icon(&mut self, mention: &Mention<'_>, source: Source) {
        if self.icon_is_given || self.icons.len() >= MAX_ICONS || !self.media_holds(mention.attributes) {
            return;
        }
        // An icon that is not fetched (`data:`) still keeps the browser from asking for /favicon.ico.
        let Some(href) = mention.attributes.value("href") else { return };
        let icon = self.hint(mention, &href, Destination::Icon, source).map(|mut hint| {
            hint.mode = Mode::NoCors;
            hint.timing = Timing::Lazy;
            hint
        });
        self.icons.push(IconLink { sizes: mention.attributes.value("sizes"), icon });
    }

    /// The head has ended: the page's icon is known, or the default one will be asked for.
    pub(crate) fn settle_icon(&mut self, offset: u64) {
        if self.icon_is_given || !self.options.default_icon {
            return;
        }
        self.icon_is_given = true;
        if let Some(chosen) = icons::choose(std::mem::take(&mut self.icons)) {
            if let Some(icon) = chosen {
                self.collector.add(icon);
            }
            return;
        }
        let mention = Mention { attributes: &NoAttributes, offset };
        let Ok(default) = self.document.join("/favicon.ico") else { return };
        if let Some(mut hint) = self.hint(&mention, default.as_str(), Destination::Icon, Source::DefaultIcon)
        {
            hint.timing = Timing::Lazy;
            self.collector.add(hint);
        }
    }

    /// Gives the icon that was named, if one was; a `Link` field alone decides nothing about the default.
    pub(crate) fn settle_named_icon(&mut self) {
        if !self.icons.is_empty() {
            self.settle_icon(0);
        }
    }

    fn choose(&self, set: &str, sizes: Option<String>, src: Option<&str>) -> Option<String> {
        let viewport = &self.options.viewport;
        let slot = sizes.map_or(viewport.width, |sizes| source_size::evaluate(&sizes, viewport));
        srcset::choose(set, src, slot, viewport.density).map(str::to_owned)
    }

    fn picture_source(&mut self, attributes: &dyn Attributes) {
        if self.picture.as_ref().is_none_or(|picture| picture.chosen.is_some()) {
            return;
        }
        let kind = attributes.keyword("type").unwrap_or_default();
        let Some(set) = attributes.value("srcset") else { return };
        if !types::fits(Destination::Image, &kind, self.options.jpeg_xl) || !self.media_holds(attributes) {
            return;
        }
        let chosen = self.choose(&set, attributes.value("sizes"), None);
        if let Some(picture) = &mut self.picture {
            picture.chosen = chosen;
        }
    }

    fn image(&mut self, mention: &Mention<'_>) {
        let attributes = mention.attributes;
        // Only the first image of a picture uses its sources.
        let from_picture = self.picture.take().and_then(|picture| picture.chosen);
        let source = if from_picture.is_some() { Source::Picture } else { Source::Image };
        let src = attributes.value("src").filter(|src| !src.trim().is_empty());
        let text = from_picture.or_else(|| match attributes.value("srcset") {
            Some(set) => self.choose(&set, attributes.value("sizes"), src.as_deref()),
            None => src,
        });
        let Some(mut hint) = text.and_then(|text| self.hint(mention, &text, Destination::Image, source))
        else {
            return;
        };
        if attributes.keyword("loading").as_deref() == Some("lazy") {
            hint.timing = Timing::Lazy;
        }
        self.collector.add(hint);
    }

    fn input(&mut self, mention: &Mention<'_>) {
        if mention.attributes.keyword("type").as_deref() == Some("image") {
            let src = mention.attributes.value("src");
            self.plain_image(mention, src, Source::InputImage);
        }
    }

    /// An image of an element that has no CORS attribute.
    fn plain_image(&mut self, mention: &Mention<'_>, text: Option<String>, source: Source) {
        let hint = text.and_then(|text| self.hint(mention, &text, Destination::Image, source));
        if let Some(mut hint) = hint {
            hint.mode = Mode::NoCors;
            hint.referrer_policy = self.policy;
            self.collector.add(hint);
        }
    }
}

/// For what no mark-up names.
struct NoAttributes;

impl Attributes for NoAttributes {
    fn value(&self, _: &str) -> Option<String> {
        None
    }
}
