//! Directives for chosen caches, in fields of their own (RFC 9213), where the operator has them obeyed.

use crate::support::*;
use farhop_freshness::*;
use http::header::{HeaderMap, HeaderName};
use http::{Method, StatusCode};
use std::time::Duration;

const OWN: HeaderName = HeaderName::from_static("own-cache-control");
const CDN: HeaderName = HeaderName::from_static("cdn-cache-control");

/// A response as it is taken in where these two fields are obeyed, the first before the second.
fn taken(response: &[(&str, &str)]) -> HeaderMap {
    let mut fields = fields(response);
    obey(&mut fields, &[OWN, CDN]);
    fields
}

fn kept(response: &[(&str, &str)]) -> Stored {
    Stored::new(&HeaderMap::new(), StatusCode::OK, &taken(response), at(0), at(0))
}

fn may(response: &[(&str, &str)], scope: Scope) -> Result<(), NotStorable> {
    storable(&Method::GET, &HeaderMap::new(), StatusCode::OK, &taken(response), scope)
}

fn seconds(response: &[(&str, &str)]) -> u64 {
    kept(response).lifetime(Scope::Shared).as_secs()
}

#[test]
fn the_first_field_that_is_obeyed_valid_and_not_empty_decides_and_cache_control_and_expires_are_ignored() {
    let (own, cdn) = ("own-cache-control", "cdn-cache-control");
    let (all, expires) = (("cache-control", "max-age=9, s-maxage=8"), ("expires", &*date(7)));
    assert_eq!(seconds(&[all, (cdn, "max-age=60"), ("expires", expires.1)]), 60);
    assert_eq!(seconds(&[all, (cdn, "max-age=60"), (own, "max-age=5")]), 5, "in the order of the list");
    assert_eq!(seconds(&[all, (cdn, "max-age=60"), (own, "")]), 60);
    assert_eq!(seconds(&[all, (cdn, ""), (own, "max-age")]), 8, "nothing of these is valid");
    assert_eq!(seconds(&[("expires", expires.1), (cdn, "none")]), 0, "it is there, and names no lifetime");
    assert_eq!(
        seconds(&[all, (cdn, "max-age=60, s-maxage=50")]),
        50,
        "of the same precedence as in Cache-Control"
    );
    for forbidding in ["no-store", "private"] {
        assert!(
            may(&[("cache-control", forbidding), (cdn, "max-age=60")], Scope::Shared).is_ok(),
            "{forbidding}"
        );
    }
    assert_eq!(may(&[all, (cdn, "no-store")], Scope::Private), Err(NotStorable::NoStore));
    assert_eq!(may(&[all, (cdn, "private, max-age=60")], Scope::Shared), Err(NotStorable::Private));
    assert_eq!(
        why(verdict(&kept(&[all, (cdn, "no-cache, max-age=60")]), &[], 0)),
        Some(Why::ResponseNoCache)
    );
    let stale =
        verdict(&kept(&[all, (cdn, "must-revalidate, max-age=1")]), &[("cache-control", "max-stale")], 2);
    assert_eq!((why(stale), fallback(stale)), (Some(Why::Stale), Some(Fallback::Never)));
}

#[test]
fn a_field_that_is_not_obeyed_changes_nothing_and_is_passed_on() {
    let said = [("cache-control", "max-age=1"), ("other-cache-control", "max-age=600")];
    let response = kept(&said);
    assert_eq!(response.lifetime(Scope::Shared), Duration::from_secs(1));
    let sent = sent(&response, &Reply::Whole, 0).1;
    assert_eq!(sent["other-cache-control"], "max-age=600");
}

#[test]
fn an_invalid_field_counts_as_if_it_were_not_there() {
    for invalid in [
        "",
        " ",
        "max-age =60",
        "max-age= 60",
        "MaX-aGe=60",
        "max-age=60, &&&&&",
        "max-age=60,",
        "max-age=\"60\"",
        "max-age=60.5",
        "max-age",
        "max-age=60, no-store=1",
        "no-store=?0",
        "private=5",
        "max-age=1234567890123456",
    ] {
        assert_eq!(
            seconds(&[("cache-control", "max-age=9"), ("cdn-cache-control", invalid)]),
            9,
            "{invalid}"
        );
    }
    for valid in [
        "max-age=60",
        "max-age=60;p=\"x\";q",
        "a=(1 2), max-age=1, max-age=60",
        "foo=\"no-store\",max-age=60",
    ] {
        assert_eq!(seconds(&[("cache-control", "max-age=9"), ("cdn-cache-control", valid)]), 60, "{valid}");
    }
    let in_lines =
        [("cdn-cache-control", "foobar"), ("cache-control", "no-store"), ("cdn-cache-control", "max-age=60")];
    assert_eq!(seconds(&in_lines), 60, "lines are one list");
    assert_eq!(seconds(&[("cdn-cache-control", "max-age=99999999999")]), 1 << 31);
    assert_eq!(seconds(&[("cache-control", "max-age=9"), ("cdn-cache-control", "max-age=-1")]), 0);
}

#[test]
fn names_of_fields_limit_a_directive_to_these_fields() {
    let said = [
        ("cdn-cache-control", "max-age=60, private=\"x-own\", no-cache=\"x-once\""),
        ("x-own", "1"),
        ("x-once", "1"),
    ];
    let response = kept(&said).kept_by(Scope::Shared);
    let sent = sent(&response, &Reply::Whole, 0).1;
    assert!(!sent.contains_key("x-own") && !sent.contains_key("x-once"));
}

#[test]
fn age_counts_and_a_304_changes_what_is_obeyed() {
    let mut response = kept(&[
        ("cache-control", "max-age=600"),
        ("age", "50"),
        ("cdn-cache-control", "max-age=60"),
        ("etag", "\"a\""),
    ]);
    assert_eq!(verdict(&response, &[], 9), Verdict::Fresh);
    assert_eq!(why(verdict(&response, &[], 10)), Some(Why::Stale));
    let without = taken(&[("etag", "\"a\""), ("cache-control", "max-age=1")]);
    response.freshen(&HeaderMap::new(), &without, at(20), at(20));
    assert_eq!(response.lifetime(Scope::Shared).as_secs(), 60, "what it was told before is as it was");
    let anew = taken(&[("etag", "\"a\""), ("cdn-cache-control", "max-age=5")]);
    response.freshen(&HeaderMap::new(), &anew, at(30), at(30));
    assert_eq!(
        (verdict(&response, &[], 34), why(verdict(&response, &[], 35))),
        (Verdict::Fresh, Some(Why::Stale))
    );
}

#[test]
fn what_is_obeyed_is_known_wherever_it_goes_but_to_clients_and_is_not_an_origins_to_say() {
    let response = kept(&[("own-cache-control", "max-age=60"), ("x", "1")]);
    let (_, told) = sent(&response, &Reply::NotModified, 0);
    let again = Stored::new(&HeaderMap::new(), StatusCode::OK, &told, at(0), at(0));
    assert_eq!(again.lifetime(Scope::Shared).as_secs(), 60, "with a 304, too");
    assert!(!told.contains_key("x"));
    let mut given = told.clone();
    conceal(&mut given);
    assert_eq!(
        Stored::new(&HeaderMap::new(), StatusCode::OK, &given, at(0), at(0))
            .lifetime(Scope::Shared)
            .as_secs(),
        0
    );
    let mut forged = told;
    obey(&mut forged, &[]);
    assert_eq!(forged, given);
}
