//! Stylesheets: what their rules and the elements together need, and when that is known.

use crate::loading::{load, names, options, page};
use farhop_page::{Destination, Document, Initiator, Options, ReferrerPolicy, ResourceInfo, Source};
use url::Url;

#[test]
fn a_stylesheet_gives_what_its_rules_and_the_elements_together_need() {
    let html = "<link rel=stylesheet href=a.css><div class=used>x</div>";
    let css = ".used{background:url(u.png)} .unused{background:url(n.png)} @font-face{font-family:f;src:url(f.woff2)}\
               div{font-family:f}";
    let hints = load(html, &[("dir/a.css", css)]);
    let mut found = names(&hints);
    found.sort();
    assert_eq!(found, ["dir/a.css", "dir/f.woff2", "dir/u.png"]);
    let image = hints.iter().find(|hint| hint.destination == Destination::Image).unwrap();
    assert_eq!(image.initiator, Initiator::Sheet(Url::parse("http://site.test/dir/a.css").unwrap()));
    assert_eq!(image.source, Source::Rule);
}

#[test]
fn rules_wait_for_the_sheets_that_hold_up_rendering_and_no_longer() {
    let mut document = Document::new(&page(), None, options());
    let hints = document.html(
        b"<style>div{background:url(1.png)}</style><link rel=stylesheet href=a.css><link rel=stylesheet href=b.css><div>x",
    );
    assert_eq!(names(&hints), ["dir/a.css", "dir/b.css"]);
    let id = document.resource_begins(&hints[0], &hints[0].url, &ResourceInfo::default()).unwrap();
    assert!(document.resource(id, b"div{background:url(2.png)}").is_empty());
    assert!(document.resource_end(id).is_empty());
    // What the sheet without answer would have overruled stands.
    assert_eq!(names(&document.resource_lost(&hints[1])), ["dir/2.png"]);
    // An element that comes later is settled with the bytes that show it.
    assert_eq!(names(&document.html(b"<p style='background:url(3.png)'>")), ["dir/3.png"]);
}

#[test]
fn imports_are_followed_to_their_resources() {
    let hints = load(
        "<link rel=stylesheet href=a.css><p>x",
        &[
            ("dir/a.css", "@import 'sub/b.css'; @import 'print.css' print;"),
            ("dir/sub/b.css", "@import url(c.css);"),
            ("dir/sub/c.css", "p{background:url(x.png)}"),
            ("dir/print.css", "p{background:url(no.png)}"),
        ],
    );
    let mut found = names(&hints);
    found.sort();
    assert_eq!(found, ["dir/a.css", "dir/print.css", "dir/sub/b.css", "dir/sub/c.css", "dir/sub/x.png"]);
}

#[test]
fn a_sheet_that_came_before_its_link_counts_from_its_beginning() {
    let mut document = Document::new(&page(), None, options());
    let early = document.link_field("<a.css>; rel=preload; as=style", true);
    assert_eq!(early[0].source, Source::EarlyHints);
    let id = document.resource_begins(&early[0], &early[0].url, &ResourceInfo::default()).unwrap();
    assert!(document.resource(id, b"p{background:").is_empty());
    assert!(document.html(b"<link rel=stylesheet href=a.css><p>x").is_empty());
    assert!(document.resource(id, b"url(x.png)}").is_empty());
    assert_eq!(names(&document.resource_end(id)), ["dir/x.png"]);

    let mut document = Document::new(&page(), None, options());
    let early = document.link_field("<a.css>; rel=preload; as=style", true);
    let id = document.resource_begins(&early[0], &early[0].url, &ResourceInfo::default()).unwrap();
    assert!(document.resource(id, b"p{background:url(x.png)}").is_empty());
    assert!(document.resource_end(id).is_empty());
    assert_eq!(names(&document.html(b"<link rel=stylesheet href=a.css><p>x")), ["dir/x.png"]);
}

#[test]
fn sheets_that_scripts_switch_on_count_without_holding_anything_up() {
    for link in [
        "<link rel=stylesheet href=a.css media=print onload=\"this.media='all'\">",
        "<link rel=preload as=style href=a.css onload=\"this.rel='stylesheet'\">",
    ] {
        let html = format!("{link}<style>i{{background:url(1.png)}}</style><i>x</i><b>y</b>");
        let hints = load(&html, &[("dir/a.css", "b{background:url(2.png)}")]);
        assert_eq!(names(&hints), ["dir/a.css", "dir/1.png", "dir/2.png"], "{link}");
    }
}

#[test]
fn the_policy_of_a_sheet_holds_for_what_it_names() {
    let mut document = Document::new(&page(), None, options());
    let hints =
        document.html(b"<meta name=referrer content=no-referrer><link rel=stylesheet href=a.css><p>x");
    assert_eq!(hints[0].referrer_policy, Some(ReferrerPolicy::NoReferrer));
    let moved = Url::parse("http://site.test/v2/a.css").unwrap();
    let info = ResourceInfo { referrer_policy: Some(ReferrerPolicy::Origin), charset: None };
    let id = document.resource_begins(&hints[0], &moved, &info).unwrap();
    document.resource(id, b"p{background:url(x.png)}");
    let found = document.resource_end(id);
    assert_eq!(names(&found), ["v2/x.png"]);
    assert_eq!(found[0].referrer_policy, Some(ReferrerPolicy::Origin));
    assert_eq!(found[0].initiator, Initiator::Sheet(moved));
}

#[test]
fn jpeg_xl_is_chosen_where_the_browser_shows_it() {
    let html =
        "<style>p{background:image-set('a.jxl' type('image/jxl'),'a.png' type('image/png'))}</style><p>x</p>";
    for (jpeg_xl, expected) in [(true, "dir/a.jxl"), (false, "dir/a.png")] {
        let mut document = Document::new(&page(), Some("utf-8"), Options { jpeg_xl, ..options() });
        assert_eq!(names(&document.html(html.as_bytes())), [expected]);
    }
}

#[test]
fn classes_and_ids_are_told_apart_by_case_but_in_quirks_mode() {
    let page = "<p class=Hero id=Top>x</p><style>.hero{background:url(a.png)}#TOP{list-style:url(b.png)}\
        p:not(.HERO){cursor:url(c.cur),auto}[class=hero]{content:url(d.png)}</style>";
    assert_eq!(names(&load(&format!("<!doctype html>{page}"), &[])), ["dir/c.cur"]);
    let mut quirky = names(&load(page, &[]));
    quirky.sort();
    assert_eq!(quirky, ["dir/a.png", "dir/b.png"]);
}

#[test]
fn a_sheet_in_the_address_of_its_link_styles_the_page() {
    let css = "p{background:url(http://cdn.test/p.png)}b{background:url(relative.png)}i{background:url(//cdn.test/no.png)}";
    let link = |attributes: &str| {
        format!("<link rel=stylesheet {attributes} href='data:text/css,{css}'><p>x</p><b>x</b><i>x</i>")
    };
    let hints = load(&link(""), &[]);
    assert_eq!(names(&hints), ["http://cdn.test/p.png"]);
    assert!(matches!(&hints[0].initiator, Initiator::Sheet(url) if url.scheme() == "data"));
    for html in [
        link("media=print"),
        link("disabled"),
        link("").replace("text/css", "text/plain"),
        format!("<meta http-equiv=content-security-policy content=\"style-src 'self'\">{}", link("")),
    ] {
        assert_eq!(names(&load(&html, &[])), [""; 0], "{html}");
    }
    let allowed =
        format!("<meta http-equiv=content-security-policy content=\"style-src data:\">{}", link(""));
    assert_eq!(names(&load(&allowed, &[])), ["http://cdn.test/p.png"]);
}
