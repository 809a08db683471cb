//! Which request is read when, and what is refused or given up.

use crate::client::{GET, head, next, pair, path};
use bytes::Bytes;
use farhop_front::{BodyError, Refusal, RequestError, WriteError};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order() {
    let (mut client, mut connection) = pair();
    let requests: String = (0..5).map(|n| format!("GET http://a/{n} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.send(&requests).await;
    for n in 0..5 {
        let exchange = next(&mut connection).await;
        assert_eq!(path(&exchange), format!("/{n}"));
        let text = path(&exchange);
        exchange.responder.respond(head(200, &[]), text.into()).await.unwrap();
    }
    for n in 0..5 {
        assert_eq!(client.response().await.body, format!("/{n}").as_bytes());
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_is_read_before_the_response_is_complete() {
    let (mut client, mut connection) = pair();
    client.send(&GET.repeat(2)).await;
    let exchange = next(&mut connection).await;
    let body = exchange.responder.start(head(200, &[]), "a".into()).await.unwrap();
    drop(exchange.body);
    {
        let mut waiting = std::pin::pin!(connection.next_request());
        let early = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx).is_ready()));
        assert!(!early.await);
        let (second, finished) = tokio::join!(waiting, body.finish(None));
        finished.unwrap();
        assert!(second.unwrap().is_some());
    }
    assert_eq!(client.response().await.body, b"a");
}

#[tokio::test(start_paused = true)]
async fn requests_read_ahead_while_watching_for_departure_are_not_lost() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    client.send(&GET.replace("/x", "/second")).await;
    let watched = tokio::time::timeout(Duration::from_millis(1), exchange.responder.departure()).await;
    assert!(watched.is_err());
    exchange.responder.respond(head(200, &[]), Bytes::new()).await.unwrap();
    drop(exchange.body);
    assert_eq!(path(&next(&mut connection).await), "/second");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_answered_with_its_status_and_closed() {
    let cases = [
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.1\n", 400),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\nHost: a\r\n\r\n", 501),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ];
    for (text, status) in cases {
        let (mut client, mut connection) = pair();
        client.send(text).await;
        let (end, response) = tokio::join!(connection.next_request(), async {
            let response = client.response().await;
            assert!(client.is_closed().await);
            response
        });
        assert!(matches!(end, Err(RequestError::Refused(_))), "{text:?}");
        assert_eq!(response.status, status, "{text:?}");
        assert_eq!(response.fields["connection"], "close");
        assert!(
            response.fields["proxy-status"].to_str().unwrap().starts_with("farhop; error=http_request_error")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_of_two_requests_is_refused_after_the_first_is_answered() {
    let (mut client, mut connection) = pair();
    client.send(&format!("{GET}GET / HTTP/1.1\r\nHost : a\r\n\r\n")).await;
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(200, &[]), "fine".into()).await.unwrap();
    drop(exchange.body);
    let (end, responses) = tokio::join!(connection.next_request(), async {
        let responses = [client.response().await.status, client.response().await.status];
        assert!(client.is_closed().await);
        responses
    });
    assert!(matches!(end, Err(RequestError::Refused(Refusal::Field))));
    assert_eq!(responses, [200, 400]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_unanswered_closes_the_connection() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    drop(next(&mut connection).await);
    assert!(connection.next_request().await.unwrap().is_none());
    assert!(client.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn slow_heads_are_timed_out_with_408_and_idle_connections_without_a_word() {
    let (mut client, mut connection) = pair();
    client.send("GET / HTTP/1.1\r\nHo").await;
    let (end, response) = tokio::join!(connection.next_request(), client.response());
    assert!(matches!(end, Err(RequestError::HeadTimedOut)));
    assert_eq!(response.status, 408);

    let (mut client, mut connection) = pair();
    let (end, closed) = tokio::join!(connection.next_request(), client.is_closed());
    assert!(end.unwrap().is_none());
    assert!(closed);
}

#[tokio::test(start_paused = true)]
async fn stalled_uploads_and_clients_that_read_nothing_are_given_up() {
    let (mut client, mut connection) = pair();
    client.send("PUT http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n").await;
    let mut exchange = next(&mut connection).await;
    assert!(matches!(exchange.body.data().await, Err(BodyError::Stalled)));

    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    let mut body = exchange.responder.start(head(200, &[]), Bytes::new()).await.unwrap();
    let stalled = body.send(vec![0; 1 << 20].into()).await;
    assert!(
        matches!(stalled, Err(WriteError::Connection(error)) if error.kind() == std::io::ErrorKind::TimedOut)
    );
}
