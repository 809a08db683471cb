//! Cases through a whole proxy that looks into TLS: HTTP/1.1 or HTTP/2 on the client's side, HTTP/1.1 to an origin whose
//! certificate the proxy verifies.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::h2::{self, Log, told};
use super::strict::{self, Kind, Message};
use super::{Verdict, within};

/// An origin over TLS and HTTP/1.1 that answers each request with what it is. It ends when it is dropped.
#[derive(Debug)]
pub struct SecureOrigin {
    address: SocketAddr,
    root: String,
    log: Arc<Mutex<Log>>,
    task: AbortHandle,
}

impl Drop for SecureOrigin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SecureOrigin {
    /// Starts it on a port of 127.0.0.1, with a CA of its own.
    ///
    /// # Panics
    /// No socket or no certificate is to be had.
    pub async fn start() -> SecureOrigin {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (config, root) = identity();
        let log = Arc::new(Mutex::new(Log::default()));
        let task = tokio::spawn(accept(listener, TlsAcceptor::from(config), log.clone())).abort_handle();
        SecureOrigin { address, root, log, task }
    }

    /// The certificate of its CA, PEM: the proxy has to trust it.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Plays every case of what comes inside TLS whose group and name contain `only` through `proxy`, which looks into it
    /// with the CA whose certificate is `authority` (PEM), serves clients from 127/8 and fetches from 127/8.
    ///
    /// # Panics
    /// The proxy cannot be reached, or does not look into the connection.
    pub async fn run(&self, proxy: SocketAddr, authority: &str, only: &str) -> Vec<Verdict> {
        let name = self.address.to_string();
        let serial = client(authority, b"http/1.1");
        let streams = client(authority, b"h2");
        let mut verdicts = within::run(async || self.open(proxy, &serial).await, &name, only).await;
        verdicts.extend(h2::run(async || self.open(proxy, &streams).await, &name, only).await);
        verdicts
    }

    /// A connection through the proxy, and what comes of it.
    async fn open(&self, proxy: SocketAddr, client: &Arc<ClientConfig>) -> (TlsStream<TcpStream>, Log) {
        let log = Log::default();
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log.clone();
        let stream = TcpStream::connect(proxy).await.expect("the proxy accepts");
        let stream = tunnel(stream, self.address).await;
        let connecting = TlsConnector::from(client.clone()).connect(self.address.ip().into(), stream);
        let stream = connecting.await.expect("the proxy's certificate is good");
        let spoken = stream.get_ref().1.alpn_protocol();
        assert_eq!(spoken, client.alpn_protocols.first().map(Vec::as_slice), "the proxy speaks it, too");
        (stream, log)
    }
}

/// A CA of this run, and the settings of a server that it vouches for.
pub(crate) fn identity() -> (Arc<ServerConfig>, String) {
    identity_of(vec!["127.0.0.1".to_owned()])
}

/// The same for a server of these addresses.
pub(crate) fn identity_of(addresses: Vec<String>) -> (Arc<ServerConfig>, String) {
    const MADE: &str = "this machine has randomness";
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect(MADE)).expect(MADE);
    let mut params = CertificateParams::new(addresses).expect("an address is a name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().expect(MADE);
    let leaf = params.signed_by(&key, &issuer).expect(MADE);
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("the key is the certificate's");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    (Arc::new(config), issuer.pem())
}

/// A client that trusts one CA and speaks `protocol`.
pub(crate) fn client(authority: &str, protocol: &[u8]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).expect("it is a certificate");
    roots.add(certificate).expect("it is that of a CA");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    Arc::new(config)
}

/// Asks the proxy for a connection to the origin.
pub(crate) async fn tunnel(mut stream: TcpStream, origin: SocketAddr) -> TcpStream {
    let ask = format!("CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.expect("the proxy listens");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("the proxy answers"));
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
    stream
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, log: Arc<Mutex<Log>>) {
    // Dropped with this task, which ends every connection.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, acceptor.clone(), log.clone()));
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, log: Arc<Mutex<Log>>) {
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let note = |line: String| {
        let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    };
    let (mut got, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    loop {
        match strict::read(&got, Kind::Request) {
            Ok(Some(request)) => {
                got.drain(..request.length);
                let [method, target, _] = &request.start;
                note(format!("{method} {target}"));
                // Who has gone wants no answer.
                let _ = stream.write_all(&answer(&request)).await;
                let _ = stream.flush().await;
            }
            Ok(None) => match stream.read(&mut buffer).await {
                Ok(count @ 1..) => got.extend_from_slice(&buffer[..count]),
                _ => return,
            },
            Err(why) => return note(format!("a request with no reading: {why}")),
        }
    }
}

fn answer(request: &Message) -> Vec<u8> {
    let [method, target, _] = &request.start;
    let bytes = |value: &str| value.chars().map(|c| c as u8).collect::<Vec<u8>>();
    let fields: Vec<_> = request.fields.iter().map(|(name, value)| (name.as_str(), bytes(value))).collect();
    let fields = fields.iter().map(|(name, value)| (*name, value.as_slice()));
    let body = told(method, target, fields, &request.body);
    let head =
        format!("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n", body.len());
    let body = if method == "HEAD" { Vec::new() } else { body };
    [head.into_bytes(), body].concat()
}
