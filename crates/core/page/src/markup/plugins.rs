//! `<object>` and `<embed>`: images and documents that stand in a page by other elements than their own (HTML, §4.8.6 and
//! §4.8.7). What is neither is for plug-ins.

use super::attributes::Attributes;
use super::{Mention, hint};
use crate::context::Context;
use crate::hint::{Destination, Mode, Source};
use crate::types;

/// Extensions from which browsers conclude on an image, where no type is given.
const IMAGES: [&str; 9] = ["avif", "bmp", "gif", "ico", "jfif", "jpeg", "jpg", "png", "webp"];
/// And on a document; one without any is asked what it is.
const DOCUMENTS: [&str; 6] = ["", "htm", "html", "svg", "xht", "xhtml"];

pub(super) fn object<A: Attributes + ?Sized>(mention: &Mention<'_, A>, context: &mut Context) {
    if !mention.attributes.has("classid") {
        shown(mention, "data", Destination::Object, Source::Object, context);
    }
}

pub(super) fn embed<A: Attributes + ?Sized>(mention: &Mention<'_, A>, context: &mut Context) {
    shown(mention, "src", Destination::Embed, Source::Embed, context);
}

fn shown<A: Attributes + ?Sized>(
    mention: &Mention<'_, A>,
    attribute: &str,
    as_image: Destination,
    source: Source,
    context: &mut Context,
) {
    let Some(text) = mention.attributes.value(attribute) else { return };
    let Some(mut hint) = hint(mention, text, as_image, source, context) else { return };
    // Browsers do not load a document into itself.
    if hint.url.as_str() == context.document.as_str().split('#').next().unwrap_or_default() {
        return;
    }
    let kind = mention.attributes.keyword("type").unwrap_or_default();
    let file = hint.url.path().rsplit('/').next().unwrap_or_default();
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    hint.destination = match kind.split(';').next().unwrap_or_default().trim() {
        "" if IMAGES.contains(&&*extension) => as_image,
        "" if DOCUMENTS.contains(&&*extension) => Destination::Frame,
        // To plug-in elements SVG is a document.
        "image/svg+xml" | "text/html" | "application/xhtml+xml" => Destination::Frame,
        kind if kind.starts_with("image/")
            && types::fits(Destination::Image, kind, context.options.jpeg_xl) =>
        {
            as_image
        }
        _ => return,
    };
    hint.mode = Mode::NoCors;
    hint.referrer_policy = context.policy;
    hint.below_fold = mention.below_fold;
    context.add(hint);
}
