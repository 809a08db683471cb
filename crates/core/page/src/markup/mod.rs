//! From elements to hints: which attribute of which element a browser fetches, and how.
//!
//! Not hinted, though browsers ask for it: `<audio src>` and `<video src>`, which are asked for in ranges that depend on
//! what is played, and objects that are neither images nor documents: what becomes of them depends on the browser's
//! plug-ins, and a whole file pushed for nothing may outweigh the page.

pub(crate) mod attributes;
mod icons;
mod images;
mod late;
pub(crate) mod link_field;
mod links;
mod plugins;
pub(crate) mod srcset;

use crate::context::Context;
use crate::decode::{Charset, charset_of};
use crate::hint::{Confidence, Destination, Hint, Mode, Policy, PolicyKind, ReferrerPolicy, Source, Timing};
use crate::html::Placed;
use crate::media;
use crate::sandbox::Sandbox;
use crate::screens::{Offer, Screens};
use crate::types;
use attributes::Attributes;
use icons::IconLink;
pub(crate) use images::{svg, svg_references};
pub(crate) use late::{background, is_late};
pub(crate) use links::data_base;
use url::Url;

/// Content security policies kept of one document.
const MAX_POLICIES: usize = 32;

/// State of the mark-up that hints depend on.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    /// The sources of the open `<picture>` in formats that are shown.
    picture: Vec<Offer>,
    /// Those that a script looks at.
    late: Vec<Offer>,
    pub(crate) screens: Screens,
    /// The title of the style sheets that hold: that of the first that has one (CSSOM, "preferred CSS style sheet set name").
    preferred: Option<Box<str>>,
    icons: Vec<IconLink<Option<Hint>>>,
    icon_is_given: bool,
    /// `<meta http-equiv=content-security-policy>`, not yet handed out.
    policies: Vec<Policy>,
    policy_count: usize,
}

/// What hints are made from.
pub(crate) struct Mention<'a, A: ?Sized> {
    pub(crate) attributes: &'a A,
    /// Where the tag starts.
    pub(crate) offset: u64,
    pub(crate) below_fold: bool,
    /// So far down that the browser does not ask for it yet if it is lazy.
    pub(crate) far: bool,
}

/// What an element is besides its hints: what follows it in the document is read by it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opens {
    Nothing,
    /// A stylesheet of the page, in a file.
    Sheet(SheetLink),
    /// A stylesheet in the element's text.
    Style {
        applies: bool,
    },
    /// A stylesheet of the page that holds for the screen, in a `data:` URL, and the encoding of its text.
    Written(String, Charset),
    /// A script in the element's text.
    Script(ScriptKind),
    /// The document's encoding, by `<meta>`.
    Charset(String),
    /// A document of its own in the `srcdoc` attribute, loaded as part of the page.
    Framed,
    /// A frame with the document of this URL.
    Frame(Url),
    /// An image or a frame that is fetched once it is displayed and near.
    Lazy(Box<Hint>),
}

/// A stylesheet that the page names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SheetLink {
    pub(crate) url: Url,
    /// Its media hold for the screen, or a script makes them hold as soon as it has loaded.
    pub(crate) applies: bool,
    /// Nothing is rendered before it.
    pub(crate) blocking: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptKind {
    Classic,
    Module,
    ImportMap,
}

impl Markup {
    fn style<A: Attributes + ?Sized>(&mut self, attributes: &A, context: &Context) -> Opens {
        // HTML, "update a style block": only these two types are CSS.
        match attributes.value("type").map(str::to_ascii_lowercase).as_deref() {
            None | Some("" | "text/css") => {
                let applies = self.is_preferred(attributes) && media_holds(attributes, context);
                Opens::Style { applies }
            }
            _ => Opens::Nothing,
        }
    }

    /// Whether a style sheet that is no alternative is of the set that holds: it has no title, or that of the first that has one.
    fn is_preferred<A: Attributes + ?Sized>(&mut self, attributes: &A) -> bool {
        match attributes.value("title").filter(|title| !title.is_empty()) {
            Some(title) => **self.preferred.get_or_insert_with(|| title.into()) == *title,
            None => true,
        }
    }

    /// An HTML element named `name` (lower case).
    pub(crate) fn element<A: Attributes + ?Sized>(
        &mut self,
        name: &str,
        mention: &Mention<'_, A>,
        place: &Placed,
        context: &mut Context,
    ) -> Opens {
        match name.as_bytes() {
            b"base" => {
                if let Some(href) = mention.attributes.value("href") {
                    context.set_base(href);
                }
            }
            b"meta" => return self.meta(mention.attributes, place, context),
            b"script" => return script(mention, place.in_head, context),
            b"style" => return self.style(mention.attributes, context),
            b"link" => return self.link(mention, None, place.in_head, context),
            b"picture" => {
                self.picture.clear();
                self.late.clear();
            }
            b"source" if place.in_picture => {
                self.picture_source(mention.attributes, context);
                self.late_source(mention.attributes, context);
            }
            b"img" | b"image" => {
                let late = self.late_image(mention, place.in_picture, context);
                return match (self.image(mention, place.in_picture, context), late) {
                    (Opens::Nothing, Some(late)) => Opens::Lazy(Box::new(late)),
                    (opens, _) => opens,
                };
            }
            b"input" => images::input(mention, context),
            b"video" => images::poster(mention, context),
            // HTML, §15.3.3 and §15.3.10: presentational hints.
            b"body" | b"table" | b"thead" | b"tbody" | b"tfoot" | b"tr" | b"td" | b"th" => {
                let background = mention.attributes.value("background").filter(|text| !text.is_empty());
                images::plain(mention, background, Source::Background, context);
            }
            b"object" => plugins::object(mention, context),
            b"embed" => plugins::embed(mention, context),
            b"iframe" if mention.attributes.has("srcdoc") => return framed(mention.attributes, context),
            b"iframe" => return frame(mention, Source::Frame, context),
            b"frame" => return frame(mention, Source::FramesetFrame, context),
            _ => {}
        }
        Opens::Nothing
    }

    /// A `Link` response field's entry; its parameters are read like attributes.
    fn link_field(&mut self, attributes: &impl Attributes, early: bool, context: &mut Context) {
        let source = if early { Source::EarlyHints } else { Source::LinkField };
        self.link(
            &Mention { attributes, offset: 0, below_fold: false, far: false },
            Some(source),
            true,
            context,
        );
    }

    /// Content security policies found since the last call.
    pub(crate) fn take_policies(&mut self) -> Vec<Policy> {
        std::mem::take(&mut self.policies)
    }

    fn say(&mut self, kind: PolicyKind, content: &str, context: &Context) {
        self.policy_count += 1;
        self.policies.push(Policy { kind, text: content.to_owned(), from: context.next_order() });
    }

    fn meta<A: Attributes + ?Sized>(
        &mut self,
        attributes: &A,
        place: &Placed,
        context: &mut Context,
    ) -> Opens {
        if let Some(label) = attributes.value("charset") {
            return Opens::Charset(label.to_owned());
        }
        let Some(content) = attributes.value("content") else { return Opens::Nothing };
        if attributes.keyword("name").as_deref() == Some("referrer")
            && let Some(policy) = ReferrerPolicy::from_markup(content)
            && context.policy.replace(policy) != Some(policy)
        {
            // Not among those that are counted: what is told of the page must not depend on how many others it has.
            let text = policy.as_str().to_owned();
            let said = Policy { kind: PolicyKind::Referrer, text, from: context.next_order() };
            self.policies.push(said);
        }
        match attributes.keyword("http-equiv").as_deref() {
            Some("content-type") => {
                if let Some(label) = charset_of(content) {
                    return Opens::Charset(label.to_owned());
                }
            }
            // HTML, "Content security policy state": nothing outside of the head.
            Some("content-security-policy") if place.in_head && self.policy_count < MAX_POLICIES => {
                context.policies.add_meta(content);
                self.say(PolicyKind::Content, content, context);
            }
            Some("accept-ch") if place.in_head && self.policy_count < MAX_POLICIES => {
                self.say(PolicyKind::ClientHints, content, context);
            }
            _ => {}
        }
        Opens::Nothing
    }
}

/// A hint for what `text` names, with the attributes that all fetching elements share.
fn hint<A: Attributes + ?Sized>(
    mention: &Mention<'_, A>,
    text: &str,
    destination: Destination,
    source: Source,
    context: &Context,
) -> Option<Hint> {
    let attributes = mention.attributes;
    let mut hint = context.hint(context.resolve(text)?, destination, source);
    hint.mode = attributes.mode(Mode::NoCors);
    hint.priority = attributes.fetch_priority();
    let own = attributes.value("referrerpolicy").and_then(ReferrerPolicy::from_markup);
    hint.referrer_policy = own.or(context.policy);
    hint.nonce = attributes.value("nonce").filter(|nonce| !nonce.is_empty()).map(Into::into);
    hint.integrity = attributes.value("integrity").filter(|value| !value.trim().is_empty()).map(Into::into);
    hint.charset = attributes.value("charset").map(Into::into);
    hint.offset = mention.offset;
    Some(hint)
}

fn media_holds<A: Attributes + ?Sized>(attributes: &A, context: &Context) -> bool {
    attributes.value("media").is_none_or(|query| media::matches(query, &context.options.viewport))
}

fn script<A: Attributes + ?Sized>(mention: &Mention<'_, A>, in_head: bool, context: &mut Context) -> Opens {
    let attributes = mention.attributes;
    let word = match attributes.keyword("type") {
        Some(word) => word,
        // HTML, "prepare the script element": an absent type with a language means text/LANGUAGE.
        None => match attributes.keyword("language").filter(|language| !language.is_empty()) {
            Some(language) => format!("text/{language}"),
            None => String::new(),
        },
    };
    let kind = match word.as_str() {
        "module" => ScriptKind::Module,
        "importmap" => ScriptKind::ImportMap,
        word if types::is_classic_script(word) && !attributes.has("nomodule") => ScriptKind::Classic,
        _ => return Opens::Nothing,
    };
    let Some(src) = attributes.value("src") else { return Opens::Script(kind) };
    let module = kind == ScriptKind::Module;
    let source = if module { Source::ModuleScript } else { Source::Script };
    if kind == ScriptKind::ImportMap {
        return Opens::Nothing;
    }
    let Some(mut hint) = hint(mention, src, Destination::Script, source, context) else {
        return Opens::Nothing;
    };
    if module {
        hint.mode = attributes.mode(Mode::Cors);
        check_module(attributes, &mut hint, context);
    }
    // HTML, "implicitly or explicitly render-blocking".
    let holds_up = in_head && blocks_rendering(attributes);
    hint.timing = match (attributes.has("async"), module || attributes.has("defer")) {
        _ if holds_up => Timing::Blocking,
        (true, _) => Timing::Async,
        (false, true) => Timing::Deferred,
        (false, false) => Timing::Blocking,
    };
    context.add(hint);
    Opens::Nothing
}

/// HTML, "resolve a module integrity metadata": what an element says of its module counts before what a map says.
fn check_module<A: Attributes + ?Sized>(attributes: &A, hint: &mut Hint, context: &Context) {
    if !attributes.has("integrity") {
        hint.integrity = context.import_map.integrity(&hint.url).map(Into::into);
    }
}

/// HTML, "blocking attributes".
fn blocks_rendering<A: Attributes + ?Sized>(attributes: &A) -> bool {
    let words = attributes.value("blocking").unwrap_or_default();
    words.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("render"))
}

/// Whether `sandbox` leaves a frame this.
pub(crate) fn allows<A: Attributes + ?Sized>(attributes: &A, what: &str) -> bool {
    let sandbox = attributes.value("sandbox");
    sandbox.is_none_or(|left| left.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(what)))
}

/// A `srcdoc` document asks like the page where it has its origin; any other is left to the browser.
fn framed<A: Attributes + ?Sized>(attributes: &A, context: &Context) -> Opens {
    let asks_alike = allows(attributes, "allow-same-origin") && !attributes.has("credentialless");
    if asks_alike && !waits(attributes, context) { Opens::Framed } else { Opens::Nothing }
}

fn frame<A: Attributes + ?Sized>(mention: &Mention<'_, A>, source: Source, context: &mut Context) -> Opens {
    let attributes = mention.attributes;
    let late = late::frame(attributes, context);
    let src = late.as_deref().or(attributes.value("src"));
    let hint = src.and_then(|src| hint(mention, src, Destination::Frame, source, context));
    let Some(mut hint) = hint else { return Opens::Nothing };
    // Browsers do not load a document into itself.
    if hint.url.as_str() == context.document.as_str().split('#').next().unwrap_or_default() {
        return Opens::Nothing;
    }
    hint.mode = Mode::NoCors;
    hint.below_fold = mention.below_fold;
    // What such a frame asks for goes without cookies, or with fields of its own (`Sec-Required-CSP`).
    let is_apart = attributes.has("credentialless") || attributes.has("csp");
    let sandbox = Sandbox {
        is_opaque: is_apart || !allows(attributes, "allow-same-origin"),
        is_scriptless: !allows(attributes, "allow-scripts") || !context.options.scripting,
    };
    context.sandboxes.note(&hint.url, sandbox);
    if is_apart {
        return Opens::Nothing;
    }
    if late.is_some() {
        hint.confidence = Confidence::Likely;
    }
    if late.is_some() || waits(attributes, context) {
        hint.timing = Timing::Lazy;
        return Opens::Lazy(Box::new(hint));
    }
    let url = hint.url.clone();
    context.add(hint);
    Opens::Frame(url)
}

/// Whether it is fetched once it is near (HTML, "will lazy load element steps").
fn waits<A: Attributes + ?Sized>(attributes: &A, context: &Context) -> bool {
    context.options.scripting && is_lazy(attributes)
}

/// HTML, "lazy loading attributes".
pub(crate) fn is_lazy<A: Attributes + ?Sized>(attributes: &A) -> bool {
    attributes.keyword("loading").as_deref() == Some("lazy")
}
