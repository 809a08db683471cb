//! A page read and its files answered, as every test here does it.

use farhop_page::{Document, Hint, Options, ResourceInfo};
use std::collections::HashMap;
use url::Url;

pub(crate) fn page() -> Url {
    Url::parse("http://site.test/dir/page.html").unwrap()
}

pub(crate) fn options() -> Options {
    Options { default_icon: false, ..Options::default() }
}

pub(crate) fn short(hint: &Hint) -> String {
    hint.url.as_str().trim_start_matches("http://site.test/").to_owned()
}

pub(crate) fn names(hints: &[Hint]) -> Vec<String> {
    hints.iter().map(short).collect()
}

/// Loads a page whose files are `files`, each cut into pieces of `size`, in the order in which they were hinted;
/// what is not among them is lost. Returns all hints.
pub(crate) fn load_in_pieces(html: &str, files: &HashMap<&str, &str>, size: usize) -> Vec<Hint> {
    let mut document = Document::new(&page(), Some("utf-8"), options());
    let mut all = Vec::new();
    for chunk in html.as_bytes().chunks(size) {
        all.extend(document.html(chunk));
    }
    all.extend(document.html_end());
    let mut next = 0;
    while next < all.len() {
        let hint = all[next].clone();
        next += 1;
        let Some(body) = files.get(short(&hint).as_str()) else {
            all.extend(document.resource_lost(&hint));
            continue;
        };
        let Some(id) = document.resource_begins(&hint, &hint.url, &ResourceInfo::default()) else { continue };
        for chunk in body.as_bytes().chunks(size) {
            all.extend(document.resource(id, chunk));
        }
        all.extend(document.resource_end(id));
    }
    all
}

pub(crate) fn load(html: &str, files: &[(&str, &str)]) -> Vec<Hint> {
    load_in_pieces(html, &files.iter().copied().collect(), usize::MAX)
}
