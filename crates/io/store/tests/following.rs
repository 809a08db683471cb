//! Bodies that are read while they are written to disk: what is there at once, the rest as it comes, and what becomes of those who
//! read when something happens meanwhile.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use bytes::Bytes;
use farhop_store::{Body, Broken, Change, Keeping, Piece, Reader, Repository};
use support::{Opened, SHARED, all, bytes, files, fresh, open, options, try_open};
use tokio::time::timeout;

const URL: &str = "http://a.test/";
const CHUNK: usize = 64 * 1024;

/// Begins to keep what others may read meanwhile.
fn offered(held: &Opened, url: &str) -> Keeping {
    let mut keeping = held.store.keep_passing(SHARED, url, &fresh(), 1).unwrap();
    assert!(keeping.offer());
    keeping
}

fn write(keeping: &mut Keeping, bytes: &[u8]) {
    bytes.chunks(10_000).for_each(|piece| keeping.write(&Bytes::copy_from_slice(piece)));
}

/// Reads until so many bytes are there.
async fn read(reader: &mut Reader, got: &mut Vec<u8>, enough: usize) {
    while got.len() < enough {
        match timeout(Duration::from_secs(20), reader.next()).await.expect("it comes").unwrap() {
            Piece::Data(piece) => got.extend_from_slice(&piece),
            Piece::End(_) => return,
        }
    }
}

async fn reader(held: &Opened, url: &str) -> Reader {
    held.find(SHARED, url).await.remove(0).body.reader().unwrap()
}

#[tokio::test]
async fn what_is_there_comes_at_once_and_the_rest_as_it_comes_however_its_pieces_lie() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    for (number, step) in [1_000, 10_000, CHUNK, CHUNK + 1, 200_000].into_iter().enumerate() {
        let (url, body) = (format!("{URL}{number}"), bytes(number as u64, 400_000));
        let (mut keeping, used) = (offered(&held, &url), held.budget.used());
        let mut readers: Vec<(Reader, Vec<u8>)> = Vec::new();
        let mut written = 0;
        for piece in body.chunks(step) {
            // One more joins, and has what there is at once.
            if readers.len() < 4 {
                let (mut reader, mut got) = (reader(&held, &url).await, Vec::new());
                read(&mut reader, &mut got, written).await;
                readers.push((reader, got));
            }
            write(&mut keeping, piece);
            written += piece.len();
            for (reader, got) in &mut readers {
                read(reader, got, written).await;
                assert!(*got == body[..written]);
            }
        }
        keeping.ended(None, 1);
        assert!(keeping.finish().await.is_some());
        for (mut reader, mut got) in readers {
            read(&mut reader, &mut got, usize::MAX).await;
            assert!(got == body, "step {step}");
        }
        assert_eq!(held.budget.used(), used, "it only passes through memory");
        assert!(held.get(SHARED, &url).await.unwrap().unwrap() == body);
    }
    held.close().await;
    assert!(open(folder.path()).get(SHARED, &format!("{URL}4")).await.unwrap().unwrap() == bytes(4, 400_000));
}

#[tokio::test]
async fn it_is_told_of_once_and_is_whole_only_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    held.put(SHARED, URL, b"before").await;
    let mut changes = held.store.changes();
    let mut keeping = offered(&held, URL);
    write(&mut keeping, &bytes(1, 100_000));
    let found = held.find(SHARED, URL).await;
    assert_eq!((found.len(), found[0].body.is_whole(), found[0].body.written()), (1, false, 100_000));
    assert!(matches!(changes.try_recv(), Ok(Change::Evicted { .. })), "what was there goes");
    assert!(changes.try_recv().is_err(), "what may never be whole is told to nobody");
    drop(offered(&held, "http://b.test/"));
    assert!(changes.try_recv().is_err(), "nor that it is not");
    let id = keeping.offered().unwrap();
    keeping.ended(None, 1);
    assert_eq!(keeping.finish().await, Some(id));
    let found = held.find(SHARED, URL).await;
    assert_eq!((found.len(), found[0].body.is_whole(), found[0].body.written()), (1, true, 100_000));
    assert!(matches!(changes.try_recv(), Ok(Change::Stored { id: told, .. }) if told == id));
    assert!(changes.try_recv().is_err());
}

#[tokio::test]
async fn who_reads_what_is_given_up_is_told_that_it_was_lost_and_nobody_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    for length in [1_000, 300_000] {
        let mut keeping = offered(&held, URL);
        let (mut first, mut got) = (reader(&held, URL).await, Vec::new());
        write(&mut keeping, &bytes(1, length));
        read(&mut first, &mut got, length).await;
        drop(keeping);
        assert_eq!(first.next().await, Err(Broken::Lost));
        assert!(held.find(SHARED, URL).await.is_empty());
        held.store.settled().await;
        assert!(files(folder.path()).is_empty());
    }
}

#[tokio::test]
async fn who_has_begun_gets_all_of_what_is_invalidated_or_replaced_and_nobody_else_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    for replaces in [false, true] {
        let body = bytes(1, 300_000);
        let mut keeping = offered(&held, URL);
        write(&mut keeping, &body[..200_000]);
        let (mut first, mut got) = (reader(&held, URL).await, Vec::new());
        read(&mut first, &mut got, CHUNK).await;
        match replaces {
            false => held.store.invalidate(URL).await,
            true => drop(held.put(SHARED, URL, b"newer").await),
        }
        assert_eq!(held.find(SHARED, URL).await.len(), usize::from(replaces));
        write(&mut keeping, &body[200_000..]);
        keeping.ended(None, 1);
        assert_eq!(keeping.finish().await, None);
        read(&mut first, &mut got, usize::MAX).await;
        assert!(got == body);
        assert_eq!(held.find(SHARED, URL).await.len(), usize::from(replaces));
    }
    let newer = held.get(SHARED, URL).await;
    assert_eq!(newer, Some(Ok(b"newer".to_vec())));
}

#[tokio::test]
async fn what_the_disk_does_not_take_is_found_by_nobody_and_lost_to_who_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    // An eighth of that is the most for one.
    let held = try_open(options(folder.path(), 16 << 20)).unwrap();
    let mut keeping = offered(&held, URL);
    let mut first = reader(&held, URL).await;
    write(&mut keeping, &bytes(1, 3 << 20));
    held.store.settled().await;
    assert!(held.find(SHARED, URL).await.is_empty());
    let mut broken = None;
    while broken.is_none() {
        broken = timeout(Duration::from_secs(20), first.next()).await.expect("it ends").err();
    }
    assert_eq!(broken, Some(Broken::Lost));
    keeping.ended(None, 1);
    assert_eq!(keeping.finish().await, None);
}

#[tokio::test]
async fn memory_that_is_short_takes_nothing_from_what_grows() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let body = bytes(1, 300_000);
    let mut keeping = offered(&held, URL);
    write(&mut keeping, &body[..150_000]);
    let mut first = reader(&held, URL).await;
    for number in 0..40 {
        held.put(SHARED, &format!("http://b.test/{number}"), &bytes(number, 200_000)).await;
    }
    write(&mut keeping, &body[150_000..]);
    keeping.ended(None, 1);
    assert!(keeping.finish().await.is_some());
    let mut got = Vec::new();
    read(&mut first, &mut got, usize::MAX).await;
    assert!(got == body);
    let second = held.find(SHARED, URL).await.remove(0).body;
    assert!(all(&second).await.unwrap() == body);
}

#[tokio::test]
async fn who_writes_knows_whether_anyone_reads_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let mut keeping = offered(&held, URL);
    keeping.left().await;
    let waits = async |keeping: &Keeping| timeout(Duration::ZERO, keeping.awaited()).await.is_ok();
    assert!(!waits(&keeping).await);
    let (mut first, mut got) = (reader(&held, URL).await, Vec::new());
    keeping.awaited().await;
    assert!(timeout(Duration::ZERO, keeping.left()).await.is_err());
    write(&mut keeping, &bytes(1, 1 << 20));
    held.store.settled().await;
    read(&mut first, &mut got, 1 << 20).await;
    keeping.awaited().await;
    // Who has found it and reads nothing of it holds up nobody, nor is waited for.
    let _found: Body = held.find(SHARED, URL).await.remove(0).body;
    drop(first);
    keeping.left().await;
    assert!(!waits(&keeping).await);
}
