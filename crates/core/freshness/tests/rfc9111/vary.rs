//! RFC 9111 §4.1: whom a response answers besides its own request.

use crate::support::*;
use farhop_freshness::*;
use http::StatusCode;

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

/// Whether a response that varies by this field and came for the one value answers the other.
fn is_same(name: &str, came: &str, asked: &str) -> bool {
    stored_for(&[(name, came)], &[("vary", name)]).answers(&fields(&[(name, asked)]))
}

#[test]
fn what_has_no_meaning_in_a_field_does_not_tell_variants_apart() {
    for (name, came, asked) in [
        ("accept-encoding", "gzip, br;q=0.9", "BR;Q=0.900 ,x-gzip"),
        ("accept-encoding", "gzip", "gzip;q=1.0, gzip"),
        ("accept-language", "de-AT,de;q=0.5", "DE-at, de; q=0.50"),
        ("accept", "text/html,*/*;q=0.1", "Text/HTML;q=1, */* ; q=0.100"),
    ] {
        assert!(is_same(name, came, asked), "{name}: {came} / {asked}");
    }
}

#[test]
fn what_may_mean_something_tells_variants_apart() {
    for (name, came, asked) in [
        ("accept-encoding", "gzip, br", "gzip, br;q=0"),
        ("accept-encoding", "gzip", "x-gzip2"),
        ("accept-language", "de, en", "en, de"),
        ("accept", "text/html, image/png", "image/png, text/html"),
        ("accept", "text/html;level=1", "text/html"),
        ("accept", "text/html;x=\"a, b\"", "text/html;x=\"a,b\""),
        ("accept", "text/html;q=0.5", "text/html;q=2"),
        ("user-agent", "A, B", "A,B"),
        ("x-token", "ab", "AB"),
        ("cookie", "a=1, b=2", "a=1,b=2"),
    ] {
        assert!(!is_same(name, came, asked), "{name}: {came} / {asked}");
        assert!(is_same(name, came, came), "{name}: {came}");
    }
}

#[test]
fn vary_that_names_everything_or_nothing_readable_answers_nobody() {
    let request = [("accept", "*/*")];
    for vary in ["*", "accept, *", "a b"] {
        assert!(!stored_for(&request, &[("vary", vary)]).answers(&fields(&request)), "{vary}");
    }
}

#[test]
fn what_fits_by_its_vary_is_chosen_before_what_has_left_it_out() {
    let varies = |seconds: i64| stored(&[("vary", "accept-language"), ("date", &date(seconds))]);
    let left_out = |seconds: i64| stored(&[("date", &date(seconds))]);
    for (mut found, chosen) in [
        (vec![left_out(-1), varies(-30), varies(-20)], vec![at(-20), at(-30)]),
        (vec![left_out(-5), left_out(-1)], vec![at(-1), at(-5)]),
        (vec![stored(&[("vary", " , "), ("date", &date(-9))]), left_out(-1)], vec![at(-1), at(-9)]),
    ] {
        select(&mut found, |stored| stored);
        assert_eq!(found.iter().map(Stored::date).collect::<Vec<_>>(), chosen);
    }
}
