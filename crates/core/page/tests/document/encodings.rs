//! Text in other encodings than UTF-8: which one a style sheet has, and how the queries in it are written.

use crate::loading::{names, options, page};
use farhop_page::{Document, Hint, Options, ResourceInfo};

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

/// What the page of these bytes, which says its encoding or does not, names by itself.
fn named(charset: Option<&str>, html: &[u8]) -> Vec<String> {
    let mut document = Document::new(&page(), charset, options());
    names(&document.html(html))
}

#[test]
fn what_a_document_that_does_not_say_its_encoding_names_beyond_ascii_is_left_to_the_browser() {
    let html = "<img src=\u{e4}.png><img src='b.png?\u{e4}'><p style='background:url(\u{e4})'>x</p>\
                <link rel=stylesheet href=c.css><script>x.src = 'd/\u{e4}.png'; y.src = 'e.png'</script>";
    assert_eq!(
        named(None, html.as_bytes()),
        ["dir/c.css", "dir/e.png"],
        "Chromium would ask for %C3%83%C2%A4.png"
    );
    let all =
        ["dir/%C3%A4.png", "dir/b.png?%C3%A4", "dir/%C3%A4", "dir/c.css", "dir/d/%C3%A4.png", "dir/e.png"];
    assert_eq!(named(Some("utf-8"), html.as_bytes()), all);
    assert_eq!(named(None, format!("<meta charset=utf-8>{html}").as_bytes()), all);
    assert_eq!(named(None, format!("\u{feff}{html}").as_bytes()), all);
    let wide: Vec<u8> = format!("\u{feff}{html}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(named(None, &wide), all, "UTF-16 by its mark; its queries are UTF-8");
    assert_eq!(
        read(b"<link rel=stylesheet href=a.css><p>x", &[(None, "p{background:url(\u{e4})}".as_bytes())]),
        [""; 0]
    );
    assert_eq!(
        read(
            b"<link rel=stylesheet href=a.css><p>x",
            &[(Some("utf-8"), "p{background:url(\u{e4})}".as_bytes())]
        ),
        ["dir/%C3%A4"]
    );
}

/// What a script of these bytes, whose response names `charset`, names in a page of this mark-up.
fn in_script(html: &str, charset: Option<&str>, script: &[u8]) -> Vec<String> {
    let mut document = Document::new(&page(), Some("shift_jis"), options());
    let hints = document.html(html.as_bytes());
    let info = ResourceInfo { charset, ..ResourceInfo::default() };
    let id = document.resource_begins(&hints[0], &hints[0].url, &info).unwrap();
    let mut found: Vec<Hint> = script.chunks(3).flat_map(|piece| document.resource(id, piece)).collect();
    found.extend(document.resource_end(id));
    names(&found)
}

#[test]
fn a_classic_script_is_in_the_encoding_that_its_response_its_element_or_the_page_says() {
    // Of the two bytes of the first character the second is a backslash.
    let script = b"a('\x95\x5c', 'i/\x93\xfa.png')";
    let expected = ["dir/i/%E6%97%A5.png"];
    assert_eq!(in_script("<script src=a.js></script>", None, script), expected);
    assert_eq!(in_script("<script src=a.js charset=utf-8></script>", Some("shift_jis"), script), expected);
    let wide = "a('\u{8868}', 'i/\u{65e5}.png')".as_bytes();
    assert_eq!(in_script("<script src=a.js charset=utf-8></script>", None, wide), expected);
    assert_eq!(in_script("<script src=a.js></script>", Some("utf-8"), wide), expected);
    assert_eq!(in_script("<script type=module src=a.js></script>", Some("shift_jis"), wide), expected);
    assert_eq!(
        in_script("<script src=a.js charset=utf-8></script>", None, script),
        [""; 0],
        "nothing is better"
    );
}

#[test]
fn an_xml_declaration_says_the_encoding_where_nothing_else_does() {
    let declared = b"<?xml version='1.0' encoding = \"koi8-r\"?><!doctype html><img src='?\xd1'>";
    assert_eq!(named(None, declared), ["dir/page.html?%D1"]);
    let overruled = b"<?xml version='1.0' encoding='koi8-r'?><meta charset=latin1><img src='\xe4'>";
    assert_eq!(named(None, overruled), ["dir/%C3%A4"]);
    let xhtml = b"<?xml version='1.0' encoding='koi8-r'?><html xmlns='http://www.w3.org/1999/xhtml'><img src='\xd1'/></html>";
    let mut document = Document::new(&page(), None, Options { xml: true, ..options() });
    let hints: Vec<Hint> = xhtml.chunks(5).flat_map(|piece| document.html(piece)).collect();
    assert_eq!(names(&hints), ["dir/%D1%8F"]);
}
