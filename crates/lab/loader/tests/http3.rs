//! The loader over HTTP/3, against a server of this test on the loopback.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use farhop_loader::{
    Binding, Connect, Connecting, Handshake, Kind, Loader, Names, Object, PageGraph, Protocol, Settings,
    SocketOptions, TcpConnector,
};
use http::Response;
use quinn::crypto::rustls::QuicServerConfig;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::sync::Barrier;

/// What the server has at a path: as many bytes as its number says, all of the last digit.
fn file(path: &str) -> Bytes {
    let number: usize = path.trim_start_matches('/').parse().unwrap_or(0);
    Bytes::from(vec![b'0' + (number % 10) as u8; number])
}

/// The loader's limit of streams.
const STREAMS: usize = 3;

/// Requests that were under way at the same time, at most.
struct Seen {
    now: AtomicUsize,
    most: AtomicUsize,
    /// Images are answered once so many are asked for.
    together: Barrier,
}

async fn serve(endpoint: quinn::Endpoint, seen: Arc<Seen>) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else { continue };
        let seen = seen.clone();
        tokio::spawn(async move {
            let made = h3::server::builder().build(h3_quinn::Connection::new(connection)).await;
            let mut connection: h3::server::Connection<_, Bytes> = made.unwrap();
            while let Ok(Some(resolver)) = connection.accept().await {
                let seen = seen.clone();
                tokio::spawn(async move {
                    let (request, mut stream) = resolver.resolve_request().await.unwrap();
                    let now = seen.now.fetch_add(1, Ordering::Relaxed) + 1;
                    seen.most.fetch_max(now, Ordering::Relaxed);
                    let mut uploaded = 0;
                    while let Some(piece) = stream.recv_data().await.unwrap() {
                        uploaded += piece.remaining();
                    }
                    let body = if request.method() == http::Method::POST {
                        Bytes::from(format!("{{\"bytes\":{uploaded},\"sha256\":\"unknown\"}}"))
                    } else {
                        let body = file(request.uri().path());
                        if body.len() > 40_000 {
                            seen.together.wait().await;
                        }
                        body
                    };
                    stream.send_response(Response::new(())).await.unwrap();
                    stream.send_data(body).await.unwrap();
                    seen.now.fetch_sub(1, Ordering::Relaxed);
                    stream.finish().await.unwrap();
                });
            }
        });
    }
}

/// Goes to the port that was free.
struct ToPort(TcpConnector, u16);

impl Connect for ToPort {
    fn connect(&self, host: &str, _port: u16, options: SocketOptions) -> Connecting {
        self.0.connect(host, self.1, options)
    }

    fn datagrams(&self, host: &str, _port: u16) -> Binding {
        self.0.datagrams(host, self.1)
    }
}

fn server() -> (quinn::Endpoint, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
    let endpoint = quinn::Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    (endpoint, certificate)
}

fn url(path: &str) -> url::Url {
    format!("https://a.test{path}").parse().unwrap()
}

#[tokio::test]
async fn a_page_comes_over_one_connection_within_the_limit_of_streams() {
    let (endpoint, certificate) = server();
    let port = endpoint.local_addr().unwrap().port();
    let (now, most) = Default::default();
    let seen = Arc::new(Seen { now, most, together: Barrier::new(STREAMS) });
    tokio::spawn(serve(endpoint, seen.clone()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let known = HashMap::from([("a.test".to_owned(), IpAddr::V4(Ipv4Addr::LOCALHOST))]);
    let connector = Arc::new(ToPort(TcpConnector::new(Names::known(known)), port));
    let loader = Loader::new(connector, roots).unwrap();
    let object = |path: &str, kind| Object::new(url(path), kind, &file(path));
    let images = (0..12).map(|number| object(&format!("/{}", 40_001 + number), Kind::Image)).collect();
    let graph = Arc::new(PageGraph::flat(object("/3000", Kind::Document), images));
    let settings = Settings {
        protocol: Protocol::Http3,
        handshake: Handshake::Full,
        streams: STREAMS,
        patience: Duration::from_secs(30),
        ..Settings::default()
    };
    let loaded = loader.load(&graph, &settings).await;
    assert_eq!(loaded.faults(), [""; 0]);
    assert_eq!((loaded.connections.len(), loaded.connections[0].objects), (1, 13));
    assert!(loaded.connections[0].received > 12 * 40_000, "{:?}", loaded.connections[0]);
    assert_eq!(seen.most.load(Ordering::Relaxed), STREAMS);
    // What the server says of an upload is judged, whatever its status.
    let upload = Arc::new(PageGraph { objects: vec![Object::upload(url("/up"), 100_000)] });
    let faults = loader.load(&upload, &settings).await.faults();
    assert!(
        faults[0].contains("other bytes arrived") && faults[0].contains("\"bytes\":100000"),
        "{faults:?}"
    );
}

#[tokio::test]
async fn without_tls_or_through_a_proxy_there_is_no_http3() {
    let loader = Loader::new(Arc::new(TcpConnector::new(Names::default())), RootCertStore::empty()).unwrap();
    let graph = |url: &str| {
        Arc::new(PageGraph { objects: vec![Object::new(url.parse().unwrap(), Kind::Document, b"")] })
    };
    let settings = Settings { protocol: Protocol::Http3, handshake: Handshake::Full, ..Settings::default() };
    let faults = loader.load(&graph("http://a.test/"), &settings).await.faults();
    assert!(faults[0].contains("HTTP/3 is https"), "{faults:?}");
    let proxied = Settings { proxy: Some(("b.test".into(), 3128)), ..settings };
    let faults = loader.load(&graph("https://a.test/"), &proxied).await.faults();
    assert!(faults[0].contains("goes through no proxy"), "{faults:?}");
}
