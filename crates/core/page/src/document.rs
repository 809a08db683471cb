//! One page as a whole: its HTML, its stylesheets and its scripts in the order in which their bytes pass, and out
//! comes what they need.

use crate::context::Context;
use crate::decode::{Charset, TextDecoder};
use crate::hint::{Destination, Hint, Mode, Policy, ReferrerPolicy, Source};
use crate::html::{Doctype, Tokenizer};
use crate::markup::{SheetLink, link_field};
use crate::options::{Options, Viewport};
use crate::page::Page;
use crate::policy::ContentPolicies;
use crate::sandbox::Sandboxes;
use crate::scripts::ScriptReader;
use crate::tree::Scope;
use std::collections::HashMap;
use url::Url;

/// Bytes read at one go: what is held of a longer piece stays small.
const PIECE: usize = 64 * 1024;

/// A stylesheet or script that is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResourceId(u32);

/// What the response to a hinted resource says about reading it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceInfo<'a> {
    /// `charset` of its `Content-Type`.
    pub charset: Option<&'a str>,
    /// Its `Referrer-Policy`, which holds for what it names in turn.
    pub referrer_policy: Option<ReferrerPolicy>,
}

/// Reads one page.
///
/// Give it the document's bytes, decoded from any content coding, in order by [`html`](Document::html), and the bytes
/// of the stylesheets and scripts that it hinted by [`resource`](Document::resource). Whatever a call returns must be
/// promised before the bytes just given are sent on: the browser cannot learn of it from earlier bytes alone. How
/// anything is cut into pieces does not change the hints. Nothing here fails; what exceeds a bound of [`Options`] is
/// not read or not hinted.
pub struct Document {
    page: Page,
    tokenizer: Tokenizer,
    decoder: TextDecoder,
    doctype: Doctype,
    /// Reused between pieces.
    text: String,
    scanned: u64,
    ended: bool,
    resources: HashMap<ResourceId, Resource>,
    next_resource: u32,
}

struct Resource {
    decoder: TextDecoder,
    left: usize,
    kind: Kind,
}

enum Kind {
    Script(Box<ScriptReader>),
    /// By the URL that was hinted.
    Style(Url),
}

impl Resource {
    /// Reads the next bytes, the last ones if `last`.
    fn read(&mut self, mut bytes: &[u8], last: bool, text: &mut String, page: &mut Page) {
        while !bytes.is_empty() || last {
            let (run, rest) = bytes.split_at(self.decoder.run(bytes));
            text.clear();
            self.decoder.decode(run, last, text);
            match &mut self.kind {
                Kind::Script(reader) => reader.feed(text, &mut page.scripts, &mut page.context),
                Kind::Style(url) => {
                    self.decoder.sniff_css(text);
                    let charset = self.decoder.charset();
                    page.sheets.feed(url, text, charset, &page.tree, &mut page.context);
                }
            }
            if last {
                return;
            }
            bytes = rest;
        }
    }
}

/// Of a document whose response names `charset`. XML that says nothing is UTF-8.
fn decoder(charset: Option<&str>, xml: bool) -> TextDecoder {
    TextDecoder::new(charset, if xml { Charset::UTF_8 } else { Charset::UNSAID })
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Document")
            .field("url", &self.context().document.as_str())
            .field("scanned", &self.scanned)
            .field("elements", &self.page.tree.len())
            .field("resources", &self.resources.len())
            .finish_non_exhaustive()
    }
}

impl Document {
    /// A reader for the document at `url` (after redirects), whose `Content-Type` names `charset`.
    pub fn new(url: &Url, charset: Option<&str>, options: Options) -> Self {
        let mut tokenizer = Tokenizer::new(options.max_attribute);
        let xml = options.xml;
        tokenizer.foreign = xml;
        Document {
            tokenizer,
            page: Page::new(url, options),
            decoder: decoder(charset, xml),
            doctype: Doctype::default(),
            text: String::new(),
            scanned: 0,
            ended: false,
            resources: HashMap::new(),
            next_resource: 0,
        }
    }

    /// The content security policies of its response hold for it. To be said before its first bytes, and again by a
    /// response that comes after a 103 response.
    pub fn obey(&mut self, policies: ContentPolicies) {
        self.page.context.policies = policies;
    }

    fn context(&self) -> &Context {
        &self.page.context
    }

    /// A `Link` field of the response, or of a 103 response if `early` (RFC 8297).
    pub fn link_field(&mut self, value: &str, early: bool) -> Vec<Hint> {
        link_field::read(value, early, &mut self.page.markup, &mut self.page.context);
        self.page.context.take_hints()
    }

    /// The response is here, after a 103 response whose `Link` fields were read already: its `Content-Type` names
    /// `charset` and says whether it is XML, which [`Document::new`] could not know. To be said before its first bytes.
    pub fn answered(&mut self, charset: Option<&str>, xml: bool) {
        self.decoder = decoder(charset, xml);
        self.tokenizer.foreign = xml;
        self.page.answered(xml);
    }

    /// The next bytes of the document, before they are sent on.
    pub fn html(&mut self, chunk: &[u8]) -> Vec<Hint> {
        if !self.ended {
            let left = self.context().options.max_html.saturating_sub(self.scanned);
            self.scanned += chunk.len() as u64;
            let chunk = &chunk[..chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            for piece in chunk.chunks(PIECE) {
                self.read(piece);
            }
        }
        self.page.context.take_hints()
    }

    /// The document is complete: returns what only its end decides.
    pub fn html_end(&mut self) -> Vec<Hint> {
        if !std::mem::replace(&mut self.ended, true) {
            self.text.clear();
            self.decoder.decode(&[], true, &mut self.text);
            self.tokenizer.feed(&self.text);
            self.tokenizer.end();
            self.take_tokens();
            self.page.end(self.scanned);
            self.rest();
        }
        self.page.context.take_hints()
    }

    /// The bound on hints, once the document has named more: these are given to nobody.
    pub fn exceeded(&self) -> Option<usize> {
        self.context().is_full().then_some(self.context().options.max_hints)
    }

    /// Bytes of the document given so far.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (run, rest) = bytes.split_at(self.decoder.run(bytes));
            self.text.clear();
            self.decoder.decode(run, false, &mut self.text);
            self.decoder.sniff_xml(&self.text);
            self.page.context.charset = self.decoder.charset();
            self.doctype.feed(&self.text);
            let quirks = !self.context().options.xml && self.doctype.is_quirky();
            self.page.sheets.styles.set_quirks(quirks);
            self.tokenizer.feed(&self.text);
            self.take_tokens();
            bytes = rest;
        }
    }

    fn take_tokens(&mut self) {
        while let Some(token) = self.tokenizer.next() {
            let next = self.page.token(token);
            self.tokenizer.foreign = next.foreign;
            if let Some(name) = next.raw_text {
                self.tokenizer.raw_text(name);
            }
            if let Some(label) = next.charset {
                self.decoder.named(&label);
                self.page.context.charset = self.decoder.charset();
            }
        }
    }

    /// The resource that `hint` named answers, at `url` after redirects. `None` if there is nothing to read in it; else
    /// its body, decoded from any content coding, is to be given to [`resource`](Document::resource).
    pub fn resource_begins(&mut self, hint: &Hint, url: &Url, info: &ResourceInfo<'_>) -> Option<ResourceId> {
        if self.resources.len() >= self.context().options.max_resources {
            return None;
        }
        // HTML, "fetch a classic script", and CSS Syntax 3, "environment encoding".
        let own = hint.charset.as_deref().map_or(Charset::UNSAID, Charset::named);
        let around = own.or(self.context().charset);
        let (decoder, kind) = match hint.destination {
            // Such files are fetched all the same, since that begins before anyone knows whether they are run (recorded).
            Destination::Script if !self.context().options.scripting => return None,
            Destination::Script => {
                let decoder = match hint.source.is_module() {
                    true => TextDecoder::script(None, Charset::UTF_8),
                    false => TextDecoder::script(info.charset, around),
                };
                let reader = ScriptReader::file(hint, url, info.referrer_policy, decoder.charset());
                (decoder, Kind::Script(Box::new(reader)))
            }
            // A sheet that a script imports styles what that script says.
            Destination::Style
                if hint.source == Source::StaticImport || hint.source == Source::DynamicImport =>
            {
                return None;
            }
            Destination::Style => {
                let Page { sheets, .. } = &mut self.page;
                let around = sheets.begins(hint, url, info.referrer_policy, around)?;
                (TextDecoder::new(info.charset, around), Kind::Style(hint.url.clone()))
            }
            _ => return None,
        };
        let resource = Resource { decoder, left: self.context().options.max_resource_bytes, kind };
        let id = ResourceId(self.next_resource);
        self.next_resource += 1;
        self.resources.insert(id, resource);
        Some(id)
    }

    /// The browser asked for a stylesheet or script at `url` that was not hinted, as when a script has put its element
    /// into the page: as [`resource_begins`](Document::resource_begins).
    pub fn unforeseen(
        &mut self,
        url: &Url,
        destination: Destination,
        info: &ResourceInfo<'_>,
    ) -> Option<ResourceId> {
        let (mode, source) = match destination {
            Destination::Style => (Mode::NoCors, Source::Stylesheet),
            // Only modules name others; a classic script is none the worse for being read as one.
            _ => (Mode::Cors, Source::ModuleScript),
        };
        if destination == Destination::Style {
            let Page { sheets, context, tree, .. } = &mut self.page;
            let link = SheetLink { url: url.clone(), applies: true, blocking: false };
            sheets.linked(link, Scope::DOCUMENT, tree, context);
        }
        self.resource_begins(&Hint::new(url.clone(), destination, mode, source), url, info)
    }

    /// Whether a stylesheet at `url` counts even if its response says that it is something else (HTML, "link type
    /// stylesheet": in quirks mode, from the document's own origin). What is not known yet counts as such.
    pub fn takes_any_sheet(&self, url: &Url) -> bool {
        let Context { options, document, .. } = self.context();
        !options.xml && self.doctype.is_quirky() && url.origin() == document.origin()
    }

    /// The next bytes of a resource, before they are sent on.
    pub fn resource(&mut self, id: ResourceId, chunk: &[u8]) -> Vec<Hint> {
        if let Some(resource) = self.resources.get_mut(&id) {
            let chunk = &chunk[..chunk.len().min(resource.left)];
            resource.left -= chunk.len();
            for piece in chunk.chunks(PIECE) {
                resource.read(piece, false, &mut self.text, &mut self.page);
            }
        }
        self.page.context.take_hints()
    }

    /// A resource is complete.
    pub fn resource_end(&mut self, id: ResourceId) -> Vec<Hint> {
        if let Some(mut resource) = self.resources.remove(&id) {
            resource.read(&[], true, &mut self.text, &mut self.page);
            let Page { sheets, scripts, context, tree, .. } = &mut self.page;
            match resource.kind {
                Kind::Script(mut reader) => reader.end(scripts, context),
                Kind::Style(url) => sheets.end(&url, tree, context),
            }
            self.rest();
        }
        self.page.context.take_hints()
    }

    /// Nothing is read at the moment, and perhaps nothing more: pages are remembered for longer than they are read.
    fn rest(&mut self) {
        if self.ended && self.resources.is_empty() {
            self.text = String::new();
        }
    }

    /// What `hint` named will not be read to its end: it failed, was refused or is not fetched. To be said of every
    /// hinted stylesheet that is not ended, else what waits for it waits for ever.
    pub fn resource_lost(&mut self, hint: &Hint) -> Vec<Hint> {
        self.resources.retain(|_, resource| !matches!(&resource.kind, Kind::Style(url) if *url == hint.url));
        self.page.sheets.lost(hint, &self.page.tree, &mut self.page.context);
        self.page.context.take_hints()
    }

    /// The browser asked for `url`, which was not hinted: that may tell of its screen, and where a script's images are.
    pub fn asked(&mut self, url: &Url) {
        let Page { scripts, markup, context, .. } = &mut self.page;
        scripts.asked(url);
        markup.screens.asked(url, context);
        context.held.asked(url);
    }

    /// What the browser will probably ask for beside `url`, for which it has [`asked`](Document::asked): other images
    /// for its screen than were hinted, those that scripts name without saying their folder, and what is lazy and
    /// comes next.
    pub fn neighbours(&mut self, url: &Url) -> Vec<Hint> {
        let Page { scripts, markup, context, .. } = &mut self.page;
        markup.screens.correct(context);
        scripts.neighbours(url, context);
        let following = context.held.following(url);
        following.into_iter().for_each(|hint| context.add(hint));
        context.take_hints()
    }

    /// `hint` is foreseen before the page is read, and fetched: where the page names the same, that is no news.
    pub fn foreseen(&mut self, hint: Hint) {
        let context = &mut self.page.context;
        context.add(hint);
        context.take_hints();
    }

    /// What `hint`, a [`Source::Mention`], named was fetched, and is there or not: what follows from that.
    pub fn mention_found(&mut self, hint: &Hint, is_there: bool) -> Vec<Hint> {
        let Page { scripts, context, .. } = &mut self.page;
        scripts.found(&hint.url, is_there, context);
        context.take_hints()
    }

    /// The screen, as far as it is known by now.
    pub fn viewport(&self) -> &Viewport {
        &self.context().options.viewport
    }

    /// Whether its mark-up has named the document of `url` for a frame, so that it is known how that is sandboxed.
    pub fn names_frame(&self, url: &Url) -> bool {
        self.context().sandboxes.has(url)
    }

    /// Whether the document of `url` in a frame is sandboxed into an origin of its own, so that nothing that it names is asked
    /// for with the fields that this page's origin would give.
    pub fn is_opaque(&self, url: &Url) -> bool {
        self.context().sandboxes.of(url).is_opaque
    }

    /// Whether the document of `url` in a frame runs its scripts: [`Options::scripting`] of that.
    pub fn runs_scripts(&self, url: &Url) -> bool {
        self.context().options.scripting && !self.context().sandboxes.of(url).is_scriptless
    }

    /// Whether the document of `url` may be displayed in a frame, as far as is known by now: one in a frame with `display: none` is
    /// loaded, but nothing of it is styled.
    pub fn may_show_frame(&self, url: &Url) -> bool {
        self.page.may_show_frame(url)
    }

    /// What is known of its frames.
    pub(crate) fn sandboxes(&mut self) -> &mut Sandboxes {
        &mut self.page.context.sandboxes
    }

    /// What is lazy and far down.
    pub(crate) fn take_held(&mut self) -> impl Iterator<Item = Hint> + use<> {
        self.page.context.held.take()
    }

    /// Content security policies in `<meta http-equiv=content-security-policy>`, found since the last call, in order.
    pub fn policies(&mut self) -> Vec<Policy> {
        self.page.markup.take_policies()
    }

    /// It stands in a page whose context is `outer`, as if it were part of that.
    pub(crate) fn within(mut self, outer: &Context) -> Self {
        let own = &mut self.page.context;
        (own.base, own.policy, own.depth) = (outer.base.clone(), outer.policy, outer.depth + 1);
        own.policies = outer.policies.clone();
        self.alone()
    }

    /// Only the document itself will be read.
    pub(crate) fn alone(mut self) -> Self {
        self.page.sheets.alone = true;
        self
    }

    pub(crate) fn settle_named_icon(&mut self) -> Vec<Hint> {
        self.page.markup.settle_named_icon(&mut self.page.context);
        self.page.context.take_hints()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_was_read_with_all_that_it_named_keeps_no_text() {
        let url = Url::parse("http://site.test/").unwrap();
        let mut document = Document::new(&url, None, Options::default());
        let hints = document.html(b"<link rel=stylesheet href=a.css><p>text</p>");
        let sheet = hints.iter().find(|hint| hint.destination == Destination::Style).unwrap();
        let id = document.resource_begins(sheet, &sheet.url, &ResourceInfo::default()).unwrap();
        document.html_end();
        assert!(document.text.capacity() > 0, "the sheet is being read");
        document.resource(id, b"p { color: red }");
        document.resource_end(id);
        assert_eq!(document.text.capacity(), 0);
    }
}
