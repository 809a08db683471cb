//! A page as a whole: its HTML, stylesheets and scripts together.

#![allow(clippy::unwrap_used)] // helpers of tests

use farhop_page::{
    Confidence, Destination, Document, Hint, Initiator, Mode, Options, Policy, ReferrerPolicy, ResourceInfo,
    Source, Steps, Timing,
};
use proptest::prelude::*;
use std::collections::HashMap;
use url::Url;

fn page() -> Url {
    Url::parse("http://site.test/dir/page.html").unwrap()
}

fn options() -> Options {
    Options { default_icon: false, ..Options::default() }
}

fn short(hint: &Hint) -> String {
    hint.url.as_str().trim_start_matches("http://site.test/").to_owned()
}

fn names(hints: &[Hint]) -> Vec<String> {
    hints.iter().map(short).collect()
}

/// Loads a page whose files are `files`, each cut into pieces of `size`, in the order in which they were hinted;
/// what is not among them is lost. Returns all hints.
fn load_in_pieces(html: &str, files: &HashMap<&str, &str>, size: usize) -> Vec<Hint> {
    let mut document = Document::new(&page(), Some("utf-8"), options());
    let mut all = Vec::new();
    for chunk in html.as_bytes().chunks(size) {
        all.extend(document.html(chunk));
    }
    all.extend(document.html_end());
    let mut next = 0;
    while next < all.len() {
        let hint = all[next].clone();
        next += 1;
        let Some(body) = files.get(short(&hint).as_str()) else {
            all.extend(document.resource_lost(&hint));
            continue;
        };
        let Some(id) = document.resource_begins(&hint, &hint.url, &ResourceInfo::default()) else { continue };
        for chunk in body.as_bytes().chunks(size) {
            all.extend(document.resource(id, chunk));
        }
        all.extend(document.resource_end(id));
    }
    all
}

fn load(html: &str, files: &[(&str, &str)]) -> Vec<Hint> {
    load_in_pieces(html, &files.iter().copied().collect(), usize::MAX)
}

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
fn imports_inherit_the_nonce_and_are_checked_by_the_map() {
    let hints = load(
        "<script type=importmap>{\"integrity\": {\"./dep.js\": \"sha256-x\"}}</script>\
         <script type=module nonce=n src=main.js></script><script nonce=m>import('./late.js')</script>\
         <script type=module src=bare.js></script>",
        &[
            ("dir/main.js", "import './dep.js'"),
            ("dir/dep.js", "import './deep.js'"),
            ("dir/bare.js", "import './x.js'"),
        ],
    );
    let told: Vec<_> = hints
        .iter()
        .map(|hint| (short(hint), hint.nonce.as_deref().unwrap_or_default(), hint.integrity.as_deref()))
        .collect();
    let expected = [
        ("dir/main.js", "n", None),
        ("dir/late.js", "m", None),
        ("dir/bare.js", "", None),
        ("dir/dep.js", "n", Some("sha256-x")),
        ("dir/x.js", "", None),
        ("dir/deep.js", "n", None),
    ];
    assert_eq!(told, expected.map(|(name, nonce, integrity)| (name.to_owned(), nonce, integrity)));
}

#[test]
fn what_an_element_says_of_its_module_counts_before_what_the_map_says() {
    let hints = load(
        "<script type=importmap>{\"integrity\": {\"./a.js\": \"sha256-a\", \"./b.js\": \"sha256-b\", \"./c.js\": \"sha256-c\"}}\
         </script><script type=module src=a.js></script><script type=module src=b.js integrity=sha256-own></script>\
         <link rel=modulepreload href=c.js><script src=c.js></script><script type=module src=d.js></script>",
        &[],
    );
    let told: Vec<_> = hints.iter().map(|hint| (short(hint), hint.mode, hint.integrity.as_deref())).collect();
    let expected = [
        ("dir/a.js", Mode::Cors, Some("sha256-a")),
        ("dir/b.js", Mode::Cors, Some("sha256-own")),
        ("dir/c.js", Mode::Cors, Some("sha256-c")),
        ("dir/c.js", Mode::NoCors, None),
        ("dir/d.js", Mode::Cors, None),
    ];
    assert_eq!(told, expected.map(|(name, mode, integrity)| (name.to_owned(), mode, integrity)));
}

#[test]
fn what_a_document_in_an_attribute_names_is_the_pages() {
    let html = "<base href=/b/><meta name=referrer content=origin><p class=out>x</p>\
        <iframe srcdoc=\"<style>.in{background:url(in.png)}.out{background:url(out.png)}</style>\
        <link rel=stylesheet href=a.css><p class=in>x</p><img src='i.png?a=1&amp;amp;b=2'>\
        <iframe src=deep.html sandbox></iframe><script type=module>import './m.js'</script>\" src=no.html></iframe>\
        <iframe srcdoc='<base href=c/><img src=2.png>'></iframe>";
    let css = ".in{background:url(left.png)}";
    let hints = load(html, &[("b/a.css", css)]);
    let mut found = names(&hints);
    found.sort();
    assert_eq!(found, ["b/a.css", "b/c/2.png", "b/deep.html", "b/i.png?a=1&b=2", "b/in.png", "b/m.js"]);
    assert!(hints.iter().all(|hint| hint.referrer_policy == Some(ReferrerPolicy::Origin)));
    assert!(
        hints.iter().all(|hint| hint.initiator == Initiator::Document || hint.source == Source::StaticImport)
    );
    let mut document = Document::new(&page(), Some("utf-8"), options());
    let hints = document.html(html.as_bytes());
    let frame = hints.iter().find(|hint| hint.destination == Destination::Frame).unwrap();
    assert!(document.is_opaque(frame));
}

#[test]
fn documents_in_attributes_that_ask_otherwise_or_without_end_are_left_to_the_browser() {
    let deep = (0..6).fold("<img src=deep.png>".to_owned(), |inner, _| {
        format!("<iframe srcdoc=\"{}\"></iframe>", inner.replace('&', "&amp;").replace('"', "&quot;"))
    });
    for html in [
        "<iframe sandbox srcdoc='<img src=a.png>'></iframe>",
        "<iframe sandbox=allow-scripts srcdoc='<img src=a.png>'></iframe>",
        "<iframe loading=lazy srcdoc='<img src=a.png>'></iframe>",
        "<iframe credentialless srcdoc='<img src=a.png>'></iframe>",
        "<iframe srcdoc='<meta http-equiv=content-security-policy content=\"img-src none\"><img src=a.png>'></iframe>",
        &deep,
    ] {
        assert_eq!(names(&load(html, &[])), Vec::<String>::new(), "{html}");
    }
    let free = "<iframe sandbox='allow-scripts Allow-Same-Origin' srcdoc='<img src=a.png>'></iframe>";
    assert_eq!(names(&load(free, &[])), ["dir/a.png"]);
}

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
fn jpeg_xl_is_chosen_where_the_browser_shows_it() {
    let html =
        "<style>p{background:image-set('a.jxl' type('image/jxl'),'a.png' type('image/png'))}</style><p>x</p>";
    for (jpeg_xl, expected) in [(true, "dir/a.jxl"), (false, "dir/a.png")] {
        let mut document = Document::new(&page(), Some("utf-8"), Options { jpeg_xl, ..options() });
        assert_eq!(names(&document.html(html.as_bytes())), [expected]);
    }
}

#[test]
fn a_secure_page_tells_what_it_names_over_plain_http() {
    let mut document = Document::new(&Url::parse("https://site.test/").unwrap(), None, options());
    assert_eq!(names(&document.html(b"<img src=http://site.test/a.png>")), ["a.png"]);
}

#[test]
fn modules_are_followed_with_import_maps() {
    let html = "<script type=importmap>{\"imports\": {\"lib\": \"./lib.js\", \"ui/\": \"/ui/\"}}</script>\
                <script type=module src=main.js></script>\
                <script type=module>import './inline.js'; import('./later.js'); () => import('./maybe.js')</script>";
    let hints = load(
        html,
        &[
            ("dir/main.js", "import x from 'lib'; import {y} from 'ui/button.js'; export * from './re.js'"),
            ("dir/lib.js", "import 'unknown'; import './main.js'; import './deep/one.js'"),
            ("dir/deep/one.js", "import '../two.js'"),
        ],
    );
    assert_eq!(
        names(&hints),
        [
            "dir/main.js",
            "dir/inline.js",
            "dir/later.js",
            "dir/maybe.js",
            "dir/lib.js",
            "ui/button.js",
            "dir/re.js",
            "dir/deep/one.js",
            "dir/two.js"
        ]
    );
    let of = |name: &str| hints.iter().find(|hint| short(hint) == name).unwrap();
    assert_eq!((of("dir/lib.js").mode, of("dir/lib.js").source), (Mode::Cors, Source::StaticImport));
    assert_eq!(of("dir/two.js").timing, Timing::Deferred);
    assert_eq!(
        of("dir/two.js").initiator,
        Initiator::Module(Url::parse("http://site.test/dir/deep/one.js").unwrap())
    );
    assert_eq!(of("dir/inline.js").initiator, Initiator::Document);
    assert_eq!(of("dir/inline.js").confidence, Confidence::Sure);
    assert_eq!(of("dir/later.js").confidence, Confidence::Likely);
    assert_eq!(of("dir/maybe.js").confidence, Confidence::Guess);
}

#[test]
fn paths_in_scripts_are_guesses_against_the_document() {
    let hints = load(
        "<script src=sub/a.js></script><script>img.src = 'inline.png'</script>",
        &[("dir/sub/a.js", "load('data/x.json'); s = 'Vue.js'; u = new URL('w.js', import.meta.url)")],
    );
    assert_eq!(names(&hints), ["dir/sub/a.js", "dir/inline.png", "dir/data/x.json"]);
    assert!(
        hints[1..].iter().all(|hint| hint.confidence == Confidence::Guess && hint.source == Source::Literal)
    );
    assert_eq!(hints[2].destination, Destination::Fetch);
}

#[test]
fn imports_of_inline_modules_name_the_base_as_their_referrer() {
    let script = "<script type=module>import './a.js'</script>";
    assert_eq!(load(script, &[])[0].initiator, Initiator::Document);
    let based = &load(&format!("<base href=/base/>{script}"), &[])[0];
    assert_eq!(based.initiator, Initiator::Module(Url::parse("http://site.test/base/").unwrap()));
    assert_eq!(short(based), "base/a.js");
}

#[test]
fn frames_are_hinted_as_documents() {
    let hints = load(
        "<iframe src=f.html></iframe><iframe src=g.html loading=lazy sandbox></iframe><iframe srcdoc='<p>' src=h.html></iframe>\
         <iframe src=about:blank></iframe><iframe src='javascript:x'></iframe><iframe src=page.html></iframe><iframe></iframe>",
        &[],
    );
    assert_eq!(names(&hints), ["dir/f.html", "dir/g.html"]);
    assert!(hints.iter().all(|hint| hint.destination == Destination::Frame && hint.source == Source::Frame));
    assert_eq!([hints[0].timing, hints[1].timing], [Timing::Async, Timing::Lazy]);
}

#[test]
fn sandboxed_frames_are_opaque_unless_their_origin_is_allowed() {
    let mut document = Document::new(&page(), None, options());
    let hints = document.html(
        b"<iframe src=a.html></iframe><iframe src=b.html sandbox></iframe>\
          <iframe src=c.html sandbox='allow-scripts'></iframe>\
          <iframe src=d.html sandbox='allow-scripts ALLOW-same-origin'></iframe>",
    );
    assert_eq!(names(&hints), ["dir/a.html", "dir/b.html", "dir/c.html", "dir/d.html"]);
    let opaque: Vec<bool> = hints.iter().map(|hint| document.is_opaque(hint)).collect();
    assert_eq!(opaque, [false, true, true, false]);
}

#[test]
fn parts_of_other_svg_files_are_left_to_the_browser() {
    // Asked for in mode `same-origin`, as no hint says.
    assert!(load("<svg><use href=s.svg#a /></svg>", &[]).is_empty());
}

#[test]
fn media_and_plugins_are_not_hinted_and_svg_is() {
    for html in [
        "<video src=a.mp4></video>",
        "<audio src=a.ogg></audio>",
        "<object data=a.svg></object>",
        "<embed src=a.swf>",
        "<video><source src=a.mp4></video>",
        "<meta http-equiv=refresh content='0;url=a.html'>",
        "<svg><use href='#a'/></svg>",
        "<svg><use href='page.html#a'/></svg>",
        "<svg><use href='http://other.test/s.svg#a'/></svg>",
        "<svg><a href=a.png></a></svg>",
    ] {
        assert_eq!(names(&load(html, &[])), Vec::<String>::new(), "{html}");
    }
    assert_eq!(
        names(&load("<svg><style>circle{fill:red}</style><image href=i.png /></svg><img src=j.png>", &[])),
        ["dir/i.png", "dir/j.png"]
    );
}

#[test]
fn images_far_down_are_ranked_below_the_fold() {
    let html: String = (0..40).map(|at| format!("<p><img src={at}.png width=600 height=400></p>")).collect();
    let below: Vec<bool> = load(&html, &[]).iter().map(|hint| hint.below_fold).collect();
    assert!(below.iter().is_sorted(), "{below:?}");
    let in_view = below.iter().filter(|below| !**below).count();
    assert!((2..10).contains(&in_view), "{in_view}");
}

/// A page of these, and what it hints at once.
fn read(html: &str) -> (Document, Vec<String>) {
    let mut document = Document::new(&page(), None, options());
    let mut hints = document.html(html.as_bytes());
    hints.extend(document.html_end());
    (document, names(&hints))
}

fn neighbours(document: &mut Document, path: &str) -> Vec<String> {
    let url = page().join(path).unwrap();
    document.asked(&url);
    names(&document.neighbours(&url))
}

#[test]
fn lazy_images_far_down_wait_until_the_browser_asks_for_one_of_them() {
    let element = |at: usize| format!("<p><img loading=lazy width=600 height=400 src=/{at}.png>");
    let html: String = (0..150).map(element).collect();
    let (mut document, hinted) = read(&html);
    // As Chromium does over a quick link.
    assert_eq!(hinted, ["0.png", "1.png", "2.png", "3.png", "4.png"]);
    let next: Vec<String> = (6..14).map(|at| format!("{at}.png")).collect();
    assert_eq!(neighbours(&mut document, "/5.png"), next);
    assert_eq!(neighbours(&mut document, "/5.png"), [""; 0], "told once");
    assert_eq!(neighbours(&mut document, "/else.png"), [""; 0]);
    assert_eq!(neighbours(&mut document, "/100.png").len(), 8, "after a jump");
}

#[test]
fn what_is_not_lazy_is_hinted_wherever_it_stands() {
    let far = "<p><img width=600 height=400 src=/a.png></p>".repeat(20);
    let (_, hinted) = read(&format!(
        "{far}<img src=/b.png><iframe src=/c></iframe><iframe loading=lazy src=/d></iframe>\
         <iframe srcdoc='<img src=/e.png>'></iframe><img loading=lazy src=/f.png>"
    ));
    assert_eq!(hinted, ["a.png", "b.png", "c", "e.png"]);
}

#[test]
fn of_lazy_images_without_a_size_the_first_ten_or_twenty_are_hinted() {
    for (element, expected) in [("<p><img loading=lazy src=", 10), ("<img loading=lazy src=", 19)] {
        let (_, hinted) = read(&(0..150).map(|at| format!("{element}/{at}.png>")).collect::<String>());
        assert_eq!(hinted.len(), expected, "{element}");
    }
}

#[test]
fn lazy_images_of_another_screen_wait_as_well() {
    let element = |at: usize| {
        format!(
            "<p><img loading=lazy width=600 height=400 sizes=100vw srcset='/{at}-s.png 800w, /{at}-l.png 2000w'>"
        )
    };
    let (mut document, hinted) = read(&(0..50).map(element).collect::<String>());
    assert_eq!(hinted, ["0-l.png", "1-l.png", "2-l.png", "3-l.png", "4-l.png"]);
    let mut told = Vec::new();
    for at in 0..5 {
        told.extend(neighbours(&mut document, &format!("/{at}-s.png")));
    }
    assert!(
        told.iter().all(|name| ["0", "1", "2", "3", "4"].contains(&name.trim_end_matches("-s.png"))),
        "{told:?}"
    );
    let next: Vec<String> = (6..14).map(|at| format!("{at}-s.png")).collect();
    assert_eq!(neighbours(&mut document, "/5-s.png"), next);
}

#[test]
fn policies_of_the_mark_up_come_out_once() {
    let mut document = Document::new(&page(), None, options());
    document.html(b"<meta http-equiv=Content-Security-Policy content=\"img-src 'self'\"><p>");
    assert_eq!(document.policies(), [Policy { text: "img-src 'self'".into(), from: 0 }]);
    assert!(document.policies().is_empty());
}

#[test]
fn policies_count_in_the_head_alone() {
    let meta = "<meta http-equiv=content-security-policy content=\"img-src 'none'\">";
    let from = |html: String, options: Options| {
        let mut document = Document::new(&page(), None, options);
        document.html(html.as_bytes());
        document.policies().iter().map(|policy| policy.from).collect::<Vec<_>>()
    };
    for html in [meta.to_owned(), format!("<head>{meta}"), format!("<head><title>t</title></head>{meta}")] {
        assert_eq!(from(html.clone(), options()), [0], "{html}");
    }
    for html in [
        format!("<body>{meta}"),
        format!("<p>{meta}"),
        format!("<head></head>text{meta}"),
        format!("<head><template>{meta}</template>"),
    ] {
        assert_eq!(from(html.clone(), options()), [0; 0], "{html}");
    }
    let sheets = "<link rel=stylesheet href=a.css><link rel=stylesheet href=a.css><script src=a.js></script>";
    assert_eq!(from(format!("{sheets}{meta}<img src=a.png>"), options()), [2], "behind the hints before it");
    let xml = |body| {
        let meta = meta
            .replace("http-equiv=content-security-policy", "http-equiv='content-security-policy'")
            .replace('>', "/>");
        let (head, body) = if body { ("", meta.as_str()) } else { (meta.as_str(), "") };
        let html = format!(
            "<html xmlns='http://www.w3.org/1999/xhtml'><head>{head}</head><body>{body}</body></html>"
        );
        from(html, Options { xml: true, ..options() })
    };
    assert_eq!((xml(false), xml(true)), (vec![0], vec![]));
}

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

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "<link rel=stylesheet href=a.css>",
        "<link rel=stylesheet href=b.css media=print>",
        "<style>.x{background:url(x.png)} p>b{background:url(pb.png)}</style>",
        "<style>@import 'c.css'; @font-face{font-family:F;src:url(f.woff2)} p{font-family:F}</style>",
        "<div class='x y' style='background:url(i.png)'>",
        "<p>text &mdash; m&amp;ore <b>bold</b> 5 < 6 & 7",
        "</div>",
        "<table><tr><td><img src=t.png><td class=x>c</table>",
        "<svg viewBox='0 0 1 1'><style>.x{fill:url(#a)}</style><use href=s.svg#u /><![CDATA[ <img src=no.png> ]]></svg>",
        "<script>var a = \"<img src=no.png>\", b = 'lit/eral.png'; /* import('no.js') */ import(`./d.js`)</script>",
        "<script><!-- <script>no</script> --></script>",
        "<script type=module>import x from './m.js'; export {y} from \"./n.js\" with {type: 'json'}; a / b / c</script>",
        "<script type=importmap>{\"imports\":{\"k\":\"./k.js\"}}</script>",
        "<!-- <img src=no.png> --!>",
        "<!DOCTYPE html>",
        "<template><img src=no.png></template>",
        "<textarea><img src=no.png></textarea>",
        "<img src='é.png' alt=\"a>b\" loading=lazy>",
        "<picture><source srcset='w.webp 1x' type=image/webp><img src=p.png></picture>",
    ])
}

proptest! {
    #[test]
    fn any_cut_of_a_page_gives_the_same_hints(pieces in prop::collection::vec(piece(), 0..12), size in 1usize..40) {
        let html = pieces.concat();
        let files = HashMap::from([
            ("dir/a.css", "@charset \"utf-8\"; @import 'c.css'; .y{background:url(y.png)} /* é */ .z{background:url(z.png)}"),
            ("dir/c.css", "b{background:url('b.png')} p::before{content:url(before.png)}"),
            ("dir/m.js", "import 'k'; const r = /[/'\"]import(\"no.js\")/g, t = `a${b(`./c.js`)}`; import('./t.js')"),
        ]);
        prop_assert_eq!(load_in_pieces(&html, &files, usize::MAX), load_in_pieces(&html, &files, size));
    }
}
