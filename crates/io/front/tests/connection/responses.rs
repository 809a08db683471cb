//! Responses as they reach the client: framing, fields, and what is never passed off as whole.

use crate::client::{GET, head, next, pair};
use bytes::Bytes;
use farhop_front::{Framing, WriteError};
use http::Method;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_response_of_unknown_length_is_chunked_with_trailers_and_the_connection_goes_on() {
    let (mut client, mut connection) = pair();
    for _ in 0..2 {
        client.send(GET).await;
        let exchange = next(&mut connection).await;
        let mut body = exchange.responder.start(head(200, &[]), Bytes::from("far")).await.unwrap();
        body.send("hop".into()).await.unwrap();
        body.finish(Some(&head(200, &[("x-sum", "1"), ("content-length", "9")]).fields)).await.unwrap();
        drop(exchange.body);
        let response = client.response().await;
        assert_eq!((response.status, response.framing), (200, Framing::Chunked));
        assert_eq!(response.body, b"farhop");
        assert_eq!(response.trailers.len(), 1, "a length must not trail");
        assert_eq!(response.trailers["x-sum"], "1");
        assert!(response.fields.contains_key("date") && !response.fields.contains_key("connection"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_head_and_the_first_bytes_arrive_together_and_a_head_alone_is_not_held_back() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    let body = exchange.responder.start(head(200, &[]), Bytes::new()).await.unwrap();
    assert_eq!(client.head(&Method::GET).await.status, 200, "while the body is still to come");
    body.finish(None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn responses_without_a_body_have_none_and_keep_the_connection() {
    let cases = [("HEAD", 200, true), ("GET", 304, true), ("GET", 204, false)];
    let (mut client, mut connection) = pair();
    for (method, status, keeps_length) in cases {
        client.send(&GET.replace("GET", method)).await;
        let exchange = next(&mut connection).await;
        let answer = head(status, &[("content-length", "10")]);
        let mut body = exchange.responder.start(answer, "0123456789".into()).await.unwrap();
        body.send("more".into()).await.unwrap();
        body.finish(None).await.unwrap();
        drop(exchange.body);
        let response = client.response_to(&method.parse().unwrap()).await;
        assert_eq!((response.status, response.body.len()), (status, 0));
        assert_eq!(response.fields.contains_key("content-length"), keeps_length, "{method} {status}");
        assert!(client.buffer.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn http_1_0_clients_get_a_body_until_close_and_no_informational_head() {
    let (mut client, mut connection) = pair();
    client.send("GET http://a/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
    let mut exchange = next(&mut connection).await;
    exchange.responder.informational(head(103, &[])).await.unwrap();
    let body = exchange.responder.start(head(200, &[]), "old".into()).await.unwrap();
    body.finish(None).await.unwrap();
    drop(exchange.body);
    let (end, response) = tokio::join!(connection.next_request(), client.response());
    assert!(end.unwrap().is_none());
    assert_eq!((response.status, response.framing), (200, Framing::UntilClose));
    assert_eq!(response.body, b"old");
    assert_eq!(response.fields["connection"], "close");
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_hand_says_its_length_only_where_that_is_its_body() {
    let (mut client, mut connection) = pair();
    for (method, status, length) in
        [("GET", 200, Some("1")), ("GET", 304, None), ("GET", 204, None), ("HEAD", 200, None)]
    {
        client.send(&GET.replace("GET", method)).await;
        let exchange = next(&mut connection).await;
        exchange.responder.respond(head(status, &[]), "x".into()).await.unwrap();
        drop(exchange.body);
        let response = client.response_to(&method.parse().unwrap()).await;
        let said = response.fields.get("content-length").map(|value| value.to_str().unwrap());
        assert_eq!(said, length, "{method} {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn fields_of_the_connection_are_never_the_applications() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    let fields = [
        ("transfer-encoding", "gzip"),
        ("connection", "x-a"),
        ("keep-alive", "timeout=1"),
        ("proxy-connection", "close"),
        ("date", "Tue, 01 Jan 2030 00:00:00 GMT"),
    ];
    exchange.responder.respond(head(200, &fields), "x".into()).await.unwrap();
    let response = client.response().await;
    assert_eq!(response.framing, Framing::Length(1));
    assert_eq!(response.fields["date"], "Tue, 01 Jan 2030 00:00:00 GMT", "the origin's date stands");
    let mut names: Vec<_> = response.fields.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "date"]);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_response_reaches_the_client_as_incomplete() {
    for fields in [&[][..], &[("content-length", "10")][..]] {
        let (mut client, mut connection) = pair();
        client.send(GET).await;
        let exchange = next(&mut connection).await;
        let body = exchange.responder.start(head(200, fields), "part".into()).await.unwrap();
        body.abort();
        let response = client.response().await;
        assert_eq!(response.body, b"part");
        assert!(!response.complete);
        assert!(connection.next_request().await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_differs_from_its_length_is_never_passed_off_as_whole() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    let body =
        exchange.responder.start(head(200, &[("content-length", "10")]), "short".into()).await.unwrap();
    assert!(matches!(body.finish(None).await, Err(WriteError::Length)));
    assert!(!client.response().await.complete);

    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    let mut body =
        exchange.responder.start(head(200, &[("content-length", "3")]), "ab".into()).await.unwrap();
    assert!(matches!(body.send("cd".into()).await, Err(WriteError::Length)));
    let response = client.response().await;
    assert_eq!((response.body.as_slice(), response.complete), (&b"ab"[..], false));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_given_up_on_loses_no_bytes() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    let mut body = exchange.responder.start(head(200, &[]), Bytes::new()).await.unwrap();
    let large = vec![b'x'; 200_000];
    let blocked = tokio::time::timeout(Duration::from_millis(1), body.send(large.clone().into())).await;
    assert!(blocked.is_err(), "the client has not read");
    let (finished, response) = tokio::join!(
        async {
            body.send("end".into()).await?;
            body.finish(None).await
        },
        client.response()
    );
    finished.unwrap();
    assert!(response.complete);
    assert_eq!(response.body, [large, b"end".to_vec()].concat());
}
