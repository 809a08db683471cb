//! Request bodies over HTTP/1.1: of any size, with trailers, held back, and refused.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_origin::{Error, Upload};
use http::Method;
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// An origin that sends the request body back as it comes, raw, until the connection ends.
async fn echo() -> Origin {
    Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let (mut read, mut write) = stream.split();
        let mut buffer = vec![0; 65_536];
        while let Ok(count) = read.read(&mut buffer).await {
            if count == 0
                || write.write_all(&buffer[..count]).await.is_err()
                || buffer[..count].ends_with(b"bye")
            {
                return;
            }
        }
    })
    .await
}

#[tokio::test]
async fn uploads_and_downloads_of_any_size_run_at_the_same_time() {
    let size = 8_000_000;
    let origin = echo().await;
    let (mut sender, upload) = Upload::streamed(Some(size as u64));
    let mut sent: Vec<u8> = (0..size).map(|n| (n % 249) as u8).collect();
    sent[size - 3..].copy_from_slice(b"bye");
    let pieces = Bytes::from(sent.clone());
    let giver = tokio::spawn(async move {
        for start in (0..size).step_by(50_000) {
            sender.send(pieces.slice(start..(start + 50_000).min(size))).await.unwrap();
        }
        sender.finish(None).await.unwrap();
    });
    let mut response = fetch(&client(), origin.request(Method::PUT, "/", upload)).await.unwrap();
    let echoed = whole(&mut response).await.unwrap();
    assert!(echoed == sent, "the echo differs");
    giver.await.unwrap();
}

#[tokio::test]
async fn an_origin_that_takes_nothing_holds_the_giver_back() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        let_time_fly();
        std::future::pending::<()>().await;
    })
    .await;
    let (mut sender, upload) = Upload::streamed(None);
    let client = client();
    let request = origin.request(Method::POST, "/", upload);
    let fetching = tokio::spawn(async move { fetch(&client, request).await.map(|_| ()) });
    let mut given = 0_usize;
    while sender.send(vec![0; 100_000].into()).await.is_ok() {
        given += 100_000;
        assert!(given < 100_000_000, "without a bound");
    }
    assert_eq!(fetching.await.unwrap().unwrap_err(), Error::FirstByteTimedOut);
}

#[tokio::test]
async fn a_chunked_upload_carries_its_announced_trailers() {
    let origin = Origin::start(|mut stream, _| async move {
        let head = read_head(&mut stream).await;
        assert!(head.contains("\r\nTransfer-Encoding: chunked\r\n"), "{head}");
        let mut body = Vec::new();
        while !body.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut body).await.unwrap();
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
    })
    .await;
    let (mut sender, upload) = Upload::streamed(None);
    // GET with a body is rare and legal.
    let mut request = origin.request(Method::GET, "/", upload);
    request.fields = header_fields(&[("trailer", "x-sum")]);
    let giving = async {
        sender.send("hello".into()).await.unwrap();
        sender.finish(Some(header_fields(&[("x-sum", "5")]))).await.unwrap();
    };
    let client = client();
    let (response, ()) = tokio::join!(fetch(&client, request), giving);
    assert_eq!(whole(&mut response.unwrap()).await.unwrap(), "5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n");
}

#[tokio::test]
async fn an_early_refusal_of_an_upload_is_a_response() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream
            .write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            .await
            .unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let (mut sender, upload) = Upload::streamed(Some(10_000_000_000));
    let giver = tokio::spawn(async move { while sender.send(vec![0; 100_000].into()).await.is_ok() {} });
    let mut response = fetch(&client(), origin.request(Method::PUT, "/", upload)).await.unwrap();
    assert_eq!(response.status, 413);
    assert_eq!(whole(&mut response).await.unwrap(), "big");
    drop(response);
    giver.await.unwrap();
}
