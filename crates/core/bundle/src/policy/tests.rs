//! What content policies allow, case by case.

use super::*;
use farhop_page::{Mode, Source};
use http::HeaderValue;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn hint(destination: Destination, nonce: Option<&str>) -> Hint {
    let plain = Hint::new(url("http://unused.test/"), destination, Mode::NoCors, Source::Script);
    Hint { nonce: nonce.map(Into::into), ..plain }
}

fn policies(document: &str, fields: &[&str]) -> Policies {
    let mut response = HeaderMap::new();
    for field in fields {
        response.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_str(field).unwrap());
    }
    Policies::of(&url(document), &response)
}

/// Whether the policy lets a page of `http://site.test/` load an image.
fn image(policy: &str, target: &str) -> bool {
    policies("http://site.test/", &[policy]).allow(&hint(Destination::Image, None), &url(target))
}

fn script(policy: &str, target: &str, nonce: Option<&str>) -> bool {
    policies("http://site.test/", &[policy]).allow(&hint(Destination::Script, nonce), &url(target))
}

#[test]
fn sources_match_by_scheme_host_port_and_path() {
    for (source, target, expected) in [
        ("'none'", "http://site.test/", false),
        ("*", "https://any.test:99/", true),
        ("'self'", "http://site.test/a", true),
        ("'self'", "https://site.test/a", true),
        ("'self'", "http://site.test:81/a", false),
        ("'SELF'", "http://www.site.test/a", false),
        ("https:", "https://a.test/", true),
        ("https:", "http://a.test/", false),
        ("http:", "https://a.test/", true),
        ("data:", "http://site.test/", false),
        ("a.test", "http://a.test/", true),
        ("a.test", "https://a.test/", true),
        ("A.Test", "http://a.test/", true),
        ("a.test", "http://b.a.test/", false),
        ("a.test", "http://a.test:81/", false),
        ("a.test:81", "http://a.test:81/", true),
        ("a.test:*", "http://a.test:81/", true),
        ("a.test:80", "https://a.test/", true),
        ("https://a.test", "http://a.test/", false),
        ("http://a.test", "https://a.test/", true),
        ("*.a.test", "http://b.c.a.test/", true),
        ("*.a.test", "http://a.test/", false),
        ("*.a.test", "http://xa.test/", false),
        ("*:81", "http://any.test:81/", true),
        ("a.test/p/", "http://a.test/p/q.png", true),
        ("a.test/p/", "http://a.test/pq.png", false),
        ("a.test/p", "http://a.test/p/q.png", false),
        ("a.test/p", "http://a.test/p?x", true),
        ("a.test/%70", "http://a.test/p", true),
        ("a.test/", "http://a.test/anything", true),
        ("[2001:db8::1]:81", "http://[2001:db8::1]:81/", true),
        ("'unsafe-inline'", "http://site.test/", false),
        ("://", "http://site.test/", false),
    ] {
        assert_eq!(image(&format!("img-src {source}"), target), expected, "{source} {target}");
    }
}

#[test]
fn directives_stand_in_for_each_other_and_the_first_of_a_name_counts() {
    assert!(image("script-src 'none'", "http://a.test/"));
    assert!(!image("default-src 'self'", "http://a.test/"));
    assert!(image("default-src 'none'; IMG-SRC a.test", "http://a.test/"));
    assert!(!image("img-src 'none'; img-src a.test", "http://a.test/"));
    assert!(!image("img-src", "http://site.test/"), "an empty list allows nothing");
    assert!(script("script-src 'none'; script-src-elem a.test", "http://a.test/", None));
    let frame = |policy: &str| {
        policies("http://site.test/", &[policy])
            .allow(&hint(Destination::Frame, None), &url("http://a.test/"))
    };
    assert!(!frame("child-src 'none'; default-src *"));
    assert!(frame("frame-src *; child-src 'none'"));
}

#[test]
fn every_policy_must_allow_and_one_field_may_hold_several() {
    let hint = hint(Destination::Image, None);
    let allows = |fields: &[&str]| policies("http://site.test/", fields).allow(&hint, &url("http://a.test/"));
    assert!(allows(&["img-src a.test", "img-src *"]));
    assert!(!allows(&["img-src a.test", "img-src b.test"]));
    assert!(!allows(&["img-src a.test, default-src 'none'"]));
    let mut with_meta = policies("http://site.test/", &[]);
    with_meta.add_meta("default-src 'self'");
    assert!(!with_meta.allow(&hint, &url("http://a.test/")));
}

#[test]
fn what_only_reports_forbids_nothing() {
    let mut response = HeaderMap::new();
    response
        .insert(header::CONTENT_SECURITY_POLICY_REPORT_ONLY, HeaderValue::from_static("default-src 'none'"));
    let policies = Policies::of(&url("http://site.test/"), &response);
    assert!(policies.allow(&hint(Destination::Script, None), &url("http://a.test/")));
}

#[test]
fn a_nonce_allows_scripts_and_styles_wherever_they_are() {
    let policy = "script-src 'nonce-AbC'; style-src 'nonce-AbC'; img-src 'nonce-AbC'";
    assert!(script(policy, "http://a.test/", Some("AbC")));
    assert!(!script(policy, "http://a.test/", Some("abc")));
    assert!(!script(policy, "http://a.test/", None));
    let allows = |destination| {
        policies("http://site.test/", &[policy])
            .allow(&hint(destination, Some("AbC")), &url("http://a.test/"))
    };
    assert!(allows(Destination::Style));
    assert!(!allows(Destination::Image));
}

#[test]
fn under_strict_dynamic_only_a_nonce_counts_for_what_the_mark_up_names() {
    let policy = "script-src 'strict-dynamic' 'nonce-x' https: a.test";
    assert!(!script(policy, "https://a.test/", None));
    assert!(script(policy, "https://a.test/", Some("x")));
    assert!(image("img-src 'strict-dynamic' a.test", "http://a.test/"), "it is about scripts");
}

#[test]
fn a_hash_allows_the_script_whose_every_check_is_listed() {
    let allows = |policy: &str, integrity: Option<&str>| {
        let script = Hint { integrity: integrity.map(Into::into), ..hint(Destination::Script, None) };
        policies("http://site.test/", &[policy]).allow(&script, &url("http://a.test/"))
    };
    let policy = "script-src 'sha256-AAAA' 'SHA384-BBBB' 'strict-dynamic'";
    for (integrity, expected) in [
        (None, false),
        (Some(""), false),
        (Some("md5-AAAA"), false),
        (Some("sha256-AAAA"), true),
        (Some("sha256-aaaa"), false),
        (Some("sha384-AAAA"), false),
        (Some(" Sha256-AAAA?option\nsha384-BBBB md5-x "), true),
        (Some("sha256-AAAA sha512-CCCC"), false),
    ] {
        assert_eq!(allows(policy, integrity), expected, "{integrity:?}");
    }
    assert!(!allows("script-src b.test", Some("sha256-AAAA")));
    assert!(allows("script-src 'sha256-BBBB' a.test", Some("sha256-AAAA")), "its address is enough");
}

#[test]
fn very_many_sources_are_cut() {
    let many = format!("img-src {} last.test", "a.test ".repeat(2000));
    assert!(image(&many, "http://a.test/"));
    assert!(!image(&many, "http://last.test/"));
    let directives: String = (0..50).map(|n| format!("x{n}-src {};", "a.test ".repeat(100))).collect();
    assert!(
        policies("http://site.test/", &[&directives]).list[0]
            .directives
            .values()
            .map(Vec::len)
            .sum::<usize>()
            <= MAX_SOURCES
    );
}
