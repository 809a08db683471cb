//! Which pages a stored response may be given to.

use std::time::SystemTime;

use farhop_freshness::Stored;
use http::{HeaderMap, StatusCode};

use crate::support::fields;

fn held(asked: &[(&str, &str)], status: u16, said: &[(&str, &str)]) -> Stored {
    let status = StatusCode::from_u16(status).unwrap();
    let mut stored =
        Stored::new(&HeaderMap::new(), status, &fields(said), SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
    stored.nominated.extend(fields(asked));
    stored
}

const ONE: &[(&str, &str)] = &[("origin", "https://one.test")];
const OTHER: &[(&str, &str)] = &[("origin", "https://other.test")];
const ANY: (&str, &str) = ("access-control-allow-origin", "*");

#[test]
fn one_answer_for_all_origins_answers_pages_of_any_and_requests_without() {
    for came_for in [ONE, OTHER, &[]] {
        let held = held(came_for, 200, &[ANY, ("vary", "accept-encoding"), ("timing-allow-origin", "*")]);
        assert!(!held.is_bound_to_origin());
        for asked in [ONE, OTHER, &[]] {
            assert!(held.is_for_origin_of(&fields(asked)), "{came_for:?} {asked:?}");
        }
        assert!(
            held.is_for_origin_of(&fields(&[("cookie", "a=1")])),
            "asked for by no script of another origin"
        );
    }
}

#[test]
fn what_may_differ_by_origin_answers_the_one_that_it_came_for() {
    let said: [(u16, &[(&str, &str)]); 8] = [
        (200, &[]),
        (404, &[ANY]),
        (200, &[("access-control-allow-origin", "https://one.test")]),
        (200, &[ANY, ANY]),
        (200, &[ANY, ("access-control-allow-credentials", "true")]),
        (200, &[ANY, ("vary", "accept-encoding, Origin")]),
        (200, &[ANY, ("vary", "*")]),
        (200, &[ANY, ("timing-allow-origin", "https://one.test")]),
    ];
    for (status, said) in said {
        let held = held(ONE, status, said);
        assert!(held.is_bound_to_origin() && held.is_for_origin_of(&fields(ONE)), "{said:?}");
        assert!(!held.is_for_origin_of(&fields(OTHER)) && !held.is_for_origin_of(&fields(&[])), "{said:?}");
    }
}

#[test]
fn what_is_found_not_to_be_the_same_for_all_any_more_is_for_the_page_for_which_that_was_found() {
    let mut held = held(ONE, 200, &[ANY]);
    let now = SystemTime::UNIX_EPOCH;
    held.freshen(&fields(OTHER), &fields(&[("access-control-allow-origin", "https://other.test")]), now, now);
    assert!(held.is_for_origin_of(&fields(OTHER)) && !held.is_for_origin_of(&fields(ONE)));
}

#[test]
fn who_asks_with_cookies_across_origins_may_be_named_and_is_answered_by_the_origin() {
    let with = |origin: &[(&str, &str)]| fields(&[origin, &[("cookie", "a=1")]].concat());
    let held = held(ONE, 200, &[ANY]);
    assert!(held.is_for_origin_of(&with(ONE)) && !held.is_for_origin_of(&with(OTHER)));
}
