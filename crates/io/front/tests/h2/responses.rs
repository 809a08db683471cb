//! Responses as they reach the client: fields, lengths, and what is never passed off as whole.

use crate::client::{ask, pair, pair_with, rest, whole};
use crate::support::{head, next};
use bytes::Bytes;
use farhop_front::{Settings, WriteError};
use h2::Reason;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn fields_of_the_connection_are_left_out_and_trailers_arrive() {
    let (mut client, mut connection) = pair().await;
    let response = ask(&mut client, "GET", "/");
    let exchange = next(&mut connection).await;
    let fields = [
        ("transfer-encoding", "chunked"),
        ("connection", "x-a"),
        ("keep-alive", "timeout=1"),
        ("proxy-connection", "close"),
        ("upgrade", "h2c"),
        ("date", "Tue, 01 Jan 2030 00:00:00 GMT"),
    ];
    let mut body = exchange.responder.start(head(200, &fields), "far".into()).await.unwrap();
    body.send("hop".into()).await.unwrap();
    body.finish(Some(&head(200, &[("x-sum", "1"), ("content-length", "9")]).fields)).await.unwrap();
    let (response, trailers) = whole(response).await.unwrap();
    assert_eq!(response.body(), "farhop");
    assert_eq!(response.headers().len(), 1, "{:?}", response.headers());
    assert_eq!(response.headers()["date"], "Tue, 01 Jan 2030 00:00:00 GMT", "the origin's date stands");
    let trailers = trailers.unwrap();
    assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &"1".parse().unwrap()), "a length must not trail");
}

#[tokio::test(start_paused = true)]
async fn responses_without_a_body_have_none() {
    let (mut client, mut connection) = pair().await;
    for (method, status, keeps_length) in
        [("HEAD", 200, true), ("GET", 304, true), ("GET", 204, false), ("GET", 200, true)]
    {
        let response = ask(&mut client, method, "/");
        let exchange = next(&mut connection).await;
        let length = if (method, status) == ("GET", 200) { "0" } else { "10" };
        let answer = head(status, &[("content-length", length)]);
        let first = if length == "0" { Bytes::new() } else { "0123456789".into() };
        let body = exchange.responder.start(answer, first).await.unwrap();
        body.finish(None).await.unwrap();
        let (response, _) = whole(response).await.unwrap();
        assert_eq!((response.status().as_u16(), response.body().len()), (status, 0));
        assert_eq!(response.headers().contains_key("content-length"), keeps_length, "{method} {status}");
        assert!(response.headers().contains_key("date"));
    }
}

#[tokio::test(start_paused = true)]
async fn informational_heads_go_ahead_of_the_answer() {
    let (mut client, mut connection) = pair().await;
    let mut response = ask(&mut client, "GET", "/");
    let mut exchange = next(&mut connection).await;
    let hints = head(103, &[("link", "</a.css>; rel=preload"), ("connection", "close")]);
    exchange.responder.informational(hints).await.unwrap();
    let refused = exchange.responder.informational(head(101, &[])).await;
    assert!(matches!(refused, Err(WriteError::Status(_))));
    let hints = poll_fn(|cx| response.poll_informational(cx)).await.unwrap().unwrap();
    assert_eq!((hints.status().as_u16(), hints.headers().len()), (103, 1));
    exchange.responder.respond(head(200, &[]), "page".into()).await.unwrap();
    let (response, _) = whole(response).await.unwrap();
    assert_eq!(
        (response.body(), &response.headers()["content-length"]),
        (&Bytes::from("page"), &"4".parse().unwrap())
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_given_up_or_differs_from_its_length_is_reset() {
    let (mut client, mut connection) = pair().await;

    let response = ask(&mut client, "GET", "/aborted");
    let body = next(&mut connection).await.responder.start(head(200, &[]), "part".into()).await.unwrap();
    let (_, mut stream) = response.await.unwrap().into_parts();
    assert_eq!(stream.data().await.unwrap().unwrap(), "part");
    body.abort();
    assert_eq!(rest(&mut stream).await.unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));

    // What was sent just before comes all the same.
    let response = ask(&mut client, "GET", "/broken");
    next(&mut connection).await.responder.start(head(200, &[]), "part".into()).await.unwrap().abort();
    let (_, mut stream) = response.await.unwrap().into_parts();
    assert_eq!(stream.data().await.unwrap().unwrap(), "part");
    assert_eq!(rest(&mut stream).await.unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));

    let response = ask(&mut client, "GET", "/short");
    let answer = head(200, &[("content-length", "10")]);
    let body = next(&mut connection).await.responder.start(answer, "short".into()).await.unwrap();
    assert!(matches!(body.finish(None).await, Err(WriteError::Length)));
    assert_eq!(whole(response).await.unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));

    let response = ask(&mut client, "GET", "/long");
    let answer = head(200, &[("content-length", "3")]);
    let mut body = next(&mut connection).await.responder.start(answer, "ab".into()).await.unwrap();
    assert!(matches!(body.send("cd".into()).await, Err(WriteError::Length)));
    assert!(whole(response).await.is_err());

    let response = ask(&mut client, "GET", "/dropped");
    drop(next(&mut connection).await);
    assert_eq!(whole(response).await.unwrap_err().reason(), Some(Reason::INTERNAL_ERROR));

    let response = ask(&mut client, "GET", "/fine");
    next(&mut connection).await.responder.respond(head(200, &[]), "fine".into()).await.unwrap();
    assert_eq!(whole(response).await.unwrap().0.body(), "fine", "the connection goes on");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up_on_and_one_that_takes_little_is_not() {
    let (mut client, mut connection) = pair().await;
    let response = ask(&mut client, "GET", "/");
    let large = Bytes::from(vec![1; 1 << 20]);
    let exchange = next(&mut connection).await;
    let server = tokio::spawn(exchange.responder.start(head(200, &[]), large.clone()));
    let (_, mut stream) = response.await.unwrap().into_parts();
    let mut taken = 0;
    while taken < 300_000 {
        let data = stream.data().await.unwrap().unwrap();
        taken += data.len();
        tokio::time::sleep(Settings::default().write_timeout / 4).await;
        stream.flow_control().release_capacity(data.len()).unwrap();
    }
    assert!(!server.is_finished());
    let error = server.await.unwrap().unwrap_err();
    assert!(matches!(error, WriteError::Connection(error) if error.kind() == ErrorKind::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_given_up_on_loses_no_bytes() {
    let (mut client, mut connection) = pair().await;
    let response = ask(&mut client, "GET", "/");
    let mut body = next(&mut connection).await.responder.start(head(200, &[]), Bytes::new()).await.unwrap();
    let large = vec![b'x'; 1 << 20];
    let blocked = tokio::time::timeout(Duration::from_millis(1), body.send(large.clone().into())).await;
    assert!(blocked.is_err(), "the client has not read");
    let (finished, response) = tokio::join!(
        async {
            body.send("end".into()).await?;
            body.finish(None).await
        },
        whole(response)
    );
    finished.unwrap();
    assert_eq!(response.unwrap().0.body(), &[large, b"end".to_vec()].concat());
}

#[tokio::test(start_paused = true)]
async fn one_slow_response_does_not_hold_up_the_others() {
    let (mut client, mut connection) = pair_with(Settings::default()).await;
    let slow = ask(&mut client, "GET", "/slow");
    let exchange = next(&mut connection).await;
    let sending = tokio::spawn(exchange.responder.start(head(200, &[]), vec![1; 1 << 20].into()));
    let quick = ask(&mut client, "GET", "/quick");
    next(&mut connection).await.responder.respond(head(200, &[]), "quick".into()).await.unwrap();
    assert_eq!(whole(quick).await.unwrap().0.body(), "quick");
    assert!(!sending.is_finished());
    drop(slow);
}
