//! What reading a component library's style sheet costs, and matching it with a page apart: `cargo bench -p farhop-page
//! --bench css`.

#[expect(dead_code, reason = "the bench beside this one reads them all")]
mod cases;

use farhop_page::{Document, Options, ResourceInfo};
use std::fmt::Write;
use std::time::{Duration, Instant};
use url::Url;

const ROUNDS: usize = 40;
const ELEMENTS: usize = 3_000;

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
    let (html, css) = (html(), cases::components());
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
