//! What is on its way to one user is waited for by others who may have it, too, and asked for once.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::ResponseHead;
use farhop_htotp::frame::Coding;
use farhop_orbit::Profile;
use farhop_transport::hop::Sender;
use farhop_transport::path::PathPlan;
use http::StatusCode;
use support::{
    Asked, BROWSER, CACHEABLE, REFERER, UNCACHEABLE, World, answer, failure, head, page, read_until, send,
    withdrawn, world_on,
};
use tokio::net::TcpStream;

const OWN: &str = "cookie: a=1\r\n";

/// A world whose ends are told of a way so long that nobody waits in vain in the time that a test takes.
async fn world() -> World {
    world_told_of(Duration::from_secs(30)).await
}

async fn world_told_of(rtt: Duration) -> World {
    world_on(&Profile::named("none").unwrap(), PathPlan { rtt, ..PathPlan::UNKNOWN }, &[]).await
}

/// User `number` asks for this.
async fn asks(world: &World, number: u8, path: &str, fields: &str) -> TcpStream {
    asks_by(world, number, "GET", path, fields).await
}

async fn asks_by(world: &World, number: u8, method: &str, path: &str, fields: &str) -> TcpStream {
    let mut client = world.client_at(Ipv4Addr::new(127, 0, 1, number)).await;
    send(&mut client, method, path, fields).await;
    client
}

/// The first asks for this, which crosses, and then others; ground is asked for nothing of that. Gives the first's request.
async fn all_ask(world: &World, users: u8, path: &str, fields: &str) -> (Vec<TcpStream>, Asked) {
    let mut clients = vec![asks(world, 1, path, fields).await];
    let first = world.asked().await;
    for number in 2..=users {
        clients.push(asks(world, number, path, fields).await);
    }
    // Taken in behind them. What is its sender's own teaches nothing.
    let other = asks(world, 200, &format!("{path}?other"), OWN).await;
    let asked = world.give(200, UNCACHEABLE, "another").await;
    assert!(asked.head.path.ends_with("?other"), "asked for a second time: {}", asked.head.path);
    answer(other).await;
    (clients, first)
}

/// The next request that crosses is for this.
async fn crosses(world: &World, path: &str) -> Asked {
    let asked = world.asked().await;
    assert_eq!(asked.head.path, path);
    asked
}

async fn give(mut sender: Sender, fields: &[(&'static str, &'static str)], body: &'static str) {
    sender.answer(&head(fields), Coding::Identity, None);
    sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
    sender.finish(None);
}

#[tokio::test]
async fn what_many_ask_for_at_once_crosses_once_and_comes_to_all_as_it_arrives() {
    let world = world().await;
    let (mut clients, Asked { mut sender, .. }) = all_ask(&world, 5, "/a.css", BROWSER).await;
    sender.answer(&head(CACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(b"the first half")).await.unwrap();
    let mut all = vec![String::new(); clients.len()];
    for (client, got) in clients.iter_mut().zip(&mut all) {
        read_until(client, got, "the first half").await;
    }
    sender.write(Bytes::from_static(b", the second half")).await.unwrap();
    sender.finish(None);
    for (number, (client, got)) in clients.iter_mut().zip(&mut all).enumerate() {
        read_until(client, got, "").await;
        assert!(got.contains(", the second half"), "{got}");
        assert_eq!(got.contains("collapsed"), number > 0, "{got}");
    }
    assert_eq!(world.crossed(), 2, "with the other one");
}

#[tokio::test]
async fn when_the_first_leaves_the_others_get_the_whole() {
    let world = world().await;
    for body_has_begun in [false, true] {
        let path = format!("/{body_has_begun}.css");
        let (mut clients, Asked { mut sender, .. }) = all_ask(&world, 4, &path, BROWSER).await;
        let crossed = world.crossed();
        let first = clients.remove(0);
        if body_has_begun {
            sender.answer(&head(CACHEABLE), Coding::Identity, None);
            sender.write(Bytes::from_static(b"a half")).await.unwrap();
            let mut got = String::new();
            read_until(&mut clients[0], &mut got, "a half").await;
            drop(first);
            sender.write(Bytes::from_static(b" and another")).await.unwrap();
            sender.finish(None);
            read_until(&mut clients[0], &mut got, "").await;
            assert!(got.contains(" and another"), "{got}");
            clients.remove(0);
        } else {
            drop(first);
            give(sender, CACHEABLE, "a half and another").await;
        }
        for client in clients {
            let got = answer(client).await;
            assert!(got.contains("a half") && got.contains(" and another"), "{got}");
        }
        assert_eq!(world.crossed(), crossed);
    }
}

#[tokio::test]
async fn when_the_first_fails_the_others_ask_all_at_once() {
    let world = world().await;
    let (mut clients, first) = all_ask(&world, 4, "/a.css", BROWSER).await;
    first.sender.fail(failure());
    assert!(answer(clients.remove(0)).await.starts_with("HTTP/1.1 502 "));
    let mut asked = Vec::new();
    for _ in &clients {
        asked.push(crosses(&world, "/a.css").await);
    }
    for Asked { sender, .. } in asked {
        give(sender, CACHEABLE, "of a second try").await;
    }
    for client in clients {
        assert!(answer(client).await.contains("of a second try"));
    }
}

#[tokio::test]
async fn what_is_for_one_alone_reaches_nobody_else_and_is_not_waited_for_again() {
    let kinds: [&[(&str, &str)]; 5] = [
        &[("cache-control", "no-store")],
        &[("cache-control", "private, max-age=600")],
        &[("cache-control", "max-age=600"), ("set-cookie", "a=1")],
        &[("cache-control", "max-age=600"), ("vary", "*")],
        &[("cache-control", "max-age=0")],
    ];
    let world = world().await;
    for (number, fields) in kinds.into_iter().enumerate() {
        let path = format!("/{number}");
        // What is learnt of the others at the site counts for them.
        let kind = format!("sec-fetch-dest: kind{number}\r\n");
        let (mut clients, first) = all_ask(&world, 3, &path, &kind).await;
        give(first.sender, fields, "of the first").await;
        assert!(answer(clients.remove(0)).await.contains("of the first"));
        let (one, other) = (crosses(&world, &path).await, crosses(&world, &path).await);
        for Asked { sender, .. } in [one, other] {
            give(sender, fields, "of another").await;
        }
        for client in clients {
            assert!(answer(client).await.contains("of another"), "{fields:?}");
        }
        // The next time all cross at once.
        for user in 4..=6 {
            let _client = asks(&world, user, &path, &kind).await;
            crosses(&world, &path).await;
        }
    }
}

#[tokio::test]
async fn what_shows_to_be_for_one_alone_is_not_waited_for_at_its_site_where_it_is_of_one_kind() {
    let world = world().await;
    let scripted = "sec-fetch-dest: empty\r\n";
    let client = asks(&world, 1, "/api/1", scripted).await;
    world.give(200, UNCACHEABLE, "own").await;
    answer(client).await;
    let _first = asks(&world, 1, "/api/2", scripted).await;
    let _asked = crosses(&world, "/api/2").await;
    let _second = asks(&world, 2, "/api/2", scripted).await;
    crosses(&world, "/api/2").await;
    let (_clients, _first) = all_ask(&world, 3, "/image", "sec-fetch-dest: image\r\n").await;
}

#[tokio::test]
async fn what_varies_reaches_nobody_who_differs() {
    let varies = |name| [("cache-control", "max-age=600"), ("vary", name)];
    let world = world().await;
    // What nobody knows to be varied by is waited for, in vain.
    let first = asks(&world, 1, "/a.css", "user-agent: one\r\n").await;
    let asked = crosses(&world, "/a.css").await;
    let second = asks(&world, 2, "/a.css", "user-agent: two\r\n").await;
    let third = asks(&world, 3, "/a.css", "user-agent: one\r\n").await;
    give(asked.sender, &varies("user-agent"), "for one").await;
    let again = crosses(&world, "/a.css").await;
    assert_eq!(again.head.fields["user-agent"], "two");
    give(again.sender, &varies("user-agent"), "for two").await;
    assert!(answer(first).await.contains("for one"));
    assert!(answer(second).await.contains("for two"));
    assert!(answer(third).await.contains("for one"));
    // By these it is varied most often, so that who differs does not wait.
    for (number, (name, one, two)) in [
        ("accept", "image/webp", "image/png"),
        ("accept-language", "en", "fr"),
        ("accept-encoding", "br", "gzip"),
        ("origin", "http://a.test", "http://b.test"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/{number}.css");
        let first = asks(&world, 1, &path, &format!("{name}: {one}\r\n")).await;
        let of_first = crosses(&world, &path).await;
        let second = asks(&world, 2, &path, &format!("{name}: {two}\r\n")).await;
        let of_second = crosses(&world, &path).await;
        give(of_first.sender, &varies(name), "for the first").await;
        give(of_second.sender, &varies(name), "for the second").await;
        assert!(answer(first).await.contains("for the first"));
        assert!(answer(second).await.contains("for the second"));
    }
}

#[tokio::test]
async fn what_is_its_senders_own_waits_for_nobody_and_nobody_for_it() {
    let world = world().await;
    let plain = ("GET", "");
    for (number, own) in [
        ("GET", OWN),
        ("GET", "authorization: Basic YTpi\r\n"),
        ("GET", "x-token: 4711\r\n"),
        ("GET", "range: bytes=0-4\r\n"),
        ("GET", "if-none-match: \"1\"\r\n"),
        ("GET", "cache-control: no-cache\r\n"),
        ("GET", "cache-control: max-age=0\r\n"),
        ("GET", "accept: text/html\r\nupgrade-insecure-requests: 1\r\n"),
        (
            "GET",
            "accept-encoding: dcb\r\navailable-dictionary: :pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:\r\n",
        ),
        ("HEAD", ""),
        ("POST", "content-length: 0\r\n"),
    ]
    .into_iter()
    .enumerate()
    {
        for (turn, both) in [[own, plain], [plain, own], [own, own]].into_iter().enumerate() {
            let path = format!("/{number}-{turn}.css");
            let mut under_way = Vec::new();
            for (user, (method, fields)) in (1..).zip(both) {
                let client = asks_by(&world, user, method, &path, fields).await;
                under_way.push((client, crosses(&world, &path).await));
            }
        }
    }
}

#[tokio::test]
async fn what_is_promised_to_one_is_waited_for_by_another() {
    let world = world().await;
    let (_, promise) = page(&world).await;
    let second = asks(&world, 2, "/a.css", &format!("{BROWSER}{REFERER}")).await;
    let other = asks(&world, 3, "/other", OWN).await;
    let asked = world.give(200, UNCACHEABLE, "another").await;
    assert_eq!(asked.head.path, "/other");
    answer(other).await;
    give(world.hop.push(promise).unwrap(), CACHEABLE, "a{}").await;
    assert!(answer(second).await.contains("a{}"));
    let own = format!("{BROWSER}{REFERER}");
    assert!(answer(world.get("/a.css", &own).await).await.contains("a{}"));
    assert_eq!(world.crossed(), 2, "the page, and the other one");
}

#[tokio::test]
async fn a_promise_that_is_taken_back_or_is_for_one_alone_answers_nobody_who_waits() {
    for is_withdrawn in [true, false] {
        let world = world().await;
        let (_, promise) = page(&world).await;
        let second = asks(&world, 2, "/a.css", &format!("{BROWSER}{REFERER}")).await;
        let other = asks(&world, 3, "/other", OWN).await;
        assert_eq!(world.give(200, UNCACHEABLE, "another").await.head.path, "/other");
        answer(other).await;
        let push = world.hop.push(promise).unwrap();
        match is_withdrawn {
            true => push.fail(withdrawn()),
            false => give(push, UNCACHEABLE, "of the first").await,
        }
        give(crosses(&world, "/a.css").await.sender, UNCACHEABLE, "of the second").await;
        assert!(answer(second).await.contains("of the second"));
    }
}

#[tokio::test]
async fn what_is_held_and_stale_is_asked_about_once() {
    let world = world().await;
    let stale = [("cache-control", "max-age=10"), ("age", "20"), ("etag", "\"1\"")];
    let client = asks(&world, 1, "/a.css", OWN).await;
    world.give(200, &stale, "held").await;
    assert!(answer(client).await.contains("held"));
    let (clients, mut first) = all_ask(&world, 3, "/a.css", BROWSER).await;
    assert_eq!(first.head.fields["if-none-match"], "\"1\"");
    let fresh = head(&[("cache-control", "max-age=600"), ("etag", "\"1\"")]);
    let unchanged = ResponseHead { status: StatusCode::NOT_MODIFIED, ..fresh };
    first.sender.answer(&unchanged, Coding::Identity, None);
    first.sender.finish(None);
    let crossed = world.crossed();
    for client in clients {
        assert!(answer(client).await.contains("held"));
    }
    assert_eq!(world.crossed(), crossed);
}

#[tokio::test]
async fn who_has_waited_for_longer_than_asking_would_take_asks() {
    let world = world_told_of(Duration::ZERO).await;
    let first = asks(&world, 1, "/a.css", BROWSER).await;
    let slow = crosses(&world, "/a.css").await;
    let second = asks(&world, 2, "/a.css", BROWSER).await;
    give(crosses(&world, "/a.css").await.sender, CACHEABLE, "of the second").await;
    assert!(answer(second).await.contains("of the second"));
    give(slow.sender, CACHEABLE, "of the first").await;
    assert!(answer(first).await.contains("of the first"));
}
