//! Reads a body along while it passes and hands what it will need to the bundle: a document, or a stylesheet or module
//! of one. It changes no byte and holds none back.

use std::sync::Arc;

use bytes::Bytes;
use farhop_bundle::is_navigation;
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::ResourceId;
use farhop_squeeze::Decoder;
use farhop_transport::hop::Sender;
use http::{HeaderMap, Method, StatusCode, header};

use crate::bundle::Bundle;
use crate::reading::{Decided, Reading};
use crate::treatment::{codings, is_attachment, media_type};

/// A body that decodes to more is not read further.
const LONGEST: u64 = 16 << 20;

/// See the module.
pub(crate) struct Page {
    bundle: Arc<Bundle>,
    reading: Arc<Reading>,
    what: What,
    /// Without codings it passes bytes on as they are.
    decoder: Decoder,
    /// Bytes read so far.
    read: u64,
    over: bool,
}

/// What of the document it is.
enum What {
    /// The document itself, with the `Link` fields of informational responses before it.
    Document(Vec<HeaderMap>),
    /// Something that it names.
    Part(ResourceId),
}

/// Whether a response is a document whose needs may be fetched unasked.
pub(crate) fn is_page(request: &RequestHead, response: &ResponseHead) -> bool {
    request.method == Method::GET && is_document(response) && is_navigation(&request.fields)
}

/// Whether a response is a document that is shown.
pub(crate) fn is_document(response: &ResponseHead) -> bool {
    let fields = &response.fields;
    shows_body(response.status) && media_type(fields) == "text/html" && !is_attachment(fields)
}

/// An error page has stylesheets and pictures like any other.
fn shows_body(status: StatusCode) -> bool {
    match status {
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::PARTIAL_CONTENT => false,
        status => status.is_success() || status.is_client_error() || status.is_server_error(),
    }
}

impl Page {
    /// A reader of the document of `reading`, which is answered with `response`; it will see the body decoded if
    /// `decoded`. `None` where the body cannot be read.
    pub(crate) fn document(
        bundle: &Arc<Bundle>,
        reading: Arc<Reading>,
        response: &ResponseHead,
        decoded: bool,
        early: Vec<HeaderMap>,
    ) -> Option<Page> {
        Page::new(bundle, reading, What::Document(early), response, decoded)
    }

    /// A reader of a stylesheet or module of `reading`.
    pub(crate) fn part(
        bundle: &Arc<Bundle>,
        reading: Arc<Reading>,
        part: ResourceId,
        response: &ResponseHead,
        decoded: bool,
    ) -> Option<Page> {
        Page::new(bundle, reading, What::Part(part), response, decoded)
    }

    fn new(
        bundle: &Arc<Bundle>,
        reading: Arc<Reading>,
        what: What,
        response: &ResponseHead,
        decoded: bool,
    ) -> Option<Page> {
        let codings = if decoded { Vec::new() } else { codings(&response.fields).ok()? };
        let decoder = Decoder::new(&codings);
        Some(Page { bundle: Arc::clone(bundle), reading, what, decoder, read: 0, over: false })
    }

    /// Follows the `Link` fields of `head` and of the informational responses before it.
    pub(crate) fn read_links(&mut self, head: &ResponseHead, sender: &Sender) {
        let What::Document(early) = &mut self.what else { return };
        let early = std::mem::take(early);
        let decided = self.reading.read(|document| {
            let mut hints = Vec::new();
            for (fields, is_early) in early.iter().map(|early| (early, true)).chain([(&head.fields, false)]) {
                let values = fields.get_all(header::LINK).into_iter().filter_map(|value| value.to_str().ok());
                values.for_each(|value| hints.extend(document.link_field(value, is_early)));
            }
            hints
        });
        self.promise(decided, sender);
    }

    /// The next bytes of the body, before they are sent: what they mention is promised ahead of them.
    pub(crate) fn read(&mut self, bytes: Bytes, sender: &Sender) {
        let decided = self.scan(bytes);
        self.promise(decided, sender);
    }

    /// Bytes that the remote has already.
    pub(crate) fn skim(&mut self, bytes: Bytes) {
        self.scan(bytes);
    }

    /// The body is complete.
    pub(crate) fn finish(&mut self, sender: &Sender) {
        let decided = self.end();
        self.promise(decided, sender);
    }

    fn promise(&self, decided: Vec<Decided>, sender: &Sender) {
        self.bundle.add(&self.reading, decided, sender);
    }

    fn scan(&mut self, bytes: Bytes) -> Vec<Decided> {
        let mut decided = Vec::new();
        if self.over {
            return decided;
        }
        self.decoder.feed(bytes);
        loop {
            match self.decoder.pull() {
                Ok(Some(piece)) => {
                    self.read += piece.len() as u64;
                    decided.extend(self.reading.read(|document| match &self.what {
                        What::Document(_) => document.html(&piece),
                        What::Part(part) => document.resource(*part, &piece),
                    }));
                    if self.read < LONGEST {
                        continue;
                    }
                }
                Ok(None) => return decided,
                // A body that cannot be decoded passes as it is; the browser will say what is wrong with it.
                Err(_) => {}
            }
            decided.extend(self.end());
            return decided;
        }
    }

    fn end(&mut self) -> Vec<Decided> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        self.reading.read(|document| match &self.what {
            What::Document(_) => document.html_end(),
            What::Part(part) => document.resource_end(*part),
        })
    }
}

impl Drop for Page {
    /// What waited for a body that broke off goes on without it, on the next stream of the page.
    fn drop(&mut self) {
        let decided = self.end();
        self.bundle.keep(&self.reading, decided);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_pages_are_documents_and_redirects_are_not() {
        let read = |status| {
            let fields = HeaderMap::from_iter([(header::CONTENT_TYPE, "text/html".parse().unwrap())]);
            is_document(&ResponseHead { status: StatusCode::from_u16(status).unwrap(), fields })
        };
        for status in [200, 404, 410, 500, 503] {
            assert!(read(status), "{status}");
        }
        for status in [204, 205, 206, 302, 304] {
            assert!(!read(status), "{status}");
        }
    }
}
