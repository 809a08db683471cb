//! Which hints are fetched unasked, and with what.
#![allow(clippy::unwrap_used)] // helpers of tests

use farhop_bundle::{Budget, Decision, Load, NeverUnasked, Plan, Skip, Unasked, Urgency};
use farhop_page::{Hint, Options, Scanner, link_hints};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

const CHROMIUM: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0";

fn page() -> Url {
    Url::parse("http://site.test/page").unwrap()
}

fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    map
}

fn plan(agent: &str, request: &[(&str, &str)], response: &[(&str, &str)], budget: Budget) -> Plan {
    let mut request = fields(request);
    request.insert(header::USER_AGENT, HeaderValue::from_str(agent).unwrap());
    let response = fields(response);
    Plan::new(Load::new(page(), request, &response), &response, budget)
}

fn hints(html: &str) -> Vec<Hint> {
    let mut scanner = Scanner::new(&page(), None, Options { default_icon: false, ..Options::default() });
    scanner.write(html.as_bytes())
}

fn decide(plan: &mut Plan, html: &str) -> Vec<Result<Unasked, Skip>> {
    let never = NeverUnasked::new(10);
    hints(html)
        .iter()
        .map(|hint| match plan.decide(hint, &never) {
            Decision::Fetch(request, _) => Ok(request),
            Decision::Skip(why) => Err(why),
        })
        .collect()
}

fn only(plan: &mut Plan, html: &str) -> Result<Unasked, Skip> {
    decide(plan, html).pop().unwrap()
}

#[test]
fn a_document_that_sets_a_cookie_gets_no_promises() {
    let mut plan = plan(CHROMIUM, &[], &[("set-cookie", "a=1")], Budget::default());
    assert_eq!(only(&mut plan, "<img src=a.png>"), Err(Skip::DocumentSetsCookie));
}

#[test]
fn cookies_go_to_the_documents_own_origin_alone() {
    let mut plan = plan(CHROMIUM, &[("cookie", "a=1")], &[], Budget::default());
    let cookie = |request: Result<Unasked, Skip>| request.unwrap().fields.get(header::COOKIE).cloned();
    assert_eq!(cookie(only(&mut plan, "<img src=a.png>")).unwrap(), "a=1");
    assert_eq!(cookie(only(&mut plan, "<script type=module src=a.js></script>")).unwrap(), "a=1");
    for other in ["//www.site.test/", "//site.test:8080/", "https://site.test/", "//other.test/"] {
        assert_eq!(cookie(only(&mut plan, &format!("<img src={other}>"))), None, "{other}");
    }
    assert_eq!(cookie(only(&mut plan, "<link rel=manifest href=m.json>")), None);
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
    let budget = Budget { max_requests: 3, max_per_foreign_origin: 1 };
    let mut plan = plan(CHROMIUM, &[], &[], budget);
    let html =
        "<img src=1.png><img src=//o.test/1.png><img src=//o.test/2.png><img src=2.png><img src=3.png>";
    let decided: Vec<_> = decide(&mut plan, html).into_iter().map(Result::err).collect();
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
    assert!(!never.contains(&hint.url), "the oldest is forgotten first");
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
