//! Request bodies: read while the answer runs, left unread, cut short, held back.

use crate::client::{GET, head, next, pair, pair_with, path};
use bytes::{Bytes, BytesMut};
use farhop_front::h1::{BodyDecoder, Decoded};
use farhop_front::{BodyError, Exchange, Framing, HeadLimits, Refusal, Settings};
use http::{HeaderValue, Method};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(start_paused = true)]
async fn a_response_starts_while_the_upload_runs_and_both_finish() {
    let (mut client, mut connection) = pair();
    client.send("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    let Exchange { mut body, mut responder, .. } = next(&mut connection).await;
    assert_eq!(body.data().await.unwrap().unwrap(), "abc");
    responder.informational(head(102, &[])).await.unwrap();
    let mut response = responder.start(head(200, &[]), "echo:".into()).await.unwrap();
    assert_eq!(client.head(&Method::POST).await.status, 102);
    client.send("3\r\ndef\r\n0\r\nX-Sum: 6\r\n\r\n").await;
    while let Some(data) = body.data().await.unwrap() {
        response.send(data).await.unwrap();
    }
    assert_eq!(body.trailers().unwrap()["x-sum"], "6");
    response.finish(None).await.unwrap();
    let answer = client.response_to(&Method::POST).await;
    assert_eq!(answer.body, b"echo:def");
    drop(body);
    client.send(GET).await;
    assert_eq!(path(&next(&mut connection).await), "/x");
}

#[tokio::test(start_paused = true)]
async fn upload_and_response_run_in_different_tasks() {
    let (mut client, mut connection) = pair();
    let size = 3_000_000;
    let server = tokio::spawn(async move {
        let Exchange { mut body, responder, .. } = next(&mut connection).await;
        assert_eq!(body.framing(), Framing::Length(size as u64));
        let (tx, mut rx) = tokio::sync::mpsc::channel(2);
        let upload = tokio::spawn(async move {
            while let Some(data) = body.data().await.unwrap() {
                tx.send(data).await.unwrap();
            }
        });
        let mut response = responder.start(head(200, &[]), Bytes::new()).await.unwrap();
        while let Some(data) = rx.recv().await {
            response.send(data).await.unwrap();
        }
        response.finish(None).await.unwrap();
        upload.await.unwrap();
        assert!(connection.next_request().await.unwrap().is_none());
    });
    let sent: Vec<u8> = (0..size).map(|n| (n * 7 % 251) as u8).collect();
    client.send(&format!("PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n")).await;
    let (mut read, mut write) = tokio::io::split(client.stream);
    let upload = sent.clone();
    let writer = tokio::spawn(async move {
        write.write_all(&upload).await.unwrap();
        write
    });
    let mut wire = BytesMut::new();
    while !wire.ends_with(b"\r\n0\r\n\r\n") {
        assert!(read.read_buf(&mut wire).await.unwrap() > 0);
    }
    let end = wire.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let mut body = wire.split_off(end);
    let mut decoder = BodyDecoder::new(Framing::Chunked, HeadLimits::default());
    let mut echoed = Vec::new();
    while let Decoded::Data(data) = decoder.decode(&mut body).unwrap() {
        echoed.extend_from_slice(&data);
    }
    assert!(echoed == sent, "the echo differs");
    writer.await.unwrap().shutdown().await.unwrap();
    drop(read);
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_held_back_and_not_asked_for_ends_the_connection() {
    let expecting = "PUT http://a/ HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let (mut client, mut connection) = pair();
    client.send(expecting).await;
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(401, &[]), Bytes::new()).await.unwrap();
    assert_eq!(client.response().await.fields["connection"], "close");

    let (mut client, mut connection) = pair();
    client.send(expecting).await;
    let Exchange { mut body, mut responder, head: request } = next(&mut connection).await;
    assert!(request.expects_continue);
    responder.informational(head(100, &[])).await.unwrap();
    assert_eq!(client.head(&Method::PUT).await.status, 100);
    client.send("abc").await;
    assert_eq!(body.data().await.unwrap().unwrap(), "abc");
    responder.respond(head(201, &[]), Bytes::new()).await.unwrap();
    let response = client.response().await;
    assert_eq!(response.status, 201);
    assert!(!response.fields.contains_key("connection"));
}

#[tokio::test(start_paused = true)]
async fn a_short_unread_upload_is_drained_and_the_connection_goes_on() {
    let (mut client, mut connection) = pair();
    client.send("PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234").await;
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(403, &[]), "no".into()).await.unwrap();
    drop(exchange.body);
    assert_eq!(client.response().await.status, 403);
    client.send("56789").await;
    client.send(GET).await;
    assert_eq!(path(&next(&mut connection).await), "/x");
}

// In real time: the client is never idle, so that a paused clock would never advance.
#[tokio::test]
async fn an_endless_unread_upload_is_cut_after_its_response() {
    let linger = Duration::from_millis(50);
    let (mut client, mut connection) = pair_with(Settings { linger: Some(linger), ..Settings::default() });
    client.send("PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n").await;
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(413, &[]), "too large".into()).await.unwrap();
    drop(exchange.body);
    let (mut read, mut write) = tokio::io::split(client.stream);
    let endless = tokio::spawn(async move { while write.write_all(&[0; 4096]).await.is_ok() {} });
    assert!(connection.next_request().await.unwrap().is_none());
    let mut answer = String::new();
    read.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    endless.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_upload_cut_short_is_never_complete() {
    let (mut client, mut connection) = pair();
    client.send("PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf").await;
    let mut exchange = next(&mut connection).await;
    drop(client);
    assert_eq!(exchange.body.data().await.unwrap().unwrap(), "half");
    assert!(matches!(exchange.body.data().await, Err(BodyError::Malformed(Refusal::BodyIncomplete))));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_body_is_an_error_and_the_connection_closes_after_the_answer() {
    let (mut client, mut connection) = pair();
    client
        .send("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n")
        .await;
    let Exchange { mut body, responder, .. } = next(&mut connection).await;
    assert_eq!(body.data().await.unwrap().unwrap(), "abc");
    assert!(matches!(body.data().await, Err(BodyError::Malformed(Refusal::ChunkEnd))));
    responder.respond(head(400, &[]), "bad body".into()).await.unwrap();
    drop(body);
    let (end, response) = tokio::join!(connection.next_request(), async {
        let response = client.response().await;
        assert!(client.is_closed().await);
        response
    });
    assert!(end.unwrap().is_none());
    assert_eq!((response.status, &response.fields["connection"]), (400, &HeaderValue::from_static("close")));
}
