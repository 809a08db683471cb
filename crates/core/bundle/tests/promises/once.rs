//! How often and how long a promise answers.

use crate::book::{NOT_PROMISED, ONE, SHARED, SPENT, ask, ask_at, book, differs, head, head_after, seconds};
use farhop_bundle::Answer;
use std::time::Duration;

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
fn what_would_be_stale_before_the_page_asks_waits_for_it_like_what_is_not_to_be_kept() {
    let mut book = book();
    assert!(head(&mut book, &[("cache-control", "max-age=5")]));
    assert!(!book.complete(ONE, seconds(2)));
    assert_eq!(ask_at(&mut book, &[], 8), Answer::Promise(ONE));
    assert_eq!(ask_at(&mut book, &[], 9), SPENT);
}

#[test]
fn the_time_since_it_could_be_asked_for_counts_to_its_age() {
    let old = [("cache-control", "max-age=100"), ("age", "80")];
    let mut at_once = book();
    assert!(head_after(&mut at_once, 0, &old));
    assert!(at_once.complete(ONE, seconds(2)), "fresh for 20 seconds more: the repository's");
    let mut later = book();
    assert!(head_after(&mut later, 15, &old), "fresh for 5 seconds more");
    assert!(!later.complete(ONE, seconds(2)), "it is kept for its page");
    assert!(!head_after(&mut book(), 20, &old), "stale when it comes");
}
