//! A browser that asks for much over HTTP/2 and reads nothing of it: other users and its own next requests are answered, and
//! what ground can say without being heard is bounded.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_transport::hop::Sender;
use h2::client::{ResponseFuture, SendRequest};
use rustls::pki_types::ServerName;
use support::{Asked, PATIENCE, UNCACHEABLE, World, head, tls_client, world_with};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const STREAMS: usize = 100;
const PIECE: usize = 64 * 1024;
/// What all of them may have said that nobody reads. At the hop: three quarters of 32 MiB, …
const UNDER_WAY: usize = 24 << 20;
/// … what the remote reads ahead of itself, and its client, …
const READ_AHEAD: usize = 2 * (16 << 20);
/// … and of each stream its window at the client, what is to be written to it, what is queued at ground, and a piece at each
/// of these places.
const OF_EACH: usize = (64 + 32 + 64) * 1024 + 4 * PIECE;
const MOST: usize = UNDER_WAY + READ_AHEAD + STREAMS * OF_EACH;
/// Loads in a row after which nothing more moves.
const STILL: u32 = 5;

/// A connection to the site from `address`, looked into.
async fn browser(world: &World, address: Ipv4Addr) -> SendRequest<Bytes> {
    let client = world.connect_on(world.client_at(address).await, "site.test:443", "").await;
    let name = ServerName::try_from("site.test").unwrap();
    let connecting = TlsConnector::from(tls_client(world, true, &["h2"])).connect(name, client);
    let tls = timeout(PATIENCE, connecting).await.unwrap().unwrap();
    let (requests, connection) = h2::client::Builder::new()
        // That of each stream is the smallest there is.
        .initial_connection_window_size((1 << 31) - 1)
        .handshake(tls)
        .await
        .unwrap();
    tokio::spawn(async move { drop(connection.await) });
    requests
}

async fn ask(requests: &SendRequest<Bytes>, path: &str) -> ResponseFuture {
    let request = http::Request::get(format!("https://site.test{path}")).body(()).unwrap();
    let mut ready = timeout(PATIENCE, requests.clone().ready()).await.unwrap().unwrap();
    ready.send_request(request, true).unwrap().0
}

/// Asks for so many bytes and reads them.
async fn load(world: &World, requests: &SendRequest<Bytes>, length: usize) {
    let answer = ask(requests, "/wanted").await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    let saying = async move {
        for _ in 0..length / PIECE {
            sender.write(Bytes::from(vec![b'.'; PIECE])).await.unwrap();
        }
        sender.finish(None);
    };
    let reading = async {
        let (mut body, mut read) = (answer.await.unwrap().into_body(), 0);
        while let Some(data) = body.data().await {
            let data = data.unwrap();
            read += data.len();
            body.flow_control().release_capacity(data.len()).unwrap();
        }
        read
    };
    let ((), read) = timeout(PATIENCE, async { tokio::join!(saying, reading) }).await.expect("it goes on");
    assert_eq!(read, length / PIECE * PIECE);
}

/// Says as much as is taken.
async fn endless(mut sender: Sender, said: Arc<AtomicUsize>) {
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    loop {
        said.fetch_add(PIECE, Relaxed);
        if sender.write(Bytes::from(vec![b'.'; PIECE])).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_hundred_answers_that_nobody_reads_are_bounded_and_stop_nobody() {
    let world = world_with(&["interception.enabled=true"]).await;
    let idler = browser(&world, Ipv4Addr::LOCALHOST).await;
    let other = browser(&world, Ipv4Addr::new(127, 0, 0, 2)).await;
    let said = Arc::new(AtomicUsize::new(0));
    let mut neglected = Vec::new();
    for n in 0..STREAMS {
        neglected.push(ask(&idler, &format!("/{n}")).await);
        tokio::spawn(endless(world.asked().await.sender, Arc::clone(&said)));
    }
    let (mut before, mut still) = (0, 0);
    while still < STILL {
        load(&world, &other, 1 << 20).await;
        load(&world, &idler, 1 << 18).await;
        let now = said.load(Relaxed);
        still = if now == before { still + 1 } else { 0 };
        before = now;
        assert!(now < MOST, "{now} bytes of what nobody reads");
    }
}
