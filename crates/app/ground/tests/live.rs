//! What is said word by word crosses word by word: each test lets the next word be said only when the one before has
//! arrived, so whatever held one back would stand still for ever.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_squeeze::HopDecoder;
use farhop_transport::hop::{Arrival, Receiver};
use http::Method;
use support::{Origin, Pair, Peer, gzip, request};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
const WORDS: usize = 20;

/// An origin that answers with these fields and says each word, given as it stands on the wire, when it is told to.
async fn speaking(fields: &'static str, words: Vec<Vec<u8>>) -> (Origin, mpsc::UnboundedSender<()>) {
    let (go, going) = mpsc::unbounded_channel::<()>();
    let (going, words) = (Arc::new(Mutex::new(going)), Arc::new(words));
    let origin = Origin::start(move |mut peer: Peer| {
        let (going, words) = (Arc::clone(&going), Arc::clone(&words));
        async move {
            let fields: String = fields.split('|').map(|field| format!("{}\r\n", field.trim())).collect();
            peer.say(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{fields}\r\n")).await;
            for word in words.iter() {
                going.lock().await.recv().await?;
                peer.say([format!("{:x}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat()).await;
            }
            going.lock().await.recv().await;
            None
        }
    })
    .await;
    (origin, go)
}

async fn next(receiver: &mut Receiver) -> Arrival {
    timeout(PATIENCE, receiver.next()).await.expect("something arrives")
}

/// Body bytes until `enough` of them are here, as they are delivered.
async fn read(receiver: &mut Receiver, decoder: &mut Option<HopDecoder>, enough: usize) -> Vec<u8> {
    let mut got = Vec::new();
    while got.len() < enough {
        let Arrival::Body(bytes) = next(receiver).await else { panic!("no body") };
        match decoder {
            None => got.extend_from_slice(&bytes),
            Some(decoder) => {
                decoder.feed(bytes);
                while let Some(piece) = decoder.pull().unwrap() {
                    got.extend_from_slice(&piece);
                }
            }
        }
    }
    got
}

/// Each word arrives before the next is said.
async fn word_by_word(fields: &'static str, accept: &str) {
    let pair = Pair::new(&[]).await;
    let words: Vec<Vec<u8>> = (0..WORDS).map(|n| format!("data: {{\"n\":{n}}}\n\n").into_bytes()).collect();
    let (origin, go) = speaking(fields, words.clone()).await;
    let head = request(Method::GET, origin.addr, "/", &[("accept", accept), ("accept-encoding", "gzip")]);
    let (mut sender, mut receiver) = pair.ask(&head, None);
    sender.finish(None);
    let Arrival::Answered { coding, .. } = next(&mut receiver).await else {
        panic!("the head waits for a body")
    };
    let mut decoder = (coding == Coding::Zstd).then(HopDecoder::default);
    for word in words {
        go.send(()).unwrap();
        assert_eq!(read(&mut receiver, &mut decoder, word.len()).await, word, "{fields}");
    }
}

#[tokio::test]
async fn events_cross_one_by_one() {
    word_by_word("content-type: text/event-stream", "text/event-stream").await;
}

#[tokio::test]
async fn answers_that_are_never_done_cross_piece_by_piece() {
    for fields in [
        "content-type: application/json",
        "content-type: application/x-ndjson",
        "content-type: text/html",
        "content-type: text/plain; charset=utf-8|cache-control: no-transform",
        "content-type: application/octet-stream",
        "content-type: multipart/x-mixed-replace; boundary=x",
        "x-no: type",
    ] {
        word_by_word(fields, "*/*").await;
    }
}

#[tokio::test]
async fn events_that_the_origin_has_coded_cross_one_by_one() {
    let pair = Pair::new(&[]).await;
    // One stream of gzip members: each is a word.
    let words: Vec<Vec<u8>> = (0..WORDS).map(|n| gzip(format!("data: {n}\n\n").as_bytes())).collect();
    let (origin, go) =
        speaking("content-type: text/event-stream|content-encoding: gzip", words.clone()).await;
    let fields = [("accept", "text/event-stream"), ("accept-encoding", "gzip, deflate")];
    let (mut sender, mut receiver) = pair.ask(&request(Method::GET, origin.addr, "/", &fields), None);
    sender.finish(None);
    let Arrival::Answered { head, coding: Coding::Identity, .. } = next(&mut receiver).await else {
        panic!("not as it came")
    };
    assert_eq!(head.fields["content-encoding"], "gzip");
    for word in words {
        go.send(()).unwrap();
        assert_eq!(read(&mut receiver, &mut None, word.len()).await, word);
    }
}

/// An origin that sends back each piece of the upload while it takes it.
#[tokio::test]
async fn an_upload_and_its_answer_go_on_at_the_same_time() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say(
            "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .await;
        loop {
            let chunk = peer.read_until(b"\r\n").await;
            peer.say(&chunk).await;
            if chunk.ends_with(b"0\r\n\r\n") {
                return None;
            }
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&request(Method::POST, origin.addr, "/", &[]), None);
    // Nothing of the body is there yet: who wants an answer first gets it.
    assert!(matches!(next(&mut receiver).await, Arrival::Answered { .. }));
    for word in 0..WORDS as u8 {
        let word = Bytes::from(vec![b'a' + word; 7]);
        sender.write(word.clone()).await.unwrap();
        assert_eq!(read(&mut receiver, &mut None, 7).await, word);
    }
    sender.finish(None);
    assert_eq!(next(&mut receiver).await, Arrival::Ended);
}

/// The accept of RFC 6455 §1.3's key, which the tests' client uses.
const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                      sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

fn handshake(origin: &Origin) -> farhop_htotp::RequestHead {
    let fields = [
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    request(Method::GET, origin.addr, "/socket", &fields)
}

#[tokio::test]
async fn words_of_a_websocket_cross_one_by_one_until_both_sides_have_ended() {
    // Frames of a client's (RFC 6455 §5.2): a word of 5 bytes, and a Close.
    let word = |word: u8| Bytes::from(vec![0x82, 0x85, 0, 0, 0, 0, word, word, word, word, word]);
    const CLOSE: &[u8] = &[0x88, 0x80, 0, 0, 0, 0];
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say(AGREED).await;
        loop {
            let word = peer.read().await;
            if word == CLOSE {
                // Who has ended, as browsers over HTTP/2 have with that word, looks to many an origin as if it were gone.
                let gone = timeout(Duration::from_millis(200), peer.read()).await;
                assert!(gone.is_err(), "{gone:?}");
                peer.say("bye").await;
                return None;
            }
            peer.say(word).await;
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&handshake(&origin), None);
    let Arrival::Answered { head, coding, .. } = next(&mut receiver).await else { panic!("no answer") };
    assert_eq!((head.status.as_u16(), coding), (101, Coding::Identity));
    assert_eq!(head.fields["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert!(origin.requests()[0].contains("\r\nupgrade: websocket\r\n"), "{:?}", origin.requests());
    for word in (0..100).map(word) {
        sender.write(word.clone()).await.unwrap();
        assert_eq!(next(&mut receiver).await, Arrival::Body(word));
    }
    sender.write(Bytes::from_static(CLOSE)).await.unwrap();
    sender.finish(None);
    assert_eq!(next(&mut receiver).await, Arrival::Body("bye".into()));
    assert_eq!(next(&mut receiver).await, Arrival::Ended);
}

#[tokio::test]
async fn a_websocket_whose_client_ends_without_a_close_is_over() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say(AGREED).await;
        assert_eq!(timeout(Duration::from_secs(5), peer.read()).await.unwrap(), b"", "it is told soon");
        None
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&handshake(&origin), None);
    let Arrival::Answered { head, .. } = next(&mut receiver).await else { panic!("no answer") };
    assert_eq!(head.status.as_u16(), 101);
    sender.finish(None);
    assert_eq!(next(&mut receiver).await, Arrival::Ended);
}

#[tokio::test]
async fn an_origin_that_speaks_no_websocket_is_answered_for_as_any_other() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say("HTTP/1.1 426 Upgrade Required\r\ncontent-length: 5\r\n\r\nnever").await;
        None
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (_sender, mut receiver) = pair.ask(&handshake(&origin), None);
    let reply = support::Reply::take(&mut receiver).await;
    assert_eq!((reply.head().status.as_u16(), &*reply.body), (426, &b"never"[..]));
}

#[tokio::test]
async fn a_websocket_that_breaks_on_one_side_is_broken_on_the_other() {
    let (seen, mut sees) = mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer: Peer| {
        let seen = seen.clone();
        async move {
            peer.say(AGREED).await;
            if peer.read().await == b"break" {
                peer.stream.set_zero_linger().unwrap();
                return None;
            }
            // The remote's client is gone: nothing more comes.
            assert!(peer.read().await.is_empty());
            seen.send(()).unwrap();
            None
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&handshake(&origin), None);
    assert!(matches!(next(&mut receiver).await, Arrival::Answered { .. }));
    sender.write("break".into()).await.unwrap();
    assert!(matches!(next(&mut receiver).await, Arrival::Reset(farhop_htotp::session::code::RESET)));

    let (mut sender, mut receiver) = pair.ask(&handshake(&origin), None);
    assert!(matches!(next(&mut receiver).await, Arrival::Answered { .. }));
    sender.write("go on".into()).await.unwrap();
    drop((sender, receiver));
    timeout(PATIENCE, sees.recv()).await.expect("the origin hears of it").unwrap();
}

/// The connection is there before the request is.
#[tokio::test]
async fn what_is_prepared_serves_the_first_request() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let pair = Pair::new(&[]).await;
    pair.hop.prepare(7, "http", "127.0.0.1", addr.port());
    let (stream, _) = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let (mut sender, mut receiver) = pair.ask(&request(Method::GET, addr, "/", &[]), None);
    sender.finish(None);
    let mut peer = Peer { stream, head: String::new(), rest: Vec::new() };
    let asked = peer.read_until(b"\r\n\r\n").await;
    assert!(asked.starts_with(b"GET / HTTP/1.1\r\n"));
    peer.answer("", "ok").await;
    assert_eq!(support::Reply::take(&mut receiver).await.body, b"ok");
}
