//! What is sent again over HTTP/2, whole, and what is not: requests that an origin says not to have acted on, and those that it
//! left unanswered when it ended a connection on which there were others.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use bytes::Bytes;
use farhop_origin::{Client, Error, Settings, Upload};
use http::Method;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use support::h2raw::*;
use support::tls::*;
use support::*;
use tokio::sync::mpsc;

/// SETTINGS_MAX_CONCURRENT_STREAMS and SETTINGS_INITIAL_WINDOW_SIZE.
const MOST_STREAMS: u16 = 3;
const WINDOW: u16 = 4;
const WIDE: u32 = 1 << 24;

fn bytes(size: usize) -> Bytes {
    (0..size).map(|n| (n % 251) as u8).collect::<Vec<_>>().into()
}

/// A body that comes from someone who gives it once, in pieces. With `sized` it says how long it is.
fn streamed(size: usize, sized: bool) -> Upload {
    let (mut sender, upload) = Upload::streamed(sized.then_some(size as u64));
    let body = bytes(size);
    tokio::spawn(async move {
        for start in (0..size).step_by(7_001) {
            sender.send(body.slice(start..(start + 7_001).min(size))).await?;
        }
        sender.finish(None).await
    });
    upload
}

#[tokio::test]
async fn a_body_in_pieces_of_which_the_origin_acted_on_nothing_is_sent_again_whole() {
    for (how, method) in [("refused", Method::POST), ("gone away", Method::PATCH)] {
        for (size, sized) in [(3, true), (20_000, false), (300_000, true), (300_000, false)] {
            let (tell, mut told) = mpsc::unbounded_channel();
            let refusals = Arc::new(AtomicUsize::new(0));
            let (origin, client) = raw_origin(&[(WINDOW, WIDE)], move |mut wire, number| {
                let (tell, refusals) = (tell.clone(), refusals.clone());
                async move {
                    wire.widen(WIDE).await;
                    while let Some(stream) = wire.request().await {
                        if refusals.load(Ordering::Relaxed) < 2 {
                            // Some of the body is here already, or all of it.
                            wire.body(stream, size.min(100_000)).await;
                            refusals.fetch_add(1, Ordering::Relaxed);
                            if how == "gone away" {
                                return wire.go_away(0).await;
                            }
                            wire.reset(stream, REFUSED_STREAM).await;
                            continue;
                        }
                        tell.send((number, wire.body(stream, usize::MAX).await)).unwrap();
                        wire.answer(stream).await;
                    }
                }
            })
            .await;
            let request = secure(&origin, method.clone(), "/", streamed(size, sized));
            assert_eq!(fetch(&client, request).await.unwrap().status, 200, "{how} {size}");
            let (connection, body) = told.recv().await.unwrap();
            assert!(body == bytes(size), "{how}: {} of {size}", body.len());
            assert_eq!(connection, if how == "refused" { 0 } else { 2 });
            assert!(told.try_recv().is_err(), "once");
        }
    }
}

#[tokio::test]
async fn a_body_in_pieces_goes_over_http1_to_an_origin_that_wants_that() {
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2", "http/1.1"], &BOTH_VERSIONS);
    let (tell, mut told) = mpsc::unbounded_channel();
    let origin = origin_within(config, move |mut stream, _| {
        let tell = tell.clone();
        async move {
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                let mut wire = Wire::open(stream, &[]).await;
                let number = wire.request().await.unwrap();
                wire.body(number, 3).await;
                wire.reset(number, HTTP_1_1_REQUIRED).await;
                return wire.drain().await;
            }
            read_head(&mut stream).await;
            let mut body = [0; 3];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut body).await.unwrap();
            tell.send(body).unwrap();
            let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
        }
    })
    .await;
    let client = client_trusting(trusting(&root), Settings::default());
    let request = secure(&origin, Method::POST, "/", streamed(3, true));
    assert_eq!(fetch(&client, request).await.unwrap().status, 204);
    assert_eq!(told.recv().await.unwrap(), bytes(3)[..]);
}

/// An origin that refuses each request once it has so many bytes of it, and tells how many that was.
async fn refusing(least: usize, settings: Settings) -> (Origin, Client, mpsc::UnboundedReceiver<usize>) {
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2"], &BOTH_VERSIONS);
    let (tell, told) = mpsc::unbounded_channel();
    let origin = origin_within(config, move |stream, _| {
        let tell = tell.clone();
        async move {
            let mut wire = Wire::open(stream, &[]).await;
            while let Some(stream) = wire.request().await {
                tell.send(wire.body(stream, least).await.len()).unwrap();
                wire.reset(stream, REFUSED_STREAM).await;
            }
        }
    })
    .await;
    (origin, client_trusting(trusting(&root), settings), told)
}

#[tokio::test]
async fn a_body_of_which_more_was_taken_than_is_kept_is_not_sent_again() {
    let settings = Settings { upload: farhop_units::Bytes(10_000), ..Settings::default() };
    let (origin, client, mut told) = refusing(20_000, settings).await;
    let error = fetch(&client, secure(&origin, Method::PUT, "/", streamed(20_000, true))).await.unwrap_err();
    assert_eq!((&error, error.retry_can_help()), (&Error::Closed, true));
    assert_eq!((told.recv().await, told.try_recv().ok()), (Some(20_000), None));
}

#[tokio::test]
async fn what_was_kept_is_given_back_when_the_response_begins() {
    let root = Authority::root("Root");
    let config = config(&root.issue(&params(&[HOST])), &["h2"], &BOTH_VERSIONS);
    let origin = origin_within(config, |stream, _| async move {
        let mut wire = Wire::open(stream, &[]).await;
        let first = wire.request().await.unwrap();
        wire.body(first, 700).await;
        // Its body never comes, and the other half of the request's neither.
        wire.send(HEADERS, END_HEADERS, first, &fields(&[(":status", "200")])).await;
        let refused = wire.request().await.unwrap();
        wire.body(refused, 700).await;
        wire.reset(refused, REFUSED_STREAM).await;
        let again = wire.request().await.unwrap();
        wire.body(again, 700).await;
        wire.answer(again).await;
        wire.drain().await;
    })
    .await;
    // Of all bodies together no more is kept than this one.
    let settings = Settings { uploads: farhop_units::Bytes(1000), ..Settings::default() };
    let client = client_trusting(trusting(&root), settings);
    let (mut sender, upload) = Upload::streamed(Some(1400));
    sender.send(bytes(700)).await.unwrap();
    let _unread = fetch(&client, secure(&origin, Method::POST, "/", upload)).await.unwrap();
    let other = secure(&origin, Method::POST, "/", streamed(700, true));
    assert_eq!(fetch(&client, other).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_connection_that_ends_without_a_word_leaves_idempotent_requests_to_others_a_few_times() {
    for (ends, method, answered) in
        [(1, Method::GET, true), (2, Method::PUT, true), (3, Method::GET, false), (1, Method::POST, false)]
    {
        let (origin, client) = raw_origin(&[], move |mut wire, number| async move {
            let stream = wire.request().await.unwrap();
            if number < ends {
                // It has seen the request, and may have done anything with it.
                wire.go_away(stream).await;
                return;
            }
            wire.answer(stream).await;
            wire.drain().await;
        })
        .await;
        let upload = if method == Method::GET { Upload::empty() } else { streamed(3, true) };
        let result = fetch(&client, secure(&origin, method.clone(), "/", upload)).await;
        match answered {
            true => assert_eq!(result.unwrap().status, 200),
            false => assert_eq!(result.unwrap_err(), Error::Closed, "{method}"),
        }
        assert_eq!(origin.connections(), if method == Method::POST { 1 } else { (ends + 1).min(3) });
    }
}

/// An origin that lets one exchange at a time be on a connection, and ends that when there are more; how many it has ended.
async fn strict() -> (Origin, Client, Arc<Mutex<usize>>) {
    let ended = Arc::new(Mutex::new(0));
    let count = ended.clone();
    let (origin, client) = raw_origin(&[(MOST_STREAMS, 1)], move |mut wire, _| {
        let ended = count.clone();
        async move {
            while let Some(stream) = wire.request().await {
                let Some(more) = wire.opened_meanwhile().await else { return };
                if let Some(last) = more.last() {
                    *ended.lock().unwrap() += 1;
                    wire.go_away(*last).await;
                    return;
                }
                wire.answer(stream).await;
            }
        }
    })
    .await;
    (origin, client, ended)
}

/// Asks so often at once.
async fn all_of(times: usize, origin: &Origin, client: &Client) -> Vec<Result<(), Error>> {
    // Who has an answer makes room for another.
    let one = || async { fetch(client, secure_get(origin, "/")).await.map(drop) };
    join_all((0..times).map(|_| Box::pin(one()))).await
}

#[tokio::test]
async fn an_origin_that_is_known_to_let_one_exchange_be_under_way_gets_no_more_on_any_connection() {
    let (origin, client, ended) = strict().await;
    drop(fetch(&client, secure_get(&origin, "/")).await.unwrap());
    assert_eq!(all_of(20, &origin, &client).await, vec![Ok(()); 20]);
    assert_eq!(*ended.lock().unwrap(), 0);
    assert!(origin.connections() <= Settings::default().connections, "{}", origin.connections());
}

#[tokio::test]
async fn what_was_asked_before_an_origin_said_how_much_it_lets_is_asked_again_as_it_says() {
    let (origin, client, ended) = strict().await;
    assert_eq!(all_of(20, &origin, &client).await, vec![Ok(()); 20]);
    assert_eq!(*ended.lock().unwrap(), 1);
}
