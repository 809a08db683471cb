//! RFC 9111 §3, §3.1, §3.5: what may be stored, and what of it.

use crate::support::*;
use farhop_freshness::*;
use http::header::{HeaderMap, HeaderName};
use http::{Method, StatusCode};

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
fn what_a_requests_own_conditions_came_to_answers_no_other_request() {
    for status in [412, 416, 417] {
        for scope in [Scope::Shared, Scope::Private] {
            let stored = may_store(&[], status, &[("cache-control", "max-age=9")], scope);
            assert_eq!(stored, Err(NotStorable::Status), "{status}");
        }
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
    let private = [("cache-control", "private, max-age=9")];
    assert_eq!(may_store(&[], 200, &private, Scope::Shared), Err(NotStorable::Private));
    assert_eq!(may_store(&[], 200, &private, Scope::Private), Ok(()));
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
fn fields_that_are_private_to_one_user_are_not_kept_in_the_shared_store() {
    let response = fields(&[
        ("cache-control", "max-age=9, private=\"X-Name, set-cookie\""),
        ("set-cookie", "a=b"),
        ("x-name", "anna"),
        ("x-site", "1"),
    ]);
    let may = |scope| storable(&Method::GET, &HeaderMap::new(), StatusCode::OK, &response, scope);
    assert_eq!((may(Scope::Shared), may(Scope::Private)), (Ok(()), Ok(())));
    let whole = Stored::new(&HeaderMap::new(), StatusCode::OK, &response, at(0), at(0));
    let shared = whole.clone().kept_by(Scope::Shared).fields;
    assert!(
        !shared.contains_key("x-name") && !shared.contains_key("set-cookie") && shared.contains_key("x-site")
    );
    assert_eq!(whole.kept_by(Scope::Private).fields["x-name"], "anna");
    let other = [("cache-control", "max-age=9, private=\"x-name\""), ("set-cookie", "a=b")];
    assert_eq!(may_store(&[], 200, &other, Scope::Shared), Err(NotStorable::SetCookie));
    let plain = [("cache-control", "max-age=9, private, private=\"x-name\"")];
    assert_eq!(may_store(&[], 200, &plain, Scope::Shared), Err(NotStorable::Private));
}

#[test]
fn directives_that_nobody_knows_change_nothing() {
    let said = [("cache-control", "max-age=9, x-no-store, future=\"no-store, private\"")];
    assert_eq!(may_store(&[], 200, &said, Scope::Shared), Ok(()));
    assert_eq!(verdict(&stored(&said), &[("cache-control", "future")], 1), Verdict::Fresh);
}

#[test]
fn what_is_said_to_caches_of_the_origins_own_changes_nothing_here() {
    let cdn = ("cdn-cache-control", "public, max-age=600");
    assert_eq!(
        may_store(&[], 200, &[("cache-control", "no-store"), cdn], Scope::Shared),
        Err(NotStorable::NoStore)
    );
    assert_eq!(
        may_store(&[], 200, &[("cache-control", "private"), cdn], Scope::Shared),
        Err(NotStorable::Private)
    );
    let response = stored(&[("cache-control", "max-age=1"), cdn]);
    assert_eq!(response.lifetime(Scope::Shared), std::time::Duration::from_secs(1));
    assert_eq!(sent(&response, &Reply::NotModified, 0).1["cdn-cache-control"], cdn.1, "it is passed on");
}

#[test]
fn what_is_coded_with_a_clients_dictionary_is_not_stored_even_if_it_varies_by_that() {
    for coding in ["dcb", "DCZ", "gzip, dcz"] {
        let coded = [("cache-control", "max-age=9"), ("content-encoding", coding)];
        for scope in [Scope::Shared, Scope::Private] {
            assert_eq!(may_store(&[], 200, &coded, scope), Err(NotStorable::Dictionary), "{coding}");
            let careless = [&coded[..], &[("vary", "accept-encoding")]].concat();
            assert_eq!(may_store(&[], 200, &careless, scope), Err(NotStorable::Dictionary), "{coding}");
            let right = [&coded[..], &[("vary", "accept-encoding, Available-Dictionary")]].concat();
            assert_eq!(may_store(&[], 200, &right, scope), Err(NotStorable::Dictionary), "{coding}");
        }
    }
}
