//! Origins that speak HTTP/2, most of them in frames of the test's own: what is shared, what is sent again, what waits
//! for whom, and what is refused.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_origin::{Error, Settings, Upload};
use farhop_units::BitRate;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::h2raw::*;
use support::tls::*;
use support::*;
use tokio::sync::mpsc;

fn ok() -> Vec<u8> {
    fields(&[(":status", "200")])
}

#[tokio::test]
async fn the_requests_of_a_user_share_a_connection_as_far_as_the_origin_lets_them() {
    // SETTINGS_MAX_CONCURRENT_STREAMS
    let (origin, client) = raw_origin(&[(3, 4)], |mut wire, _| async move {
        let mut open = Vec::new();
        let mut answered = 0;
        while let Some(number) = wire.request().await {
            open.push(number);
            assert!(open.len() <= 4, "{open:?}");
            // What is open is answered when no more may come, or when nothing more will.
            if open.len() == 4 || answered >= 4 {
                for number in open.drain(..) {
                    answered += 1;
                    wire.answer(number).await;
                }
            }
        }
    })
    .await;
    // So that the settings of the origin are known.
    client
        .prepare(
            &farhop_origin::Partition::new("user"),
            farhop_origin::Scheme::Https,
            &secure_get(&origin, "/").destination,
        )
        .await
        .unwrap();
    let fetches = (0..8).map(|_| Box::pin(fetch(&client, secure_get(&origin, "/"))));
    for result in join_all(fetches).await {
        assert_eq!(result.unwrap().status, 200);
    }
    assert!((1..=2).contains(&origin.connections()), "{}", origin.connections());
}

#[tokio::test]
async fn a_request_that_was_not_processed_is_sent_again_whatever_it_is() {
    for how in ["refused", "gone away"] {
        let processed = Arc::new(Mutex::new(0));
        let count = processed.clone();
        let (origin, client) = raw_origin(&[], move |mut wire, number| {
            let processed = count.clone();
            async move {
                let first = wire.request().await.unwrap();
                wire.answer(first).await;
                if number == 0 {
                    let second = wire.request().await.unwrap();
                    match how {
                        "refused" => wire.reset(second, REFUSED_STREAM).await,
                        _ => wire.go_away(first).await,
                    }
                }
                while let Some(number) = wire.request().await {
                    *processed.lock().unwrap() += 1;
                    wire.answer(number).await;
                }
            }
        })
        .await;
        drop(fetch(&client, secure_get(&origin, "/")).await.unwrap());
        let post = secure(&origin, Method::POST, "/", Upload::whole("pay".into()));
        let result = fetch(&client, post).await;
        assert_eq!(result.unwrap().status, 200, "{how}");
        assert_eq!(origin.connections(), if how == "refused" { 1 } else { 2 });
        // On the second connection it is the first request.
        assert_eq!(*processed.lock().unwrap(), usize::from(how == "refused"));
    }
}

#[tokio::test]
async fn an_origin_that_answers_a_few_requests_per_connection_answers_all() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        let (first, second) = (wire.request().await, wire.request().await);
        for number in [first, second].into_iter().flatten() {
            wire.answer(number).await;
        }
        if let Some(last) = second {
            wire.go_away(last).await;
        }
        wire.drain().await;
    })
    .await;
    let requests = (0..30).map(|number| {
        let pay = || secure(&origin, Method::POST, "/", Upload::whole("pay".into()));
        Box::pin(fetch(&client, if number % 2 == 0 { secure_get(&origin, "/") } else { pay() }))
    });
    for result in join_all(requests).await {
        assert_eq!(result.unwrap().status, 200);
    }
}

#[tokio::test]
async fn an_origin_that_answers_nothing_before_it_goes_away_is_given_up() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        wire.request().await;
        wire.go_away(0).await;
        wire.drain().await;
    })
    .await;
    assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap_err(), Error::Closed);
    assert!(origin.connections() <= 8, "{}", origin.connections());
}

#[tokio::test]
async fn a_request_that_is_refused_for_ever_fails() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        while let Some(number) = wire.request().await {
            wire.reset(number, REFUSED_STREAM).await;
        }
    })
    .await;
    assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap_err(), Error::Closed);
}

#[tokio::test]
async fn an_origin_that_wants_http1_gets_it() {
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2", "http/1.1"], &BOTH_VERSIONS);
    let origin = origin_within(config, |mut stream, _| async move {
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            let mut wire = Wire::open(stream, &[]).await;
            let number = wire.request().await.unwrap();
            wire.reset(number, HTTP_1_1_REQUIRED).await;
            return wire.drain().await;
        }
        while !read_head(&mut stream).await.is_empty() {
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 204 No Content\r\n\r\n")
                .await
                .unwrap();
        }
    })
    .await;
    let client = client_trusting(trusting(&root), Settings::default());
    for _ in 0..2 {
        assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap().status, 204);
    }
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn a_connection_told_to_go_away_finishes_what_it_has_and_takes_no_more() {
    let (origin, client) = raw_origin(&[], |mut wire, number| async move {
        let first = wire.request().await.unwrap();
        if number > 0 {
            wire.answer(first).await;
            return wire.drain().await;
        }
        wire.send(HEADERS, END_HEADERS, first, &ok()).await;
        wire.go_away(first).await;
        let data = "late".repeat(1000);
        wire.send(DATA, 0, first, data.as_bytes()).await;
        wire.send(DATA, END_STREAM, first, b"!").await;
        wire.drain().await;
    })
    .await;
    let mut response = fetch(&client, secure_get(&origin, "/")).await.unwrap();
    assert_eq!(response.body.data().await.unwrap().unwrap(), "late".repeat(1000));
    assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap().status, 200);
    assert_eq!(origin.connections(), 2);
    assert_eq!(whole(&mut response).await.unwrap(), "!");
}

#[tokio::test]
async fn bodies_cut_short_are_incomplete() {
    for how in ["reset", "closed", "gone"] {
        let (sender, mut heard) = mpsc::channel::<()>(1);
        let sender = Arc::new(Mutex::new(Some(sender)));
        let (origin, client) = raw_origin(&[], move |mut wire, _| {
            let sender = sender.lock().unwrap().take();
            async move {
                let number = wire.request().await.unwrap();
                wire.send(HEADERS, END_HEADERS, number, &ok()).await;
                wire.send(DATA, 0, number, b"hello").await;
                // The client has the head.
                sender.unwrap().closed().await;
                match how {
                    "reset" => wire.reset(number, 2).await,
                    "gone" => wire.go_away(number).await,
                    _ => {}
                }
            }
        })
        .await;
        let mut response = fetch(&client, secure_get(&origin, "/")).await.unwrap();
        assert_eq!(response.body.data().await.unwrap().unwrap(), "hello");
        heard.close();
        assert_eq!(response.body.data().await.unwrap_err(), Error::BodyIncomplete, "{how}");
        assert_eq!(response.body.data().await.unwrap_err(), Error::BodyIncomplete, "and stays so");
    }
}

#[tokio::test]
async fn informational_responses_and_trailers_are_passed_on() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        let number = wire.request().await.unwrap();
        let hints = fields(&[(":status", "103"), ("link", "</a.css>")]);
        wire.send(HEADERS, END_HEADERS, number, &hints).await;
        wire.send(HEADERS, END_HEADERS, number, &ok()).await;
        wire.send(DATA, 0, number, b"hello").await;
        wire.send(HEADERS, LAST, number, &fields(&[("x-sum", "5")])).await;
        wire.drain().await;
    })
    .await;
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let note = move |version: Version, status: StatusCode, fields: HeaderMap| {
        assert_eq!(version, Version::HTTP_2);
        seen.lock().unwrap().push((status.as_u16(), fields));
    };
    let mut response = client.fetch(secure_get(&origin, "/"), note).await.unwrap();
    assert_eq!(response.length, None);
    assert_eq!(whole(&mut response).await.unwrap(), "hello");
    assert_eq!(response.body.trailers().unwrap()["x-sum"], HeaderValue::from_static("5"));
    let heads = heads.lock().unwrap();
    assert_eq!(
        (heads.len(), heads[0].0, &heads[0].1["link"]),
        (1, 103, &HeaderValue::from_static("</a.css>"))
    );
}

#[tokio::test]
async fn a_head_that_is_all_there_is_says_that_nothing_follows() {
    for (method, status, told) in [("POST", "200", Some("0")), ("HEAD", "200", None), ("GET", "304", None)] {
        let head = fields(&[(":status", status), ("grpc-status", "3")]);
        let (origin, client) = raw_origin(&[], move |mut wire, _| {
            let head = head.clone();
            async move {
                let number = wire.request().await.unwrap();
                wire.send(HEADERS, LAST, number, &head).await;
                wire.drain().await;
            }
        })
        .await;
        let request = secure(&origin, method.parse().unwrap(), "/", Upload::empty());
        let mut response = fetch(&client, request).await.unwrap();
        let length = response.fields.get("content-length").map(|length| length.to_str().unwrap());
        assert_eq!((length, response.length), (told, Some(0)), "{method} {status}");
        assert_eq!(whole(&mut response).await.unwrap(), "");
    }
}

#[tokio::test]
async fn endless_informational_responses_are_cut_off_without_harm_to_others() {
    let (origin, client) = raw_origin(&[], |mut wire, _| async move {
        let number = wire.request().await.unwrap();
        let hints = fields(&[(":status", "103"), ("link", "</a.css>")]);
        for _ in 0..1000 {
            wire.send(HEADERS, END_HEADERS, number, &hints).await;
        }
        while let Some(number) = wire.request().await {
            wire.answer(number).await;
        }
    })
    .await;
    let error = fetch(&client, secure_get(&origin, "/")).await.unwrap_err();
    assert_eq!(error, Error::TooManyInformational);
    assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap().status, 200);
    assert_eq!(origin.connections(), 1);
}

/// An origin that writes 64 MB as far as it is let, and answers `/quick` with nothing; what it has written of them, and what
/// tells each time that it is let no further.
async fn lavish(root: &Authority) -> (Origin, Arc<Mutex<usize>>, mpsc::UnboundedReceiver<()>) {
    let written = Arc::new(Mutex::new(0_usize));
    let count = written.clone();
    let config = config(&root.issue(&params(&[HOST])), &["h2"], &BOTH_VERSIONS);
    let (full, filled) = mpsc::unbounded_channel();
    let origin = origin_within(config, move |stream, _| {
        let (written, full) = (count.clone(), full.clone());
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                if request.uri().path() == "/quick" {
                    respond.send_response(http::Response::new(()), true).unwrap();
                    continue;
                }
                let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                let (written, full) = (written.clone(), full.clone());
                tokio::spawn(async move {
                    const PIECE: usize = 16 * 1024;
                    for _ in 0..(64 << 20) / PIECE {
                        body.reserve_capacity(PIECE);
                        while body.capacity() < PIECE {
                            let more = std::future::poll_fn(|cx| {
                                let more = body.poll_capacity(cx);
                                if more.is_pending() {
                                    let _ = full.send(());
                                }
                                more
                            });
                            if !matches!(more.await, Some(Ok(_))) {
                                return;
                            }
                        }
                        if body.send_data(vec![0; PIECE].into(), false).is_err() {
                            return;
                        }
                        *written.lock().unwrap() += PIECE;
                    }
                    let _ = body.send_data(Bytes::new(), true);
                });
            }
        }
    })
    .await;
    (origin, written, filled)
}

#[tokio::test]
async fn a_slow_reader_holds_the_origin_back_and_nobody_else() {
    let root = Authority::root("Root");
    let (origin, written, mut filled) = lavish(&root).await;
    let settings = Settings::default();
    let window = settings.stream_window.0 as usize;
    let client = client_trusting(trusting(&root), settings);
    let mut slow = fetch(&client, secure_get(&origin, "/slow")).await.unwrap();
    // The origin has no more room, once the windows that it was given have reached it.
    while *written.lock().unwrap() + 16 * 1024 <= window {
        filled.recv().await.unwrap();
    }
    for _ in 0..20 {
        assert_eq!(fetch(&client, secure_get(&origin, "/quick")).await.unwrap().status, 200);
    }
    assert!(*written.lock().unwrap() <= window, "{} of {window}", written.lock().unwrap());
    let mut read = 0;
    while let Some(data) = slow.body.data().await.unwrap() {
        read += data.len();
    }
    assert_eq!(read, 64 << 20);
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn an_origin_is_given_the_room_that_fits_later_on_a_connection_that_is_open() {
    let root = Authority::root("Root");
    let (origin, written, mut filled) = lavish(&root).await;
    let settings = Settings::default();
    let ways = settings.ways.clone();
    let few = settings.stream_window.0 as usize;
    let client = client_trusting(trusting(&root), settings);
    let _unread = fetch(&client, secure_get(&origin, "/slow")).await.unwrap();
    while *written.lock().unwrap() + 16 * 1024 <= few {
        filled.recv().await.unwrap();
    }
    // Loopback is so short that only a rate like this takes more.
    ways.carry(BitRate(1 << 50));
    assert_eq!(fetch(&client, secure_get(&origin, "/quick")).await.unwrap().status, 200);
    let most = 16 << 20;
    while *written.lock().unwrap() + 16 * 1024 <= most {
        filled.recv().await.unwrap();
    }
    assert!(*written.lock().unwrap() <= most, "{} of {most}", written.lock().unwrap());
    assert_eq!(origin.connections(), 1);
    assert!(ways.trips().measured().is_some());
}

#[tokio::test]
async fn readers_who_wait_never_fill_a_connection() {
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2"], &BOTH_VERSIONS);
    let origin = origin_within(config, |stream, _| async move {
        let mut wire = Wire::open(stream, &[]).await;
        while let Some(number) = wire.request().await {
            wire.send(HEADERS, END_HEADERS, number, &ok()).await;
        }
    })
    .await;
    let settings = Settings {
        stream_window: farhop_units::Bytes(100_000),
        connection_window: farhop_units::Bytes(300_000),
        ..Settings::default()
    };
    let client = client_trusting(trusting(&root), settings);
    let mut waiting = Vec::new();
    for connections in [1, 1, 1, 2, 2, 2, 3] {
        waiting.push(fetch(&client, secure_get(&origin, "/")).await.unwrap());
        assert_eq!(origin.connections(), connections);
    }
    waiting.pop();
    waiting.push(fetch(&client, secure_get(&origin, "/")).await.unwrap());
    assert_eq!(origin.connections(), 3);
}

#[tokio::test]
async fn uploads_and_downloads_of_any_size_run_at_the_same_time() {
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2"], &BOTH_VERSIONS);
    let origin = origin_within(config, |stream, _| async move {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            assert_eq!(request.headers()["content-length"], "8000000");
            assert!(!request.headers().contains_key("host"));
            let mut echo = respond.send_response(http::Response::new(()), false).unwrap();
            let mut body = request.into_body();
            tokio::spawn(async move {
                while let Some(data) = body.data().await {
                    let data = data.unwrap();
                    body.flow_control().release_capacity(data.len()).unwrap();
                    echo.send_data(data, false).unwrap();
                }
                echo.send_data(Bytes::new(), true).unwrap();
            });
        }
    })
    .await;
    let client = client_trusting(trusting(&root), Settings::default());
    let size = 8_000_000;
    let sent: Bytes = (0..size).map(|n| (n % 249) as u8).collect::<Vec<_>>().into();
    let (mut sender, upload) = Upload::streamed(Some(size as u64));
    let pieces = sent.clone();
    let giver = tokio::spawn(async move {
        for start in (0..size).step_by(150_000) {
            sender.send(pieces.slice(start..(start + 150_000).min(size))).await.unwrap();
        }
        sender.finish(None).await.unwrap();
    });
    let mut response = fetch(&client, secure(&origin, Method::PUT, "/", upload)).await.unwrap();
    assert!(whole(&mut response).await.unwrap() == sent, "the echo differs");
    giver.await.unwrap();
}

#[tokio::test]
async fn a_connection_on_which_something_stalls_gets_no_more_requests() {
    let (origin, client) = raw_origin(&[], |mut wire, number| async move {
        while let Some(stream) = wire.request().await {
            if number > 0 {
                wire.answer(stream).await;
            } else {
                let_time_fly();
            }
        }
    })
    .await;
    assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap_err(), Error::FirstByteTimedOut);
    tokio::time::resume();
    assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap().status, 200);
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn a_dropped_fetch_resets_its_stream_and_nothing_else() {
    let (origin, client, mut heard) = telling_origin(|mut wire, told| async move {
        let kept = wire.request().await.unwrap();
        wire.send(HEADERS, END_HEADERS, kept, &ok()).await;
        let dropped = wire.request().await.unwrap();
        told.send(0).unwrap();
        while let Some(frame) = wire.next().await {
            if frame.kind == RST_STREAM {
                assert_eq!(frame.stream, dropped);
                told.send(frame.error()).unwrap();
                wire.send(DATA, END_STREAM, kept, b"hello").await;
            }
        }
    })
    .await;
    let mut kept = fetch(&client, secure_get(&origin, "/")).await.unwrap();
    let (other, request) = (client.clone(), secure_get(&origin, "/"));
    let dropped = tokio::spawn(async move { fetch(&other, request).await.map(|_| ()) });
    assert_eq!(heard.recv().await, Some(0));
    dropped.abort();
    assert_eq!(heard.recv().await, Some(CANCEL));
    assert_eq!(whole(&mut kept).await.unwrap(), "hello");
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn connections_long_unused_are_closed() {
    let (origin, client, mut heard) = telling_origin(|mut wire, told| async move {
        let number = wire.request().await.unwrap();
        wire.answer(number).await;
        let last = wire.next().await.map(|frame| frame.kind);
        told.send(last).unwrap();
    })
    .await;
    drop(fetch(&client, secure_get(&origin, "/")).await.unwrap());
    let_time_fly();
    let begun = tokio::time::Instant::now();
    assert_eq!(heard.recv().await, Some(Some(GOAWAY)), "and says so");
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
}
