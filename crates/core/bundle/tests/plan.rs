//! Which hints are fetched unasked, and with what.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{
    Budget, Cookies, Decision, Load, NeverUnasked, Plan, Skip, Unasked, Urgency, Way, urgency,
};
use farhop_page::{
    Confidence, Destination, FetchPriority, Hint, Initiator, Mode, Options, Scanner, Source, Timing,
    link_hints,
};
use http::header::{self, HeaderMap, HeaderValue};
use support::planned::{Planned, page, plan, plan_of};
use support::{CHROMIUM, FIREFOX, at, by, fields, hint, image, url};
use url::Url;

fn hints(html: &str) -> Vec<Hint> {
    let mut scanner = Scanner::new(&page(), None, Options { default_icon: false, ..Options::default() });
    scanner.write(html.as_bytes())
}

fn decide(plan: &mut Planned, html: &str) -> Vec<Result<Unasked, Skip>> {
    let never = NeverUnasked::new(10);
    hints(html)
        .iter()
        .map(|hint| match plan.decide(hint, &never) {
            Decision::Fetch(request, _) => Ok(request),
            Decision::Skip(why) => Err(why),
        })
        .collect()
}

fn only(plan: &mut Planned, html: &str) -> Result<Unasked, Skip> {
    decide(plan, html).pop().unwrap()
}

#[test]
fn what_the_document_sets_is_sent_with_what_it_needs() {
    let mut plan = plan(
        CHROMIUM,
        &[("cookie", "a=1")],
        &[("set-cookie", "a=2; Path=/"), ("set-cookie", "b=1; Path=/x")],
        Budget::default(),
    );
    let cookie = |request: Result<Unasked, Skip>| request.unwrap().fields.get(header::COOKIE).cloned();
    assert_eq!(cookie(only(&mut plan, "<img src=a.png>")).unwrap(), "a=2");
    assert_eq!(cookie(only(&mut plan, "<img src=/x/a.png>")).unwrap(), "b=1; a=2");
}

#[test]
fn cookies_seen_at_the_documents_host_go_there_alone() {
    let mut plan = plan(CHROMIUM, &[("cookie", "a=1")], &[], Budget::default());
    let cookie = |request: Result<Unasked, Skip>| request.unwrap().fields.get(header::COOKIE).cloned();
    assert_eq!(cookie(only(&mut plan, "<img src=a.png>")).unwrap(), "a=1");
    assert_eq!(cookie(only(&mut plan, "<script type=module src=a.js></script>")).unwrap(), "a=1");
    assert_eq!(
        cookie(only(&mut plan, "<img src=//site.test:8080/>")).unwrap(),
        "a=1",
        "cookies know no ports"
    );
    for other in ["//www.site.test/", "//other.test/"] {
        assert_eq!(cookie(only(&mut plan, &format!("<img src={other}>"))), None, "{other}");
    }
    assert_eq!(cookie(only(&mut plan, "<link rel=manifest href=m.json>")), None);
}

/// As recorded from Chromium 156.
#[test]
fn what_is_for_the_next_page_says_so_and_comes_last() {
    const EXCHANGE: &str = "application/signed-exchange;v=b3;q=0.7";
    let accept = format!("text/html,image/webp,*/*;q=0.8,{EXCHANGE}");
    let said = [("accept", accept.as_str()), ("cookie", "a=1")];
    let mut plan = plan(CHROMIUM, &said, &[], Budget::default());
    let asked = only(&mut plan, "<link rel=prefetch as=script href=a.js>").unwrap().fields;
    let of =
        |fields: &HeaderMap, name: &str| fields.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(of(&asked, "sec-purpose").as_deref(), Some("prefetch"));
    assert_eq!(of(&asked, "accept"), Some(accept.clone()), "whatever it is for");
    assert_eq!((of(&asked, "cookie").as_deref(), of(&asked, "origin")), (Some("a=1"), None));
    let asked = only(&mut plan, "<link rel=prefetch crossorigin href=b.woff2>").unwrap().fields;
    assert_eq!(of(&asked, "accept"), Some(format!("{EXCHANGE},*/*;q=0.8")));
    assert!(of(&asked, "origin").is_some());
    let last = hints("<link rel=prefetch href=c.js>").pop().unwrap();
    assert_eq!(urgency(&last).level, 7);
    let both = decide(&mut plan, "<link rel=prefetch href=d.js><script src=d.js></script>");
    assert!(both.iter().all(Result::is_ok), "this page does not wait for what is for the next: {both:?}");
}

/// As recorded from Chromium 156 and Firefox 153.
#[test]
fn what_a_worker_runs_is_asked_for_within_its_origin_and_by_chromium_without_client_hints() {
    let page = url("https://site.test/p");
    let said = [
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("cookie", "a=1"),
        ("sec-ch-ua", "\"Chromium\";v=\"156\""),
        ("sec-fetch-dest", "document"),
    ];
    let response = [("content-security-policy", "script-src 'self'; worker-src https://site.test/w.js")];
    for (agent, dest, destination) in [
        (CHROMIUM, "worker", Destination::Worker),
        (CHROMIUM, "sharedworker", Destination::SharedWorker),
        (FIREFOX, "worker", Destination::Worker),
    ] {
        let mut plan = plan_of(&page, agent, &said, &response, Budget::default());
        let worker = |at: &str| hint(url(at), destination, Mode::SameOrigin, Source::OwnVisits);
        let asked = plan.only(&worker("https://site.test/w.js")).unwrap().fields;
        let of = |name: &str| asked.get(name).map(|value| value.to_str().unwrap());
        let metadata = ["sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "accept"].map(of);
        assert_eq!(metadata, [Some(dest), Some("same-origin"), Some("same-origin"), Some("*/*")]);
        assert_eq!((of("referer"), of("cookie")), (Some("https://site.test/p"), Some("a=1")));
        assert_eq!((of("origin"), of("sec-ch-ua").is_some()), (None, agent == FIREFOX));
        let else_where = plan.only(&worker("https://site.test/other.js"));
        assert_eq!(else_where, Err(Skip::ContentPolicy), "scripts may, workers may not");
        let mut free = plan_of(&page, agent, &said, &[], Budget::default());
        assert_eq!(free.only(&worker("https://far.test/w.js")), Err(Skip::NotThisBrowser));
    }
}

#[test]
fn another_icon_is_for_browsers_that_are_known_to_take_it_too() {
    let other = hint(url("https://site.test/i.png"), Destination::Icon, Mode::NoCors, Source::OtherIcon);
    assert!(plan(CHROMIUM, &[], &[], Budget::default()).only(&other).is_ok());
    assert_eq!(plan(FIREFOX, &[], &[], Budget::default()).only(&other), Err(Skip::NotThisBrowser));
}

#[test]
fn what_is_for_the_next_page_is_left_to_browsers_of_other_families_and_to_them_all_at_other_sites() {
    let next = "<link rel=prefetch href=a.js>";
    let mut firefox = plan(FIREFOX, &[], &[], Budget::default());
    assert_eq!(only(&mut firefox, next), Err(Skip::NotThisBrowser));
    let mut chromium = plan(CHROMIUM, &[], &[], Budget::default());
    let elsewhere = "<link rel=prefetch href=//elsewhere.test/a.js>";
    assert_eq!(only(&mut chromium, elsewhere), Err(Skip::NotThisBrowser));
    assert!(only(&mut chromium, next).is_ok());
}

#[test]
fn own_requests_of_a_page_with_authorization_are_left_to_the_browser() {
    let mut plan = plan(CHROMIUM, &[("authorization", "Basic eA==")], &[], Budget::default());
    assert_eq!(only(&mut plan, "<img src=a.png>"), Err(Skip::Credentials));
    let foreign = only(&mut plan, "<img src=//other.test/a.png>").unwrap();
    assert!(!foreign.fields.contains_key(header::AUTHORIZATION));
}

#[test]
fn a_request_is_planned_once_and_within_the_budget() {
    let budget = Budget { max_requests: 3, max_per_foreign_origin: 1, ..Budget::default() };
    let mut plan = plan(CHROMIUM, &[], &[], budget);
    let html = "<img src=1.png><img src=//o.test/1.png><img src=//o.test/2.png><img src=//cdn.site.test/2.png><img src=3.png>";
    let decided: Vec<_> = decide(&mut plan, html).into_iter().map(Result::err).collect();
    // Another host of the page's own site is none of others.
    assert_eq!(decided, [None, None, Some(Skip::OverBudget), None, Some(Skip::OverBudget)]);
    assert_eq!(only(&mut plan, "<img src=1.png>"), Err(Skip::Duplicate));
}

#[test]
fn a_url_whose_unasked_fetch_set_a_cookie_is_not_fetched_unasked_again() {
    let mut plan = plan(CHROMIUM, &[], &[], Budget::default());
    let mut never = NeverUnasked::new(2);
    let hint = &hints("<img src=a.png>")[0];
    assert!(!never.note(&hint.url, &fields(&[("etag", "\"1\"")])));
    assert!(never.note(&hint.url, &fields(&[("set-cookie", "a=1")])));
    assert_eq!(plan.decide(hint, &never), Decision::Skip(Skip::SetsCookie));
    for n in 0..2 {
        never.note(&Url::parse(&format!("http://site.test/{n}")).unwrap(), &fields(&[("set-cookie", "a=1")]));
    }
    assert_eq!(never.why(&hint.url), None, "the oldest is forgotten first");
}

#[test]
fn tools_get_nothing_unasked() {
    for agent in ["curl/8.14.1", "Wget/1.21", "python-requests/2.32"] {
        let mut plan = plan(agent, &[], &[], Budget::default());
        assert_eq!(only(&mut plan, "<img src=a.png>"), Err(Skip::NotThisBrowser), "{agent}");
    }
}

#[test]
fn link_fields_are_obeyed_as_far_as_the_browser_does() {
    let fetched = |agent: &str, field: &str| {
        let hint = &link_hints(field, &page(), &Options::default())[0];
        matches!(
            plan(agent, &[], &[], Budget::default()).decide(hint, &NeverUnasked::new(1)),
            Decision::Fetch(..)
        )
    };
    let (sheet, preload) = ("</a.css>; rel=stylesheet", "</a.css>; rel=preload; as=style");
    assert_eq!((fetched(CHROMIUM, sheet), fetched(FIREFOX, sheet)), (false, true));
    assert_eq!((fetched(CHROMIUM, preload), fetched(FIREFOX, preload)), (true, true));
    let for_paper = "</a.css>; rel=stylesheet; media=print";
    assert_eq!((fetched(CHROMIUM, for_paper), fetched(FIREFOX, for_paper)), (false, true));
}

#[test]
fn firefox_preloads_fonts_as_it_asks_for_them() {
    let html = "<link rel=preload as=font href=a.woff2>";
    let origin = |agent: &str| {
        let mut plan = plan(agent, &[], &[], Budget::default());
        only(&mut plan, &html.replace("a.w", "//cdn.test/a.w")).unwrap().fields.contains_key(header::ORIGIN)
    };
    assert_eq!((origin(CHROMIUM), origin(FIREFOX)), (false, true));
}

#[test]
fn the_referrer_policy_of_element_page_and_response_apply_in_this_order() {
    let referer = |response: &[(&str, &str)], html: &str| {
        let mut plan = plan(CHROMIUM, &[], response, Budget::default());
        let request = only(&mut plan, html).unwrap();
        request.fields.get(header::REFERER).map(|value| value.to_str().unwrap().to_owned())
    };
    let field = [("referrer-policy", "unknown, origin")];
    assert_eq!(referer(&[], "<img src=a.png>").as_deref(), Some("http://site.test/page"));
    assert_eq!(referer(&[], "<img src=//o.test/a.png>").as_deref(), Some("http://site.test/"));
    assert_eq!(referer(&field, "<img src=a.png>").as_deref(), Some("http://site.test/"));
    assert_eq!(
        referer(&field, "<meta name=referrer content=unsafe-url><img src=//o.test/>").as_deref(),
        Some("http://site.test/page")
    );
    assert_eq!(referer(&field, "<img referrerpolicy=no-referrer src=a.png>"), None);
}

#[test]
fn what_blocks_rendering_goes_first_and_icons_last() {
    let mut plan = plan(CHROMIUM, &[], &[], Budget::default());
    let never = NeverUnasked::new(1);
    let mut level = |html: &str| match plan.decide(&hints(html)[0], &never) {
        Decision::Fetch(_, Urgency { level, .. }) => level,
        Decision::Skip(why) => panic!("{why:?}"),
    };
    let order = [
        "<link rel=stylesheet href=1.css>",
        "<link rel=preload as=font crossorigin href=2.woff2>",
        "<script defer src=3.js></script>",
        "<img src=4.png>",
        "<img loading=lazy src=5.png>",
        "<link rel=stylesheet media=print href=6.css>",
    ]
    .map(&mut level);
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    assert_eq!(level("<script src=1.js></script>"), order[0]);
    assert!(level("<img fetchpriority=high src=6.png>") < level("<img src=7.png>"));
    assert!(level("<img fetchpriority=low src=8.png>") > level("<img src=9.png>"));
}

#[test]
fn firefox_asks_in_its_own_words() {
    let mut plan =
        plan(FIREFOX, &[("accept", "text/html"), ("accept-language", "de")], &[], Budget::default());
    let image = only(&mut plan, "<img src=a.png>").unwrap();
    assert_eq!(
        image.fields[header::ACCEPT],
        "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
    );
    assert_eq!(image.fields[header::ACCEPT_LANGUAGE], "de");
    let module = only(&mut plan, "<script type=module src=a.js></script>").unwrap();
    assert!(!module.fields.contains_key(header::ORIGIN), "same origin");
}

#[test]
fn a_refused_hint_does_not_hide_a_later_one_of_the_same_url() {
    let policy = [("content-security-policy", "script-src 'nonce-x'")];
    let mut plan = plan(CHROMIUM, &[], &policy, Budget::default());
    let script = hint(url("http://site.test/a.js"), Destination::Script, Mode::NoCors, Source::Script);
    assert_eq!(plan.only(&script), Err(Skip::ContentPolicy));
    assert!(plan.only(&Hint { nonce: Some("x".into()), ..script }).is_ok());
}

#[test]
fn a_page_of_a_hundred_thousand_hints_gets_no_more_than_its_budget() {
    let mut plan = plan(CHROMIUM, &[("cookie", "a=1")], &[], Budget::default());
    let fetched =
        (0..100_000).filter(|n| plan.only(&image(&format!("http://site.test/{n}"))).is_ok()).count();
    assert_eq!(fetched, Budget::default().max_requests);
}

#[test]
fn a_frame_that_is_upgraded_is_told_what_plain_http_would_be() {
    let policy = [("content-security-policy", "upgrade-insecure-requests")];
    let request = [("sec-fetch-dest", "document"), ("sec-ch-ua", "x")];
    let told = |html: &str| {
        let mut plan = plan_of(&url("https://site.test/p"), CHROMIUM, &request, &policy, Budget::default());
        let asked = only(&mut plan, html).unwrap();
        assert_eq!(asked.url.scheme(), "https");
        (asked.fields.contains_key("referer"), asked.fields.contains_key("sec-ch-ua"))
    };
    assert_eq!(told("<iframe src=http://site.test/f></iframe>"), (false, false));
    assert_eq!(told("<iframe src=https://site.test/f></iframe>"), (true, true));
    assert_eq!(told("<img src=http://site.test/a.png>"), (true, true));

    let mut plan = plan_of(&url("https://site.test/p"), CHROMIUM, &request, &policy, Budget::default());
    let asked = only(&mut plan, "<iframe src=http://site.test/f></iframe>").unwrap();
    let frame = Load::framed(plan.plan.load(), asked.url, asked.fields, &HeaderMap::new());
    let (within, way) = (image("https://site.test/a.png"), Way::default());
    let never = NeverUnasked::new(1);
    let decided =
        plan.plan.decide_after(Some(&frame), &within, &within.url, &way, &never, &plan.cookies, at(1));
    let Decision::Fetch(asked, _) = decided else { panic!("{decided:?}") };
    assert!(asked.fields.contains_key("sec-ch-ua"), "what is in it shows what the page shows");
}

#[test]
fn a_stylesheet_is_the_referrer_of_what_it_names_and_the_document_its_origin() {
    let mut plan =
        plan(CHROMIUM, &[("cookie", "a=1")], &[("referrer-policy", "unsafe-url")], Budget::default());
    let sheet = Initiator::Sheet(url("http://cdn.test/a.css"));
    let font = hint(url("http://cdn.test/a.woff2"), Destination::Font, Mode::Cors, Source::FontFace);
    let font = plan.only(&by(font, sheet.clone())).unwrap().fields;
    assert_eq!(font[header::REFERER], "http://cdn.test/a.css");
    assert_eq!(font[header::ORIGIN], "http://site.test");
    let own = by(Hint { source: Source::Rule, ..image("http://site.test/a.png") }, sheet);
    let own = plan.only(&own).unwrap().fields;
    assert_eq!(own[header::REFERER], "http://cdn.test/", "the default policy, not the document's");
    assert_eq!(own[header::COOKIE], "a=1");
    let module = hint(url("http://site.test/b.mjs"), Destination::Script, Mode::Cors, Source::StaticImport);
    let module = plan.only(&by(module, Initiator::Module(url("http://site.test/a.mjs")))).unwrap().fields;
    assert_eq!(module[header::REFERER], "http://site.test/a.mjs");
    let written = by(image("http://site.test/c.png"), Initiator::Sheet(url("data:,")));
    assert!(!plan.only(&written).unwrap().fields.contains_key(header::REFERER), "it has nothing to tell");
}

#[test]
fn firefox_wants_fonts_uncoded_that_are_compressed_by_their_format() {
    let coding = |agent, format: Option<&str>| {
        let mut plan = plan(agent, &[("accept-encoding", "gzip, deflate")], &[], Budget::default());
        let font = hint(url("http://site.test/a"), Destination::Font, Mode::Cors, Source::FontFace);
        let font = Hint { format: format.map(Into::into), ..font };
        plan.only(&font).unwrap().fields[header::ACCEPT_ENCODING].clone()
    };
    for (agent, format, expected) in [
        (FIREFOX, Some("woff2"), "identity"),
        (FIREFOX, Some("woff-variations"), "identity"),
        (FIREFOX, Some("truetype"), "gzip, deflate"),
        (FIREFOX, None, "gzip, deflate"),
        (CHROMIUM, Some("woff2"), "gzip, deflate"),
    ] {
        assert_eq!(coding(agent, format), expected, "{format:?} in {agent}");
    }
}

#[test]
fn where_a_strangers_cookies_are_not_known_nothing_is_fetched() {
    let mut cookies = Cookies::default();
    let agent =
        fields(&[("user-agent", FIREFOX), ("accept", "text/html"), ("upgrade-insecure-requests", "1")]);
    let far = url("http://far.test/");
    let noted = cookies.note_request(&far, &agent, at(0));
    cookies.note_response(&noted, &far, &fields(&[("set-cookie", "a=1")]), at(0));
    let noted = cookies.note_request(&page(), &agent, at(0));
    let load = Load::new(page(), agent.clone(), &HeaderMap::new(), &noted);
    let mut plan = Planned { plan: Plan::new(load, Budget::default()), cookies };
    assert_eq!(plan.only(&image("http://far.test/a.png")), Err(Skip::UnsureOfCookies));
    let anonymous = Hint { mode: Mode::Cors, ..image("http://far.test/a.png") };
    assert!(plan.only(&anonymous).is_ok(), "without credentials no cookie matters");
    assert!(plan.only(&image("http://other.test/a.png")).is_ok(), "nothing is held for it");
}

#[test]
fn the_table_of_urgencies_holds() {
    let make =
        |destination, timing| Hint { timing, ..hint(page(), destination, Mode::NoCors, Source::Preload) };
    use Destination as D;
    let table = [
        (make(D::Style, Timing::Blocking), 1),
        (make(D::Script, Timing::Blocking), 1),
        (Hint { source: Source::Import, ..make(D::Style, Timing::Blocking) }, 2),
        (make(D::Font, Timing::Async), 2),
        (make(D::Fetch, Timing::Async), 2),
        (make(D::Script, Timing::Deferred), 3),
        (make(D::Script, Timing::Async), 3),
        (Hint { source: Source::Script, ..make(D::Script, Timing::Async) }, 5),
        (Hint { source: Source::Script, ..make(D::Script, Timing::Blocking) }, 1),
        (make(D::Frame, Timing::Async), 3),
        (make(D::Image, Timing::Async), 4),
        (Hint { below_fold: true, ..make(D::Image, Timing::Async) }, 5),
        (make(D::Image, Timing::Lazy), 6),
        (make(D::Frame, Timing::Lazy), 6),
        (make(D::Icon, Timing::Async), 7),
        (make(D::Manifest, Timing::Async), 7),
        (Hint { applies: false, ..make(D::Style, Timing::Lazy) }, 7),
        (Hint { confidence: Confidence::Guess, ..make(D::Image, Timing::Async) }, 7),
        (Hint { priority: FetchPriority::High, ..make(D::Image, Timing::Async) }, 2),
        (Hint { priority: FetchPriority::Low, ..make(D::Image, Timing::Async) }, 6),
        (Hint { priority: FetchPriority::Low, ..make(D::Icon, Timing::Async) }, 7),
    ];
    for (hint, level) in table {
        let incremental = hint.destination == D::Frame;
        assert_eq!(urgency(&hint), Urgency { level, incremental }, "{hint:?}");
    }
}

/// How a page at `http://a.localhost/p1` is sandboxed, and what its resources are asked with.
#[test]
fn a_sandboxed_page_asks_like_a_stranger() {
    let page = url("http://a.localhost/p1");
    let cookies = [
        ("set-cookie", "l=1; SameSite=Lax"),
        ("set-cookie", "s=1; SameSite=Strict"),
        ("set-cookie", "d=1"),
        ("content-security-policy", "sandbox allow-scripts"),
    ];
    let request = [("sec-fetch-dest", "document"), ("sec-fetch-site", "none")];
    let mut sandboxed = plan_of(&page, CHROMIUM, &request, &cookies, Budget::default());
    let own = |path: &str| url("http://a.localhost").join(path).unwrap();
    let plain =
        sandboxed.only(&hint(own("/a.png"), Destination::Image, Mode::NoCors, Source::Image)).unwrap();
    assert_eq!(plain.fields["sec-fetch-site"], "cross-site");
    assert_eq!(plain.fields["sec-fetch-storage-access"], "none");
    for name in ["cookie", "referer", "origin"] {
        assert!(!plain.fields.contains_key(name), "{name}");
    }
    let font =
        sandboxed.only(&hint(own("/f.woff2"), Destination::Font, Mode::Cors, Source::FontFace)).unwrap();
    assert_eq!(font.fields["origin"], "null");
    assert!(!font.fields.contains_key("cookie"));
    let of_sheet = by(
        hint(own("/b.png"), Destination::Image, Mode::NoCors, Source::Rule),
        Initiator::Sheet(own("/a.css")),
    );
    assert_eq!(sandboxed.only(&of_sheet).unwrap().fields["referer"], "http://a.localhost/a.css");

    let left = [("set-cookie", "d=1"), ("content-security-policy", "sandbox allow-same-origin")];
    let mut open = plan_of(&page, CHROMIUM, &request, &left, Budget::default());
    let plain = open.only(&hint(own("/a.png"), Destination::Image, Mode::NoCors, Source::Image)).unwrap();
    assert_eq!(
        (&plain.fields["cookie"], &plain.fields["sec-fetch-site"]),
        (&HeaderValue::from_static("d=1"), &HeaderValue::from_static("same-origin"))
    );
}

#[test]
fn posters_and_data_modules_are_asked_for_as_each_browser_does() {
    let poster = |agent| {
        let html = "<video crossorigin poster=a.png>";
        only(&mut plan(agent, &[], &[], Budget::default()), html).unwrap().fields.get("origin").cloned()
    };
    assert_eq!(poster(CHROMIUM).unwrap(), "http://site.test");
    assert_eq!(poster(FIREFOX), None);
    let html = "<script type=module>import a from './a.json' with {type: 'json'}</script>";
    let module = only(&mut plan(CHROMIUM, &[], &[], Budget::default()), html).unwrap();
    assert_eq!(module.fields["accept"], "application/json,*/*;q=0.5");
    assert_eq!(module.fields["origin"], "http://site.test");
    let policy = [("content-security-policy", "connect-src 'none'; script-src *  'unsafe-inline'")];
    let forbidden = only(&mut plan(CHROMIUM, &[], &policy, Budget::default()), html);
    assert_eq!(forbidden, Err(Skip::ContentPolicy));
}

#[test]
fn what_chromium_preloads_for_a_103_response_goes_without_client_hints() {
    let request = [("sec-fetch-dest", "document"), ("sec-ch-ua", "x"), ("sec-ch-ua-mobile", "?0")];
    let page = url("https://site.test/");
    let early = Hint { source: Source::EarlyHints, ..image("https://site.test/a.png") };
    for (agent, hint, tells) in [
        (CHROMIUM, &early, false),
        (CHROMIUM, &image("https://site.test/a.png"), true),
        (FIREFOX, &early, true),
    ] {
        let mut plan = plan_of(&page, agent, &request, &[], Budget::default());
        let asked = plan.only(hint).unwrap().fields;
        assert_eq!((asked.contains_key("sec-ch-ua"), asked.contains_key("sec-ch-ua-mobile")), (tells, tells));
    }
}

#[test]
fn client_hints_that_the_page_asks_for_go_with_its_own_resources_at_once() {
    let page = url("https://site.test/");
    let request = [("sec-fetch-dest", "document"), ("sec-ch-ua", "x"), ("device-memory", "8")];
    let asks = [("accept-ch", "Sec-CH-DPR, Device-Memory, X-Unknown")];
    let ask = |planned: &mut Planned, target: &str| planned.only(&image(target)).map(|asked| asked.fields);
    let mut first = plan_of(&page, CHROMIUM, &request, &asks, Budget::default());
    assert_eq!(ask(&mut first, "https://site.test/a.png"), Err(Skip::UnknownHints));
    let other = ask(&mut first, "https://other.test/a.png").unwrap();
    assert!(other.contains_key("sec-ch-ua") && !other.contains_key("device-memory"));

    let seen = fields(&[("user-agent", CHROMIUM), ("sec-fetch-dest", "document"), ("sec-ch-dpr", "2")]);
    let mut second = plan_of(&page, CHROMIUM, &request, &asks, Budget::default());
    second.cookies.note_request(&url("https://third.test/"), &seen, at(0));
    let own = ask(&mut second, "https://site.test/a.png").unwrap();
    assert_eq!(
        (&own["sec-ch-dpr"], &own["device-memory"]),
        (&HeaderValue::from_static("2"), &HeaderValue::from_static("8"))
    );

    first.plan.load().awaits_hints(&mut first.cookies, at(1));
    assert_eq!(ask(&mut first, "https://site.test/b.png"), Err(Skip::UnknownHints), "it may still show them");
    let later = image("https://site.test/c.png");
    let decided = first.plan.decide(&later, &NeverUnasked::new(1), &first.cookies, at(60));
    assert!(matches!(decided, Decision::Fetch(..)), "it has none");

    let mut meta = plan_of(&page, CHROMIUM, &request, &[], Budget::default());
    assert!(!ask(&mut meta, "https://site.test/a.png").unwrap().contains_key("sec-ch-dpr"));
    meta.plan.load_mut().ask_client_hints("sec-ch-dpr");
    assert_eq!(ask(&mut meta, "https://site.test/b.png"), Err(Skip::UnknownHints));
    let mut firefox = plan_of(&page, FIREFOX, &request[..1], &asks, Budget::default());
    assert!(ask(&mut firefox, "https://site.test/a.png").is_ok(), "it knows none");

    // What Chromium says of the network is blurred anew for each request.
    let shown = [("sec-fetch-dest", "document"), ("downlink", "1.65"), ("ect", "4g")];
    let mut blurred = plan_of(&page, CHROMIUM, &shown, &[], Budget::default());
    assert_eq!(ask(&mut blurred, "https://site.test/a.png"), Err(Skip::UnknownHints));
    assert!(ask(&mut blurred, "https://other.test/a.png").is_ok(), "it is not told");
}

#[test]
fn what_is_asked_for_in_other_words_than_foreseen_is_left_for_a_while_and_longer_each_time() {
    let page = url("https://site.test/");
    let image = image("https://site.test/a.png");
    let request = [("sec-fetch-dest", "document"), ("accept-language", "en")];
    let mut never = NeverUnasked::new(10);
    // Whether a load fetches it unasked, after which its browser asks for it with this besides.
    let mut load = |besides: &[(&'static str, &'static str)]| -> Result<(), Skip> {
        let mut plan = plan_of(&page, CHROMIUM, &request, &[], Budget::default());
        let mut words =
            plan_of(&page, CHROMIUM, &request, &[], Budget::default()).only(&image).unwrap().fields;
        for (name, value) in besides {
            words.insert(*name, value.parse().unwrap());
        }
        let decided = plan.decide(&image, &never);
        plan.plan.asked(&image.url, &words, &mut never, &mut plan.cookies, at(1));
        match decided {
            Decision::Fetch(..) => Ok(()),
            Decision::Skip(why) => Err(why),
        }
    };
    for passing in
        [&[][..], &[("cookie", "a=b")], &[("cache-control", "no-cache")], &[("sec-fetch-dest", "empty")]]
    {
        assert_eq!(load(passing), Ok(()), "{passing:?} says nothing of the next time");
        assert_eq!(load(&[]), Ok(()));
    }
    let width = [("width", "50")];
    for times in [2, 4, 8] {
        assert_eq!(load(&width), Ok(()), "it is tried again");
        for _ in 0..times {
            assert_eq!(load(&width), Err(Skip::AskedOtherwise));
        }
    }
}
