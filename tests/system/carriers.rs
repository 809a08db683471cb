//! Carriers that are lost while both ends live: what was under way goes on on the next one where it stopped. The origin is
//! asked once, nothing is said twice, no byte is missing.

use farhop_testkit::pattern::{Checker, bytes_at};
use farhop_testkit::{File, Site};
use http::Method;
use http_body_util::{BodyExt as _, Empty, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Pair, ask, open, raw, request, send, until};

const SIZE: u64 = 24 << 20;
/// More than the sockets between client and remote hold, several times.
const LONG: u64 = 64 << 20;
const OVER_TCP: &[&str] = &["carrier=tcp", "connect_ports=1-65535"];

/// Waits until the remote has lost so many carriers, and has another.
async fn next_carrier(pair: &mut Pair, lost: u64) {
    until("the carrier is lost", async || {
        let downs = pair.counters("remote").await["carriers_down"].as_u64();
        (downs >= Some(lost)).then_some(())
    })
    .await;
    pair.await_carrier().await;
}

async fn counted<const N: usize>(pair: &Pair, names: [&str; N]) -> [u64; N] {
    let counters = pair.counters("remote").await;
    names.map(|name| counters[name].as_u64().unwrap())
}

/// Reads a request up to the end of its body; gives all of it.
async fn heard(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut heard = Vec::new();
    while !heard.ends_with(end) {
        assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "the request was given up");
    }
    heard
}

/// Sends as much from `near` to `far` as back, and compares it; `lose` is done in the middle.
async fn cross(near: TcpStream, far: TcpStream, lose: impl AsyncFnOnce()) {
    let ((mut near_read, mut near_write), (mut far_read, mut far_write)) =
        (near.into_split(), far.into_split());
    let up = tokio::spawn(async move {
        near_write.write_all(&bytes_at(3, 0, SIZE as usize)).await.unwrap();
        near_write.shutdown().await.unwrap();
    });
    let down = tokio::spawn(async move {
        far_write.write_all(&bytes_at(4, 0, SIZE as usize)).await.unwrap();
        far_write.shutdown().await.unwrap();
    });
    let (mut got_up, mut got_down) = (Vec::new(), Vec::new());
    while got_up.len() < 1 << 20 {
        assert_ne!(far_read.read_buf(&mut got_up).await.unwrap(), 0);
    }
    lose().await;
    let (up_end, down_end) =
        tokio::join!(far_read.read_to_end(&mut got_up), near_read.read_to_end(&mut got_down));
    up_end.unwrap();
    down_end.unwrap();
    up.await.unwrap();
    down.await.unwrap();
    assert!(got_up == bytes_at(3, 0, SIZE as usize), "{} bytes came up", got_up.len());
    assert!(got_down == bytes_at(4, 0, SIZE as usize), "{} bytes came down", got_down.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_over_carrier_after_carrier_and_is_asked_for_once() {
    let (mut pair, relay) = Pair::relayed(OVER_TCP).await;
    let site = Site::new().file("/big", File::pattern(1, LONG)).serve().await;
    let asked = request(Method::GET, &site.url("/big")).body(Empty::new().boxed()).unwrap();
    let mut body = open(pair.proxy, asked).await.into_body();
    let mut checker = Checker::new(1);
    for lost in 1..=3 {
        while checker.checked() < lost * LONG / 6 {
            let frame = body.frame().await.expect("the body goes on").expect("the body is not cut off");
            checker.check(&frame.into_data().unwrap()).expect("every byte is the origin's");
        }
        relay.sever();
        until("it goes on", async || (counted(&pair, ["rejoined"]).await >= [lost]).then_some(())).await;
    }
    while let Some(frame) = body.frame().await {
        checker.check(&frame.expect("the body is not cut off").into_data().unwrap()).unwrap();
    }
    assert_eq!(checker.checked(), LONG);
    assert_eq!(site.times("/big"), 1);
    assert_eq!(counted(&pair, ["resumed", "aborted"]).await, [0, 0]);
    pair.assert_both_run();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_on_where_its_carrier_was_lost() {
    let (mut pair, relay) = Pair::relayed(OVER_TCP).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/upload", listener.local_addr().unwrap());
    let sent = bytes_at(2, 0, SIZE as usize);
    let asked = request(Method::POST, &url).body(Full::from(sent.clone()).boxed()).unwrap();
    let answer = tokio::spawn(send(pair.proxy, asked));
    let (mut origin, _) = listener.accept().await.unwrap();
    let mut got = Vec::new();
    while got.len() < SIZE as usize / 3 {
        assert_ne!(origin.read_buf(&mut got).await.unwrap(), 0);
    }
    relay.sever();
    next_carrier(&mut pair, 1).await;
    while !got.ends_with(&sent[sent.len() - 64..]) {
        assert_ne!(origin.read_buf(&mut got).await.unwrap(), 0, "the upload was given up");
    }
    origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstored").await.unwrap();
    assert!(got.ends_with(&sent), "what came up is not what was sent");
    let answer = answer.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "stored"));
    // A busy machine may lose one more carrier of its own accord.
    assert!(counted(&pair, ["rejoined"]).await >= [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_whose_answer_is_slow_is_carried_out_once_and_answered() {
    let (mut pair, relay) = Pair::relayed(OVER_TCP).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/order", listener.local_addr().unwrap());
    let asked = request(Method::POST, &url).body(Full::from("one piano").boxed()).unwrap();
    let answer = tokio::spawn(send(pair.proxy, asked));
    let (mut origin, _) = listener.accept().await.unwrap();
    heard(&mut origin, b"one piano").await;
    relay.sever();
    next_carrier(&mut pair, 1).await;
    relay.sever();
    next_carrier(&mut pair, 2).await;
    origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbought").await.unwrap();
    let answer = answer.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "bought"));
    assert!(tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await.is_err(), "sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_of_which_ground_never_heard_is_sent_on_the_next_carrier() {
    let (mut pair, relay) = Pair::relayed(OVER_TCP).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/order", listener.local_addr().unwrap());
    // Whether ground has the last part of the handshake by now is no matter.
    relay.set(|way| way.cut = true);
    let asked = request(Method::POST, &url).body(Full::from("one piano").boxed()).unwrap();
    let answer = tokio::spawn(send(pair.proxy, asked));
    until("it has crossed, as far as the remote knows", async || {
        (counted(&pair, ["requests_crossed"]).await == [1]).then_some(())
    })
    .await;
    relay.sever();
    relay.set(|way| way.cut = false);
    next_carrier(&mut pair, 1).await;
    let (mut origin, _) = listener.accept().await.unwrap();
    heard(&mut origin, b"one piano").await;
    origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbought").await.unwrap();
    let answer = answer.await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, "bought"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_goes_on_both_ways() {
    let (mut pair, relay) = Pair::relayed(OVER_TCP).await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap().to_string();
    let mut client = TcpStream::connect(pair.proxy).await.unwrap();
    let text = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    let said = raw(&mut client, &text, |said| said.contains("\r\n\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    // The tunnel is told of at ground with the client's first bytes.
    client.write_all(b"hello").await.unwrap();
    let (mut far, _) = server.accept().await.unwrap();
    heard(&mut far, b"hello").await;
    let lose = async || {
        relay.sever();
        next_carrier(&mut pair, 1).await;
    };
    cross(client, far, lose).await;
    // A busy machine may lose one more carrier of its own accord.
    assert!(counted(&pair, ["rejoined"]).await >= [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_goes_on_both_ways_on_the_carrier_after_a_cut() {
    let (pair, relay) = Pair::relayed(OVER_TCP).await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = server.local_addr().unwrap().to_string();
    let mut client = TcpStream::connect(pair.proxy).await.unwrap();
    let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let asked = format!("GET http://{host}/socket HTTP/1.1\r\nHost: {host}\r\n{fields}");
    client.write_all(asked.as_bytes()).await.unwrap();
    let (mut far, _) = server.accept().await.unwrap();
    heard(&mut far, b"\r\n\r\n").await;
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                  Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    far.write_all(agreed.as_bytes()).await.unwrap();
    let said = raw(&mut client, "", |said| said.contains("\r\n\r\n")).await;
    assert!(said.starts_with("HTTP/1.1 101 "), "{said}");
    let lose = async || {
        relay.set(|way| way.cut = true);
        until("the carrier is given up", async || {
            (counted(&pair, ["carriers_down"]).await >= [1]).then_some(())
        })
        .await;
        relay.set(|way| way.cut = false);
    };
    cross(client, far, lose).await;
    assert!(counted(&pair, ["rejoined"]).await >= [1]);
}

/// What leaves a carrier over QUIC for one over TCP is as whole as what merely loses its carrier.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_from_quic_to_tcp_when_packets_no_longer_pass() {
    let (mut pair, relay) = Pair::relayed(&["probe.active=200 ms", "quic_again=1 s"]).await;
    let over =
        async |pair: &Pair| ask(&pair.control("remote"), "status").await.unwrap()["carrier"]["over"].clone();
    // On a busy machine TCP may have been there first.
    until("the carrier is over QUIC", async || (over(&pair).await == "quic").then_some(())).await;
    let site = Site::new().file("/big", File::pattern(5, SIZE)).serve().await;
    let asked = request(Method::GET, &site.url("/big")).body(Empty::new().boxed()).unwrap();
    let mut body = open(pair.proxy, asked).await.into_body();
    let mut checker = Checker::new(5);
    while checker.checked() < SIZE / 3 {
        checker.check(&body.frame().await.unwrap().unwrap().into_data().unwrap()).unwrap();
    }
    relay.set(|way| way.udp = false);
    while let Some(frame) = body.frame().await {
        checker.check(&frame.expect("the body is not cut off").into_data().unwrap()).unwrap();
    }
    assert_eq!(checker.checked(), SIZE);
    assert_eq!(over(&pair).await, "tcp");
    assert_eq!(site.times("/big"), 1);
    pair.assert_both_run();
}
