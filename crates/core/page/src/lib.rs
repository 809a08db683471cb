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
mod data_url;
mod decode;
mod document;
mod framed;
mod held;
mod hint;
mod html;
mod markup;
mod media;
mod options;
mod page;
mod policy;
mod sandbox;
mod scanner;
mod screens;
mod script;
mod scripts;
mod sheets;
mod source_size;
mod steps;
mod style;
mod tree;
mod types;

pub use address::{escape_in_path, fetchable};
pub use document::{Document, ResourceId, ResourceInfo};
pub use hint::{
    Confidence, Destination, FetchPriority, Hint, Initiator, Mode, Policy, PolicyKind, ReferrerPolicy,
    Source, Timing,
};
pub use options::{Options, Viewport};
pub use policy::ContentPolicies;
pub use scanner::{Scanner, link_hints};
pub use steps::Steps;
pub use types::is_script_type;

/// Entry point of the fuzz target: reads `data` as a page, its parts before and after a NUL as the document and as
/// each file that it names, in two chunkings that must agree; and as a `Link` field.
pub fn fuzz_scan(data: &[u8]) {
    let Ok(url) = url::Url::parse("http://site.test/dir/page.html?q=1") else { return };
    assert_eq!(
        fuzz_load(data, &url, usize::MAX),
        fuzz_load(data, &url, 7),
        "hints depend on how the page was cut"
    );
    if let Ok(text) = std::str::from_utf8(data) {
        let options = Options::default();
        link_hints(text, &url, &options);
        media::matches(text, &options.viewport);
        source_size::evaluate(text, &options.viewport);
        markup::srcset::parse(text);
    }
}

/// Entry point of the fuzz target: reads `data` as the style sheet of a page that has a little of everything, and as
/// each sheet that it imports, in chunkings that must agree.
pub fn fuzz_css(data: &[u8]) {
    const PAGE: &[u8] = b"<!doctype html><html lang=en><link rel=stylesheet href=a.css><body class=home>\
        <main id=main title=t><ul class='list wide'><li class=item style='--a:url(i.png)'>one<li hidden>two</ul>\
        <p class=lead>Text with <b>weight</b>, <i>slant</i> and &#x1f600;</p><svg><use/></svg>\
        <form><input type=checkbox checked><input value=v disabled></form><i class=icon></i></main>\0";
    let Ok(url) = url::Url::parse("http://site.test/dir/page.html?q=1") else { return };
    let page = [PAGE, data].concat();
    let whole = fuzz_load(&page, &url, usize::MAX);
    for size in [1, 7] {
        assert_eq!(whole, fuzz_load(&page, &url, size), "hints depend on how the sheet was cut");
    }
}

fn fuzz_load(data: &[u8], url: &url::Url, size: usize) -> Vec<Hint> {
    let options = Options { max_hints: 50, ..Options::default() };
    let mut page = Document::new(url, None, options);
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let html = parts.next().unwrap_or_default();
    let file = parts.next();
    let mut hints: Vec<Hint> = html.chunks(size).flat_map(|chunk| page.html(chunk)).collect();
    hints.extend(page.html_end());
    let mut at = 0;
    while let Some(hint) = hints.get(at).cloned() {
        at += 1;
        let info = ResourceInfo::default();
        let id = file.and_then(|_| page.resource_begins(&hint, &hint.url, &info));
        let Some((id, file)) = id.zip(file) else {
            hints.extend(page.resource_lost(&hint));
            continue;
        };
        for chunk in file.chunks(size) {
            hints.extend(page.resource(id, chunk));
        }
        hints.extend(page.resource_end(id));
    }
    hints
}
