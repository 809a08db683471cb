//! What the remote tells ground of what it holds.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_htotp::mirror::{Bound, Entry, Position, Word, fingerprint};
use farhop_htotp::session::Config;
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

#[tokio::test]
async fn an_image_that_ground_has_made_is_told_though_it_depends_on_being_asked_for_as_one() {
    let world = world().await;
    let (fresh, varies) =
        (("cache-control", "max-age=600"), ("vary", "accept, sec-fetch-dest, sec-fetch-mode"));
    fetch(&world, "/origins", &[fresh, varies, ("etag", "\"1\"")]).await;
    fetch(&world, "/made", &[fresh, varies, ("etag", "W/\"farhop.balanced.webp.s.1\"")]).await;
    let bound = Bound::to([&header::ORIGIN, &header::ACCEPT]).unwrap();
    let entries = stored(&world.hop).await;
    assert_eq!(entries.iter().map(|entry| entry.bound).collect::<Vec<_>>(), [bound], "only the second");
}

/// Loses the carrier; ground has heard so much of the log.
async fn go_on(world: &mut World, heard: Position) {
    world.hop.close();
    world.hop = world.listener.carrier_with(Config { keeps_log: true, ..Config::default() }).await;
    world.hop.tell_heard(heard);
}

#[tokio::test]
async fn on_another_carrier_only_what_ground_has_not_heard_is_told() {
    let mut world = world().await;
    fetch(&world, "/a", ANYONES).await;
    let [a] = stored(&world.hop).await[..] else { panic!("one entry") };
    go_on(&mut world, Position::default()).await;
    assert_eq!(told(&world.hop).await, Word::Reset, "it has heard nothing");
    let Word::Log(at) = told(&world.hop).await else { panic!("the log begins") };
    let told_again = stored(&world.hop).await;
    assert_eq!(told_again.iter().map(|entry| entry.number).collect::<Vec<_>>(), [a.number]);
    fetch(&world, "/b", ANYONES).await;
    let [b] = stored(&world.hop).await[..] else { panic!("one entry") };

    // All of it: then nothing but what is new.
    let heard = Position { next: at.next + 2, ..at };
    go_on(&mut world, heard).await;
    assert_eq!(told(&world.hop).await, Word::Log(heard));
    fetch(&world, "/c", ANYONES).await;
    let [c] = stored(&world.hop).await[..] else { panic!("one entry") };
    assert!(![a.number, b.number].contains(&c.number));

    // All but the last.
    go_on(&mut world, heard).await;
    let Word::Log(now) = told(&world.hop).await else { panic!("the log goes on") };
    assert_eq!(now, Position { next: heard.next + 1, ..at });
    let again = stored(&world.hop).await;
    assert_eq!(again.iter().map(|entry| entry.number).collect::<Vec<_>>(), [c.number]);

    // It does not know: both compare what was told, and what differs is told.
    go_on(&mut world, Position { next: 0, ..at }).await;
    assert!(matches!(told(&world.hop).await, Word::Log(_)));
    let Word::Summary(sums) = told(&world.hop).await else { panic!("a summary") };
    world.hop.tell_differ(sums.len() as u64, (0..sums.len() as u64).collect());
    assert!(matches!(told(&world.hop).await, Word::Log(_)));
    let mut again: Vec<u64> = stored(&world.hop).await.iter().map(|entry| entry.number).collect();
    again.sort_unstable();
    assert_eq!(again, [a.number, b.number, c.number]);
}
