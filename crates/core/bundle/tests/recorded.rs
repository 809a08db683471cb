//! Predictions held against what Chromium really sent: each recorded page is scanned, each hint made into a request,
//! and the request compared, field by field, with the one that the browser sent for it.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Budget, Cookies, Decision, Load, Mismatch, NeverUnasked, Plan, compare};
use farhop_page::{Options, Scanner};
use http::header;
use std::collections::BTreeSet;
use support::{Head, at, heads, read_fields};
use url::Url;

/// What one load of one page gave.
#[derive(Debug, Default, PartialEq, Eq)]
struct Score {
    exact: usize,
    differing: BTreeSet<(String, String)>,
    never_asked: BTreeSet<String>,
    /// Asked for because of the document, but not predicted.
    missed: BTreeSet<String>,
}

fn replay(page: &'static str, recorded: &'static str, load: &str) -> Score {
    let (url, rest) = page.split_once('\n').unwrap();
    let (response, body) = rest.split_once("\n\n").unwrap();
    let (url, response) = (Url::parse(url).unwrap(), read_fields(response.lines()));
    let heads: Vec<Head> = heads(recorded).into_iter().filter(|head| head.load == load).collect();
    let document = heads.iter().find(|head| head.url == url).unwrap();
    let mut cookies = Cookies::default();
    let noted = cookies.note_request(&url, &document.fields, at(0));
    cookies.note_response(&noted, &url, &response, at(0));
    let load = Load::new(url.clone(), document.fields.clone(), &response, &noted);
    let mut plan = Plan::new(load, Budget::default());
    let jpeg_xl = document.fields[header::ACCEPT].to_str().unwrap().contains("image/jxl");
    let mut scanner = Scanner::new(&url, Some("utf-8"), Options { jpeg_xl, ..Options::default() });
    let mut hints = scanner.write(body.as_bytes());
    hints.extend(scanner.finish());

    let mut score = Score::default();
    let mut predicted = BTreeSet::new();
    for hint in &hints {
        let Decision::Fetch(request, _) = plan.decide(hint, &NeverUnasked::new(10), &cookies, at(0)) else {
            continue;
        };
        predicted.insert(request.url.clone());
        match heads.iter().find(|head| head.url == request.url) {
            None => _ = score.never_asked.insert(request.url.path().to_owned()),
            Some(sent) => match compare(&request.fields, &sent.fields) {
                Ok(()) => score.exact += 1,
                Err(Mismatch(name)) => {
                    let place = sent.url.host_str().unwrap().to_owned();
                    score.differing.insert((name.to_string(), place));
                }
            },
        }
    }
    let by_document = heads.iter().filter(|head| body.contains(head.url.path()));
    score.missed = by_document
        .filter(|head| head.url != url && !predicted.contains(&head.url))
        .map(|head| head.url.path().to_owned())
        .collect();
    score
}

macro_rules! corpus {
    ($name:literal) => {
        include_str!(concat!("../../../lab/testkit/corpora/heads/", $name))
    };
}

fn all_exact(exact: usize) -> Score {
    Score { exact, ..Score::default() }
}

/// Exact but for the cookies that the browser also shows to a sibling host, which ground does not know.
fn all_but_cookies_of(host: &str, exact: usize) -> Score {
    Score { exact, differing: BTreeSet::from([("cookie".to_owned(), host.to_owned())]), ..Score::default() }
}

#[test]
fn a_page_of_one_origin_is_predicted_whole_and_exactly() {
    assert_eq!(replay(corpus!("gallery.page"), corpus!("gallery.heads"), "first"), all_exact(32));
    assert_eq!(replay(corpus!("shop.page"), corpus!("shop.heads"), "first"), all_exact(24));
    assert_eq!(replay(corpus!("shop-https.page"), corpus!("shop-https.heads"), "first"), all_exact(24));
}

#[test]
fn modules_preloads_and_cors_are_predicted_exactly() {
    assert_eq!(replay(corpus!("app.page"), corpus!("app.heads"), "first"), all_exact(13));
    assert_eq!(replay(corpus!("app-https.page"), corpus!("app-https.heads"), "first"), all_exact(13));
}

#[test]
fn a_page_of_many_origins_is_predicted_but_for_foreign_cookies() {
    let siblings = all_but_cookies_of("static.daily-courier.test", 19);
    assert_eq!(replay(corpus!("news.page"), corpus!("news.heads"), "first"), siblings);
    let siblings = all_but_cookies_of("static.evening-ledger.test", 19);
    assert_eq!(replay(corpus!("news-https.page"), corpus!("news-https.heads"), "first"), siblings);
    assert_eq!(
        replay(corpus!("wiki.page"), corpus!("wiki.heads"), "first"),
        all_but_cookies_of("upload.openlore.test", 3)
    );
}

#[test]
fn a_hard_reload_is_predicted_with_its_no_cache() {
    assert_eq!(replay(corpus!("gallery.page"), corpus!("gallery.heads"), "hard reload"), all_exact(32));
    assert_eq!(replay(corpus!("app.page"), corpus!("app.heads"), "hard reload"), all_exact(13));
    assert_eq!(replay(corpus!("shop-https.page"), corpus!("shop-https.heads"), "hard reload"), all_exact(24));
}

#[test]
fn firefox_is_predicted_as_well() {
    assert_eq!(replay(corpus!("gallery.page"), corpus!("firefox-gallery.heads"), "first"), all_exact(32));
    assert_eq!(replay(corpus!("shop.page"), corpus!("firefox-shop.heads"), "first"), all_exact(24));
    let touch_icon = Score { missed: BTreeSet::from(["/touch.png".to_owned()]), ..all_exact(12) };
    assert_eq!(replay(corpus!("app.page"), corpus!("firefox-app.heads"), "first"), touch_icon);
    assert_eq!(
        replay(corpus!("news.page"), corpus!("firefox-news.heads"), "first"),
        all_but_cookies_of("static.daily-courier.test", 18)
    );
    assert_eq!(
        replay(corpus!("wiki.page"), corpus!("firefox-wiki.heads"), "first"),
        all_but_cookies_of("upload.openlore.test", 3)
    );
}

#[test]
fn of_a_reload_only_the_document_says_so_and_a_hard_one_says_it_everywhere() {
    for recorded in [include_str!("recorded/again.heads"), include_str!("recorded/firefox-again.heads")] {
        let page = include_str!("recorded/again.page");
        assert_eq!(replay(page, recorded, "first"), all_exact(4));
        // What is fresh the browser takes from its own cache.
        let fresh = ["/a.css", "/a.js", "/a.gif"].map(str::to_owned);
        let validated = Score { never_asked: BTreeSet::from(fresh), ..all_exact(1) };
        assert_eq!(replay(page, recorded, "reload"), validated);
    }
    let hard =
        replay(include_str!("recorded/again.page"), include_str!("recorded/again.heads"), "hard reload");
    assert_eq!(hard, all_exact(4));
}

#[test]
fn objects_embedded_files_and_parts_of_svg_files_are_predicted_exactly() {
    let missed = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
    // For plug-ins: left to the browser.
    let left = missed(&["/object/pdf.pdf"]);
    for (page, recorded) in [
        (include_str!("recorded/parts.page"), include_str!("recorded/parts.heads")),
        (include_str!("recorded/parts-https.page"), include_str!("recorded/parts-https.heads")),
        (include_str!("recorded/parts.page"), include_str!("recorded/firefox-parts.heads")),
        (include_str!("recorded/parts-https.page"), include_str!("recorded/firefox-parts-https.heads")),
    ] {
        let expected = Score { missed: left.clone(), ..all_exact(37) };
        assert_eq!(replay(page, recorded, "first"), expected);
    }
}
