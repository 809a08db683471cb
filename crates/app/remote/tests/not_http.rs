//! What on a port of HTTPS is no HTTP: learned from who says something else inside, or nothing at all, and from servers that
//! speak first.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_events::Event;
use farhop_transport::hop::{Arrival, Incoming, Receiver, Sender};
use rustls::pki_types::ServerName;
use support::{PATIENCE, World, read_until, tls_client, until, world_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

async fn world() -> World {
    world_with(&["interception.enabled=true"]).await
}

/// A connection inside TLS over `client`, which has said CONNECT to `host`, by one that trusts our CA and names these protocols.
async fn within(
    world: &World,
    client: TcpStream,
    host: &'static str,
    protocols: &[&str],
) -> TlsStream<TcpStream> {
    let name = ServerName::try_from(host).unwrap();
    let connecting = TlsConnector::from(tls_client(world, true, protocols)).connect(name, client);
    timeout(PATIENCE, connecting).await.unwrap().unwrap()
}

async fn inside(world: &World, host: &'static str, protocols: &[&str]) -> TlsStream<TcpStream> {
    let client = world.connect(&format!("{host}:443")).await;
    within(world, client, host, protocols).await
}

async fn asks(world: &World, client: &mut TlsStream<TcpStream>, host: &str) {
    client.write_all(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(world.asked().await.head.url(), format!("https://{host}/"));
}

/// The next tunnel at ground.
async fn tunnel(world: &World) -> (String, Sender, Receiver) {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a tunnel is wanted").unwrap();
        if let Incoming::Tunnel { asked, sender, receiver } = incoming {
            return (asked.host, sender, receiver);
        }
    }
}

/// What comes back to a connection from here to its end.
async fn heard(client: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut heard = Vec::new();
    // Whether it ends well or not.
    let _ = timeout(PATIENCE, client.read_to_end(&mut heard)).await.expect("it ends soon");
    heard
}

#[tokio::test]
async fn who_says_something_else_inside_is_let_through_the_next_time() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let words: [(&[u8], _); 2] =
        [(b"\x10\x12\x00\x04MQTT\x04\x02\x00\x3c", "mqtt.test"), (b"a1 CAPABILITY\r\n", "imap.test")];
    for (word, host) in words {
        let mut client = inside(&world, host, &[]).await;
        client.write_all(word).await.unwrap();
        until(&mut events, |event| matches!(event, Event::BypassLearned { host: of, .. } if of == host))
            .await;
        assert_eq!(heard(&mut client).await, b"", "nothing that it could misread");
        let mut client = world.connect(&format!("{host}:443")).await;
        client.write_all(word).await.unwrap();
        let (to, _sender, mut receiver) = tunnel(&world).await;
        assert_eq!(to, host);
        assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Body(word.into()));
    }
    // Of another client nothing is known.
    let mut other = world.client_at([127, 0, 0, 2].into()).await;
    other.write_all(b"CONNECT mqtt.test:443 HTTP/1.1\r\nhost: mqtt.test:443\r\n\r\n").await.unwrap();
    read_until(&mut other, &mut String::new(), "\r\n\r\n").await;
    let mut other = within(&world, other, "mqtt.test", &[]).await;
    asks(&world, &mut other, "mqtt.test").await;
}

#[tokio::test]
async fn who_waits_for_the_server_to_begin_is_let_through_the_next_time_and_a_browser_may_wait() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let mut browser = inside(&world, "site.test", &["http/1.1"]).await;
    let mut client = inside(&world, "mail.test", &[]).await;
    assert_eq!(heard(&mut client).await, b"");
    until(&mut events, |event| {
        let Event::BypassLearned { client: Some(_), host, lesson, .. } = event else { return false };
        host == "mail.test" && lesson == "not_http_within"
    })
    .await;
    let _client = world.connect("mail.test:443").await;
    assert_eq!(tunnel(&world).await.0, "mail.test");
    // It was there before the other.
    asks(&world, &mut browser, "site.test").await;
    assert_eq!(world.bus.counters().bypasses_learned(), 1);
    asks(&world, &mut inside(&world, "site.test", &["http/1.1"]).await, "site.test").await;
}

#[tokio::test]
async fn a_request_without_a_named_protocol_is_http() {
    let world = world().await;
    let mut client = inside(&world, "site.test", &[]).await;
    client.write_all(b"\r\nGE").await.unwrap();
    client.write_all(b"T /page HTTP/1.1\r\nhost: site").await.unwrap();
    client.write_all(b".test\r\n\r\n").await.unwrap();
    assert_eq!(world.asked().await.head.url(), "https://site.test/page");
    assert_eq!(world.bus.counters().bypasses_learned(), 0);
}

#[tokio::test]
async fn a_server_that_greets_is_learned_and_one_that_bids_farewell_is_not() {
    let world = world().await;
    let greets = async |greeting: &'static [u8], has_ended: bool| {
        let mut client = world.connect("site.test:443").await;
        // Nothing is said for as long as it takes until the tunnel is opened.
        let (_, mut sender, mut receiver) = tunnel(&world).await;
        sender.accept_tunnel();
        if has_ended {
            client.shutdown().await.unwrap();
            assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Ended);
        }
        sender.write(greeting.into()).await.unwrap();
        sender.finish(None);
        assert_eq!(heard(&mut client).await, greeting);
        world.bus.counters().bypasses_learned()
    };
    let alert = b"\x15\x03\x01\x00\x02\x02\x32";
    assert_eq!(greets(alert, true).await, 0, "it has heard the client end");
    assert_eq!(greets(alert, false).await, 0, "its patience is at an end");
    assert_eq!(greets(b"421 too late", true).await, 0);
    assert_eq!(greets(b"220 welcome", false).await, 1);
}
