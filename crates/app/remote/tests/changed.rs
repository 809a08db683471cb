//! What is held is given up once the origin has said that there is something else, and is not given to others than it is for.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use support::{BROWSER, World, answer, head, read_until, world, world_with};

type Fields = [(&'static str, &'static str)];

const TAGGED: &Fields = &[("cache-control", "max-age=600"), ("etag", "\"1\"")];
const RELOAD: &str = "cache-control: no-cache\r\n";

/// Asks for `/a` with these fields.
async fn ask(world: &World, fields: &str) -> tokio::net::TcpStream {
    world.get("/a", &format!("{BROWSER}{fields}")).await
}

/// Asks with these fields, lets ground answer so, and waits until the client has all of it.
async fn fetch(world: &World, asked: &str, status: u16, fields: &Fields, body: &'static str) -> String {
    let client = ask(world, asked).await;
    world.give(status, fields, body).await;
    let got = answer(client).await;
    assert!(got.contains(body), "{got}");
    got
}

#[tokio::test]
async fn what_a_newer_answer_contradicts_is_not_given_any_more_though_it_is_fresh() {
    const PART: &str = "cache-control: no-cache\r\nrange: bytes=2-4\r\n";
    const OWN: &str = "cache-control: no-cache\r\nif-none-match: \"c\"\r\n";
    let (of_12, of_10) = (("content-range", "bytes 2-4/12"), ("content-range", "bytes 2-4/10"));
    let cases: [(&str, u16, &Fields, &str, bool); 8] = [
        (PART, 206, &[("etag", "\"2\""), of_12], "xyz", true),
        (PART, 206, &[("etag", "W/\"2\""), of_12], "xyz", true),
        (PART, 206, &[("etag", "\"2\""), ("cache-control", "no-store"), of_12], "xyz", true),
        (PART, 206, &[("etag", "W/\"1\""), of_10], "234", false),
        (OWN, 304, &[("etag", "\"c\"")], "", true),
        (RELOAD, 200, &[("etag", "\"2\""), ("cache-control", "no-store")], "other", true),
        (RELOAD, 200, &[("cache-control", "no-store")], "other", true),
        (RELOAD, 404, &[("etag", "\"2\""), ("cache-control", "no-store")], "none", false),
    ];
    for (asked, status, fields, body, goes) in cases {
        let world = world().await;
        fetch(&world, "", 200, TAGGED, "0123456789").await;
        fetch(&world, asked, status, fields, body).await;
        if goes {
            let got = fetch(&world, "", 200, TAGGED, "anew").await;
            assert!(got.starts_with("HTTP/1.1 200 "), "{fields:?}: {got}");
        } else {
            assert!(answer(ask(&world, "").await).await.contains("0123456789"), "{fields:?}");
            assert_eq!(world.crossed(), 2, "{fields:?}");
        }
    }
}

#[tokio::test]
async fn parts_go_when_what_they_are_of_has_changed_though_the_new_part_cannot_be_kept() {
    let world = world().await;
    let part = |tag| [("cache-control", "max-age=600"), ("etag", tag), ("content-range", "bytes 2-5/10")];
    let mut events = world.bus.subscribe();
    fetch(&world, "range: bytes=2-5\r\n", 206, &part("\"1\""), "2345").await;
    support::until(&mut events, |event| matches!(event, farhop_events::Event::Stored { .. })).await;
    assert!(answer(ask(&world, "range: bytes=3-4\r\n").await).await.ends_with("\r\n\r\n34"));
    assert_eq!(world.crossed(), 1);
    let reload = format!("{RELOAD}range: bytes=2-5\r\n");
    fetch(&world, &reload, 206, &part("W/\"2\""), "6789").await;
    fetch(&world, "range: bytes=2-5\r\n", 206, &part("\"2\""), "6789").await;
    assert_eq!(world.crossed(), 3);
}

#[tokio::test]
async fn what_was_asked_about_behind_a_client_and_is_not_confirmed_goes_though_nothing_takes_its_place() {
    let world = world().await;
    let said = [("cache-control", "max-age=0, stale-while-revalidate=600"), ("etag", "\"1\"")];
    fetch(&world, "", 200, &said, "0123456789").await;
    let mut changes = world.bus.subscribe();
    assert!(answer(ask(&world, "").await).await.contains("0123456789"));
    world.give(200, &[("cache-control", "no-store")], "other").await;
    support::until(&mut changes, |event| matches!(event, farhop_events::Event::Evicted { .. })).await;
    let asked = ask(&world, "").await;
    assert!(!world.give(200, TAGGED, "anew").await.head.fields.contains_key("if-none-match"));
    assert!(answer(asked).await.contains("anew"));
}

#[tokio::test]
async fn what_a_304_takes_the_lifetime_from_is_for_the_cookies_of_its_request_alone() {
    const OLD: (&str, &str) = ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT");
    let world = world().await;
    let stale = [("cache-control", "max-age=0"), ("etag", "\"1\""), OLD];
    fetch(&world, "cookie: a=1\r\n", 200, &stale, "of no one").await;
    let client = ask(&world, "cookie: a=2\r\n").await;
    world.give(304, &[("etag", "\"1\""), ("cache-control", "no-transform")], "").await;
    assert!(answer(client).await.contains("of no one"));
    assert!(answer(ask(&world, "cookie: a=2\r\n").await).await.contains("of no one"));
    assert_eq!(world.crossed(), 2, "fresh by a guess");
    for (number, other) in ["", "cookie: a=1\r\n", "cookie: a=3\r\n"].into_iter().enumerate() {
        fetch(&world, other, 200, &[("cache-control", "no-store")], "own").await;
        assert_eq!(world.crossed(), 3 + number as u64, "{other}");
    }
}

#[tokio::test]
async fn a_part_far_ahead_of_what_is_arriving_is_asked_for_and_one_that_comes_soon_is_not() {
    let world = world_with(&[]).await;
    let mut first = ask(&world, "").await;
    let mut arriving = world.asked().await;
    let long = [TAGGED, &[("content-length", "3900000")]].concat();
    arriving.sender.answer(&head(&long), Coding::Identity, None);
    arriving.sender.write(Bytes::from_static(b"0123456789")).await.unwrap();
    read_until(&mut first, &mut String::new(), "0123456789").await;

    let near = ask(&world, "range: bytes=10-12\r\n").await;
    let far = ask(&world, "range: bytes=3899990-3899999\r\n").await;
    let part = [TAGGED, &[("content-range", "bytes 3899990-3899999/3900000")]].concat();
    let asked = world.give(206, &part, "0123456789").await;
    assert_eq!(asked.head.fields["range"], "bytes=3899990-3899999");
    assert!(answer(far).await.contains("0123456789"), "while the first one stands");
    arriving.sender.write(Bytes::from_static(b"abc")).await.unwrap();
    let got = answer(near).await;
    assert!(got.starts_with("HTTP/1.1 206 ") && got.ends_with("\r\n\r\nabc"), "{got}");
    assert_eq!(world.crossed(), 2);
}
