//! Content policies in the mark-up.

use crate::loading::{options, page};
use farhop_page::{Document, Options, Policy};

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
