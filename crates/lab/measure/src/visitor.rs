//! A client at the user's end of the link that speaks TLS itself: directly to an origin, or through the proxy. For what no
//! browser tells, such as when a single frame arrived.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) use farhop_lab_transport::{PATIENCE, first_line, head};

/// One way to the origins, and whom to believe on it.
pub(crate) struct Visitor {
    proxy: Option<SocketAddr>,
    /// Where every host is, for who goes directly.
    origin: SocketAddr,
    /// What the proxy wants to be told of who asks: `Basic …`.
    credentials: Option<String>,
    roots: Arc<RootCertStore>,
}

impl Visitor {
    /// Straight to `origin`, whose CA is in `authority` (PEM).
    pub(crate) fn direct(origin: SocketAddr, authority: &Path) -> io::Result<Visitor> {
        Ok(Visitor { proxy: None, origin, credentials: None, roots: roots(authority)? })
    }

    /// Through `proxy`, believing the CA in `authority` (PEM): the proxy's own where it intercepts.
    pub(crate) fn through(proxy: SocketAddr, authority: &Path) -> io::Result<Visitor> {
        Ok(Visitor { proxy: Some(proxy), origin: proxy, credentials: None, roots: roots(authority)? })
    }

    /// The same for a proxy that wants to know who asks (RFC 7617).
    pub(crate) fn with_credentials(self, credentials: String) -> Visitor {
        Visitor { credentials: Some(credentials), ..self }
    }

    /// A connection to `host`, port 443, as far as TCP and the proxy make one.
    ///
    /// # Errors
    /// Nobody is there, or the proxy says no.
    pub(crate) async fn connect(&self, host: &str) -> io::Result<TcpStream> {
        self.tunnel(&format!("{host}:443")).await
    }

    /// The same to any `host:port`.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub(crate) async fn tunnel(&self, target: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.proxy.unwrap_or(self.origin)).await?;
        stream.set_nodelay(true)?;
        if self.proxy.is_some() {
            let who = self.credentials.as_ref().map(|it| format!("Proxy-Authorization: {it}\r\n"));
            let who = who.unwrap_or_default();
            let ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{who}\r\n");
            stream.write_all(ask.as_bytes()).await?;
            let head = head(&mut stream).await?;
            if !head.starts_with("HTTP/1.1 200") {
                return Err(io::Error::other(format!("CONNECT is answered '{}'", first_line(&head))));
            }
        }
        Ok(stream)
    }

    /// A TLS connection to `host`, its certificate verified; `alpn` in the order of preference.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or the handshake fails.
    pub(crate) async fn secure(&self, host: &str, alpn: &[&str]) -> io::Result<TlsStream<TcpStream>> {
        let stream = self.connect(host).await?;
        self.handshake(stream, host, alpn).await
    }

    /// The handshake alone, on a connection that is there.
    ///
    /// # Errors
    /// It fails.
    pub(crate) async fn handshake(
        &self,
        stream: TcpStream,
        host: &str,
        alpn: &[&str],
    ) -> io::Result<TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = versions
            .map_err(io::Error::other)?
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        // Each connection is the first: nothing is taken over from an earlier one.
        config.resumption = rustls::client::Resumption::disabled();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// GET over HTTP/1.1 on a connection of its own: the head, and the body as far as it came before the connection ended.
    ///
    /// # Errors
    /// No connection, or no head.
    pub(crate) async fn get(&self, host: &str, path: &str) -> io::Result<(String, Vec<u8>)> {
        let mut stream = self.secure(host, &["http/1.1"]).await?;
        let ask = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(ask.as_bytes()).await?;
        let head = head(&mut stream).await?;
        let mut body = Vec::new();
        // A connection that is cut is one way of ending.
        let _ = stream.read_to_end(&mut body).await;
        Ok((head, body))
    }
}

fn roots(authority: &Path) -> io::Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).map_err(io::Error::other)? {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    Ok(Arc::new(roots))
}

/// Runs `work` to its end on this thread, which has to be where its sockets shall live.
///
/// # Errors
/// It takes longer than it may, or fails.
pub(crate) fn on_this_thread<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let patient = async { tokio::time::timeout(PATIENCE, work).await };
    runtime.block_on(patient).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
