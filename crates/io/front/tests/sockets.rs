//! What only real sockets show: resets, refused listening and memory.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use bytes::Bytes;
use farhop_front::{Departure, Head, ListenError, Listener, Settings};
use http::{HeaderMap, StatusCode};
use std::io::ErrorKind;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn listen(settings: Settings) -> (Listener, SocketAddr) {
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), settings).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn ok() -> Head {
    Head { status: StatusCode::OK, fields: HeaderMap::new() }
}

#[tokio::test]
async fn a_body_that_only_ends_with_the_connection_is_aborted_by_a_reset() {
    let (listener, address) = listen(Settings::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET http://a/ HTTP/1.0\r\n\r\n").await.unwrap();
    let (mut connection, _) = listener.accept().await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    let body = exchange.responder.start(ok(), "part".into()).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"part") {
        assert!(client.read_buf(&mut seen).await.unwrap() > 0);
    }
    body.abort();
    let error = client.read_buf(&mut seen).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_resets_is_noticed_at_once() {
    let (listener, address) = listen(Settings::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let (mut connection, _) = listener.accept().await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    assert_eq!(exchange.responder.departure().await, Departure::Reset);
}

#[tokio::test]
async fn a_tunnel_can_be_reset() {
    let (listener, address) = listen(Settings::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let (mut connection, _) = listener.accept().await;
    let exchange = connection.next_request().await.unwrap().unwrap();
    let tunnel = exchange.responder.tunnel(ok()).await.unwrap();
    drop((connection, exchange.body));
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        assert!(client.read_buf(&mut seen).await.unwrap() > 0);
    }
    tunnel.reset();
    assert_eq!(client.read_buf(&mut seen).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_final_answer_is_not_destroyed_by_bytes_still_on_their_way() {
    let (listener, address) = listen(Settings::default()).await;
    let mut client = TcpStream::connect(address).await.unwrap();
    let server = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await;
        connection.next_request().await.map(|_| ())
    });
    let (mut read, mut write) = client.split();
    write.write_all(b"GET / HTTP/1.1\n").await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        assert!(read.read_buf(&mut answer).await.unwrap() > 0);
    }
    // The refusing side still listens: these bytes meet no reset.
    write.write_all(&[b'x'; 5000]).await.unwrap();
    read.read_to_end(&mut answer).await.unwrap();
    assert!(String::from_utf8(answer).unwrap().contains("a line feed stands alone"));
    write.shutdown().await.unwrap();
    assert!(server.await.unwrap().is_err());
}

#[tokio::test]
async fn an_address_in_use_is_named_with_what_to_do() {
    let (_held, address) = listen(Settings::default()).await;
    let error = Listener::bind(address, Settings::default()).await.unwrap_err();
    assert!(matches!(error, ListenError::InUse(_)));
    assert!(error.to_string().contains(&address.to_string()));
    assert!(error.to_string().contains("set another listen address"));
    let foreign = SocketAddr::from(([192, 0, 2, 1], 3128));
    let error = Listener::bind(foreign, Settings::default()).await.unwrap_err();
    assert!(matches!(error, ListenError::NoSuchAddress(_)));
}

#[tokio::test]
async fn clients_beyond_the_bound_wait_for_a_place() {
    let (listener, address) = listen(Settings { connections: 1, ..Settings::default() }).await;
    let _first = TcpStream::connect(address).await.unwrap();
    let _second = TcpStream::connect(address).await.unwrap();
    let (served, _) = listener.accept().await;
    let mut waiting = std::pin::pin!(listener.accept());
    let early = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx).is_ready()));
    assert!(!early.await);
    drop(served);
    waiting.await;
}

#[tokio::test]
async fn responses_of_any_size_pass_a_socket_unharmed() {
    let (listener, address) = listen(Settings::default()).await;
    let server = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await;
        let exchange = connection.next_request().await.unwrap().unwrap();
        let mut body = exchange.responder.start(ok(), Bytes::new()).await.unwrap();
        for n in 0..=255 {
            body.send(vec![n; 10_000].into()).await.unwrap();
        }
        body.finish(None).await.unwrap();
        drop(exchange.body);
        connection.next_request().await.unwrap().is_none()
    });
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET http://a/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut wire = Vec::new();
    client.read_to_end(&mut wire).await.unwrap();
    drop(client);
    assert!(server.await.unwrap());
    assert!(wire.ends_with(b"\r\n0\r\n\r\n"));
    assert_eq!(wire.iter().filter(|&&byte| byte == 0xfe).count(), 10_000);
}
