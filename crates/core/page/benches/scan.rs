//! How fast a page is read: MB/s over documents and a script made up here. `cargo bench -p farhop-page --bench scan`;
//! a word behind `--` chooses the lines that contain it.

use farhop_page::{Document, Options, ResourceInfo};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;
use url::Url;

const ROUNDS: usize = 50;

/// Articles with navigation, cards, images and texts, as content management systems write them.
fn html() -> String {
    let mut page = String::from(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>An article</title>\
         <script defer src=/js/main.js></script></head><body class=\"page home\">",
    );
    for at in 0..500 {
        let _ = write!(
            page,
            "\n  <article id=\"post-{at}\" class=\"post card card-{} shadow-sm\" data-id=\"{at}\">\n    \
             <h2 class=\"entry-title\"><a href=\"/posts/{at}/about-something\" rel=\"bookmark\">Title &amp; more</a></h2>\n    \
             <p>{}</p>\n    <ul class=\"tags\"><li><a href=\"/tag/a\">one</a><li><a href=\"/tag/b\">two</a></ul>\n    \
             <p>{}<em>with emphasis</em> and <code>code</code>.</p>\n  </article>",
            at % 7,
            "Some words of a text that goes on for a while, as texts do. ".repeat(6),
            "More words, a line or three of them, before the next. ".repeat(5),
        );
        if at % 10 == 0 {
            let _ = write!(
                page,
                "<img src=\"/img/{at}.jpg\" width=640 height=480 alt=\"A picture\" loading=lazy>"
            );
        }
    }
    page + "</body></html>"
}

/// A bundle as minifiers write it.
fn script() -> String {
    let mut text = String::new();
    for at in 0..2_000 {
        let _ = write!(
            text,
            "function f{at}(e,t,n){{var r=e.length>0?t[n]:null;if(!r||typeof r!==\"object\")return/^[a-z]+$/i.test(e)?e/2:\
             'value-{at}';for(var o=0;o<r.items.length;o++)r.items[o]=Object.assign({{}},r.items[o],{{index:o,label:`${{e}}-${{o}}`}});\
             return n.dispatch({{type:\"UPDATE_{at}\",payload:r}}),r}}"
        );
    }
    text + "export{f1 as a};import\"./other.js\";"
}

/// Rules for most of the elements of [`html`], one of which has an image.
const STYLE: &str = "<style>@font-face{font-family:Text;src:url(/text.woff2)}body{font-family:Text,sans-serif}\
     .card{display:block}.card-3{background:url(/card.png)}.entry-title a{font-weight:600}.tags li{display:inline}\
     p em{font-style:normal}code{font-family:monospace}.menu>li{list-style:url(/dot.png)}</style></head>";

/// The best of several rounds: what the code can do when nothing else runs.
fn measure(name: &str, bytes: usize, mut round: impl FnMut() -> usize) {
    if std::env::args().skip(1).any(|word| !word.starts_with('-') && !name.contains(&word)) {
        return;
    }
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(round());
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name}: {:.0} MB/s ({} KB)", bytes as f64 / best / 1e6, bytes / 1000);
}

fn main() {
    let Ok(url) = Url::parse("http://site.test/page.html") else { return };
    let (html, script) = (html(), script());
    let styled = html.replace("</head>", STYLE);
    for (name, html) in [("HTML", html), ("HTML with styles", styled)] {
        measure(name, html.len(), || {
            let mut document = Document::new(&url, Some("utf-8"), Options::default());
            let mut hints = 0;
            for chunk in html.as_bytes().chunks(16 * 1024) {
                hints += document.html(chunk).len();
            }
            hints + document.html_end().len()
        });
    }
    measure("JavaScript", script.len(), || {
        let mut document = Document::new(&url, Some("utf-8"), Options::default());
        let hints = document.html(b"<script type=module src=/a.js></script>");
        let Some(hint) = hints.first() else { return 0 };
        let Some(id) = document.resource_begins(hint, &hint.url, &ResourceInfo::default()) else { return 0 };
        let mut count = 0;
        for chunk in script.as_bytes().chunks(16 * 1024) {
            count += document.resource(id, chunk).len();
        }
        count + document.resource_end(id).len()
    });
}
