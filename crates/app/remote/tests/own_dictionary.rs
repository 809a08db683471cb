//! A client that has a dictionary of its own (RFC 9842) is answered by what is held or promised as any other is; what an
//! origin codes with it reaches that client, and nobody else.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use support::{Asked, BROWSER, REFERER, UNCACHEABLE, World, answer, head, page_of, world};

const PLAIN: &str = "accept-encoding: gzip, deflate, br, zstd\r\n";
const OWN: &str = "accept-encoding: gzip, deflate, br, zstd, dcb, dcz\r\navailable-dictionary: :pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:\r\ndictionary-id: \"v1\"\r\n";
const VARIES: &[(&str, &str)] = &[
    ("content-type", "text/css"),
    ("cache-control", "max-age=600"),
    ("vary", "accept-encoding, available-dictionary"),
];

/// A client asks, and ground gives this; what ground was asked with.
async fn give(
    world: &World,
    fields: &str,
    given: &[(&'static str, &'static str)],
    body: &'static str,
) -> http::HeaderMap {
    let client = world.get("/a.css", &format!("{BROWSER}{fields}")).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    sender.answer(&head(given), Coding::Identity, None);
    sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains(body));
    asked.fields
}

async fn held(world: &World, fields: &str, body: &str) {
    let before = world.crossed();
    let given = answer(world.get("/a.css", &format!("{BROWSER}{fields}")).await).await;
    assert!(given.contains(body) && world.crossed() == before, "{given}");
}

#[tokio::test]
async fn what_is_held_answers_whatever_dictionary_a_client_has() {
    let world = world().await;
    let asked = give(&world, PLAIN, VARIES, "held").await;
    assert_eq!(asked["accept-encoding"], "gzip, deflate, br, zstd");
    held(&world, OWN, "held").await;
    held(&world, PLAIN, "held").await;
}

#[tokio::test]
async fn what_comes_plain_to_a_client_with_a_dictionary_is_held_for_all() {
    let world = world().await;
    let asked = give(&world, OWN, VARIES, "plain").await;
    assert_eq!(asked["accept-encoding"], "gzip, deflate, br, zstd, dcb, dcz");
    assert_eq!(
        (&asked["dictionary-id"], asked.contains_key("available-dictionary")),
        (&"\"v1\"".parse().unwrap(), true)
    );
    held(&world, PLAIN, "plain").await;
    held(&world, OWN, "plain").await;
}

#[tokio::test]
async fn what_is_coded_with_it_reaches_that_client_and_is_held_for_none() {
    let world = world().await;
    let coded: Vec<(&'static str, &'static str)> = [VARIES, &[("content-encoding", "dcz")]].concat();
    give(&world, OWN, &coded, "coded").await;
    // Not even for the same client: it holds it itself.
    give(&world, OWN, &coded, "coded again").await;
    give(&world, PLAIN, VARIES, "plain").await;
    held(&world, OWN, "plain").await;
}

#[tokio::test]
async fn where_something_like_it_is_held_ground_is_told_nothing_of_it() {
    let world = world().await;
    let stale = [("content-type", "text/css"), ("cache-control", "no-cache"), ("etag", "\"1\"")];
    give(&world, PLAIN, &stale, "first").await;
    let asked = give(&world, OWN, &stale, "second").await;
    assert_eq!(asked["if-none-match"], "\"1\"");
    assert!(
        !asked.contains_key("available-dictionary") && asked["accept-encoding"] == "gzip, deflate, br, zstd"
    );
}

#[tokio::test]
async fn a_promise_answers_a_client_that_has_a_dictionary_for_it() {
    let world = world().await;
    let (_, promise) = page_of(&world, PLAIN).await;
    let before = world.crossed();
    let client = world.get("/a.css", &format!("{BROWSER}{OWN}{REFERER}")).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"promised")).await.unwrap();
    push.finish(None);
    assert!(answer(client).await.contains("promised"));
    assert_eq!(world.crossed(), before);
}

#[tokio::test]
async fn a_page_is_asked_for_without_it_so_that_ground_can_read_it() {
    let world = world().await;
    let document = "accept: text/html,*/*\r\nupgrade-insecure-requests: 1\r\n";
    let client = world.get("/", &format!("{document}{OWN}")).await;
    let Asked { head: asked, mut sender, .. } = world.asked().await;
    assert_eq!(asked.fields["accept-encoding"], "gzip, deflate, br, zstd");
    assert!(
        !asked.fields.contains_key("available-dictionary") && !asked.fields.contains_key("dictionary-id")
    );
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    answer(client).await;
}
