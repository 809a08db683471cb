//! Reads a document along while it passes and hands what it will need to its bundle. It changes no byte and holds none
//! back.

use bytes::Bytes;
use farhop_bundle::is_navigation;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::{Hint, Options, Scanner, link_hints};
use farhop_squeeze::Decoder;
use farhop_transport::hop::Sender;
use http::{HeaderMap, Method, StatusCode, header};
use url::Url;

use crate::bundle::Bundle;
use crate::treatment::{charset, codings, is_attachment, media_type};

/// A document that decodes to more is not read further.
const LONGEST: u64 = 64 << 20;

/// See the module.
pub(crate) struct Page {
    document: Url,
    options: Options,
    scanner: Scanner,
    /// Without codings it passes bytes on as they are.
    decoder: Decoder,
    broken: bool,
    /// `Link` fields of informational responses.
    early: Vec<HeaderMap>,
    bundle: Bundle,
}

/// Whether a response is a document whose needs may be fetched unasked.
pub(crate) fn is_page(request: &RequestHead, response: &ResponseHead) -> bool {
    let fields = &response.fields;
    request.method == Method::GET
        && response.status == StatusCode::OK
        && media_type(fields) == "text/html"
        && !is_attachment(fields)
        // What the browser will send once it has the cookie is not known here.
        && !fields.contains_key(header::SET_COOKIE)
        && is_navigation(&request.fields)
}

impl Page {
    /// A reader of the answer to `request`, whose body it will see decoded if `decoded`. `None` where the body cannot
    /// be read.
    pub(crate) fn new(
        request: &RequestHead,
        response: &ResponseHead,
        decoded: bool,
        early: Vec<HeaderMap>,
        bundle: Bundle,
    ) -> Option<Page> {
        let document = Url::parse(&request.url()).ok()?;
        let codings = if decoded { Vec::new() } else { codings(&response.fields).ok()? };
        let accept =
            request.fields.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let options = Options { jpeg_xl: accept.contains("image/jxl"), ..Options::default() };
        let charset = charset(&response.fields);
        let scanner = Scanner::new(&document, charset.as_deref(), options.clone());
        Some(Page {
            document,
            options,
            scanner,
            decoder: Decoder::new(&codings),
            broken: false,
            early,
            bundle,
        })
    }

    /// Follows the `Link` fields of `head` and of the informational responses before it.
    pub(crate) fn read_links(&mut self, head: &ResponseHead, sender: &Sender) {
        let early = std::mem::take(&mut self.early);
        let values = early.iter().chain([&head.fields]).flat_map(|fields| fields.get_all(header::LINK));
        let links = values.filter_map(|value| value.to_str().ok());
        let hints = links.flat_map(|link| link_hints(link, &self.document, &self.options)).collect();
        self.bundle.add(hints, sender);
    }

    /// The next bytes of the document, before they are sent: what they mention is promised ahead of them.
    pub(crate) fn read(&mut self, bytes: Bytes, sender: &Sender) {
        let hints = self.scan(bytes);
        self.bundle.add(hints, sender);
    }

    /// Bytes that the remote has already.
    pub(crate) fn skim(&mut self, bytes: Bytes) {
        self.scan(bytes);
    }

    /// The document is complete.
    pub(crate) fn finish(&mut self, sender: &Sender) {
        let hints = self.scanner.finish();
        self.bundle.add(hints, sender);
    }

    fn scan(&mut self, bytes: Bytes) -> Vec<Hint> {
        let mut hints = Vec::new();
        // What is not pulled must not be fed: it would pile up.
        if !self.scanner.is_live() || self.scanner.scanned() >= LONGEST || self.broken {
            return hints;
        }
        self.decoder.feed(bytes);
        // A body that cannot be decoded passes as it is; the browser will say what is wrong with it.
        while self.scanner.scanned() < LONGEST {
            match self.decoder.pull() {
                Ok(Some(piece)) => hints.extend(self.scanner.write(&piece)),
                Ok(None) => break,
                Err(_) => {
                    self.broken = true;
                    break;
                }
            }
        }
        hints
    }
}
