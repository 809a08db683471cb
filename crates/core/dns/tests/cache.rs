//! The cache in virtual time: what answers and for how long, what goes first, what is asked for anew.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use farhop_dns::Cache;
use support::held;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn an_answer_answers_until_it_has_run_out() {
    let mut cache = Cache::new(1 << 20);
    let (wanted, answer) = held("a.test.", 60);
    assert!(cache.find(s(0), &wanted).is_none());
    cache.put(s(10), &wanted, &answer);
    assert_eq!(cache.find(s(10), &wanted).unwrap().1, 0);
    assert_eq!(cache.find(s(69), &wanted).unwrap().1, 59);
    assert!(cache.find(s(70), &wanted).is_none());
    assert!(cache.is_empty() && cache.size() == 0);
}

#[test]
fn what_may_not_be_kept_takes_the_place_of_what_was() {
    let mut cache = Cache::new(1 << 20);
    let (wanted, answer) = held("a.test.", 60);
    cache.put(s(0), &wanted, &answer);
    cache.put(s(1), &wanted, &held("a.test.", 0).1);
    assert!(cache.find(s(1), &wanted).is_none());
    assert_eq!(cache.size(), 0);
}

#[test]
fn memory_is_bounded_and_what_is_unused_goes_first() {
    let mut cache = Cache::new(64 << 10);
    let (used, answer) = held("used.test.", 86400);
    cache.put(s(0), &used, &answer);
    for number in 0..2000 {
        let (wanted, answer) = held(&format!("n{number}.test."), 86400);
        cache.put(s(1), &wanted, &answer);
        assert!(cache.find(s(1), &used).is_some(), "at {number}");
        assert!(cache.size() <= 64 << 10);
    }
    assert!(cache.len() > 50, "{}", cache.len());
    assert!(cache.find(s(1), &held("n0.test.", 1).0).is_none());
    assert!(cache.find(s(1), &held("n1999.test.", 1).0).is_some());
}

#[test]
fn only_what_is_popular_is_asked_for_anew_and_once() {
    let mut cache = Cache::new(1 << 20);
    let ((popular, answer), (rare, other)) = (held("popular.test.", 100), held("rare.test.", 100));
    cache.put(s(0), &popular, &answer);
    cache.put(s(0), &rare, &other);
    cache.find(s(1), &rare);
    assert_eq!(cache.next_due(), None);
    cache.find(s(1), &popular);
    cache.find(s(2), &popular);
    cache.find(s(3), &popular);
    assert_eq!(cache.next_due(), Some(s(90)), "in the last tenth");
    assert_eq!(cache.poll_due(s(89)), None);
    assert_eq!(cache.poll_due(s(90)), Some(popular.clone()));
    assert_eq!(cache.poll_due(s(90)), None);
    // The new one has to prove itself again.
    cache.put(s(91), &popular, &answer);
    assert_eq!((cache.poll_due(s(185)), cache.next_due()), (None, None));
    assert!(cache.find(s(190), &popular).is_some());
    assert!(cache.find(s(191), &popular).is_none());
}

#[test]
fn what_lives_shortly_is_asked_for_a_crossing_ahead() {
    let mut cache = Cache::new(1 << 20);
    let (wanted, answer) = held("short.test.", 5);
    cache.put(s(0), &wanted, &answer);
    cache.find(s(0), &wanted);
    cache.find(s(1), &wanted);
    assert_eq!(cache.next_due(), Some(s(3)));
    // What was dropped is not asked for.
    cache.put(s(2), &wanted, &held("short.test.", 0).1);
    assert_eq!(cache.next_due(), None);
}
