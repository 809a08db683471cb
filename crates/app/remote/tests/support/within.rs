//! What clients say inside TLS that the remote answers in the name of the host, and what ground sees of it.

use std::sync::Arc;

use bytes::Bytes;
use farhop_events::Bypass;
use farhop_htotp::frame::Coding;
use farhop_transport::hop::{Arrival, Incoming};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Asked, PATIENCE, World, head, tls_client, world_with};

pub async fn world() -> World {
    world_with(&["interception.enabled=true"]).await
}

pub async fn handshake(
    client: TcpStream,
    config: Arc<ClientConfig>,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    timeout(PATIENCE, TlsConnector::from(config).connect(name, client)).await.unwrap()
}

/// A connection to `site.test` that is looked into, over HTTP/1.1.
pub async fn within(world: &World) -> TlsStream<TcpStream> {
    let client = world.connect("site.test:443").await;
    handshake(client, tls_client(world, true, &["http/1.1"]), "site.test").await.unwrap()
}

pub async fn say(client: &mut TlsStream<TcpStream>, path: &str, fields: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: site.test\r\naccept: */*\r\n{fields}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
}

pub async fn hear(client: &mut TlsStream<TcpStream>, enough: &str) -> String {
    let (mut got, mut buffer) = (String::new(), [0; 4096]);
    while !got.contains(enough) {
        let count = timeout(PATIENCE, client.read(&mut buffer)).await.expect("an answer comes").unwrap_or(0);
        assert!(count > 0, "ended after {got}");
        got.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    got
}

pub async fn answer(mut asked: Asked, body: &'static str) {
    let fields = head(&[("content-type", "text/plain"), ("cache-control", "no-store")]);
    asked.sender.answer(&fields, Coding::Identity, None);
    asked.sender.write(Bytes::from_static(body.as_bytes())).await.unwrap();
    asked.sender.finish(None);
}

/// The next tunnel at ground and the first bytes in it.
pub async fn tunnelled(world: &World) -> (String, Bytes) {
    loop {
        let incoming = timeout(PATIENCE, world.hop.accept()).await.expect("a tunnel is wanted").unwrap();
        if let Incoming::Tunnel { asked, mut receiver, .. } = incoming {
            let Arrival::Body(first) = timeout(PATIENCE, receiver.next()).await.unwrap() else {
                panic!("nothing in it")
            };
            return (asked.host, first);
        }
    }
}

/// A TLS record of a handshake.
pub fn is_hello(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x16, 3])
}

pub fn bypassed(world: &World, why: Bypass) -> u64 {
    world.bus.counters().bypassed(why)
}
