//! What has to be equal, before the answer is known and after.

use crate::book::{
    DATE, IMAGE, NOT_PROMISED, ONE, SHARED, SPENT, ask, book, differs, head, request, seconds, user,
};
use farhop_bundle::{Answer, WhyAsk};
use http::Method;
use http::header::HeaderValue;
use url::Url;

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
