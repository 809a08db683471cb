//! The origin of all histories: one listener that every loopback address reaches. Answers by the site's model in the version
//! of the moment, with validators, ranges and posts.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::range::{Bounds, content_range};
use super::site::{Fields, Model, tag, user_of};

/// What is true of a history's site now, and was before.
#[derive(Debug)]
pub(super) struct Truth {
    pub(super) model: Arc<Model>,
    /// The moments count the steps of the history.
    pub(super) moment: u64,
    /// For each thing, the moment at which each of its versions came to be.
    pub(super) born: Vec<Vec<u64>>,
    pub(super) serial: u64,
    /// The users for whom cookies were set, by the cookies' values.
    pub(super) cookies: HashMap<u64, String>,
    /// Requests that reached the origin.
    pub(super) asked: u64,
    /// When each content of a thing was last said to be what it is, by the whole of it, a part or a 304.
    said: HashMap<(usize, String), Instant>,
    /// Things that are answered 503 for now, and the moment in which each last was.
    failing: HashSet<usize>,
    failed: HashMap<usize, u64>,
    /// Things whose next answer breaks off, and the moment in which one last did.
    breaking: HashSet<usize>,
    broken: HashMap<usize, (u64, Instant)>,
    /// When a HEAD was last answered with no more than a length: what is held of that length is confirmed by it (RFC 9111 §4.3.5).
    described: HashMap<(usize, u64), Instant>,
    /// Numbers of answers to requests that forbade to keep them.
    pub(super) unkept: HashSet<u64>,
}

impl Truth {
    /// The thing's content changes now.
    pub(super) fn change(&mut self, thing: usize) -> usize {
        self.born[thing].push(self.moment);
        self.born[thing].len() - 1
    }

    /// The origin begins to fail for a thing, or is mended.
    pub(super) fn fail_or_mend(&mut self, thing: usize) {
        if !self.failing.remove(&thing) {
            self.failing.insert(thing);
        }
    }

    /// The next body of a thing breaks off.
    pub(super) fn break_off(&mut self, thing: usize) {
        self.breaking.insert(thing);
    }

    /// Whether a body of a thing broke off since this moment.
    pub(super) fn has_broken(&self, thing: usize, since: u64) -> bool {
        self.broken.get(&thing).is_some_and(|(moment, _)| *moment >= since)
    }

    /// Whether one did since then.
    pub(super) fn has_broken_since(&self, thing: usize, at: Instant) -> bool {
        self.broken.get(&thing).is_some_and(|(_, broke)| *broke >= at)
    }

    /// When this content of a thing was last said to be what it is.
    pub(super) fn said(&self, thing: usize, body: &[u8]) -> Option<Instant> {
        let said = self.said.get(&(thing, tag(body))).copied()?;
        Some(self.described.get(&(thing, body.len() as u64)).map_or(said, |described| said.max(*described)))
    }

    /// Whether a thing was answered 503 since this moment.
    pub(super) fn has_failed(&self, thing: usize, since: u64) -> bool {
        self.failed.get(&thing).is_some_and(|moment| *moment >= since)
    }
}

/// The origin. Its copies are the same one; it ends with the last of them.
#[derive(Debug, Clone)]
pub(super) struct Origins {
    port: u16,
    open: Arc<Mutex<HashMap<u64, Truth>>>,
    _task: Arc<Ends>,
}

#[derive(Debug)]
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Origins {
    /// Starts it, over TLS where there is an identity for it.
    pub(super) async fn start(identity: Option<Arc<ServerConfig>>) -> Origins {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.expect("this machine has free ports");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        let open: Arc<Mutex<HashMap<u64, Truth>>> = Arc::default();
        let acceptor = identity.map(TlsAcceptor::from);
        let task = tokio::spawn(accept(listener, acceptor, open.clone())).abort_handle();
        Origins { port, open, _task: Arc::new(Ends(task)) }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Begins to serve a history's site.
    pub(super) fn open(&self, number: u64, model: Arc<Model>) {
        let born = vec![vec![0]; model.things.len()];
        let truth = Truth {
            model,
            moment: 0,
            born,
            serial: 0,
            cookies: HashMap::new(),
            asked: 0,
            said: HashMap::new(),
            failing: HashSet::new(),
            failed: HashMap::new(),
            breaking: HashSet::new(),
            broken: HashMap::new(),
            described: HashMap::new(),
            unkept: HashSet::new(),
        };
        self.locked().insert(number, truth);
    }

    /// Ends it: what is asked late is 404.
    pub(super) fn close(&self, number: u64) {
        self.locked().remove(&number);
    }

    /// Looks at, or changes, what is true of a history.
    pub(super) fn truth<T>(&self, number: u64, look: impl FnOnce(&mut Truth) -> T) -> T {
        look(self.locked().get_mut(&number).expect("a history is open while it is lived"))
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<u64, Truth>> {
        self.open.lock().expect("no holder of this lock panics")
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, open: Arc<Mutex<HashMap<u64, Truth>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let _ = stream.set_nodelay(true);
        let (open, acceptor) = (open.clone(), acceptor.clone());
        connections.spawn(async move {
            let service = hyper::service::service_fn(move |request| serve(open.clone(), request));
            let server = hyper::server::conn::http1::Builder::new();
            // Who leaves is no error, nor is a connection that was made ahead and not used.
            let _ = match acceptor {
                None => server.serve_connection(TokioIo::new(stream), service).await,
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => server.serve_connection(TokioIo::new(stream), service).await,
                    Err(_) => return,
                },
            };
        });
    }
}

async fn serve(
    open: Arc<Mutex<HashMap<u64, Truth>>>,
    request: Request<Incoming>,
) -> Result<Response<Content>, Infallible> {
    let (head, body) = request.into_parts();
    // A body that breaks off is the sender's affair; the answer is the same.
    let _ = body.collect().await;
    let mut open = open.lock().expect("no holder of this lock panics");
    let place = place(head.uri.path());
    let found = place.and_then(|(number, thing)| {
        let truth = open.get_mut(&number)?;
        (thing < truth.model.things.len()).then_some((number, thing, truth))
    });
    let Some((number, thing, truth)) = found else {
        return Ok(answer(StatusCode::NOT_FOUND, Vec::new(), b"no such thing".to_vec()));
    };
    truth.asked += 1;
    if head.method == Method::POST {
        let version = truth.change(thing);
        let fields = vec![(header::CACHE_CONTROL, "no-store".to_owned())];
        return Ok(answer(StatusCode::OK, fields, posted(thing, version)));
    }
    let mut answer = get(truth, number, thing, &head.headers);
    let is_bare = truth.model.things[thing].is_numbered() && answer.status() == StatusCode::OK;
    if head.method == Method::HEAD && is_bare {
        truth.described.insert((thing, answer.body().length), Instant::now());
    }
    let is_long = answer.body().length > 1 && answer.status() != StatusCode::SERVICE_UNAVAILABLE;
    if head.method == Method::GET && is_long && truth.breaking.remove(&thing) {
        truth.broken.insert(thing, (truth.moment, Instant::now()));
        answer.body_mut().break_off();
    }
    Ok(answer)
}

/// A body, all of it or as far as it comes.
struct Content {
    bytes: Option<Bytes>,
    /// As long as is told.
    length: u64,
    breaks: bool,
    /// Once what came before is on its way.
    waits: u8,
}

impl Content {
    fn new(bytes: Vec<u8>) -> Content {
        let length = bytes.len() as u64;
        Content { bytes: Some(bytes.into()).filter(|_| length > 0), length, breaks: false, waits: 0 }
    }

    fn break_off(&mut self) {
        let half = self.length as usize / 2;
        self.bytes.iter_mut().for_each(|bytes| bytes.truncate(half));
        (self.breaks, self.waits) = (true, 3);
    }
}

impl hyper::body::Body for Content {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(bytes) = self.bytes.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if !self.breaks {
            return Poll::Ready(None);
        }
        // What was given is written where more is waited for, and not where that fails at once.
        if self.waits > 0 {
            self.waits -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(std::io::ErrorKind::BrokenPipe.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && !self.breaks
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

/// The field that is the user's own.
pub(super) const OWN: HeaderName = HeaderName::from_static("x-own");

/// A date as fields say it, of seconds since 1970.
pub(super) fn date(seconds: u64) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// What a post to a thing is answered.
pub(super) fn posted(thing: usize, version: usize) -> Vec<u8> {
    format!("thing {thing} is now version {version}").into_bytes()
}

/// `/HISTORY/THING`.
fn place(path: &str) -> Option<(u64, usize)> {
    let (number, thing) = path.strip_prefix('/')?.split_once('/')?;
    Some((number.parse().ok()?, thing.parse().ok()?))
}

fn get(truth: &mut Truth, number: u64, place: usize, asked: &HeaderMap) -> Response<Content> {
    truth.serial += 1;
    let model = truth.model.clone();
    let thing = &model.things[place];
    let field = |name: HeaderName| {
        let values: Vec<_> = asked.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        values.join(", ")
    };
    let by = Fields {
        cookie: field(header::COOKIE),
        language: field(header::ACCEPT_LANGUAGE),
        accept: field(header::ACCEPT),
        authorization: field(header::AUTHORIZATION),
    };
    if truth.failing.contains(&place) {
        truth.failed.insert(place, truth.moment);
        let fields = vec![(header::CACHE_CONTROL, "no-store".to_owned())];
        return answer(StatusCode::SERVICE_UNAVAILABLE, fields, b"not now".to_vec());
    }
    if field(header::CACHE_CONTROL).contains("no-store") {
        truth.unkept.insert(truth.serial);
    }
    let version = truth.born[place].len() - 1;
    let body = model.body(place, version, user_of(&by.cookie), &by, truth.serial);
    let mut fields = vec![(header::CONTENT_TYPE, thing.media_type().to_owned())];
    fields.extend(thing.cache_control().map(|value| (header::CACHE_CONTROL, value.to_owned())));
    fields.extend(thing.vary().map(|value| (header::VARY, value)));
    truth.said.insert((place, tag(&body)), Instant::now());
    fields.extend(thing.age().map(|age| (header::AGE, age.to_string())));
    if let Some(lasts) = thing.expires() {
        let now = SystemTime::now();
        fields.push((header::DATE, httpdate::fmt_http_date(now)));
        fields.push((header::EXPIRES, httpdate::fmt_http_date(now + lasts)));
    }
    if thing.has_own_field() {
        fields.push((OWN, user_of(&by.cookie).to_owned()));
    }
    let modified = thing.modified_s(version).map(date);
    fields.extend(modified.clone().map(|date| (header::LAST_MODIFIED, date)));
    if thing.sets_cookie {
        truth.cookies.insert(truth.serial, user_of(&by.cookie).to_owned());
        fields.push((header::SET_COOKIE, format!("c{place}={}; Path=/{number}/", truth.serial)));
    }
    // RFC 9110 §13.1.3: after whose date it has not changed. What has numbers is another each time.
    if thing.dated && modified.as_ref().is_some_and(|date| *date == field(header::IF_MODIFIED_SINCE)) {
        return answer(StatusCode::NOT_MODIFIED, fields, Vec::new());
    }
    if !thing.tagged {
        return answer(StatusCode::OK, fields, body);
    }
    let tag = tag(&body);
    fields.push((header::ETAG, tag.clone()));
    if field(header::IF_NONE_MATCH).split(", ").any(|held| held.trim_start_matches("W/") == tag) {
        return answer(StatusCode::NOT_MODIFIED, fields, Vec::new());
    }
    // RFC 9110 §13.1.5: a range of another representation is none.
    let condition = field(header::IF_RANGE);
    let bounds = Bounds::read(&field(header::RANGE)).filter(|_| condition.is_empty() || condition == tag);
    match bounds.map(|bounds| bounds.of(body.len())) {
        Some(Some(range)) => {
            fields.push((header::CONTENT_RANGE, content_range(&range, body.len())));
            answer(StatusCode::PARTIAL_CONTENT, fields, body[range].to_vec())
        }
        Some(None) => {
            fields.push((header::CONTENT_RANGE, format!("bytes */{}", body.len())));
            answer(StatusCode::RANGE_NOT_SATISFIABLE, fields, Vec::new())
        }
        None => answer(StatusCode::OK, fields, body),
    }
}

fn answer(status: StatusCode, fields: Vec<(HeaderName, String)>, body: Vec<u8>) -> Response<Content> {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(name, value);
    }
    response.body(Content::new(body)).expect("every field was valid")
}
