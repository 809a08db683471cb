//! What the remote tells ground of what it holds.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_htotp::mirror::{Bound, Entry, Word, fingerprint};
use farhop_transport::hop::{Hop, Incoming};
use http::{HeaderMap, HeaderValue, header};
use support::{PATIENCE, World, answer, head, world};
use tokio::time::timeout;

const ANYONES: &[(&str, &str)] = &[("cache-control", "max-age=600"), ("vary", "accept-encoding")];
const ONES_OWN: &[(&str, &str)] = &[("cache-control", "private, max-age=600")];

async fn told(hop: &Hop) -> Word {
    loop {
        let incoming = timeout(PATIENCE, hop.accept()).await.expect("a word comes").unwrap();
        if let Incoming::Mirror(word) = incoming {
            return word;
        }
    }
}

/// The entries of the next word that is not about a new beginning.
async fn stored(hop: &Hop) -> Vec<Entry> {
    loop {
        match told(hop).await {
            Word::Reset => {}
            Word::Stored(entries) => return entries,
            other => panic!("{other:?}"),
        }
    }
}

/// A client fetches a path that is answered with these fields.
async fn fetch(world: &World, path: &str, fields: &[(&'static str, &'static str)]) {
    let client = world.get(path, "accept-encoding: gzip\r\ncookie: a=1\r\n").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&head(fields), Coding::Identity, None);
    asked.sender.write(Bytes::from_static(b"body")).await.unwrap();
    asked.sender.finish(None);
    assert!(answer(client).await.contains("body"));
}

#[tokio::test]
async fn what_is_stored_and_gone_is_told_and_all_of_it_again_on_the_next_carrier() {
    let mut world = world().await;
    assert_eq!(told(&world.hop).await, Word::Reset);
    fetch(&world, "/a", ANYONES).await;
    let [entry] = stored(&world.hop).await[..] else { panic!("one entry") };
    let bound = Bound::to([&header::ORIGIN, &header::ACCEPT_ENCODING]).unwrap();
    let mut request = HeaderMap::new();
    request.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    let print = fingerprint(None, "http://site.test/a", bound, &request);
    assert_eq!((entry.user, entry.bound, entry.fingerprint), (None, bound, print));
    assert!((590..=600).contains(&entry.fresh_s), "{}", entry.fresh_s);

    fetch(&world, "/own", ONES_OWN).await;
    let [own] = stored(&world.hop).await[..] else { panic!("one entry") };
    assert!(own.user.is_some());

    world.lose_carrier().await;
    assert_eq!(told(&world.hop).await, Word::Reset);
    let mut again = stored(&world.hop).await;
    again.iter_mut().for_each(|entry| entry.fresh_s = 0);
    let expected = [own, entry].map(|entry| Entry { fresh_s: 0, ..entry });
    assert_eq!(again, expected, "newest first");

    // A change at the origin: what is held of the URL goes (RFC 9111 §4.4).
    let mut client = world.client().await;
    support::send(&mut client, "DELETE", "/a", "").await;
    let mut asked = world.asked().await;
    asked.sender.answer(&head(&[]), Coding::Identity, None);
    asked.sender.finish(None);
    answer(client).await;
    assert_eq!(told(&world.hop).await, Word::Evicted(vec![entry.number]));
}

#[tokio::test]
async fn what_is_stale_at_once_or_varies_by_unknown_fields_is_not_told() {
    let world = world().await;
    fetch(&world, "/stale", &[("cache-control", "max-age=5")]).await;
    fetch(&world, "/checked", &[("cache-control", "no-cache, max-age=600")]).await;
    fetch(&world, "/varied", &[("cache-control", "max-age=600"), ("vary", "x-own")]).await;
    fetch(&world, "/told", ANYONES).await;
    let entries = stored(&world.hop).await;
    assert_eq!(entries.len(), 1, "only the last: {entries:?}");
}
