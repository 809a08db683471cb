//! Images, backgrounds and frames that a script loads once they are near: their addresses stand in attributes of its own, where
//! browsers do not look (lazysizes, vanilla-lazyload, lozad, jQuery Lazy Load, WP Rocket). They are taken for lazy ones where the
//! element says that it is one of these; many pages keep other things under such names, as the large picture behind a small one.

use super::attributes::Attributes;
use super::{Markup, Mention, Opens, hint};
use crate::context::Context;
use crate::hint::{Confidence, Destination, Hint, Mode, Source, Timing};
use crate::html::pixels;
use crate::screens::Offer;
use crate::style::presented;
use crate::types;

/// What stands for `src`, `srcset` and `sizes`.
const SRC: [&str; 3] = ["data-lazy-src", "data-src", "data-original"];
const SET: [&str; 2] = ["data-lazy-srcset", "data-srcset"];
const SIZES: [&str; 3] = ["data-lazy-sizes", "data-sizes", "sizes"];

/// What stands for a background: an address, or `url()` of one.
const BACKGROUND: [&str; 3] = ["data-bg", "data-background-image", "data-background"];

/// Sources of one `<picture>` that are read.
const MAX_SOURCES: usize = 64;

/// Whether an image is one of these.
pub(crate) fn is_late<A: Attributes + ?Sized>(attributes: &A) -> bool {
    let said = |class: &str| class.contains("lazy") || class.contains("lozad");
    attributes.has(SRC[0]) || attributes.has(SET[0]) || attributes.value("class").is_some_and(said)
}

fn first<A: Attributes + ?Sized>(attributes: &A, names: &[&str]) -> Option<String> {
    let values = names.iter().filter_map(|name| attributes.value(name));
    values.map(str::trim).find(|value| !value.is_empty()).map(str::to_owned)
}

fn offer<A: Attributes + ?Sized>(attributes: &A) -> Offer {
    let media = attributes.value("media").map(str::to_owned);
    Offer { media, set: first(attributes, &SET), sizes: first(attributes, &SIZES), src: None }
}

/// The background that a script will give to an element.
pub(crate) fn background<A: Attributes + ?Sized>(mention: &Mention<'_, A>, context: &Context) -> Opens {
    let attributes = mention.attributes;
    let Some(text) = first(attributes, &BACKGROUND) else { return Opens::Nothing };
    // A fragment alone names a part of the page itself.
    if !context.options.scripting || !is_late(attributes) || text.starts_with('#') {
        return Opens::Nothing;
    }
    let written = presented("background-image", &text, &context.options).into_iter().next();
    let text = written.map_or(text, |(url, _)| url.into_string());
    let Some(hint) = hint(mention, &text, Destination::Image, Source::LateImage, context) else {
        return Opens::Nothing;
    };
    // As by a style of the document.
    Opens::Lazy(Box::new(Hint {
        mode: Mode::NoCors,
        referrer_policy: context.policy,
        below_fold: mention.below_fold,
        timing: Timing::Lazy,
        confidence: Confidence::Likely,
        ..hint
    }))
}

/// The address that a script will give to a frame, in place of none.
pub(super) fn frame<A: Attributes + ?Sized>(attributes: &A, context: &Context) -> Option<String> {
    let own = attributes.value("src").unwrap_or_default().trim();
    let is_free = own.is_empty() || context.resolve(own).is_none();
    let late = context.options.scripting && is_free && is_late(attributes);
    late.then(|| first(attributes, &SRC)).flatten()
}

impl Markup {
    /// A `<source>` of the open `<picture>`.
    pub(super) fn late_source<A: Attributes + ?Sized>(&mut self, attributes: &A, context: &Context) {
        let kind = attributes.keyword("type").unwrap_or_default();
        let offer = offer(attributes);
        if offer.set.is_some()
            && self.late.len() < MAX_SOURCES
            && types::fits(Destination::Image, &kind, context.options.jpeg_xl)
        {
            self.late.push(offer);
        }
    }

    /// What a script will load into this image, if it is as wide as it says where that matters.
    pub(super) fn late_image<A: Attributes + ?Sized>(
        &mut self,
        mention: &Mention<'_, A>,
        in_picture: bool,
        context: &Context,
    ) -> Option<Hint> {
        let attributes = mention.attributes;
        let mut offers = std::mem::take(&mut self.late);
        if !context.options.scripting || !is_late(attributes) {
            return None;
        }
        if !in_picture {
            offers.clear();
        }
        offers.push(Offer { media: None, src: first(attributes, &SRC), ..offer(attributes) });
        let screen = &context.options.viewport;
        let (offer, text) = offers.iter().find_map(|offer| Some((offer, offer.pick(screen)?)))?;
        if offer.is_laid_out() {
            let width = attributes.value("width").and_then(pixels)?;
            offer.pick_at(width, screen).filter(|fitting| *fitting == text)?;
        }
        let hint = hint(mention, text, Destination::Image, Source::LateImage, context)?;
        Some(Hint {
            image_set: offer.set.is_some(),
            below_fold: mention.below_fold,
            timing: Timing::Lazy,
            confidence: Confidence::Likely,
            ..hint
        })
    }
}
