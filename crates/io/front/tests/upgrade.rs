//! WebSocket asked for over HTTP/1.1 and over HTTP/2: the same request, the same tunnel.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_front::{Connection, Departure, Exchange, Settings, Tunnel, WriteError};
use http::{Method, Request};
use support::{head, next, secured};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: a.example\r\nUpgrade: WebSocket\r\nConnection: keep-alive, \
    Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// Answers as an origin that accepts.
async fn accept(exchange: Exchange) -> Tunnel {
    assert_eq!((exchange.head.method, exchange.head.upgrade), (Method::GET, Some("websocket")));
    drop(exchange.body);
    let fields =
        [("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), ("sec-websocket-protocol", "chat")];
    exchange.responder.tunnel(head(101, &fields)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_becomes_a_tunnel_with_what_was_sent_ahead() {
    let (mut client, mut connection) = secured(&["http/1.1"], Settings::default()).await;
    client.write_all(format!("{UPGRADE}early ").as_bytes()).await.unwrap();
    let mut tunnel = accept(next(&mut connection).await).await;
    assert!(connection.next_request().await.unwrap().is_none(), "HTTP is over");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(client.read_u8().await.unwrap());
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(
        answer.contains("Connection: upgrade\r\n") && answer.contains("Upgrade: websocket\r\n"),
        "{answer}"
    );
    assert!(answer.contains("Sec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{answer}");
    client.write_all(b"late").await.unwrap();
    let mut read = [0; 10];
    tunnel.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"early late");
    tunnel.write_all(b"\x81\x02hi").await.unwrap();
    tunnel.flush().await.unwrap();
    client.read_exact(&mut read[..4]).await.unwrap();
    assert_eq!(&read[..4], b"\x81\x02hi");
}

#[tokio::test(start_paused = true)]
async fn only_a_proper_request_for_websocket_is_an_upgrade() {
    for (from, to) in [
        ("Upgrade: WebSocket", "Upgrade: h2c"),
        ("keep-alive, Upgrade", "keep-alive"),
        ("GET ", "POST "),
        ("HTTP/1.1", "HTTP/1.0"),
        ("\r\n\r\n", "\r\nContent-Length: 1\r\n\r\n"),
    ] {
        let (mut client, mut connection) = secured(&["http/1.1"], Settings::default()).await;
        client.write_all(UPGRADE.replacen(from, to, 1).as_bytes()).await.unwrap();
        let exchange = next(&mut connection).await;
        assert_eq!(exchange.head.upgrade, None, "{to}");
        assert!(matches!(exchange.responder.tunnel(head(101, &[])).await, Err(WriteError::Status(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn an_upgrade_that_is_refused_leaves_the_connection_as_it_is() {
    let (mut client, mut connection) = secured(&["http/1.1"], Settings::default()).await;
    client.write_all(UPGRADE.as_bytes()).await.unwrap();
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(426, &[("sec-websocket-version", "13")]), "no".into()).await.unwrap();
    drop(exchange.body);
    client.write_all(b"GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n").await.unwrap();
    assert_eq!(next(&mut connection).await.head.upgrade, None);
}

/// A client of HTTP/2 that has asked for a WebSocket.
struct Asked {
    response: h2::client::ResponseFuture,
    sent: h2::SendStream<Bytes>,
    /// What came out.
    exchange: Exchange,
    /// Both ends' connections, which are to go on.
    _kept: (h2::client::SendRequest<Bytes>, Connection),
}

async fn extended() -> Asked {
    let (client, mut connection) = secured(&["h2"], Settings::default()).await;
    let (client, driver) = h2::client::handshake(client).await.unwrap();
    tokio::spawn(async move { driver.await.unwrap() });
    let mut client = client.ready().await.unwrap();
    while !client.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
    }
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri("https://a.example/chat")
        .header("sec-websocket-version", "13")
        .body(())
        .unwrap();
    request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let (response, sent) = client.send_request(request, false).unwrap();
    let exchange = next(&mut connection).await;
    Asked { response, sent, exchange, _kept: (client, connection) }
}

#[tokio::test(start_paused = true)]
async fn an_extended_connect_becomes_the_same_tunnel() {
    let Asked { response, mut sent, exchange, _kept } = extended().await;
    let mut tunnel = accept(exchange).await;
    let (head, mut received) = response.await.unwrap().into_parts();
    assert_eq!(head.status, 200);
    let mut names: Vec<_> = head.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["sec-websocket-protocol"]);
    sent.send_data("ping".into(), false).unwrap();
    let mut read = [0; 4];
    tunnel.read_exact(&mut read).await.unwrap();
    tunnel.write_all(b"pong").await.unwrap();
    assert_eq!(received.data().await.unwrap().unwrap(), "pong");
    // Half-closes pass in both directions.
    sent.send_data(Bytes::new(), true).unwrap();
    assert_eq!(tunnel.read(&mut read).await.unwrap(), 0);
    tunnel.write_all(b"last").await.unwrap();
    tunnel.shutdown().await.unwrap();
    assert_eq!(received.data().await.unwrap().unwrap(), "last");
    while let Some(rest) = received.data().await {
        assert!(rest.unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn resets_pass_both_ways() {
    let Asked { response, sent: _sent, exchange, _kept } = extended().await;
    let tunnel = accept(exchange).await;
    let mut received = response.await.unwrap().into_body();
    tunnel.reset();
    assert_eq!(received.data().await.unwrap().unwrap_err().reason(), Some(h2::Reason::CANCEL));

    let Asked { response, mut sent, exchange, _kept } = extended().await;
    let mut tunnel = accept(exchange).await;
    let _received = response.await.unwrap();
    sent.send_reset(h2::Reason::CANCEL);
    let error = tunnel.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn an_extended_connect_is_refused_or_given_up_like_any_request() {
    let Asked { response, sent: _sent, exchange, _kept } = extended().await;
    exchange.responder.respond(head(403, &[]), "no".into()).await.unwrap();
    assert_eq!(response.await.unwrap().status(), 403);

    let Asked { response: _response, mut sent, exchange, _kept } = extended().await;
    let waiting = tokio::spawn(async move { exchange.responder.departure().await });
    sent.send_reset(h2::Reason::CANCEL);
    assert_eq!(waiting.await.unwrap(), Departure::Reset);

    let Asked { response, sent: _sent, exchange, _kept } = extended().await;
    // An origin that answers 200 has not gone over to WebSocket; a 200 here would say that it has.
    let answered = exchange.responder.respond(head(200, &[]), "a page".into()).await;
    assert!(matches!(answered, Err(WriteError::Status(_))));
    assert!(response.await.is_err());
}
