//! What interception learns: from clients that will not have the operator's CA, and from hosts that cannot be reached with it.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::sync::Arc;

use farhop_events::{Bypass, Event};
use farhop_htotp::frame::{Failure, Side};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use support::within::{answer, bypassed, handshake, hear, is_hello, say, tunnelled, within, world};
use support::{PATIENCE, failure, tls_client as config, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

#[tokio::test]
async fn a_client_that_distrusts_the_ca_is_let_through_from_then_on() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let client = world.connect("pinned.test:443").await;
    assert!(handshake(client, config(&world, false, &["h2"]), "pinned.test").await.is_err());
    // The remote hears of it a moment after the client has decided.
    until(&mut events, |event| matches!(event, Event::BypassLearned { .. })).await;
    let client = world.connect("pinned.test:443").await;
    let going = tokio::spawn(handshake(client, config(&world, false, &["h2"]), "pinned.test"));
    let (host, first) = tunnelled(&world).await;
    assert!(host == "pinned.test" && is_hello(&first));
    going.abort();
    // Who trusts it is not concerned elsewhere.
    // Kept until it is asked: one that leaves wants no answer.
    let mut client = within(&world).await;
    say(&mut client, "/", "").await;
    world.asked().await;
    assert_eq!(world.bus.counters().intercepted(), 1);
}

/// Knows its host by something else than who vouches for it, and refuses in these words.
#[derive(Debug)]
struct Pinned(rustls::Error);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Err(self.0.clone())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(self.0.clone())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(self.0.clone())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

#[tokio::test]
async fn an_app_that_refuses_in_other_words_is_let_through_at_once_or_when_it_is_its_way() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    let denied: rustls::Error = CertificateError::ApplicationVerificationFailure.into();
    // It is said as access_denied, and as internal_error.
    let words = [(denied, "denied.test", 1), (rustls::Error::General("no".into()), "broken.test", 3)];
    for (word, host, times) in words {
        let mut config = Arc::unwrap_or_clone(config(&world, true, &["h2"]));
        config.dangerous().set_certificate_verifier(Arc::new(Pinned(word)));
        let config = Arc::new(config);
        for _ in 0..times {
            let client = world.connect(&format!("{host}:443")).await;
            assert!(handshake(client, config.clone(), host).await.is_err());
        }
        until(&mut events, |event| matches!(event, Event::BypassLearned { host: of, .. } if of == host))
            .await;
        let client = world.connect(&format!("{host}:443")).await;
        let going = tokio::spawn(handshake(client, config, host));
        assert_eq!(tunnelled(&world).await.0, host);
        going.abort();
    }
}

#[tokio::test]
async fn a_client_that_leaves_after_each_handshake_is_let_through_and_one_that_asks_is_not() {
    let world = world().await;
    let mut events = world.bus.subscribe();
    for _ in 0..3 {
        // An app that compares the certificate when the handshake is over, and closes.
        let client = world.connect("pinned.test:443").await;
        drop(handshake(client, config(&world, true, &["h2"]), "pinned.test").await.unwrap());
        // A browser that opens two connections and needs but one.
        let mut asking = within(&world).await;
        let client = world.connect("site.test:443").await;
        drop(handshake(client, config(&world, true, &["http/1.1"]), "site.test").await.unwrap());
        say(&mut asking, "/", "").await;
        world.asked().await;
    }
    until(&mut events, |event| matches!(event, Event::BypassLearned { .. })).await;
    let client = world.connect("pinned.test:443").await;
    let going = tokio::spawn(handshake(client, config(&world, true, &["h2"]), "pinned.test"));
    let (host, first) = tunnelled(&world).await;
    assert!(host == "pinned.test" && is_hello(&first));
    going.abort();
    say(&mut within(&world).await, "/", "").await;
    assert_eq!(world.bus.counters().bypasses_learned(), 1, "not of the browser");
}

#[tokio::test]
async fn a_host_that_wants_a_client_certificate_is_said_so_once_and_let_through_from_then_on() {
    let world = world().await;
    let mut client = within(&world).await;
    say(&mut client, "/", "").await;
    let wanted = Failure {
        side: Side::Origin,
        status: 502,
        token: "client_certificate_wanted".into(),
        detail: "site.test wants to see a certificate of yours".into(),
    };
    world.asked().await.sender.fail(wanted);
    let got = hear(&mut client, "</p>\n").await;
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains("reload the page"), "{got}");
    assert!(got.to_lowercase().contains("connection: close"), "{got}");
    assert!(!got.contains(RELOAD), "what is no page of its own cannot load itself: {got}");
    assert_eq!(timeout(PATIENCE, client.read(&mut [0])).await.unwrap().unwrap_or(0), 0);
    let client = world.connect("site.test:443").await;
    let going = tokio::spawn(handshake(client, config(&world, true, &["h2"]), "site.test"));
    assert!(is_hello(&tunnelled(&world).await.1));
    assert_eq!(bypassed(&world, Bypass::Learned), 1);
    going.abort();
}

/// What has a browser load a page once more.
const RELOAD: &str = "<meta http-equiv=refresh content=0>";

#[tokio::test]
async fn a_page_that_comes_through_the_second_time_loads_itself_and_a_form_is_not_sent_again() {
    let world = world().await;
    // Both stand before anything is learned.
    let clients = [within(&world).await, within(&world).await];
    for (mut client, method) in clients.into_iter().zip(["POST", "GET"]) {
        let request = format!("{method} / HTTP/1.1\r\nhost: site.test\r\nsec-fetch-dest: document\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        world.asked().await.sender.fail(Failure { token: "not_http".into(), ..failure() });
        let got = hear(&mut client, "</p>\n").await;
        assert_eq!(got.contains(RELOAD), method == "GET", "{got}");
    }
}

#[tokio::test]
async fn over_http2_whoever_can_get_through_by_itself_is_sent_round_before_anything_is_answered() {
    let world = world().await;
    let connected = world.connect("site.test:443").await;
    let client = handshake(connected, config(&world, true, &["h2"]), "site.test").await.unwrap();
    let (mut client, driver) = h2::client::handshake(client).await.unwrap();
    let driver = tokio::spawn(driver);
    let mut ask = |method: &str, browsers: bool| {
        let mut request = http::Request::builder().method(method).uri("https://site.test/").body(()).unwrap();
        if browsers {
            request.headers_mut().insert("sec-fetch-mode", "no-cors".parse().unwrap());
        }
        client.send_request(request, true).unwrap().0
    };
    let (sent, changes, reads) = (ask("POST", true), ask("PUT", true), ask("GET", true));
    let of_a_tool = ask("DELETE", false);
    let mut failing = Vec::new();
    // An origin asks for a certificate before it has looked at the request; of what it says in other words the request may be the cause.
    // Not every tool asks again.
    // In whatever order they have come over.
    for _ in 0..4 {
        let asked = world.asked().await;
        let token = match asked.head.method.as_str() {
            "POST" | "DELETE" => "client_certificate_wanted",
            _ => "not_http",
        };
        failing.push((asked, token));
    }
    for (asked, token) in failing {
        asked.sender.fail(Failure { token: token.into(), ..failure() });
    }
    for refused in [sent, reads] {
        let error = timeout(PATIENCE, refused).await.unwrap().unwrap_err();
        assert_eq!(error.reason(), Some(h2::Reason::REFUSED_STREAM));
    }
    for answered in [changes, of_a_tool] {
        assert_eq!(timeout(PATIENCE, answered).await.unwrap().unwrap().status(), 502);
    }
    timeout(PATIENCE, driver).await.expect("the connection ends").unwrap().unwrap();
}

#[tokio::test]
async fn what_is_learned_ends_the_connections_that_stand_after_their_next_answer() {
    let world = world().await;
    let (mut failing, mut standing) = (within(&world).await, within(&world).await);
    say(&mut standing, "/before", "").await;
    answer(world.asked().await, "as ever").await;
    assert!(!hear(&mut standing, "as ever").await.to_lowercase().contains("connection: close"));
    say(&mut failing, "/", "").await;
    world.asked().await.sender.fail(Failure { token: "not_http".into(), ..failure() });
    hear(&mut failing, "reload the page").await;
    say(&mut standing, "/after", "").await;
    answer(world.asked().await, "as ever").await;
    assert!(hear(&mut standing, "as ever").await.to_lowercase().contains("connection: close"));
}

#[tokio::test]
async fn other_failures_are_told_and_teach_nothing() {
    let world = world().await;
    let mut client = within(&world).await;
    // However often an outage is met within a minute.
    for token in [
        "tls_certificate_error",
        "http_protocol_error",
        "connection_refused",
        "tls_cut_off",
        "tls_cut_off",
        "tls_cut_off",
    ] {
        say(&mut client, "/", "").await;
        world.asked().await.sender.fail(Failure { token: token.into(), ..failure() });
        let got = hear(&mut client, "</p>\n").await;
        assert!(got.starts_with("HTTP/1.1 502 ") && !got.contains("reload"), "{got}");
        let told = if token == "tls_cut_off" { "tls_protocol_error" } else { token };
        assert!(got.contains(&format!("error={told}")), "{got}");
        let leads_on = matches!(token, "tls_certificate_error" | "http_protocol_error");
        assert_eq!(got.contains("http://farhop.internal/"), leads_on, "{got}");
    }
    assert_eq!(world.bus.counters().bypasses_learned(), 0);
}
