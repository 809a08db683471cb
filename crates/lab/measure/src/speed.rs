//! How fast pages are read: the scanners of `core/page` over made-up documents, style sheets and scripts of
//! usual size.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use farhop_page::{Destination, Document, Options, ResourceInfo};
use url::Url;

use crate::group::Context;
use crate::{MeasureError, Row};

/// Bytes that a scanner has to read in a second.
const BOUND: f64 = 100e6;
/// How long is read for each figure.
const READ: Duration = Duration::from_secs(2);
/// Documents come in pieces of this size from the network.
const PIECE: usize = 16 << 10;

pub(crate) fn rows(_: &Context) -> Result<Vec<Row>, MeasureError> {
    let document = document();
    let sheet = sheet();
    let script = script();
    Ok(vec![
        row("HTML", document.len(), || {
            let mut reader = reader()?;
            let found: usize = document.as_bytes().chunks(PIECE).map(|piece| reader.html(piece).len()).sum();
            Ok(found + reader.html_end().len())
        })?,
        row("CSS, rules matched with the page", sheet.len(), || file(Destination::Style, &sheet))?,
        row("JavaScript", script.len(), || file(Destination::Script, &script))?,
    ])
}

/// Reads [`SMALL_PAGE`] and `text` as its first file of this kind; how many hints the file gave.
fn file(destination: Destination, text: &str) -> Result<usize, MeasureError> {
    let mut reader = reader()?;
    let mut hints = reader.html(SMALL_PAGE.as_bytes());
    hints.extend(reader.html_end());
    let hint = hints.iter().find(|hint| hint.destination == destination);
    let hint = hint.ok_or_else(|| MeasureError::Unexpected(format!("no {destination:?} was found")))?;
    let id = reader.resource_begins(hint, &hint.url, &ResourceInfo::default());
    let id = id.ok_or_else(|| MeasureError::Unexpected(format!("the {destination:?} is not read")))?;
    let found: usize = text.as_bytes().chunks(PIECE).map(|piece| reader.resource(id, piece).len()).sum();
    Ok(found + reader.resource_end(id).len())
}

/// Reads again and again for long enough, and tells the fastest reading: how fast a core reads that has nothing else to
/// do. A reading that finds nothing is none.
fn row(
    what: &str,
    bytes: usize,
    mut read: impl FnMut() -> Result<usize, MeasureError>,
) -> Result<Row, MeasureError> {
    let (mut best, mut found) = (Duration::MAX, 0);
    let end = Instant::now() + READ;
    while Instant::now() < end {
        let start = Instant::now();
        found = read()?;
        best = best.min(start.elapsed());
    }
    let rate = bytes as f64 / best.as_secs_f64();
    let measured = format!("{:.0} MB/s, {found} hints in {} KB", rate / 1e6, bytes / 1000);
    let bound = format!("≥ {:.0} MB/s on one core", BOUND / 1e6);
    Ok(Row::judged(format!("reading {what}"), measured, bound, rate >= BOUND && found > 0))
}

fn reader() -> Result<Document, MeasureError> {
    let url = Url::parse("http://page.test/").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    Ok(Document::new(&url, Some("utf-8"), Options::default()))
}

const SMALL_PAGE: &str = "<!doctype html><link rel=stylesheet href=a.css>\
    <script type=module src=a.js></script><body class='home wide'><main id=main>\
    <ul class=list><li class='item first'><a class=link href=x>x</a></ul><p class=lead>x</main>";

/// 150 KB of article, navigation, tables and pictures.
fn document() -> String {
    let mut page = String::from("<!doctype html><html lang=en><head><meta charset=utf-8><title>t</title>\n");
    page.push_str("<link rel=stylesheet href=a.css><script src=a.js defer></script></head><body>\n");
    for number in 0..250 {
        let _ = write!(
            page,
            "<article class=\"card card-{number} shadow\" id=\"a{number}\" data-kind=\"{}\">\n\
             <h2 class=title><a href=\"/articles/{number}?from=list&amp;page=2\">Heading {number}</a></h2>\n\
             <p>Some words of text that go on for a while, with <em>emphasis</em>, a <code>name</code>, and \
             an entity &mdash; as articles have them. They say nothing that anyone would want to know, at the length \
             of a paragraph that is neither short nor long, since that is what most of a document is.</p>\n\
             <ul><li>one</li><li class=\"on\">two</li></ul>\n\
             <img src=\"/images/{number}.jpg\" width=320 height=200 alt=\"a picture\" loading=lazy></article>\n",
            number % 7
        );
    }
    page.push_str("</body></html>");
    page
}

/// 150 KB of rules, of which a page uses a few.
fn sheet() -> String {
    let mut sheet = String::from("@charset \"utf-8\";\n");
    for number in 0..700 {
        let _ = write!(
            sheet,
            ".component-{number} > .part:first-child, .list .item-{number}:hover {{ color: #123456; margin: 0 auto; \
             padding: 4px 8px; border-radius: 2px }}\n\
             .icon-{number}::before {{ background: url(icons/{number}.svg) no-repeat; content: \"\\f{number:03}\" }}\n"
        );
    }
    sheet.push_str(".home .link { background-image: url(used.png) }\n");
    sheet
}

/// 150 KB of functions as minifiers write them, with imports.
fn script() -> String {
    let mut script = String::from("import{a as b}from\"./b.js\";");
    for number in 0..700 {
        let _ = write!(
            script,
            "function f{number}(e,t){{var r=e.length>0?t[e]:null;if(!r||\"object\"!=typeof r)return/^[a-z]+$/i.test(e)?e/2:\
             'v{number}';for(var o=0;o<r.items.length;o++)r.items[o]=`${{e}}-${{o}}`;return r}}"
        );
    }
    script.push_str("export{f1 as c};import(\"./late.js\");");
    script
}
