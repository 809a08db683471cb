//! Which navigations leave a page, and when: a browser that shows another page asks for nothing more in the name of the
//! one before.

use crate::book::{IMAGE, LOAD, ONE, PAGE, SHARED, ask, book, head, navigation, request, seconds, user};
use farhop_bundle::{Answer, LoadId, PromiseId, Promises};
use http::Method;
use http::header::HeaderMap;
use url::Url;

/// The exchange of the next document.
const NEXT: u64 = 5;
const NEXT_PAGE: &str = "http://site.test/next";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// At second 2 the user asks for `to`, which names the page as `referer`.
fn goes(book: &mut Promises, to: &str, referer: &str) {
    let request = navigation(Some(referer));
    assert!(book.begin_load(&user("u"), LoadId(NEXT), &url(to), &request).is_empty());
    book.asks(NEXT, "u", &url(to), &request, seconds(2));
}

/// At second 3 the document is answered.
fn is_answered(book: &mut Promises, to: &str) {
    book.shown(LoadId(NEXT), &url(to), seconds(3));
    book.settled(NEXT, seconds(3));
}

/// The page's request for something else, which waits for its answer.
fn asks(book: &mut Promises, exchange: u64, now: u64) {
    book.asks(
        exchange,
        "u",
        &url("http://site.test/other.png"),
        &request(&[("referer", PAGE)]),
        seconds(now),
    );
}

#[test]
fn a_page_is_left_when_another_is_shown_and_nothing_is_asked_for_in_its_name() {
    let mut book = book();
    goes(&mut book, NEXT_PAGE, PAGE);
    assert!(book.leave(seconds(1000)).is_empty(), "the browser still shows it");
    is_answered(&mut book, NEXT_PAGE);
    assert!(book.leave(seconds(4)).is_empty());
    assert_eq!(book.leave(seconds(5)), [ONE]);
    assert!(!book.is_open(LOAD) && book.is_open(LoadId(NEXT)));
}

#[test]
fn where_only_the_origin_is_named_its_only_page_is_left_and_nothing_of_it_is_kept() {
    let (mut book, other) = (book(), "http://other.test/");
    assert!(head(&mut book, &SHARED));
    goes(&mut book, other, "http://site.test/");
    is_answered(&mut book, other);
    assert_eq!(book.leave(seconds(5)), [ONE], "nothing of it is wanted elsewhere");
}

#[test]
fn what_may_be_reused_outlives_its_page_for_others_of_its_site() {
    let mut book = book();
    assert!(head(&mut book, &SHARED));
    goes(&mut book, NEXT_PAGE, PAGE);
    is_answered(&mut book, NEXT_PAGE);
    assert!(book.leave(seconds(5)).is_empty());
    assert!(!book.is_open(LOAD));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn a_page_that_still_waits_for_something_when_another_is_shown_goes_on() {
    let mut book = book();
    asks(&mut book, 4, 1);
    goes(&mut book, NEXT_PAGE, PAGE);
    is_answered(&mut book, NEXT_PAGE);
    assert!(book.leave(seconds(1000)).is_empty(), "it was a frame, or another tab");
    book.settled(4, seconds(1000));
    asks(&mut book, 6, 1001);
    book.settled(6, seconds(1001));
    assert!(book.leave(seconds(1002)).is_empty());
    assert_eq!(book.leave(seconds(1003)), [ONE]);
}

#[test]
fn what_the_next_page_asks_for_does_not_keep_the_one_before() {
    let mut book = book();
    goes(&mut book, NEXT_PAGE, PAGE);
    is_answered(&mut book, NEXT_PAGE);
    let of_next = request(&[("referer", NEXT_PAGE)]);
    book.asks(6, "u", &url(IMAGE), &of_next, seconds(4));
    assert_eq!(book.leave(seconds(5)), [ONE]);
}

#[test]
fn a_navigation_that_shows_no_other_page_leaves_none() {
    let mut book = book();
    goes(&mut book, NEXT_PAGE, PAGE);
    book.settled(NEXT, seconds(3));
    assert!(book.leave(seconds(1000)).is_empty(), "it was a download, or the user has stopped it");
}

#[test]
fn a_redirect_shows_nothing_and_where_it_leads_does() {
    let (mut book, moved) = (book(), "http://site.test/moved");
    goes(&mut book, NEXT_PAGE, PAGE);
    book.moved(LoadId(NEXT), &url(NEXT_PAGE), &url(moved));
    book.shown(LoadId(NEXT), &url(NEXT_PAGE), seconds(3));
    assert!(book.leave(seconds(1000)).is_empty());
    is_answered(&mut book, moved);
    assert_eq!(book.leave(seconds(1000)), [ONE]);
}

/// A book whose page was promised the document of its frame as well.
fn with_a_frame() -> (Promises, Url, HeaderMap) {
    let (mut book, frame, like) = (book(), url("http://site.test/frame"), navigation(Some(PAGE)));
    assert!(book.promise(PromiseId(2), &user("u"), LOAD, frame.clone(), like.clone()));
    (book, frame, like)
}

#[test]
fn a_promised_frame_is_no_page_that_the_user_goes_to() {
    let (mut book, frame, like) = with_a_frame();
    assert!(book.begin_load(&user("u"), LoadId(2), &frame, &like).is_empty(), "the page goes on");
    assert!(!book.is_open(LoadId(2)));
    assert_eq!(book.ask(&user("u"), &Method::GET, &frame, &like, seconds(2)), Answer::Promise(PromiseId(2)));
    assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE));
}

#[test]
fn a_frame_is_one_though_its_promise_was_taken_back_or_differs() {
    for taken_back in [true, false] {
        let (mut book, frame, mut like) = with_a_frame();
        if taken_back {
            book.withdraw(PromiseId(2));
        } else {
            like.insert("cookie", "a=1".parse().unwrap());
        }
        assert!(book.begin_load(&user("u"), LoadId(2), &frame, &like).is_empty());
        assert!(!book.is_open(LoadId(2)));
        assert_eq!(ask(&mut book, &[]), Answer::Promise(ONE), "no page was opened since");
    }
}

#[test]
fn a_link_to_what_is_in_a_frame_leaves_the_page_like_any_other() {
    let (mut book, frame, like) = with_a_frame();
    assert!(book.begin_load(&user("u"), LoadId(2), &frame, &like).is_empty());
    assert_eq!(book.ask(&user("u"), &Method::GET, &frame, &like, seconds(2)), Answer::Promise(PromiseId(2)));
    goes(&mut book, "http://site.test/frame", PAGE);
    is_answered(&mut book, "http://site.test/frame");
    assert_eq!(book.leave(seconds(5)), [ONE]);
}
