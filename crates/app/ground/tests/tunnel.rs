//! Tunnels through ground: bytes both ways at once, each side's end and reset carried to the other.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::SocketAddr;

use farhop_htotp::frame::{Class, Tunnel};
use farhop_testkit::urgent;
use farhop_transport::hop::{Arrival, Incoming, Receiver, Sender};
use support::{Pair, noise};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A tunnel that stands, and its far end.
async fn open(pair: &Pair) -> (Sender, Receiver, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (sender, mut receiver) = ask(pair, addr);
    let (stream, _) = listener.accept().await.unwrap();
    assert_eq!(receiver.next().await, Arrival::TunnelOpened);
    (sender, receiver, stream)
}

fn ask(pair: &Pair, addr: SocketAddr) -> (Sender, Receiver) {
    pair.hop.open_tunnel(Tunnel::to(1, 7, Class::Web, &addr.ip().to_string(), addr.port()))
}

async fn read_to_end(receiver: &mut Receiver) -> (Vec<u8>, Arrival) {
    let mut all = Vec::new();
    loop {
        match receiver.next().await {
            Arrival::Body(bytes) => all.extend_from_slice(&bytes),
            end => return (all, end),
        }
    }
}

#[tokio::test]
async fn megabytes_pass_both_ways_at_once() {
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver, stream) = open(&pair).await;
    let body = noise(5_000_000);
    let (mut reader, mut writer) = stream.into_split();
    let upload = async {
        for piece in body.chunks(50_000) {
            sender.write(bytes::Bytes::copy_from_slice(piece)).await.unwrap();
        }
        sender.finish(None);
    };
    let download = async {
        writer.write_all(&body).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let taken = async {
        let mut taken = Vec::new();
        reader.read_to_end(&mut taken).await.unwrap();
        taken
    };
    let ((), (), taken, (got, end)) = tokio::join!(upload, download, taken, read_to_end(&mut receiver));
    assert!(taken == body && got == body);
    assert_eq!(end, Arrival::Ended);
}

#[tokio::test]
async fn a_side_that_has_ended_can_still_be_answered() {
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver, mut stream) = open(&pair).await;
    sender.write("question".into()).await.unwrap();
    sender.finish(None);
    let mut question = String::new();
    stream.read_to_string(&mut question).await.unwrap();
    assert_eq!(question, "question");
    stream.write_all(b"answer").await.unwrap();
    drop(stream);
    assert_eq!(read_to_end(&mut receiver).await, (b"answer".to_vec(), Arrival::Ended));

    let (mut sender, mut receiver, mut stream) = open(&pair).await;
    stream.shutdown().await.unwrap();
    assert_eq!(receiver.next().await, Arrival::Ended);
    sender.write("late".into()).await.unwrap();
    sender.finish(None);
    let mut late = String::new();
    stream.read_to_string(&mut late).await.unwrap();
    assert_eq!(late, "late");
}

#[tokio::test]
async fn urgent_bytes_pass_in_their_place_with_their_mark() {
    let pair = Pair::new(&[]).await;
    // Ground says with it that it takes marks.
    while !matches!(pair.hop.accept().await.unwrap(), Incoming::Hello(_)) {}
    let (mut sender, mut receiver, stream) = open(&pair).await;
    farhop_netdev::keep_urgent_in_place(&stream).unwrap();
    sender.write("before".into()).await.unwrap();
    sender.mark();
    sender.write("!after".into()).await.unwrap();
    assert_eq!(urgent::hear(&stream, 12).await, (b"before!after".to_vec(), vec![6]));

    stream.writable().await.unwrap();
    assert_eq!(stream.try_write(b"before").unwrap(), 6);
    urgent::say(&stream, b'!').await;
    let (mut got, mut places) = (Vec::new(), Vec::new());
    while got.len() < 7 {
        match receiver.next().await {
            Arrival::Body(bytes) => got.extend_from_slice(&bytes),
            Arrival::Urgent => places.push(got.len()),
            other => panic!("{other:?} after {got:?}"),
        }
    }
    assert_eq!((&got[..], &places[..]), (&b"before!"[..], &[6][..]));
}

#[tokio::test]
async fn a_reset_crosses_as_a_reset() {
    let pair = Pair::new(&[]).await;
    let (_sender, mut receiver, stream) = open(&pair).await;
    stream.set_zero_linger().unwrap();
    drop(stream);
    assert!(matches!(receiver.next().await, Arrival::Reset(_)));

    let (sender, receiver, mut stream) = open(&pair).await;
    drop((sender, receiver));
    let error = stream.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn what_an_origin_says_before_it_breaks_off_arrives() {
    let pair = Pair::lasting(&[]).await;
    let (_sender, mut receiver, mut stream) = open(&pair).await;
    let said = noise(40_000);
    stream.write_all(&said).await.unwrap();
    stream.set_zero_linger().unwrap();
    drop(stream);
    let (got, end) = read_to_end(&mut receiver).await;
    assert!(got == said, "{} bytes of {}", got.len(), said.len());
    assert!(matches!(end, Arrival::Reset(_)));
}

#[tokio::test]
async fn what_is_sent_before_the_tunnel_stands_arrives_first() {
    let pair = Pair::new(&[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut sender, _receiver) = ask(&pair, listener.local_addr().unwrap());
    sender.write("early ".into()).await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    sender.write("late".into()).await.unwrap();
    let mut all = [0; 10];
    stream.read_exact(&mut all).await.unwrap();
    assert_eq!(&all, b"early late");
}

#[tokio::test]
async fn a_tunnel_that_cannot_be_says_why() {
    let pair = Pair::new(&[]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let (_sender, mut receiver) = ask(&pair, addr);
    let Arrival::Failed(failure) = receiver.next().await else { panic!("it stands") };
    assert_eq!((failure.status, &*failure.token), (502, "connection_refused"));

    let private = Pair::new(&["allow="]).await;
    let (_sender, mut receiver) = ask(&private, addr);
    let Arrival::Failed(failure) = receiver.next().await else { panic!("it stands") };
    assert_eq!((failure.status, &*failure.token), (403, "destination_ip_prohibited"));
}

fn tunnel(pair: &Pair, number: u64, user: u64, listener: &TcpListener) -> (Sender, Receiver) {
    let port = listener.local_addr().unwrap().port();
    pair.hop.open_tunnel(Tunnel::to(number, user, Class::Web, "127.0.0.1", port))
}

/// Two hosts of which two users have shown that the second usually follows the first.
async fn companions() -> (Pair, TcpListener, TcpListener) {
    let pair = Pair::new(&[]).await;
    let listen = || async { TcpListener::bind("127.0.0.1:0").await.unwrap() };
    let (page, parts) = (listen().await, listen().await);
    for user in [1, 2] {
        for listener in [&page, &parts] {
            let (_sender, mut receiver) = tunnel(&pair, user, user, listener);
            let (_stream, _) = listener.accept().await.unwrap();
            assert_eq!(receiver.next().await, Arrival::TunnelOpened);
        }
    }
    (pair, page, parts)
}

#[tokio::test]
async fn a_host_that_usually_follows_finds_a_connection_made_ahead() {
    let (pair, page, parts) = companions().await;
    let open = |number, user, listener| tunnel(&pair, number, user, listener);
    let (_page_sender, _page_receiver) = open(3, 3, &page);
    let (mut ahead, _) = parts.accept().await.unwrap();
    let (_sender, mut receiver) = open(4, 3, &parts);
    assert_eq!(receiver.next().await, Arrival::TunnelOpened);
    ahead.write_all(b"banner").await.unwrap();
    assert_eq!(receiver.next().await, Arrival::Body("banner".into()));
    let counters = pair.bus.counters();
    assert_eq!((counters.connected_ahead(), counters.ahead_used(), counters.ahead_unused()), (1, 1, 0));
}

#[tokio::test]
async fn a_connection_made_ahead_that_has_closed_is_not_used() {
    let (pair, page, parts) = companions().await;
    let open = |number, user, listener| tunnel(&pair, number, user, listener);
    let (_page_sender, mut page_receiver) = open(3, 3, &page);
    let (ahead, _) = parts.accept().await.unwrap();
    drop(ahead);
    // What comes to ground after this comes after the end of that connection.
    let (mut stream, _) = page.accept().await.unwrap();
    stream.write_all(b"go").await.unwrap();
    assert_eq!(page_receiver.next().await, Arrival::TunnelOpened);
    assert_eq!(page_receiver.next().await, Arrival::Body("go".into()));
    let (_sender, mut receiver) = open(4, 3, &parts);
    let (mut fresh, _) = parts.accept().await.unwrap();
    assert_eq!(receiver.next().await, Arrival::TunnelOpened);
    fresh.write_all(b"banner").await.unwrap();
    assert_eq!(receiver.next().await, Arrival::Body("banner".into()));
    assert_eq!(pair.bus.counters().ahead_unused(), 1);
}
