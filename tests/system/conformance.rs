//! Malformed and ambiguous HTTP, sent byte by byte: each case as `docs/conformance.md` says, and none forwarded with two
//! readings.

use farhop_testkit::conformance;

use crate::support::Local;

/// `FARHOP_CASE` plays only the cases whose group and name contain it.
#[tokio::test(flavor = "multi_thread")]
async fn every_case_of_the_corpus_ends_as_the_table_says() {
    let only = std::env::var("FARHOP_CASE").unwrap_or_default();
    let mut local = Local::allowed(&["--set", "remote.connect_ports=1-65535"]).await;
    let verdicts = conformance::run(local.proxy, &only).await;
    local.program.assert_runs();
    let wrong: Vec<_> = verdicts
        .iter()
        .filter(|verdict| !verdict.pass)
        .map(|verdict| format!("{}\n  wanted: {}\n  came: {}", verdict.case, verdict.wanted, verdict.seen))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), verdicts.len(), wrong.join("\n"));
}
