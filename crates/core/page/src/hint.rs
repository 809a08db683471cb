//! What a page will need, as found: the URL and everything in the mark-up that shapes its request and its rank.
//! Facts only; no judgement on whether it is worth fetching.

use url::Url;

/// One resource that a browser will ask for because of something in the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Absolute `http` or `https` URL, without fragment.
    pub url: Url,
    /// What it will be used as (Fetch standard, request destination).
    pub destination: Destination,
    /// CORS mode and credentials.
    pub mode: Mode,
    /// Which mark-up names it.
    pub source: Source,
    /// When the browser needs it, as far as the mark-up says.
    pub timing: Timing,
    /// `fetchpriority`.
    pub priority: FetchPriority,
    /// Its `media` matches a screen of [`crate::Viewport`]; a stylesheet that does not is fetched last.
    pub applies: bool,
    /// `referrerpolicy` of the element, else the page's `<meta name=referrer>` seen so far. The document's
    /// `Referrer-Policy` field applies where this is `None`.
    pub referrer_policy: Option<ReferrerPolicy>,
    /// Who names it: decides `Referer` and what a content security policy says.
    pub initiator: Initiator,
    /// How sure it is that the browser will ask for it.
    pub confidence: Confidence,
    /// Stands below the first screenful, as far as the mark-up tells: ranked last of its kind.
    pub below_fold: bool,
    /// `nonce` of the element, which a content security policy may ask for.
    pub nonce: Option<Box<str>>,
    /// What its body is checked by (`integrity` of the element or of the import map), so that it must arrive exactly as
    /// the origin sent it.
    pub integrity: Option<Box<str>>,
    /// `charset` of the element, for a script or stylesheet whose response names none.
    pub charset: Option<Box<str>>,
    /// An image whose element has candidates to choose from (`srcset`, `<picture>`), whichever was chosen: to the
    /// browser a request of initiator `imageset` (HTML, "update the image data"), which Mixed Content §4.1 sets apart.
    pub image_set: bool,
    /// Of a font of a style sheet: its `format()`, in lower case.
    pub format: Option<Box<str>>,
    /// Running number in the order of discovery, from 0.
    pub order: u32,
    /// Where in the document's text (as UTF-8, in bytes) the naming tag starts; 0 for `Link` fields and for what files
    /// other than the document name.
    pub offset: u64,
}

impl Hint {
    /// A hint with nothing special about it, from the document's own mark-up.
    pub fn new(url: Url, destination: Destination, mode: Mode, source: Source) -> Self {
        Hint {
            url,
            destination,
            mode,
            source,
            timing: Timing::Async,
            priority: FetchPriority::Auto,
            applies: true,
            referrer_policy: None,
            initiator: Initiator::Document,
            confidence: Confidence::Sure,
            below_fold: false,
            nonce: None,
            integrity: None,
            charset: None,
            image_set: false,
            format: None,
            order: 0,
            offset: 0,
        }
    }
}

/// What the document's mark-up says for a field of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Which field it is.
    pub kind: PolicyKind,
    /// As the field would say it.
    pub text: String,
    /// The [`order`](Hint::order) of the first hint for which it holds: it does not concern what stands before it (Content
    /// Security Policy 3, §3.3).
    pub from: u32,
}

/// Fields of which [`Policy`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// `Content-Security-Policy`.
    Content,
    /// `Accept-CH`.
    ClientHints,
    /// `Referrer-Policy`: a hint of the document knows it itself, what its sheets and earlier visits name does not.
    Referrer,
}

/// What names a resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Initiator {
    /// The document itself, by its mark-up, its own styles and scripts, or `Link` fields.
    #[default]
    Document,
    /// The stylesheet at this URL (after redirects): its resources carry it as `Referer`.
    Sheet(Url),
    /// The module script at this URL (after redirects).
    Module(Url),
}

/// How sure it is that the browser will ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Confidence {
    /// A guess, such as a path in a script's text: fetched only while the budget for guesses allows.
    Guess,
    /// As sure as matching without running scripts can be.
    Likely,
    /// The mark-up demands it.
    #[default]
    Sure,
}

/// Request destination, as far as pages name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Classic or module script.
    Script,
    /// Stylesheet.
    Style,
    /// Image, icons excluded.
    Image,
    /// Web font.
    Font,
    /// The page's icon: fetched as an image, after everything else.
    Icon,
    /// Web application manifest.
    Manifest,
    /// A module that is data: `import … with {type: "json"}`.
    Json,
    /// Preloaded `as=fetch`.
    Fetch,
    /// Preloaded `as=track`.
    Track,
    /// What a worker runs. Mark-up does not name it: scripts do, and visits show it.
    Worker,
    /// What a worker runs that pages of its origin share.
    SharedWorker,
    /// What another page may need (`<link rel=prefetch>`), whatever it is.
    Prefetch,
    /// Document in an `iframe` or a `frame`, or in an `<object>` or `<embed>`.
    Frame,
    /// Image in an `<object>`.
    Object,
    /// Image in an `<embed>`.
    Embed,
}

/// Fetch mode and credentials mode together, as they occur in mark-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `no-cors`, credentials included.
    NoCors,
    /// `cors`, credentials for the same origin only (`crossorigin` or `crossorigin=anonymous`).
    Cors,
    /// `cors`, credentials included (`crossorigin=use-credentials`).
    CorsWithCredentials,
    /// `cors`, without credentials even to the same origin (manifests).
    CorsAnonymous,
    /// `same-origin`: nothing of another origin is fetched.
    SameOrigin,
}

/// The mark-up that named a resource, for accounting and ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// `<script src>`.
    Script,
    /// `<script type=module src>`.
    ModuleScript,
    /// `<link rel=stylesheet>`.
    Stylesheet,
    /// `<link rel=preload>`.
    Preload,
    /// `<link rel=modulepreload>`.
    ModulePreload,
    /// `<link rel=prefetch>`.
    Prefetch,
    /// `<link rel=icon>`.
    Icon,
    /// `<link rel=icon>`, in case one that comes first has not the size wanted.
    OtherIcon,
    /// `/favicon.ico`, since the page names no icon.
    DefaultIcon,
    /// `<link rel=manifest>`.
    Manifest,
    /// `<img src>` or `srcset`.
    Image,
    /// `<picture>`.
    Picture,
    /// `data-src` or `data-srcset` of an `<img>`, which a script loads once it is near.
    LateImage,
    /// `<input type=image src>`.
    InputImage,
    /// `<video poster>`.
    Poster,
    /// `background` of a body or a part of a table.
    Background,
    /// `<iframe src>`.
    Frame,
    /// `<frame src>` of a frameset.
    FramesetFrame,
    /// `<object data>`.
    Object,
    /// `<embed src>`.
    Embed,
    /// A part of another SVG file: `<use href>`.
    Use,
    /// A part of another SVG file that a style names, or an attribute such as `fill`: a clip, a filter, a marker.
    RulePart,
    /// `style` attribute.
    StyleAttribute,
    /// `url()` or `image-set()` of a rule that matches, in `<style>` or in a stylesheet.
    Rule,
    /// `@import`.
    Import,
    /// `@font-face` that the page's text needs.
    FontFace,
    /// `import` or `export … from` of a module.
    StaticImport,
    /// `import("…")` of a module.
    DynamicImport,
    /// A literal resource path in a script's text.
    Literal,
    /// The name of an image in a script's text, in the folder in which the browser has asked for others.
    Mention,
    /// A `Link` response field.
    LinkField,
    /// A `Link` field of a 103 response (RFC 8297).
    EarlyHints,
    /// What the user's earlier visits of the page have asked for.
    OwnVisits,
    /// What others' visits of the page have asked for.
    OthersVisits,
}

impl Source {
    /// Whether a script that is named so is a module, and its text UTF-8 whatever anyone says.
    pub(crate) fn is_module(self) -> bool {
        use Source::{DynamicImport, ModulePreload, ModuleScript, StaticImport};
        matches!(self, ModuleScript | ModulePreload | StaticImport | DynamicImport)
    }
}

/// How long the page can do without a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timing {
    /// Holds up parsing or rendering where it stands.
    Blocking,
    /// Wanted as soon as it is there (`async`, images, preloads).
    Async,
    /// Needed when the document is parsed (`defer`, modules).
    Deferred,
    /// `loading=lazy`: needed when scrolled near.
    Lazy,
}

/// The `fetchpriority` attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FetchPriority {
    /// `high`.
    High,
    /// Absent or `auto`.
    #[default]
    Auto,
    /// `low`.
    Low,
}

/// Referrer Policy, §3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // each variant is the policy's own name
pub enum ReferrerPolicy {
    NoReferrer,
    NoReferrerWhenDowngrade,
    SameOrigin,
    Origin,
    StrictOrigin,
    OriginWhenCrossOrigin,
    #[default]
    StrictOriginWhenCrossOrigin,
    UnsafeUrl,
}

impl ReferrerPolicy {
    /// Reads one token; `None` for the empty and for unknown ones, which leave the policy in force as it is.
    pub fn from_token(token: &str) -> Option<Self> {
        let token = token.trim_matches([' ', '\t', '\n', '\x0c', '\r']).to_ascii_lowercase();
        Some(match token.as_str() {
            "no-referrer" => Self::NoReferrer,
            "no-referrer-when-downgrade" => Self::NoReferrerWhenDowngrade,
            "same-origin" => Self::SameOrigin,
            "origin" => Self::Origin,
            "strict-origin" => Self::StrictOrigin,
            "origin-when-cross-origin" => Self::OriginWhenCrossOrigin,
            "strict-origin-when-cross-origin" => Self::StrictOriginWhenCrossOrigin,
            "unsafe-url" => Self::UnsafeUrl,
            _ => return None,
        })
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoReferrer => "no-referrer",
            Self::NoReferrerWhenDowngrade => "no-referrer-when-downgrade",
            Self::SameOrigin => "same-origin",
            Self::Origin => "origin",
            Self::StrictOrigin => "strict-origin",
            Self::OriginWhenCrossOrigin => "origin-when-cross-origin",
            Self::StrictOriginWhenCrossOrigin => "strict-origin-when-cross-origin",
            Self::UnsafeUrl => "unsafe-url",
        }
    }

    /// Reads `<meta name=referrer content>`, which also knows four old words (HTML, "standard metadata names"), or the attribute, where
    /// Chromium knows them as well (recorded). What is not one word says nothing.
    pub(crate) fn from_markup(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "never" => Some(Self::NoReferrer),
            "default" => Some(Self::StrictOriginWhenCrossOrigin),
            "always" => Some(Self::UnsafeUrl),
            "origin-when-crossorigin" => Some(Self::OriginWhenCrossOrigin),
            token => Self::from_token(token),
        }
    }

    /// Reads a `Referrer-Policy` response field: the last token that is known counts (Referrer Policy, §8.1).
    pub fn from_field(value: &str) -> Option<Self> {
        value.split(',').filter_map(Self::from_token).next_back()
    }
}
