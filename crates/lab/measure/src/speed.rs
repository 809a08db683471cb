//! How fast pages are read: the scanners of `core/page` over made-up documents and style sheets of usual size.

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
    Ok(vec![
        row("HTML", document.len(), || {
            let mut reader = reader()?;
            let found: usize = document.as_bytes().chunks(PIECE).map(|piece| reader.html(piece).len()).sum();
            Ok(found + reader.html_end().len())
        })?,
        row("CSS, rules matched with the page", sheet.len(), || {
            let mut reader = reader()?;
            let mut hints = reader.html(SMALL_PAGE.as_bytes());
            hints.extend(reader.html_end());
            let style = hints.iter().find(|hint| hint.destination == Destination::Style);
            let style = style.ok_or_else(|| MeasureError::Unexpected("no style was found".into()))?;
            let info = ResourceInfo::default();
            let id = reader.resource_begins(style, &style.url, &info);
            let id = id.ok_or_else(|| MeasureError::Unexpected("the style is not read".into()))?;
            let found: usize =
                sheet.as_bytes().chunks(PIECE).map(|piece| reader.resource(id, piece).len()).sum();
            Ok(found + reader.resource_end(id).len())
        })?,
    ])
}

/// Reads again and again for long enough. A reading that finds nothing is none.
fn row(
    what: &str,
    bytes: usize,
    mut read: impl FnMut() -> Result<usize, MeasureError>,
) -> Result<Row, MeasureError> {
    let (mut done, mut found) = (0, read()?);
    let start = Instant::now();
    while start.elapsed() < READ {
        found = read()?;
        done += bytes;
    }
    let rate = done as f64 / start.elapsed().as_secs_f64();
    let measured = format!("{:.0} MB/s, {found} hints in {} KB", rate / 1e6, bytes / 1000);
    let bound = format!("≥ {:.0} MB/s on one core", BOUND / 1e6);
    Ok(Row::judged(format!("reading {what}"), measured, bound, rate >= BOUND && found > 0))
}

fn reader() -> Result<Document, MeasureError> {
    let url = Url::parse("http://page.test/").map_err(|error| MeasureError::Unexpected(error.to_string()))?;
    Ok(Document::new(&url, Some("utf-8"), Options::default()))
}

const SMALL_PAGE: &str = "<!doctype html><link rel=stylesheet href=a.css><body class='home wide'><main id=main>\
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
