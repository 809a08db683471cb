//! RFC 9111 §3.3, §3.4, RFC 9110 §14: parts of what is stored.

use crate::support::*;
use farhop_freshness::*;
use http::header::HeaderMap;
use http::{Method, StatusCode};

const TAG: (&str, &str) = ("etag", "\"1\"");

fn reply(stored: &Stored, request: &[(&str, &str)]) -> Reply {
    stored.reply(&Method::GET, &fields(request), Some(10))
}

#[test]
fn a_part_is_sent_as_206_and_says_which() {
    let response = stored(&[TAG, ("content-type", "text/plain"), ("cache-control", "max-age=60")]);
    let part = reply(&response, &[("range", "bytes=2-4")]);
    assert_eq!(part, Reply::Part(2..5, 10));
    let (status, sent) = sent(&response, &part, 7);
    assert_eq!(
        (status, &sent["content-range"], &sent["content-length"]),
        (206, &"bytes 2-4/10".parse().unwrap(), &"3".parse().unwrap())
    );
    // RFC 9110 §15.3.7.
    for name in ["date", "cache-control", "etag", "content-type"] {
        assert_eq!(sent[name], response.fields[name], "{name}");
    }
    assert_eq!(sent["age"], "7");
}

#[test]
fn what_cannot_be_satisfied_is_told_the_length() {
    let response = stored(&[TAG, ("content-type", "text/plain")]);
    let refused = reply(&response, &[("range", "bytes=10-")]);
    assert_eq!(refused, Reply::Unsatisfiable(10));
    let (status, sent) = sent(&response, &refused, 0);
    assert_eq!((status, &sent["content-range"]), (416, &"bytes */10".parse().unwrap()));
    assert!(!sent.contains_key("content-type") && !sent.contains_key("etag"));
    assert_eq!(response.reply(&Method::GET, &fields(&[("range", "bytes=0-")]), Some(0)), Reply::Whole);
}

#[test]
fn a_range_is_ignored_with_other_methods_and_statuses_and_while_the_length_is_unknown() {
    let range = fields(&[("range", "bytes=2-4")]);
    let response = stored(&[TAG]);
    assert_eq!(response.reply(&Method::HEAD, &range, Some(10)), Reply::Whole);
    assert_eq!(response.reply(&Method::GET, &range, None), Reply::Whole);
    assert_eq!(stored_as(404, &[TAG]).reply(&Method::GET, &range, Some(10)), Reply::Whole);
}

#[test]
fn a_range_holds_only_for_the_representation_that_if_range_names() {
    let strong = stored(&[TAG, ("last-modified", &date(-100))]);
    let weak = stored(&[("etag", "W/\"1\""), ("last-modified", &date(-5))]);
    let part = Reply::Part(2..5, 10);
    for (stored, condition, expected) in [
        (&strong, "\"1\"", part.clone()),
        (&strong, "\"2\"", Reply::Whole),
        (&strong, "W/\"1\"", Reply::Whole),
        (&weak, "W/\"1\"", Reply::Whole),
        (&weak, "\"1\"", Reply::Whole),
        (&strong, &*date(-100), part),
        (&strong, &*date(0), Reply::Whole),
        (&weak, &*date(-5), Reply::Whole),
        (&strong, "garbage", Reply::Whole),
    ] {
        assert_eq!(
            reply(stored, &[("range", "bytes=2-4"), ("if-range", condition)]),
            expected,
            "{condition}"
        );
    }
}

#[test]
fn conditions_come_before_ranges() {
    let response = stored(&[TAG]);
    let asked = |condition| reply(&response, &[("range", "bytes=99-"), condition]);
    assert_eq!(asked(("if-none-match", "\"1\"")), Reply::NotModified);
    assert_eq!(asked(("if-none-match", "\"2\"")), Reply::Unsatisfiable(10));
    assert_eq!(asked(("if-match", "\"1\"")), Reply::ForOrigin);
}

#[test]
fn a_partial_answer_is_not_stored_as_if_it_were_whole() {
    let part = [("cache-control", "max-age=9"), ("content-range", "bytes 0-1/10")];
    assert_eq!(may_store(&[], 206, &part, Scope::Private), Err(NotStorable::Status));
    let understood = [("cache-control", "max-age=9, must-understand, no-store")];
    assert_eq!(may_store(&[], 206, &understood, Scope::Private), Err(NotStorable::Status));
}

#[test]
fn a_304_is_sent_without_what_describes_a_body() {
    let response = Stored::new(
        &HeaderMap::new(),
        StatusCode::OK,
        &fields(&[
            TAG,
            ("vary", "accept"),
            ("vary", "origin"),
            ("content-type", "text/css"),
            ("content-length", "10"),
            ("expires", &date(9)),
            ("set-cookie", "a=b"),
        ]),
        at(0),
        at(0),
    );
    let (status, sent) = sent(&response, &Reply::NotModified, 3);
    let mut names: Vec<&str> = sent.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!((status, names), (304, vec!["age", "date", "etag", "expires", "vary"]));
    assert_eq!(sent.get_all("vary").iter().count(), 2);
}

#[test]
fn a_part_is_known_by_what_it_says_of_itself() {
    let part = |status, value: &str| {
        Part::of(StatusCode::from_u16(status).unwrap(), &fields(&[("content-range", value)]))
    };
    assert_eq!(part(206, "bytes 2-4/10"), Some(Part { range: 2..5, complete: 10 }));
    for invalid in [
        "bytes */10",
        "bytes 2-4/*",
        "bytes 4-2/10",
        "bytes 2-10/10",
        "items 2-4/10",
        "2-4/10",
        "bytes 2-4",
        "bytes -4/10",
    ] {
        assert_eq!(part(206, invalid), None, "{invalid}");
    }
    assert_eq!(part(200, "bytes 2-4/10"), None, "only a 206 has a part");
    let several = fields(&[("content-type", "multipart/byteranges; boundary=x")]);
    assert_eq!(Part::of(StatusCode::PARTIAL_CONTENT, &several), None);
}

#[test]
fn the_whole_of_a_part_tells_the_complete_length_and_no_range() {
    let response = fields(&[TAG, ("content-range", "bytes 2-4/10"), ("content-length", "3")]);
    let part = Part::of(StatusCode::PARTIAL_CONTENT, &response).unwrap();
    assert_eq!((part.length(), part.of_whole(&response)), (3, fields(&[TAG, ("content-length", "10")])));
}

#[test]
fn parts_are_put_together_only_under_one_strong_validator() {
    let (old, young) = (date(-100), date(-10));
    let (dated, hardly) = (("last-modified", &*old), ("last-modified", &*young));
    for (own, other, go) in [
        (vec![TAG], vec![TAG], true),
        (vec![TAG], vec![("etag", "\"2\"")], false),
        (vec![("etag", "W/\"1\"")], vec![("etag", "W/\"1\"")], false),
        (vec![TAG, dated], vec![dated], false),
        (vec![dated], vec![dated], true),
        (vec![hardly], vec![hardly], false),
        (vec![], vec![], false),
        (vec![TAG, ("content-length", "10")], vec![TAG, ("content-length", "11")], false),
        (vec![dated, ("content-encoding", "gzip")], vec![dated], false),
    ] {
        let (own, other) = (stored(&own), stored(&other));
        assert_eq!(own.goes_with(&other), go, "{own:?} {other:?}");
        assert!(!go || own.has_strong_validator());
    }
    assert!(!stored(&[("etag", "W/\"1\""), dated]).has_strong_validator());
}

#[test]
fn a_part_that_tells_next_to_nothing_is_of_what_was_there() {
    let before = stored(&[
        TAG,
        ("content-type", "video/mp4"),
        ("cache-control", "max-age=1"),
        ("age", "9"),
        ("x-a", "1"),
        ("x-a", "2"),
    ]);
    let part = stored(&[TAG, ("cache-control", "max-age=60"), ("date", &date(-3))]).joined_to(&before);
    let expected =
        [TAG, ("content-type", "video/mp4"), ("cache-control", "max-age=60"), ("x-a", "1"), ("x-a", "2")];
    let mut told = part.fields.clone();
    assert_eq!(told.remove("date").unwrap(), date(-3));
    assert_eq!(told, fields(&expected));
}

#[test]
fn the_rest_of_a_part_is_asked_for_by_its_strong_validator() {
    let asked = |own: &[(&str, &str)], range: std::ops::Range<u64>, or_all| {
        let mut request = fields(&[("if-range", "\"clients\"")]);
        let can = stored(own).ask_for_part(&mut request, &range, or_all);
        can.then_some(request)
    };
    let (range, old) = (("range", "bytes=5-9"), date(-100));
    assert_eq!(asked(&[TAG], 5..10, true), Some(fields(&[("if-range", "\"1\""), range])));
    assert_eq!(asked(&[("last-modified", &old)], 5..10, true), Some(fields(&[("if-range", &old), range])));
    assert_eq!(asked(&[TAG], 5..10, false), Some(fields(&[range])), "the client has said it wants a part");
    assert_eq!(asked(&[("etag", "W/\"1\"")], 5..10, true), None);
    assert_eq!(asked(&[("last-modified", &date(-1))], 5..10, true), None);
    assert_eq!(asked(&[TAG], 5..5, true), None);
}
