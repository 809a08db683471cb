//! Three users on one site, in random histories: not one wrong, stale or foreign byte. `./run measure 5` lives 100,000 of them.

use std::path::Path;

use farhop_testkit::histories::{Histories, Sites, live_with};

use crate::support::Local;

/// Lived by `./run test`; `FARHOP_HISTORIES` sets another number, `FARHOP_HISTORY` lives the one of this number again.
const HISTORIES: u64 = 300;
/// At a time.
const CONCURRENT: u8 = 16;
/// One in so many waits for some seconds until what it was given has ended.
const WAITING: u64 = 12;

#[tokio::test(flavor = "multi_thread")]
async fn three_users_of_one_site_never_get_a_wrong_or_foreign_byte() {
    live_through(&Sites::start().await, None, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_do_they_where_both_ends_have_stores_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let set = |name: &str| format!("{name}='{}'", folder.path().join(name).display());
    let sets =
        ["remote.store.directory", "remote.store.key", "ground.store.directory", "ground.store.key"].map(set);
    let options: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    live_through(&Sites::start().await, None, &options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_do_they_where_all_is_read_from_disk_while_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let set = |name: &str| format!("remote.store.{name}='{}'", folder.path().join(name).display());
    let options = ["--set", &set("directory"), "--set", &set("key"), "--set", "remote.repository.entry=1 B"];
    live_through(&Sites::start().await, None, &options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_do_they_within_tls_that_is_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    let (root, own) = (folder.path().join("root.pem"), folder.path().join("own.pem"));
    let sites = Sites::start_secure(CONCURRENT).await;
    std::fs::write(&root, sites.root()).unwrap();
    let (trust, out) = (format!("ground.origin.roots={}", root.display()), own.display().to_string());
    let ports = ["remote.connect_ports=1-65535", "remote.interception.ports=1-65535", &trust];
    let sets = ports.iter().flat_map(|set| ["--set", *set]);
    let options: Vec<&str> = ["--intercept", "--ca-out", &out].into_iter().chain(sets).collect();
    live_through(&sites, Some(&own), &options).await;
}

/// Lives them through the program; what it looks into bears the certificate of the CA in `authority`, which it writes.
async fn live_through(sites: &Sites, authority: Option<&Path>, options: &[&str]) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (first, count, concurrent) = match number("FARHOP_HISTORY") {
        Some(first) => (first, 1, 1),
        None => (0, number("FARHOP_HISTORIES").unwrap_or(HISTORIES), CONCURRENT),
    };
    let wanted = Histories { first, count, concurrent, waiting: WAITING };
    let mut local = Local::allowed(options).await;
    let authority = authority.map_or_else(String::new, |file| std::fs::read_to_string(file).unwrap());
    let outcome = live_with(sites, local.proxy, &authority, wanted).await;
    let counters = local.counters().await;
    eprintln!("{outcome:?}\n{counters}");
    local.program.assert_runs();
    assert!(outcome.wrong.is_empty(), "{} wrong:\n{}", outcome.wrong.len(), outcome.wrong.join("\n"));
    // Histories in which nothing is promised or held would prove nothing.
    if wanted.count >= 100 {
        assert_eq!(outcome.histories, wanted.count);
        let answered = |from: &str| counters["answered"][from].as_u64().unwrap();
        for from in ["repository", "promise_early", "promise_on_the_way", "validated"] {
            assert!(answered(from) > 0, "nothing was answered from {from}: {counters}");
        }
    }
}
