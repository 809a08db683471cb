//! Plans of what one page names more than once.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Budget, Skip};
use farhop_page::{Destination, Hint, Initiator, Mode, Source};
use http::StatusCode;
use support::planned::plan;
use support::{CHROMIUM, FIREFOX, at, by, fields, hint, image, url};

const UNCACHEABLE: [(&str, &str); 1] = [("cache-control", "no-store")];

/// The same file as an image and as something that scripts fetch.
fn twice() -> (Hint, Hint) {
    let image = image("http://site.test/a");
    (image.clone(), hint(image.url, Destination::Fetch, Mode::Cors, Source::Preload))
}

#[test]
fn an_uncacheable_response_is_not_fetched_unasked_twice_for_one_page() {
    let (image, fetch) = twice();
    for response in [
        &UNCACHEABLE[..],
        &[("cache-control", "no-cache"), ("etag", "\"1\"")],
        &[("cache-control", "max-age=0")],
        &[("vary", "*"), ("cache-control", "max-age=60")],
    ] {
        let mut plan = plan(CHROMIUM, &[], &[], Budget::default());
        let request = plan.only(&image).unwrap();
        assert_eq!(plan.only(&fetch), Err(Skip::UncacheableTwice), "it may turn out to be so");
        plan.plan.answered(&request, StatusCode::OK, &fields(response), at(1));
        assert_eq!(plan.only(&fetch), Err(Skip::UncacheableTwice), "{response:?}");
        assert_eq!(plan.only(&image), Err(Skip::Duplicate));
    }
}

#[test]
fn what_the_browser_reuses_is_promised_once_and_what_it_must_keep_twice_is_fetched_twice() {
    let (image, fetch) = twice();
    let mut one = plan(FIREFOX, &[], &[], Budget::default());
    let request = one.only(&image).unwrap();
    one.plan.answered(&request, StatusCode::OK, &fields(&[("cache-control", "max-age=60")]), at(1));
    assert_eq!(one.only(&fetch), Err(Skip::Duplicate));
    let mut two = plan(FIREFOX, &[], &[], Budget::default());
    let request = two.only(&image).unwrap();
    let varied = [("cache-control", "max-age=60"), ("vary", "accept")];
    two.plan.answered(&request, StatusCode::OK, &fields(&varied), at(1));
    assert!(two.only(&fetch).is_ok());
}

#[test]
fn the_same_image_in_the_page_and_in_its_sheet_is_one_request() {
    let mut plan = plan(CHROMIUM, &[], &[], Budget::default());
    let image = image("http://site.test/a.png");
    assert!(plan.only(&image).is_ok());
    let sheet = by(image, Initiator::Sheet(url("http://site.test/a.css")));
    assert_eq!(plan.only(&sheet), Err(Skip::Duplicate));
}
