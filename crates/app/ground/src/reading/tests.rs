//! What of a page's documents is read and decided.

use super::standing::DEEPEST;
use super::*;
use farhop_bundle::Skip;
use farhop_settings::GroundSettings;
use http::Method;

fn request(path: &str) -> RequestHead {
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let fields = HeaderMap::from_iter([
        (header::ACCEPT, "text/html".parse().unwrap()),
        (header::USER_AGENT, agent.parse().unwrap()),
    ]);
    RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: "site.test".into(),
        path: path.into(),
        fields,
    }
}

fn answer(fields: &[(&'static str, &'static str)]) -> ResponseHead {
    let mut head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
    for (name, value) in fields {
        head.fields.append(*name, value.parse().unwrap());
    }
    head
}

fn page() -> Reading {
    page_of(&answer(&[]))
}

fn page_of(response: &ResponseHead) -> Reading {
    page_for(&request("/"), response, &Arc::default())
}

fn page_for(request: &RequestHead, response: &ResponseHead, known: &Arc<Known>) -> Reading {
    try_page_for(request, response, known).unwrap()
}

fn try_page_for(request: &RequestHead, response: &ResponseHead, known: &Arc<Known>) -> Option<Reading> {
    let url = request.normalised().unwrap();
    let noted = known.cookies().note_request(&url, &request.fields, SystemTime::now());
    let text = "allow = ['127.0.0.0/8']\n[[remote]]\nname = 'ship'\nkeys = ['made in the test']";
    let settings: GroundSettings = farhop_settings::parse(text, "".as_ref(), &[]).unwrap();
    Reading::page(request, response, &noted, known, &settings.bundle)
}

#[test]
fn a_page_in_other_words_than_its_url_is_not_read_as_that_url() {
    for (path, is_read) in [("/a", true), ("/./a", false), ("/b\\..\\a", false)] {
        assert_eq!(try_page_for(&request(path), &answer(&[]), &Arc::default()).is_some(), is_read, "{path}");
    }
}

fn names(decided: &[Decided]) -> Vec<&str> {
    decided.iter().map(|one| one.hint.url.path()).collect()
}

fn named(page: &Reading, html: &str) -> Hint {
    page.read(|document| document.html(html.as_bytes())).remove(0).hint
}

#[test]
fn documents_with_an_origin_of_their_own_are_not_read() {
    let page = page();
    let frame = named(&page, "<iframe src=/f></iframe>");
    let sandboxed = named(&page, "<iframe sandbox src=/s></iframe>");
    assert!(page.frame(&sandboxed.url, &request("/s"), &answer(&[])).is_none());
    let read = |name, value| page.frame(&frame.url, &request("/f"), &answer(&[(name, value)])).is_some();
    assert!(!read("content-security-policy", "default-src 'self'; Sandbox allow-scripts"));
    assert!(read("content-security-policy", "default-src 'self'"));
}

#[test]
fn what_browsers_refuse_for_its_type_is_not_read() {
    let page = page();
    let html = "<!doctype html><link rel=stylesheet href=a.css><script type=module src=m.js></script><script src=c.js></script>";
    let hints: Vec<Hint> =
        page.read(|document| document.html(html.as_bytes())).into_iter().map(|one| one.hint).collect();
    let read = |at: usize, fields: &[(&'static str, &'static str)]| {
        page.begin(&hints[at], &hints[at].url, &answer(fields)).is_some()
    };
    let (plain, nosniff) = (("content-type", "text/plain"), ("x-content-type-options", "NoSniff"));
    assert!(!read(1, &[plain]), "a module's type counts without a word of sniffing");
    assert!(!read(0, &[plain]) && read(2, &[plain]), "and a sheet's, not a classic script's");
    for (at, kind) in [(0, "text/css"), (1, "text/javascript"), (2, "application/javascript")] {
        assert!(!read(at, &[plain, nosniff]), "{kind}");
        assert!(read(at, &[("content-type", kind), nosniff]), "{kind}");
    }
}

#[test]
fn a_style_sheet_of_another_type_counts_in_quirks_mode_alone() {
    let read = |doctype: &str, sheet: &str, fields: &[(&'static str, &'static str)]| {
        let page = page();
        let hint = named(&page, &format!("{doctype}<link rel=stylesheet href='{sheet}'>"));
        page.begin(&hint, &hint.url, &answer(fields)).is_some()
    };
    let (plain, nosniff) = (("content-type", "text/plain"), ("x-content-type-options", "nosniff"));
    assert!(read("", "a.css", &[plain]));
    assert!(!read("", "a.css", &[plain, nosniff]));
    assert!(!read("", "//cdn.test/a.css", &[plain]), "of the same origin alone");
    assert!(!read("<!doctype html>", "a.css", &[plain]));
    assert!(read("<!doctype html>", "a.css", &[]), "without any type");
}

#[test]
fn a_policy_in_the_head_holds_for_what_comes_after_it() {
    let policy = "<meta http-equiv=content-security-policy content=\"img-src 'none'\">";
    let html = format!("<link rel=preload as=image href=/a.png>{policy}<body><img src=/b.png>");
    for size in [1, html.len()] {
        let page = page();
        let pieces = html.as_bytes().chunks(size);
        let decided: Vec<_> = pieces.flat_map(|piece| page.read(|document| document.html(piece))).collect();
        let forbidden = |one: &Decided| matches!(one.decision, Decision::Skip(Skip::ContentPolicy));
        let told: Vec<_> = decided.iter().map(|one| (one.hint.url.path(), forbidden(one))).collect();
        assert_eq!(
            told,
            [("/a.png", false), ("/favicon.ico", true), ("/b.png", true)],
            "in pieces of {size}"
        );
    }
}

#[test]
fn a_browser_that_says_its_colour_scheme_is_believed_from_then_on() {
    let known = Arc::new(Known::default());
    let load = |fields: &[(&'static str, &'static str)]| {
        let mut request = request("/");
        for (name, value) in fields {
            request.fields.insert(*name, value.parse().unwrap());
        }
        let page = page_for(&request, &answer(&[]), &known);
        let html =
            b"<picture><source media='(prefers-color-scheme: dark)' srcset=d.png><img src=l.png></picture>";
        names(&page.read(|document| document.html(html))).join(" ")
    };
    assert_eq!(load(&[]), "/l.png");
    assert_eq!(load(&[("sec-ch-prefers-color-scheme", "\"dark\"")]), "/d.png");
    assert_eq!(load(&[]), "/d.png");
    assert_eq!(load(&[("sec-ch-prefers-color-scheme", "\"light\"")]), "/l.png");
}

#[test]
fn xhtml_is_read_as_xml() {
    let script = "<html xmlns='http://www.w3.org/1999/xhtml'><script src='a.js'/><img src='a.png'/></html>";
    let read = |kind| {
        let page = page_of(&answer(&[("content-type", kind)]));
        let decided = page.read(|document| document.html(script.as_bytes()));
        names(&decided).join(" ")
    };
    assert_eq!(read("application/xhtml+xml"), "/a.js /a.png");
    assert_eq!(read("text/html"), "/a.js", "the rest is the script's");
}

#[test]
fn frames_that_say_where_they_may_be_shown_are_not_read() {
    let page = page();
    let frame = named(&page, "<iframe src=/f></iframe>");
    let read = |name, value| page.frame(&frame.url, &request("/f"), &answer(&[(name, value)])).is_some();
    assert!(!read("x-frame-options", "DENY"));
    assert!(!read("content-security-policy", "frame-ancestors 'none'"));
}

#[test]
fn a_frame_that_runs_no_scripts_shows_what_stands_in_noscript() {
    let read = |sandbox: &str| {
        let page = page();
        let frame = named(&page, &format!("<iframe sandbox='{sandbox}' src=/f></iframe>"));
        let frame = page.frame(&frame.url, &request("/f"), &answer(&[])).unwrap();
        let html = b"<noscript><img src=a.png></noscript><script type=module>import './m.js'</script>";
        names(&frame.read(|document| document.html(html))).join(" ")
    };
    assert_eq!(read("allow-same-origin"), "/a.png");
    assert_eq!(read("allow-same-origin allow-scripts"), "/m.js");
}

#[test]
fn frames_are_read_however_deep_honest_pages_nest_them_but_in_no_circle() {
    let mut around = page();
    for depth in 1..=DEEPEST {
        let (path, inner) =
            (format!("/{depth}"), format!("<iframe src=/{depth}></iframe><iframe src=/></iframe>"));
        let decided = around.read(|document| document.html(inner.as_bytes()));
        let fetched: Vec<_> =
            decided.iter().filter(|one| matches!(one.decision, Decision::Fetch(..))).collect();
        assert_eq!(fetched.iter().map(|one| one.hint.url.path()).collect::<Vec<_>>(), [&*path]);
        around = around.frame(&fetched[0].hint.url, &request(&path), &answer(&[])).unwrap();
    }
    let deepest = named(&around, "<iframe src=/deeper></iframe>");
    assert!(around.frame(&deepest.url, &request("/deeper"), &answer(&[])).is_none());
}

#[test]
fn frames_spend_the_budget_of_their_page() {
    let page = page();
    let framed = named(&page, "<iframe src=/f></iframe>");
    let styled = b"<p style='background:url(a.png)'>x</p>";
    let frame = page.frame(&framed.url, &request("/f"), &answer(&[])).unwrap();
    assert_eq!(names(&frame.read(|document| document.html(styled))), ["/a.png"]);
    let slow = ":not(:has(.a)) ~ * ~ *{background:url(b.png)}".repeat(2_000);
    let html = format!("<style>{slow}</style>{}", "<p></p>".repeat(20_000));
    page.read(|document| document.html(html.as_bytes()));
    page.read(Document::html_end);
    assert_eq!(page.standing.matching().left(), 0);
    let frame = page.frame(&framed.url, &request("/f"), &answer(&[])).unwrap();
    assert!(frame.read(|document| document.html(styled)).is_empty());
}

fn fetched(decided: &[Decided], path: &str) -> Vec<Hint> {
    let fetched = decided.iter().filter(|one| matches!(one.decision, Decision::Fetch(..)));
    fetched.map(|one| one.hint.clone()).filter(|hint| hint.url.path() == path).collect()
}

const NAMED_TWICE: [&str; 4] = [
    "<link rel=stylesheet href=a.css><script>var t={light:'a.css'}</script>",
    "<link rel=preload as=style href=a.css><link rel=stylesheet href=a.css integrity=sha256-AAAA>",
    "<link rel=preload as=style href=a.css crossorigin><link rel=stylesheet href=a.css>",
    "<link rel=stylesheet href=a.css nonce=a><link rel=stylesheet href=a.css nonce=b>",
];

#[test]
fn a_sheet_that_is_named_again_is_read_all_the_same() {
    for html in NAMED_TWICE {
        // It answers before it is named again, and after.
        for early in [true, false] {
            let page = page();
            let (first, second) = html.split_at(html.find('>').unwrap() + 1);
            let read = |html: &str| page.read(|document| document.html(html.as_bytes()));
            let mut decided = read(&format!("<!doctype html>{first}"));
            if !early {
                decided.extend(read(second));
            }
            let [hint] = &*fetched(&decided, "/a.css") else { panic!("{html}") };
            let part = page.begin(hint, &hint.url, &answer(&[("content-type", "text/css")])).unwrap();
            if early {
                assert!(fetched(&read(second), "/a.css").is_empty(), "{html}");
            }
            read("<p class=hero>");
            let mut found = page.read(|document| document.resource(part, b".hero{background:url(b.jpg)}"));
            found.extend(page.read(|document| document.resource_end(part)));
            assert_eq!(names(&found), ["/b.jpg"], "{html} {early}");
        }
    }
}

#[test]
fn what_waits_for_a_sheet_goes_on_once_none_of_those_that_are_fetched_is_read() {
    for html in NAMED_TWICE {
        let page = page();
        let html = format!("<!doctype html>{html}<img loading=lazy src=b.png>");
        let decided = page.read(|document| document.html(html.as_bytes()));
        assert!(fetched(&decided, "/b.png").is_empty(), "{html}");
        let [hint] = &*fetched(&decided, "/a.css") else { panic!("{html}") };
        assert_eq!(names(&page.lost(hint)), ["/b.png"], "{html}");
    }
}

#[test]
fn what_the_mark_up_says_of_referrers_holds_for_what_sheets_import() {
    let chromium = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/149.0.0.0 Safari/537.36";
    let mut request = request("/");
    request.fields.insert(header::USER_AGENT, chromium.parse().unwrap());
    let referers = |meta: &str| {
        let page = page_for(&request, &answer(&[]), &Arc::default());
        let sheet = named(&page, &format!("{meta}<link rel=stylesheet href=a.css>"));
        let id = page.begin(&sheet, &sheet.url, &answer(&[])).unwrap();
        let css = b"@import url(b.css); @import url(//cdn.test/c.css);";
        let imported = page.read(|document| document.resource(id, css));
        let told = imported.iter().map(|one| match &one.decision {
            Decision::Fetch(unasked, _) => unasked.fields.get(header::REFERER).cloned(),
            Decision::Skip(why) => panic!("{why:?}"),
        });
        told.flatten().map(|told| told.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(referers(""), ["http://site.test/a.css", "http://site.test/"]);
    assert!(referers("<meta name=referrer content=no-referrer>").is_empty());
}

#[test]
fn a_frame_that_is_asked_for_like_a_window_has_no_icon() {
    let known = Arc::new(Known::default());
    let open = |path: &str| {
        let mut request = request(path);
        request.fields.insert(header::UPGRADE_INSECURE_REQUESTS, "1".parse().unwrap());
        page_for(&request, &answer(&[]), &known)
    };
    let page = open("/");
    named(&page, "<iframe src=/f></iframe>");
    let icon = |path: &str| {
        let page = open(path);
        let decided = page.read(|document| document.html(b"<body><img src=/a.png>"));
        names(&decided).contains(&"/favicon.ico")
    };
    assert!(icon("/g") && !icon("/f"));
}

#[test]
fn what_a_worker_imports_is_left_to_it() {
    let read = |dest: &'static str| {
        let (page, url) = (page(), Url::parse("http://site.test/a.js").unwrap());
        let request = HeaderMap::from_iter([("sec-fetch-dest".parse().unwrap(), dest.parse().unwrap())]);
        page.unforeseen(&url, &request, &answer(&[("content-type", "text/javascript")])).is_some()
    };
    assert!(read("script") && read("empty"));
    assert!(!read("worker") && !read("sharedworker") && !read("serviceworker") && !read("audioworklet"));
}
