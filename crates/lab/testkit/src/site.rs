//! A well-behaved static origin: validators, conditional requests, ranges, uploads; and a record of what it
//! was asked. To compare with, and to put behind the two ends in tests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::pattern;

/// Size of the pieces in which generated bodies are sent.
const PIECE: u64 = 64 * 1024;

type Body = BoxBody<Bytes, Infallible>;

/// What stands at a path.
#[derive(Debug, Clone)]
pub struct File {
    content: Content,
    fields: HeaderMap,
    delay: Duration,
}

#[derive(Debug, Clone)]
enum Content {
    Held(Bytes),
    Pattern { seed: u64, length: u64 },
}

impl File {
    /// A file with this content type and content.
    pub fn new(content_type: &'static str, content: impl Into<Bytes>) -> File {
        File::of(Content::Held(content.into())).field("content-type", content_type)
    }

    /// A file of `length` bytes that follow from `seed` ([`pattern::byte_at`]), never held in memory.
    pub fn pattern(seed: u64, length: u64) -> File {
        File::of(Content::Pattern { seed, length }).field("content-type", "application/octet-stream")
    }

    fn of(content: Content) -> File {
        File { content, fields: HeaderMap::new(), delay: Duration::ZERO }
    }

    /// Adds a response field, such as `cache-control` or `set-cookie`. `location` makes it a redirect (302).
    #[must_use]
    pub fn field(mut self, name: &'static str, value: &str) -> File {
        let value = HeaderValue::from_str(value).expect("tests send valid field values");
        self.fields.append(HeaderName::from_static(name), value);
        self
    }

    /// Waits this long before answering.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> File {
        self.delay = delay;
        self
    }

    fn length(&self) -> u64 {
        match &self.content {
            Content::Held(bytes) => bytes.len() as u64,
            Content::Pattern { length, .. } => *length,
        }
    }

    /// A strong validator: equal for equal bytes, different otherwise (RFC 9110 §8.8.1).
    fn etag(&self) -> String {
        match &self.content {
            Content::Held(bytes) => format!("\"{}\"", &blake3::hash(bytes).to_hex()[..16]),
            Content::Pattern { seed, length } => format!("\"p{seed:x}-{length:x}\""),
        }
    }

    fn body(&self, from: u64, to: u64) -> Body {
        match &self.content {
            Content::Held(bytes) => Full::new(bytes.slice(from as usize..to as usize)).boxed(),
            Content::Pattern { seed, .. } => {
                let seed = *seed;
                let pieces = (from..to).step_by(PIECE as usize).map(move |start| {
                    let length = PIECE.min(to - start) as usize;
                    Ok(Frame::data(pattern::bytes_at(seed, start, length)))
                });
                Pieces(pieces).boxed()
            }
        }
    }
}

/// An iterator as a body whose next piece is always ready.
struct Pieces<I>(I);

impl<I: Iterator<Item = Result<Frame<Bytes>, Infallible>> + Unpin> hyper::body::Body for Pieces<I> {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::Poll::Ready(self.0.next())
    }
}

/// Files by path.
#[derive(Debug, Clone, Default)]
pub struct Site {
    files: BTreeMap<String, File>,
}

impl Site {
    /// A site without files: every path is 404.
    pub fn new() -> Site {
        Site::default()
    }

    /// Puts `file` at `path` (with its query, where it has one).
    #[must_use]
    pub fn file(mut self, path: &str, file: File) -> Site {
        self.files.insert(path.into(), file);
        self
    }

    /// Serves the site on a loopback port of its own until the origin is dropped.
    pub async fn serve(self) -> SiteOrigin {
        self.serve_on(TcpListener::bind(("127.0.0.1", 0)).await.expect("loopback has free ports"))
    }

    /// Serves the site on this listener, which may live in another network namespace.
    pub fn serve_on(self, listener: TcpListener) -> SiteOrigin {
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared =
            Arc::new(Shared { site: Mutex::new(self), asked: Mutex::default(), since: SystemTime::now() });
        let task = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        SiteOrigin { address, shared, task }
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method.
    pub method: Method,
    /// The target, as it stood in the request line.
    pub target: String,
    /// The fields.
    pub fields: HeaderMap,
}

#[derive(Debug)]
struct Shared {
    site: Mutex<Site>,
    asked: Mutex<Vec<Asked>>,
    since: SystemTime,
}

/// A well-behaved origin. POST and PUT to any path answer with the length and BLAKE3 hash of what was sent.
#[derive(Debug)]
pub struct SiteOrigin {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl SiteOrigin {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far, in the order of arrival.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("no holder of this lock panics").clone()
    }

    /// How often `target` was asked for.
    pub fn times(&self, target: &str) -> usize {
        self.asked().iter().filter(|asked| asked.target == target).count()
    }

    /// Replaces or adds a file while serving.
    pub fn put(&self, path: &str, file: File) {
        self.shared.site.lock().expect("no holder of this lock panics").files.insert(path.into(), file);
    }
}

impl Drop for SiteOrigin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        let service = hyper::service::service_fn(move |request| answer(shared.clone(), request));
        connections.spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let asked = Asked { method: head.method.clone(), target: target.clone(), fields: head.headers.clone() };
    shared.asked.lock().expect("no holder of this lock panics").push(asked);

    if head.method == Method::POST || head.method == Method::PUT {
        return receipt(body).await;
    }
    let file = shared.site.lock().expect("no holder of this lock panics").files.get(&target).cloned();
    let Some(file) = file else { return Ok(plain(StatusCode::NOT_FOUND, "no such file")) };
    if head.method != Method::GET && head.method != Method::HEAD {
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD, POST or PUT"));
    }
    if !file.delay.is_zero() {
        tokio::time::sleep(file.delay).await;
    }
    Ok(serve_file(&file, shared.since, &head.method, &head.headers))
}

fn serve_file(file: &File, since: SystemTime, method: &Method, asked: &HeaderMap) -> Response<Body> {
    let etag = file.etag();
    let modified = httpdate::fmt_http_date(since);
    let mut response = Response::builder()
        .header(header::ETAG, &etag)
        .header(header::LAST_MODIFIED, &modified)
        .header(header::ACCEPT_RANGES, "bytes")
        .header(header::DATE, httpdate::fmt_http_date(SystemTime::now()));
    for (name, value) in &file.fields {
        response = response.header(name, value);
    }
    let field = |name: HeaderName| asked.get(name).and_then(|value| value.to_str().ok());
    let built =
        |response: http::response::Builder, body: Body| response.body(body).expect("every field was valid");

    // RFC 9110 §13.2.2: If-None-Match decides where it stands, If-Modified-Since only where it does not.
    let held = match (field(header::IF_NONE_MATCH), field(header::IF_MODIFIED_SINCE)) {
        (Some(tags), _) => {
            tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag || tag.trim() == "*")
        }
        (None, Some(date)) => date == modified,
        (None, None) => false,
    };
    if held {
        return built(response.status(StatusCode::NOT_MODIFIED), Empty::new().boxed());
    }

    let length = file.length();
    // RFC 9110 §13.1.5: a range counts only while the validator of If-Range still holds.
    let range_counts =
        field(header::IF_RANGE).is_none_or(|validator| validator == etag || validator == modified);
    let range = field(header::RANGE).filter(|_| range_counts && method == Method::GET);
    let (status, from, to) = match range.and_then(|range| single_range(range, length)) {
        None if file.fields.contains_key(header::LOCATION) => (StatusCode::FOUND, 0, length),
        None => (StatusCode::OK, 0, length),
        Some(Err(())) => {
            let response = response.header(header::CONTENT_RANGE, format!("bytes */{length}"));
            return built(response.status(StatusCode::RANGE_NOT_SATISFIABLE), Empty::new().boxed());
        }
        Some(Ok((from, to))) => {
            response = response.header(header::CONTENT_RANGE, format!("bytes {from}-{}/{length}", to - 1));
            (StatusCode::PARTIAL_CONTENT, from, to)
        }
    };
    let response = response.status(status).header(header::CONTENT_LENGTH, to - from);
    built(response, if method == Method::HEAD { Empty::new().boxed() } else { file.body(from, to) })
}

/// One range as (first, one past last); `None` for what may be ignored, `Err` for what cannot be satisfied
/// (RFC 9110 §14.1.2).
fn single_range(range: &str, length: u64) -> Option<Result<(u64, u64), ()>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let suffix: u64 = last.parse().ok()?;
        let from = length.saturating_sub(suffix);
        return Some(if from < length { Ok((from, length)) } else { Err(()) });
    }
    let first: u64 = first.parse().ok()?;
    let last: u64 = if last.is_empty() { u64::MAX } else { last.parse().ok()? };
    if last < first {
        return None;
    }
    Some(if first < length { Ok((first, last.saturating_add(1).min(length))) } else { Err(()) })
}

/// `12345 bytes, <hash>`, once the whole body has come.
async fn receipt(mut body: Incoming) -> Result<Response<Body>, hyper::Error> {
    let mut hasher = blake3::Hasher::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            length += data.len();
            hasher.update(&data);
        }
    }
    Ok(plain(StatusCode::OK, &format!("{length} bytes, {}", hasher.finalize().to_hex())))
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
