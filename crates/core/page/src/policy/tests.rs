//! What content policies allow, case by case.

use super::*;
use crate::hint::Mode;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn hint(destination: Destination, nonce: Option<&str>) -> Hint {
    let plain = Hint::new(url("http://unused.test/"), destination, Mode::NoCors, Named::Script);
    Hint { nonce: nonce.map(Into::into), ..plain }
}

/// Those of a page of `http://site.test/`.
fn policies(fields: &[&str]) -> ContentPolicies {
    ContentPolicies::of(fields.iter().copied())
}

fn allow(policies: &ContentPolicies, hint: &Hint, target: &str) -> bool {
    policies.allow(hint, &url(target), false, &url("http://site.test/"))
}

/// Whether the policy lets a page of `http://site.test/` load an image.
fn image(policy: &str, target: &str) -> bool {
    allow(&policies(&[policy]), &hint(Destination::Image, None), target)
}

fn script(policy: &str, target: &str, nonce: Option<&str>) -> bool {
    allow(&policies(&[policy]), &hint(Destination::Script, nonce), target)
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
    let frame = |policy: &str| allow(&policies(&[policy]), &hint(Destination::Frame, None), "http://a.test/");
    assert!(!frame("child-src 'none'; default-src *"));
    assert!(frame("frame-src *; child-src 'none'"));
}

#[test]
fn every_policy_must_allow_and_one_field_may_hold_several() {
    let hint = hint(Destination::Image, None);
    let allows = |fields: &[&str]| allow(&policies(fields), &hint, "http://a.test/");
    assert!(allows(&["img-src a.test", "img-src *"]));
    assert!(!allows(&["img-src a.test", "img-src b.test"]));
    assert!(!allows(&["img-src a.test, default-src 'none'"]));
    let mut with_meta = policies(&[]);
    with_meta.add_meta("default-src 'self'");
    assert!(!allow(&with_meta, &hint, "http://a.test/"));
}

#[test]
fn a_nonce_allows_scripts_and_styles_wherever_they_are() {
    let policy = "script-src 'nonce-AbC'; style-src 'nonce-AbC'; img-src 'nonce-AbC'";
    assert!(script(policy, "http://a.test/", Some("AbC")));
    assert!(!script(policy, "http://a.test/", Some("abc")));
    assert!(!script(policy, "http://a.test/", None));
    let allows = |destination| allow(&policies(&[policy]), &hint(destination, Some("AbC")), "http://a.test/");
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
        allow(&policies(&[policy]), &script, "http://a.test/")
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
    assert!(policies(&[&directives]).list[0].directives.values().map(Vec::len).sum::<usize>() <= MAX_SOURCES);
}

#[test]
fn where_a_redirect_leads_is_not_told_by_its_path() {
    let policies = policies(&["img-src a.test/ok/"]);
    let allows = |target: &str, redirected| {
        let document = url("http://site.test/");
        policies.allow(&hint(Destination::Image, None), &url(target), redirected, &document)
    };
    assert!(!allows("http://a.test/other/x.png", false));
    assert!(allows("http://a.test/other/x.png", true));
    assert!(!allows("http://b.test/ok/x.png", true), "its host counts");
}

#[test]
fn a_base_is_judged_by_its_own_directive_alone() {
    let allows =
        |policy: &str, base: &str| policies(&[policy]).allow_base(&url(base), &url("http://site.test/"));
    assert!(allows("default-src 'none'", "http://a.test/"));
    assert!(allows("base-uri 'self'", "http://site.test/x/"));
    assert!(!allows("base-uri 'self'", "http://a.test/x/"));
    assert!(!allows("base-uri 'none'", "http://site.test/"));
    assert!(!allows("base-uri", "http://site.test/"));
    assert!(allows("base-uri a.test/x/", "http://a.test/x/y"));
}

#[test]
fn a_sandbox_takes_the_origin_unless_it_leaves_it() {
    assert!(policies(&["sandbox"]).is_opaque());
    assert!(policies(&["default-src *; SANDBOX allow-scripts"]).is_opaque());
    assert!(!policies(&["sandbox allow-scripts Allow-Same-Origin"]).is_opaque());
    let mut meta = policies(&[]);
    meta.add_meta("sandbox");
    assert!(!meta.is_opaque(), "mark-up cannot say it");
}

#[test]
fn inline_text_counts_where_all_of_it_or_its_nonce_or_its_hash_is_listed() {
    // From: printf 'p{color:red}' | openssl dgst -sha256 -binary | base64
    const HASH: &str = "'sha256-p0bF+un5yUb9MBO6xRb8kPHlY2BdpHVtLiFkDrZPF64='";
    let text = "p{color:red}";
    let counts = |policy: &str, kind, nonce| policies(&[policy]).allow_inline(kind, nonce, text);
    for (sources, style, attribute) in [
        ("'self' a.test *", false, false),
        ("'unsafe-inline'", true, true),
        ("'none'", false, false),
        ("'unsafe-inline' 'nonce-x'", false, false),
        (&format!("'unsafe-inline' {HASH}"), true, false),
        (&format!("'unsafe-hashes' {HASH}"), true, true),
        (&HASH.replace('+', "-").replace('/', "_"), true, false),
        ("'sha256-AAAA'", false, false),
        ("'sha384-fmjM3tAll81TWJvySQni8SaBymKJ5GlctvLrjS0TwyC8mMAW6RDB6buj8mJRR2Dg'", true, false),
        ("'strict-dynamic' 'unsafe-inline'", true, true),
    ] {
        let policy = format!("style-src {sources}");
        assert_eq!(counts(&policy, Inline::Style, None), style, "{policy}");
        assert_eq!(counts(&policy, Inline::StyleAttribute, None), attribute, "{policy}");
        assert!(counts(&policy, Inline::Script, None), "{policy}");
        let judged = policies(&[&policy]).judge(Inline::Style, None);
        assert!(judged == Judged::ByText || (judged == Judged::Allowed) == style, "{policy}");
    }
    assert!(counts("style-src 'nonce-x'", Inline::Style, Some("x")));
    assert!(!counts("style-src 'nonce-x'", Inline::Style, Some("y")));
    assert!(!counts("style-src 'nonce-x'", Inline::StyleAttribute, Some("x")), "attributes have none");
    assert!(!counts("default-src 'self'", Inline::Script, None));
    assert!(!counts("script-src 'strict-dynamic' 'unsafe-inline'", Inline::Script, None));
    assert!(!counts("style-src-attr 'none'; style-src 'unsafe-inline'", Inline::StyleAttribute, None));
    assert!(counts("style-src-elem 'unsafe-inline'; style-src 'none'", Inline::Style, None));
    let two = policies(&["style-src 'unsafe-inline'", "default-src 'self'"]);
    assert!(!two.allow_inline(Inline::Style, None, text), "each policy must");
    let lines = policies(&["style-src 'sha256-6n+wi3otxGGf+3x7s42VogR5NfoWXXGxLv04UqLm0Mw='"]);
    assert!(lines.allow_inline(Inline::Style, None, "a\r\nb\rc"), "as a\\nb\\nc");
}
