//! A network in virtual time: what is written arrives half a round trip later, a connection stands after one.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use farhop_loader::server::{Content, serve_plain, serve_tls};
use farhop_loader::{BoxStream, Connect, Connecting, Kind, Object, PageGraph, SocketOptions};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::Instant;

pub(crate) const RTT: Duration = Duration::from_millis(600);

/// Every host is the same server.
pub(crate) struct Net {
    pub(crate) content: Arc<Content>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) multiplexed: bool,
    pub(crate) made: AtomicUsize,
    pub(crate) asked: Mutex<Vec<String>>,
    /// How long a connection takes to stand, in round trips.
    pub(crate) trips: u32,
    /// How long a packet occupies the link to the client; none where it has no limit.
    pub(crate) pace: Option<Duration>,
    /// After so many bytes towards the client the first connection is cut; none where it never is.
    pub(crate) breaks: Option<usize>,
    /// Whether a client that wants Fast Open has been given a cookie for it.
    pub(crate) has_cookie: AtomicBool,
}

/// Bytes that cross the link to the client at a time, where it has a pace.
const PACKET: usize = 1_200;

impl Net {
    pub(crate) fn new(content: Content) -> Net {
        Net {
            content: Arc::new(content),
            tls: None,
            multiplexed: false,
            made: AtomicUsize::new(0),
            asked: Mutex::default(),
            trips: 1,
            pace: None,
            breaks: None,
            has_cookie: AtomicBool::new(false),
        }
    }
}

impl Connect for Net {
    fn connect(&self, host: &str, port: u16, options: SocketOptions) -> Connecting {
        let is_first = self.made.fetch_add(1, Ordering::Relaxed) == 0;
        let most = self.breaks.filter(|_| is_first).unwrap_or(usize::MAX);
        self.asked.lock().unwrap().push(format!("{host}:{port}"));
        let (content, tls, multiplexed) = (self.content.clone(), self.tls.clone(), self.multiplexed);
        let is_proxy = host == "proxy.test";
        // RFC 7413 §3: the first connection asks for the cookie, those after it say their first bytes with the SYN.
        let is_open = options.fast_open && self.has_cookie.swap(true, Ordering::Relaxed);
        let (standing, pace) = (if is_open { Duration::ZERO } else { RTT * self.trips }, self.pace);
        Box::pin(async move {
            tokio::time::sleep(standing).await;
            let (near, mut far) = delayed(pace, most);
            tokio::spawn(async move {
                match tls {
                    Some(tls) => {
                        if is_proxy {
                            tunnel(&mut far).await?;
                        }
                        serve_tls(far, content, tls).await
                    }
                    None => serve_plain(far, content, multiplexed).await,
                }
            });
            Ok(Box::new(near) as BoxStream)
        })
    }
}

/// Reads a CONNECT and takes it.
async fn tunnel(stream: &mut DuplexStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    assert!(head.starts_with(b"CONNECT a.test:443 HTTP/1.1\r\n"));
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await
}

/// Both ends of a connection.
fn delayed(pace: Option<Duration>, most: usize) -> (DuplexStream, DuplexStream) {
    let (near, near_inside) = tokio::io::duplex(1 << 22);
    // A link with a pace has its server write no faster than a socket's buffer allows.
    let (far, far_inside) = tokio::io::duplex(if pace.is_some() { 16 << 10 } else { 1 << 22 });
    let (near_read, near_write) = tokio::io::split(near_inside);
    let (far_read, far_write) = tokio::io::split(far_inside);
    carry(near_read, far_write, None, usize::MAX);
    carry(far_read, near_write, pace, most);
    (near, far)
}

/// Carries what is written at one end to the other, `most` bytes of it.
fn carry(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
    pace: Option<Duration>,
    most: usize,
) {
    let (send, mut arriving) = tokio::sync::mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        let mut piece = vec![0; if pace.is_some() { PACKET } else { 64 << 10 }];
        let mut left = most;
        while let Ok(count @ 1..) = from.read(&mut piece).await {
            let Some(still) = left.checked_sub(count) else { break };
            left = still;
            tokio::time::sleep(pace.unwrap_or_default()).await;
            if send.send((Instant::now() + RTT / 2, piece[..count].to_vec())).is_err() {
                return;
            }
        }
        let _ = send.send((Instant::now() + RTT / 2, Vec::new()));
    });
    tokio::spawn(async move {
        while let Some((due, piece)) = arriving.recv().await {
            tokio::time::sleep_until(due).await;
            if piece.is_empty() {
                let _ = to.shutdown().await;
            } else if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    });
}

/// A document and so many images of `size` bytes, on one origin, and what serves them.
pub(crate) fn page(scheme: &str, images: usize, size: usize) -> (PageGraph, Content) {
    let url = |path: &str| format!("{scheme}://a.test{path}").parse().unwrap();
    let mut content = Content::default();
    let mut put = |path: &str, bytes: Vec<u8>, media| {
        content.files.insert(path.to_owned(), (Bytes::from(bytes), media));
    };
    put("/", b"<p>document".to_vec(), "text/html");
    let mut objects = Vec::new();
    for number in 0..images {
        let (path, bytes) = (format!("/{number}.dat"), vec![number as u8; size]);
        objects.push(Object::new(url(&path), Kind::Image, &bytes));
        put(&path, bytes, "image/x-test");
    }
    (PageGraph::flat(Object::new(url("/"), Kind::Document, b"<p>document"), objects), content)
}

pub(crate) fn paths(images: usize) -> Vec<String> {
    (0..images).map(|number| format!("/{number}.dat")).collect()
}

/// A certificate for `a.test` that is its own root.
pub(crate) fn certificate() -> (Arc<ServerConfig>, RootCertStore) {
    let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let chain: Vec<CertificateDer<'static>> = vec![made.cert.der().clone()];
    let mut roots = RootCertStore::empty();
    roots.add(chain[0].clone()).unwrap();
    (Arc::new(farhop_loader::server::tls(chain, key.into()).unwrap()), roots)
}
