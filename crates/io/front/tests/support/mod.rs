//! What the tests of TLS and HTTP/2 share: an authority, a client inside a CONNECT, and both ends of a handshake.

#![allow(dead_code, clippy::unwrap_used)] // each test takes what it needs; helpers of tests fail by panicking

use farhop_front::tls::{self, HandshakeError, Opening};
use farhop_front::{Connection, Exchange, Head, Settings, Tunnel};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const HOST: &str = "a.example";

/// An authority and one leaf of it.
pub(crate) struct Authority {
    pub(crate) root: CertificateDer<'static>,
    pub(crate) pem: String,
    pub(crate) leaf: Arc<CertifiedKey>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let leaf_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, HOST);
        let leaf = params.signed_by(&leaf_key, &issuer).unwrap();
        let der = PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into();
        let signer = ring::sign::any_ecdsa_type(&der).unwrap();
        let (pem, root) = (root.pem(), root.der().clone());
        Authority { root, pem, leaf: Arc::new(CertifiedKey::new(vec![leaf.der().clone()], signer)) }
    }

    /// A client that trusts this authority and offers `alpn`.
    pub(crate) fn trusted(&self, alpn: &[&str]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        client(roots, alpn)
    }
}

/// A client that trusts no one.
pub(crate) fn distrustful(alpn: &[&str]) -> ClientConfig {
    client(RootCertStore::empty(), alpn)
}

fn client(roots: RootCertStore, alpn: &[&str]) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// The client's side of an open CONNECT, and ours.
pub(crate) async fn tunnel() -> (DuplexStream, Tunnel) {
    let (mut client, far) = duplex(256 * 1024);
    let mut connection = Connection::new(far, Arc::new(Settings::default()));
    client.write_all(b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n").await.unwrap();
    let exchange = connection.next_request().await.unwrap().unwrap();
    let tunnel = exchange.responder.tunnel(head(200, &[])).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(client.read_u8().await.unwrap());
    }
    (client, tunnel)
}

pub(crate) async fn connect(
    stream: DuplexStream,
    config: &Arc<ClientConfig>,
) -> io::Result<TlsStream<DuplexStream>> {
    let name = ServerName::try_from(HOST).unwrap();
    TlsConnector::from(config.clone()).connect(name, stream).await
}

/// Ours of a handshake, as the remote goes about it.
pub(crate) async fn intercept(
    tunnel: Tunnel,
    authority: &Authority,
    settings: Arc<Settings>,
) -> Result<Connection, HandshakeError> {
    let Opening::Hello { tunnel, .. } = tls::open(tunnel, Duration::from_secs(1)).await else {
        panic!("the client begins with a hello")
    };
    tls::accept(tunnel, authority.leaf.clone(), HOST, 443, settings).await
}

/// Both ends of a finished handshake with a client that trusts and offers `alpn`.
pub(crate) async fn secured(alpn: &[&str], settings: Settings) -> (TlsStream<DuplexStream>, Connection) {
    let authority = &Authority::new();
    let (client, tunnel) = tunnel().await;
    let config = Arc::new(authority.trusted(alpn));
    let (client, connection) =
        tokio::join!(connect(client, &config), intercept(tunnel, authority, Arc::new(settings)));
    (client.unwrap(), connection.unwrap())
}

pub(crate) fn head(status: u16, fields: &[(&'static str, &'static str)]) -> Head {
    let fields: HeaderMap = fields
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_static(value)))
        .collect();
    Head { status: StatusCode::from_u16(status).unwrap(), fields }
}

pub(crate) async fn next(connection: &mut Connection) -> Exchange {
    connection.next_request().await.unwrap().expect("a request")
}
