//! RFC 9111 §4, §5.2: whether a stored response answers a request.

use crate::support::*;
use farhop_freshness::*;
use http::header::HeaderMap;

#[test]
fn a_fresh_response_answers_and_a_stale_one_is_validated() {
    let response = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(verdict(&response, &[], 59), Verdict::Fresh);
    assert_eq!(
        verdict(&response, &[], 60),
        Verdict::Validate { why: Why::Stale, fallback: Fallback::Disconnected }
    );
}

#[test]
fn no_cache_is_never_used_without_validation() {
    for value in ["no-cache, max-age=60", "no-cache=\"\", max-age=60"] {
        let response = stored(&[("cache-control", value)]);
        assert_eq!(
            verdict(&response, &[], 1),
            Verdict::Validate { why: Why::ResponseNoCache, fallback: Fallback::Never }
        );
        assert_eq!(why(verdict(&response, &[("cache-control", "max-stale")], 1)), Some(Why::ResponseNoCache));
    }
}

#[test]
fn request_directives_are_honoured() {
    let response = stored(&[("cache-control", "max-age=60")]);
    let asked = |value: &str, now| verdict(&response, &[("cache-control", value)], now);
    assert_eq!(why(asked("no-cache", 1)), Some(Why::RequestNoCache));
    assert_eq!(why(asked("max-age=0", 1)), Some(Why::RequestAge));
    assert_eq!(asked("max-age=10", 10), Verdict::Fresh);
    assert_eq!(why(asked("max-age=10", 11)), Some(Why::RequestAge));
    assert_eq!(why(asked("min-fresh=30", 40)), Some(Why::RequestAge));
    assert_eq!(asked("min-fresh=30", 20), Verdict::Fresh);
    assert_eq!(asked("max-stale", 1000), Verdict::Fresh);
    assert_eq!(asked("max-stale=10", 70), Verdict::Fresh);
    assert_eq!(why(asked("max-stale=10", 71)), Some(Why::Stale));
    assert_eq!(asked("only-if-cached", 59), Verdict::Fresh);
    assert_eq!(asked("only-if-cached", 61), Verdict::Unsatisfiable);
    assert_eq!(why(verdict(&response, &[("pragma", "no-cache")], 1)), Some(Why::RequestNoCache));
}

#[test]
fn authorization_in_the_new_request_needs_leave_too() {
    let request = [("authorization", "Basic eA==")];
    assert_eq!(
        why(verdict(&stored(&[("cache-control", "max-age=60")]), &request, 1)),
        Some(Why::Authorization)
    );
    assert_eq!(verdict(&stored(&[("cache-control", "public, max-age=60")]), &request, 1), Verdict::Fresh);
}

#[test]
fn fields_named_by_no_cache_are_sent_only_after_validation() {
    let response =
        stored(&[("cache-control", "max-age=60, no-cache=\"X-Once\""), ("x-once", "1"), ("x-a", "1")]);
    assert_eq!(verdict(&response, &[], 1), Verdict::Fresh, "the rest is used as ever");
    let (_, unvalidated) = response.reply_head(&Reply::Whole, Validation::None, at(1));
    assert!(!unvalidated.contains_key("x-once") && unvalidated.contains_key("x-a"));
    let (_, validated) = response.reply_head(&Reply::Whole, Validation::Done, at(1));
    assert_eq!(validated["x-once"], "1");
}

#[test]
fn what_is_immutable_is_not_asked_for_again_by_a_reload_while_it_is_fresh() {
    let response = stored(&[("cache-control", "max-age=60, immutable")]);
    assert_eq!(verdict(&response, &[("cache-control", "max-age=0")], 1), Verdict::Fresh);
    assert_eq!(why(verdict(&response, &[("cache-control", "no-cache")], 1)), Some(Why::RequestNoCache));
    assert_eq!(why(verdict(&response, &[("cache-control", "min-fresh=60")], 1)), Some(Why::RequestAge));
    assert_eq!(why(verdict(&response, &[("cache-control", "max-age=0")], 60)), Some(Why::RequestAge));
    assert_eq!(why(verdict(&response, &[], 60)), Some(Why::Stale), "immutable or not");
}

#[test]
fn no_store_in_a_request_lets_what_is_stored_already_answer() {
    let response = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(verdict(&response, &[("cache-control", "no-store")], 1), Verdict::Fresh);
}

#[test]
fn a_method_that_writes_is_never_answered_from_the_store() {
    let response = stored(&[("cache-control", "max-age=60")]);
    let ask =
        |method: &str| response.verdict(&method.parse().unwrap(), &HeaderMap::new(), Scope::Shared, at(1));
    for method in ["POST", "PUT", "DELETE", "PATCH", "PURGE", "OPTIONS", "TRACE", "get"] {
        assert_eq!(why(ask(method)), Some(Why::Method), "{method}");
    }
    assert_eq!((ask("GET"), ask("HEAD")), (Verdict::Fresh, Verdict::Fresh));
}

#[test]
fn the_latest_by_its_date_is_the_one_to_use() {
    let dated = |seconds| stored(&[("date", &date(seconds))]);
    let mut found = vec![dated(-50), dated(-5), dated(-20)];
    select(&mut found, |stored| stored);
    let dates: Vec<_> = found.iter().map(Stored::date).collect();
    assert_eq!(dates, [at(-5), at(-20), at(-50)]);
    assert_eq!(stored(&[("date", "garbage")]).date(), at(0));
}
