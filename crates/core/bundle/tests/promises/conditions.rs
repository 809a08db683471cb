//! Browsers that ask whether what they hold has changed.

use crate::book::{
    DATE, IMAGE, LOAD, ONE, SHARED, SPENT, ask, book, differs, head, navigation, request, seconds, user,
};
use crate::support::fields;
use farhop_bundle::{Answer, LoadId, Promises, WhyAsk, not_modified};
use http::StatusCode;
use http::header::HeaderMap;
use std::time::SystemTime;
use url::Url;

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
fn a_reload_that_wants_nothing_old_is_answered_by_what_was_fetched_for_it() {
    let reload = ("cache-control", "max-age=0");
    assert_eq!(ask(&mut book(), &[reload]), Answer::Promise(ONE));
    assert_eq!(ask(&mut book(), &[reload, ("if-none-match", "\"x\"")]), Answer::Promise(ONE));
    let mut shared = book();
    assert!(head(&mut shared, &SHARED));
    assert_eq!(ask(&mut shared, &[reload]), Answer::Promise(ONE));
    for other in ["no-cache", "max-age=1", "max-age=0, no-transform", "only-if-cached"] {
        assert_eq!(ask(&mut book(), &[("cache-control", other)]), differs("cache-control"), "{other}");
    }
    assert_eq!(ask(&mut book(), &[reload, ("pragma", "no-cache")]), differs("pragma"));
}

#[test]
fn a_reload_is_not_answered_by_what_was_fetched_for_an_earlier_page() {
    let mut book = book();
    assert!(head(&mut book, &SHARED));
    let other = Url::parse("http://site.test/other").unwrap();
    assert!(book.begin_load(&user("u"), LoadId(2), &other, &navigation(None)).is_empty());
    assert_eq!(ask(&mut book, &[("cache-control", "max-age=0")]), Answer::Ask(WhyAsk::OtherLoad));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn what_was_fetched_past_all_caches_waits_to_be_asked_for_so_and_is_not_left_to_the_repository() {
    let mut book = Promises::new(100, 100);
    let like = request(&[("cache-control", "no-cache")]);
    assert!(book.promise(ONE, &user("u"), LOAD, Url::parse(IMAGE).unwrap(), like));
    assert!(!head(&mut book, &SHARED), "it answers once");
    assert!(!book.complete(ONE, seconds(1)), "the repository would not answer such a request");
    assert_eq!(ask(&mut book, &[("cache-control", "no-cache")]), Answer::Promise(ONE));
}
