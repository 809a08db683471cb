//! RFC 9111 §4.4: what unsafe methods make doubtful.

use crate::support::*;
use farhop_freshness::*;
use http::{Method, StatusCode};
use url::Url;

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
