//! Requests and their answers through ground: bodies both ways, what goes wrong, resuming, cancelling.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Coding, Resume, Side};
use farhop_htotp::head::RECEIVED;
use farhop_transport::hop::Arrival;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use support::{Origin, Pair, Peer, Reply, get, gzip, noise, request};
use tokio::sync::mpsc;

async fn answering(fields: &'static str, body: Vec<u8>) -> Origin {
    Origin::start(move |mut peer: Peer| {
        let body = body.clone();
        async move {
            peer.answer(fields, body).await;
            Some(peer)
        }
    })
    .await
}

#[tokio::test]
async fn a_body_arrives_as_the_origin_sent_it_with_its_length() {
    let body = noise(3_000_000);
    let origin = answering("content-type: image/png | etag: \"1\"", body.clone()).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&get(&origin, "/a?b=c")).await;
    assert!(reply.whole && reply.body == body);
    assert_eq!(reply.coding, Coding::Identity);
    let fields = &reply.head().fields;
    assert_eq!(
        (&fields["content-length"], &fields["etag"]),
        (&"3000000".parse().unwrap(), &"\"1\"".parse().unwrap())
    );
    assert!(fields["via"].to_str().unwrap().starts_with("1.1 farhop (0000000000"));
    let asked = &origin.requests()[0];
    assert!(asked.starts_with("get /a?b=c http/1.1\r\n"), "{asked}");
    assert!(
        asked.contains(&format!("host: {}\r\n", origin.addr)) && asked.contains("via: 1.1 farhop\r\n"),
        "{asked}"
    );
    assert!(asked.contains("accept-encoding: gzip, deflate\r\n"), "{asked}");
}

#[tokio::test]
async fn via_names_the_version_in_which_each_message_was_received() {
    async fn answer(mut peer: Peer) -> Option<Peer> {
        peer.say(b"HTTP/1.0 200 OK\r\nvia: 1.1 other\r\ncontent-length: 1\r\n\r\nx".to_vec()).await;
        None
    }
    let origin = Origin::start(answer).await;
    let pair = Pair::new(&[]).await;
    for (said, named) in [(Some("1.0"), "1.0"), (Some("2.0"), "2.0"), (Some("9"), "1.1"), (None, "1.1")] {
        let mut asked = get(&origin, "/");
        asked.fields.extend(said.map(|said| (RECEIVED, HeaderValue::from_static(said))));
        let reply = pair.get(&asked).await;
        let via: Vec<_> = reply.head().fields.get_all("via").iter().collect();
        assert!(via[0] == "1.1 other" && via[1].to_str().unwrap().starts_with("1.0 farhop (0"), "{via:?}");
        let asked = origin.requests().pop().unwrap();
        assert!(asked.contains(&format!("via: {named} farhop\r\n")), "{asked}");
        assert!(!asked.contains("farhop-received"), "{asked}");
    }
}

#[tokio::test]
async fn text_crosses_as_zstd_and_arrives_unchanged() {
    let body = b"All happy families are alike. ".repeat(20_000);
    let origin = answering("content-type: text/plain | etag: \"1\"", body.clone()).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&get(&origin, "/")).await;
    assert!(reply.whole && reply.body == body);
    assert_eq!(reply.coding, Coding::Zstd);
    assert!(reply.crossed < body.len() / 100, "{}", reply.crossed);
    let fields = &reply.head().fields;
    assert_eq!(
        (&fields["content-length"], &fields["etag"]),
        (&"600000".parse().unwrap(), &"\"1\"".parse().unwrap())
    );
}

#[tokio::test]
async fn gzipped_text_arrives_decoded_as_another_representation() {
    let body = b"<p>Every unhappy family is unhappy in its own way.".repeat(5_000);
    let fields = "content-type: text/html | content-encoding: gzip | etag: \"1\" | vary: accept-encoding";
    for coded in [gzip(&body), gzip(&body[..500])] {
        let origin = answering(fields, coded.clone()).await;
        let pair = Pair::new(&[]).await;
        let reply = pair.get(&get(&origin, "/")).await;
        let decoded = if coded == gzip(&body) { &body[..] } else { &body[..500] };
        assert!(reply.whole && reply.body == decoded);
        assert_eq!(reply.coding, Coding::Zstd);
        let fields = &reply.head().fields;
        assert!(!fields.contains_key("content-encoding"));
        assert_eq!(fields["content-length"], decoded.len().to_string(), "small enough to be decoded ahead");
        assert_eq!(
            (&fields["etag"], &fields["vary"]),
            (&"W/\"1\"".parse().unwrap(), &"accept-encoding".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn a_trickling_text_is_not_held_back() {
    let (go, going) = mpsc::unbounded_channel::<()>();
    let going = std::sync::Arc::new(tokio::sync::Mutex::new(going));
    let origin = Origin::start(move |mut peer: Peer| {
        let going = going.clone();
        async move {
            peer.say("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
                .await;
            for chunk in ["5\r\nfirst\r\n", "6\r\nsecond\r\n", "0\r\n\r\n"] {
                peer.say(chunk).await;
                going.lock().await.recv().await;
            }
            None
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&get(&origin, "/"), None);
    sender.finish(None);
    assert!(matches!(receiver.next().await, Arrival::Answered { coding: Coding::Zstd, .. }));
    let mut decoder = farhop_squeeze::HopDecoder::default();
    for expected in ["first", "second"] {
        let Arrival::Body(bytes) = receiver.next().await else { panic!("no body") };
        decoder.feed(bytes);
        assert_eq!(decoder.pull().unwrap().unwrap(), expected);
        go.send(()).unwrap();
    }
    go.send(()).unwrap();
    assert!(Reply::take(&mut receiver).await.failure.is_none());
}

#[tokio::test]
async fn a_small_text_whose_rest_is_late_begins_without_it() {
    let (go, going) = mpsc::unbounded_channel::<()>();
    let going = std::sync::Arc::new(tokio::sync::Mutex::new(going));
    let origin = Origin::start(move |mut peer: Peer| {
        let going = going.clone();
        async move {
            peer.say("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nfirst").await;
            going.lock().await.recv().await;
            peer.say("then2").await;
            Some(peer)
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) = pair.ask(&get(&origin, "/"), None);
    sender.finish(None);
    assert!(matches!(receiver.next().await, Arrival::Answered { .. }));
    let Arrival::Body(bytes) = receiver.next().await else { panic!("no body") };
    let mut decoder = farhop_squeeze::HopDecoder::default();
    decoder.feed(bytes);
    assert_eq!(decoder.pull().unwrap().unwrap(), "first");
    go.send(()).unwrap();
    assert!(Reply::take(&mut receiver).await.failure.is_none());
}

#[tokio::test]
async fn an_upload_arrives_whole_with_its_trailers() {
    let origin = Origin::start(|mut peer: Peer| async move {
        let body = peer.read_until(b"X-Sum: 1\r\n\r\n").await;
        peer.answer("", body.len().to_string()).await;
        None
    })
    .await;
    let pair = Pair::new(&[]).await;
    let (mut sender, mut receiver) =
        pair.ask(&request(Method::POST, origin.addr, "/", &[("trailer", "x-sum")]), None);
    let body = noise(2_000_000);
    for piece in body.chunks(60_000) {
        sender.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("1"));
    sender.finish(Some(&trailers));
    let reply = Reply::take(&mut receiver).await;
    let length: usize = String::from_utf8(reply.body).unwrap().parse().unwrap();
    assert!(length > body.len(), "chunks and trailers add to {length}");
    assert!(origin.requests()[0].contains("transfer-encoding: chunked\r\n"));
}

#[tokio::test]
async fn an_upload_of_known_length_keeps_it() {
    let origin = Origin::start(|mut peer: Peer| async move {
        let body = peer.read_until(b"of eleven").await;
        peer.answer("", body).await;
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    let head = request(Method::PUT, origin.addr, "/", &[("content-length", "14")]);
    let (mut sender, mut receiver) = pair.ask(&head, None);
    sender.write("body of eleven".into()).await.unwrap();
    sender.finish(None);
    assert_eq!(Reply::take(&mut receiver).await.body, b"body of eleven");
    let asked = &origin.requests()[0];
    assert!(asked.contains("content-length: 14\r\n") && !asked.contains("transfer-encoding"), "{asked}");
}

#[tokio::test]
async fn a_client_that_waits_for_100_is_told_to_go_on() {
    let origin = Origin::start(|mut peer: Peer| async move {
        assert!(peer.head.contains("expect: 100-continue"), "{}", peer.head);
        peer.say("HTTP/1.1 100 Continue\r\n\r\n").await;
        let body = peer.read_until(b"0\r\n\r\n").await;
        peer.answer("", body).await;
        None
    })
    .await;
    let pair = Pair::new(&[]).await;
    let head = request(Method::POST, origin.addr, "/", &[("expect", "100-continue")]);
    let (mut sender, mut receiver) = pair.ask(&head, None);
    let Arrival::Informed(informed) = receiver.next().await else { panic!("not informed") };
    assert_eq!(informed.status, StatusCode::CONTINUE);
    sender.write("now".into()).await.unwrap();
    sender.finish(None);
    assert!(Reply::take(&mut receiver).await.body.windows(3).any(|three| three == b"now"));
}

#[tokio::test]
async fn an_answer_before_the_upload_has_ended_stops_the_upload() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say("HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
        None
    })
    .await;
    let pair = Pair::new(&[]).await;
    let head = request(Method::POST, origin.addr, "/", &[("content-length", "100000000")]);
    let (sender, mut receiver) = pair.ask(&head, None);
    assert_eq!(Reply::take(&mut receiver).await.head().status, 413);
    sender.gone().await;
}

#[tokio::test]
async fn trailers_and_informational_responses_come_through() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say("HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload; as=style\r\n\r\n").await;
        peer.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 5\r\n\r\n")
            .await;
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    let mut head = get(&origin, "/");
    head.fields.insert("te", HeaderValue::from_static("trailers"));
    let reply = pair.get(&head).await;
    assert_eq!(reply.informed[0].status, 103);
    assert!(reply.informed[0].fields.contains_key("link"));
    assert_eq!(
        (&reply.body[..], &reply.trailers.as_ref().unwrap()["x-sum"]),
        (&b"ok"[..], &"5".parse().unwrap())
    );
}

#[tokio::test]
async fn answers_without_a_body_end_with_their_head() {
    let origin = Origin::start(|mut peer: Peer| async move {
        let head = match peer.path() {
            "/304" => "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n",
            _ => "HTTP/1.1 200 OK\r\ncontent-length: 10\r\ncontent-type: text/html\r\n\r\n",
        };
        peer.say(head).await;
        Some(peer)
    })
    .await;
    let pair = Pair::new(&[]).await;
    assert_eq!(pair.get(&get(&origin, "/304")).await.head().status, 304);
    let reply = pair.get(&request(Method::HEAD, origin.addr, "/", &[])).await;
    assert!(reply.whole && reply.body.is_empty());
    assert_eq!(reply.head().fields["content-length"], "10");
}

#[tokio::test]
async fn an_origin_that_refuses_is_named_with_status_and_reason() {
    let pair = Pair::new(&[]).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let reply = pair.get(&request(Method::GET, addr, "/", &[])).await;
    let failure = reply.failure();
    assert_eq!((failure.side, failure.status, &*failure.token), (Side::Origin, 502, "connection_refused"));
}

#[tokio::test]
async fn a_private_destination_is_refused_and_told() {
    let origin = answering("", b"secret".to_vec()).await;
    let pair = Pair::new(&["allow="]).await;
    let mut events = pair.bus.subscribe();
    let reply = pair.get(&get(&origin, "/")).await;
    let failure = reply.failure();
    assert_eq!((failure.status, &*failure.token), (403, "destination_ip_prohibited"));
    let host = support::event(&mut events, |event| match event {
        farhop_events::Event::DestinationRefused { host, .. } => Some(host.clone()),
        _ => None,
    });
    assert_eq!(host.await, "127.0.0.1");
    assert!(origin.requests().is_empty());
}

#[tokio::test]
async fn a_body_that_breaks_off_is_delivered_as_far_as_it_came_and_then_fails() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 100\r\ncontent-type: image/png\r\n\r\npart").await;
        None
    })
    .await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&get(&origin, "/")).await;
    assert_eq!((&reply.body[..], reply.whole), (&b"part"[..], false));
    assert_eq!(&*reply.failure().token, "http_response_incomplete");
}

#[tokio::test]
async fn a_broken_content_coding_fails() {
    let mut coded = gzip(&noise(300_000));
    coded[100_000..].fill(0);
    let origin = answering("content-type: text/html | content-encoding: gzip", coded).await;
    let pair = Pair::new(&[]).await;
    let reply = pair.get(&get(&origin, "/")).await;
    assert!(!reply.whole);
    assert_eq!(&*reply.failure().token, "http_response_content_coding");
}

#[tokio::test]
async fn a_bomb_is_passed_on_in_pieces_as_they_are_wanted() {
    let origin =
        answering("content-type: text/css | content-encoding: gzip", gzip(&vec![b' '; 100 << 20])).await;
    let pair = Pair::new(&["squeeze.zstd_level=1"]).await;
    let (mut sender, mut receiver) = pair.ask(&get(&origin, "/"), None);
    sender.finish(None);
    assert!(matches!(receiver.next().await, Arrival::Answered { coding: Coding::Zstd, .. }));
    assert!(matches!(receiver.next().await, Arrival::Body(_)));
}

#[tokio::test]
async fn a_body_resumes_where_it_was_cut() {
    let body = noise(300_000);
    let text = b"Anna read and understood, but it was not pleasant. ".repeat(6_000);
    for (kind, body) in [("content-type: image/png", body), ("content-type: text/plain", text.clone())] {
        let origin = answering(kind, body.clone()).await;
        let pair = Pair::new(&[]).await;
        for offset in [1, 150_000, body.len()] {
            let prefix = *blake3::hash(&body[..offset]).as_bytes();
            let reply =
                pair.get_from(&get(&origin, "/"), Some(Resume { offset: offset as u64, prefix })).await;
            assert_eq!(reply.resumed, Some(offset as u64), "{reply:?}");
            assert!(reply.whole && reply.body == body[offset..], "{kind} from {offset}");
        }
    }
    let origin = answering("content-type: text/plain | content-encoding: gzip", gzip(&text)).await;
    let pair = Pair::new(&[]).await;
    let prefix = *blake3::hash(&text[..99_999]).as_bytes();
    let reply = pair.get_from(&get(&origin, "/"), Some(Resume { offset: 99_999, prefix })).await;
    assert!(
        reply.whole && reply.body == text[99_999..],
        "what was delivered was decoded, so that is what counts"
    );
}

#[tokio::test]
async fn a_body_that_has_changed_is_not_resumed() {
    let origin = answering("content-type: image/png", noise(1000)).await;
    let pair = Pair::new(&[]).await;
    for resume in [Resume { offset: 500, prefix: [7; 32] }, Resume { offset: 2000, prefix: [7; 32] }] {
        let reply = pair.get_from(&get(&origin, "/"), Some(resume)).await;
        assert!(reply.head.is_none() && reply.body.is_empty());
        assert_eq!((reply.failure().status, &*reply.failure().token), (502, "resume_mismatch"));
    }
}

#[tokio::test]
async fn a_request_that_may_not_be_repeated_is_not_resumed() {
    let origin = answering("", b"x".to_vec()).await;
    let pair = Pair::new(&[]).await;
    let head = request(Method::POST, origin.addr, "/", &[]);
    let reply = pair.get_from(&head, Some(Resume { offset: 1, prefix: [0; 32] })).await;
    assert_eq!(reply.failure().status, 400);
    assert!(origin.requests().is_empty());
}

#[tokio::test]
async fn what_the_remote_gives_up_is_given_up_at_the_origin() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer: Peer| {
        let told = told.clone();
        async move {
            if peer.path() == "/body" {
                peer.say("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart").await;
            }
            told.send(false).unwrap();
            peer.read().await;
            told.send(true).unwrap();
            None
        }
    })
    .await;
    let pair = Pair::new(&[]).await;
    for path in ["/head", "/body"] {
        let (mut sender, receiver) = pair.ask(&get(&origin, path), None);
        sender.finish(None);
        assert_eq!(tell.recv().await, Some(false));
        drop(receiver);
        assert_eq!(tell.recv().await, Some(true), "{path}");
    }
}

#[tokio::test]
async fn a_slow_remote_holds_the_origin_back() {
    let (told, mut tell) = mpsc::unbounded_channel();
    let origin = Origin::start(move |mut peer: Peer| {
        let told = told.clone();
        async move {
            peer.say("HTTP/1.1 200 OK\r\ncontent-length: 80000000\r\n\r\n").await;
            let chunk = noise(1_000_000);
            for number in 0..80 {
                tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &chunk).await.ok()?;
                told.send(number).unwrap();
            }
            None
        }
    })
    .await;
    let pair = Pair::new(&["spool.exchange=1 MB"]).await;
    let (mut sender, mut receiver) = pair.ask(&get(&origin, "/"), None);
    sender.finish(None);
    assert!(matches!(receiver.next().await, Arrival::Answered { .. }));
    // Nothing is read: socket buffers, the spool and the carrier's windows fill, and then the origin stands still.
    let mut last = 0;
    while let Ok(Some(number)) = tokio::time::timeout(Duration::from_secs(1), tell.recv()).await {
        last = number;
    }
    assert!(last < 20, "{last} MB were taken off the origin");
    let mut hasher = blake3::Hasher::new();
    let mut length = 0;
    while let Arrival::Body(bytes) = receiver.next().await {
        length += bytes.len();
        hasher.update(&bytes);
    }
    let mut expected = blake3::Hasher::new();
    let chunk = noise(1_000_000);
    for _ in 0..80 {
        expected.update(&chunk);
    }
    assert_eq!((length, hasher.finalize()), (80_000_000, expected.finalize()));
}

#[tokio::test]
async fn a_small_text_that_breaks_off_is_delivered_as_far_as_it_came() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say("HTTP/1.1 200 OK\r\ncontent-type: text/css\r\ncontent-length: 900\r\n\r\n.begun{}").await;
        None
    })
    .await;
    let reply = Pair::new(&[]).await.get(&get(&origin, "/")).await;
    assert_eq!((&reply.body[..], reply.whole), (&b".begun{}"[..], false));
    assert_eq!(reply.failure().token, "http_response_incomplete");
}

#[tokio::test]
async fn a_gzip_text_that_was_cut_is_delivered_as_far_as_it_decodes() {
    let body = noise(9000);
    let coded = gzip(&body);
    let fields = "content-type: text/css | content-encoding: gzip";
    let pair = Pair::new(&[]).await;
    let origin = answering(fields, coded[..coded.len() - 8].to_vec()).await;
    let reply = pair.get(&get(&origin, "/")).await;
    assert!(reply.whole && reply.body == body, "browsers do not miss the checksum");
    let origin = answering(fields, coded[..coded.len() / 2].to_vec()).await;
    let reply = pair.get(&get(&origin, "/")).await;
    assert!(reply.whole && reply.body.len() > 1000 && body.starts_with(&reply.body), "nor the rest");
}
