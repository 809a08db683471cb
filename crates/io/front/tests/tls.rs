//! Handshakes with real TLS clients, and what of them is read without taking anything away.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use farhop_front::tls::{self, HandshakeError, Opening};
use farhop_front::{Protocol, Scheme, Settings, Target};
use rustls::{CipherSuite, ClientConfig, HandshakeKind};
use std::sync::Arc;
use std::time::Duration;
use support::{Authority, HOST, connect, distrustful, head, intercept, next, secured, tunnel};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn what_a_client_begins_with_is_still_there_to_be_passed_through() {
    let authority = Authority::new();
    let (client, tunnel) = tunnel().await;
    let config = Arc::new(authority.trusted(&["h2", "x"]));
    let origin = async {
        let Opening::Hello { sni, alpn, mut tunnel } = tls::open(tunnel, PATIENCE).await else {
            panic!("a hello")
        };
        assert_eq!(sni.as_deref(), Some(HOST));
        assert_eq!(alpn, [b"h2".to_vec(), b"x".to_vec()]);
        // The origin, which the client finds behind the tunnel.
        let (mut near, far) = tokio::io::duplex(1024);
        let (_, end) = tokio::join!(copy_bidirectional(&mut tunnel, &mut near), async {
            let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(
                rustls::crypto::ring::default_provider(),
            ))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                authority.leaf.as_ref().clone(),
            )));
            config.alpn_protocols = vec![b"x".to_vec()];
            let mut stream = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(far).await.unwrap();
            stream.write_all(b"from the origin").await.unwrap();
            stream.shutdown().await.unwrap();
            stream
        });
        drop(end);
    };
    let ((), text) = tokio::join!(origin, async {
        let mut client = connect(client, &config).await.unwrap();
        assert_eq!(client.get_ref().1.alpn_protocol(), Some(&b"x"[..]));
        let mut text = String::new();
        client.read_to_string(&mut text).await.unwrap();
        client.shutdown().await.unwrap();
        text
    });
    assert_eq!(text, "from the origin");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_tls_is_given_back_at_once_and_silence_after_the_patience_or_the_end() {
    let (mut client, tunnel) = tunnel().await;
    client.write_all(b"SSH-2.0-x\r\n").await.unwrap();
    let begun = Instant::now();
    let Opening::Other { mut tunnel } = tls::open(tunnel, PATIENCE).await else { panic!("no hello") };
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let mut read = [0; 11];
    tunnel.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"SSH-2.0-x\r\n");

    let (mut client, tunnel) = support::tunnel().await;
    client.write_all(b"\x16\x03").await.unwrap();
    let begun = Instant::now();
    let Opening::Silent { mut tunnel } = tls::open(tunnel, PATIENCE).await else { panic!("not yet a hello") };
    assert_eq!(begun.elapsed(), PATIENCE);
    client.write_all(b"\x01").await.unwrap();
    let mut read = [0; 3];
    tunnel.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"\x16\x03\x01");

    for (said, gone) in [(&b""[..], true), (b"\x16", false)] {
        let (mut client, tunnel) = support::tunnel().await;
        client.write_all(said).await.unwrap();
        drop(client);
        let begun = Instant::now();
        let opening = tls::open(tunnel, PATIENCE).await;
        assert!(
            matches!((&opening, gone), (Opening::Gone, true) | (Opening::Silent { .. }, false)),
            "{opening:?}"
        );
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_over_tls_are_absolute_and_the_client_chooses_the_protocol() {
    for (alpn, protocol) in [
        (&[][..], Protocol::Http1),
        (&["http/1.0"], Protocol::Http1),
        (&["http/1.0", "http/1.1"], Protocol::Http1),
        (&["h2", "http/1.1"], Protocol::Http2),
    ] {
        let (client, connection) = secured(alpn, Settings::default()).await;
        assert_eq!(connection.protocol(), protocol, "{alpn:?}");
        let agreed = client.get_ref().1.alpn_protocol();
        assert_eq!(agreed.is_some(), !alpn.is_empty(), "{alpn:?}");
        assert_eq!(client.get_ref().1.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
    }
    let (mut client, mut connection) = secured(&[], Settings::default()).await;
    client.write_all(b"GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n").await.unwrap();
    let exchange = next(&mut connection).await;
    let Target::Absolute { scheme, authority, path } = &exchange.head.target else { panic!("absolute") };
    assert_eq!((*scheme, authority.host(), path.as_str()), (Scheme::Https, HOST, "/x"));
    exchange.responder.respond(head(200, &[]), "secure".into()).await.unwrap();
    drop(exchange.body);
    let mut answer = Vec::new();
    while !answer.ends_with(b"secure") {
        client.read_buf(&mut answer).await.unwrap();
    }
    // Chromium and others end without saying so.
    drop(client);
    assert!(connection.next_request().await.unwrap().is_none(), "in peace");
}

#[tokio::test(start_paused = true)]
async fn a_request_for_another_host_is_misdirected() {
    let (mut client, mut connection) = secured(&[], Settings::default()).await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let (end, _) = tokio::join!(connection.next_request(), client.read_to_string(&mut answer));
    assert!(end.is_err());
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn sessions_are_resumed_in_both_versions() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let authority = Authority::new();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.root.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let config = Arc::new(config);
        let settings = Settings::default();
        let mut kinds = Vec::new();
        for _ in 0..2 {
            let (client, tunnel) = tunnel().await;
            let settings = Arc::new(settings.clone());
            let (client, connection) =
                tokio::join!(connect(client, &config), intercept(tunnel, &authority, settings));
            let (mut client, mut connection) = (client.unwrap(), connection.unwrap());
            // Tickets come with the first bytes.
            client.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
            let exchange = next(&mut connection).await;
            exchange.responder.respond(head(200, &[]), "x".into()).await.unwrap();
            drop(exchange.body);
            let mut answer = Vec::new();
            let (read, end) = tokio::join!(client.read_to_end(&mut answer), connection.next_request());
            read.unwrap();
            assert!(end.unwrap().is_none());
            kinds.push(client.get_ref().1.handshake_kind().unwrap());
        }
        assert_eq!(kinds, [HandshakeKind::Full, HandshakeKind::Resumed], "{version:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_hash_that_costs_less_is_taken_unless_the_client_has_only_the_other() {
    type Offered = fn(CipherSuite) -> bool;
    let cases: [(Offered, CipherSuite); 4] = [
        // In the order of a client that prefers SHA-384.
        (|_| true, CipherSuite::TLS13_AES_128_GCM_SHA256),
        (|suite| suite == CipherSuite::TLS13_AES_256_GCM_SHA384, CipherSuite::TLS13_AES_256_GCM_SHA384),
        (
            |suite| format!("{suite:?}").starts_with("TLS_"),
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
        (
            |suite| suite == CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ),
    ];
    let authority = Authority::new();
    for (offered, taken) in cases {
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites.retain(|suite| offered(suite.suite()));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(authority.root.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (config, settings) = (Arc::new(config), Arc::new(Settings::default()));
        let (client, tunnel) = tunnel().await;
        let (client, connection) =
            tokio::join!(connect(client, &config), intercept(tunnel, &authority, settings));
        connection.unwrap();
        let suite = client.unwrap().get_ref().1.negotiated_cipher_suite().unwrap().suite();
        assert_eq!(suite, taken);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_trust_the_certificate_says_so() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let authority = Authority::new();
        let (client, tunnel) = tunnel().await;
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let config = Arc::new(config);
        let (client, connection) =
            tokio::join!(connect(client, &config), intercept(tunnel, &authority, Arc::default()));
        assert!(client.is_err());
        assert!(matches!(connection, Err(HandshakeError::Distrusted(_))), "{connection:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_just_closes_on_the_certificate_is_told_from_one_that_closes_earlier() {
    let authority = Authority::new();
    let hello = {
        let name = HOST.try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(distrustful(&[])), name).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        hello
    };
    let (mut client, tunnel) = tunnel().await;
    let (connection, ()) = tokio::join!(intercept(tunnel, &authority, Arc::default()), async {
        client.write_all(&hello).await.unwrap();
        client.read_u8().await.unwrap();
        drop(client);
    });
    assert!(matches!(connection, Err(HandshakeError::Left(_))), "{connection:?}");

    let (mut client, tunnel) = support::tunnel().await;
    client.write_all(&hello[..20]).await.unwrap();
    drop(client);
    let connection = tls::accept(tunnel, authority.leaf.clone(), HOST, 443, Arc::default()).await;
    assert!(matches!(connection, Err(HandshakeError::Failed(_))), "{connection:?}");
}

#[tokio::test(start_paused = true)]
async fn protocols_that_are_not_http_fail_and_silent_clients_are_given_up() {
    let authority = Authority::new();
    let (client, tunnel) = tunnel().await;
    let config = Arc::new(authority.trusted(&["acme-tls/1"]));
    let (client, connection) =
        tokio::join!(connect(client, &config), intercept(tunnel, &authority, Arc::default()));
    assert!(client.is_err());
    assert!(matches!(connection, Err(HandshakeError::Failed(_))), "{connection:?}");

    let (_client, tunnel) = support::tunnel().await;
    let connection = tls::accept(tunnel, authority.leaf.clone(), HOST, 443, Arc::default()).await;
    assert!(matches!(connection, Err(HandshakeError::TimedOut)), "{connection:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_many_records_arrives_whole_and_ends_with_a_proper_close() {
    let (mut client, mut connection) = secured(&["http/1.1"], Settings::default()).await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n").await.unwrap();
    let server = tokio::spawn(async move {
        let exchange = next(&mut connection).await;
        let mut body =
            exchange.responder.start(head(200, &[("content-length", "2000000")]), "".into()).await.unwrap();
        for n in 0..20 {
            body.send(vec![n; 100_000].into()).await.unwrap();
        }
        body.finish(None).await.unwrap();
        drop(exchange.body);
        connection.next_request().await.unwrap().is_none()
    });
    let mut answer = Vec::new();
    // An end without close_notify would be an error here.
    client.read_to_end(&mut answer).await.unwrap();
    client.shutdown().await.unwrap();
    drop(client);
    assert!(server.await.unwrap());
    assert_eq!(answer.iter().filter(|&&byte| byte == 19).count(), 100_000);
}
