//! RFC 9111's rules, one behaviour a test.
#![allow(clippy::unwrap_used)] // helpers of tests

use farhop_freshness::*;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

const MONDAY: u64 = 1_773_648_000; // Mon, 16 Mar 2026 08:00:00 GMT

fn at(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(MONDAY.checked_add_signed(seconds).unwrap())
}

fn date(seconds: i64) -> String {
    httpdate::fmt_http_date(at(seconds))
}

fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
        })
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

fn may_store(
    request: &[(&str, &str)],
    status: u16,
    response: &[(&str, &str)],
    scope: Scope,
) -> Result<(), NotStorable> {
    storable(&Method::GET, &fields(request), StatusCode::from_u16(status).unwrap(), &fields(response), scope)
}

/// A 200 received at 0 with these fields.
fn stored(response: &[(&str, &str)]) -> Stored {
    Stored::new(&HeaderMap::new(), StatusCode::OK, &fields(response), at(0), at(0))
}

fn verdict(stored: &Stored, request: &[(&str, &str)], now: i64) -> Verdict {
    stored.verdict(&Method::GET, &fields(request), Scope::Shared, at(now))
}

fn why(verdict: Verdict) -> Option<Why> {
    match verdict {
        Verdict::Validate { why, .. } => Some(why),
        _ => None,
    }
}

#[test]
fn only_get_is_stored() {
    for method in [Method::POST, Method::HEAD, Method::PUT, Method::OPTIONS] {
        let result = storable(
            &method,
            &HeaderMap::new(),
            StatusCode::OK,
            &fields(&[("cache-control", "max-age=9")]),
            Scope::Shared,
        );
        assert_eq!(result, Err(NotStorable::Method), "{method}");
    }
}

#[test]
fn partial_interim_and_304_responses_are_not_stored() {
    for status in [100, 103, 206, 304] {
        assert_eq!(
            may_store(&[], status, &[("cache-control", "max-age=9")], Scope::Shared),
            Err(NotStorable::Status),
            "{status}"
        );
    }
}

#[test]
fn no_store_in_request_or_response_forbids_storing() {
    let fresh = ("cache-control", "max-age=9");
    assert_eq!(
        may_store(&[("cache-control", "no-store")], 200, &[fresh], Scope::Private),
        Err(NotStorable::NoStore)
    );
    assert_eq!(
        may_store(&[], 200, &[fresh, ("cache-control", "No-Store")], Scope::Private),
        Err(NotStorable::NoStore)
    );
}

#[test]
fn must_understand_overrides_no_store_for_known_statuses_only() {
    let response = [("cache-control", "must-understand, no-store, max-age=9")];
    assert_eq!(may_store(&[], 200, &response, Scope::Shared), Ok(()));
    assert_eq!(may_store(&[], 299, &response, Scope::Shared), Err(NotStorable::Status));
}

#[test]
fn private_is_kept_out_of_the_shared_store_alone() {
    for private in ["private, max-age=9", "private=\"x\", max-age=9"] {
        assert_eq!(
            may_store(&[], 200, &[("cache-control", private)], Scope::Shared),
            Err(NotStorable::Private)
        );
        assert_eq!(may_store(&[], 200, &[("cache-control", private)], Scope::Private), Ok(()));
    }
}

#[test]
fn credentials_need_leave_to_be_shared() {
    let request = [("authorization", "Basic eA==")];
    assert_eq!(
        may_store(&request, 200, &[("cache-control", "max-age=9")], Scope::Shared),
        Err(NotStorable::Authorization)
    );
    assert_eq!(may_store(&request, 200, &[("cache-control", "max-age=9")], Scope::Private), Ok(()));
    for leave in ["public", "s-maxage=9", "must-revalidate"] {
        assert_eq!(may_store(&request, 200, &[("cache-control", leave)], Scope::Shared), Ok(()), "{leave}");
    }
}

#[test]
fn a_response_that_sets_a_cookie_is_never_shared() {
    let response = [("cache-control", "public, max-age=9"), ("set-cookie", "a=b")];
    assert_eq!(may_store(&[], 200, &response, Scope::Shared), Err(NotStorable::SetCookie));
    assert_eq!(may_store(&[], 200, &response, Scope::Private), Ok(()));
}

#[test]
fn what_came_for_a_cookie_within_tls_is_shared_only_where_that_is_said() {
    let share = |secure, request: &[(&str, &str)], response: &[(&str, &str)]| {
        shareable(secure, &fields(request), StatusCode::OK, &fields(response))
    };
    let (anna, nobody): (&[_], &[_]) = (&[("cookie", "u=A")], &[]);
    for said in ["max-age=600", "max-age=600, must-revalidate", ""] {
        assert!(!share(true, anna, &[("cache-control", said)]), "{said}");
        assert!(share(true, nobody, &[("cache-control", said)]), "{said}");
        assert!(share(false, anna, &[("cache-control", said)]), "{said}");
    }
    assert!(!share(true, anna, &[("expires", &date(600))]));
    for said in ["public, max-age=600", "s-maxage=600", "public"] {
        assert!(share(true, anna, &[("cache-control", said)]), "{said}");
    }
    let old = date(-86_400);
    for secure in [true, false] {
        assert!(!share(secure, anna, &[("last-modified", &old)]), "a guess");
        assert!(share(secure, nobody, &[("last-modified", &old)]));
        assert!(!share(secure, nobody, &[("cache-control", "private, max-age=600")]));
    }
}

#[test]
fn what_is_fresh_by_a_guess_crosses_no_cookies() {
    let old = date(-86_400);
    let came_for = |request: &[(&str, &str)], response: &[(&str, &str)]| {
        Stored::new(&fields(request), StatusCode::OK, &fields(response), at(0), at(0))
    };
    let guessed = came_for(&[], &[("last-modified", &old)]);
    assert!(guessed.answers(&fields(&[])) && guessed.is_bound_to_cookies());
    assert!(!guessed.answers(&fields(&[("cookie", "u=B")])));
    let anna = came_for(&[("cookie", "u=A")], &[("last-modified", &old)]);
    assert!(anna.answers(&fields(&[("cookie", "u=A")])));
    assert!(!anna.answers(&fields(&[])) && !anna.answers(&fields(&[("cookie", "u=B")])));
    for said in ["max-age=600", "public"] {
        let said = came_for(&[], &[("last-modified", &old), ("cache-control", said)]);
        assert!(said.answers(&fields(&[("cookie", "u=B")])) && !said.is_bound_to_cookies());
    }
}

#[test]
fn vary_star_is_not_stored() {
    let response = [("cache-control", "max-age=9"), ("vary", "accept, *")];
    assert_eq!(may_store(&[], 200, &response, Scope::Shared), Err(NotStorable::VaryEverything));
}

#[test]
fn a_status_without_default_caching_needs_explicit_freshness() {
    assert_eq!(may_store(&[], 302, &[], Scope::Shared), Err(NotStorable::NoFreshness));
    assert_eq!(may_store(&[], 500, &[], Scope::Shared), Err(NotStorable::NoFreshness));
    assert_eq!(may_store(&[], 302, &[("cache-control", "max-age=9")], Scope::Shared), Ok(()));
    assert_eq!(may_store(&[], 500, &[("expires", &date(9))], Scope::Shared), Ok(()));
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        assert_eq!(may_store(&[], status, &[], Scope::Shared), Ok(()), "{status}");
    }
    assert_eq!(
        may_store(&[], 302, &[("cache-control", "s-maxage=9")], Scope::Private),
        Err(NotStorable::NoFreshness)
    );
}

#[test]
fn fields_of_the_connection_are_not_stored() {
    let kept = stored(&[
        ("connection", "x-hop, keep-alive"),
        ("x-hop", "1"),
        ("keep-alive", "1"),
        ("proxy-authenticate", "x"),
        ("x-end", "1"),
        ("transfer-encoding", "chunked"),
    ]);
    let names: Vec<_> = kept.fields.keys().map(HeaderName::as_str).filter(|&name| name != "date").collect();
    assert_eq!(names, ["x-end"]);
}

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
    assert_eq!(ahead.age(at(-50)), Duration::ZERO, "a clock set back");
    assert_eq!(stored(&[("age", "x")]).age(at(1)), Duration::from_secs(1));
    assert_eq!(stored(&[("age", "7, 9")]).age(at(0)), Duration::from_secs(7));
}

#[test]
fn a_fresh_response_answers_and_a_stale_one_is_validated() {
    let response = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(verdict(&response, &[], 59), Verdict::Fresh);
    assert_eq!(verdict(&response, &[], 60), Verdict::Validate { why: Why::Stale, stale_allowed: true });
    assert_eq!(response.answer_fields(at(59))[header::AGE], "59");
}

#[test]
fn no_cache_is_never_used_without_validation() {
    for value in ["no-cache, max-age=60", "no-cache=\"x\", max-age=60"] {
        let response = stored(&[("cache-control", value)]);
        assert_eq!(
            verdict(&response, &[], 1),
            Verdict::Validate { why: Why::ResponseNoCache, stale_allowed: false }
        );
        assert_eq!(why(verdict(&response, &[("cache-control", "max-stale")], 1)), Some(Why::ResponseNoCache));
    }
}

#[test]
fn must_revalidate_proxy_revalidate_and_s_maxage_forbid_stale_answers() {
    for strict in ["max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "s-maxage=1"] {
        let response = stored(&[("cache-control", strict)]);
        assert_eq!(verdict(&response, &[], 0), Verdict::Fresh, "{strict}");
        assert_eq!(
            verdict(&response, &[], 9),
            Verdict::Validate { why: Why::Stale, stale_allowed: false },
            "{strict}"
        );
        assert_eq!(
            why(verdict(&response, &[("cache-control", "max-stale")], 9)),
            Some(Why::Stale),
            "{strict}"
        );
    }
    let private = stored(&[("cache-control", "max-age=1, proxy-revalidate")]);
    let mine = private.verdict(&Method::GET, &HeaderMap::new(), Scope::Private, at(9));
    assert_eq!(mine, Verdict::Validate { why: Why::Stale, stale_allowed: true });
}

#[test]
fn request_directives_are_honoured() {
    let response = stored(&[("cache-control", "max-age=60")]);
    let asked = |value: &str, now| verdict(&response, &[("cache-control", value)], now);
    assert_eq!(why(asked("no-cache", 1)), Some(Why::RequestNoCache));
    assert_eq!(why(asked("max-age=0", 1)), Some(Why::RequestAge));
    assert_eq!(asked("max-age=10", 10), Verdict::Fresh);
    assert_eq!(why(asked("max-age=10", 11)), Some(Why::RequestAge));
    assert_eq!(why(asked("min-fresh=30", 40)), Some(Why::RequestAge));
    assert_eq!(asked("min-fresh=30", 20), Verdict::Fresh);
    assert_eq!(asked("max-stale", 1000), Verdict::Fresh);
    assert_eq!(asked("max-stale=10", 70), Verdict::Fresh);
    assert_eq!(why(asked("max-stale=10", 71)), Some(Why::Stale));
    assert_eq!(asked("only-if-cached", 59), Verdict::Fresh);
    assert_eq!(asked("only-if-cached", 61), Verdict::Unsatisfiable);
    assert_eq!(why(verdict(&response, &[("pragma", "no-cache")], 1)), Some(Why::RequestNoCache));
}

#[test]
fn authorization_in_the_new_request_needs_leave_too() {
    let request = [("authorization", "Basic eA==")];
    assert_eq!(
        why(verdict(&stored(&[("cache-control", "max-age=60")]), &request, 1)),
        Some(Why::Authorization)
    );
    assert_eq!(verdict(&stored(&[("cache-control", "public, max-age=60")]), &request, 1), Verdict::Fresh);
}

#[test]
fn head_is_answered_from_a_stored_get_and_ranges_and_posts_are_not() {
    let response = stored(&[("cache-control", "max-age=60")]);
    let ask = |method: Method, request: &[(&str, &str)]| {
        response.verdict(&method, &fields(request), Scope::Shared, at(1))
    };
    assert_eq!(ask(Method::HEAD, &[]), Verdict::Fresh);
    assert_eq!(why(ask(Method::POST, &[])), Some(Why::Method));
    assert_eq!(why(ask(Method::GET, &[("range", "bytes=0-1")])), Some(Why::Range));
}

#[test]
fn vary_compares_the_named_fields_alone() {
    let request = fields(&[("accept-language", "de, en"), ("user-agent", "a"), ("cookie", "x")]);
    let response =
        fields(&[("vary", "Accept-Language"), ("vary", "accept-encoding"), ("cache-control", "max-age=9")]);
    let kept = Stored::new(&request, StatusCode::OK, &response, at(0), at(0));
    assert!(kept.answers(&fields(&[("accept-language", "de, en"), ("user-agent", "b")])));
    assert!(
        kept.answers(&fields(&[("accept-language", "de"), ("accept-language", "en")])),
        "repeated fields are one list"
    );
    assert!(kept.answers(&fields(&[("accept-language", "de,en")])), "blanks do not matter");
    assert!(!kept.answers(&fields(&[("accept-language", "en")])));
    assert!(!kept.answers(&fields(&[])), "absent is not equal to present");
    assert!(!kept.answers(&fields(&[("accept-language", "de, en"), ("accept-encoding", "gzip")])));
    assert!(!kept.nominated.contains_key("cookie"), "nothing else of the request is kept");
    let star = Stored::new(&request, StatusCode::OK, &fields(&[("vary", "*")]), at(0), at(0));
    assert!(!star.answers(&request));
}

#[test]
fn validation_sends_the_tag_and_the_date_and_nothing_of_the_clients() {
    let response = stored(&[("etag", "W/\"1\""), ("last-modified", &date(-9))]);
    let mut request =
        fields(&[("if-none-match", "\"client\""), ("if-range", "\"client\""), ("accept", "*/*")]);
    assert!(response.make_conditional(&mut request));
    assert_eq!(
        request,
        fields(&[("accept", "*/*"), ("if-none-match", "W/\"1\""), ("if-modified-since", &date(-9))])
    );
    let mut plain = fields(&[("if-none-match", "\"client\"")]);
    assert!(!stored(&[("last-modified", "never")]).make_conditional(&mut plain));
    assert_eq!(plain, fields(&[("if-none-match", "\"client\"")]));
}

#[test]
fn a_304_freshens_the_response_that_it_names() {
    let response = stored(&[("etag", "\"1\""), ("last-modified", &date(-9))]);
    assert!(response.is_freshened_by(&fields(&[("etag", "\"1\"")])));
    assert!(!response.is_freshened_by(&fields(&[("etag", "\"2\"")])));
    assert!(response.is_freshened_by(&fields(&[("etag", "W/\"1\"")])), "a weak tag compares weakly");
    assert!(
        !stored(&[("etag", "W/\"1\"")]).is_freshened_by(&fields(&[("etag", "\"1\"")])),
        "a strong tag compares strongly"
    );
    assert!(!response.is_freshened_by(&fields(&[("last-modified", &date(-8))])));
    assert!(response.is_freshened_by(&fields(&[])));
}

#[test]
fn a_304_updates_fields_but_not_those_of_the_body() {
    let mut response = stored(&[
        ("cache-control", "max-age=1"),
        ("content-length", "10"),
        ("content-encoding", "gzip"),
        ("x-a", "1"),
        ("x-a", "2"),
        ("x-b", "old"),
        ("age", "500"),
        ("date", &date(-500)),
    ]);
    let update = fields(&[
        ("cache-control", "max-age=60"),
        ("content-length", "0"),
        ("content-encoding", "br"),
        ("x-a", "3"),
        ("connection", "close"),
    ]);
    response.freshen(&update, at(100), at(100));
    assert_eq!(verdict(&response, &[], 159), Verdict::Fresh);
    assert_eq!(response.fields["content-length"], "10");
    assert_eq!(response.fields["content-encoding"], "gzip");
    assert_eq!(response.fields.get_all("x-a").iter().collect::<Vec<_>>(), ["3"]);
    assert_eq!(response.fields["x-b"], "old");
    assert!(!response.fields.contains_key("connection"));
    assert_eq!(response.age(at(100)), Duration::ZERO);
}

#[test]
fn a_clients_condition_is_answered_from_the_store() {
    let response = stored(&[("etag", "\"a,b\""), ("last-modified", &date(-100))]);
    let asked = |request: &[(&str, &str)]| evaluate(&fields(request), &response);
    assert_eq!(asked(&[]), Precondition::Holds);
    assert_eq!(asked(&[("if-none-match", "\"x\", W/\"a,b\"")]), Precondition::NotModified);
    assert_eq!(asked(&[("if-none-match", "\"x\"")]), Precondition::Holds);
    assert_eq!(asked(&[("if-none-match", "*")]), Precondition::NotModified);
    assert_eq!(
        asked(&[("if-none-match", "\"x\""), ("if-modified-since", &date(0))]),
        Precondition::Holds,
        "the tag decides"
    );
    assert_eq!(asked(&[("if-modified-since", &date(-100))]), Precondition::NotModified);
    assert_eq!(asked(&[("if-modified-since", &date(-101))]), Precondition::Holds);
    assert_eq!(asked(&[("if-modified-since", "garbage")]), Precondition::Holds);
    assert_eq!(asked(&[("if-match", "\"x\"")]), Precondition::ForOrigin);
    assert_eq!(asked(&[("if-unmodified-since", &date(0))]), Precondition::ForOrigin);
    let error =
        Stored::new(&HeaderMap::new(), StatusCode::NOT_FOUND, &fields(&[("etag", "\"a\"")]), at(0), at(0));
    assert_eq!(evaluate(&fields(&[("if-none-match", "\"a\"")]), &error), Precondition::Holds);
}

#[test]
fn an_unsafe_method_invalidates_its_target_and_what_it_names_on_the_same_origin() {
    let target = Url::parse("http://site.test/form").unwrap();
    let response = fields(&[("location", "/list?page=1"), ("content-location", "http://other.test/x")]);
    let urls = |method: &Method, status| {
        invalidated(method, &target, StatusCode::from_u16(status).unwrap(), &response)
            .iter()
            .map(Url::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(urls(&Method::POST, 303), ["http://site.test/form", "http://site.test/list?page=1"]);
    assert_eq!(urls(&Method::from_bytes(b"PURGE").unwrap(), 200).len(), 2, "safety unknown");
    for safe in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        assert!(urls(&safe, 200).is_empty());
    }
    assert!(urls(&Method::POST, 500).is_empty());
    assert!(urls(&Method::POST, 404).is_empty());
}

proptest::proptest! {
    #[test]
    fn whatever_a_peer_sends_gives_a_verdict(values in proptest::collection::vec("[ -~]{0,40}", 8)) {
        let names = ["cache-control", "expires", "age", "date", "last-modified", "vary", "etag", "pragma"];
        let lines: Vec<_> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
        let response = stored(&lines);
        let request = [("cache-control", values[0].as_str()), ("if-none-match", &values[6]), ("if-modified-since", &values[4])];
        let _ = may_store(&request, 200, &lines, Scope::Shared);
        let _ = (verdict(&response, &request, 10), response.answers(&fields(&request)), evaluate(&fields(&request), &response));
        proptest::prop_assert!(response.age(at(10)) >= response.age(at(5)));
    }
}
