//! The sockets of the origins: HTTP/1.1 on the plain port, HTTP/1.1 and HTTP/2 by ALPN on the TLS port, one pair per
//! origin, all in one process. What is answered is decided in `answer`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, SERVER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::answer::{Answer, Body, answer, message};
use super::live;
use super::log::Log;
use super::site::{Site, hex};

/// Streams a client may have open at once, as nginx allows.
pub(super) const H2_STREAMS: u32 = 128;

pub(super) type ResponseBody = BoxBody<Bytes, io::Error>;

/// One origin as its connections see it.
pub(super) struct Origin {
    pub(super) name: String,
    pub(super) site: Arc<Site>,
    pub(super) delay: Duration,
    pub(super) log: Arc<Log>,
    /// Whether these are its TLS connections.
    pub(super) secure: bool,
    /// `Cache-Control` by path ([`super::OriginSpec::caching`]).
    pub(super) caching: BTreeMap<String, String>,
}

impl Origin {
    /// What is said of the caching of what stands at `path`.
    fn cache_control(&self, path: &str) -> Option<HeaderValue> {
        let fitting = self.caching.iter().filter(|(begins, _)| path.starts_with(begins.as_str()));
        let (_, value) = fitting.max_by_key(|(begins, _)| begins.len())?;
        HeaderValue::from_str(value).ok()
    }
}

/// Opens a listening socket with its congestion control pinned; accepted sockets inherit it.
pub(super) fn listen(address: SocketAddr, congestion_control: &str) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_congestion(congestion_control.as_bytes())?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

/// The congestion control of a listening socket, as the kernel names it.
pub(super) fn congestion_control(listener: &TcpListener) -> io::Result<String> {
    let name = socket2::SockRef::from(listener).tcp_congestion()?;
    Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

/// Serves plain HTTP/1.1 for ever.
pub(super) async fn serve_plain(listener: TcpListener, origin: Arc<Origin>) {
    accept(listener, move |stream| serve_h1(stream, origin.clone())).await;
}

/// Serves HTTPS for ever, HTTP/2 where the client offers it.
pub(super) async fn serve_tls(listener: TcpListener, origin: Arc<Origin>, tls: Arc<rustls::ServerConfig>) {
    let acceptor = TlsAcceptor::from(tls);
    accept(listener, move |stream| {
        let (acceptor, origin) = (acceptor.clone(), origin.clone());
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                return serve_h1(stream, origin).await;
            }
            let service = service_fn(move |request| respond(request, origin.clone()));
            let mut server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            server.max_concurrent_streams(H2_STREAMS);
            let _ = server.serve_connection(TokioIo::new(stream), service).await; // a client that leaves is no error
        }
    })
    .await;
}

async fn serve_h1(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, origin: Arc<Origin>) {
    let service = service_fn(move |request| respond(request, origin.clone()));
    let server = hyper::server::conn::http1::Builder::new();
    let _ = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await; // as above
}

async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    serve: impl Fn(TcpStream) -> F,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true); // only a socket that is gone already refuses
                tokio::spawn(serve(stream));
            }
            // Out of descriptors: those in use must close first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn respond(
    mut request: Request<Incoming>,
    origin: Arc<Origin>,
) -> Result<Response<ResponseBody>, Infallible> {
    if let Some(response) = live::answer(&mut request).await {
        let (head, _) = request.into_parts();
        origin.log.request(&origin.name, &head, response.status());
        return Ok(response);
    }
    let (head, body) = request.into_parts();
    if !origin.delay.is_zero() {
        tokio::time::sleep(origin.delay).await;
    }
    let mut answer = if !names_origin(&head, &origin.name) {
        // RFC 9110 §15.5.20
        message(StatusCode::MISDIRECTED_REQUEST, &format!("this is {}", origin.name))
    } else if matches!(head.method, Method::POST | Method::PUT) {
        receipt(body).await
    } else {
        answer(&origin.site, &head.method, &head.uri, &head.headers)
    };
    // Folders written for plain HTTP name other sites by http:// URLs, which a page over HTTPS may not use: their links
    // are raised to HTTPS as any site does that moved there, else the variants would not load the same page.
    if origin.secure && answer.fields.get(CONTENT_TYPE).is_some_and(|media| media == "text/html") {
        answer.fields.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("upgrade-insecure-requests"));
    }
    // RFC 9110 §15.4.5: a 304 says what the 200 would have said.
    if (answer.status.is_success() || answer.status == StatusCode::NOT_MODIFIED)
        && let Some(caching) = origin.cache_control(head.uri.path())
    {
        answer.fields.insert(CACHE_CONTROL, caching);
    }
    origin.log.request(&origin.name, &head, answer.status);
    Ok(response(answer, head.method == Method::HEAD).await)
}

/// Whether the request is for this origin: by name, or by an address as `curl` sends it.
fn names_origin(head: &http::request::Parts, name: &str) -> bool {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = head.uri.host().or(host) else { return false };
    let port_at = host.rfind(':').filter(|at| host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    let host = &host[..port_at.unwrap_or(host.len())];
    host.eq_ignore_ascii_case(name) || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}

/// Takes an upload of any size and says what arrived.
async fn receipt(mut body: Incoming) -> Answer {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let mut count = 0u64;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return message(StatusCode::BAD_REQUEST, "the upload broke off") };
        if let Ok(piece) = frame.into_data() {
            count += piece.len() as u64;
            context.update(&piece);
        }
    }
    let text = format!("{{\"bytes\":{count},\"sha256\":\"{}\"}}\n", hex(context.finish().as_ref()));
    let mut receipt = message(StatusCode::OK, "");
    receipt.fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    receipt.fields.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    receipt.body = Body::Held(text.into());
    receipt
}

async fn response(answer: Answer, head_only: bool) -> Response<ResponseBody> {
    let full = |bytes: Bytes| Full::new(bytes).map_err(|never| match never {}).boxed();
    let body = match answer.body {
        _ if head_only => full(Bytes::new()),
        Body::Held(bytes) => full(bytes),
        Body::File(path, first, count) => match stream_file(path, first, count).await {
            Ok(body) => body,
            Err(error) => {
                let failure =
                    message(StatusCode::INTERNAL_SERVER_ERROR, &format!("the file cannot be read: {error}"));
                return Box::pin(response(failure, false)).await;
            }
        },
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.fields;
    response.headers_mut().insert(SERVER, HeaderValue::from_static("farhop-lab"));
    response
}

/// A part of a file, 64 KB at a time.
async fn stream_file(path: std::path::PathBuf, first: u64, count: u64) -> io::Result<ResponseBody> {
    let mut file = tokio::fs::File::open(path).await?;
    file.seek(io::SeekFrom::Start(first)).await?;
    let pieces = futures_util::stream::try_unfold((file, count), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; left.min(64 << 10) as usize];
        file.read_exact(&mut piece).await?;
        let left = left - piece.len() as u64;
        Ok::<_, io::Error>(Some((Bytes::from(piece), (file, left))))
    });
    Ok(BodyExt::boxed(StreamBody::new(pieces.map_ok(Frame::data))))
}
