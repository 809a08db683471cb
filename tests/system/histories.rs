//! Three users on one site, in random histories: not one wrong or foreign byte. `./run measure 2` lives 100,000 of them.

use farhop_testkit::histories::{Histories, live};

use crate::support::Local;

/// Lived by `./run test`; `FARHOP_HISTORIES` sets another number, `FARHOP_HISTORY` lives the one of this number again.
const HISTORIES: u64 = 300;

#[tokio::test(flavor = "multi_thread")]
async fn three_users_of_one_site_never_get_a_wrong_or_foreign_byte() {
    live_through(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_do_they_where_ground_has_a_store_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let set = |name: &str| format!("ground.store.{name}='{}'", folder.path().join(name).display());
    live_through(&["--set", &set("directory"), "--set", &set("key")]).await;
}

async fn live_through(options: &[&str]) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let wanted = match number("FARHOP_HISTORY") {
        Some(first) => Histories { first, count: 1, concurrent: 1 },
        None => {
            Histories { first: 0, count: number("FARHOP_HISTORIES").unwrap_or(HISTORIES), concurrent: 16 }
        }
    };
    let mut local = Local::allowed(options).await;
    let outcome = live(local.proxy, wanted).await;
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
