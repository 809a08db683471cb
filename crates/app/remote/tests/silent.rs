//! CONNECT where interception is on and the client does not begin: it left, or waits for the server to.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_events::{Bypass, Event};
use farhop_transport::hop::{Arrival, Incoming, Receiver, Sender};
use support::{PATIENCE, World, read_until, until, world_with};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

async fn world() -> World {
    world_with(&["interception.enabled=true"]).await
}

/// The next tunnel that is wanted.
async fn tunnel(world: &World) -> (String, Sender, Receiver) {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a tunnel is wanted").unwrap();
        if let Incoming::Tunnel { asked, sender, receiver } = incoming {
            return (asked.host, sender, receiver);
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_without_a_word_opens_no_tunnel() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    drop(world.connect("left.test:443").await);
    until(&mut events, |event| matches!(event, Event::Answered { url, .. } if url == "left.test:443")).await;
    let mut other = world.connect("shell.test:443").await;
    other.write_all(b"SSH-2.0-client\r\n").await.unwrap();
    assert_eq!(tunnel(&world).await.0, "shell.test");
    assert_eq!(world.bus.counters().bypasses_learned(), 1, "of the other");
}

#[tokio::test]
async fn a_server_that_speaks_first_is_heard_and_not_waited_for_again() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    for round in 0..2 {
        let mut client = world.connect("mail.test:443").await;
        let (host, mut sender, mut receiver) = tunnel(&world).await;
        assert_eq!(host, "mail.test");
        sender.accept_tunnel();
        sender.write("220 ready\r\n".into()).await.unwrap();
        let mut got = String::new();
        read_until(&mut client, &mut got, "\r\n").await;
        assert_eq!(got, "220 ready\r\n");
        client.write_all(b"EHLO client\r\n").await.unwrap();
        let word = timeout(PATIENCE, receiver.next()).await.unwrap();
        assert_eq!(word, Arrival::Body(Bytes::from("EHLO client\r\n")));
        if round == 0 {
            until(&mut events, |event| matches!(event, Event::BypassLearned { .. })).await;
        }
        // The first was waited for, the second not even looked at.
        let counters = world.bus.counters();
        assert_eq!((counters.bypassed(Bypass::NotTls), counters.bypassed(Bypass::Learned)), (1, round));
    }
}

#[tokio::test]
async fn a_client_that_is_slow_to_begin_teaches_nothing() {
    let world = world().await;
    let mut client = world.connect("slow.test:443").await;
    let (_, mut sender, mut receiver) = tunnel(&world).await;
    sender.accept_tunnel();
    client.write_all(b"hello").await.unwrap();
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Body(Bytes::from("hello")));
    sender.write("and hello".into()).await.unwrap();
    let mut got = String::new();
    read_until(&mut client, &mut got, "and hello").await;
    assert_eq!(world.bus.counters().bypasses_learned(), 0);
}
