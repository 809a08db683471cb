//! Images of the mark-up: `<img>`, `<picture>`, `<input type=image>`, posters, SVG.

use super::attributes::Attributes;
use super::{Markup, Mention, hint, media_holds, srcset};
use crate::context::Context;
use crate::hint::{Destination, Mode, Source, Timing};
use crate::source_size;
use crate::types;

impl Markup {
    /// A `<source>` of the open `<picture>`.
    pub(super) fn picture_source<A: Attributes + ?Sized>(&mut self, attributes: &A, context: &Context) {
        if self.picture.is_some() {
            return;
        }
        let kind = attributes.keyword("type").unwrap_or_default();
        let Some(set) = attributes.value("srcset") else { return };
        if types::fits(Destination::Image, &kind, context.options.jpeg_xl) && media_holds(attributes, context)
        {
            self.picture = choose(set, attributes.value("sizes"), None, context).map(str::to_owned);
        }
    }

    pub(super) fn image<A: Attributes + ?Sized>(
        &mut self,
        mention: &Mention<'_, A>,
        in_picture: bool,
        context: &mut Context,
    ) {
        let attributes = mention.attributes;
        let from_picture = self.picture.take().filter(|_| in_picture);
        let image_set = in_picture || attributes.has("srcset");
        let source = if from_picture.is_some() { Source::Picture } else { Source::Image };
        let src = attributes.value("src").filter(|src| !src.trim().is_empty());
        let text = from_picture.as_deref().or_else(|| match attributes.value("srcset") {
            Some(set) => choose(set, attributes.value("sizes"), src, context),
            None => src,
        });
        let hint = text.and_then(|text| hint(mention, text, Destination::Image, source, context));
        let Some(mut hint) = hint else { return };
        if attributes.keyword("loading").as_deref() == Some("lazy") {
            hint.timing = Timing::Lazy;
        }
        hint.image_set = image_set;
        hint.below_fold = mention.below_fold;
        context.add(hint);
    }
}

/// What of a `srcset` this screen shows.
pub(super) fn choose<'a>(
    set: &'a str,
    sizes: Option<&str>,
    src: Option<&'a str>,
    context: &Context,
) -> Option<&'a str> {
    let viewport = &context.options.viewport;
    let slot = sizes.map_or(viewport.width, |sizes| source_size::evaluate(sizes, viewport));
    srcset::choose(set, src, slot, viewport.density)
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
    if let Some(mut hint) = hint {
        hint.mode = Mode::NoCors;
        hint.referrer_policy = context.policy;
        hint.below_fold = mention.below_fold;
        context.add(hint);
    }
}

/// `<image>` and `<feImage>` in SVG. A `<use>` of another file is left to the browser: it asks in mode `same-origin`,
/// which no hint says.
pub(crate) fn svg<A: Attributes + ?Sized>(name: &str, mention: &Mention<'_, A>, context: &mut Context) {
    if matches!(name, "image" | "feimage") {
        let address = mention.attributes.value("href").or_else(|| mention.attributes.value("xlink:href"));
        plain(mention, address, Source::Image, context);
    }
}
