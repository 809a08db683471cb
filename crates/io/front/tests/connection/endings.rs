//! Clients that leave, half-close or turn the connection into a tunnel.

use crate::client::{GET, head, next, pair};
use bytes::Bytes;
use farhop_front::{Departure, Settings, Target};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_noticed_while_its_answer_is_awaited() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    let exchange = next(&mut connection).await;
    let waiting = tokio::spawn(async move { exchange.responder.departure().await });
    client.send(GET).await;
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "a pipelined request is no departure");
    drop(client);
    let left = tokio::time::Instant::now();
    assert_eq!(waiting.await.unwrap(), Departure::EndOfInput);
    assert!(left.elapsed() >= Settings::default().half_close_grace, "it could have been a half-close");
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_client_still_gets_its_answers() {
    let (mut client, mut connection) = pair();
    client.send(&GET.repeat(2)).await;
    client.stream.shutdown().await.unwrap();
    for _ in 0..2 {
        let exchange = next(&mut connection).await;
        exchange.responder.respond(head(200, &[]), "still".into()).await.unwrap();
    }
    assert!(connection.next_request().await.unwrap().is_none());
    assert_eq!(client.response().await.body, b"still");
    assert_eq!(client.response().await.body, b"still");
}

#[tokio::test(start_paused = true)]
async fn a_half_closed_client_that_takes_its_body_has_not_left() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    client.stream.shutdown().await.unwrap();
    let exchange = next(&mut connection).await;
    let mut body = exchange.responder.start(head(200, &[]), Bytes::new()).await.unwrap();
    for _ in 0..10 {
        let pause = Settings::default().half_close_grace / 2;
        assert!(tokio::time::timeout(pause, body.departure()).await.is_err());
        body.send("event".into()).await.unwrap();
    }
    assert_eq!(body.departure().await, Departure::EndOfInput, "when nothing comes any more");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_a_quiet_event_stream_is_believed_to_be_there_for_a_moment_only() {
    for (kind, shorter) in
        [("text/event-stream", true), ("Text/Event-Stream; charset=utf-8", true), ("text/plain", false)]
    {
        let (mut client, mut connection) = pair();
        client.send(GET).await;
        let exchange = next(&mut connection).await;
        let body =
            exchange.responder.start(head(200, &[("content-type", kind)]), Bytes::new()).await.unwrap();
        drop(client);
        let left = tokio::time::Instant::now();
        assert_eq!(body.departure().await, Departure::EndOfInput);
        assert_eq!(left.elapsed() < Settings::default().half_close_grace, shorter, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_gives_early_bytes_first_and_keeps_half_closes() {
    let (mut client, mut connection) = pair();
    client.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\nearly ").await;
    let exchange = next(&mut connection).await;
    assert_eq!(exchange.head.target, Target::Authority { host: "a.example".into(), port: 443 });
    let mut tunnel = exchange.responder.tunnel(head(200, &[("content-length", "0")])).await.unwrap();
    assert!(connection.next_request().await.unwrap().is_none(), "HTTP is over");
    drop((connection, exchange.body));
    let answer = client.head(&Method::CONNECT).await;
    assert!(!answer.fields.contains_key("content-length"));
    client.send("late").await;
    client.stream.shutdown().await.unwrap();
    let mut read = String::new();
    tunnel.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "early late");
    tunnel.write_all(b"answer after the half-close").await.unwrap();
    tunnel.shutdown().await.unwrap();
    let mut rest = String::from_utf8(client.buffer.to_vec()).unwrap();
    client.stream.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "answer after the half-close");
}

#[tokio::test(start_paused = true)]
async fn a_refused_connect_ends_the_connection_so_that_tunnel_bytes_are_never_a_request() {
    let (mut client, mut connection) = pair();
    client.send(&format!("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n{GET}")).await;
    let exchange = next(&mut connection).await;
    exchange.responder.respond(head(502, &[]), Bytes::new()).await.unwrap();
    drop(exchange.body);
    let (end, response) = tokio::join!(connection.next_request(), async {
        let response = client.response().await;
        assert!(client.is_closed().await);
        response
    });
    assert!(end.unwrap().is_none());
    assert_eq!(response.fields["connection"], "close");
}
