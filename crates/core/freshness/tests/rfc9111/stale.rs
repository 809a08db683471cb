//! RFC 9111 §4.2.4, RFC 5861: when a stale response may be sent.

use crate::support::*;
use farhop_freshness::*;
use http::header::HeaderMap;
use http::{Method, StatusCode};

#[test]
fn must_revalidate_proxy_revalidate_and_s_maxage_forbid_stale_answers() {
    for strict in ["max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "s-maxage=1"] {
        let response = stored(&[("cache-control", strict)]);
        assert_eq!(verdict(&response, &[], 0), Verdict::Fresh, "{strict}");
        assert_eq!(
            verdict(&response, &[], 9),
            Verdict::Validate { why: Why::Stale, fallback: Fallback::Never },
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
    assert_eq!(mine, Verdict::Validate { why: Why::Stale, fallback: Fallback::Disconnected });
}

#[test]
fn a_stale_response_may_be_sent_when_nobody_can_be_asked_unless_that_is_forbidden() {
    let after = |said: &str, request: &[(&str, &str)]| {
        fallback(verdict(&stored(&[("cache-control", said)]), request, 99))
    };
    assert_eq!(after("max-age=1", &[]), Some(Fallback::Disconnected));
    for forbidden in ["max-age=1, must-revalidate", "max-age=1, proxy-revalidate", "s-maxage=1", "no-cache"] {
        assert_eq!(after(forbidden, &[]), Some(Fallback::Never), "{forbidden}");
        let allowed = format!("{forbidden}, stale-if-error=1000, stale-while-revalidate=1000");
        assert_eq!(after(&allowed, &[]), Some(Fallback::Never), "{allowed}");
        assert_eq!(
            after(&allowed, &[("cache-control", "stale-if-error=1000")]),
            Some(Fallback::Never),
            "{allowed}"
        );
    }
    assert_eq!(
        after("max-age=1", &[("cache-control", "no-cache")]),
        Some(Fallback::Never),
        "a forced reload"
    );
    assert_eq!(after("max-age=1", &[("cache-control", "max-age=0")]), Some(Fallback::Disconnected));
}

#[test]
fn stale_if_error_allows_it_for_so_long_when_the_origin_fails() {
    let response = stored(&[("cache-control", "max-age=10, stale-if-error=20")]);
    assert_eq!(fallback(verdict(&response, &[], 30)), Some(Fallback::Error));
    assert_eq!(fallback(verdict(&response, &[], 31)), Some(Fallback::Disconnected));
    let said_by_client = [("cache-control", "stale-if-error=100")];
    assert_eq!(fallback(verdict(&response, &said_by_client, 110)), Some(Fallback::Error));
    assert_eq!(fallback(verdict(&response, &said_by_client, 111)), Some(Fallback::Disconnected));
    for (status, is) in
        [(500, true), (501, false), (502, true), (503, true), (504, true), (404, false), (200, false)]
    {
        assert_eq!(is_error(StatusCode::from_u16(status).unwrap()), is, "{status}");
    }
}

#[test]
fn stale_while_revalidate_allows_it_for_so_long_while_the_origin_is_asked() {
    let response = stored(&[("cache-control", "max-age=10, stale-while-revalidate=20")]);
    assert_eq!(verdict(&response, &[], 9), Verdict::Fresh);
    assert_eq!(verdict(&response, &[], 10), Verdict::Revalidate);
    assert_eq!(verdict(&response, &[], 30), Verdict::Revalidate);
    assert_eq!(why(verdict(&response, &[], 31)), Some(Why::Stale));
    assert_eq!(verdict(&response, &[("cache-control", "only-if-cached")], 20), Verdict::Revalidate);
    for reload in ["no-cache", "max-age=0", "min-fresh=1"] {
        assert!(why(verdict(&response, &[("cache-control", reload)], 20)).is_some(), "{reload}");
    }
}

#[test]
fn what_is_too_long_or_no_number_allows_nothing() {
    for said in ["stale-while-revalidate", "stale-while-revalidate=x", "stale-while-revalidate=-1"] {
        let response = stored(&[("cache-control", &format!("max-age=10, {said}"))]);
        assert_eq!(why(verdict(&response, &[], 11)), Some(Why::Stale), "{said}");
    }
}

#[test]
fn a_private_cache_does_not_mind_what_is_said_to_shared_ones() {
    let response =
        stored(&[("cache-control", "max-age=10, s-maxage=1, proxy-revalidate, stale-while-revalidate=20")]);
    let asked = |scope| response.verdict(&Method::GET, &HeaderMap::new(), scope, at(15));
    assert_eq!(asked(Scope::Private), Verdict::Revalidate);
    assert_eq!(fallback(asked(Scope::Shared)), Some(Fallback::Never));
}
