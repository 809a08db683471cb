//! RFC 9211: what a cache says it did.

use crate::support::*;
use farhop_freshness::*;
use http::header::HeaderMap;

fn told(handling: Handling) -> String {
    let mut fields = HeaderMap::new();
    handling.tell("farhop-remote", &mut fields);
    fields["cache-status"].to_str().unwrap().to_owned()
}

#[test]
fn a_hit_tells_how_long_it_stays_fresh() {
    let response = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(told(Handling::hit(&response, Scope::Shared, at(20))), "farhop-remote; hit; ttl=40");
    assert_eq!(told(Handling::hit(&response, Scope::Shared, at(70))), "farhop-remote; hit; ttl=-10");
}

#[test]
fn what_went_on_tells_why_and_what_became_of_it() {
    let went = |why, status, stored, collapsed| told(Handling::Forwarded { why, status, stored, collapsed });
    assert_eq!(went(Forward::UriMiss, None, true, false), "farhop-remote; fwd=uri-miss; stored");
    assert_eq!(went(Forward::Stale, Some(304), false, false), "farhop-remote; fwd=stale; fwd-status=304");
    assert_eq!(went(Forward::UriMiss, None, false, true), "farhop-remote; fwd=uri-miss; collapsed");
}

#[test]
fn each_cache_comes_after_those_nearer_to_the_origin() {
    let mut fields = fields(&[("cache-status", "origin-side; hit")]);
    Handling::Hit { ttl: 1 }.tell("farhop-remote", &mut fields);
    let all: Vec<_> = fields.get_all("cache-status").iter().collect();
    assert_eq!(all, ["origin-side; hit", "farhop-remote; hit; ttl=1"]);
}
