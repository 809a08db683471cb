//! How fast style sheets are read, and what matching costs: `cargo bench -p farhop-page --bench css`. The sheet is made
//! up here after those of component libraries: most rules fetch nothing, some set fonts or `display`, few name images.

use farhop_page::{Document, Options, ResourceInfo};
use std::fmt::Write;
use std::time::{Duration, Instant};
use url::Url;

const ROUNDS: usize = 40;
const ELEMENTS: usize = 3_000;
const SHEET: usize = 300 * 1024;

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
    let mut page =
        String::from("<!doctype html><html><head><link rel=stylesheet href=/main.css></head><body>");
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

/// What reading a page whose only sheet is `css` took.
struct Times {
    /// Reading the sheet's text.
    parsing: Duration,
    /// Its end, which decides what all elements need.
    matching: Duration,
    hints: usize,
}

/// The document is read first, so that matching waits for the end of the sheet.
fn read(url: &Url, html: &str, css: &str) -> Times {
    let mut document = Document::new(url, None, Options::default());
    let linked = document.html(html.as_bytes());
    let sheet = linked.first().expect("the head names a sheet");
    let mut hints = linked.len() + document.html_end().len();
    let location = url.join("/main.css").expect("a path");
    let id = document.resource_begins(sheet, &location, &ResourceInfo::default()).expect("sheets are read");
    let start = Instant::now();
    for chunk in css.as_bytes().chunks(16 * 1024) {
        hints += document.resource(id, chunk).len();
    }
    let parsing = start.elapsed();
    hints += document.resource_end(id).len();
    Times { parsing, matching: start.elapsed() - parsing, hints }
}

fn main() {
    let url = Url::parse("http://site.test/").expect("a URL");
    let (html, css) = (html(), sheet());
    let rounds: Vec<Times> = (0..ROUNDS).map(|_| read(&url, &html, &css)).collect();
    // The best of all: what the code can do when nothing else runs.
    let best = |time: fn(&Times) -> Duration| rounds.iter().map(time).min().unwrap_or_default().as_secs_f64();
    let (parsing, matching) = (best(|times| times.parsing), best(|times| times.matching));
    println!(
        "parse: {:.0} MB/s ({} KB in {:.2} ms)",
        css.len() as f64 / parsing / 1e6,
        css.len() / 1024,
        parsing * 1e3
    );
    println!(
        "match: {ELEMENTS} elements in {:.2} ms, {:.2} µs each ({} hints)",
        matching * 1e3,
        matching / ELEMENTS as f64 * 1e6,
        rounds[0].hints
    );
}
