//! Images of the mark-up: `<img>`, `<picture>`, `<input type=image>`, posters, SVG.

use super::attributes::Attributes;
use super::{Markup, Mention, Opens, hint, is_lazy, waits};
use crate::context::Context;
use crate::hint::{Destination, Hint, Mode, Source, Timing};
use crate::html::pixels;
use crate::screens::Offer;
use crate::source_size;
use crate::style::presented;
use crate::types;

/// Sources of one `<picture>` that are read.
const MAX_SOURCES: usize = 64;

impl Markup {
    /// A `<source>` of the open `<picture>`.
    pub(super) fn picture_source<A: Attributes + ?Sized>(&mut self, attributes: &A, context: &Context) {
        let kind = attributes.keyword("type").unwrap_or_default();
        let set = attributes.value("srcset");
        if set.is_some()
            && self.picture.len() < MAX_SOURCES
            && types::fits(Destination::Image, &kind, context.options.jpeg_xl)
        {
            let own = |name| attributes.value(name).map(str::to_owned);
            self.picture.push(Offer {
                media: own("media"),
                set: own("srcset"),
                sizes: own("sizes"),
                src: None,
            });
        }
    }

    pub(super) fn image<A: Attributes + ?Sized>(
        &mut self,
        mention: &Mention<'_, A>,
        in_picture: bool,
        context: &mut Context,
    ) -> Opens {
        let attributes = mention.attributes;
        let mut offers = std::mem::take(&mut self.picture);
        if !in_picture {
            offers.clear();
        }
        let sources = offers.len();
        let image_set = in_picture || attributes.has("srcset");
        let src = attributes.value("src").filter(|src| !src.trim().is_empty());
        let mut is_laid_out = false;
        let (from_picture, text) = if image_set {
            let own = |name| attributes.value(name).map(str::to_owned);
            let (set, sizes) = (own("srcset"), own("sizes"));
            offers.push(Offer { media: None, set, sizes, src: src.map(str::to_owned) });
            let screen = &context.options.viewport;
            let picked = offers.iter().enumerate().find_map(|(at, offer)| Some((at, offer.pick(screen)?)));
            is_laid_out = allows_auto(attributes) && picked.is_some_and(|(at, _)| offers[at].is_laid_out());
            if let Some((at, text)) = picked.filter(|_| is_laid_out) {
                // As wide as it says, unless styles have it otherwise: fetched where what the page assumes comes to the same.
                let width = attributes.value("width").and_then(pixels);
                if width.and_then(|width| offers[at].pick_at(width, screen)) != Some(text) {
                    return Opens::Nothing;
                }
            }
            picked.map_or((false, None), |(at, text)| (at < sources, Some(text)))
        } else {
            (false, src)
        };
        let source = if from_picture { Source::Picture } else { Source::Image };
        let hint = text.and_then(|text| hint(mention, text, Destination::Image, source, context));
        let Some(mut hint) = hint else { return Opens::Nothing };
        hint.image_set = image_set;
        hint.below_fold = mention.below_fold;
        let waits = waits(attributes, context);
        if waits {
            hint.timing = Timing::Lazy;
        }
        // What of it is shown tells nothing of the screen where the layout decides.
        if image_set && !is_laid_out {
            self.screens.offered(offers, &hint);
        }
        if waits {
            return Opens::Lazy(Box::new(hint));
        }
        context.add(hint);
        Opens::Nothing
    }
}

/// HTML, "an img element allows auto-sizes".
fn allows_auto<A: Attributes + ?Sized>(attributes: &A) -> bool {
    is_lazy(attributes) && attributes.value("sizes").is_some_and(source_size::is_auto)
}

pub(super) fn input<A: Attributes + ?Sized>(mention: &Mention<'_, A>, context: &mut Context) {
    if mention.attributes.keyword("type").as_deref() == Some("image") {
        plain(mention, mention.attributes.value("src"), Source::InputImage, context);
    }
}

/// An image of an element that has no CORS attribute.
pub(super) fn plain<A: Attributes + ?Sized>(
    mention: &Mention<'_, A>,
    text: Option<&str>,
    source: Source,
    context: &mut Context,
) {
    let hint = text.and_then(|text| hint(mention, text, Destination::Image, source, context));
    if let Some(hint) = hint {
        add(Hint { mode: Mode::NoCors, ..hint }, mention, context);
    }
}

/// HTML has it without CORS; what browsers make of `crossorigin` is theirs.
pub(super) fn poster<A: Attributes + ?Sized>(mention: &Mention<'_, A>, context: &mut Context) {
    let text = mention.attributes.value("poster");
    if let Some(hint) = text.and_then(|text| hint(mention, text, Destination::Image, Source::Poster, context))
    {
        add(hint, mention, context);
    }
}

/// An image of an element that has no referrer policy of its own.
fn add<A: Attributes + ?Sized>(hint: Hint, mention: &Mention<'_, A>, context: &mut Context) {
    let referrer_policy = context.policy;
    context.add(Hint { referrer_policy, below_fold: mention.below_fold, ..hint });
}

/// `<image>`, `<feImage>` and `<script>` in SVG, and `<use>` of a part of another SVG file.
pub(crate) fn svg<A: Attributes + ?Sized>(name: &str, mention: &Mention<'_, A>, context: &mut Context) {
    let address = || mention.attributes.value("href").or_else(|| mention.attributes.value("xlink:href"));
    match name {
        "image" | "feimage" => plain(mention, address(), Source::Image, context),
        "use" => part(mention, address(), context),
        "script" => script(mention, address(), context),
        _ => {}
    }
}

/// SVG 2, §15.7.
fn script<A: Attributes + ?Sized>(mention: &Mention<'_, A>, text: Option<&str>, context: &mut Context) {
    let kind = mention.attributes.keyword("type").unwrap_or_default();
    let hint = text.and_then(|text| hint(mention, text, Destination::Script, Source::Script, context));
    if let Some(hint) = hint.filter(|_| types::is_classic_script(&kind)) {
        context.add(Hint { timing: Timing::Blocking, ..hint });
    }
}

/// A part of another file, of the document's own origin (SVG 2, §16.1.3).
fn part<A: Attributes + ?Sized>(mention: &Mention<'_, A>, text: Option<&str>, context: &mut Context) {
    let Some(text) = text.filter(|text| text.contains('#')) else { return };
    let Some(hint) = hint(mention, text, Destination::Image, Source::Use, context) else { return };
    if hint.url.path().to_ascii_lowercase().ends_with(".svg") {
        add_part(Hint { mode: Mode::SameOrigin, ..hint }, mention, context);
    }
}

fn add_part<A: Attributes + ?Sized>(hint: Hint, mention: &Mention<'_, A>, context: &mut Context) {
    if hint.mode != Mode::SameOrigin || hint.url.origin() == context.document.origin() {
        add(hint, mention, context);
    }
}

/// Parts of other files in an SVG element's presentation attributes (`fill="url(colors.svg#red)"`).
pub(crate) fn svg_references<'a, A: Attributes + ?Sized>(
    attributes: impl Iterator<Item = (&'a str, &'a str)>,
    mention: &Mention<'_, A>,
    context: &mut Context,
) {
    for (name, value) in attributes.filter(|(_, value)| value.starts_with("url(")) {
        for (text, fetched) in presented(name, value, &context.options) {
            if let Some(hint) = hint(mention, &text, Destination::Image, Source::RulePart, context) {
                add_part(Hint { mode: fetched.mode(), ..hint }, mention, context);
            }
        }
    }
}
