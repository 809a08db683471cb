//! Pages that mean harm stay within their bounds.

use crate::loading::{names, options, page};
use farhop_page::{Destination, Document, Options, ResourceInfo, Steps};

#[test]
fn a_hostile_page_stays_within_its_bounds() {
    let bounds = Options { max_hints: 100, max_elements: 1000, ..options() };
    let mut document = Document::new(&page(), None, bounds);
    let mut given = 0;
    for at in 0..20_000 {
        let html = format!(
            "<div class=c{at}><link rel=stylesheet href={at}.css><img src={at}.png style='background:url(s{at}.png)'>\
             <script>import('./{at}.js')</script>"
        );
        let hints = document.html(html.as_bytes());
        given += hints.len();
        for hint in hints {
            if let Some(id) = document.resource_begins(&hint, &hint.url, &ResourceInfo::default()) {
                let body = format!("@import 'i{at}.css'; import 'm{at}.js'");
                given += document.resource(id, body.as_bytes()).len() + document.resource_end(id).len();
            }
        }
    }
    given += document.html_end().len();
    assert_eq!(given, 100);
}

/// As slow to match as rules can be made.
fn slow_page() -> String {
    let rule = |at| format!(":has(:has(*)) > * ~ * + * :not(:has(.n{at})) {{background:url(/i/h{at}.png)}}");
    let rules: String = (0..2_000).map(rule).collect();
    format!("<!doctype html><style>{rules}</style>{}", "<div><p></p><p>".repeat(20_000))
}

#[test]
fn documents_of_one_page_share_one_budget_of_matching() {
    let page_options = Options { matching: Steps::new(300_000), ..options() };
    let styled = b"<p style='background:url(a.png)'>x</p>";
    let read = |html: &[u8]| {
        let mut document = Document::new(&page(), Some("utf-8"), page_options.clone());
        let mut hints = document.html(html);
        hints.extend(document.html_end());
        hints.len()
    };
    assert_eq!(read(styled), 1);
    read(slow_page().as_bytes());
    assert_eq!(page_options.matching.left(), 0);
    assert_eq!(read(styled), 0, "a frame has no budget of its own");
}

#[test]
fn rules_that_wait_for_the_end_of_the_document_are_paid_for_meanwhile() {
    let options = options();
    let steps = options.matching.clone();
    let before = steps.left();
    Document::new(&page(), Some("utf-8"), options).html(&slow_page().as_bytes()[..300_000]);
    assert!(before - steps.left() > 2_000_000, "{}", before - steps.left());
}

#[test]
fn what_is_beyond_the_longest_document_is_not_read() {
    let mut document = Document::new(&page(), None, Options { max_html: 30, ..options() });
    let mut hints = document.html(b"<img src=a.png><img ");
    hints.extend(document.html(b"src=b.png><img src=c.png>"));
    hints.extend(document.html(b"<img src=d.png>"));
    hints.extend(document.html_end());
    assert_eq!(names(&hints), ["dir/a.png", "dir/b.png"]);
}

#[test]
fn endless_imports_end() {
    let mut document = Document::new(&page(), None, options());
    let mut waiting =
        document.html(b"<script type=module src=0.js></script><link rel=stylesheet href=0.css>");
    let mut fetched = 0;
    while let Some(hint) = waiting.pop() {
        fetched += 1;
        let Some(id) = document.resource_begins(&hint, &hint.url, &ResourceInfo::default()) else { continue };
        let body = match hint.destination {
            Destination::Style => format!("@import 'a{fetched}.css'; @import 'b{fetched}.css';"),
            _ => format!("import './a{fetched}.js'; import './b{fetched}.js'"),
        };
        waiting.extend(document.resource(id, body.as_bytes()));
        waiting.extend(document.resource_end(id));
    }
    assert!(fetched <= Options::default().max_hints, "{fetched}");
}
