//! Content policies in the mark-up.

use crate::loading::{names, options, page};
use farhop_page::{ContentPolicies, Document, Options, Policy, PolicyKind};

#[test]
fn policies_of_the_mark_up_come_out_once() {
    let mut document = Document::new(&page(), None, options());
    document.html(b"<meta http-equiv=Content-Security-Policy content=\"img-src 'self'\"><p>");
    assert_eq!(
        document.policies(),
        [Policy { kind: PolicyKind::Content, text: "img-src 'self'".into(), from: 0 }]
    );
    assert!(document.policies().is_empty());
}

#[test]
fn a_referrer_policy_in_the_mark_up_is_said_when_it_changes() {
    let mut document = Document::new(&page(), None, options());
    let meta = "<meta name=referrer content=never>";
    document.html(
        format!("<link rel=stylesheet href=a.css>{meta}{meta}<meta name=referrer content=bad><meta name=referrer content='origin, no-referrer'>").as_bytes(),
    );
    let said = Policy { kind: PolicyKind::Referrer, text: "no-referrer".into(), from: 1 };
    assert_eq!(document.policies(), [said]);
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

/// What `html` names where the response says `policy`, in pieces of `size`.
fn named(policy: &str, html: &str, size: usize) -> Vec<String> {
    let mut document = Document::new(&page(), None, options());
    document.obey(ContentPolicies::of([policy].into_iter()));
    let mut hints = Vec::new();
    for piece in html.as_bytes().chunks(size) {
        hints.extend(document.html(piece));
    }
    hints.extend(document.html_end());
    names(&hints)
}

#[test]
fn a_base_that_a_policy_forbids_is_none() {
    let html = "<base href=http://other.test/x/><img src=a.png>";
    assert_eq!(named("base-uri 'self'", html, 100), ["dir/a.png"]);
    assert_eq!(named("base-uri 'none'", "<base href=/x/><img src=a.png>", 100), ["dir/a.png"]);
    assert_eq!(named("base-uri other.test", html, 100), ["http://other.test/x/a.png"]);
    let meta = format!("<meta http-equiv=content-security-policy content=\"base-uri 'none'\">{html}");
    assert_eq!(named("", &meta, 100), ["dir/a.png"]);
}

#[test]
fn inline_text_that_a_policy_forbids_names_nothing() {
    let html = "<style nonce=n>p{background:url(style.png)}</style><p>x</p><b style='background:url(attribute.png)'>x</b>\
        <script type=importmap nonce=n>{\"imports\":{\"x\":\"/mapped.js\"}}</script>\
        <script type=module nonce=n>import 'x'; import './module.js'</script>\
        <script nonce=n>import('./classic.js')</script><link rel=stylesheet href=a.css>";
    let all = ["style.png", "attribute.png", "mapped.js", "module.js", "classic.js", "a.css"];
    // sha256 of the style and of the classic script.
    let digests = "style-src 'sha256-4fn4ikRrFvlIXDVKJadaWjhAwj0X6Y/ewfFZH/DG7e0=' 'self'; script-src 'sha256-KGc/BGpftjgHrvF1dH86upPnLiL/F4Mt2Wb3xeZn5lk='";
    for (policy, expected) in [
        ("img-src *", &all[..]),
        ("default-src 'self'", &["a.css"]),
        ("default-src 'self' 'unsafe-inline'", &all),
        ("style-src-attr 'none'", &["style.png", "mapped.js", "module.js", "classic.js", "a.css"]),
        ("default-src 'nonce-n'", &["style.png", "mapped.js", "module.js", "classic.js", "a.css"]),
        ("script-src 'none'", &["style.png", "attribute.png", "a.css"]),
        (digests, &["style.png", "classic.js", "a.css"]),
    ] {
        for size in [1, 7, html.len()] {
            let mut found: Vec<String> = named(policy, html, size);
            for name in &mut found {
                *name = name.rsplit('/').next().unwrap().to_owned();
            }
            found.sort_by_key(|name| all.iter().position(|one| one == name));
            assert_eq!(found, expected, "{policy} in pieces of {size}");
        }
    }
}

#[test]
fn a_style_that_turns_out_to_be_forbidden_holds_nothing_up() {
    let html =
        "<style>p{background:url(a.png)}</style><style nonce=n>p{background:url(b.png)}</style><p>x</p>";
    assert_eq!(named("style-src 'nonce-n' 'sha256-AAAA'", html, 9), ["dir/b.png"]);
}
