//! What is held on disk answers after a restart, each user what is its own.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::frame::Coding;
use http::{HeaderMap, HeaderValue, header};
use std::net::Ipv4Addr;
use std::path::Path;
use support::{CACHEABLE, UNCACHEABLE, World, answer, head, send, until, world_with};

const PRIVATE: &[(&str, &str)] = &[("content-type", "text/html"), ("cache-control", "private, max-age=600")];
/// A client that is not the one of [`World::client`].
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A remote with its store in this folder.
async fn world(folder: &Path) -> World {
    world_of(folder, &[]).await
}

/// One whose memory has no room for what is long.
async fn narrow_world(folder: &Path) -> World {
    let sizes = ["repository.size=\"1 MB\"", "repository.entry=\"100 kB\"", "store.entry=\"500 kB\""];
    world_of(folder, &sizes).await
}

async fn world_of(folder: &Path, more: &[&str]) -> World {
    let set = |name: &str, file: &str| format!("store.{name}={:?}", folder.join(file));
    let (directory, key) = (set("directory", "store"), set("key", "store.key"));
    world_with(&[&[&*directory, &*key], more].concat()).await
}

/// A client fetches a path, and ground answers it with these fields and this body.
async fn fetch(world: &World, path: &str, fields: &[(&'static str, &'static str)], body: &[u8]) {
    let client = world.get(path, "").await;
    let mut asked = world.asked().await;
    let mut head = head(fields);
    head.fields.insert(header::CONTENT_LENGTH, body.len().into());
    asked.sender.answer(&head, Coding::Identity, None);
    for piece in body.chunks(10_000) {
        asked.sender.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    asked.sender.finish(None);
    assert!(answer(client).await.ends_with(std::str::from_utf8(body).unwrap()));
}

#[tokio::test]
async fn what_is_held_answers_after_a_restart_without_crossing() {
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path()).await;
    let long = "0123456789".repeat(30_000);
    fetch(&first, "/short.css", CACHEABLE, b"a{}").await;
    fetch(&first, "/long.css", CACHEABLE, long.as_bytes()).await;
    first.running.stop().await;

    let second = world(folder.path()).await;
    assert!(answer(second.get("/short.css", "").await).await.ends_with("\r\n\r\na{}"));
    assert!(answer(second.get("/long.css", "").await).await.ends_with(&long));
    assert!(answer(second.get("/long.css", "").await).await.ends_with(&long), "from memory now");
}

#[tokio::test]
async fn what_is_too_long_for_memory_is_kept_on_disk_while_it_passes_and_answers_also_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let first = narrow_world(folder.path()).await;
    let long = "0123456789".repeat(30_000);
    let tagged = [("cache-control", "max-age=600"), ("etag", "\"1\"")];
    let mut events = first.bus.subscribe();
    fetch(&first, "/long", &tagged, long.as_bytes()).await;
    // It is held as soon as it is on disk, which its client has not waited for.
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    assert!(answer(first.get("/long", "").await).await.ends_with(&long));
    let part = answer(first.get("/long", "range: bytes=299990-\r\n").await).await;
    assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\n0123456789"), "{part}");
    // What is longer than that only passes.
    fetch(&first, "/longer", &tagged, long.repeat(2).as_bytes()).await;
    first.running.stop().await;

    let second = narrow_world(folder.path()).await;
    assert!(answer(second.get("/long", "").await).await.ends_with(&long));
    fetch(&second, "/longer", &tagged, b"asked for again").await;
}

/// A player asks for a film from its beginning, and ground answers with these fields and this body.
async fn play(world: &World, path: &str, fields: &[(&'static str, String)], body: &str) {
    let client = world.get(path, "range: bytes=0-\r\n").await;
    let mut asked = world.asked().await;
    let mut head = head(&[("cache-control", "max-age=600"), ("content-type", "video/mp4")]);
    head.status = http::StatusCode::PARTIAL_CONTENT;
    for (name, value) in fields {
        head.fields.insert(*name, value.parse().unwrap());
    }
    asked.sender.answer(&head, Coding::Identity, None);
    for piece in body.as_bytes().chunks(10_000) {
        asked.sender.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    asked.sender.finish(None);
    assert!(answer(client).await.starts_with("HTTP/1.1 206 "));
}

#[tokio::test]
async fn what_players_ask_for_from_its_beginning_is_kept_as_the_whole_that_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let first = narrow_world(folder.path()).await;
    let long = "0123456789".repeat(30_000);
    let [strong, weak] = ["\"1\"", "W/\"1\""].map(|tag| ("etag", tag.to_owned()));
    let says = |length: usize| ("content-length", length.to_string());
    let range = |to: usize, all: usize| ("content-range", format!("bytes 0-{}/{all}", to - 1));
    let mut events = first.bus.subscribe();
    let (all, short) = (long.len(), &long[..50_000]);
    play(&first, "/long", &[strong.clone(), says(all), range(all, all)], &long).await;
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    play(&first, "/short", &[strong.clone(), says(50_000), range(50_000, 50_000)], short).await;
    until(&mut events, |event| matches!(event, Event::Stored { .. })).await;
    // One that may be of another version, one that is not all, and one that says other things of itself than it is.
    play(&first, "/weak", &[weak, says(all), range(all, all)], &long).await;
    play(&first, "/part", &[strong.clone(), says(200_000), range(200_000, all)], &long[..200_000]).await;
    play(&first, "/other", &[strong, says(50_000), range(60_000, 60_000)], short).await;
    for path in ["/weak", "/part", "/other"] {
        fetch(&first, path, UNCACHEABLE, b"asked for").await;
    }
    first.running.stop().await;

    let second = narrow_world(folder.path()).await;
    for path in ["/long", "/short"] {
        let again = answer(second.get(path, "range: bytes=0-\r\n").await).await;
        assert!(again.starts_with("HTTP/1.1 206 ") && again.ends_with("0123456789"), "{}", &again[..300]);
        let part = answer(second.get(path, "range: bytes=49990-49999\r\n").await).await;
        assert!(part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\n0123456789"), "{part}");
    }
    let whole = answer(second.get("/long", "").await).await;
    assert!(whole.starts_with("HTTP/1.1 200 ") && whole.ends_with(&long));
    assert_eq!(second.crossed(), 0);
}

/// The file of the only long body that is held.
fn long_body(folder: &Path) -> std::path::PathBuf {
    let mut found = Vec::new();
    for spread in std::fs::read_dir(folder.join("store/bodies")).unwrap() {
        let files = std::fs::read_dir(spread.unwrap().path()).unwrap();
        found.extend(files.map(|file| file.unwrap().path()));
    }
    found.into_iter().find(|file| std::fs::metadata(file).unwrap().len() > 100_000).expect("it is held")
}

#[tokio::test]
async fn a_long_body_that_is_damaged_is_asked_for_as_if_it_had_not_been_held() {
    // Of the second range nothing lies in the first chunk, and nothing can be given before it.
    for (asked, damaged_at) in [("", 5000), ("range: bytes=140000-140009\r\n", 140_000)] {
        let folder = tempfile::tempdir().unwrap();
        let first = world(folder.path()).await;
        let long = "0123456789".repeat(30_000);
        let tagged = [("cache-control", "max-age=600"), ("etag", "\"1\"")];
        fetch(&first, "/long", &tagged, long.as_bytes()).await;
        first.running.stop().await;
        let file = long_body(folder.path());
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[damaged_at] ^= 1;
        std::fs::write(&file, bytes).unwrap();

        let second = world(folder.path()).await;
        let client = second.get("/long", asked).await;
        let mut crossed = second.asked().await;
        assert!(crossed.resume.is_none() && !crossed.head.fields.contains_key(header::IF_NONE_MATCH));
        // By now it is another one, which could not follow the head of what was held.
        crossed.sender.answer(&head(&[("etag", "\"2\"")]), Coding::Identity, None);
        crossed.sender.write(Bytes::from_static(b"changed")).await.unwrap();
        crossed.sender.finish(None);
        let got = answer(client).await;
        assert!(got.starts_with("HTTP/1.1 200 ") && got.contains("Etag: \"2\""), "{got}");
        assert!(got.contains("changed"), "{got}");
    }
}

#[tokio::test]
async fn what_is_one_users_own_is_that_users_after_a_restart_and_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path()).await;
    fetch(&first, "/own", PRIVATE, b"of one").await;
    first.running.stop().await;

    let second = world(folder.path()).await;
    // The other comes first: in this process it is the first user that there is.
    let mut other = second.client_at(OTHER).await;
    send(&mut other, "GET", "/own", "").await;
    let mut asked = second.asked().await;
    asked.sender.answer(&head(PRIVATE), Coding::Identity, None);
    asked.sender.write(Bytes::from_static(b"of the other")).await.unwrap();
    asked.sender.finish(None);
    assert!(answer(other).await.contains("of the other"));
    assert!(answer(second.get("/own", "").await).await.ends_with("of one"));
}

#[tokio::test]
async fn what_was_held_and_is_stale_is_validated_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = world(folder.path()).await;
    fetch(&first, "/page", &[("cache-control", "no-cache"), ("etag", "\"1\"")], b"held").await;
    first.running.stop().await;

    let second = world(folder.path()).await;
    let client = second.get("/page", "").await;
    let mut asked = second.asked().await;
    assert_eq!(asked.head.fields.get(header::IF_NONE_MATCH), Some(&HeaderValue::from_static("\"1\"")));
    let fields = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"1\""))]);
    let unchanged = farhop_htotp::ResponseHead { status: http::StatusCode::NOT_MODIFIED, fields };
    asked.sender.answer(&unchanged, Coding::Identity, None);
    asked.sender.finish(None);
    assert!(answer(client).await.ends_with("held"));
}

#[tokio::test]
async fn what_must_not_be_stored_leaves_no_trace_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path()).await;
    fetch(&world, "/secret", &[("cache-control", "no-store"), ("x-secret", "4711")], b"a secret").await;
    fetch(&world, "/own", PRIVATE, b"a private body").await;
    world.running.stop().await;
    let mut files = Vec::new();
    let mut folders = vec![folder.path().join("store")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert_eq!(
        files.iter().filter(|path| path.components().any(|part| part.as_os_str() == "bodies")).count(),
        1
    );
    let plain: [&[u8]; 6] = [b"/secret", b"4711", b"a secret", b"/own", b"a private body", b"site.test"];
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let found = plain.iter().find(|text| bytes.windows(text.len()).any(|part| part == **text));
        assert_eq!(found, None, "{}", file.display());
    }
}

#[tokio::test]
async fn a_store_in_use_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let _first = world(folder.path()).await;
    let key = farhop_store::Key::load_or_make(&folder.path().join("store.key")).unwrap();
    let link = farhop_replacement::Link {
        round_trip: std::time::Duration::from_millis(650),
        rate: farhop_units::BitRate::mbit(8),
    };
    let options = farhop_store::DiskOptions { folder: folder.path().join("store"), size: 1 << 30, key, link };
    let error = farhop_store::Disk::open(options).err().expect("it is in use").to_string();
    assert!(error.contains("in use by another process") && error.lines().count() == 1, "{error}");
}
