//! Whatever is sent gives a verdict, and none that breaks a rule.

use crate::support::*;
use farhop_freshness::*;
use http::Method;
use proptest::collection::vec;
use proptest::prelude::*;

/// Directives as they occur, in any number and order.
fn directives() -> impl Strategy<Value = String> {
    let numbered = (
        prop::sample::select(vec![
            "max-age",
            "s-maxage",
            "stale-while-revalidate",
            "stale-if-error",
            "min-fresh",
            "max-stale",
        ]),
        0_u32..200,
    )
        .prop_map(|(name, number)| format!("{name}={number}"));
    let plain = prop::sample::select(vec![
        "no-cache",
        "no-store",
        "private",
        "public",
        "must-revalidate",
        "proxy-revalidate",
        "must-understand",
        "immutable",
        "only-if-cached",
        "no-cache=\"x-a\"",
        "private=\"x-a\"",
        "nonsense",
    ])
    .prop_map(str::to_owned);
    vec(prop_oneof![numbered, plain], 0..5).prop_map(|all| all.join(", "))
}

proptest! {
    #[test]
    fn whatever_a_peer_sends_gives_a_verdict(values in vec("[ -~]{0,40}", 9)) {
        let names = ["cache-control", "expires", "age", "date", "last-modified", "vary", "etag", "pragma"];
        let lines: Vec<_> = names.into_iter().zip(values.iter().map(String::as_str)).collect();
        let response = stored(&lines);
        let request = [("cache-control", values[0].as_str()), ("if-none-match", &values[6]), ("if-modified-since", &values[4]), ("range", &values[8]), ("if-range", &values[7])];
        let _ = may_store(&request, 200, &lines, Scope::Shared);
        let _ = (verdict(&response, &request, 10), response.answers(&fields(&request)));
        let reply = response.reply(&Method::GET, &fields(&request), Some(10));
        let _ = sent(&response, &reply, 10);
        let mut conditional = fields(&request);
        response.make_conditional(&mut conditional);
        let _ = response.validated_by(&fields(&request), &fields(&lines), at(1), at(1));
        prop_assert!(response.age(at(10)) >= response.age(at(5)));
    }

    #[test]
    fn what_is_sent_without_asking_is_fresh_or_allowed_to_be_stale(
        said in directives(), asked in directives(), age in 0_i64..400, shared in any::<bool>(),
    ) {
        let scope = if shared { Scope::Shared } else { Scope::Private };
        let response = stored(&[("cache-control", &said), ("last-modified", &date(-1000))]);
        let request = fields(&[("cache-control", &asked)]);
        let (own, wanted) = (ResponseDirectives::of(&response.fields), RequestDirectives::of(&request));
        let stale = !response.is_fresh(scope, at(age));
        let beyond = response.age(at(age)).saturating_sub(response.lifetime(scope));
        let verdict = response.verdict(&Method::GET, &request, scope, at(age));
        match verdict {
            Verdict::Fresh | Verdict::Revalidate => {
                prop_assert!(!own.no_cache && !wanted.no_cache);
                let allowed = wanted.max_stale.into_iter().chain(own.stale_while_revalidate).any(|limit| beyond <= limit);
                prop_assert!(!stale || (!own.must_revalidate && allowed));
                prop_assert!(!(stale && shared && (own.proxy_revalidate || own.s_maxage.is_some())));
            }
            Verdict::Validate { fallback, .. } => {
                prop_assert!(!wanted.only_if_cached);
                prop_assert!(fallback == Fallback::Never || !(own.must_revalidate || own.no_cache));
            }
            Verdict::Unsatisfiable => prop_assert!(wanted.only_if_cached),
        }
    }

    #[test]
    fn parts_lie_within_what_there_is(range in "bytes=[0-9,-]{0,12}", length in 0_u64..30) {
        let response = stored(&[("etag", "\"1\"")]);
        match response.reply(&Method::GET, &fields(&[("range", &range)]), Some(length)) {
            Reply::Part(part, of) => prop_assert!(part.start < part.end && part.end <= length && of == length),
            Reply::Whole | Reply::Unsatisfiable(_) => {}
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
