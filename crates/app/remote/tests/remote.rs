//! The remote as clients see it, with ground played by the test over a link in the process.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::Ipv4Addr;

use bytes::Bytes;
use farhop_events::Event;
use farhop_htotp::frame::{Coding, Resume};
use farhop_transport::hop::{Arrival, Gone};
use support::{
    Asked, BROWSER, CACHEABLE, PATIENCE, REFERER, UNCACHEABLE, World, answer, answer_with, failure, head,
    page, read_until, send, world, world_with,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn a_promise_on_its_way_is_streamed_as_it_arrives() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut client = world.get("/a.css", &format!("{BROWSER}{REFERER}")).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"first ")).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "first ").await;
    assert!(got.contains("first "), "the part that is here is not held back: {got}");
    push.write(Bytes::from_static(b"second")).await.unwrap();
    push.finish(None);
    read_until(&mut client, &mut got, "").await;
    assert!(got.contains("second"), "{got}");
    assert_eq!(world.crossed(), 1, "only the document");
}

#[tokio::test]
async fn a_promise_that_came_early_is_kept_until_asked_and_answers_once() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"whole")).await.unwrap();
    push.finish(None);
    let fields = format!("{BROWSER}{REFERER}");
    assert!(answer(world.get("/a.css", &fields).await).await.contains("whole"));
    assert_eq!(world.crossed(), 1);
    let again = world.get("/a.css", &fields).await;
    let Asked { sender, .. } = world.asked().await;
    sender.fail(failure());
    assert!(answer(again).await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn what_is_held_fresh_is_answered_without_crossing() {
    let world = world().await;
    let client = world.get("/s.css", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(CACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"body{}")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.ends_with("body{}\r\n0\r\n\r\n"));
    let held = answer(world.get("/s.css", BROWSER).await).await;
    assert!(held.contains("body{}") && held.contains("\r\nAge: "), "{held}");
    assert_eq!(world.crossed(), 1);
}

#[tokio::test]
async fn targets_that_normalise_to_one_url_stay_apart() {
    let world = world().await;
    for (path, body) in [("/up/../app.js", "raw"), ("/%2e/app.js", "dotted"), ("/app.js", "plain")] {
        let client = world.get(path, BROWSER).await;
        answer_with(&world, body).await;
        assert!(answer(client).await.contains(body), "{path} was answered by another target");
    }
    assert!(answer(world.get("/app.js", BROWSER).await).await.contains("plain"));
    assert_eq!(world.crossed(), 3);
}

#[tokio::test]
async fn a_get_with_content_is_never_answered_from_what_is_held() {
    let world = world().await;
    let client = world.get("/q", BROWSER).await;
    answer_with(&world, "without content").await;
    assert!(answer(client).await.contains("without content"));
    let mut client = world.get("/q", &format!("{BROWSER}content-length: 2\r\n")).await;
    client.write_all(b"{}").await.unwrap();
    answer_with(&world, "with content").await;
    assert!(answer(client).await.contains("with content\r\n"));
    assert!(answer(world.get("/q", BROWSER).await).await.contains("without content"));
}

#[tokio::test]
async fn a_request_that_differs_in_a_field_is_asked() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"not this")).await.unwrap();
    push.finish(None);
    let client = world.get("/a.css", &format!("{BROWSER}{REFERER}cookie: who=else\r\n")).await;
    let Asked { head: asked, sender, .. } = world.asked().await;
    assert_eq!(asked.fields["cookie"], "who=else");
    sender.fail(failure());
    assert!(!answer(client).await.contains("not this"));
}

#[tokio::test]
async fn what_is_private_stays_with_who_asked_for_it_behind_one_address() {
    const ALICE: &str = "accept-language: en\r\nx-token: alice\r\n";
    let world = world().await;
    let private = [("cache-control", "private, max-age=300")];
    for (who, body) in [
        (ALICE, "of alice"),
        ("accept-language: en\r\nx-token: bob\r\n", "of bob"),
        ("accept-language: en\r\n", "of nobody"),
        ("accept-language: de\r\n", "in german"),
    ] {
        let client = world.get("/me", &format!("{BROWSER}{who}")).await;
        let Asked { mut sender, .. } = world.asked().await;
        sender.answer(&head(&private), Coding::Identity, None);
        sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
        sender.finish(None);
        assert!(answer(client).await.contains(body), "{who}");
    }
    assert!(answer(world.get("/me", &format!("{BROWSER}{ALICE}")).await).await.contains("of alice"));
    assert_eq!(world.crossed(), 4);
}

#[tokio::test]
async fn another_users_promise_answers_nobody_else() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let mut push = world.hop.push(promise).unwrap();
    push.answer(&head(UNCACHEABLE), Coding::Identity, None);
    push.write(Bytes::from_static(b"private")).await.unwrap();
    push.finish(None);
    let mut other = world.client_at(Ipv4Addr::new(127, 0, 0, 2)).await;
    send(&mut other, "GET", "/a.css", &format!("{BROWSER}{REFERER}")).await;
    let Asked { sender, .. } = world.asked().await;
    sender.fail(failure());
    assert!(!answer(other).await.contains("private"));
}

#[tokio::test]
async fn a_wait_on_a_promise_becomes_an_ask_when_the_carrier_is_lost() {
    let mut world = world().await;
    let _ = page(&world).await;
    let client = world.get("/a.css", &format!("{BROWSER}{REFERER}")).await;
    world.lose_carrier().await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"asked after all")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("asked after all"));
}

const FIRST: &[(&str, &str)] = &[("content-length", "22"), ("etag", "\"1\"")];

/// Sends the beginning of a body of 22 bytes to a client, then loses the carrier.
async fn cut_in_mid_body(world: &mut World, fields: &[(&'static str, &'static str)]) -> (TcpStream, String) {
    let mut client = world.get("/big", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(fields), Coding::Identity, None);
    sender.write(Bytes::from_static(b"the first half,")).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "half,").await;
    world.lose_carrier().await;
    (client, got)
}

#[tokio::test]
async fn a_body_goes_on_at_its_byte_after_the_carrier_was_lost() {
    let mut world = world().await;
    let (mut client, mut got) = cut_in_mid_body(&mut world, FIRST).await;
    let Asked { resume, mut sender, .. } = world.asked().await;
    let prefix = *blake3::hash(b"the first half,").as_bytes();
    assert_eq!(resume, Some(Resume { offset: 15, prefix }));
    sender.answer(&head(FIRST), Coding::Identity, Some(15));
    sender.write(Bytes::from_static(b" & rest")).await.unwrap();
    sender.finish(None);
    read_until(&mut client, &mut got, "").await;
    assert!(got.ends_with("the first half, & rest"), "{got}");
}

#[tokio::test]
async fn a_body_goes_on_when_only_one_of_its_two_heads_tells_its_length() {
    const WITHOUT: &[(&str, &str)] = &[("etag", "\"1\"")];
    for (before, again) in [(FIRST, WITHOUT), (WITHOUT, FIRST)] {
        let mut world = world().await;
        let (mut client, mut got) = cut_in_mid_body(&mut world, before).await;
        let Asked { mut sender, .. } = world.asked().await;
        sender.answer(&head(again), Coding::Identity, Some(15));
        sender.write(Bytes::from_static(b" & rest")).await.unwrap();
        sender.finish(None);
        read_until(&mut client, &mut got, "").await;
        assert!(got.contains(" & rest"), "{got}");
        assert_eq!(world.bus.counters().snapshot()["aborted"], 0);
    }
}

#[tokio::test]
async fn a_body_that_changed_meanwhile_aborts_the_client_and_mixes_nothing() {
    let mut world = world().await;
    let (mut client, mut got) = cut_in_mid_body(&mut world, FIRST).await;
    let Asked { mut sender, .. } = world.asked().await;
    // Ground says that the prefix is right, but the head is another one.
    sender.answer(&head(&[("content-length", "22"), ("etag", "\"2\"")]), Coding::Identity, Some(15));
    // The remote may be gone already: that is the point.
    let _ = sender.write(Bytes::from_static(b" & other")).await;
    read_until(&mut client, &mut got, "").await;
    assert!(got.ends_with("the first half,"), "{got}");
    assert_eq!(world.bus.counters().snapshot()["aborted"], 1);
}

#[tokio::test]
async fn a_request_that_may_change_something_is_never_sent_twice() {
    let mut world = world().await;
    let mut client = world.client().await;
    send(&mut client, "POST", "/order", "content-length: 3\r\n").await;
    client.write_all(b"one").await.unwrap();
    let Asked { mut receiver, sender, .. } = world.asked().await;
    assert_eq!(receiver.next().await, Arrival::Body(Bytes::from_static(b"one")));
    drop((receiver, sender));
    world.lose_carrier().await;
    world.forget().await;
    let got = answer(client).await;
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains("Proxy-Status: farhop-"), "{got}");
    assert_eq!(world.crossed(), 1);
}

#[tokio::test]
async fn a_client_that_breaks_off_stops_the_exchange_at_ground() {
    let world = world().await;
    let client = world.get("/slow", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    // Closed with unread bytes: a reset, as when a browser gives a load up.
    sender.write(Bytes::from_static(b"unread")).await.unwrap();
    client.readable().await.unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(timeout(PATIENCE, sender.gone()).await, Ok(Gone::Stopped));
}

#[tokio::test]
async fn an_origin_that_breaks_off_is_passed_on_as_a_broken_body() {
    let world = world().await;
    let mut client = world.get("/broken", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"half")).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "half").await;
    drop(sender);
    read_until(&mut client, &mut got, "").await;
    assert!(got.contains("half") && !got.ends_with("0\r\n\r\n"), "{got}");
}

#[tokio::test]
async fn a_client_with_more_connections_than_allowed_is_told_so_and_others_are_served() {
    let world = world_with(&["limits.connections_per_client=1"]).await;
    let first = world.get("/a", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    let refused = answer(world.get("/b", BROWSER).await).await;
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("connection_limit_reached"),
        "{refused}"
    );
    assert!(refused.contains("limits.connections_per_client"), "{refused}");
    assert_eq!(world.bus.counters().snapshot()["clients_refused"], 1);
    let mut other = world.client_at(Ipv4Addr::new(127, 0, 0, 2)).await;
    send(&mut other, "GET", "/c", BROWSER).await;
    answer_with(&world, "for another").await;
    assert!(answer(other).await.contains("for another"));
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.finish(None);
    assert!(answer(first).await.starts_with("HTTP/1.1 200 "));
    let again = world.get("/d", BROWSER).await;
    answer_with(&world, "the place is free").await;
    assert!(answer(again).await.contains("the place is free"));
}

#[tokio::test]
async fn what_users_send_up_is_counted() {
    let world = world().await;
    let mut client = world.client().await;
    send(&mut client, "POST", "/order", "content-length: 5\r\n").await;
    client.write_all(b"12345").await.unwrap();
    answer_with(&world, "thanks").await;
    assert!(answer(client).await.contains("thanks"));
    // The event follows the last byte, which the client may see first.
    let counted = async {
        while world.bus.counters().snapshot()["bytes_from_users"] != 5 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, counted).await.expect("the upload is counted");
}

#[tokio::test]
async fn a_lost_carrier_is_counted_and_told_once() {
    let mut world = world().await;
    let mut events = world.bus.subscribe();
    world.lose_carrier().await;
    let told = async {
        loop {
            if let Event::CarrierDown { peer, .. } = &events.next().await.unwrap().unwrap().event {
                return peer.clone();
            }
        }
    };
    assert_eq!(timeout(PATIENCE, told).await.as_deref(), Ok("ground"));
    assert_eq!(world.bus.counters().snapshot()["carriers_down"], 1);
}
