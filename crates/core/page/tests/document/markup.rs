//! Mark-up of other kinds: XML, SVG, media, and pages that are secure.

use crate::loading::{load, names, options, page};
use farhop_page::{Destination, Document, Hint, Mode, Options, Source, Timing};
use url::Url;

/// All hints of an XML document whose files are lost.
fn load_xml(text: &str, size: usize) -> Vec<String> {
    let mut document = Document::new(&page(), None, Options { xml: true, ..options() });
    let mut hints: Vec<Hint> = text.as_bytes().chunks(size).flat_map(|chunk| document.html(chunk)).collect();
    hints.extend(document.html_end());
    let mut at = 0;
    while let Some(hint) = hints.get(at).cloned() {
        at += 1;
        hints.extend(document.resource_lost(&hint));
    }
    names(&hints)
}

#[test]
fn xhtml_is_read_as_the_xml_that_it_is() {
    let text = "<?xml version='1.0' encoding='UTF-8'?><!DOCTYPE html>\
        <html xmlns='http://www.w3.org/1999/xhtml'><head><script src='1.js'/><link rel='stylesheet' href='2.css'/>\
        <style>div > p {background:url(no.png)}<![CDATA[div + p{background:url(5.png)}]]>p &gt; b{background:url(6.png)}\
        </style><script type='module'>if (a &lt; b) import('./3.js')</script></head>\
        <body><div/><p><b/><img src='4.png?a&amp;b'/></p><noscript><img src='no.png'/></noscript></body></html>";
    let expected = ["dir/1.js", "dir/2.css", "dir/3.js", "dir/4.png?a&b", "dir/5.png", "dir/6.png"];
    for size in [1, 7, usize::MAX] {
        assert_eq!(load_xml(text, size), expected, "in pieces of {size}");
    }
}

#[test]
fn xml_that_is_no_xhtml_names_nothing() {
    for root in
        ["html", "html xmlns='http://www.w3.org/2000/svg'", "feed xmlns='http://www.w3.org/1999/xhtml'"]
    {
        assert_eq!(load_xml(&format!("<{root}><img src='a.png'/></html>"), usize::MAX), Vec::<String>::new());
    }
}

#[test]
fn media_and_plugins_are_not_hinted_and_svg_is() {
    for html in [
        "<video src=a.mp4></video>",
        "<audio src=a.ogg></audio>",
        "<object data=a.pdf></object>",
        "<object data=a type=application/x-flash></object>",
        "<object classid=x data=a.svg></object>",
        "<object data=#a></object>",
        "<object data=page.html></object>",
        "<embed src=a.swf>",
        "<video><source src=a.mp4></video>",
        "<meta http-equiv=refresh content='0;url=a.html'>",
        "<svg><use href='#a'/></svg>",
        "<svg><use href='page.html#a'/></svg>",
        "<svg><use href='http://other.test/s.svg#a'/></svg>",
        "<svg><use href=s.svg /></svg>",
        "<use href=s.svg#a>",
        "<svg><a href=a.png></a></svg>",
    ] {
        assert_eq!(names(&load(html, &[])), Vec::<String>::new(), "{html}");
    }
    assert_eq!(
        names(&load("<svg><style>circle{fill:red}</style><image href=i.png /></svg><img src=j.png>", &[])),
        ["dir/i.png", "dir/j.png"]
    );
    let script = load("<svg><script href=s.js></script><script type=x href=t.js></script></svg>", &[]);
    assert_eq!(names(&script), ["dir/s.js"]);
    assert_eq!((script[0].destination, script[0].mode), (Destination::Script, Mode::NoCors));
}

#[test]
fn parts_of_other_svg_files_are_images_of_the_same_origin_alone() {
    let hints =
        load("<svg><use href=s.svg#a /><use xlink:href='s.svg#b'></use><use href=/t.SVG?v#c></svg>", &[]);
    assert_eq!(names(&hints), ["dir/s.svg", "t.SVG?v"]);
    for hint in hints {
        let told = (hint.destination, hint.mode, hint.source);
        assert_eq!(told, (Destination::Image, Mode::SameOrigin, Source::Use));
    }
}

#[test]
fn parts_of_svg_files_in_attributes_are_fetched_as_their_styles_would_be() {
    let hints = load(
        "<svg><path fill='url(#own)' stroke='url(s.svg#a)' marker-start='url(\"m.svg#a\")' filter='url(f.svg#a)'/>\
         <g clip-path='url(c.svg#a)' title='url(no.svg#a)'></g><g filter='url(//cdn.test/no.svg#a)'></g></svg>\
         <p fill='url(no.svg#a)'><style>u{filter:url(//cdn.test/no.svg#a);clip-path:url(//cdn.test/x.svg#a)}</style><u>x</u>",
        &[],
    );
    assert_eq!(names(&hints), ["dir/s.svg", "dir/m.svg", "dir/f.svg", "dir/c.svg", "http://cdn.test/x.svg"]);
    let modes: Vec<Mode> = hints.iter().map(|hint| hint.mode).collect();
    assert_eq!(modes, [Mode::Cors, Mode::Cors, Mode::SameOrigin, Mode::Cors, Mode::Cors]);
}

#[test]
fn objects_are_images_or_documents_by_their_type_or_else_by_their_name() {
    let kind = |html: &str| {
        let hints = load(html, &[]);
        assert_eq!(names(&hints).len(), 1, "{html}");
        (hints[0].destination, hints[0].source)
    };
    let (object, embed) = ((Destination::Object, Source::Object), (Destination::Embed, Source::Embed));
    let document = |source| (Destination::Frame, source);
    for (html, expected) in [
        ("<object data=a.png></object>", object),
        ("<object data=a type=IMAGE/JPEG></object>", object),
        ("<object data=a.svg></object>", document(Source::Object)),
        ("<object data=a type=image/svg+xml></object>", document(Source::Object)),
        ("<object data=a.png type='text/html; charset=utf-8'></object>", document(Source::Object)),
        ("<object data=a></object>", document(Source::Object)),
        ("<embed src=a.webp>", embed),
        ("<embed src=a.svg type=image/png>", embed),
        ("<embed src=a.html>", document(Source::Embed)),
    ] {
        assert_eq!(kind(html), expected, "{html}");
    }
    let hints = load("<object data=a.svg><img src=b.png></object>", &[]);
    assert_eq!(names(&hints), ["dir/a.svg", "dir/b.png"], "what stands in for it is loaded with it");
}

#[test]
fn a_secure_page_tells_what_it_names_over_plain_http() {
    let mut document = Document::new(&Url::parse("https://site.test/").unwrap(), None, options());
    assert_eq!(names(&document.html(b"<img src=http://site.test/a.png>")), ["a.png"]);
}

#[test]
fn what_a_field_says_of_sheets_and_manifests_hides_nothing_of_the_mark_up() {
    for early in [false, true] {
        let mut document = Document::new(&page(), None, options());
        let mut hints = document.link_field("</a.css>; rel=stylesheet, </m.json>; rel=manifest", early);
        hints.extend(document.link_field("</p.css>; rel=preload; as=style", early));
        assert_eq!(names(&hints), ["a.css", "m.json", "p.css"]);
        let html = "<link rel=stylesheet href=/a.css><link rel=manifest href=/m.json><link rel=stylesheet href=/p.css>";
        assert_eq!(names(&document.html(html.as_bytes())), ["a.css", "m.json"]);
    }
}

#[test]
fn a_manifest_counts_in_the_head_alone() {
    assert_eq!(names(&load("<link rel=manifest href=/a.json>", &[])), ["a.json"]);
    assert_eq!(names(&load("<body><link rel=manifest href=/a.json><img src=/a.png>", &[])), ["a.png"]);
}

#[test]
fn a_nul_in_an_attribute_is_what_takes_its_place() {
    let urls: Vec<String> = load("<img src='/a\0b&amp;.png'><img src=/c.png?d\0>", &[])
        .iter()
        .map(|hint| hint.url.to_string())
        .collect();
    assert_eq!(urls, ["http://site.test/a%EF%BF%BDb&.png", "http://site.test/c.png?d%EF%BF%BD"]);
}

#[test]
fn a_script_that_holds_up_rendering_is_as_urgent_as_one_that_holds_up_parsing() {
    let timing = |html: &str| load(html, &[])[0].timing;
    assert_eq!(timing("<script async blocking=Render src=a.js></script>"), Timing::Blocking);
    assert_eq!(timing("<script type=module blocking='x render' src=a.js></script>"), Timing::Blocking);
    assert_eq!(timing("<body><script async blocking=render src=a.js></script>"), Timing::Async);
    assert_eq!(timing("<script async blocking=renders src=a.js></script>"), Timing::Async);
}
