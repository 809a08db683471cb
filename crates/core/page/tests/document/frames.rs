//! Documents within the page: in frames, and in attributes.

use crate::loading::{load, names, options, page};
use farhop_page::{Destination, Document, Initiator, Options, ReferrerPolicy, ResourceInfo, Source, Timing};

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
    let hints = load("<frameset><frame src=a.html><frame src=b.html></frameset>", &[]);
    assert_eq!(names(&hints), ["dir/a.html", "dir/b.html"]);
    assert!(hints.iter().all(|hint| hint.source == Source::FramesetFrame));
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
    let opaque: Vec<bool> = hints.iter().map(|hint| document.is_opaque(&hint.url)).collect();
    assert_eq!(opaque, [false, true, true, false]);
    assert!(hints.iter().all(|hint| document.names_frame(&hint.url)));
    assert!(!document.names_frame(&page()), "a script's");
}

#[test]
fn frames_that_ask_without_cookies_or_with_a_policy_that_is_demanded_of_them_are_the_browsers() {
    for html in
        ["<iframe credentialless src=a.html></iframe>", "<iframe csp='img-src *' src=a.html></iframe>"]
    {
        let mut document = Document::new(&page(), None, options());
        assert_eq!(document.html(html.as_bytes()), [], "{html}");
        let url = page().join("a.html").unwrap();
        assert!(document.names_frame(&url) && document.is_opaque(&url), "{html}: nor is what they need read");
    }
}

#[test]
fn frames_that_are_not_displayed_are_known_once_the_styles_are_here() {
    let mut document = Document::new(&page(), None, options());
    let hints = document.html(
        b"<link rel=stylesheet href=a.css><iframe src=a.html></iframe><iframe hidden src=b.html></iframe>\
          <iframe style='display:none' src=c.html></iframe><div class=ad><iframe src=d.html></iframe></div>\
          <iframe class=ad src=e.html></iframe><iframe src=e.html></iframe>",
    );
    let shown = |document: &Document| -> String {
        ["a", "b", "c", "d", "e", "never-named"]
            .iter()
            .filter(|name| document.may_show_frame(&page().join(&format!("{name}.html")).unwrap()))
            .map(|name| &name[..1])
            .collect()
    };
    assert_eq!(shown(&document), "acden", "while a sheet is awaited that may decide it");
    let sheet = document.resource_begins(&hints[0], &hints[0].url, &ResourceInfo::default()).unwrap();
    document.resource(sheet, b".ad { display: none }");
    document.resource_end(sheet);
    assert_eq!(shown(&document), "aen");
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
    assert!(document.is_opaque(&frame.url));
}

#[test]
fn a_document_that_may_run_no_scripts_shows_what_stands_in_noscript() {
    let html = "<noscript><link rel=stylesheet href=a.css></noscript><p class=a>x</p><noscript><img src=1.png></noscript>\
                <script type=module>import './no.js'</script><script src=s.js></script><script type=module src=m.js></script>\
                <script>import('./no.js'); img.src = 'no.png'</script><link rel=modulepreload href=p.js><b>x</b>";
    let free = format!("<iframe srcdoc=\"{html}\"></iframe>");
    assert_eq!(names(&load(&free, &[])), ["dir/no.js", "dir/s.js", "dir/m.js", "dir/no.png", "dir/p.js"]);
    let scriptless = format!("<iframe sandbox=allow-same-origin srcdoc=\"{html}\"></iframe>");
    let expected = ["dir/a.css", "dir/1.png", "dir/s.js", "dir/m.js", "dir/p.js"];
    assert_eq!(names(&load(&scriptless, &[])), expected);

    let mut document = Document::new(&page(), None, Options { scripting: false, ..options() });
    let mut hints = document.html(html.as_bytes());
    hints.extend(document.html_end());
    assert_eq!(names(&hints), expected);
    let info = ResourceInfo::default();
    assert!(
        hints[2..]
            .iter()
            .filter(|hint| hint.destination == Destination::Script)
            .all(|hint| { document.resource_begins(hint, &hint.url, &info).is_none() })
    );
    let sheet = document.resource_begins(&hints[0], &hints[0].url, &info).unwrap();
    document.resource(sheet, b".a{background:url(2.png)}");
    assert_eq!(names(&document.resource_end(sheet)), ["dir/2.png"]);
}

#[test]
fn nothing_is_lazy_where_no_script_runs() {
    let far = "<p>text</p>".repeat(1_000);
    let html =
        format!("{far}<img loading=lazy src=a.png><div hidden><iframe loading=lazy src=f></iframe></div>");
    let read = |scripting| {
        let mut document = Document::new(&page(), None, Options { scripting, ..options() });
        names(&document.html(html.as_bytes()))
    };
    assert_eq!((read(true), read(false)), (vec![], vec!["dir/a.png".to_owned(), "dir/f".to_owned()]));
}

#[test]
fn frames_that_run_no_scripts_are_told() {
    let html = b"<iframe src=a></iframe><iframe sandbox=allow-same-origin src=b></iframe>\
                 <iframe sandbox='allow-same-origin Allow-Scripts' src=c></iframe>\
                 <iframe sandbox=allow-same-origin srcdoc='<iframe src=d></iframe>'></iframe>";
    let mut document = Document::new(&page(), None, options());
    let hints = document.html(html);
    let told: Vec<bool> = hints.iter().map(|hint| document.runs_scripts(&hint.url)).collect();
    assert_eq!(
        (names(&hints).join(" ").as_str(), told),
        ("dir/a dir/b dir/c dir/d", vec![true, false, true, false])
    );
    let mut within = Document::new(&page(), None, Options { scripting: false, ..options() });
    let frame = &within.html(b"<iframe src=e></iframe>")[0];
    assert!(!within.runs_scripts(&frame.url), "nor does what stands in one of these");
}

#[test]
fn documents_in_attributes_are_read_four_deep() {
    let within = |inner: String| {
        format!("<iframe srcdoc=\"{}\"></iframe>", inner.replace('&', "&amp;").replace('"', "&quot;"))
    };
    let four = (0..4).fold("<img src=deep.png>".to_owned(), |inner, _| within(inner));
    assert_eq!(names(&load(&four, &[])), ["dir/deep.png"]);
    assert_eq!(names(&load(&within(four), &[])), [""; 0]);
}

#[test]
fn documents_in_attributes_that_ask_otherwise_or_without_end_are_left_to_the_browser() {
    let deep = (0..5).fold("<img src=deep.png>".to_owned(), |inner, _| {
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
