//! Browsers that ask whether what they hold has changed.

use crate::book::{DATE, IMAGE, LOAD, ONE, SHARED, SPENT, ask, book, differs, head, request, seconds, user};
use crate::support::fields;
use farhop_bundle::{Answer, Promises, not_modified};
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
