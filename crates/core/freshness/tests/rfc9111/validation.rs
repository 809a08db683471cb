//! RFC 9111 §3.2, §4.3: asking whether a response is still right, and taking in what is said.

use crate::support::*;
use farhop_freshness::*;
use http::StatusCode;
use http::header::HeaderMap;
use std::time::Duration;

#[test]
fn validation_sends_the_tag_and_the_date_in_place_of_the_clients_date() {
    let response = stored(&[("etag", "W/\"1\""), ("last-modified", &date(-9))]);
    let mut request =
        fields(&[("if-modified-since", &date(-99)), ("if-range", "\"client\""), ("accept", "*/*")]);
    assert!(response.make_conditional(&mut request));
    assert_eq!(
        request,
        fields(&[("accept", "*/*"), ("if-none-match", "W/\"1\""), ("if-modified-since", &date(-9))])
    );
    let mut plain = fields(&[("if-modified-since", &date(-99))]);
    assert!(!stored(&[("last-modified", "never")]).make_conditional(&mut plain));
    assert_eq!(plain, fields(&[("if-modified-since", &date(-99))]));
}

#[test]
fn a_304_freshens_the_response_that_it_names() {
    let response = stored(&[("etag", "\"1\""), ("last-modified", &date(-9))]);
    assert!(response.is_freshened_by(&fields(&[("etag", "\"1\"")])));
    assert!(!response.is_freshened_by(&fields(&[("etag", "\"2\"")])));
    assert!(response.is_freshened_by(&fields(&[("etag", "W/\"1\"")])), "a weak tag compares weakly");
    assert!(
        !stored(&[("etag", "W/\"1\"")]).is_freshened_by(&fields(&[("etag", "\"1\"")])),
        "a strong tag compares strongly"
    );
    assert!(!response.is_freshened_by(&fields(&[("last-modified", &date(-8))])));
    assert!(response.is_freshened_by(&fields(&[])));
}

#[test]
fn a_304_updates_fields_but_not_those_of_the_body() {
    let mut response = stored(&[
        ("cache-control", "max-age=1"),
        ("content-length", "10"),
        ("content-encoding", "gzip"),
        ("content-type", "text/plain"),
        ("x-a", "1"),
        ("x-a", "2"),
        ("x-b", "old"),
        ("age", "500"),
        ("date", &date(-500)),
    ]);
    let update = fields(&[
        ("cache-control", "max-age=60"),
        ("content-length", "0"),
        ("content-encoding", "br"),
        ("content-type", "text/css"),
        ("x-a", "3"),
        ("connection", "close"),
    ]);
    response.freshen(&HeaderMap::new(), &update, at(100), at(100));
    assert_eq!(verdict(&response, &[], 159), Verdict::Fresh);
    assert_eq!(response.fields["content-length"], "10");
    assert_eq!(response.fields["content-encoding"], "gzip");
    assert_eq!(response.fields["content-type"], "text/css");
    assert_eq!(response.fields.get_all("x-a").iter().collect::<Vec<_>>(), ["3"]);
    assert_eq!(response.fields["x-b"], "old");
    assert!(!response.fields.contains_key("connection"));
    assert_eq!(response.age(at(100)), Duration::ZERO);
}

#[test]
fn a_clients_condition_is_answered_from_the_store() {
    let response = stored(&[("etag", "\"a,b\""), ("last-modified", &date(-100))]);
    let asked = |request: &[(&str, &str)]| evaluate(&fields(request), &response);
    assert_eq!(asked(&[]), Precondition::Holds);
    assert_eq!(asked(&[("if-none-match", "\"x\", W/\"a,b\"")]), Precondition::NotModified);
    assert_eq!(asked(&[("if-none-match", "\"x\"")]), Precondition::Holds);
    assert_eq!(asked(&[("if-none-match", "*")]), Precondition::NotModified);
    assert_eq!(
        asked(&[("if-none-match", "\"x\""), ("if-modified-since", &date(0))]),
        Precondition::Holds,
        "the tag decides"
    );
    assert_eq!(asked(&[("if-modified-since", &date(-100))]), Precondition::NotModified);
    assert_eq!(asked(&[("if-modified-since", &date(-101))]), Precondition::Holds);
    assert_eq!(asked(&[("if-modified-since", "garbage")]), Precondition::Holds);
    assert_eq!(asked(&[("if-match", "\"x\"")]), Precondition::ForOrigin);
    assert_eq!(asked(&[("if-unmodified-since", &date(0))]), Precondition::ForOrigin);
    let error =
        Stored::new(&HeaderMap::new(), StatusCode::NOT_FOUND, &fields(&[("etag", "\"a\"")]), at(0), at(0));
    assert_eq!(evaluate(&fields(&[("if-none-match", "\"a\"")]), &error), Precondition::Holds);
}

#[test]
fn a_clients_tags_are_sent_beside_the_stored_one() {
    let response = stored(&[("etag", "\"1\""), ("last-modified", &date(-9))]);
    let made = |request: &[(&str, &str)]| {
        let mut request = fields(request);
        response.make_conditional(&mut request).then_some(request)
    };
    assert_eq!(
        made(&[("if-none-match", "\"c\""), ("if-none-match", "W/\"d\"")]),
        Some(fields(&[("if-none-match", "\"c\", W/\"d\", \"1\"")]))
    );
    assert_eq!(
        made(&[("if-none-match", "W/\"1\"")]),
        Some(fields(&[("if-none-match", "W/\"1\"")])),
        "it is there"
    );
    for origins in ["if-match", "if-unmodified-since"] {
        assert_eq!(made(&[(origins, "\"c\"")]), None, "{origins}");
    }
    let ranged = made(&[("range", "bytes=0-1"), ("if-range", "\"c\"")]).unwrap();
    assert_eq!(
        (&ranged["range"], &ranged["if-range"], &ranged["if-none-match"]),
        (&"bytes=0-1".parse().unwrap(), &"\"c\"".parse().unwrap(), &"\"1\"".parse().unwrap())
    );
    let mut tagged = fields(&[("if-none-match", "\"c\"")]);
    assert!(
        !stored(&[("last-modified", &date(-9))]).make_conditional(&mut tagged),
        "a date is not heard beside tags"
    );
}

#[test]
fn a_304_is_the_clients_or_the_stores_by_the_tag_that_it_tells() {
    let response = stored(&[("etag", "\"1\""), ("cache-control", "max-age=1")]);
    let told = |request: &[(&str, &str)], answer: &[(&str, &str)]| {
        response.validated_by(&fields(request), &fields(answer), at(50), at(51))
    };
    let client = [("if-none-match", "\"c\"")];
    let Validated::Stored(fresh) = told(&client, &[("etag", "\"1\"")]) else { panic!("it is the store's") };
    assert_eq!(
        (fresh.received_at, evaluate(&fields(&client), &fresh)),
        (at(51), Precondition::Holds),
        "a 200 for the client"
    );
    assert!(matches!(told(&client, &[("etag", "\"c\"")]), Validated::Client));
    assert!(matches!(told(&client, &[("etag", "\"x\"")]), Validated::Neither));
    assert!(matches!(told(&client, &[]), Validated::Neither), "it may be about either");
    assert!(matches!(told(&[], &[]), Validated::Stored(_)), "about the only one");
    assert!(matches!(told(&[("if-none-match", "\"1\"")], &[]), Validated::Stored(_)), "both hold the same");
    assert!(matches!(told(&[], &[("etag", "\"x\"")]), Validated::Neither));
}

#[test]
fn what_varies_anew_since_a_304_varies_by_the_request_that_it_answers() {
    let mut response = stored_for(&[("x-bound", "1")], &[("etag", "\"1\"")]);
    response.nominated = fields(&[("x-bound", "1")]);
    let german = fields(&[("accept-language", "de")]);
    response.freshen(&german, &fields(&[("etag", "\"1\""), ("vary", "accept-language")]), at(9), at(9));
    assert!(response.answers(&german) && !response.answers(&fields(&[])));
    assert_eq!(response.nominated, fields(&[("x-bound", "1"), ("accept-language", "de")]));
}

#[test]
fn a_head_that_tells_the_same_freshens_and_one_that_tells_other_does_not() {
    let response = stored(&[("etag", "\"1\""), ("last-modified", &date(-9)), ("content-length", "10")]);
    for (head, is) in [
        (vec![], true),
        (vec![("etag", "\"1\""), ("content-length", "10")], true),
        (vec![("etag", "W/\"1\"")], true),
        (vec![("etag", "\"2\"")], false),
        (vec![("content-length", "11")], false),
        (vec![("last-modified", "Mon, 16 Mar 2026 07:00:00 GMT")], false),
    ] {
        assert_eq!(response.is_described_by(&fields(&head), Some(10)), is, "{head:?}");
    }
}

#[test]
fn what_is_fresh_only_by_a_guess_since_a_304_is_for_the_cookies_that_it_was_asked_for_with() {
    let said = [("etag", "\"1\""), ("last-modified", &date(-9)), ("cache-control", "max-age=600")];
    let mut response = stored_for(&[("cookie", "a=1")], &said);
    let with = |cookie: &str| fields(&[("cookie", cookie)]);
    assert!(response.answers(&with("a=2")) && response.answers(&fields(&[])), "it says how long");
    let update = fields(&[("etag", "\"1\""), ("cache-control", "no-transform")]);
    response.freshen(&with("a=2"), &update, at(9), at(9));
    assert!(response.is_bound_to_cookies());
    assert!(response.answers(&with("a=2")));
    assert!(!response.answers(&with("a=1")) && !response.answers(&fields(&[])));
    let again = fields(&[("etag", "\"1\""), ("x-a", "1")]);
    response.freshen(&with("a=2"), &again, at(19), at(19));
    assert!(response.answers(&with("a=2")) && !response.answers(&with("a=1")), "and stays so");
}

#[test]
fn what_has_been_answered_since_contradicts_what_is_stored_if_it_is_of_another_representation() {
    let (old, new) = (date(-900), date(-90));
    let both = [("etag", "\"1\""), ("last-modified", &*old), ("content-length", "10")];
    let undated = [("content-length", "10")];
    let dated = [("last-modified", &*old)];
    let is = |own: &[(&str, &str)], status: u16, told: &[(&str, &str)]| {
        stored(own).is_contradicted_by(StatusCode::from_u16(status).unwrap(), &fields(told), at(9))
    };
    let weak = [("etag", "W/\"1\""), ("last-modified", &*new)];
    for status in [200, 206, 304] {
        assert!(is(&both, status, &[("etag", "\"2\"")]), "{status}: another tag");
        assert!(!is(&both, status, &weak), "{status}: the tag decides, compared weakly");
        assert!(is(&both, status, &[("last-modified", &new)]), "{status}: another date");
        assert!(is(&dated, status, &[("etag", "\"2\""), ("last-modified", &new)]), "{status}");
        assert!(!is(&both, status, &[]), "{status}: nothing is said");
        assert!(!is(&both, status, &[("etag", "\"2\""), ("date", &date(-5))]), "{status}: it is older");
    }
    assert!(is(&undated, 206, &[("content-range", "bytes 0-1/11")]), "of another length");
    assert!(!is(&undated, 206, &[("content-range", "bytes 0-1/10")]));
    assert!(!is(&both, 404, &[("etag", "\"2\"")]), "of an error");
    let missing = stored_as(404, &[("cache-control", "max-age=600")]);
    assert!(missing.is_contradicted_by(StatusCode::PARTIAL_CONTENT, &fields(&[]), at(9)), "there it is");
    assert!(!missing.is_contradicted_by(StatusCode::NOT_FOUND, &fields(&[]), at(9)));
}

#[test]
fn a_304_names_all_that_has_its_strong_validator_and_nothing_by_a_weak_one() {
    let named =
        |response: &[(&str, &str)], told: &[(&str, &str)]| stored(response).is_named_by(&fields(told));
    let (old, now) = (date(-600), date(0));
    assert!(named(&[("etag", "\"a\"")], &[("etag", "\"a\"")]));
    for (own, told) in
        [("\"a\"", "\"b\""), ("W/\"a\"", "\"a\""), ("\"a\"", "W/\"a\""), ("W/\"a\"", "W/\"a\"")]
    {
        assert!(!named(&[("etag", own)], &[("etag", told)]), "{own} and {told}");
    }
    let dated = |modified| [("last-modified", modified), ("date", &*now)];
    assert!(named(&dated(&old), &[("last-modified", &old)]), "it was made a while after");
    assert!(!named(&dated(&now), &[("last-modified", &now)]), "it may have changed within that second");
    assert!(!named(&dated(&old), &[("last-modified", &now)]));
    let tagged = [&dated(&old)[..], &[("etag", "\"a\"")]].concat();
    assert!(!named(&tagged, &[("last-modified", &old)]), "another of that time may be meant");
    assert!(!named(&[("etag", "\"a\"")], &[]) && !named(&[], &[]), "it names nothing");
}
