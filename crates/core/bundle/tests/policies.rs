//! What a page may load: mixed content and content policies, its own and those of its frames.
#![allow(clippy::unwrap_used)] // helpers of tests

mod support;

use farhop_bundle::{Budget, Decision, Load, NeverUnasked, Skip, Way};
use farhop_page::{Destination, Hint, Mode, Source};
use http::header::{self, HeaderValue};
use support::planned::{plan, plan_of};
use support::{CHROMIUM, at, fields, hint, image, url};

#[test]
fn a_secure_page_loads_nothing_over_plain_http_but_upgraded_images() {
    let page = url("https://site.test/");
    let mut plan = plan_of(&page, CHROMIUM, &[], &[], Budget::default());
    assert_eq!(plan.only(&image("http://far.test/a.png")).unwrap().url.as_str(), "https://far.test/a.png");
    assert_eq!(
        plan.only(&image("http://10.0.0.1/a.png")),
        Err(Skip::MixedContent),
        "an address is not upgraded"
    );
    assert!(plan.only(&image("http://localhost/a.png")).is_ok());
    let picture = Hint { image_set: true, ..image("http://far.test/b.png") };
    assert_eq!(plan.only(&picture), Err(Skip::MixedContent));
    let script = hint(url("http://site.test/a.js"), Destination::Script, Mode::NoCors, Source::Script);
    assert_eq!(plan.only(&script), Err(Skip::MixedContent));
    let mut plain = plan_of(&url("http://site.test/"), CHROMIUM, &[], &[], Budget::default());
    assert!(plain.only(&script).is_ok());
}

#[test]
fn upgrade_insecure_requests_upgrades_everything() {
    let response = [("content-security-policy", "upgrade-insecure-requests")];
    let mut plan = plan_of(&url("https://site.test/"), CHROMIUM, &[], &response, Budget::default());
    let script = hint(url("http://far.test:8080/a.js"), Destination::Script, Mode::NoCors, Source::Script);
    assert_eq!(plan.only(&script).unwrap().url.as_str(), "https://far.test:8080/a.js");
    assert_eq!(plan.only(&image("http://10.0.0.1:80/a.png")).unwrap().url.as_str(), "https://10.0.0.1/a.png");
}

#[test]
fn a_content_policy_of_field_or_meta_is_obeyed() {
    let response = [("content-security-policy", "img-src 'self' https://cdn.test")];
    let mut plan = plan(CHROMIUM, &[], &response, Budget::default());
    assert!(plan.only(&image("http://site.test/a.png")).is_ok());
    assert_eq!(plan.only(&image("http://far.test/a.png")), Err(Skip::ContentPolicy));
    plan.plan.load_mut().add_content_policy("img-src https:");
    assert_eq!(
        plan.only(&image("http://site.test/b.png")),
        Err(Skip::ContentPolicy),
        "each policy must allow it"
    );
    assert!(plan.only(&image("https://cdn.test/b.png")).is_ok());
}

#[test]
fn a_frames_documents_needs_are_judged_by_its_own_policy_and_the_pages_cookies() {
    let page = url("https://site.test/");
    let request = [("cookie", "a=1"), ("sec-fetch-dest", "document")];
    let mut plan = plan_of(&page, CHROMIUM, &request, &[], Budget::default());
    let framed = hint(url("https://far.test/frame"), Destination::Frame, Mode::NoCors, Source::Frame);
    let request = plan.only(&framed).unwrap();
    assert_eq!(request.fields["sec-fetch-dest"], "iframe");
    assert_eq!(request.fields["sec-fetch-mode"], "navigate");
    let of_set = hint(url("https://far.test/set"), Destination::Frame, Mode::NoCors, Source::FramesetFrame);
    assert_eq!(plan.only(&of_set).unwrap().fields["sec-fetch-dest"], "frame");
    let policy = fields(&[("content-security-policy", "img-src 'self'")]);
    let frame = Load::framed(plan.plan.load(), framed.url, request.fields, &policy);
    let mut decide = |address: &str| {
        let never = NeverUnasked::new(1);
        let (image, way) = (image(address), Way::default());
        match plan.plan.decide_after(Some(&frame), &image, &image.url, &way, &never, &plan.cookies, at(1)) {
            Decision::Fetch(request, _) => Ok(request.fields),
            Decision::Skip(why) => Err(why),
        }
    };
    let own = decide("https://far.test/a.png").unwrap();
    assert_eq!(
        (&own["sec-fetch-site"], &own["referer"]),
        (&HeaderValue::from_static("same-origin"), &HeaderValue::from_static("https://far.test/frame"))
    );
    assert_eq!(decide("https://site.test/a.png"), Err(Skip::ContentPolicy));
    assert!(!own.contains_key(header::COOKIE), "the page's cookies are not the frame's");
}
