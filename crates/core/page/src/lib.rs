//! Finds what an HTML page will need while its bytes stream by: document bytes in, [`Hint`]s out.
//!
//! [`Scanner`] reads HTML in chunks of any size; [`link_hints`] reads `Link` response fields. Both say what a
//! desktop browser would fetch for the page without being clicked, with everything that shapes that request.
//!
//! Pure: no socket, clock or randomness, nothing fetched and nothing decided here. Whether a hint is fetched is
//! `core/bundle`'s business. Memory is bounded by [`Options`]; a document that exceeds a bound stops giving
//! hints, it never fails.

mod address;
mod attributes;
mod collector;
mod elements;
mod hint;
mod icons;
mod link_field;
mod media;
mod options;
mod scanner;
mod source_size;
mod srcset;
#[allow(dead_code)] // until the stylesheets are matched against it
mod tree;
mod types;

pub use hint::{Confidence, Destination, FetchPriority, Hint, Initiator, Mode, ReferrerPolicy, Source, Timing};
pub use link_field::link_hints;
pub use options::{Options, Viewport};
pub use scanner::Scanner;

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
        srcset::parse(text);
    }
}
