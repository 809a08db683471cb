//! WebSocket upgrades: plain and within TLS, refused, and answered by origins that did not understand.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use farhop_origin::{Error, Partition, Settings, Upgraded, UpgradedStream, Upload};
use http::{HeaderMap, HeaderValue, Method};
use std::sync::{Arc, Mutex};
use support::tls::*;
use support::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// The answer to the key in `head` (RFC 6455 §4.2.2).
fn accept(head: &str) -> String {
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-Websocket-Key: ")).unwrap();
    let digest = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes(),
    );
    BASE64.encode(digest)
}

/// Agrees to a WebSocket, says something at once, and then says what it hears until the client says no more.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin, heads: Arc<Mutex<Vec<String>>>) {
    let head = read_head(&mut stream).await;
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
         Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Accept: {}\r\n\r\nearly",
        accept(&head)
    );
    heads.lock().unwrap().push(head);
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut buffer = [0; 100];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        stream.write_all(&buffer[..count]).await.unwrap();
        stream.flush().await.unwrap();
    }
    stream.write_all(b"bye").await.unwrap();
    stream.shutdown().await.unwrap();
}

async fn talks(stream: &mut UpgradedStream) {
    let mut heard = [0; 5];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"early");
    for _ in 0..100 {
        stream.write_all(b"hello").await.unwrap();
        stream.flush().await.unwrap();
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hello");
    }
    // Each half ends by itself.
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"bye");
}

fn switched(upgraded: Upgraded) -> (HeaderMap, UpgradedStream) {
    match upgraded {
        Upgraded::Switched { fields, stream } => (fields, stream),
        Upgraded::Answered(response) => panic!("{response:?}"),
    }
}

#[tokio::test]
async fn a_websocket_is_a_stream_of_bytes_on_a_connection_of_its_own() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let origin = Origin::start(move |stream, _| echo(stream, seen.clone())).await;
    let client = client();
    let mut request = origin.get("/chat?room=1");
    for (name, value) in [
        ("sec-websocket-key", KEY),
        ("sec-websocket-protocol", "chat"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
    ] {
        request.fields.insert(name, HeaderValue::from_static(value));
    }
    let (fields, mut stream) = switched(client.upgrade(request).await.unwrap());
    assert_eq!(fields["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(fields["sec-websocket-protocol"], "chat");
    assert_eq!(fields.len(), 2, "{fields:?}");
    talks(&mut stream).await;
    let head = heads.lock().unwrap().pop().unwrap();
    let mut lines: Vec<_> = head.trim_end().split("\r\n").collect();
    assert_eq!(lines[0], "GET /chat?room=1 HTTP/1.1");
    lines[1..].sort_unstable();
    let host = format!("Host: 127.0.0.1:{}", origin.port);
    let key = format!("Sec-Websocket-Key: {KEY}");
    let wanted = [
        "Connection: Upgrade",
        &host,
        &key,
        "Sec-Websocket-Protocol: chat",
        "Sec-Websocket-Version: 13",
        "Upgrade: websocket",
    ];
    assert_eq!(lines[1..], wanted);
}

#[tokio::test]
async fn within_tls_only_http1_is_offered_and_a_key_is_made_where_none_is_given() {
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2", "http/1.1"], &BOTH_VERSIONS);
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let origin = origin_within(config, move |stream, _| {
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        echo(stream, seen.clone())
    })
    .await;
    let client = client_trusting(trusting(&root), Settings::default());
    for _ in 0..2 {
        let (fields, mut stream) = switched(client.upgrade(secure_get(&origin, "/")).await.unwrap());
        assert!(!fields.contains_key("sec-websocket-accept"), "the answer to a key that nobody gave");
        talks(&mut stream).await;
    }
    assert_eq!(origin.connections(), 2);
    let keys: Vec<_> = heads.lock().unwrap().iter().map(|head| accept(head)).collect();
    assert_ne!(keys[0], keys[1], "each key is new");

    let mut elsewhere = secure_get(&origin, "/");
    elsewhere.destination = farhop_origin::Destination::new("127.0.0.1", origin.port);
    assert!(matches!(client.upgrade(elsewhere).await, Err(Error::Certificate { .. })));
}

/// As [`echo`], for who has begun to log in on the same connection.
async fn echo_after_a_challenge(mut stream: tokio::net::TcpStream, heads: Arc<Mutex<Vec<String>>>) {
    read_head(&mut stream).await;
    let challenge = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM TlRM\r\nContent-Length: 2\r\n\r\nno";
    stream.write_all(challenge.as_bytes()).await.unwrap();
    echo(stream, heads).await;
}

#[tokio::test]
async fn a_websocket_of_a_login_is_on_the_connection_that_is_logged_in() {
    let origin = Origin::start(move |stream, _| echo_after_a_challenge(stream, Arc::default())).await;
    let client = client();
    let ask = async || {
        let mut request = origin.get("/");
        request.partition = Partition::single("ann");
        client.upgrade(request).await.unwrap()
    };
    let Upgraded::Answered(mut response) = ask().await else { panic!("no challenge") };
    assert_eq!(whole(&mut response).await.unwrap(), "no");
    drop(response);
    let (_, mut stream) = switched(ask().await);
    assert_eq!(origin.connections(), 1);
    talks(&mut stream).await;
    // What speaks another protocol now is nobody's place for requests.
    assert!(matches!(ask().await, Upgraded::Answered(_)));
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn an_upgrade_that_answers_something_else_is_refused() {
    let upgrade = "Upgrade: websocket\r\n";
    let connection = "Connection: Upgrade\r\n";
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    let wrong = "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n";
    for fields in [
        [connection, accept].concat(),
        [upgrade, accept].concat(),
        [upgrade, connection].concat(),
        [upgrade, connection, wrong].concat(),
        [upgrade, connection, accept, accept].concat(),
        ["Upgrade: h2c\r\n", connection, accept].concat(),
        [upgrade, "Connection: close\r\n", accept].concat(),
    ] {
        let origin = Origin::answering(format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n")).await;
        let mut request = origin.get("/");
        request.fields.insert("sec-websocket-key", HeaderValue::from_static(KEY));
        let error = client().upgrade(request).await.unwrap_err();
        assert!(matches!(error, Error::UpgradeFailed(_)), "{fields:?}: {error:?}");
        assert_eq!(error.proxy_status(), "http_upgrade_failed");
    }
}

#[tokio::test]
async fn any_other_answer_is_a_response() {
    let origin = Origin::answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await;
    let Upgraded::Answered(mut response) = client().upgrade(origin.get("/")).await.unwrap() else { panic!() };
    assert_eq!(response.status, 403);
    assert_eq!(whole(&mut response).await.unwrap(), "no");
    let silent = Origin::answering("").await;
    assert_eq!(client().upgrade(silent.get("/")).await.unwrap_err(), Error::Closed);
}

#[tokio::test]
async fn what_is_no_request_for_a_websocket_is_refused() {
    let origin = Origin::answering("").await;
    let post = origin.request(Method::POST, "/", Upload::empty());
    let body = origin.request(Method::GET, "/", Upload::whole("x".into()));
    let mut bad_key = origin.get("/");
    bad_key.fields.insert("sec-websocket-key", HeaderValue::from_static("short"));
    for request in [post, body, bad_key] {
        assert!(matches!(client().upgrade(request).await, Err(Error::InvalidRequest(_))));
    }
    assert_eq!(origin.connections(), 0);
}
