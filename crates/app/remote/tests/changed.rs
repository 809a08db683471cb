//! What is held is given up once the origin has said that there is something else, and is not given to others than it is for.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Coding;
use http::StatusCode;
use support::{Asked, BROWSER, World, answer, head, read_until, world, world_with};

type Fields = [(&'static str, &'static str)];

const TAGGED: &Fields = &[("cache-control", "max-age=600"), ("etag", "\"1\"")];
const RELOAD: &str = "cache-control: no-cache\r\n";

/// Asks for `/a` with these fields.
async fn ask(world: &World, fields: &str) -> tokio::net::TcpStream {
    world.get("/a", &format!("{BROWSER}{fields}")).await
}

/// Lets ground answer the next request so; gives the request.
async fn give(world: &World, status: u16, fields: &Fields, body: &'static str) -> Asked {
    let mut asked = world.asked().await;
    let head = ResponseHead { status: StatusCode::from_u16(status).unwrap(), ..head(fields) };
    asked.sender.answer(&head, Coding::Identity, None);
    if !body.is_empty() {
        asked.sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
    }
    asked.sender.finish(None);
    asked
}

/// Asks with these fields, lets ground answer so, and waits until the client has all of it.
async fn fetch(world: &World, asked: &str, status: u16, fields: &Fields, body: &'static str) -> String {
    let client = ask(world, asked).await;
    give(world, status, fields, body).await;
    let got = answer(client).await;
    assert!(got.contains(body), "{got}");
    got
}

#[tokio::test]
async fn what_a_304_takes_the_lifetime_from_is_for_the_cookies_of_its_request_alone() {
    const OLD: (&str, &str) = ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT");
    let world = world().await;
    let stale = [("cache-control", "max-age=0"), ("etag", "\"1\""), OLD];
    fetch(&world, "cookie: a=1\r\n", 200, &stale, "of no one").await;
    let client = ask(&world, "cookie: a=2\r\n").await;
    give(&world, 304, &[("etag", "\"1\""), ("cache-control", "no-transform")], "").await;
    assert!(answer(client).await.contains("of no one"));
    assert!(answer(ask(&world, "cookie: a=2\r\n").await).await.contains("of no one"));
    assert_eq!(world.crossed(), 2, "fresh by a guess");
    for (number, other) in ["", "cookie: a=1\r\n", "cookie: a=3\r\n"].into_iter().enumerate() {
        fetch(&world, other, 200, &[("cache-control", "no-store")], "own").await;
        assert_eq!(world.crossed(), 3 + number as u64, "{other}");
    }
}
