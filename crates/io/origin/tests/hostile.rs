//! Origins that refuse, hang, lie, reset and babble: each gives its error, none a response that is not whole.

mod support;

use farhop_origin::{Error, Guard, Refusal, Request, Settings, Stage, Upload};
use http::{Method, StatusCode};
use std::time::Duration;
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn responses_with_two_readings_are_errors() {
    let heads = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 5,\r\n",
        "Content-Length: +5\r\nContent-Length: +5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: a\r\n b\r\n",
        "X: a\rb\r\n",
        "X: a\0b\r\n",
        "X Y: a\r\n",
        "nonsense\r\n",
    ];
    for head in heads {
        let error = body_of(&format!("HTTP/1.1 200 OK\r\n{head}\r\nhello")).await.unwrap_err();
        assert!(matches!(error, Error::Malformed(_)), "{head:?}: {error:?}");
        assert_eq!(error.status(), StatusCode::BAD_GATEWAY);
    }
    let error = body_of("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").await.unwrap_err();
    assert!(matches!(error, Error::Malformed(_)), "{error:?}");
}

#[tokio::test]
async fn a_length_that_is_said_twice_is_one_and_many_fields_are_taken() {
    let many: String = (0..250).map(|n| format!("X-{n}: y\r\n")).collect();
    for head in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        &format!("Content-Length: 5\r\n{many}"),
    ] {
        let body = body_of(&format!("HTTP/1.1 200 OK\r\n{head}\r\nhello, and what is too much")).await;
        assert_eq!(body.unwrap(), "hello", "{head}");
    }
}

#[tokio::test]
async fn what_is_no_response_is_an_error() {
    let garbage = [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n",
        " HTTP/1.1 200 OK\r\n\r\n",
        "<html>hello</html>\r\n\r\n",
        "\x15\x03\x01\0\x02\x02\x46",
    ];
    for text in garbage {
        let error = body_of(text).await.unwrap_err();
        let begins_as_http = text.trim_start().starts_with("HTTP/");
        match error {
            Error::Malformed(_) => assert!(begins_as_http, "{text:?}"),
            Error::NotHttp => assert!(!begins_as_http, "{text:?}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
    let error = body_of("").await.unwrap_err();
    assert_eq!(error, Error::Closed);
    assert_eq!((error.stage(), error.proxy_status()), (Stage::Exchange, "connection_terminated"));
    assert_eq!(body_of("HTTP/1.1 200 O").await.unwrap_err(), Error::Closed);
    assert_eq!(body_of("HTTP/1.1 103 Early Hints\r\n\r\n").await.unwrap_err(), Error::Closed);
    assert_eq!(
        body_of("HTTP/1.1 101 Surprise\r\nUpgrade: x\r\n\r\n").await.unwrap_err(),
        Error::UnaskedUpgrade
    );
}

#[tokio::test]
async fn bodies_that_end_before_their_length_are_incomplete() {
    let cut = [
        "Content-Length: 10\r\n\r\nhello",
        "Content-Length: 10\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5",
        "Transfer-Encoding: chunked\r\n\r\n",
    ];
    for text in cut {
        let error = body_of(&format!("HTTP/1.1 200 OK\r\n{text}")).await.unwrap_err();
        assert_eq!(error, Error::BodyIncomplete, "{text:?}");
        assert_eq!((error.stage(), error.retry_can_help()), (Stage::Body, true));
    }
}

#[tokio::test]
async fn malformed_chunks_are_errors() {
    let chunks = [
        "g\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello",
        "5\r\nhello\r\n0\r\nX Y: z\r\n\r\n",
        "5\r\nhello\r\n0\rX",
    ];
    for text in chunks {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{text}");
        let error = body_of(&answer).await.unwrap_err();
        assert!(matches!(error, Error::BodyMalformed(_)), "{text:?}: {error:?}");
    }
}

#[tokio::test]
async fn bytes_beyond_the_length_are_no_part_of_any_response() {
    // What follows could be meant for the next request on the same connection.
    let answer =
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let origin = Origin::start(move |mut stream, _| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let client = client();
    for _ in 0..3 {
        let mut response = fetch(&client, origin.get("/")).await.unwrap();
        assert_eq!(whole(&mut response).await.unwrap(), "hello");
        tokio::task::yield_now().await;
    }
    assert_eq!(origin.connections(), 3, "such a connection is not used again");
}

#[tokio::test]
async fn a_reset_within_the_body_is_incomplete_and_one_before_it_closed() {
    let origin = Origin::start(|mut stream, number| async move {
        read_head(&mut stream).await;
        if number == 0 {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'!', "the client has the head");
        }
        reset(stream);
    })
    .await;
    let client = client();
    let (sender, upload) = Upload::streamed(None);
    let mut response = fetch(&client, origin.request(Method::POST, "/", upload)).await.unwrap();
    assert_eq!(response.body.data().await.unwrap().unwrap(), "hello");
    drop(sender);
    assert_eq!(response.body.data().await.unwrap_err(), Error::BodyIncomplete);
    assert_eq!(response.body.data().await.unwrap_err(), Error::BodyIncomplete, "and stays so");
    assert_eq!(fetch(&client, origin.get("/")).await.unwrap_err(), Error::Closed);
}

#[tokio::test]
async fn a_close_delimited_body_that_is_reset_is_incomplete() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello").await.unwrap();
        read_head(&mut stream).await;
        reset(stream);
    })
    .await;
    let (mut sender, upload) = Upload::streamed(None);
    let mut response = fetch(&client(), origin.request(Method::POST, "/", upload)).await.unwrap();
    assert_eq!(response.body.data().await.unwrap().unwrap(), "hello");
    sender.send("\r\n\r\n".into()).await.unwrap();
    assert_eq!(response.body.data().await.unwrap_err(), Error::BodyIncomplete);
}

#[tokio::test]
async fn heads_without_end_are_cut_off() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(100_000));
    assert_eq!(body_of(&long).await.unwrap_err(), Error::HeadTooLarge);
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: a\r\n".repeat(300));
    assert_eq!(body_of(&many).await.unwrap_err(), Error::HeadTooLarge);
    let endless = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        while stream.write_all(b"X: endless\r\n").await.is_ok() {}
    })
    .await;
    let error = fetch(&client(), endless.get("/")).await.unwrap_err();
    assert_eq!(error, Error::HeadTooLarge);
    assert_eq!(error.proxy_status(), "http_response_header_section_size");
}

#[tokio::test]
async fn endless_trailers_are_cut_off() {
    let trailers = "X: a\r\n".repeat(20_000);
    let answer =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n{trailers}\r\n");
    assert!(matches!(body_of(&answer).await.unwrap_err(), Error::BodyMalformed(_)));
}

#[tokio::test]
async fn endless_informational_responses_are_cut_off() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        while stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").await.is_ok() {}
    })
    .await;
    let error = fetch(&client(), origin.get("/")).await.unwrap_err();
    assert_eq!(error, Error::TooManyInformational);
}

#[tokio::test]
async fn an_origin_that_never_answers_is_timed_out() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        let_time_fly();
        std::future::pending::<()>().await;
    })
    .await;
    let error = fetch(&client(), origin.get("/")).await.unwrap_err();
    assert_eq!(error, Error::FirstByteTimedOut);
    assert_eq!(
        (error.status(), error.proxy_status()),
        (StatusCode::GATEWAY_TIMEOUT, "http_response_timeout")
    );
}

#[tokio::test]
async fn a_slow_giver_of_an_upload_is_not_the_origins_fault() {
    let (taken, half) = tokio::sync::watch::channel(false);
    let origin = Origin::start(move |mut stream, _| {
        let taken = taken.clone();
        async move {
            read_head(&mut stream).await;
            stream.read_exact(&mut [0; 5]).await.unwrap();
            taken.send_replace(true);
            stream.read_exact(&mut [0; 5]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        }
    })
    .await;
    let (mut sender, upload) = Upload::streamed(Some(10));
    let request = origin.request(Method::PUT, "/", upload);
    let giving = async {
        sender.send("hello".into()).await.unwrap();
        half.clone().wait_for(|taken| *taken).await.unwrap();
        let_time_fly();
        tokio::time::sleep(Duration::from_secs(600)).await;
        tokio::time::resume();
        sender.send("world".into()).await.unwrap();
        sender.finish(None).await.unwrap();
    };
    let client = client();
    let (response, ()) = tokio::join!(fetch(&client, request), giving);
    assert_eq!(whole(&mut response.unwrap()).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_body_that_stops_coming_is_timed_out() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let mut response = fetch(&client(), origin.get("/")).await.unwrap();
    assert_eq!(response.body.data().await.unwrap().unwrap(), "hello");
    let_time_fly();
    assert_eq!(response.body.data().await.unwrap_err(), Error::BodyStalled);
}

#[tokio::test]
async fn long_polls_and_quiet_event_streams_are_waited_for() {
    let origin = Origin::start(|mut stream, _| async move {
        read_head(&mut stream).await;
        quiet(Duration::from_secs(290)).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
        for _ in 0..3 {
            quiet(Duration::from_secs(50 * 60)).await;
            stream.write_all(b"5\r\nevent\r\n").await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    })
    .await;
    let mut response = fetch(&client(), origin.get("/")).await.unwrap();
    assert_eq!(whole(&mut response).await.unwrap(), "eventeventevent");
}

/// Lets so much time pass, and goes on in real time.
async fn quiet(long: Duration) {
    let_time_fly();
    tokio::time::sleep(long).await;
    tokio::time::resume();
}

#[tokio::test]
async fn what_nobody_asked_for_is_not_waited_for_as_long() {
    let origin = Origin::start(|mut stream, number| async move {
        read_head(&mut stream).await;
        if number > 0 {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await.unwrap();
            stream.flush().await.unwrap();
        } else {
            let_time_fly();
        }
        std::future::pending::<()>().await;
    })
    .await;
    let unasked = || Request { patience: Some(Duration::from_secs(30)), ..origin.get("/") };
    let client = client();
    let started = tokio::time::Instant::now();
    assert_eq!(fetch(&client, unasked()).await.unwrap_err(), Error::FirstByteTimedOut);
    tokio::time::resume();
    let mut response = fetch(&client, unasked()).await.unwrap();
    assert_eq!(response.body.data().await.unwrap().unwrap(), "hello");
    let_time_fly();
    assert_eq!(response.body.data().await.unwrap_err(), Error::BodyStalled);
    assert!(started.elapsed() < Duration::from_secs(100));
}

#[tokio::test]
async fn a_closed_port_refuses() {
    let origin = Origin::answering("").await;
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let mut request = origin.get("/");
    request.destination = farhop_origin::Destination::new("127.0.0.1", port);
    let error = fetch(&client(), request).await.unwrap_err();
    assert!(matches!(error, Error::ConnectRefused { address } if address.port() == port));
    assert_eq!((error.stage(), error.proxy_status()), (Stage::Connect, "connection_refused"));
    assert!(error.retry_can_help());
}

#[tokio::test]
async fn private_destinations_are_refused_by_address_and_by_name_and_for_tunnels() {
    let origin = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let names = [
        ("inside.example", "10.0.0.1"),
        ("meta.example", "169.254.169.254"),
        ("mapped.example", "::ffff:127.0.0.1"),
    ];
    let names = names.map(|(name, address)| (name.to_owned(), vec![address.parse().unwrap()]));
    let resolver = farhop_origin::FixedResolver { names: names.into() };
    let client = farhop_origin::Client::new(
        Settings::default(),
        Guard::default(),
        std::sync::Arc::new(resolver),
        nobody(),
    );
    let cases = [
        ("127.0.0.1", Refusal::Loopback),
        ("[::1]", Refusal::Loopback),
        ("[::ffff:7f00:1]", Refusal::Loopback),
        ("inside.example", Refusal::Private),
        ("META.example", Refusal::Metadata),
        ("mapped.example", Refusal::Loopback),
    ];
    for (host, kind) in cases {
        let destination = farhop_origin::Destination::new(host, origin.port);
        let mut request = origin.get("/");
        request.destination = destination.clone();
        for error in
            [fetch(&client, request).await.unwrap_err(), client.connect(&destination).await.unwrap_err()]
        {
            assert!(
                matches!(&error, Error::Refused { refusal, .. } if *refusal == kind),
                "{host}: {error:?}"
            );
            assert_eq!(
                (error.status(), error.proxy_status()),
                (StatusCode::FORBIDDEN, "destination_ip_prohibited")
            );
        }
    }
    let said =
        client.connect(&farhop_origin::Destination::new("10.0.0.1", 80)).await.unwrap_err().to_string();
    assert!(said.starts_with("10.0.0.1 is refused as a private address: "), "{said}");
    let said =
        client.connect(&farhop_origin::Destination::new("inside.example", 80)).await.unwrap_err().to_string();
    assert!(said.starts_with("inside.example (10.0.0.1) is refused as a private address: "), "{said}");
    assert_eq!(origin.connections(), 0);
    let nowhere = farhop_origin::Destination::new("nowhere.example", 80);
    let error = client.connect(&nowhere).await.unwrap_err();
    assert_eq!((error.stage(), error.proxy_status()), (Stage::Resolve, "dns_error"));
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_never_whole_at_the_origin() {
    for length in [Some(10), None] {
        let (done, taken) = tokio::sync::oneshot::channel();
        let done = std::sync::Mutex::new(Some(done));
        let origin = Origin::start(move |mut stream, _| {
            let done = done.lock().unwrap().take().unwrap();
            async move {
                read_head(&mut stream).await;
                let mut body = Vec::new();
                let _ = stream.read_to_end(&mut body).await;
                done.send(body).unwrap();
            }
        })
        .await;
        let (mut sender, upload) = Upload::streamed(length);
        let request = origin.request(Method::PUT, "/", upload);
        let giving = async {
            sender.send("hello".into()).await.unwrap();
            drop(sender);
        };
        let client = client();
        let (error, ()) = tokio::join!(fetch(&client, request), giving);
        assert!(matches!(error, Err(Error::UploadFailed(_))), "{error:?}");
        let body = String::from_utf8(taken.await.unwrap()).unwrap();
        assert!(!body.ends_with("0\r\n\r\n") && body.len() <= 10, "{body:?}");
    }
}
