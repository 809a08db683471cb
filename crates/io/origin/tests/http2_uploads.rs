//! Request bodies over HTTP/2: whole, in pieces, broken off, refused, and taken by nobody.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_origin::{Error, Upload};
use http::{HeaderValue, Method};
use support::h2raw::*;
use support::tls::*;
use support::*;

#[tokio::test]
async fn an_upload_of_unknown_length_carries_its_trailers() {
    let (origin, client, mut heard) = telling_origin(|mut wire, told| async move {
        let number = wire.request().await.unwrap();
        let mut body = Vec::new();
        loop {
            let frame = wire.next().await.unwrap();
            if frame.kind == DATA {
                body.extend(&frame.payload);
            }
            if frame.ends() {
                told.send((frame.kind, body)).unwrap();
                break;
            }
        }
        wire.answer(number).await;
        wire.drain().await;
    })
    .await;
    for (trailers, last) in [
        (None, DATA),
        (Some([("x-sum".parse().unwrap(), HeaderValue::from_static("5"))].into_iter().collect()), HEADERS),
    ] {
        let (mut sender, upload) = Upload::streamed(None);
        let giving = async {
            sender.send("hello".into()).await.unwrap();
            sender.finish(trailers).await.unwrap();
        };
        let mut request = secure(&origin, Method::POST, "/", upload);
        // Each on a connection of its own.
        request.partition = farhop_origin::Partition::new(last.to_string());
        let (response, ()) = tokio::join!(fetch(&client, request), giving);
        assert_eq!(response.unwrap().status, 200);
        assert_eq!(heard.recv().await.unwrap(), (last, b"hello".to_vec()));
    }
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_never_whole_at_the_origin() {
    for length in [Some(10), None] {
        let (origin, client, mut heard) = telling_origin(|mut wire, told| async move {
            wire.request().await.unwrap();
            while let Some(frame) = wire.next().await {
                assert!(!frame.ends());
                if frame.kind == RST_STREAM {
                    told.send(frame.error()).unwrap();
                }
            }
        })
        .await;
        let (mut sender, upload) = Upload::streamed(length);
        let giving = async {
            sender.send("hello".into()).await.unwrap();
            drop(sender);
        };
        let (error, ()) = tokio::join!(fetch(&client, secure(&origin, Method::PUT, "/", upload)), giving);
        assert!(matches!(error, Err(Error::UploadFailed(_))), "{error:?}");
        assert_eq!(heard.recv().await, Some(CANCEL));
    }
}

#[tokio::test]
async fn an_early_refusal_of_an_upload_is_a_response() {
    for resets in [true, false] {
        let (origin, client) = raw_origin(&[], move |mut wire, _| async move {
            let number = wire.request().await.unwrap();
            wire.send(HEADERS, END_HEADERS, number, &fields(&[(":status", "413")])).await;
            wire.send(DATA, END_STREAM, number, b"big").await;
            if resets {
                // RFC 9113 §8.1: NO_ERROR, the response is whole.
                wire.reset(number, 0).await;
            }
            wire.drain().await;
        })
        .await;
        let (mut sender, upload) = Upload::streamed(Some(10_000_000_000));
        let giver = tokio::spawn(async move { while sender.send(vec![0; 100_000].into()).await.is_ok() {} });
        let mut response = fetch(&client, secure(&origin, Method::PUT, "/", upload)).await.unwrap();
        assert_eq!(response.status, 413);
        assert_eq!(whole(&mut response).await.unwrap(), "big");
        drop(response);
        giver.await.unwrap();
    }
}

#[tokio::test]
async fn an_origin_that_takes_nothing_holds_the_giver_back() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        wire.request().await.unwrap();
        let_time_fly();
        wire.drain().await;
    })
    .await;
    let (mut sender, upload) = Upload::streamed(None);
    let request = secure(&origin, Method::POST, "/", upload);
    let fetching = tokio::spawn(async move { fetch(&client, request).await.map(|_| ()) });
    let mut given = 0_usize;
    while sender.send(vec![0; 100_000].into()).await.is_ok() {
        given += 100_000;
        assert!(given < 10_000_000, "without a bound");
    }
    assert_eq!(fetching.await.unwrap().unwrap_err(), Error::FirstByteTimedOut);
}

#[tokio::test]
async fn the_rest_of_an_upload_does_not_wait_for_ever() {
    let (origin, client, mut heard) = telling_origin(|mut wire, told| async move {
        let number = wire.request().await.unwrap();
        // Answered, and not a byte more is taken than the first window holds.
        wire.answer(number).await;
        while let Some(frame) = wire.next().await {
            if frame.kind == RST_STREAM {
                told.send(frame.error()).unwrap();
            }
        }
    })
    .await;
    let upload = Upload::whole(vec![0; 1_000_000].into());
    let mut response = fetch(&client, secure(&origin, Method::PUT, "/", upload)).await.unwrap();
    assert_eq!(whole(&mut response).await.unwrap(), "");
    let_time_fly();
    assert_eq!(heard.recv().await, Some(CANCEL));
}
