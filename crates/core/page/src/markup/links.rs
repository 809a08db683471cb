//! `<link>` and `Link` fields: stylesheets, preloads, manifests, icons.

use super::attributes::{Attributes, NoAttributes};
use super::icons::{self, IconLink};
use super::{Markup, Mention, Opens, SheetLink, check_module, hint, media_holds};
use crate::context::Context;
use crate::data_url::DataUrl;
use crate::decode::Charset;
use crate::hint::{Destination, Hint, Mode, Source, Timing};
use crate::screens::choose;
use crate::types;
use url::Url;

/// Icon links considered; a page that names more keeps the first.
const MAX_ICONS: usize = 32;

impl Markup {
    /// A link, of a response field if that names its source. Chromium looks for the manifest and for icons in the head alone (recorded).
    pub(super) fn link<A: Attributes + ?Sized>(
        &mut self,
        mention: &Mention<'_, A>,
        field: Option<Source>,
        in_head: bool,
        context: &mut Context,
    ) -> Opens {
        let attributes = mention.attributes;
        let rel = attributes.keyword("rel").unwrap_or_default();
        let named = |word: &str| rel.split_ascii_whitespace().any(|token| token == word);
        let source = |source: Source| field.unwrap_or(source);
        let mut sheet = None;
        // HTML has an alternative without a title ignored; Chromium fetches it all the same (recorded).
        let is_sheet = named("stylesheet") && !attributes.has("disabled");
        let alternate = named("alternate") || (is_sheet && field.is_none() && !self.is_preferred(attributes));
        if is_sheet {
            if let Some((text, charset)) = written(mention, alternate, context) {
                return Opens::Written(text, charset);
            }
            sheet = stylesheet(mention, alternate, source(Source::Stylesheet), context);
        }
        if named("preload") {
            sheet = preload(mention, source(Source::Preload), context).or(sheet);
        }
        if named("modulepreload") {
            module_preload(mention, source(Source::ModulePreload), context);
        }
        if named("prefetch") {
            prefetch(mention, source(Source::Prefetch), context);
        }
        if named("manifest") && in_head {
            manifest(mention, source(Source::Manifest), context);
        }
        if named("icon") && in_head {
            self.icon(mention, source(Source::Icon), context);
        }
        match sheet {
            // Chromium takes no stylesheets from fields, so a field's decides nothing about the page.
            Some(sheet) if field.is_none() => Opens::Sheet(sheet),
            _ => Opens::Nothing,
        }
    }

    fn icon<A: Attributes + ?Sized>(&mut self, mention: &Mention<'_, A>, source: Source, context: &Context) {
        if self.icon_is_given || self.icons.len() >= MAX_ICONS || !media_holds(mention.attributes, context) {
            return;
        }
        // An icon that is not fetched (`data:`) still keeps the browser from asking for /favicon.ico.
        let Some(href) = mention.attributes.value("href") else { return };
        let icon = hint(mention, href, Destination::Icon, source, context).map(|mut hint| {
            hint.mode = Mode::NoCors;
            hint.timing = Timing::Lazy;
            hint
        });
        self.icons.push(IconLink { sizes: mention.attributes.value("sizes").map(str::to_owned), icon });
    }

    /// The head has ended: the page's icon is known, or the default one will be asked for.
    pub(crate) fn settle_icon(&mut self, offset: u64, context: &mut Context) {
        if self.icon_is_given || !context.options.default_icon {
            return;
        }
        self.icon_is_given = true;
        // Windows icons have several sizes; of what stands in a `data:` URL it is not known.
        let has_all = |icon: &Option<Hint>| {
            icon.as_ref().is_none_or(|icon| icon.url.path().to_ascii_lowercase().ends_with(".ico"))
        };
        let chosen = icons::choose(std::mem::take(&mut self.icons), has_all);
        if !chosen.is_empty() {
            for (at, mut icon) in chosen.into_iter().flatten().enumerate() {
                if at > 0 {
                    icon.source = Source::OtherIcon;
                }
                context.add(icon);
            }
            return;
        }
        let mention = Mention { attributes: &NoAttributes, offset, below_fold: false, far: false };
        let Ok(default) = context.document.join("/favicon.ico") else { return };
        if let Some(mut hint) =
            hint(&mention, default.as_str(), Destination::Icon, Source::DefaultIcon, context)
        {
            hint.timing = Timing::Lazy;
            context.add(hint);
        }
    }

    /// Gives the icon that was named, if one was; a `Link` field alone decides nothing about the default.
    pub(crate) fn settle_named_icon(&mut self, context: &mut Context) {
        if !self.icons.is_empty() {
            self.settle_icon(0, context);
        }
    }
}

/// Whether an `onload` turns the link into a stylesheet for the screen: how pages load styles without blocking.
fn is_switched_on<A: Attributes + ?Sized>(attributes: &A) -> bool {
    attributes.value("onload").is_some_and(|script| {
        script.contains("stylesheet") || script.contains("media") // `this.rel=…`, `this.media='all'`
    })
}

fn stylesheet<A: Attributes + ?Sized>(
    mention: &Mention<'_, A>,
    alternate: bool,
    source: Source,
    context: &mut Context,
) -> Option<SheetLink> {
    let kind = mention.attributes.keyword("type").unwrap_or_default();
    if !matches!(kind.split(';').next().unwrap_or_default().trim(), "" | "text/css") {
        return None;
    }
    let href = mention.attributes.value("href")?;
    let mut hint = hint(mention, href, Destination::Style, source, context)?;
    // Browsers fetch an alternative and a stylesheet whose media does not match as well, with the lowest priority.
    hint.applies = !alternate && media_holds(mention.attributes, context);
    hint.timing = if hint.applies { Timing::Blocking } else { Timing::Lazy };
    let (url, blocking) = (hint.url.clone(), hint.applies);
    context.add(hint);
    Some(SheetLink { url, applies: blocking || is_switched_on(mention.attributes), blocking })
}

/// A stylesheet in a `data:` URL that holds for the screen: its text and what encoding that is in.
fn written<A: Attributes + ?Sized>(
    mention: &Mention<'_, A>,
    alternate: bool,
    context: &Context,
) -> Option<(String, Charset)> {
    let attributes = mention.attributes;
    let data = DataUrl::parse(attributes.value("href")?).filter(|data| data.kind == "text/css")?;
    let nonce = attributes.value("nonce").map(Into::into);
    let hint =
        Hint { nonce, ..Hint::new(data_base()?, Destination::Style, Mode::NoCors, Source::Stylesheet) };
    let applies = !alternate && media_holds(attributes, context);
    let allowed = context.policies.allow(&hint, &hint.url, false, &context.document);
    (applies && allowed).then(|| data.style(context.charset))
}

/// What a `data:` URL is as a base: nothing relative can be resolved against any.
pub(crate) fn data_base() -> Option<Url> {
    Url::parse("data:,").ok()
}

fn preload<A: Attributes + ?Sized>(
    mention: &Mention<'_, A>,
    source: Source,
    context: &mut Context,
) -> Option<SheetLink> {
    let attributes = mention.attributes;
    let destination = match attributes.keyword("as").as_deref() {
        Some("script") => Destination::Script,
        Some("style") => Destination::Style,
        Some("image") => Destination::Image,
        Some("font") => Destination::Font,
        Some("fetch") => Destination::Fetch,
        Some("track") => Destination::Track,
        _ => return None, // HTML, "translate a preload destination": nothing else is preloaded
    };
    let kind = attributes.keyword("type").unwrap_or_default();
    if !media_holds(attributes, context) || !types::fits(destination, &kind, context.options.jpeg_xl) {
        return None;
    }
    let href = attributes.value("href").filter(|href| !href.trim().is_empty());
    let text = match (destination, attributes.value("imagesrcset")) {
        (Destination::Image, Some(set)) => {
            choose(set, attributes.value("imagesizes"), href, &context.options.viewport)
        }
        _ => href,
    };
    let hint = hint(mention, text?, destination, source, context)?;
    let url = hint.url.clone();
    context.add(hint);
    let sheet = destination == Destination::Style && is_switched_on(attributes);
    sheet.then_some(SheetLink { url, applies: true, blocking: false })
}

fn module_preload<A: Attributes + ?Sized>(mention: &Mention<'_, A>, source: Source, context: &mut Context) {
    // HTML has `as` say what the module is for; Chromium fetches a script whatever it says (recorded).
    if !media_holds(mention.attributes, context) {
        return;
    }
    let Some(href) = mention.attributes.value("href") else { return };
    if let Some(mut hint) = hint(mention, href, Destination::Script, source, context) {
        hint.mode = mention.attributes.mode(Mode::Cors);
        check_module(mention.attributes, &mut hint, context);
        context.add(hint);
    }
}

/// Asked for when the page is there, for the next one. Chromium looks at neither `as` nor `media` (recorded).
fn prefetch<A: Attributes + ?Sized>(mention: &Mention<'_, A>, source: Source, context: &mut Context) {
    let Some(href) = mention.attributes.value("href").filter(|href| !href.trim().is_empty()) else { return };
    if let Some(mut hint) = hint(mention, href, Destination::Prefetch, source, context) {
        hint.timing = Timing::Lazy;
        context.add(hint);
    }
}

fn manifest<A: Attributes + ?Sized>(mention: &Mention<'_, A>, source: Source, context: &mut Context) {
    let Some(href) = mention.attributes.value("href") else { return };
    if let Some(mut hint) = hint(mention, href, Destination::Manifest, source, context) {
        // Web App Manifest, §"link type manifest": credentials only when asked for.
        hint.mode = match mention.attributes.mode(Mode::Cors) {
            Mode::CorsWithCredentials => Mode::CorsWithCredentials,
            _ => Mode::CorsAnonymous,
        };
        hint.timing = Timing::Lazy;
        context.add(hint);
    }
}
