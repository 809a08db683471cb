//! Reads a body along while it passes and hands what it will need to the bundle: a document, or a stylesheet or module
//! of one. It changes no byte and holds none back.

use std::sync::Arc;

use bytes::Bytes;
use farhop_bundle::{is_attachment, opens_page};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_page::ResourceId;
use farhop_squeeze::Decoder;
use farhop_transport::hop::Sender;
use http::StatusCode;
use tokio::task::yield_now;

use crate::bundle::Bundle;
use crate::reading::{Decided, Preceding, Reading};
use crate::treatment::{codings, media_type};

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

/// Documents that browsers read as XML.
pub(crate) const XHTML: &str = "application/xhtml+xml";

/// What of the document it is.
enum What {
    /// The document itself.
    Document,
    /// Something that it names.
    Part(ResourceId),
}

/// Whether a response is a document whose needs may be fetched unasked.
pub(crate) fn is_page(request: &RequestHead, response: &ResponseHead) -> bool {
    is_document(response) && opens_page(&request.method, &request.fields)
}

/// Whether a response is a document that is shown.
pub(crate) fn is_document(response: &ResponseHead) -> bool {
    let fields = &response.fields;
    let is_html = matches!(&*media_type(fields), "text/html" | XHTML);
    is_html && shows_body(response.status) && !is_attachment(fields)
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
    ) -> Option<Page> {
        Page::new(bundle, reading, What::Document, response, decoded)
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

    /// Where this is the document: it is about to be answered, ahead of what it names.
    pub(crate) fn precede(&self) -> Option<Preceding> {
        matches!(self.what, What::Document).then(|| self.reading.precede())
    }

    /// Follows the `Link` fields of `head`.
    pub(crate) fn read_links(&self, head: &ResponseHead, sender: &Sender) {
        if let What::Document = self.what {
            self.promise(self.reading.links(&head.fields, false), sender);
        }
    }

    /// The next bytes of the body, before they are sent: what they mention is promised ahead of them.
    pub(crate) async fn read(&mut self, bytes: Bytes, sender: &Sender) {
        self.feed(bytes);
        while let Some(decided) = self.next_piece() {
            self.promise(decided, sender);
            // A few bytes may be coded for megabytes: others get a turn in between.
            yield_now().await;
        }
    }

    /// Bytes that the remote has already.
    pub(crate) async fn skim(&mut self, bytes: Bytes) {
        self.feed(bytes);
        while self.next_piece().is_some() {
            yield_now().await;
        }
    }

    /// The body is complete.
    pub(crate) fn finish(&mut self, sender: &Sender) {
        let decided = self.end();
        self.promise(decided, sender);
    }

    fn promise(&self, decided: Vec<Decided>, sender: &Sender) {
        self.bundle.add(&self.reading, decided, sender);
    }

    fn feed(&mut self, bytes: Bytes) {
        if !self.over {
            self.decoder.feed(bytes);
        }
    }

    /// What the next piece of the decoded body names; `None` until more is fed.
    fn next_piece(&mut self) -> Option<Vec<Decided>> {
        if self.over {
            return None;
        }
        // A body that cannot be decoded passes as it is; the browser will say what is wrong with it.
        let Ok(piece) = self.decoder.pull() else { return Some(self.end()) };
        let piece = piece?;
        self.read += piece.len() as u64;
        self.reading.weigh(piece.len());
        let mut decided = self.reading.read(|document| match &self.what {
            What::Document => document.html(&piece),
            What::Part(part) => document.resource(*part, &piece),
        });
        if self.read >= LONGEST {
            decided.extend(self.end());
        }
        Some(decided)
    }

    fn end(&mut self) -> Vec<Decided> {
        if std::mem::replace(&mut self.over, true) {
            return Vec::new();
        }
        if let What::Document = self.what {
            self.bundle.is_read(&self.reading);
        }
        self.reading.read(|document| match &self.what {
            What::Document => document.html_end(),
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
    use http::{HeaderMap, header};

    #[test]
    fn documents_are_html_and_xhtml() {
        let read = |kind: &str| {
            let fields = HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
            is_document(&ResponseHead { status: StatusCode::OK, fields })
        };
        assert!(read("text/html; charset=utf-8") && read("Application/XHTML+XML"));
        assert!(!read("application/xml") && !read("image/svg+xml") && !read("text/plain"));
    }

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
