//! Documents within the page: in frames, and in attributes.

use crate::loading::{load, names, options, page};
use farhop_page::{Destination, Document, Initiator, ReferrerPolicy, Source, Timing};

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
