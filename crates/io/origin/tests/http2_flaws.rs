//! Responses over HTTP/2 that break a rule, and frames that only look so.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_origin::{Error, Stage, Upload};
use http::Method;
use support::h2raw::*;
use support::tls::*;
use support::*;

fn ok() -> Vec<u8> {
    fields(&[(":status", "200")])
}

/// Answers a GET with these frames, each a kind, flags and payload; the body, or what failed.
async fn answered(method: Method, frames: &[(u8, u8, Vec<u8>)]) -> Result<Bytes, Error> {
    let frames = frames.to_vec();
    let (origin, client) = raw_origin(&[], move |mut wire, _| {
        let frames = frames.clone();
        async move {
            let number = wire.request().await.unwrap();
            for (kind, flags, payload) in &frames {
                wire.send(*kind, *flags, number, payload).await;
            }
            wire.drain().await;
        }
    })
    .await;
    let mut response = fetch(&client, secure(&origin, method, "/", Upload::empty())).await?;
    whole(&mut response).await
}

#[tokio::test]
async fn what_is_malformed_is_refused() {
    let heads: [&[(&str, &str)]; 22] = [
        &[],
        &[("a", "b")],
        &[("a", "b"), (":status", "200")],
        &[(":status", "200"), (":status", "200")],
        &[(":status", "200"), (":unknown", "x")],
        &[(":status", "20")],
        &[(":status", "2000")],
        &[(":status", "")],
        &[(":status", "200"), ("connection", "close")],
        &[(":status", "200"), ("transfer-encoding", "chunked")],
        &[(":status", "200"), ("upgrade", "h2c")],
        &[(":status", "200"), ("keep-alive", "timeout=5")],
        &[(":status", "200"), ("Upper", "case")],
        &[(":status", "200"), ("a", "b\r\nc: d")],
        &[(":status", "200"), ("a", "b\0")],
        &[(":status", "200"), ("a b", "c")],
        &[(":status", "200"), ("content-length", "0"), ("content-length", "1")],
        &[(":status", "200"), ("content-length", "+0")],
        &[(":status", "200"), (":path", "/")],
        &[(":status", "200"), ("a", " b")],
        &[(":status", "200"), ("a", "b\t")],
        &[(":status", "200"), ("a", " ")],
    ];
    for head in heads {
        match answered(Method::GET, &[(HEADERS, LAST, fields(head))]).await {
            Err(error @ Error::Malformed(_)) => {
                assert_eq!((error.stage(), error.proxy_status()), (Stage::Exchange, "http_protocol_error"));
            }
            other => panic!("{head:?}: {other:?}"),
        }
    }
    let data_first = answered(Method::GET, &[(DATA, END_STREAM, b"x".to_vec())]).await.unwrap_err();
    assert_eq!(data_first.to_string(), "the origin's response is malformed: PROTOCOL_ERROR in HTTP/2");
    let switching = answered(Method::GET, &[(HEADERS, END_HEADERS, fields(&[(":status", "101")]))]).await;
    assert_eq!(switching.unwrap_err(), Error::UnaskedUpgrade);
}

#[tokio::test]
async fn what_is_malformed_in_trailers_breaks_the_body_off_and_costs_no_other_stream_anything() {
    for field in [(":status", "200"), (":path", "/"), ("content-length", "5"), ("a", " b"), ("a", "b\t")] {
        let (origin, client) = raw_origin(&[], move |mut wire, _| async move {
            let number = wire.request().await.unwrap();
            wire.send(HEADERS, END_HEADERS, number, &ok()).await;
            wire.send(DATA, 0, number, b"hello").await;
            wire.send(HEADERS, LAST, number, &fields(&[field])).await;
            while let Some(number) = wire.request().await {
                wire.answer(number).await;
            }
        })
        .await;
        let mut response = fetch(&client, secure_get(&origin, "/")).await.unwrap();
        let error = whole(&mut response).await.unwrap_err();
        assert!(matches!(error, Error::BodyMalformed(_)), "{field:?}: {error:?}");
        assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap().status, 200);
        assert_eq!(origin.connections(), 1);
    }
}

#[tokio::test]
async fn data_frames_without_data_end_no_connection() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        while let Some(number) = wire.request().await {
            wire.send(HEADERS, END_HEADERS, number, &ok()).await;
            for piece in ["hel", "lo"] {
                for _ in 0..300 {
                    wire.send(DATA, 0, number, b"").await;
                }
                wire.send(DATA, 0, number, piece.as_bytes()).await;
            }
            wire.send(DATA, END_STREAM, number, b"").await;
        }
    })
    .await;
    for _ in 0..3 {
        let mut response = fetch(&client, secure_get(&origin, "/")).await.unwrap();
        assert_eq!(whole(&mut response).await.unwrap(), "hello");
    }
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_flood_of_data_frames_without_data_ends_its_connection() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        let number = wire.request().await.unwrap();
        wire.send(HEADERS, END_HEADERS, number, &ok()).await;
        while wire.send(DATA, 0, number, b"").await {}
    })
    .await;
    let error = match fetch(&client, secure_get(&origin, "/")).await {
        Ok(mut response) => whole(&mut response).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, Error::BodyMalformed(_) | Error::Malformed(_)), "{error:?}");
}

#[tokio::test]
async fn a_body_that_is_not_as_long_as_it_says_is_refused() {
    let head =
        |length: &str| (HEADERS, END_HEADERS, fields(&[(":status", "200"), ("content-length", length)]));
    let body = |flags, bytes: &[u8]| (DATA, flags, bytes.to_vec());
    let good = answered(Method::GET, &[head("5"), body(0, b"hel"), body(END_STREAM, b"lo")]).await;
    assert_eq!(good.unwrap(), "hello");
    for frames in [
        vec![head("6"), body(END_STREAM, b"hello")],
        vec![head("4"), body(END_STREAM, b"hello")],
        vec![head("4"), body(0, b"hello")],
        vec![head("0"), body(0, b"hello")],
    ] {
        let error = answered(Method::GET, &frames).await.unwrap_err();
        // Whether the head was seen before the fault is a matter of time.
        assert!(matches!(error, Error::BodyMalformed(_) | Error::Malformed(_)), "{frames:?}: {error:?}");
    }
    let early = (HEADERS, LAST, fields(&[(":status", "200"), ("content-length", "5")]));
    assert!(matches!(answered(Method::GET, &[early]).await, Err(Error::Malformed(_))));
}

#[tokio::test]
async fn a_body_where_none_may_be_is_refused() {
    for (method, status) in [(Method::HEAD, "200"), (Method::GET, "204"), (Method::GET, "304")] {
        let head = |flags| (HEADERS, flags, fields(&[(":status", status), ("etag", "\"1\"")]));
        assert_eq!(answered(method.clone(), &[head(LAST)]).await.unwrap(), "");
        let empty = [head(END_HEADERS), (DATA, END_STREAM, Vec::new())];
        assert_eq!(answered(method.clone(), &empty).await.unwrap(), "");
        let evil = [head(END_HEADERS), (DATA, END_STREAM, b"evil".to_vec())];
        let error = answered(method.clone(), &evil).await.unwrap_err();
        assert!(
            matches!(error, Error::BodyMalformed(_) | Error::Malformed(_)),
            "{method} {status}: {error:?}"
        );
    }
    // RFC 9110 §8.6: a length of what is not sent.
    let long = [(HEADERS, LAST, fields(&[(":status", "200"), ("content-length", "9")]))];
    assert_eq!(answered(Method::HEAD, &long).await.unwrap(), "");
}

#[tokio::test]
async fn heads_without_end_are_cut_off() {
    let long: Vec<_> = (0..300).map(|_| ("x", "a")).collect();
    let many = [&[(":status", "200")][..], &long].concat();
    let error = answered(Method::GET, &[(HEADERS, LAST, fields(&many))]).await.unwrap_err();
    assert_eq!(error, Error::HeadTooLarge);
}
