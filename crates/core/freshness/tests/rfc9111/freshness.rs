//! RFC 9111 §4.2: lifetime and age.

use crate::support::*;
use farhop_freshness::*;
use http::StatusCode;
use http::header::HeaderMap;
use std::time::Duration;

#[test]
fn s_maxage_goes_before_max_age_before_expires() {
    let all = stored(&[
        ("cache-control", "max-age=100, s-maxage=10"),
        ("expires", &date(1000)),
        ("date", &date(0)),
    ]);
    assert_eq!(all.lifetime(Scope::Shared), Duration::from_secs(10));
    assert_eq!(all.lifetime(Scope::Private), Duration::from_secs(100));
    let expires = stored(&[("expires", &date(1000)), ("date", &date(-10))]);
    assert_eq!(expires.lifetime(Scope::Shared), Duration::from_secs(1010));
}

#[test]
fn an_invalid_expires_means_stale() {
    for value in ["0", "-1", "tomorrow", ""] {
        let response = stored(&[("expires", value), ("last-modified", &date(-100_000))]);
        assert_eq!(response.lifetime(Scope::Shared), Duration::ZERO, "{value:?}");
    }
    let two = stored(&[("expires", &date(10)), ("expires", &date(1000))]);
    assert_eq!(two.lifetime(Scope::Shared), Duration::ZERO);
}

#[test]
fn all_three_forms_of_dates_are_read() {
    for value in
        ["Mon, 16 Mar 2026 09:00:00 GMT", "Monday, 16-Mar-26 09:00:00 GMT", "Mon Mar 16 09:00:00 2026"]
    {
        let response = stored(&[("date", &date(0)), ("expires", value)]);
        assert_eq!(response.lifetime(Scope::Shared), Duration::from_secs(3600), "{value}");
    }
}

#[test]
fn a_guess_is_a_tenth_of_the_unchanged_time_and_at_most_a_day() {
    let recent = stored(&[("date", &date(0)), ("last-modified", &date(-1000))]);
    assert_eq!(recent.lifetime(Scope::Shared), Duration::from_secs(100));
    let old = stored(&[("date", &date(0)), ("last-modified", "Sat, 01 Jan 2000 00:00:00 GMT")]);
    assert_eq!(old.lifetime(Scope::Shared), Duration::from_secs(86_400));
    let future = stored(&[("date", &date(0)), ("last-modified", &date(1000))]);
    assert_eq!(future.lifetime(Scope::Shared), Duration::ZERO);
    let redirect = Stored::new(
        &HeaderMap::new(),
        StatusCode::FOUND,
        &fields(&[("last-modified", &date(-1000))]),
        at(0),
        at(0),
    );
    assert_eq!(redirect.lifetime(Scope::Shared), Duration::ZERO);
    assert_eq!(stored(&[]).lifetime(Scope::Shared), Duration::ZERO);
}

#[test]
fn age_counts_upstream_caches_transit_and_residence() {
    let response = Stored::new(
        &HeaderMap::new(),
        StatusCode::OK,
        &fields(&[("age", "100"), ("date", &date(-10))]),
        at(-5),
        at(0),
    );
    assert_eq!(response.age(at(30)), Duration::from_secs(135), "100 said, 5 under way, 30 here");
    let slow_clock =
        Stored::new(&HeaderMap::new(), StatusCode::OK, &fields(&[("date", &date(-500))]), at(-5), at(0));
    assert_eq!(slow_clock.age(at(0)), Duration::from_secs(500), "apparent age");
    let ahead = stored(&[("date", &date(500))]);
    assert_eq!(ahead.age(at(0)), Duration::ZERO);
    assert_eq!(ahead.age(at(-10)), Duration::ZERO, "a clock set back a little");
    assert_eq!(stored(&[("age", "x")]).age(at(1)), Duration::from_secs(1));
    assert_eq!(stored(&[("age", "7, 9")]).age(at(0)), Duration::from_secs(7));
}

#[test]
fn what_came_later_than_now_is_as_old_as_can_be_and_never_fresh() {
    let never = ("expires", "Fri, 31 Dec 9999 23:59:59 GMT");
    for said in [
        ("cache-control", "max-age=99999999999"),
        ("cache-control", "max-age=2147483648, stale-while-revalidate=2147483648"),
        ("cache-control", "max-age=600, immutable, stale-while-revalidate=99999999999"),
        never,
    ] {
        for date in [date(-5), date(0), date(400_000_000)] {
            let response = stored(&[said, ("date", &date)]);
            assert_eq!(verdict(&response, &[], 0), Verdict::Fresh, "{said:?}, {date}");
            assert_eq!(verdict(&response, &[], -10), Verdict::Fresh, "{said:?}, {date}: a slip");
            for back in [-11, -86_400, -300_000_000] {
                assert_eq!(why(verdict(&response, &[], back)), Some(Why::Stale), "{said:?}, {date}, {back}");
                assert_eq!(fallback(verdict(&response, &[], back)), Some(Fallback::Disconnected));
            }
            assert!(!response.is_fresh(Scope::Shared, at(3_000_000_000)), "{said:?}, {date}: a clock ahead");
        }
    }
}

#[test]
fn an_origins_clock_that_runs_ahead_makes_nothing_more_recent() {
    let ahead = stored(&[("date", &date(5000)), ("etag", "\"1\"")]);
    assert_eq!(ahead.recency(), at(0));
    let later = fields(&[("date", &date(20)), ("etag", "\"2\"")]);
    assert!(ahead.is_contradicted_by(StatusCode::OK, &later, at(20)));
    assert!(!ahead.is_contradicted_by(
        StatusCode::OK,
        &fields(&[("date", &date(-1)), ("etag", "\"2\"")]),
        at(20)
    ));
    let back = fields(&[("date", &date(-500)), ("etag", "\"2\"")]);
    assert!(ahead.is_contradicted_by(StatusCode::OK, &back, at(-500)), "it came later than now");
}

#[test]
fn numbers_beyond_two_to_the_31_are_taken_as_that() {
    let most = Duration::from_secs(1 << 31);
    for huge in ["2147483649", "18446744073709551616", "999999999999999999999999999999"] {
        let response = stored(&[("cache-control", &format!("max-age={huge}"))]);
        assert_eq!(response.lifetime(Scope::Shared), most, "{huge}");
        let old = stored(&[("age", huge), ("cache-control", &format!("max-age={huge}"))]);
        assert_eq!((old.age(at(0)), old.age(at(100))), (most, most), "{huge}");
        assert!(!old.is_fresh(Scope::Shared, at(0)), "{huge}");
    }
}

#[test]
fn no_guess_is_made_where_a_lifetime_is_said() {
    let unchanged = ("last-modified", &*date(-1_000_000));
    for said in [("cache-control", "max-age=0"), ("expires", "0"), ("expires", &*date(-10))] {
        assert_eq!(stored(&[unchanged, said]).lifetime(Scope::Shared), Duration::ZERO, "{said:?}");
    }
}

#[test]
fn a_lifetime_is_told_in_the_time_of_the_origins_clock_and_zone_alone() {
    for zone in ["UTC", "CET", "+0000", ""] {
        let response =
            stored(&[("date", &date(0)), ("expires", &format!("Mon, 16 Mar 2026 09:00:00 {zone}"))]);
        assert_eq!(response.lifetime(Scope::Shared), Duration::ZERO, "{zone}");
    }
    let ahead = stored(&[("date", &date(500)), ("expires", &date(560))]);
    assert_eq!(ahead.lifetime(Scope::Shared), Duration::from_secs(60));
}

#[test]
fn years_of_two_digits_are_read_as_they_were_when_the_response_came() {
    let response = stored(&[("date", &date(0)), ("expires", "Friday, 16-Mar-75 08:00:00 GMT")]);
    assert!(response.lifetime(Scope::Shared) > Duration::from_secs(48 * 365 * 86_400));
    let past = stored(&[("date", &date(0)), ("expires", "Monday, 16-Mar-94 08:00:00 GMT")]);
    assert_eq!(past.lifetime(Scope::Shared), Duration::ZERO);
}

#[test]
fn a_response_without_date_counts_from_when_it_came() {
    let response = stored(&[("expires", &date(60))]);
    assert_eq!(response.fields["date"], date(0));
    assert!(response.is_fresh(Scope::Shared, at(59)) && !response.is_fresh(Scope::Shared, at(60)));
}

#[test]
fn what_is_sent_from_the_store_tells_its_age_in_place_of_any_other() {
    let response = stored(&[("cache-control", "max-age=60"), ("age", "5")]);
    let (status, sent) = sent(&response, &Reply::Whole, 10);
    let ages: Vec<_> = sent.get_all("age").iter().collect();
    assert_eq!(status, 200);
    assert_eq!(ages, ["15"]);
}
