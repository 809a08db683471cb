//! What is said word by word reaches the client, and leaves it, word by word: each test says the next word only when the
//! one before has arrived.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_squeeze::Encoder;
use farhop_transport::hop::Arrival;
use support::{Asked, BROWSER, PATIENCE, answer, head, read_until, world, world_with};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

const WORDS: usize = 20;

#[tokio::test]
async fn events_reach_the_client_one_by_one() {
    let world = world().await;
    for coding in [Coding::Identity, Coding::Zstd] {
        let mut client = world.get("/events", BROWSER).await;
        let Asked { mut sender, .. } = world.asked().await;
        let fields = &[("content-type", "text/event-stream"), ("cache-control", "no-cache")];
        sender.answer(&head(fields), coding, None);
        let mut got = String::new();
        read_until(&mut client, &mut got, "\r\n\r\n").await;
        let mut encoder = Encoder::new(3, None).unwrap();
        for word in 0..WORDS {
            let event = format!("data: {word}.\n\n");
            let bytes = match coding {
                Coding::Identity => Bytes::from(event.clone()),
                Coding::Zstd => encoder.chunk(event.as_bytes()).unwrap(),
                _ => unreachable!("nothing else is sent"),
            };
            sender.write(bytes).await.unwrap();
            read_until(&mut client, &mut got, &event).await;
            assert!(got.contains(&event), "{coding:?}: {got}");
        }
    }
}

#[tokio::test]
async fn a_streaming_upload_leaves_piece_by_piece_and_may_be_answered_meanwhile() {
    let world = world().await;
    let mut client = world.client().await;
    let request =
        "POST http://site.test/talk HTTP/1.1\r\nhost: site.test\r\ntransfer-encoding: chunked\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    let Asked { mut sender, mut receiver, head: asked, .. } = world.asked().await;
    assert!(!asked.fields.contains_key("content-length"));
    sender.answer(&head(&[("content-type", "application/octet-stream")]), Coding::Identity, None);
    let mut got = String::new();
    read_until(&mut client, &mut got, "\r\n\r\n").await;
    for word in 0..WORDS {
        let word = format!("<{word}>");
        client.write_all(format!("{:x}\r\n{word}\r\n", word.len()).as_bytes()).await.unwrap();
        let up = timeout(PATIENCE, receiver.next()).await.unwrap();
        assert_eq!(up, Arrival::Body(word.clone().into()));
        sender.write(word.clone().into()).await.unwrap();
        read_until(&mut client, &mut got, &word).await;
        assert!(got.contains(&word), "{got}");
    }
    client.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Ended);
}

#[tokio::test]
async fn an_upload_that_has_no_body_says_so() {
    let world = world().await;
    let mut client = world.client().await;
    client.write_all(b"POST http://site.test/ HTTP/1.1\r\nhost: site.test\r\n\r\n").await.unwrap();
    let Asked { head, mut receiver, .. } = world.asked().await;
    assert_eq!(head.fields["content-length"], "0");
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Ended);
}

#[tokio::test]
async fn who_closes_a_quiet_stream_or_a_long_poll_ends_it_at_ground_too() {
    let world = world_with(&["timeouts.half_close=100 ms"]).await;
    for answers in [true, false] {
        let mut client = world.get("/events", BROWSER).await;
        let Asked { sender, .. } = world.asked().await;
        if answers {
            sender.answer(&head(&[("content-type", "text/event-stream")]), Coding::Identity, None);
            let mut got = String::new();
            read_until(&mut client, &mut got, "\r\n\r\n").await;
        }
        drop(client);
        timeout(PATIENCE, sender.gone()).await.expect("ground is told that nobody listens");
    }
}

#[tokio::test]
async fn who_only_stops_sending_still_gets_an_answer_that_is_coming() {
    let world = world().await;
    let mut client = world.get("/slow", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    client.shutdown().await.unwrap();
    assert!(timeout(Duration::from_millis(300), sender.gone()).await.is_err(), "it is believed to be there");
    sender.answer(&head(&[("content-type", "text/plain")]), Coding::Identity, None);
    sender.write(Bytes::from_static(b"late")).await.unwrap();
    sender.finish(None);
    assert!(answer(client).await.contains("late"));
}
