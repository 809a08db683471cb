//! Text in other encodings than UTF-8: which one a style sheet has, and how the queries in it are written.

use crate::loading::{names, options, page};
use farhop_page::{Document, Hint, ResourceInfo};

/// The answer of a style sheet: `charset` of its response, and its bytes.
type Answer = (Option<&'static str>, &'static [u8]);

/// What the document of these bytes and its sheets, answered in the order in which they are hinted, name.
fn read(html: &[u8], sheets: &[Answer]) -> Vec<String> {
    let mut document = Document::new(&page(), None, options());
    let mut hints = document.html(html);
    hints.extend(document.html_end());
    for (at, (charset, css)) in sheets.iter().enumerate() {
        let hint: Hint = hints[at].clone();
        let info = ResourceInfo { charset: *charset, ..ResourceInfo::default() };
        let id = document.resource_begins(&hint, &hint.url, &info).unwrap();
        for piece in css.chunks(3) {
            hints.extend(document.resource(id, piece));
        }
        hints.extend(document.resource_end(id));
    }
    let mut names = names(&hints[sheets.len()..]);
    names.sort();
    names
}

#[test]
fn a_sheet_that_says_nothing_has_the_encoding_of_what_names_it() {
    let html = b"<meta charset=koi8-r><link rel=stylesheet href=a.css><p>x";
    let rule = b"p{background:url(x?\xd1)}"; // я
    assert_eq!(read(html, &[(None, rule)]), ["dir/x?%D1"]);
    assert_eq!(read(html, &[(None, b"@import 'b.css';"), (None, rule)]), ["dir/x?%D1"]);
    // The import of a sheet that has another encoding than the document.
    assert_eq!(
        read(html, &[(Some("latin1"), b"@import 'b.css';"), (None, b"p{background:url(\xd1?\xd1)}")]),
        ["dir/%C3%91?%D1"],
        "\u{d1} in Latin 1"
    );
}

#[test]
fn a_sheet_that_says_its_encoding_is_read_and_writes_queries_in_that() {
    let html = b"<meta charset=koi8-r><link rel=stylesheet href=a.css><p>x";
    let letter = "p{background:url(\u{e4}?\u{e4})}".as_bytes();
    assert_eq!(read(html, &[(Some("utf-8"), letter)]), ["dir/%C3%A4?%C3%A4"]);
    assert_eq!(read(html, &[(Some("latin1"), b"p{background:url(\xe4?\xe4)}")]), ["dir/%C3%A4?%E4"]);
    let named = b"@charset \"latin1\";p{background:url(\xe4?\xe4)}";
    assert_eq!(read(html, &[(None, named)]), ["dir/%C3%A4?%E4"]);
    assert_eq!(read(html, &[(Some("koi8-r"), named)]), ["dir/%D0%94?%E4"], "the response counts first");
    let marked = "\u{feff}@charset \"latin1\";p{background:url(\u{e4}?\u{e4})}".as_bytes();
    assert_eq!(read(html, &[(Some("koi8-r"), marked)]), ["dir/%C3%A4?%C3%A4"], "the mark before all");
}

#[test]
fn styles_in_the_document_are_in_its_encoding() {
    let html = b"<meta charset=latin1><style>i{background:url(1?\xe4)}</style><i>x</i>\
                 <b style='background:url(2?\xe4)'>x</b><u style='background:url(3?&#1103;)'>x</u>";
    assert_eq!(read(html, &[]), ["dir/1?%E4", "dir/2?%E4", "dir/3?%26%231103%3B"]);
}

#[test]
fn a_sheet_that_comes_before_its_link_keeps_its_encoding() {
    let mut document = Document::new(&page(), Some("utf-8"), options());
    let early = document.link_field("<a.css>; rel=preload; as=style", true);
    let info = ResourceInfo { charset: Some("latin1"), ..ResourceInfo::default() };
    let id = document.resource_begins(&early[0], &early[0].url, &info).unwrap();
    document.resource(id, b"p{background:url(x?\xe4)}");
    document.resource_end(id);
    assert_eq!(names(&document.html(b"<link rel=stylesheet href=a.css><p>x")), ["dir/x?%E4"]);
}
