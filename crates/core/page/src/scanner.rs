//! A document alone, without what its stylesheets and scripts name in turn.

use crate::document::Document;
use crate::hint::Hint;
use crate::options::Options;
use url::Url;

/// Scans one document; see [`Document`] for a page as a whole.
#[derive(Debug)]
pub struct Scanner {
    document: Document,
    live: bool,
}

impl Scanner {
    /// A scanner for the document at `document` (its final URL, after redirects), whose `Content-Type` names
    /// `charset`.
    pub fn new(document: &Url, charset: Option<&str>, options: Options) -> Self {
        Scanner { document: Document::new(document, charset, options).alone(), live: true }
    }

    /// Reads the next bytes of the document; returns what they complete.
    pub fn write(&mut self, chunk: &[u8]) -> Vec<Hint> {
        self.document.html(chunk)
    }

    /// The document is complete: returns what only its end decides (the default icon of a page without `<body>`).
    pub fn finish(&mut self) -> Vec<Hint> {
        self.live = false;
        self.document.html_end()
    }

    /// Bytes of the document given to [`write`](Scanner::write) so far.
    pub fn scanned(&self) -> u64 {
        self.document.scanned()
    }

    /// Whether the scan still goes on: false after the end.
    pub fn is_live(&self) -> bool {
        self.live
    }
}

/// The hints that one `Link` field value gives for the document at `document`. Malformed entries give none.
pub fn link_hints(value: &str, document: &Url, options: &Options) -> Vec<Hint> {
    let mut page = Document::new(document, None, options.clone());
    let mut hints = page.link_field(value, false);
    hints.extend(page.settle_named_icon());
    hints
}
