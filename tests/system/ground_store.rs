//! Ground's own store on disk through both ends: what anyone may have is asked of its origin once, whatever becomes of the remote's
//! own copy and of either process.

use std::path::Path;

use farhop_testkit::pattern::bytes_at;
use farhop_testkit::versions::Outcome;
use farhop_testkit::{File, Site, Versions};

use crate::support::{Local, ask, get, until};

/// Things of the site: every kind in every size, twice.
const THINGS: usize = 60;

/// Both ends with a store at ground alone.
async fn start(folder: &Path, more: &[&str]) -> Local {
    let set = |name: &str| format!("ground.store.{name}='{}'", folder.join(name).display());
    let sets = [set("directory"), set("key")].into_iter().chain(more.iter().map(|set| (*set).to_owned()));
    let options: Vec<String> = sets.flat_map(|set| ["--set".to_owned(), set]).collect();
    Local::allowed(&options.iter().map(String::as_str).collect::<Vec<_>>()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_anyone_may_have_is_asked_of_its_origin_once_for_remotes_that_have_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shared = File::pattern(1, 300_000).field("cache-control", "max-age=600");
    let own = File::pattern(2, 5_000).field("cache-control", "private, max-age=600");
    let site = Site::new().file("/shared", shared).file("/own", own).serve().await;
    let control = folder.path().join("ground.sock");
    let listens = format!("ground.control='{}'", control.display());
    for round in 0..3 {
        // Each time the remote is another: it holds in memory alone.
        let mut local = start(folder.path(), &[&listens]).await;
        for (path, seed, length) in [("/shared", 1, 300_000), ("/own", 2, 5_000)] {
            let got = get(local.proxy, &site.url(path)).await;
            assert!(got.whole && got.bytes == bytes_at(seed, 0, length), "{path} in round {round}");
        }
        let bodies = || walk(&folder.path().join("directory/bodies"));
        // The one of its own user is nowhere.
        let entries = async || ask(&control, "status").await?["store"]["entries"].as_u64();
        until("it is kept", async || (entries().await == Some(1) && bodies() == 1).then_some(())).await;
        local.program.kill();
    }
    assert_eq!((site.times("/shared"), site.times("/own")), (1, 3));
}

/// Files below a folder.
fn walk(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let count = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => walk(&entry.path()),
        false => 1,
    };
    entries.map(|entry| count(entry.unwrap())).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_it_gives_nothing_wrong_and_still_spares_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    let site = Versions::of(THINGS).await;
    let mut all = Outcome::default();
    for round in 0..4 {
        let mut local =
            start(folder.path(), &["remote.repository.size=0 B", "remote.repository.entry=0 B"]).await;
        let mut load = site.load(local.proxy, 6, round);
        load.answers(80 + round * 37).await;
        local.program.kill();
        let outcome = load.end().await;
        assert!(outcome.wrong.is_empty(), "{} wrong:\n{}", outcome.wrong.len(), outcome.wrong.join("\n"));
        all.add(outcome);
        let said = local.program.said();
        assert!(!said.contains("index cannot be used"), "round {round}: {said}");
    }
    eprintln!("{all:?}, {} at the origin", site.asked());
    assert!(all.right > site.asked(), "the origin was asked each time: {all:?}, {}", site.asked());
}
