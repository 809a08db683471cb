//! Origins within TLS: what is agreed to speak, handshakes that come to nothing, bodies cut short, and connections
//! opened ahead.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_origin::{
    CertificateProblem, Destination, Error, HandshakeFailure, Partition, Request, Scheme, Settings, Stage,
    Upload,
};
use http::{Method, StatusCode};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore};
use std::sync::{Arc, Mutex};
use support::h2raw::{LAST, Wire};
use support::tls::*;
use support::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Answers whatever is asked, in whatever was agreed.
async fn obliging(mut stream: TlsStream<tokio::net::TcpStream>) {
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        let mut wire = Wire::open(stream, &[]).await;
        while let Some(number) = wire.request().await {
            wire.answer(number).await;
        }
        return;
    }
    while !read_head(&mut stream).await.is_empty() {
        stream.write_all(EMPTY).await.unwrap();
    }
}

/// An origin that speaks these protocols, and a client that trusts it.
async fn obliging_origin(protocols: &[&str], settings: Settings) -> (Origin, farhop_origin::Client) {
    let root = Authority::root("Root");
    let shown = root.issue(&params(&[HOST]));
    let origin = origin_within(config(&shown, protocols, &BOTH_VERSIONS), |stream, _| obliging(stream)).await;
    (origin, client_trusting(trusting(&root), settings))
}

#[tokio::test]
async fn the_best_protocol_that_both_speak_is_spoken() {
    for protocols in [&["http/1.1"][..], &["h2"], &["http/1.1", "h2"], &[]] {
        let (origin, client) = obliging_origin(protocols, Settings::default()).await;
        for _ in 0..3 {
            let mut response = fetch(&client, secure_get(&origin, "/")).await.unwrap();
            assert_eq!(response.status, 200, "{protocols:?}");
            assert_eq!(whole(&mut response).await.unwrap(), "");
        }
        assert_eq!(origin.connections(), 1, "{protocols:?}");
    }
}

#[tokio::test]
async fn who_speaks_neither_is_a_failed_handshake() {
    let (origin, client) = obliging_origin(&["spdy/3"], Settings::default()).await;
    let error = fetch(&client, secure_get(&origin, "/")).await.unwrap_err();
    let failure = HandshakeFailure::Alert("NoApplicationProtocol".into());
    assert_eq!(error, Error::Tls { host: HOST.into(), failure });
    assert_eq!((error.stage(), error.proxy_status()), (Stage::Tls, "tls_alert_received"));
    assert!(!error.retry_can_help());
}

#[tokio::test]
async fn schemes_share_no_connections() {
    let origin = Origin::start(|mut stream, number| async move {
        if number == 0 {
            read_head(&mut stream).await;
            stream.write_all(EMPTY).await.unwrap();
        } else {
            stream.read_u8().await.unwrap();
            let_time_fly();
        }
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let client = client();
    drop(fetch(&client, origin.get("/")).await.unwrap());
    let mut request = origin.get("/");
    request.scheme = Scheme::Https;
    assert!(matches!(fetch(&client, request).await, Err(Error::Tls { .. })));
    assert_eq!(origin.connections(), 2);
}

#[tokio::test]
async fn what_is_no_tls_is_told_from_what_closes() {
    let client = client();
    let failure = |answer: &'static [u8]| {
        let client = client.clone();
        async move {
            let origin = Origin::start(move |mut stream, _| async move {
                stream.read_u8().await.unwrap();
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
                let _ = stream.read_to_end(&mut Vec::new()).await;
            })
            .await;
            let mut request = origin.get("/");
            request.scheme = Scheme::Https;
            fetch(&client, request).await.unwrap_err()
        }
    };
    let plain = failure(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    assert!(plain.to_string().ends_with("what the origin sent is no TLS"), "{plain}");
    assert_eq!((plain.proxy_status(), plain.retry_can_help()), ("tls_protocol_error", false));
    let closed = failure(b"").await;
    assert!(matches!(&closed, Error::Tls { failure: HandshakeFailure::Closed, .. }), "{closed:?}");
    assert_eq!((closed.proxy_status(), closed.retry_can_help()), ("tls_cut_off", true));
    // Alerts: internal_error is what a server without backends says, protocol_version what one of another time does.
    let internal = failure(b"\x15\x03\x03\x00\x02\x02\x50").await;
    assert_eq!((internal.proxy_status(), internal.retry_can_help()), ("tls_cut_off", true), "{internal}");
    let version = failure(b"\x15\x03\x03\x00\x02\x02\x46").await;
    assert_eq!(
        (version.proxy_status(), version.retry_can_help()),
        ("tls_alert_received", false),
        "{version}"
    );
}

#[tokio::test]
async fn a_handshake_that_is_cut_off_is_begun_anew_once() {
    let root = Authority::root("Root");
    let shown = root.issue(&params(&[HOST]));
    let acceptor = TlsAcceptor::from(Arc::new(config(&shown, &["http/1.1"], &BOTH_VERSIONS)));
    for (cut_off, is_answered) in [(1, true), (usize::MAX, false)] {
        let acceptor = acceptor.clone();
        let origin = Origin::start(move |mut stream, number| {
            let acceptor = acceptor.clone();
            async move {
                if number < cut_off {
                    stream.read_u8().await.unwrap();
                } else {
                    obliging(acceptor.accept(stream).await.unwrap()).await;
                }
            }
        })
        .await;
        let client = client_trusting(trusting(&root), Settings::default());
        let answer = fetch(&client, secure_get(&origin, "/")).await;
        assert_eq!((answer.is_ok(), origin.connections()), (is_answered, 2));
    }
}

#[tokio::test]
async fn a_handshake_that_hangs_is_timed_out() {
    let origin = Origin::start(|mut stream, _| async move {
        stream.read_u8().await.unwrap();
        let_time_fly();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let mut request = origin.get("/");
    request.scheme = Scheme::Https;
    let error = fetch(&client(), request).await.unwrap_err();
    assert!(matches!(&error, Error::Tls { failure: HandshakeFailure::TimedOut, .. }), "{error:?}");
    assert_eq!((error.status(), error.proxy_status()), (StatusCode::GATEWAY_TIMEOUT, "connection_timeout"));
}

#[tokio::test]
async fn who_asks_for_a_client_certificate_gets_no_request() {
    let root = Authority::root("Root");
    let mut roots = RootCertStore::empty();
    roots.add(root.certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    for optional in [false, true] {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots.clone()), provider.clone());
        let verifier = if optional { verifier.allow_unauthenticated() } else { verifier }.build().unwrap();
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let shown = root.issue(&params(&[HOST]));
            let mut config = rustls::ServerConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(&[version])
                .unwrap()
                .with_client_cert_verifier(verifier.clone())
                .with_cert_resolver(config(&shown, &[], &[version]).cert_resolver);
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            let seen = Arc::new(Mutex::new(Vec::new()));
            let read = seen.clone();
            let origin = origin_within(config, move |mut stream, _| {
                let read = read.clone();
                async move {
                    let mut bytes = Vec::new();
                    let _ = stream.read_to_end(&mut bytes).await;
                    read.lock().unwrap().extend(bytes);
                }
            })
            .await;
            let client = client_trusting(trusting(&root), Settings::default());
            let error = fetch(&client, secure_get(&origin, "/")).await.unwrap_err();
            assert_eq!(error, Error::ClientCertificateWanted { host: HOST.into() }, "{version:?} {optional}");
            assert_eq!(error.proxy_status(), "client_certificate_wanted");
            assert_eq!((error.status(), error.stage()), (StatusCode::BAD_GATEWAY, Stage::Tls));
            assert_eq!(*seen.lock().unwrap(), b"");
        }
    }
}

#[tokio::test]
async fn a_bad_certificate_comes_before_the_wish_for_one() {
    let (root, stranger) = (Authority::root("Root"), Authority::root("Stranger"));
    let mut roots = RootCertStore::empty();
    roots.add(root.certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let shown = stranger.issue(&params(&[HOST]));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(config(&shown, &[], &BOTH_VERSIONS).cert_resolver);
    let origin = origin_within(config, |_, _| async {}).await;
    let client = client_trusting(trusting(&root), Settings::default());
    let error = fetch(&client, secure_get(&origin, "/")).await.unwrap_err();
    assert!(
        matches!(error, Error::Certificate { problem: CertificateProblem::UnknownIssuer { .. }, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_body_that_only_the_connection_ends_must_be_ended_by_its_sender() {
    let root = Authority::root("Root");
    let shown = root.issue(&params(&[HOST]));
    for (head, says_goodbye, whole_body) in [
        ("HTTP/1.1 200 OK\r\n\r\n", true, true),
        // Whoever cuts the line could have cut it here as well: it is told.
        ("HTTP/1.0 200 OK\r\n\r\n", false, true),
        ("HTTP/1.1 200 OK\r\n\r\n", false, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", true, false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n", false, false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n", false, false),
    ] {
        let origin =
            origin_within(config(&shown, &["http/1.1"], &BOTH_VERSIONS), move |mut stream, _| async move {
                read_head(&mut stream).await;
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(b"hello").await.unwrap();
                stream.flush().await.unwrap();
                if says_goodbye {
                    stream.shutdown().await.unwrap();
                } else {
                    stream.get_mut().0.shutdown().await.unwrap();
                }
                let _ = stream.get_mut().0.read_to_end(&mut Vec::new()).await;
            })
            .await;
        let client = client_trusting(trusting(&root), Settings::default());
        let mut response = fetch(&client, secure_get(&origin, "/")).await.unwrap();
        let body = whole(&mut response).await;
        let unsealed = head.ends_with(" OK\r\n\r\n");
        assert_eq!(response.unsealed, unsealed, "{head:?}");
        assert_eq!(response.body.was_cut(), unsealed && !says_goodbye, "{head:?} {says_goodbye}");
        match whole_body {
            true => assert_eq!(body.unwrap(), "hello", "{head:?} {says_goodbye}"),
            false => assert_eq!(body.unwrap_err(), Error::BodyIncomplete, "{head:?} {says_goodbye}"),
        }
    }
}

#[tokio::test]
async fn nothing_ties_one_connection_to_another() {
    let root = Authority::root("Root");
    let shown = root.issue(&params(&[HOST]));
    let kinds = Arc::new(Mutex::new(Vec::new()));
    for version in BOTH_VERSIONS {
        let seen = kinds.clone();
        let origin = origin_within(config(&shown, &["http/1.1"], &[version]), move |mut stream, _| {
            seen.lock().unwrap().push(stream.get_ref().1.handshake_kind().unwrap());
            async move {
                read_head(&mut stream).await;
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        })
        .await;
        let client = client_trusting(trusting(&root), Settings::default());
        for _ in 0..3 {
            whole(&mut fetch(&client, secure_get(&origin, "/")).await.unwrap()).await.unwrap();
        }
        assert_eq!(origin.connections(), 3);
    }
    assert_eq!(*kinds.lock().unwrap(), [HandshakeKind::Full; 6]);
}

#[tokio::test]
async fn one_handshake_shows_what_an_origin_speaks_and_all_wait_for_it() {
    for (protocols, most) in [(&["h2"][..], 1), (&["http/1.1"], 6)] {
        let (origin, client) = obliging_origin(protocols, Settings::default()).await;
        let fetches: Vec<_> = (0..30)
            .map(|_| {
                let (client, request) = (client.clone(), secure_get(&origin, "/"));
                tokio::spawn(async move { fetch(&client, request).await.map(|response| response.status) })
            })
            .collect();
        for fetched in fetches {
            assert_eq!(fetched.await.unwrap().unwrap(), 200);
        }
        assert!((1..=most).contains(&origin.connections()), "{protocols:?}: {}", origin.connections());
    }
}

#[tokio::test]
async fn whoever_waits_for_a_handshake_learns_why_it_failed() {
    let (root, stranger) = (Authority::root("Root"), Authority::root("Stranger"));
    let shown = stranger.issue(&params(&[HOST]));
    let origin = origin_within(config(&shown, &["h2"], &BOTH_VERSIONS), |stream, _| obliging(stream)).await;
    let client = client_trusting(trusting(&root), Settings::default());
    let fetches = (0..10).map(|_| Box::pin(fetch(&client, secure_get(&origin, "/"))));
    let errors: Vec<_> = join_all(fetches).await;
    assert!(errors.iter().all(|result| matches!(result, Err(Error::Certificate { .. }))), "{errors:?}");
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn a_handshake_given_up_by_one_is_taken_up_by_another() {
    let (origin, client) = obliging_origin(&["h2"], Settings::default()).await;
    {
        // Begun, and dropped at once.
        let mut first = Box::pin(fetch(&client, secure_get(&origin, "/")));
        let polled =
            std::future::poll_fn(|cx| std::task::Poll::Ready(first.as_mut().poll(cx).is_pending())).await;
        assert!(polled);
    }
    assert_eq!(fetch(&client, secure_get(&origin, "/")).await.unwrap().status, 200);
}

#[tokio::test]
async fn of_too_many_unused_connections_the_one_unused_the_longest_is_closed() {
    for protocols in [&["h2"][..], &["http/1.1"]] {
        let (origin, client) =
            obliging_origin(protocols, Settings { kept: Some(2), ..Settings::default() }).await;
        for (user, connections) in [("ann", 1), ("bob", 2), ("ann", 2), ("cat", 3), ("ann", 3), ("bob", 4)] {
            let mut request = secure_get(&origin, "/");
            request.partition = Partition::new(user);
            let mut response = fetch(&client, request).await.unwrap();
            whole(&mut response).await.unwrap();
            drop(response);
            assert_eq!(origin.connections(), connections, "{protocols:?}, {user}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_used_is_never_closed_to_make_room() {
    for protocols in [&["h2"][..], &["http/1.1"]] {
        let (origin, client) =
            obliging_origin(protocols, Settings { kept: Some(0), ..Settings::default() }).await;
        for connections in 1..=3 {
            let mut response = fetch(&client, secure_get(&origin, "/")).await.unwrap();
            assert_eq!(whole(&mut response).await.unwrap(), "", "{protocols:?}");
            drop(response);
            assert_eq!(origin.connections(), connections, "{protocols:?}");
        }
    }
}

#[tokio::test]
async fn a_prepared_connection_is_used_by_the_next_request_of_its_user() {
    for protocols in [&["h2"][..], &["http/1.1"]] {
        let (origin, client) = obliging_origin(protocols, Settings::default()).await;
        let request = || secure_get(&origin, "/");
        let prepare = || async {
            let Request { partition, scheme, destination, .. } = request();
            client.prepare(&partition, scheme, &destination).await.unwrap();
        };
        // Together with a request that does not wait for it.
        let (_, first) = tokio::join!(prepare(), fetch(&client, request()));
        assert_eq!(first.unwrap().status, 200);
        assert_eq!(origin.connections(), 1, "{protocols:?}");
        prepare().await;
        assert_eq!(origin.connections(), 1, "there is one already");
        let mut other = request();
        other.partition = Partition::new("other");
        assert_eq!(fetch(&client, other).await.unwrap().status, 200);
        assert_eq!(origin.connections(), 2, "another user's");
    }
}

#[tokio::test]
async fn a_plain_connection_can_be_prepared_as_well() {
    let origin = Origin::answering(EMPTY).await;
    let client = client();
    client.prepare(&Partition::new("user"), Scheme::Http, &origin.destination()).await.unwrap();
    assert_eq!(origin.connections(), 1);
    assert_eq!(fetch(&client, origin.get("/")).await.unwrap().status, 200);
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn prepared_connections_are_few_and_do_not_wait_for_long() {
    let (closed, mut closes) = tokio::sync::mpsc::unbounded_channel();
    let origin = Origin::start(move |mut stream, number| {
        let closed = closed.clone();
        async move {
            let _ = stream.read_to_end(&mut Vec::new()).await;
            closed.send(number).unwrap();
        }
    })
    .await;
    let client = client_with(Settings { prepared: 2, ..Settings::default() });
    for user in ["a", "b", "c"] {
        client.prepare(&Partition::new(user), Scheme::Http, &origin.destination()).await.unwrap();
    }
    origin.connected(2).await;
    let_time_fly();
    let begun = tokio::time::Instant::now();
    closes.recv().await.unwrap();
    closes.recv().await.unwrap();
    assert!(begun.elapsed() < 2 * Settings::default().prepared_timeout, "{:?}", begun.elapsed());
    tokio::time::resume();
    assert_eq!(origin.connections(), 2);
    client.prepare(&Partition::new("c"), Scheme::Http, &origin.destination()).await.unwrap();
    origin.connected(3).await;
}

#[tokio::test]
async fn a_preparation_says_what_is_wrong() {
    let root = Authority::root("Root");
    let shown = root.issue(&params(&[HOST]));
    let origin = origin_within(config(&shown, &["h2"], &BOTH_VERSIONS), |stream, _| obliging(stream)).await;
    let client = client_trusting(nobody(), Settings::default());
    let destination = Destination::new(HOST, origin.port);
    let error = client.prepare(&Partition::new("user"), Scheme::Https, &destination).await.unwrap_err();
    assert!(matches!(error, Error::Certificate { .. }), "{error:?}");
}

#[tokio::test]
async fn a_stale_http2_connection_is_replaced_for_idempotent_requests_only() {
    let root = Authority::root("Root");
    let config = || config(&root.issue(&params(&[HOST])), &["h2"], &BOTH_VERSIONS);
    for (method, upload, again) in [
        (Method::GET, Upload::empty(), true),
        (Method::POST, Upload::empty(), false),
        (Method::PUT, Upload::whole("x".into()), true),
    ] {
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        // Answers the first request of each connection, and closes on the second without a word.
        let origin = origin_within(config(), move |stream, _| {
            let asked = count.clone();
            async move {
                let mut wire = Wire::open(stream, &[]).await;
                let first = wire.request().await.unwrap();
                wire.send(
                    support::h2raw::HEADERS,
                    LAST,
                    first,
                    &support::h2raw::fields(&[(":status", "200")]),
                )
                .await;
                wire.request().await;
                *asked.lock().unwrap() += 1;
            }
        })
        .await;
        let client = client_trusting(trusting(&root), Settings::default());
        drop(fetch(&client, secure_get(&origin, "/1")).await.unwrap());
        let result = fetch(&client, secure(&origin, method.clone(), "/2", upload)).await;
        match again {
            true => assert_eq!(result.unwrap().status, 200),
            false => assert_eq!(result.unwrap_err(), Error::Closed, "{method}"),
        }
        assert_eq!(origin.connections(), 1 + usize::from(again));
        assert_eq!(*asked.lock().unwrap(), 1);
    }
}
