//! A process that is killed at any moment, or whose disk has no more room: what a later one finds is whole and right, and
//! of what was settled nothing is lost. The process is this test itself, called again.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use farhop_store::{Partition, Repository};
use http::HeaderValue;
use support::{Opened, bytes, fresh, options, try_open};

const FOLDER: &str = "FARHOP_TEST_STORE";
/// The first version to store.
const FIRST: &str = "FARHOP_TEST_FIRST";
/// URLs among which what is stored is spread, so that most of it replaces something.
const URLS: u64 = 40;
const SIZE: u64 = 1 << 30;

fn url(number: u64) -> String {
    format!("http://a.test/{number}")
}

/// Some of the bodies have several chunks, and half of them are one user's.
fn body(version: u64) -> Vec<u8> {
    bytes(version, [10, 3_000, 70_000, 200_000][version as usize / 3 % 4])
}

fn partition(store: &Opened, number: u64) -> Partition {
    if number.is_multiple_of(2) { Partition::Shared } else { Partition::User(store.store.user("anna")) }
}

/// The version of which all is found; nothing if none is.
async fn found(store: &Opened, number: u64) -> Option<u64> {
    let held = store.find(partition(store, number), &url(number)).await;
    assert!(held.len() <= 1, "{} in place of one", held.len());
    let held = held.first()?;
    let version = held.head.fields["x-version"].to_str().unwrap().parse().unwrap();
    let read = support::all(&held.body).await.expect("what is found is whole");
    assert!(read == body(version), "version {version} is not as it was");
    Some(version)
}

async fn put(store: &Opened, number: u64, version: u64, padding: usize) {
    let mut head = fresh();
    head.fields.insert("x-version", version.into());
    head.fields.insert("x-padding", HeaderValue::from_bytes(&vec![b'x'; padding]).unwrap());
    store.put_as(partition(store, number), &url(number), head, &body(version)).await;
}

/// Stores versions and tells of them, until it is killed.
#[tokio::test]
#[ignore = "what the test below starts and kills"]
async fn stores_until_killed() {
    let folder = std::env::var(FOLDER).unwrap();
    let store = try_open(options(Path::new(&folder), SIZE)).unwrap();
    for version in std::env::var(FIRST).unwrap().parse().unwrap().. {
        // In one piece, so that who is killed meanwhile has told all of it or nothing.
        let tell = |what: &str| std::io::stderr().write_all(format!("{what} {version}\n").as_bytes());
        tell("put").unwrap();
        put(&store, version % URLS, version, 10).await;
        if version % 5 == 0 {
            store.store.settled().await;
            tell("settled").unwrap();
        }
    }
}

/// The same with a disk on which no file can grow beyond 3 MB: each process ends by itself.
#[tokio::test]
#[ignore = "what a test below starts"]
async fn stores_where_there_is_no_room() {
    let folder = std::env::var(FOLDER).unwrap();
    let store = try_open(options(Path::new(&folder), 1 << 30)).unwrap();
    for version in 0..400 {
        put(&store, version, version, 40_000).await;
        if version % 5 == 0 {
            store.store.settled().await;
        }
        if let Some(found) = found(&store, version / 2).await {
            assert_eq!(found, version / 2);
        }
    }
    let held = store.store.on_disk().await.unwrap();
    assert!((5..390).contains(&held.entries), "{held:?}");
    store.close().await;
}

/// On a disk of 6 MB, whose store may take more: what comes displaces what is worth the least, and all that is found is right.
#[tokio::test]
#[ignore = "what a test below starts"]
async fn stores_on_a_small_disk() {
    let folder = std::env::var(FOLDER).unwrap();
    let open = || try_open(options(Path::new(&folder), SIZE)).unwrap();
    let store = open();
    let (mut wrong, versions) = (0, 200);
    for version in 0..versions {
        let (url, body) = (url(version), body(version));
        if version % 2 == 0 {
            store.put(Partition::Shared, &url, &body).await;
        } else if let Some(mut keeping) = store.store.keep_passing(Partition::Shared, &url, &fresh(), 1) {
            body.chunks(10_000).for_each(|piece| keeping.write(&Bytes::copy_from_slice(piece)));
            keeping.ended(None, body.len() as u64);
            keeping.finish().await;
        }
        store.store.settled().await;
        let earlier = store.get(Partition::Shared, &self::url(version / 2)).await;
        wrong += usize::from(earlier.is_some_and(|found| found != Ok(self::body(version / 2))));
    }
    let refused = async |store: &Opened| store.store.on_disk().await.unwrap().refused;
    let before = refused(&store).await;
    // More than its share of the disk: it displaces nothing.
    let taken = store.store.on_disk().await.unwrap().entries;
    store.put(Partition::Shared, "http://a.test/long", &bytes(7, 2_000_000)).await;
    store.store.settled().await;
    assert!(refused(&store).await > before);
    assert!(store.store.on_disk().await.unwrap().entries >= taken);
    store.close().await;
    let store = open();
    let mut found = Vec::new();
    for version in 0..versions {
        if let Some(held) = store.get(Partition::Shared, &url(version)).await {
            wrong += usize::from(held != Ok(body(version)));
            found.push(version);
        }
    }
    let newest = found.iter().filter(|version| **version >= versions - 20).count();
    assert!(wrong == 0 && newest >= 10 && before < versions / 2, "{wrong}, {found:?}, {before} refused");
    store.close().await;
}

fn again(name: &str) -> Command {
    let mut own = Command::new("sh");
    // A file that would grow beyond 6,144 blocks of 512 bytes is refused, and the signal that says so is ignored.
    own.args(["-c", "trap '' XFSZ; if [ -n \"$LIMITED\" ]; then ulimit -f 6144; fi; exec \"$0\" \"$@\""]);
    own.arg(std::env::current_exe().unwrap()).args(["--ignored", "--exact", "--nocapture", name]);
    own.stdout(Stdio::null()).stderr(Stdio::piped());
    own
}

/// Kills a process that stores so many times, each time when it has said a few things more, and looks at what is left.
async fn kill(times: u64) {
    let folder = tempfile::tempdir().unwrap();
    // The newest version of each URL that was settled, and that was begun.
    let (mut settled, mut begun) = (HashMap::new(), HashMap::new());
    let mut next = 1;
    for round in 0..times {
        let mut child = again("stores_until_killed")
            .env(FOLDER, folder.path())
            .env(FIRST, next.to_string())
            .spawn()
            .unwrap();
        let mut unsettled = Vec::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let enough = 1 + bytes(round, 1)[0] as usize % 60;
        let mut hear = |line: String| match line.split_once(' ') {
            Some(("put", version)) => {
                let version: u64 = version.parse().unwrap();
                next = version + 1;
                begun.insert(version % URLS, version);
                unsettled.push(version);
                true
            }
            Some(("settled", _)) => {
                settled.extend(unsettled.drain(..).map(|version| (version % URLS, version)));
                true
            }
            _ => false,
        };
        let mut heard = 0;
        for line in lines.by_ref() {
            heard += usize::from(hear(line.unwrap()));
            if heard == enough {
                break;
            }
        }
        assert_eq!(heard, enough, "round {round}: it ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had said by then.
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        for line in rest {
            hear(line);
        }

        let store =
            try_open(options(folder.path(), SIZE)).unwrap_or_else(|error| panic!("round {round}: {error}"));
        for number in 0..URLS {
            let Some(version) = found(&store, number).await else { continue };
            let at_least = settled.get(&number).copied().unwrap_or(0);
            assert!(version >= at_least, "round {round}: {version} came back in place of {at_least}");
            assert!(version <= begun[&number], "round {round}: {version} was never stored");
        }
        // What was settled last, and nothing has replaced since, is still there.
        let last: Vec<_> = settled.iter().filter(|(number, version)| begun[*number] == **version).collect();
        for (number, version) in last {
            assert_eq!(found(&store, *number).await, Some(*version), "round {round}: lost");
        }
        store.close().await;
    }
}

#[tokio::test]
async fn a_process_killed_at_any_moment_leaves_nothing_torn() {
    kill(8).await;
}

/// `cargo test -p farhop-store --test crashes -- --ignored two_hundred`
#[tokio::test]
#[ignore = "takes minutes"]
async fn a_process_killed_two_hundred_times_leaves_nothing_torn() {
    kill(200).await;
}

#[test]
fn a_disk_that_is_full_has_room_for_what_comes_in_place_of_what_is_worth_the_least() {
    let is_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t");
    if !is_root {
        return println!("skipped: a small disk takes root to mount");
    }
    let folder = tempfile::tempdir().unwrap();
    let started = again("stores_on_a_small_disk");
    // In a mount namespace of its own, so that the disk goes with the process.
    let mut own = Command::new("unshare");
    own.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=6m small \"$0\" && exec \"$@\""]);
    own.arg(folder.path()).arg(started.get_program()).args(started.get_args());
    let ended = own.env(FOLDER, folder.path()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[tokio::test]
async fn a_disk_without_room_costs_what_comes_then_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..2 {
        let ended = again("stores_where_there_is_no_room")
            .env(FOLDER, folder.path())
            .env("LIMITED", "yes")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "round {round}: {said}");
        let store = try_open(options(folder.path(), 1 << 30)).unwrap();
        for number in 0..5 {
            let found = found(&store, number).await;
            // In the second round they came anew, in place of what was there: for those there may have been no room.
            let is_kept = found == Some(number) || (round > 0 && found.is_none());
            assert!(
                is_kept,
                "round {round}: {number} was there before the disk was full, now {found:?}; {said}"
            );
        }
        // With room again it goes on.
        put(&store, 1_000, 1_000, 0).await;
        store.close().await;
        let store = try_open(options(folder.path(), 1 << 30)).unwrap();
        assert_eq!(found(&store, 1_000).await, Some(1_000));
        store.close().await;
    }
}
