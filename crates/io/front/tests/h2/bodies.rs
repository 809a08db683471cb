//! Request bodies: read while the answer runs, held back by who doesn't read, cut short.

use crate::client::{ask, pair, pair_with, send, whole};
use crate::support::{head, next};
use bytes::Bytes;
use farhop_front::{BodyError, Exchange, Framing, Refusal, Settings, Windows};
use farhop_tuning::Room;
use farhop_units::Bytes as Size;
use h2::Reason;
use http::HeaderMap;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_response_starts_while_the_upload_runs_and_both_have_trailers() {
    let (mut client, mut connection) = pair().await;
    let (response, mut upload) = send(&mut client, "POST", "/", &[], false);
    upload.send_data("abc".into(), false).unwrap();
    let Exchange { mut body, responder, head: asked } = next(&mut connection).await;
    assert_eq!((asked.framing, body.framing()), (Framing::Chunked, Framing::Chunked));
    let mut answer = responder.start(head(200, &[]), "echo:".into()).await.unwrap();
    assert_eq!(body.data().await.unwrap().unwrap(), "abc");
    upload.send_data("def".into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "6".parse().unwrap());
    trailers.insert("authorization", "x".parse().unwrap());
    upload.send_trailers(trailers).unwrap();
    while let Some(data) = body.data().await.unwrap() {
        answer.send(data).await.unwrap();
    }
    let trailers = body.trailers().unwrap();
    assert_eq!(
        (trailers.len(), &trailers["x-sum"]),
        (1, &"6".parse().unwrap()),
        "authorization does not trail"
    );
    answer.finish(None).await.unwrap();
    assert_eq!(whole(response).await.unwrap().0.body(), "echo:def");
}

#[tokio::test(start_paused = true)]
async fn a_client_may_send_a_window_ahead_and_no_more_before_it_is_read() {
    let window = 1 << 20;
    let settings = Settings { windows: Windows::new(room(window)), ..Settings::default() };
    let (mut client, mut connection) = pair_with(settings).await;
    let (_response, mut upload) = send(&mut client, "PUT", "/", &[], false);
    let mut exchange = next(&mut connection).await;
    let mut sent = 0;
    upload.reserve_capacity(2 << 20);
    while sent < window as usize {
        let room = poll_fn(|cx| upload.poll_capacity(cx)).await.unwrap().unwrap();
        sent += room;
        upload.send_data(vec![0; room].into(), false).unwrap();
        upload.reserve_capacity(2 << 20);
    }
    assert_eq!(sent, window as usize);
    let more =
        tokio::time::timeout(Settings::default().linger(), poll_fn(|cx| upload.poll_capacity(cx))).await;
    assert!(more.is_err(), "nothing was read");
    let mut read = 0;
    while read < sent {
        read += exchange.body.data().await.unwrap().unwrap().len();
    }
    assert!(poll_fn(|cx| upload.poll_capacity(cx)).await.unwrap().unwrap() > 0);
}

#[tokio::test(start_paused = true)]
async fn an_upload_under_way_is_given_the_room_that_fits_later() {
    let (few, many) = (64 << 10, 1 << 20);
    let windows = Windows::new(room(few));
    let settings = Settings { windows: windows.clone(), ..Settings::default() };
    let (mut client, mut connection) = pair_with(settings).await;
    let (_response, mut upload) = send(&mut client, "PUT", "/", &[], false);
    let _exchange = next(&mut connection).await;
    let mut sent = 0;
    while sent < few as usize {
        sent += fill(&mut upload, few as usize - sent).await;
    }
    windows.fit(room(many));
    // A sign of life on the connection: its peer asks for something else.
    let (_other, _) = send(&mut client, "GET", "/", &[], true);
    let _exchange = next(&mut connection).await;
    while sent < many as usize {
        sent += fill(&mut upload, many as usize - sent).await;
    }
    assert_eq!(sent, many as usize);
}

/// Sends at most so many bytes, as soon as there is room for some.
async fn fill(upload: &mut h2::SendStream<Bytes>, most: usize) -> usize {
    upload.reserve_capacity(most);
    let room = poll_fn(|cx| upload.poll_capacity(cx)).await.unwrap().unwrap().min(most);
    upload.send_data(vec![0; room].into(), false).unwrap();
    room
}

fn room(stream: u64) -> Room {
    Room { stream: Size(stream), connection: Size(16 << 20) }
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_differs_from_its_length_or_is_cut_short_is_never_complete() {
    let (mut client, mut connection) = pair().await;
    let (_response, mut upload) = send(&mut client, "PUT", "/", &[("content-length", "10")], false);
    upload.send_data("half".into(), false).unwrap();
    let mut exchange = next(&mut connection).await;
    assert_eq!(exchange.head.framing, Framing::Length(10));
    assert_eq!(exchange.body.data().await.unwrap().unwrap(), "half");
    upload.send_reset(Reason::CANCEL);
    let error = exchange.body.data().await.unwrap_err();
    assert!(matches!(error, BodyError::Connection(error) if error.kind() == ErrorKind::ConnectionReset));

    for (data, ends) in [("half", true), ("more than that", false)] {
        let (_response, mut upload) = send(&mut client, "PUT", "/", &[("content-length", "10")], false);
        let mut exchange = next(&mut connection).await;
        upload.send_data(data.into(), ends).unwrap();
        let error = loop {
            match exchange.body.data().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{data:?} passed for whole"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, BodyError::Connection(error) if error.kind() == ErrorKind::InvalidData));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_pauses_for_too_long_has_stalled() {
    let (mut client, mut connection) = pair().await;
    let (_response, _upload) = send(&mut client, "PUT", "/", &[], false);
    let mut exchange = next(&mut connection).await;
    assert!(matches!(exchange.body.data().await, Err(BodyError::Stalled)));
}

#[tokio::test(start_paused = true)]
async fn trailers_that_would_frame_are_refused() {
    let (mut client, mut connection) = pair().await;
    for (name, value, refusal) in [("content-length", "3", Refusal::Trailer), ("x", "a ", Refusal::Field)] {
        let (_response, mut upload) = send(&mut client, "PUT", "/", &[], false);
        let mut exchange = next(&mut connection).await;
        let mut trailers = HeaderMap::new();
        trailers.insert(name, value.parse().unwrap());
        upload.send_trailers(trailers).unwrap();
        let result = exchange.body.data().await;
        assert!(matches!(result, Err(BodyError::Malformed(why)) if why == refusal), "{result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_to_stop_an_upload_that_nobody_reads() {
    let (mut client, mut connection) = pair().await;
    let (response, mut upload) = send(&mut client, "PUT", "/", &[], false);
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(413, &[]), "too large".into()).await.unwrap();
    drop(exchange.body);
    assert_eq!(whole(response).await.unwrap().0.body(), "too large");
    // RFC 9113 §8.1: no error, so that the response is kept. At once: Chromium shows an answer only when its stream has ended.
    let told = poll_fn(|cx| upload.poll_reset(cx));
    let told = tokio::time::timeout(Duration::from_millis(1), told).await.expect("at once");
    assert_eq!(told.unwrap(), Reason::NO_ERROR);
    let response = ask(&mut client, "GET", "/");
    next(&mut connection).await.responder.respond(head(200, &[]), Bytes::new()).await.unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
}
