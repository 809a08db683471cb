//! The streaming scanner: HTML bytes in, hints out, over lol_html's tokenizer and tree-builder simulation.
//! Only drives the tokenizer; what elements mean is `elements`.

use crate::attributes::TagAttributes;
use crate::elements::Page;
use crate::hint::Hint;
use crate::options::Options;
use encoding_rs::{Encoding, UTF_8};
use lol_html::html_content::EndTag;
use lol_html::send::{Element, EndTagHandler, HtmlRewriter, Settings};
use lol_html::{AsciiCompatibleEncoding, HandlerResult, MemorySettings, element};
use std::sync::{Arc, Mutex, MutexGuard};
use url::Url;

const SVG: &str = "http://www.w3.org/2000/svg";
const HTML: &str = "http://www.w3.org/1999/xhtml";

type Sink = fn(&[u8]);

/// Scans one document.
///
/// Call [`write`](Scanner::write) with each chunk, in order and before the chunk is sent on: whatever it returns
/// may be named by the bytes of this chunk, and by none of an earlier chunk in full. Call
/// [`finish`](Scanner::finish) at the end. How the document is cut does not change the hints.
pub struct Scanner {
    /// `None` once a bound was exceeded or the document has ended.
    rewriter: Option<HtmlRewriter<'static, Sink>>,
    page: Arc<Mutex<Page>>,
    scanned: u64,
}

impl std::fmt::Debug for Scanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scanner")
            .field("scanned", &self.scanned)
            .field("live", &self.rewriter.is_some())
            .finish()
    }
}

impl Scanner {
    /// A scanner for the document at `document` (its final URL, after redirects), whose `Content-Type` names
    /// `charset`. A document in an encoding that is no superset of ASCII (UTF-16) gives no hints.
    pub fn new(document: &Url, charset: Option<&str>, options: Options) -> Self {
        let encoding =
            charset.and_then(|label| Encoding::for_label(label.trim().as_bytes())).unwrap_or(UTF_8);
        let memory = MemorySettings::new()
            .with_preallocated_parsing_buffer_size(1024)
            .with_max_allowed_memory_usage(options.max_memory);
        let max_attribute = options.max_attribute;
        let page = Arc::new(Mutex::new(Page::new(document, options)));
        let rewriter = AsciiCompatibleEncoding::new(encoding).map(|encoding| {
            let settings = Settings::new_send()
                .with_encoding(encoding)
                .with_adjust_charset_on_meta_tag(charset.is_none())
                .with_memory_settings(memory)
                // Ambiguous documents are tokenized as well as can be; the output is not used.
                .with_strict(false)
                .append_element_content_handler(element!(
                    "base, meta, script, link, picture, source, img, image, input, video, body, head, template",
                    {
                        let page = Arc::clone(&page);
                        move |tag: &mut Element<'_, '_>| on_element(&page, tag, max_attribute)
                    }
                ));
            HtmlRewriter::new(settings, (|_| ()) as Sink)
        });
        Scanner { rewriter, page, scanned: 0 }
    }

    /// Reads the next bytes of the document; returns what they complete.
    pub fn write(&mut self, chunk: &[u8]) -> Vec<Hint> {
        self.scanned += chunk.len() as u64;
        if let Some(rewriter) = &mut self.rewriter
            && rewriter.write(chunk).is_err()
        {
            self.rewriter = None;
        }
        lock(&self.page).take_hints()
    }

    /// The document is complete: returns what only its end decides (the default icon of a page without `<body>`).
    pub fn finish(&mut self) -> Vec<Hint> {
        if let Some(rewriter) = self.rewriter.take()
            && rewriter.end().is_ok()
        {
            lock(&self.page).settle_icon(self.scanned);
        }
        lock(&self.page).take_hints()
    }

    /// Bytes of the document given to [`write`](Scanner::write) so far.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Whether the scan still goes on: false after the end or once a bound was exceeded.
    pub fn is_live(&self) -> bool {
        self.rewriter.is_some()
    }
}

fn lock(page: &Mutex<Page>) -> MutexGuard<'_, Page> {
    // A poisoned page is still a page: hints are advice, and no invariant spans the lock.
    page.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn on_element(page: &Arc<Mutex<Page>>, tag: &mut Element<'_, '_>, max_bytes: usize) -> HandlerResult {
    let name = tag.tag_name();
    let offset = tag.source_location().bytes().start as u64;
    let namespace = tag.namespace_uri();
    let mut state = lock(page);
    if name == "template" && namespace == HTML {
        // A declarative shadow root is part of the page.
        let shadow = tag.get_attribute("shadowrootmode").is_some();
        if !shadow && tag.can_have_content() {
            state.templates += 1;
            on_end(page, tag, |page, _| page.templates = page.templates.saturating_sub(1));
        }
        return Ok(());
    }
    if state.templates > 0 {
        return Ok(());
    }
    let attributes = TagAttributes { tag, max_bytes };
    match namespace {
        HTML => state.element(&name, &attributes, offset),
        SVG if name == "image" => state.svg_image(&attributes, offset),
        _ => {}
    }
    match name.as_str() {
        "picture" => on_end(page, tag, |page, _| page.picture_ended()),
        "head" => on_end(page, tag, |page, offset| page.settle_icon(offset)),
        _ => {}
    }
    Ok(())
}

fn on_end(page: &Arc<Mutex<Page>>, tag: &mut Element<'_, '_>, then: fn(&mut Page, u64)) {
    let page = Arc::clone(page);
    let handler: EndTagHandler<'static> = Box::new(move |end: &mut EndTag<'_>| {
        then(&mut lock(&page), end.source_location().bytes().start as u64);
        Ok(())
    });
    if let Some(handlers) = tag.end_tag_handlers() {
        handlers.push(handler);
    }
}
