//! Malformed and ambiguous HTTP, sent byte by byte: each case as `docs/conformance.md` says, and none forwarded with two
//! readings. `FARHOP_CASE` plays only the cases whose group and name contain it.

use farhop_testkit::conformance::{self, SecureOrigin, assert_right, only};

use crate::support::Local;

const EVERY_PORT: [&str; 2] = ["--set", "remote.connect_ports=1-65535"];

#[tokio::test(flavor = "multi_thread")]
async fn every_case_of_the_corpus_ends_as_the_table_says() {
    let mut local = Local::allowed(&EVERY_PORT).await;
    let verdicts = conformance::run(local.proxy, &only()).await;
    local.program.assert_runs();
    assert_right(&verdicts);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_inside_tls_does_so_too_over_http_1_and_http_2() {
    let origin = SecureOrigin::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (root, authority) = (folder.path().join("root.pem"), folder.path().join("authority.pem"));
    std::fs::write(&root, origin.root()).unwrap();
    let trust = format!("ground.origin.roots={}", root.display());
    let intercept = ["--intercept", "--ca-out", authority.to_str().unwrap()];
    let ports = ["--set", "remote.interception.ports=1-65535", "--set", &trust];
    let mut local = Local::allowed(&[&intercept[..], &ports, &EVERY_PORT].concat()).await;
    let authority = std::fs::read_to_string(&authority).unwrap();
    let verdicts = origin.run(local.proxy, &authority, &only()).await;
    local.program.assert_runs();
    assert_right(&verdicts);
}
