//! What is on disk: found again by a later process, never torn, never another's, never more than it may be.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use farhop_freshness::{Scope, Stored};
use farhop_store::{Broken, Change, Key, Partition, Piece, Repository};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use support::{MEMORY, SHARED, all, bytes, files, fresh, open, options, try_open};

#[tokio::test]
async fn bodies_of_every_length_are_found_again_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = 64 * 1024;
    let lengths = [0, 1, chunk - 1, chunk, chunk + 1, 5 * chunk, 5 * chunk + 7];
    let url = |length: usize| format!("http://a.test/{length}");
    let first = open(folder.path());
    for length in lengths {
        first.put(SHARED, &url(length), &bytes(length as u64, length)).await;
    }
    first.close().await;
    let second = open(folder.path());
    for length in lengths {
        let held = &second.find(SHARED, &url(length)).await[0];
        assert!(held.body.is_whole());
        assert_eq!(held.body.written(), length as u64);
        assert!(held.head.is_fresh(Scope::Shared, SystemTime::now()));
        assert!(all(&held.body).await.unwrap() == bytes(length as u64, length), "{length}");
    }
}

#[tokio::test]
async fn more_than_memory_holds_is_held_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let mut changes = held.store.changes();
    let url = |n: u64| format!("http://a.test/{n}");
    for n in 0..40 {
        held.put(SHARED, &url(n), &bytes(n, 400_000)).await;
        held.store.settled().await;
    }
    assert!(held.budget.used() <= MEMORY);
    held.close().await;
    let held = open(folder.path());
    for n in 0..40 {
        let body = held.get(SHARED, &url(n)).await.unwrap();
        assert!(body.unwrap() == bytes(n, 400_000));
        assert!(held.budget.used() <= MEMORY);
    }
    let evicted = std::iter::from_fn(|| changes.try_recv().ok());
    assert_eq!(evicted.filter(|change| matches!(change, Change::Evicted { .. })).count(), 0);
}

#[tokio::test]
async fn what_replaces_what_is_on_disk_is_all_that_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let url = "http://a.test/";
    for turn in 0..4_u64 {
        let held = open(folder.path());
        held.put(SHARED, url, &bytes(turn, 10)).await;
        assert_eq!(held.find(SHARED, url).await.len(), 1);
        assert_eq!(held.get(SHARED, url).await, Some(Ok(bytes(turn, 10))));
        held.close().await;
        assert_eq!(files(folder.path()).len(), 1);
    }
}

#[tokio::test]
async fn what_is_invalidated_is_not_found_though_nobody_had_asked_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    for user in 1..3 {
        first.put(Partition::User(first.store.user(&user.to_string())), "http://a.test/", b"old").await;
    }
    first.put(SHARED, "http://a.test/other", b"other").await;
    first.close().await;
    let second = open(folder.path());
    second.store.invalidate("http://a.test/").await;
    for user in 1..3 {
        assert!(second.find(Partition::User(user), "http://a.test/").await.is_empty());
    }
    second.put(SHARED, "http://a.test/", b"new").await;
    second.close().await;
    let third = open(folder.path());
    assert_eq!(third.get(SHARED, "http://a.test/").await, Some(Ok(b"new".to_vec())));
    assert!(third.find(Partition::User(1), "http://a.test/").await.is_empty());
    assert_eq!(third.get(SHARED, "http://a.test/other").await, Some(Ok(b"other".to_vec())));
}

#[tokio::test]
async fn what_is_invalidated_is_gone_though_the_process_is_killed_at_once() {
    let (folder, as_it_stood) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let held = open(folder.path());
    held.put(SHARED, "http://a.test/", b"old").await;
    held.put(SHARED, "http://a.test/other", b"other").await;
    held.store.settled().await;
    // Much is to be written before it.
    for n in 0..100 {
        held.put(SHARED, &format!("http://b.test/{n}"), &bytes(n, 20_000)).await;
    }
    held.store.invalidate("http://a.test/").await;
    copy(&folder.path().join("store"), &as_it_stood.path().join("store"));
    let again = open(as_it_stood.path());
    assert!(again.find(SHARED, "http://a.test/").await.is_empty());
    assert_eq!(again.get(SHARED, "http://a.test/other").await, Some(Ok(b"other".to_vec())));
    held.close().await;
}

/// What a process leaves that is killed now.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap().is_dir() {
            true => copy(&path, &to),
            false => drop(std::fs::copy(&path, &to).unwrap()),
        }
    }
}

#[tokio::test]
async fn a_renewed_head_and_a_number_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let id = first.put(SHARED, "http://a.test/", b"x").await;
    let mut head = fresh();
    head.fields.insert("x-renewed", http::HeaderValue::from_static("yes"));
    first.store.freshen(id, head).await;
    let later = first.put(SHARED, "http://a.test/later", b"x").await;
    first.close().await;
    let second = open(folder.path());
    assert_eq!(second.store.newest(10).await, [later, id]);
    assert_eq!(second.store.newest(1).await, [later]);
    let (url, held) = second.store.entry(id).await.unwrap();
    assert_eq!((&*url, held.head.fields.get("x-renewed").is_some()), ("http://a.test/", true));
    assert!(second.put(SHARED, "http://a.test/new", b"x").await > later);
}

#[tokio::test]
async fn a_flush_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    first.put(SHARED, "http://a.test/", b"x").await;
    first.close().await;
    let second = open(folder.path());
    let mut changes = second.store.changes();
    second.put(SHARED, "http://a.test/new", b"x").await;
    second.store.clear().await;
    assert!(second.find(SHARED, "http://a.test/").await.is_empty());
    assert!(second.find(SHARED, "http://a.test/new").await.is_empty());
    assert_eq!(second.store.on_disk().await.unwrap().entries, 0);
    assert!(files(folder.path()).is_empty());
    let told: Vec<Change> = std::iter::from_fn(|| changes.try_recv().ok()).collect();
    assert!(told.contains(&Change::Cleared));
    second.put(SHARED, "http://a.test/again", b"x").await;
    second.close().await;
    assert!(open(folder.path()).get(SHARED, "http://a.test/again").await.is_some());
}

#[tokio::test]
async fn what_is_chosen_is_forgotten_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let anna = Partition::User(first.store.user("anna"));
    let all = [
        (SHARED, "http://a.test/1"),
        (anna, "http://a.test/1"),
        (anna, "http://b.test/"),
        (SHARED, "http://b.test/"),
    ];
    for (partition, url) in all {
        first.put(partition, url, b"old").await;
    }
    first.close().await;
    let held = open(folder.path());
    // One is in memory again, the others only on disk; a new one is in memory alone.
    assert_eq!(held.find(SHARED, "http://a.test/1").await.len(), 1);
    held.put(SHARED, "http://a.test/new", b"new").await;
    let of = |site: &'static str| std::sync::Arc::new(move |url: &str| url.starts_with(site));
    assert_eq!(held.store.forget(Some(SHARED), of("http://a.test/")).await, 2);
    assert_eq!(held.find(SHARED, "http://a.test/1").await.len(), 0);
    assert_eq!(held.find(SHARED, "http://a.test/new").await.len(), 0);
    assert_eq!(held.find(anna, "http://a.test/1").await.len(), 1);
    assert_eq!(held.store.forget(Some(anna), of("http://")).await, 2);
    assert_eq!(held.store.forget(Some(anna), of("http://")).await, 0);
    held.close().await;
    let held = open(folder.path());
    assert_eq!(held.find(SHARED, "http://b.test/").await.len(), 1);
    assert_eq!(held.store.on_disk().await.unwrap().entries, 1);
    assert_eq!(held.store.forget(None, of("http://b.test/")).await, 1);
    assert_eq!(held.store.on_disk().await.unwrap().entries, 0);
}

#[tokio::test]
async fn a_body_with_a_bit_changed_or_cut_is_not_served() {
    for length in [100, 200_000] {
        for damage in ["cut", "bit at the start", "bit at the end", "gone"] {
            let folder = tempfile::tempdir().unwrap();
            let first = open(folder.path());
            let id = first.put(SHARED, "http://a.test/", &bytes(1, length)).await;
            first.close().await;
            let file = files(folder.path()).pop().unwrap();
            let mut written = std::fs::read(&file).unwrap();
            let last = written.len() - 1;
            match damage {
                "cut" => drop(written.pop()),
                "bit at the start" => written[20] ^= 1,
                _ => written[last] ^= 1,
            }
            std::fs::write(&file, &written).unwrap();
            if damage == "gone" {
                std::fs::remove_file(&file).unwrap();
            }
            let second = open(folder.path());
            match second.find(SHARED, "http://a.test/").await.first() {
                // Found out before anything of it is served.
                None => {}
                Some(held) => {
                    assert!(length > 100 && damage.starts_with("bit"), "{damage}");
                    let (mut reader, mut read) = (held.body.reader().unwrap(), Vec::new());
                    let end = loop {
                        match reader.next().await {
                            Ok(farhop_store::Piece::Data(piece)) => read.extend_from_slice(&piece),
                            end => break end,
                        }
                    };
                    assert_eq!(end, Err(Broken::Lost), "who reads it can go on elsewhere");
                    assert!(bytes(1, length).starts_with(&read), "no byte that is wrong");
                }
            }
            assert!(second.find(SHARED, "http://a.test/").await.is_empty());
            second.close().await;
            assert!(open(folder.path()).store.entry(id).await.is_none(), "{damage}: forgotten");
        }
    }
}

#[tokio::test]
async fn an_index_that_is_damaged_of_another_key_or_another_format_is_set_aside() {
    for damage in ["header", "zeros", "key", "cut", "folder"] {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path());
        first.put(SHARED, "http://a.test/", b"x").await;
        first.close().await;
        let index = folder.path().join("store/index.redb");
        let mut options = options(folder.path(), 1 << 30);
        match damage {
            "header" => {
                let mut written = std::fs::read(&index).unwrap();
                written[..64].fill(0xaa);
                std::fs::write(&index, written).unwrap();
            }
            "zeros" => std::fs::write(&index, vec![0; 1 << 20]).unwrap(),
            "folder" => {
                // As it was set aside before.
                std::fs::rename(&index, folder.path().join("store/index.set-aside")).unwrap();
                std::fs::create_dir(&index).unwrap();
                std::fs::write(index.join("a file"), "").unwrap();
            }
            "cut" => std::fs::File::options().write(true).open(&index).unwrap().set_len(5000).unwrap(),
            _ => options.key = Key::from_bytes([8; 32]),
        }
        let second = try_open(options).unwrap_or_else(|error| panic!("{damage}: {error}"));
        assert!(second.find(SHARED, "http://a.test/").await.is_empty());
        second.put(SHARED, "http://a.test/", b"new").await;
        assert!(folder.path().join("store/index.set-aside").exists(), "{damage}");
        second.close().await;
    }
}

#[test]
fn what_is_wrong_in_an_index_is_said_in_no_other_words_than_the_stores() {
    let own = std::env::current_exe().unwrap();
    let opens = "whatever_is_wrong_in_an_index_the_store_opens_and_no_wrong_byte_comes";
    let ended = std::process::Command::new(own).args(["--exact", "--nocapture", opens]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && !said.contains("panicked"), "{said}");
}

#[tokio::test]
async fn whatever_is_wrong_in_an_index_the_store_opens_and_no_wrong_byte_comes() {
    let folder = tempfile::tempdir().unwrap();
    let url = |n: u64| format!("http://a.test/{n}");
    let first = open(folder.path());
    for n in 0..100 {
        first.put(SHARED, &url(n), &bytes(n, 50)).await;
    }
    first.close().await;
    let index = folder.path().join("store/index.redb");
    let whole = std::fs::read(&index).unwrap();
    let pages = whole.len() / 4096;
    // All that comes after the header, and stretches of it.
    for (from, to) in [(3, pages), (4, 5), (5, 7), (7, 10), (10, 14), (14, pages / 2)] {
        let mut damaged = whole.clone();
        let stretch = from.min(pages) * 4096..to.min(pages).max(from.min(pages)) * 4096;
        damaged[stretch.clone()].copy_from_slice(&bytes(from as u64, stretch.len()));
        std::fs::write(&index, damaged).unwrap();
        let held = open(folder.path());
        for n in (0..100).step_by(9) {
            if let Some(found) = held.get(SHARED, &url(n)).await {
                assert_eq!(found, Ok(bytes(n, 50)), "pages {from}..{to}");
            }
        }
        held.put(SHARED, &url(1000), b"new").await;
        assert_eq!(held.get(SHARED, &url(1000)).await, Some(Ok(b"new".to_vec())), "pages {from}..{to}");
        held.close().await;
    }
}

#[tokio::test]
async fn two_cannot_have_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let error = try_open(options(folder.path(), 1 << 30)).err().unwrap().to_string();
    let expected = "in use by another process, stop that one or name another folder";
    assert!(error.starts_with("store /") && error.ends_with(expected), "{error}");
    first.close().await;
}

#[tokio::test]
async fn what_was_dated_by_a_clock_that_ran_ahead_is_not_fresh() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let ahead = SystemTime::now() + Duration::from_secs(86_400);
    let head = |at| Stored { requested_at: at, received_at: at, ..fresh() };
    first.put_as(SHARED, "http://a.test/ahead", head(ahead), b"x").await;
    first.put_as(SHARED, "http://a.test/behind", head(SystemTime::UNIX_EPOCH), b"x").await;
    let now = SystemTime::now();
    assert!(!first.find(SHARED, "http://a.test/ahead").await[0].head.is_fresh(Scope::Shared, now));
    first.close().await;
    let second = open(folder.path());
    for url in ["http://a.test/ahead", "http://a.test/behind"] {
        let held = &second.find(SHARED, url).await[0];
        assert!(!held.head.is_fresh(Scope::Shared, now), "{url}");
        assert_eq!(all(&held.body).await.unwrap(), b"x", "it can still be validated");
    }
}

#[tokio::test]
async fn what_goes_while_it_is_read_is_read_to_its_end() {
    // More than memory holds, so that most of it is still to be read when it goes.
    let (url, length) = ("http://a.test/", MEMORY as usize * 2);
    for how in ["evicted", "invalidated", "cleared"] {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path());
        first.put(SHARED, url, &bytes(1, length)).await;
        first.close().await;
        let held = open(folder.path());
        let found = held.find(SHARED, url).await.remove(0);
        let mut reader = found.body.reader().unwrap();
        let Ok(Piece::Data(piece)) = reader.next().await else { panic!("{how}: nothing") };
        let mut read = piece.to_vec();
        match how {
            "evicted" => held.store.evict(found.id).await,
            "invalidated" => held.store.invalidate(url).await,
            _ => held.store.clear().await,
        }
        held.store.settled().await;
        assert!(files(folder.path()).is_empty(), "{how}: it is gone");
        assert!(held.find(SHARED, url).await.is_empty(), "{how}: nobody finds it");
        while let Piece::Data(piece) = reader.next().await.unwrap_or_else(|error| panic!("{how}: {error}")) {
            read.extend_from_slice(&piece);
        }
        assert!(read == bytes(1, length), "{how}");
    }
}

#[tokio::test]
async fn it_never_takes_more_than_it_may_and_keeps_what_is_dear() {
    let folder = tempfile::tempdir().unwrap();
    let size = 2_000_000;
    let held = try_open(options(folder.path(), size)).unwrap();
    let url = |n: u64| format!("http://a.test/{n}");
    for n in 0..100 {
        // Each fifth is small: for its size the dearest to bring again.
        let length = if n % 5 == 0 { 1_000 } else { 100_000 };
        held.put(SHARED, &url(n), &bytes(n, length)).await;
        held.store.settled().await;
    }
    held.close().await;
    let held = try_open(options(folder.path(), size)).unwrap();
    let extent = held.store.on_disk().await.unwrap();
    assert!(extent.bytes <= size, "{extent:?}");
    let taken: u64 = files(folder.path()).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(taken <= size, "{taken}");
    let ids = held.store.newest(1000).await;
    assert_eq!(ids.len() as u64, extent.entries);
    let mut small = 0;
    for n in (0..100).step_by(5) {
        small += held.find(SHARED, &url(n)).await.len();
    }
    assert!(small >= 19, "{small} of 20");
}

#[tokio::test]
async fn what_no_one_may_store_or_could_use_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    for said in ["no-store, max-age=3600", "max-age=1"] {
        let mut head = fresh();
        head.fields.insert("cache-control", said.parse().unwrap());
        held.put_as(SHARED, &format!("http://a.test/{}", said.len()), head, b"x").await;
    }
    held.close().await;
    assert!(files(folder.path()).is_empty());
}

#[tokio::test]
async fn of_too_many_variants_the_one_goes_that_was_unused_longest_on_disk_too() {
    let folder = tempfile::tempdir().unwrap();
    let (held, url) = (open(folder.path()), "http://a.test/");
    let agent = |number: usize| {
        let value = HeaderValue::from_str(&format!("browser {number}")).unwrap();
        HeaderMap::from_iter([(header::USER_AGENT, value)])
    };
    let varied = |number: usize| {
        let mut fields = fresh().fields;
        fields.insert(header::VARY, HeaderValue::from_static("user-agent"));
        let now = SystemTime::now();
        Stored::new(&agent(number), StatusCode::OK, &fields, now, now)
    };
    for number in 0..40 {
        let mut keeping = held.store.keep_passing(SHARED, url, &varied(number), 1).unwrap();
        keeping.write(&Bytes::from_static(b"a page"));
        keeping.ended(None, 6);
        keeping.finish().await.unwrap();
        // The first browser comes again and again.
        assert_eq!(held.store.find(SHARED, url, &agent(0)).await.len(), 1, "{number}");
    }
    held.close().await;
    let held = open(folder.path());
    let mut there = Vec::new();
    for number in 0..40 {
        if !held.store.find(SHARED, url, &agent(number)).await.is_empty() {
            there.push(number);
        }
    }
    let expected: Vec<usize> = [0].into_iter().chain(9..40).collect();
    assert_eq!(there, expected);
}
