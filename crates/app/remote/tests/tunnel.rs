//! Tunnels from the client's side: the first bytes are under way before anyone has connected, ends and resets are carried
//! as they come, and a host that cannot be reached is told at the second try.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::io::ErrorKind;

use farhop_htotp::frame::{Failure, Side, Tunnel};
use farhop_htotp::session::code;
use farhop_testkit::urgent;
use farhop_transport::hop::{Arrival, Incoming, Receiver, Sender};
use support::{PATIENCE, World, read_until, world, world_over};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ESTABLISHED: &str = "\r\n\r\n";

/// A client that has said CONNECT, and in the same breath its first words.
async fn connect(world: &World, to: &str, first: &str) -> TcpStream {
    let mut client = world.client().await;
    let request = format!("CONNECT {to} HTTP/1.1\r\nhost: {to}\r\n\r\n{first}");
    client.write_all(request.as_bytes()).await.unwrap();
    client
}

async fn established(client: &mut TcpStream) {
    let mut got = String::new();
    read_until(client, &mut got, ESTABLISHED).await;
    assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
    assert!(got.ends_with(ESTABLISHED), "{got}");
}

/// The next tunnel that is wanted at ground.
async fn wanted(world: &World) -> (String, u16, Sender, Receiver) {
    let (Tunnel { host, port, .. }, sender, receiver) = tunnel(world).await;
    (host, port, sender, receiver)
}

async fn tunnel(world: &World) -> (Tunnel, Sender, Receiver) {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a tunnel is wanted").unwrap();
        if let Incoming::Tunnel { asked, sender, receiver } = incoming {
            return (asked, sender, receiver);
        }
    }
}

/// A client's tunnel once the remote knows that ground takes marks.
async fn marked(world: &World) -> (TcpStream, Sender, Receiver) {
    loop {
        let mut client = connect(world, "ftp.test:443", "").await;
        farhop_netdev::keep_urgent_in_place(&client).unwrap();
        established(&mut client).await;
        let (asked, sender, receiver) = tunnel(world).await;
        if asked.marked {
            return (client, sender, receiver);
        }
    }
}

async fn next(receiver: &mut Receiver) -> Arrival {
    timeout(PATIENCE, receiver.next()).await.expect("something arrives")
}

fn refused() -> Failure {
    let detail = "gone.test:443 refused the connection".into();
    Failure { side: Side::Origin, status: 502, token: "connection_refused".into(), detail }
}

#[tokio::test]
async fn the_first_bytes_cross_before_ground_has_connected() {
    let world = world().await;
    let mut client = connect(&world, "site.test:443", "hello").await;
    established(&mut client).await;
    let (host, port, sender, mut receiver) = wanted(&world).await;
    assert_eq!((host.as_str(), port), ("site.test", 443));
    assert_eq!(next(&mut receiver).await, Arrival::Body("hello".into()));
    client.write_all(b"more").await.unwrap();
    assert_eq!(next(&mut receiver).await, Arrival::Body("more".into()));
    sender.accept_tunnel();
    let mut sender = sender;
    sender.write("answer".into()).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "answer").await;
    assert_eq!(got, "answer");
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_resets_the_client_and_is_told_at_the_next_try() {
    let world = world().await;
    let mut client = connect(&world, "gone.test:443", "hello").await;
    established(&mut client).await;
    let (_, _, sender, _receiver) = wanted(&world).await;
    sender.fail(refused());
    let error = timeout(PATIENCE, client.read(&mut [0])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let mut again = connect(&world, "GONE.test:443", "").await;
    let mut got = String::new();
    read_until(&mut again, &mut got, "connection_refused</p>").await;
    assert!(got.starts_with("HTTP/1.1 502 "), "{got}");
    assert!(got.contains("gone.test:443 refused the connection"), "{got}");
    assert_eq!(world.crossed(), 1, "the second answer needs nobody");

    let mut elsewhere = connect(&world, "gone.test:8443", "").await;
    established(&mut elsewhere).await;
}

#[tokio::test]
async fn a_link_that_is_lost_under_a_tunnel_is_no_word_about_its_host() {
    let mut world = world().await;
    let mut client = connect(&world, "site.test:443", "hello").await;
    established(&mut client).await;
    let (_, _, sender, receiver) = wanted(&world).await;
    world.lose_carrier().await;
    world.forget().await;
    drop((sender, receiver));
    assert!(timeout(PATIENCE, client.read(&mut [0])).await.unwrap().is_err());
    let mut again = connect(&world, "site.test:443", "").await;
    established(&mut again).await;
}

#[tokio::test]
async fn either_side_may_end_first_and_still_be_answered() {
    let world = world().await;
    let mut client = connect(&world, "site.test:443", "question").await;
    established(&mut client).await;
    client.shutdown().await.unwrap();
    let (_, _, mut sender, mut receiver) = wanted(&world).await;
    assert_eq!(next(&mut receiver).await, Arrival::Body("question".into()));
    assert_eq!(next(&mut receiver).await, Arrival::Ended);
    sender.accept_tunnel();
    sender.write("answer".into()).await.unwrap();
    sender.finish(None);
    let mut got = String::new();
    timeout(PATIENCE, client.read_to_string(&mut got)).await.unwrap().unwrap();
    assert_eq!(got, "answer");

    let mut client = connect(&world, "site.test:443", "").await;
    established(&mut client).await;
    let (_, _, mut sender, mut receiver) = wanted(&world).await;
    sender.accept_tunnel();
    sender.finish(None);
    assert_eq!(timeout(PATIENCE, client.read(&mut [0])).await.unwrap().unwrap(), 0);
    client.write_all(b"late").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(next(&mut receiver).await, Arrival::Body("late".into()));
    assert_eq!(next(&mut receiver).await, Arrival::Ended);
}

/// What arrives until there are `count` bytes, and the places of urgent ones.
async fn heard(receiver: &mut Receiver, count: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut all, mut urgent) = (Vec::new(), Vec::new());
    while all.len() < count {
        match next(receiver).await {
            Arrival::Body(bytes) => all.extend_from_slice(&bytes),
            Arrival::Urgent => urgent.push(all.len()),
            other => panic!("{other:?} after {all:?}"),
        }
    }
    (all, urgent)
}

#[tokio::test]
async fn urgent_bytes_cross_in_their_place_with_their_mark() {
    let world = world().await;
    let (mut client, mut sender, mut receiver) = marked(&world).await;
    sender.accept_tunnel();
    // RFC 959 §4.1.3: an ABOR comes with the telnet signals interrupt and synch, of which the last byte is urgent (RFC 854).
    client.write_all(b"RETR x\r\n\xff\xf4\xff").await.unwrap();
    urgent::say(&client, 0xf2).await;
    client.write_all(b"ABOR\r\n").await.unwrap();
    let all = b"RETR x\r\n\xff\xf4\xff\xf2ABOR\r\n";
    assert_eq!(heard(&mut receiver, all.len()).await, (all.to_vec(), vec![11]));

    sender.write("before".into()).await.unwrap();
    sender.mark();
    sender.write("!after".into()).await.unwrap();
    let got = timeout(PATIENCE, urgent::hear(&client, 12)).await.unwrap();
    assert_eq!(got, (b"before!after".to_vec(), vec![6]));
}

#[tokio::test]
async fn a_reset_crosses_as_a_reset_either_way() {
    let world = world().await;
    let mut client = connect(&world, "site.test:443", "hello").await;
    established(&mut client).await;
    let (_, _, sender, mut receiver) = wanted(&world).await;
    sender.accept_tunnel();
    assert_eq!(next(&mut receiver).await, Arrival::Body("hello".into()));
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(next(&mut receiver).await, Arrival::Reset(code::RESET));

    let mut client = connect(&world, "site.test:443", "").await;
    established(&mut client).await;
    let (_, _, sender, receiver) = wanted(&world).await;
    sender.accept_tunnel();
    drop((sender, receiver));
    let error = timeout(PATIENCE, client.read(&mut [0])).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn what_a_client_says_before_it_breaks_off_arrives() {
    // Slow enough for the reset to find much of it queued.
    let world = world_over("geo-hylas2", &[]).await;
    let mut client = connect(&world, "site.test:443", "").await;
    established(&mut client).await;
    let (_, _, _sender, mut receiver) = wanted(&world).await;
    let said: Vec<u8> = (0..40_000u32).map(|at| at as u8).collect();
    client.write_all(&said).await.unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    let mut got = Vec::new();
    let end = loop {
        match next(&mut receiver).await {
            Arrival::Body(bytes) => got.extend_from_slice(&bytes),
            end => break end,
        }
    };
    assert!(got == said, "{} bytes of {}", got.len(), said.len());
    assert_eq!(end, Arrival::Reset(code::RESET));
}
