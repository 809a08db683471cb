//! Bodies that are kept while they come: those too long for memory, and what becomes of them if something happens meanwhile.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_store::{Body, Change, Piece, Repository};
use support::{MEMORY, SHARED, bytes, files, fresh, open, options, try_open};

#[tokio::test]
async fn a_body_is_read_while_it_arrives_and_written_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let (mut intake, body) = Body::new(&first.budget, 1 << 20);
    first.store.store(SHARED, "http://a.test/", fresh(), body).await;
    intake.write(bytes(1, 1000).into()).await;
    let held = first.find(SHARED, "http://a.test/").await.remove(0);
    let mut reader = held.body.reader().unwrap();
    assert!(matches!(reader.next().await, Ok(Piece::Data(_))));
    assert!(files(folder.path()).is_empty(), "not before it is whole");
    intake.write(bytes(2, 1000).into()).await;
    intake.finish(None);
    assert!(matches!(reader.next().await, Ok(Piece::Data(_))));
    first.close().await;
    let whole = [bytes(1, 1000), bytes(2, 1000)].concat();
    assert_eq!(open(folder.path()).get(SHARED, "http://a.test/").await, Some(Ok(whole)));
}

/// Keeps a response on disk alone, as its body passes in pieces; its number, if it is held then.
async fn keep_passing(held: &support::Opened, url: &str, body: &[u8]) -> Option<u64> {
    let mut keeping = held.store.keep_passing(SHARED, url, &fresh(), 1)?;
    body.chunks(10_000).for_each(|piece| keeping.write(&Bytes::copy_from_slice(piece)));
    keeping.ended(None, body.len() as u64);
    keeping.finish().await
}

#[tokio::test]
async fn what_is_too_long_for_memory_is_kept_while_it_passes() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = 64 * 1024;
    let lengths = [0, 1, chunk, chunk + 1, 3 << 20];
    let url = |length: usize| format!("http://a.test/{length}");
    let held = open(folder.path());
    let mut changes = held.store.changes();
    for length in lengths {
        let id = keep_passing(&held, &url(length), &bytes(length as u64, length)).await.unwrap();
        assert!(
            matches!(changes.try_recv(), Ok(Change::Stored { id: told, partition: SHARED, .. }) if told == id)
        );
    }
    // Once in the process that has written it, and again since nobody holds it in memory, and once in the next one.
    for _ in 0..2 {
        for length in lengths {
            assert!(held.get(SHARED, &url(length)).await.unwrap().unwrap() == bytes(length as u64, length));
            assert!(held.budget.used() <= MEMORY / 4, "{length}: {}", held.budget.used());
        }
    }
    held.close().await;
    let held = open(folder.path());
    for length in lengths {
        assert!(held.get(SHARED, &url(length)).await.unwrap().unwrap() == bytes(length as u64, length));
    }
}

#[tokio::test]
async fn what_is_given_up_while_it_passes_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let begun = |length| {
        let mut keeping = held.store.keep_passing(SHARED, "http://a.test/", &fresh(), 1).unwrap();
        keeping.write(&Bytes::from(bytes(1, length)));
        keeping
    };
    for length in [1_000, 300_000] {
        drop(begun(length));
        assert_eq!(begun(length).finish().await, None, "nobody has said that it was all");
    }
    held.store.settled().await;
    assert!(files(folder.path()).is_empty());
    assert!(held.find(SHARED, "http://a.test/").await.is_empty());
}

#[tokio::test]
async fn what_is_invalidated_replaced_or_flushed_while_it_passes_is_not_held() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let begun = |url: &str, length| {
        let mut keeping = held.store.keep_passing(SHARED, url, &fresh(), 1).unwrap();
        keeping.write(&Bytes::from(bytes(1, length)));
        keeping.ended(None, length as u64);
        keeping
    };
    for length in [1_000, 300_000] {
        let (invalidated, replaced) = (begun("http://a.test/1", length), begun("http://a.test/2", length));
        held.store.invalidate("http://a.test/1").await;
        held.put(SHARED, "http://a.test/2", b"asked for later").await;
        assert_eq!((invalidated.finish().await, replaced.finish().await), (None, None));
        assert!(held.find(SHARED, "http://a.test/1").await.is_empty());
        assert_eq!(held.get(SHARED, "http://a.test/2").await, Some(Ok(b"asked for later".to_vec())));
        let flushed = begun("http://a.test/3", length);
        held.store.clear().await;
        assert_eq!(flushed.finish().await, None);
        held.store.settled().await;
        assert!(files(folder.path()).is_empty());
    }
}

#[tokio::test]
async fn an_invalidation_counts_however_many_come_after_it_while_a_body_grows() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let before = fresh();
    let begun = |url: &str, length| {
        let mut keeping = held.store.keep_passing(SHARED, url, &fresh(), 1).unwrap();
        keeping.write(&Bytes::from(bytes(1, length)));
        keeping.ended(None, length as u64);
        keeping
    };
    let (short, long) = (begun("http://a.test/short", 1_000), begun("http://a.test/long", 300_000));
    let other = begun("http://a.test/other", 1_000);
    for url in ["http://a.test/short", "http://a.test/long"] {
        held.store.invalidate(url).await;
    }
    for number in 0..5_000 {
        held.store.invalidate(&format!("http://b.test/{number}")).await;
    }
    assert_eq!((short.finish().await, long.finish().await), (None, None));
    assert!(other.finish().await.is_some(), "nobody has changed it");
    // What was asked for before them and begins to come now may have been invalidated, as far as is known here.
    assert!(held.store.keep_passing(SHARED, "http://a.test/slow", &before, 1).is_none());
    held.put_as(SHARED, "http://a.test/slow", before, b"late").await;
    assert!(held.find(SHARED, "http://a.test/slow").await.is_empty());
    keep_passing(&held, "http://a.test/short", b"new").await.unwrap();
    assert_eq!(held.get(SHARED, "http://a.test/short").await, Some(Ok(b"new".to_vec())));
}

#[tokio::test]
async fn what_is_short_takes_no_file_while_it_comes_and_one_who_asks_takes_no_more_than_a_share() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let begun = |url: String, length: usize, asker| {
        let mut keeping = held.store.keep_passing(SHARED, &url, &fresh(), asker).unwrap();
        bytes(1, length).chunks(10_000).for_each(|piece| keeping.write(&Bytes::copy_from_slice(piece)));
        keeping.ended(None, length as u64);
        keeping
    };
    let short: Vec<_> = (0..80).map(|number| begun(format!("http://a.test/{number}"), 100_000, 1)).collect();
    held.store.settled().await;
    assert!(files(folder.path()).is_empty());
    for keeping in short {
        assert!(keeping.finish().await.is_some());
    }
    let refused = async || held.store.on_disk().await.unwrap().refused;
    assert_eq!((files(folder.path()).len(), refused().await), (80, 0));
    let long: Vec<_> = (0..20).map(|number| begun(format!("http://b.test/{number}"), 300_000, 1)).collect();
    let of_another = begun("http://c.test/".into(), 300_000, 2);
    assert_eq!(refused().await, 4);
    assert!(of_another.finish().await.is_some());
    let mut kept = 0;
    for keeping in long {
        kept += usize::from(keeping.finish().await.is_some());
    }
    assert_eq!(kept, 16);
    assert!(begun("http://d.test/".into(), 300_000, 1).finish().await.is_some(), "there is room again");
    assert_eq!(refused().await, 4);
}

#[tokio::test]
async fn what_is_short_and_has_no_room_in_memory_goes_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let _full = Body::whole(&held.budget, Bytes::from(bytes(1, MEMORY as usize - 1_000)), None);
    for url in ["http://a.test/1", "http://a.test/2"] {
        assert!(keep_passing(&held, url, &bytes(2, 100_000)).await.is_some());
        assert!(held.get(SHARED, url).await.unwrap().unwrap() == bytes(2, 100_000));
        assert!(held.get(SHARED, url).await.unwrap().unwrap() == bytes(2, 100_000), "again");
    }
}

#[tokio::test]
async fn what_has_passed_takes_the_place_of_what_was_held() {
    let folder = tempfile::tempdir().unwrap();
    let (long, url) = (bytes(2, 300_000), "http://a.test/");
    let held = open(folder.path());
    held.put(SHARED, url, b"before").await;
    held.close().await;
    let held = open(folder.path());
    keep_passing(&held, url, &long).await.unwrap();
    assert!(held.get(SHARED, url).await.unwrap().unwrap() == long);
    held.close().await;
    let held = open(folder.path());
    assert!(held.get(SHARED, url).await.unwrap().unwrap() == long);
    assert_eq!((held.find(SHARED, url).await.len(), files(folder.path()).len()), (1, 1));
}

#[tokio::test]
async fn what_takes_more_than_its_share_of_the_disk_is_not_kept_nor_is_anything_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let held = try_open(options(folder.path(), 16 << 20)).unwrap();
    assert_eq!(keep_passing(&held, "http://a.test/", &bytes(1, 3 << 20)).await, None);
    assert!(files(folder.path()).is_empty());
    let without = farhop_store::Store::in_memory(farhop_store::Budget::new(MEMORY));
    assert!(without.keep_passing(SHARED, "http://a.test/", &fresh(), 1).is_none());
}

/// A response that is held while it comes, in pieces, until memory has no more room for it, and then goes on on disk.
async fn outgrow(held: &support::Opened, url: &str, body: &[u8], most: u64) -> Option<u64> {
    let (mut intake, arriving) = Body::new(&held.budget, 200_000);
    let _reader = arriving.reader();
    let id = held.store.store(SHARED, url, fresh(), arriving).await;
    let mut keeping = None;
    for piece in body.chunks(10_000).map(Bytes::copy_from_slice) {
        if let Some(keeping) = &mut keeping {
            farhop_store::Keeping::write(keeping, &piece);
        }
        if let Some(all) = intake.push(piece) {
            keeping = held.store.keep_outgrown(id, 1, most);
            keeping.as_mut()?.write_all(all).await;
            assert!(held.find(SHARED, url).await.is_empty(), "not before it is whole");
        }
    }
    let mut keeping = keeping?;
    keeping.ended(None, body.len() as u64);
    keeping.finish().await
}

#[tokio::test]
async fn what_turns_out_to_be_too_long_for_memory_goes_on_on_disk_up_to_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let (long, url) = (bytes(1, 3 << 20), "http://a.test/");
    let held = open(folder.path());
    assert!(outgrow(&held, url, &long, 3 << 20).await.is_some());
    assert!(held.get(SHARED, url).await.unwrap().unwrap() == long);
    assert_eq!(outgrow(&held, "http://b.test/", &long, (3 << 20) - 1).await, None, "a byte too many");
    assert!(held.find(SHARED, "http://b.test/").await.is_empty());
    assert_eq!(held.store.on_disk().await.unwrap().refused, 0, "nobody's fault");
    held.close().await;
    let held = open(folder.path());
    assert!(held.get(SHARED, url).await.unwrap().unwrap() == long);
    assert_eq!(files(folder.path()).len(), 1);
}

#[tokio::test]
async fn what_was_invalidated_or_replaced_before_it_was_too_long_for_memory_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let held = open(folder.path());
    let (_intake, arriving) = Body::new(&held.budget, 1000);
    let id = held.store.store(SHARED, "http://a.test/", fresh(), arriving).await;
    held.store.invalidate("http://a.test/").await;
    assert!(held.store.keep_outgrown(id, 1, 1 << 20).is_none());
    let (_intake, arriving) = Body::new(&held.budget, 1000);
    let id = held.store.store(SHARED, "http://b.test/", fresh(), arriving).await;
    held.put(SHARED, "http://b.test/", b"asked for later").await;
    assert!(held.store.keep_outgrown(id, 1, 1 << 20).is_none());
    assert_eq!(held.get(SHARED, "http://b.test/").await, Some(Ok(b"asked for later".to_vec())));
}
