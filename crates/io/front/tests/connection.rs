//! Connections as a client sees them: what is answered, in which framing, and how they end.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use bytes::{Bytes, BytesMut};
use farhop_front::h1::{BodyDecoder, Decoded, HeadScanner, ResponseHead, Section};
use farhop_front::{
    BodyError, Connection, Departure, Exchange, Framing, Head, HeadLimits, Refusal, RequestError, Settings,
    Target, WriteError,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

/// A client that reads responses as strictly as requests are read.
struct Client {
    stream: DuplexStream,
    buffer: BytesMut,
}

/// A response with its body, and whether the body was complete.
#[derive(Debug)]
struct Response {
    status: u16,
    fields: HeaderMap,
    framing: Framing,
    body: Vec<u8>,
    trailers: HeaderMap,
    complete: bool,
}

impl Client {
    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn fill(&mut self) -> bool {
        self.stream.read_buf(&mut self.buffer).await.unwrap() > 0
    }

    async fn head(&mut self, method: &Method) -> ResponseHead {
        let limits = HeadLimits::default();
        let mut scanner = HeadScanner::new(Section::Response);
        loop {
            if let Some(range) = scanner.scan(&self.buffer, &limits).unwrap() {
                let head = self.buffer.split_to(range.end);
                return ResponseHead::parse(&head, method, &limits).unwrap();
            }
            assert!(self.fill().await, "the connection ended before a response head");
        }
    }

    async fn response_to(&mut self, method: &Method) -> Response {
        let head = self.head(method).await;
        let mut decoder = BodyDecoder::new(head.framing, HeadLimits::default());
        let mut response = Response {
            status: head.status.as_u16(),
            fields: head.fields,
            framing: head.framing,
            body: Vec::new(),
            trailers: HeaderMap::new(),
            complete: true,
        };
        loop {
            match decoder.decode(&mut self.buffer).unwrap() {
                Decoded::Data(data) => response.body.extend_from_slice(&data),
                Decoded::End(trailers) => {
                    response.trailers = trailers;
                    return response;
                }
                Decoded::NeedMore => {
                    if !self.fill().await && decoder.end_of_input().is_err() {
                        response.complete = false;
                        return response;
                    }
                }
            }
        }
    }

    async fn response(&mut self) -> Response {
        self.response_to(&Method::GET).await
    }

    async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill().await
    }
}

fn pair_with(settings: Settings) -> (Client, Connection) {
    let (near, far) = duplex(64 * 1024);
    (Client { stream: near, buffer: BytesMut::new() }, Connection::new(far, Arc::new(settings)))
}

fn pair() -> (Client, Connection) {
    pair_with(Settings::default())
}

fn head(status: u16, fields: &[(&'static str, &'static str)]) -> Head {
    let fields = fields
        .iter()
        .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), HeaderValue::from_static(value)));
    Head { status: StatusCode::from_u16(status).unwrap(), fields: fields.collect() }
}

async fn next(connection: &mut Connection) -> Exchange {
    connection.next_request().await.unwrap().expect("a request")
}

fn path(exchange: &Exchange) -> String {
    match &exchange.head.target {
        Target::Absolute { path, .. } | Target::Origin(path) => path.to_string(),
        other => format!("{other:?}"),
    }
}

const GET: &str = "GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n";

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
async fn a_request_that_is_dropped_unanswered_closes_the_connection() {
    let (mut client, mut connection) = pair();
    client.send(GET).await;
    drop(next(&mut connection).await);
    assert!(connection.next_request().await.unwrap().is_none());
    assert!(client.is_closed().await);
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
    let (mut client, mut connection) = pair_with(Settings { linger, ..Settings::default() });
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
