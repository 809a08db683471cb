//! Finds what an HTML page will need while its bytes stream by: bytes of the document, its stylesheets and scripts in,
//! [`Hint`]s out.
//!
//! [`Document`] is the page as a whole, [`Scanner`] a document alone, [`link_hints`] a `Link` field alone. They say what
//! a desktop browser would fetch for the page without being clicked, with everything that shapes that request.
//!
//! Pure: no socket, clock or randomness, nothing fetched and nothing decided here. Whether a hint is fetched is
//! `core/bundle`'s business. Memory is bounded by [`Options`]; what exceeds a bound gives no hints, nothing fails.

mod address;
mod collector;
mod context;
mod decode;
mod document;
mod hint;
mod html;
mod markup;
mod media;
mod options;
mod page;
mod scanner;
mod script;
mod scripts;
mod sheets;
mod source_size;
mod style;
mod tree;
mod types;

pub use document::{Document, ResourceId, ResourceInfo};
pub use hint::{
    Confidence, Destination, FetchPriority, Hint, Initiator, Mode, ReferrerPolicy, Source, Timing,
};
pub use options::{Options, Viewport};
pub use scanner::{Scanner, link_hints};

/// Entry point of the fuzz target: scans `data` as a document and as a `Link` field, in two chunkings that must
/// agree.
pub fn fuzz_scan(data: &[u8]) {
    let Ok(document) = url::Url::parse("http://site.test/dir/page.html?q=1") else { return };
    let options = Options::default();
    let mut whole = Scanner::new(&document, None, options.clone());
    let mut expected = whole.write(data);
    expected.extend(whole.finish());
    let mut split = Scanner::new(&document, None, options.clone());
    let mut found = Vec::new();
    for chunk in data.chunks(7) {
        found.extend(split.write(chunk));
    }
    found.extend(split.finish());
    assert_eq!(expected, found, "hints depend on how the document was cut");
    if let Ok(text) = std::str::from_utf8(data) {
        link_hints(text, &document, &options);
        media::matches(text, &options.viewport);
        source_size::evaluate(text, &options.viewport);
        markup::srcset::parse(text);
    }
}
