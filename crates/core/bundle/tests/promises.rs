//! "Never a wrong byte", clause by clause: which promise answers which request.
#![allow(clippy::unwrap_used)] // helpers of tests

use farhop_bundle::{Answer, LoadId, Lost, Mismatch, PromiseId, Promises, WhyAsk, not_modified};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use url::Url;

const PAGE: &str = "http://site.test/page";
const IMAGE: &str = "http://site.test/a.png";
const ONE: PromiseId = PromiseId(1);
const LOAD: LoadId = LoadId(1);

fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    map
}

const BASIC: [(&str, &str); 3] = [("accept", "image/*"), ("cookie", "a=1"), ("accept-language", "de")];

/// A request like the promised one, with `changes`; an empty value removes.
fn request(changes: &[(&str, &str)]) -> HeaderMap {
    let mut map = fields(&BASIC);
    for (name, value) in changes {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.remove(&name);
        if !value.is_empty() {
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
    }
    map
}

fn user(name: &str) -> Arc<str> {
    Arc::from(name)
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn navigation(referer: Option<&str>) -> HeaderMap {
    let mut map = fields(&[("accept", "text/html,*/*;q=0.8")]);
    if let Some(referer) = referer {
        map.insert("referer", HeaderValue::from_str(referer).unwrap());
    }
    map
}

/// The book of a user who loads the page, with one promise.
fn book() -> Promises {
    let mut book = Promises::new(100, 100);
    assert!(book.begin_load(&user("u"), LOAD, &Url::parse(PAGE).unwrap(), &navigation(None)).is_empty());
    assert!(book.promise(ONE, &user("u"), LOAD, Url::parse(IMAGE).unwrap(), fields(&BASIC)));
    book
}

fn head(book: &mut Promises, response: &[(&str, &str)]) -> bool {
    book.head(ONE, StatusCode::OK, &fields(response), seconds(1), SystemTime::UNIX_EPOCH + seconds(1_000_000))
}

fn ask(book: &mut Promises, changes: &[(&str, &str)]) -> Answer {
    ask_at(book, changes, 2)
}

fn ask_at(book: &mut Promises, changes: &[(&str, &str)], now: u64) -> Answer {
    book.ask(&user("u"), &Method::GET, &Url::parse(IMAGE).unwrap(), &request(changes), seconds(now))
}

fn differs(name: &'static str) -> Answer {
    Answer::Ask(WhyAsk::Field(Mismatch(HeaderName::from_static(name))))
}

const NOT_PROMISED: Answer = Answer::Ask(WhyAsk::NotPromised);
const SPENT: Answer = Answer::Ask(WhyAsk::Spent);

#[test]
fn an_equal_request_is_answered_before_the_head_is_known() {
    assert_eq!(ask(&mut book(), &[]), Answer::Promise(ONE));
}

#[test]
fn another_method_is_not_answered() {
    for method in [Method::HEAD, Method::POST, Method::OPTIONS] {
        let answer = book().ask(&user("u"), &method, &Url::parse(IMAGE).unwrap(), &request(&[]), seconds(2));
        assert_eq!(answer, Answer::Ask(WhyAsk::Method), "{method}");
    }
}

#[test]
fn another_url_is_not_answered_and_a_fragment_is_no_other_url() {
    let mut book = book();
    let mut at =
        |url: &str| book.ask(&user("u"), &Method::GET, &Url::parse(url).unwrap(), &request(&[]), seconds(2));
    for url in [
        "http://site.test/a.png?",
        "https://site.test/a.png",
        "http://site.test/A.png",
        "http://other.test/a.png",
    ] {
        assert_eq!(at(url), NOT_PROMISED, "{url}");
    }
    assert_eq!(at("http://site.test/a.png#x"), Answer::Promise(ONE));
}

#[test]
fn another_user_is_not_answered() {
    let answer = book().ask(&user("v"), &Method::GET, &Url::parse(IMAGE).unwrap(), &request(&[]), seconds(2));
    assert_eq!(answer, NOT_PROMISED);
}

#[test]
fn every_field_must_be_equal() {
    for (name, value) in [
        ("accept", "*/*"),
        ("cookie", "a=2"),
        ("cookie", ""),
        ("accept-language", "en"),
        ("origin", "http://site.test"),
        ("x-new", "1"),
        ("range", "bytes=0-"),
        ("if-match", "\"1\""),
        ("if-unmodified-since", DATE),
        ("if-range", "\"1\""),
        ("cache-control", "no-cache"),
        ("content-length", "3"),
    ] {
        assert_eq!(ask(&mut book(), &[(name, value)]), differs(name), "{name}: {value}");
    }
}

#[test]
fn repeated_fields_must_be_repeated_alike() {
    let mut book = book();
    let mut twice = request(&[]);
    twice.append("accept", HeaderValue::from_static("image/*"));
    let answer = book.ask(&user("u"), &Method::GET, &Url::parse(IMAGE).unwrap(), &twice, seconds(2));
    assert_eq!(answer, differs("accept"));
}

#[test]
fn fields_that_cannot_change_the_answer_may_differ() {
    for (name, value) in [
        ("host", "site.test"),
        ("connection", "close"),
        ("proxy-connection", "keep-alive"),
        ("keep-alive", "5"),
        ("proxy-authorization", "Basic eA=="),
        ("via", "1.1 x"),
        ("te", "trailers"),
        ("upgrade", "h2c"),
        ("priority", "u=5, i"),
    ] {
        assert_eq!(ask(&mut book(), &[(name, value)]), Answer::Promise(ONE), "{name}");
    }
}

const SHARED: [(&str, &str); 2] = [("cache-control", "max-age=60"), ("vary", "accept-language")];

#[test]
fn a_reusable_response_may_differ_in_fields_that_vary_does_not_name() {
    let mut book = book();
    assert_eq!(ask(&mut book, &[("accept", "*/*")]), differs("accept"), "not before the head is known");
    assert!(head(&mut book, &SHARED));
    assert_eq!(ask(&mut book, &[("accept", "*/*"), ("cookie", ""), ("x-new", "1")]), Answer::Promise(ONE));
    assert_eq!(ask(&mut book, &[("accept-language", "en")]), differs("accept-language"));
}

#[test]
fn origin_authorization_and_range_are_compared_even_for_a_reusable_response() {
    for (name, value) in
        [("origin", "http://x.test"), ("authorization", "Basic eA=="), ("range", "bytes=0-1")]
    {
        let mut book = book();
        assert!(head(&mut book, &SHARED));
        assert_eq!(ask(&mut book, &[(name, value)]), differs(name));
    }
}

#[test]
fn what_asks_the_cache_itself_is_compared_even_for_a_reusable_response() {
    for (name, value) in [
        ("cache-control", "no-cache"),
        ("pragma", "no-cache"),
        ("if-match", "\"x\""),
        ("if-unmodified-since", DATE),
    ] {
        let mut book = book();
        assert!(head(&mut book, &SHARED));
        assert_eq!(ask(&mut book, &[(name, value)]), differs(name));
    }
}

const DATE: &str = "Thu, 01 Jan 1970 00:00:00 GMT";

#[test]
fn a_request_that_asks_whether_what_it_holds_has_changed_is_answered_by_the_whole() {
    for lines in [
        &[("if-none-match", "\"x\"")][..],
        &[("if-modified-since", DATE)],
        &[("if-none-match", "\"x\""), ("if-modified-since", DATE)],
    ] {
        assert_eq!(ask(&mut book(), lines), Answer::Promise(ONE), "{lines:?}");
        let mut coming = book();
        head(&mut coming, &[("cache-control", "no-cache"), ("etag", "\"x\"")]);
        assert_eq!(ask(&mut coming, lines), Answer::Promise(ONE), "{lines:?}");
        assert_eq!(ask(&mut coming, lines), SPENT, "once");
        let mut shared = book();
        assert!(head(&mut shared, &SHARED));
        assert_eq!(ask(&mut shared, lines), Answer::Promise(ONE), "{lines:?}");
    }
}

#[test]
fn a_request_with_conditions_needs_all_else_equal() {
    let tag = ("if-none-match", "\"x\"");
    for (name, value) in
        [("cookie", "a=2"), ("range", "bytes=0-"), ("if-match", "\"x\""), ("origin", "http://x.test")]
    {
        assert_eq!(ask(&mut book(), &[tag, (name, value)]), differs(name), "{name}");
    }
}

#[test]
fn a_promise_of_a_conditional_or_partial_answer_answers_only_the_same_conditions() {
    for (name, value) in [("if-none-match", "\"y\""), ("if-modified-since", DATE), ("range", "bytes=0-")] {
        let mut book = Promises::new(100, 100);
        let like = request(&[(name, value)]);
        assert!(book.promise(ONE, &user("u"), LOAD, Url::parse(IMAGE).unwrap(), like));
        let answer = ask(&mut book, &[(name, value), ("if-none-match", "\"x\"")]);
        assert_eq!(answer, differs("if-none-match"), "{name}");
    }
}

/// The 304 that a promised response makes of a request with these fields.
fn unchanged(
    conditions: &[(&str, &str)],
    status: StatusCode,
    response: &[(&str, &str)],
) -> Option<HeaderMap> {
    not_modified(&request(conditions), status, &fields(response), SystemTime::UNIX_EPOCH + seconds(1_000_000))
}

#[test]
fn a_promised_response_with_the_validator_that_is_held_is_not_modified() {
    const LATER: &str = "Fri, 02 Jan 1970 00:00:00 GMT";
    let tagged = [("etag", "\"x\""), ("last-modified", DATE)];
    let dated = [("last-modified", DATE)];
    type Lines<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Lines<'_>, Lines<'_>, bool); 12] = [
        (&[("if-none-match", "\"x\"")], &tagged, true),
        (&[("if-none-match", "W/\"x\"")], &tagged, true),
        (&[("if-none-match", "\"a\", \"x\"")], &tagged, true),
        (&[("if-none-match", "\"y\"")], &tagged, false),
        (&[("if-none-match", "\"x\"")], &dated, false),
        (&[("if-none-match", "\"y\""), ("if-modified-since", DATE)], &tagged, false),
        (&[("if-none-match", "\"x\""), ("if-modified-since", LATER)], &tagged, true),
        (&[("if-modified-since", DATE)], &dated, true),
        (&[("if-modified-since", LATER)], &dated, false), // the site went back to an older file
        (&[("if-modified-since", LATER)], &[("date", DATE)], false),
        (&[("if-modified-since", "x")], &[("last-modified", "x")], false),
        (&[], &tagged, false),
    ];
    for (conditions, response, expected) in cases {
        let found = unchanged(conditions, StatusCode::OK, response);
        assert_eq!(found.is_some(), expected, "{conditions:?} {response:?}");
    }
}

#[test]
fn conditions_mean_nothing_where_the_promised_response_is_no_200() {
    for status in [StatusCode::NOT_FOUND, StatusCode::FOUND, StatusCode::NO_CONTENT, StatusCode::BAD_GATEWAY]
    {
        assert_eq!(unchanged(&[("if-none-match", "\"x\"")], status, &[("etag", "\"x\"")]), None, "{status}");
    }
}

#[test]
fn a_304_keeps_what_updates_the_browser_and_leaves_out_what_describes_the_content() {
    let kept = [
        ("etag", "\"x\""),
        ("date", DATE),
        ("cache-control", "no-cache"),
        ("expires", DATE),
        ("vary", "accept"),
        ("vary", "cookie"),
        ("content-location", "/a"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("access-control-allow-origin", "*"),
        ("content-security-policy", "sandbox"),
    ];
    let content = [("content-length", "9"), ("content-type", "image/png"), ("content-encoding", "gzip")];
    let response = [&kept[..], &content].concat();
    let found = unchanged(&[("if-none-match", "\"x\"")], StatusCode::OK, &response);
    assert_eq!(found, Some(fields(&kept)));
}

#[test]
fn what_no_shared_cache_may_reuse_needs_every_field_equal_though_its_head_is_known() {
    for response in [
        &[("cache-control", "private, max-age=60")][..],
        &[("cache-control", "no-store")],
        &[("cache-control", "max-age=60, no-cache")],
        &[("cache-control", "max-age=0")],
        &[("cache-control", "max-age=60"), ("set-cookie", "b=1")],
        &[("cache-control", "max-age=60"), ("vary", "*")],
        &[],
    ] {
        let mut book = book();
        assert!(!head(&mut book, response), "{response:?}");
        assert_eq!(ask(&mut book, &[("accept", "*/*")]), differs("accept"), "{response:?}");
        assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE), "{response:?}");
    }
}

#[test]
fn what_came_for_cookies_without_a_word_on_caching_never_answers_another_cookie() {
    let mut book = book();
    assert!(!head(&mut book, &[("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT")]));
    assert_eq!(ask(&mut book, &[("cookie", "a=2")]), differs("cookie"));
    assert_eq!(ask(&mut book, &[("cookie", "")]), differs("cookie"));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    assert_eq!(ask(&mut book, &[]), SPENT);
}

#[test]
fn an_uncacheable_promise_answers_once() {
    let mut book = book();
    head(&mut book, &[("cache-control", "no-store")]);
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    assert_eq!(ask(&mut book, &[]), SPENT);
    assert!(!book.complete(ONE, seconds(3)));
    assert_eq!(ask(&mut book, &[]), NOT_PROMISED);
    assert!(book.is_empty());
}

#[test]
fn a_promise_of_unknown_head_answers_once() {
    let mut book = book();
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    assert_eq!(ask(&mut book, &[]), SPENT);
    assert!(head(&mut book, &SHARED));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE), "now it is known to be reusable");
}

#[test]
fn a_reusable_promise_answers_again_and_moves_to_the_repository_when_whole() {
    let mut book = book();
    assert!(head(&mut book, &SHARED));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    assert!(book.complete(ONE, seconds(5)));
    assert!(book.is_empty());
}

#[test]
fn a_reusable_promise_that_has_gone_stale_meanwhile_answers_once_and_exactly() {
    let mut book = book();
    assert!(head(&mut book, &SHARED)); // fresh until second 61
    assert_eq!(ask_at(&mut book, &[("accept", "*/*")], 61), differs("accept"));
    assert!(!book.complete(ONE, seconds(62)), "not for the repository");
    assert_eq!(ask_at(&mut book, &[], 63), Answer::Promise(ONE));
    assert_eq!(ask_at(&mut book, &[], 64), SPENT);
}

#[test]
fn an_uncacheable_promise_lapses_ten_seconds_after_its_last_byte() {
    let mut book = book();
    head(&mut book, &[("cache-control", "no-store")]);
    assert_eq!(book.next_wakeup(), None, "no clock runs while it arrives");
    assert!(book.lapse(seconds(1000)).is_empty());
    book.complete(ONE, seconds(1000));
    assert_eq!(book.next_wakeup(), Some(seconds(1010)));
    assert!(book.lapse(Duration::from_millis(1_009_999)).is_empty());
    assert_eq!(ask_at(&mut book, &[("accept", "*/*")], 1009), differs("accept"));
    assert_eq!(book.lapse(seconds(1010)), [ONE]);
    assert_eq!(ask_at(&mut book, &[], 1010), NOT_PROMISED);
}

#[test]
fn a_new_load_of_the_same_document_ends_the_old_loads_promises() {
    let mut book = book();
    assert_eq!(book.begin_load(&user("u"), LoadId(2), &Url::parse(PAGE).unwrap(), &navigation(None)), [ONE]);
    assert_eq!(ask(&mut book, &[]), NOT_PROMISED);
}

#[test]
fn what_may_be_reused_outlives_a_reload() {
    let mut book = book();
    assert!(head(&mut book, &SHARED));
    assert!(book.begin_load(&user("u"), LoadId(2), &Url::parse(PAGE).unwrap(), &navigation(None)).is_empty());
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn a_navigation_away_by_referer_ends_the_pages_promises() {
    let next = Url::parse("http://site.test/next").unwrap();
    assert_eq!(book().begin_load(&user("u"), LoadId(2), &next, &navigation(Some(PAGE))), [ONE]);
    let other = Url::parse("http://other.test/").unwrap();
    let mut leaving = book();
    assert!(head(&mut leaving, &SHARED));
    let origin_only = navigation(Some("http://site.test/"));
    assert_eq!(
        leaving.begin_load(&user("u"), LoadId(2), &other, &origin_only),
        [ONE],
        "and nothing of it is wanted elsewhere"
    );
}

#[test]
fn other_pages_other_users_and_subresources_end_nothing() {
    let url = |text: &str| Url::parse(text).unwrap();
    let mut book = book();
    assert!(
        book.begin_load(&user("u"), LoadId(2), &url("http://site.test/next"), &navigation(None)).is_empty()
    );
    assert!(
        book.begin_load(
            &user("u"),
            LoadId(3),
            &url("http://site.test/x"),
            &navigation(Some("http://site.test/next"))
        )
        .is_empty()
    );
    assert!(book.begin_load(&user("v"), LoadId(4), &url(PAGE), &navigation(Some(PAGE))).is_empty());
    assert!(
        book.begin_load(&user("u"), LoadId(5), &url(PAGE), &fields(&[("accept", "*/*"), ("referer", PAGE)]))
            .is_empty()
    );
    assert_eq!(book.len(), 1);
}

#[test]
fn a_promise_that_is_being_sent_to_a_client_outlives_its_page() {
    let mut book = book();
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    assert!(book.end_load(LOAD).is_empty());
    assert!(!book.complete(ONE, seconds(3)));
    assert!(book.is_empty());
}

#[test]
fn the_oldest_of_very_many_pages_counts_as_left() {
    let mut book = book();
    let ended: Vec<_> = (2..70)
        .flat_map(|n| {
            book.begin_load(
                &user("u"),
                LoadId(n),
                &Url::parse(&format!("http://site.test/{n}")).unwrap(),
                &navigation(None),
            )
        })
        .collect();
    assert_eq!(ended, [ONE]);
}

#[test]
fn a_lost_carrier_breaks_what_is_not_whole_and_says_who_was_waiting() {
    let mut book = book();
    let more = |book: &mut Promises, id: u64| {
        let url = Url::parse(&format!("http://site.test/{id}.png")).unwrap();
        assert!(book.promise(PromiseId(id), &user("u"), LOAD, url, fields(&BASIC)));
    };
    more(&mut book, 2);
    more(&mut book, 3);
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
    book.complete(PromiseId(2), seconds(2));
    assert_eq!(
        book.carrier_lost(),
        [Lost { id: ONE, answering: true }, Lost { id: PromiseId(3), answering: false }]
    );
    assert_eq!(ask(&mut book, &[]), NOT_PROMISED);
    let whole = Url::parse("http://site.test/2.png").unwrap();
    let answer = book.ask(&user("u"), &Method::GET, &whole, &request(&[]), seconds(3));
    assert_eq!(answer, Answer::Promise(PromiseId(2)), "what is whole is still there");
}

#[test]
fn a_withdrawn_promise_answers_nothing() {
    let mut book = book();
    book.withdraw(ONE);
    assert_eq!(ask(&mut book, &[]), NOT_PROMISED);
}

#[test]
fn a_full_book_refuses_and_other_users_are_not_affected() {
    let mut book = Promises::new(1, 100);
    let url = Url::parse(IMAGE).unwrap();
    assert!(book.promise(ONE, &user("u"), LOAD, url.clone(), HeaderMap::new()));
    assert!(!book.promise(PromiseId(2), &user("u"), LOAD, url.clone(), HeaderMap::new()));
    assert!(book.promise(PromiseId(2), &user("v"), LOAD, url, HeaderMap::new()));
}

#[test]
fn users_without_end_do_not_fill_the_book_without_end() {
    let mut book = Promises::new(10, 3);
    let url = Url::parse(IMAGE).unwrap();
    let taken: Vec<bool> = (0..5)
        .map(|n| book.promise(PromiseId(n), &user(&n.to_string()), LOAD, url.clone(), HeaderMap::new()))
        .collect();
    assert_eq!(taken, [true, true, true, false, false]);
    book.withdraw(PromiseId(0));
    assert!(book.promise(PromiseId(5), &user("5"), LOAD, url, HeaderMap::new()));
}

proptest! {
    /// Against a model that knows only the rule for what no cache may reuse: equal once, or not at all.
    #[test]
    fn histories_of_uncacheable_promises_never_answer_twice_or_unequal(
        steps in proptest::collection::vec((0u8..6, 0u64..4, 0usize..2, 0usize..2, 0u64..15), 1..60)
    ) {
        let users = ["u", "v"];
        let cookies = ["a=1", "a=2"];
        let mut book = Promises::new(50, 100);
        let (mut now, mut next) = (Duration::ZERO, 0u64);
        let mut open: Vec<(u64, usize, u64, usize)> = Vec::new(); // id, user, url, cookie
        for (what, url, who, cookie, wait) in steps {
            let address = Url::parse(&format!("http://site.test/{url}")).unwrap();
            let like = fields(&[("cookie", cookies[cookie])]);
            match what {
                0 | 1 => {
                    next += 1;
                    prop_assert!(book.promise(PromiseId(next), &user(users[who]), LoadId(url), address, like));
                    open.push((next, who, url, cookie));
                }
                2 | 3 => match book.ask(&user(users[who]), &Method::GET, &address, &like, now) {
                    Answer::Promise(PromiseId(id)) => {
                        let at = open.iter().position(|entry| *entry == (id, who, url, cookie));
                        prop_assert!(at.is_some(), "answered by {id}, which is spent, gone or different");
                        open.remove(at.unwrap());
                    }
                    Answer::Ask(_) => prop_assert!(!open.iter().any(|&(_, w, u, c)| (w, u, c) == (who, url, cookie))),
                },
                4 => {
                    now += seconds(wait);
                    for PromiseId(id) in book.lapse(now) {
                        open.retain(|entry| entry.0 != id);
                    }
                    if let Some(&(id, ..)) = open.first() {
                        book.complete(PromiseId(id), now);
                    }
                }
                _ => {
                    for lost in book.carrier_lost() {
                        open.retain(|entry| entry.0 != lost.id.0);
                    }
                }
            }
        }
    }
}

/// A promise for a request whose `Referer` is `referer`, and a page that the user opened after it.
fn with_a_later_page(referer: &str) -> Promises {
    let mut book = Promises::new(100, 100);
    assert!(book.begin_load(&user("u"), LOAD, &Url::parse(PAGE).unwrap(), &navigation(None)).is_empty());
    let like = request(&[("referer", referer)]);
    assert!(book.promise(ONE, &user("u"), LOAD, Url::parse(IMAGE).unwrap(), like));
    let later = Url::parse("http://site.test/later").unwrap();
    assert!(book.begin_load(&user("u"), LoadId(2), &later, &navigation(None)).is_empty());
    book
}

#[test]
fn an_uncacheable_promise_answers_only_for_the_page_load_it_was_made_for() {
    let origin = "http://site.test/";
    let mut book = with_a_later_page(origin);
    assert_eq!(
        ask(&mut book, &[("referer", origin)]),
        Answer::Ask(WhyAsk::OtherLoad),
        "it may be the later page's"
    );
    let mut book = with_a_later_page("");
    assert_eq!(ask(&mut book, &[]), Answer::Ask(WhyAsk::OtherLoad));
    let mut book = with_a_later_page(PAGE);
    assert_eq!(ask(&mut book, &[("referer", PAGE)]), Answer::Promise(ONE), "it names its page");
    let mut book = with_a_later_page(origin);
    assert!(head(&mut book, &SHARED));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE), "what is to be shared is for every page");
}

#[test]
fn a_later_page_of_another_user_does_not_matter() {
    let mut book = book();
    assert!(book.begin_load(&user("v"), LoadId(2), &Url::parse(PAGE).unwrap(), &navigation(None)).is_empty());
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn a_promised_frame_is_no_page_that_the_user_goes_to() {
    let mut book = book();
    let (frame, like) = (Url::parse("http://site.test/frame").unwrap(), navigation(Some(PAGE)));
    assert!(book.promise(PromiseId(2), &user("u"), LOAD, frame.clone(), like.clone()));
    assert!(book.begin_load(&user("u"), LoadId(2), &frame, &like).is_empty(), "the page goes on");
    assert_eq!(book.ask(&user("u"), &Method::GET, &frame, &like, seconds(2)), Answer::Promise(PromiseId(2)));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn what_is_promised_beside_an_answer_belongs_to_the_page_that_asked() {
    let mut book = book();
    let later = LoadId(5);
    assert!(
        book.begin_load(&user("u"), later, &Url::parse("http://other.test/a").unwrap(), &navigation(None))
            .is_empty()
    );
    let asks = |referer: &str| fields(&[("accept", "image/*"), ("referer", referer)]);
    let exchange = LoadId(9);
    assert_eq!(book.load_of(exchange, "u", &asks(PAGE)), LOAD);
    assert_eq!(book.load_of(exchange, "u", &asks("http://other.test/")), later, "only the origin is told");
    assert_eq!(book.load_of(exchange, "u", &asks("http://site.test/app.css")), LOAD, "a file of the page");
    assert_eq!(book.load_of(exchange, "u", &asks("http://else.test/")), exchange);
    assert_eq!(book.load_of(exchange, "v", &asks(PAGE)), exchange, "another user's page");
    assert_eq!(book.load_of(later, "u", &asks(PAGE)), later, "a document's own");
}
