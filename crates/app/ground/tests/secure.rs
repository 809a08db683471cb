//! HTTPS through ground: pages are read and promised as over plain HTTP, by the rules that browsers keep between the two,
//! and nothing is said to an origin that cannot prove who it is.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::RequestHead;
use farhop_transport::hop::{Arrival, Incoming, Receiver};
use http::{HeaderValue, Method};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use support::{Origin, Pair, Peer, Reply, navigate, request};
use tempfile::NamedTempFile;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

const PATIENCE: Duration = Duration::from_secs(20);

/// TLS in front of an origin, with a CA of its own.
struct Secured {
    port: u16,
    root: NamedTempFile,
}

impl Secured {
    /// Proves to be `name`.
    async fn before(origin: &Origin, name: &str) -> Secured {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let config = builder.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
        let (acceptor, to) = (TlsAcceptor::from(Arc::new(config)), origin.addr);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(mut near) = acceptor.accept(stream).await {
                        let mut far = TcpStream::connect(to).await.unwrap();
                        // Either side may leave when it likes.
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        let mut root = NamedTempFile::new().unwrap();
        root.write_all(issuer.pem().as_bytes()).unwrap();
        Secured { port, root }
    }

    /// A ground that trusts it.
    async fn pair(&self) -> Pair {
        Pair::new(&[&format!("origin.roots=[\"{}\"]", self.root.path().display())]).await
    }

    /// The same request over TLS.
    fn ask(&self, head: RequestHead) -> RequestHead {
        RequestHead { scheme: "https".into(), authority: format!("localhost:{}", self.port), ..head }
    }
}

async fn next(receiver: &mut Receiver) -> Arrival {
    timeout(PATIENCE, receiver.next()).await.expect("something arrives")
}

/// The request that a promise answers.
fn promised<'a>(reply: &'a Reply, path: &str) -> &'a RequestHead {
    let found = reply.promises.iter().find(|(_, head, _)| head.path == path);
    &found.unwrap_or_else(|| panic!("{:?}", reply.promised_paths())).1
}

#[tokio::test]
async fn a_page_brings_what_it_needs_over_tls_and_nothing_that_is_insecure() {
    const PAGE: &str = "<!doctype html><link rel=stylesheet href=/a.css><script src=http://plain.test/x.js></script>\
                        <img src=http://192.0.2.1/y.png><img src=/c.png>";
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/" => peer.answer("content-type: text/html", PAGE).await,
            path => {
                let body = path.repeat(20);
                peer.answer("content-type: text/css", body).await;
            }
        }
        Some(peer)
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    let page = secured.ask(navigate(&origin, "/"));
    let reply = pair.get(&page).await;
    assert!(reply.whole && reply.body == PAGE.as_bytes(), "{reply:?}");
    assert_eq!(reply.promised_paths(), ["/a.css", "/c.png", "/favicon.ico"], "mixed content is blocked");
    for (_, head, _) in &reply.promises {
        assert_eq!((head.scheme.as_str(), &head.authority), ("https", &page.authority));
        assert_eq!(head.fields["referer"], page.url());
        assert_eq!(head.fields["cookie"], "session=1");
    }
    let mut pushes = 0;
    while pushes < 3 {
        let incoming = timeout(PATIENCE, pair.hop.accept()).await.expect("each promise is kept").unwrap();
        if let Incoming::Push { mut receiver, .. } = incoming {
            assert!(Reply::take(&mut receiver).await.whole);
            pushes += 1;
        }
    }
}

/// What was set with `Secure` goes with what the next page needs.
#[tokio::test]
async fn secure_cookies_go_with_what_secure_pages_need() {
    let origin = Origin::start(|mut peer: Peer| async move {
        match peer.path() {
            "/login" => peer.answer("set-cookie: id=7; Secure; Path=/|content-type: text/plain", "in").await,
            "/" => {
                let page = "<!doctype html><link rel=stylesheet href=/a.css>";
                peer.answer("content-type: text/html", page).await;
            }
            _ => peer.answer("content-type: text/css", "a{}").await,
        }
        Some(peer)
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    assert!(pair.get(&secured.ask(navigate(&origin, "/login"))).await.whole);
    let mut page = navigate(&origin, "/");
    page.fields.insert("cookie", HeaderValue::from_static("session=1; id=7"));
    let reply = pair.get(&secured.ask(page)).await;
    let style = promised(&reply, "/a.css");
    assert_eq!(style.fields["cookie"], "session=1; id=7");
}

#[tokio::test]
async fn nothing_is_said_to_an_origin_that_is_someone_else() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.answer("", "secret").await;
        None
    })
    .await;
    let secured = Secured::before(&origin, "elsewhere.test").await;
    let reply = secured.pair().await.get(&secured.ask(navigate(&origin, "/"))).await;
    let failure = reply.failure();
    assert_eq!((failure.status, failure.token.as_str()), (502, "tls_certificate_error"));
    assert!(failure.detail.contains("elsewhere.test"), "{}", failure.detail);
    assert!(reply.body.is_empty() && origin.requests().is_empty());
}

#[tokio::test]
async fn a_websocket_over_tls_carries_words_both_ways() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.say(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
        )
        .await;
        loop {
            let word = peer.read().await;
            if word.is_empty() {
                return None;
            }
            peer.say(word).await;
        }
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    let fields = [("upgrade", "websocket"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")];
    let (mut sender, mut receiver) =
        pair.ask(&secured.ask(request(Method::GET, origin.addr, "/socket", &fields)), None);
    let Arrival::Answered { head, .. } = next(&mut receiver).await else { panic!("no answer") };
    assert_eq!(head.status, 101);
    for word in 0..20u8 {
        let word = Bytes::from(vec![word; 4]);
        sender.write(word.clone()).await.unwrap();
        assert_eq!(next(&mut receiver).await, Arrival::Body(word));
    }
    sender.finish(None);
    assert_eq!(next(&mut receiver).await, Arrival::Ended);
}

/// The handshake is done when the request comes: it goes out on the connection that was prepared.
#[tokio::test]
async fn a_prepared_connection_serves_the_first_request() {
    let origin = Origin::start(|mut peer: Peer| async move {
        peer.answer("", "ok").await;
        Some(peer)
    })
    .await;
    let secured = Secured::before(&origin, "localhost").await;
    let pair = secured.pair().await;
    pair.hop.prepare(7, "https", "localhost", secured.port);
    assert_eq!(pair.get(&secured.ask(navigate(&origin, "/"))).await.body, b"ok");
    assert_eq!(pair.get(&secured.ask(navigate(&origin, "/"))).await.body, b"ok");
    assert_eq!(origin.requests().len(), 2);
}
