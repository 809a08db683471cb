//! How fast style sheets are read, and what matching costs: `cargo bench -p farhop-page --bench css`. The sheet is made
//! up here after those of component libraries: most rules fetch nothing, some set fonts or `display`, few name images.

use farhop_page::{Document, Options, ResourceInfo};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;
use url::Url;

const ROUNDS: usize = 40;
const ELEMENTS: usize = 3_000;
const SHEET: usize = 300 * 1024;

const HEAD: &str = "<!doctype html><html><head><link rel=stylesheet href=/main.css></head><body>";

fn sheet() -> String {
    let mut css = String::from(
        "@charset \"utf-8\";:root{--primary:#0d6efd;--gap:1.5rem;--font:\"Text\",sans-serif}\
         @font-face{font-family:Text;src:url(/f/text.woff2) format(\"woff2\")}\
         @font-face{font-family:Icons;src:url(/f/icons.woff2) format(\"woff2\"),url(/f/icons.woff) format(\"woff\")}\
         body{margin:0;font-family:var(--font);color:#212529}\n",
    );
    let mut at = 0;
    while css.len() < SHEET {
        let _ = write!(
            css,
            ".card-{at} > .card-body .title, .card-{at}:hover .title {{\n  margin: 0 auto var(--gap);\n  padding: .5rem 1rem;\n  \
             border: 1px solid rgba(0, 0, 0, .125);\n  border-radius: .25rem;\n  color: var(--primary);\n}}\n\
             .btn-{at}{{position:relative;transition:color .15s ease-in-out,background-color .15s ease-in-out;\
             text-decoration:none;white-space:nowrap;vertical-align:middle}}\n\
             @media (max-width: 575.98px) {{ .col-{at} {{ flex: 0 0 50%; max-width: 50%; }} }}\n"
        );
        match at % 4 {
            0 => {
                let _ = writeln!(css, ".icon-{at}::before{{content:\"\\f{at:03x}\";font-family:Icons}}");
            }
            1 => {
                let _ =
                    writeln!(css, ".hero-{at}{{background:#eee url('../img/hero-{at}.jpg') center/cover}}");
            }
            2 => {
                let _ = writeln!(css, ".navbar .dropdown-{at}{{display:none;font-weight:600}}");
            }
            _ => {}
        }
        at += 1;
    }
    css
}

fn html() -> String {
    let mut page = String::from(HEAD);
    for at in 0..ELEMENTS / 5 {
        let _ = write!(
            page,
            "<div class=\"card card-{at}\"><div class=card-body><h2 class=title>Title</h2>\
             <i class=icon-{}></i><a class=\"btn btn-{at}\" href=/x>more</a></div></div>",
            at % 40
        );
    }
    page + "</body></html>"
}

/// Seconds of the best of several rounds: what the code can do when nothing else runs.
fn best(mut round: impl FnMut() -> usize) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(round());
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

/// Reads a page whose only sheet is `css`; returns how many hints it gave.
fn read(url: &Url, html: &str, css: &str) -> usize {
    let mut document = Document::new(url, None, Options::default());
    let linked = document.html(HEAD.as_bytes());
    let sheet = linked.first().expect("the head names a sheet");
    let mut hints = linked.len();
    let location = url.join("/main.css").expect("a path");
    let id = document.resource_begins(sheet, &location, &ResourceInfo::default()).expect("sheets are read");
    for chunk in css.as_bytes().chunks(16 * 1024) {
        hints += document.resource(id, chunk).len();
    }
    hints += document.resource_end(id).len();
    hints + document.html(&html.as_bytes()[HEAD.len()..]).len() + document.html_end().len()
}

fn main() {
    let url = Url::parse("http://site.test/").expect("a URL");
    let (html, css) = (html(), sheet());
    let bare = best(|| read(&url, HEAD, ""));
    let parsing = best(|| read(&url, HEAD, &css)) - bare;
    println!(
        "parse: {:.0} MB/s ({} KB in {:.2} ms)",
        css.len() as f64 / parsing / 1e6,
        css.len() / 1024,
        parsing * 1e3
    );
    let page = best(|| read(&url, &html, ""));
    let matching = best(|| read(&url, &html, &css)) - page - parsing;
    println!(
        "match: {ELEMENTS} elements in {:.2} ms, {:.2} µs each ({} hints)",
        matching * 1e3,
        matching / ELEMENTS as f64 * 1e6,
        read(&url, &html, &css)
    );
}
