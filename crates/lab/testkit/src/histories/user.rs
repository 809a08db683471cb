//! A user of a history: a browser's fields, a cookie jar, an address of its own, a few connections to the proxy. Sends what
//! it is told to and hands every answer to the judge.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

use super::judge::{Asked, Came, Judge};
use super::random::Random;
use super::range::Bounds;
use super::reuse::Wish;
use super::site::{Fields, Kind};
use crate::conformance::secure::tunnel;

/// Nothing in a history takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

type Connection = SendRequest<Full<Bytes>>;

/// The users, by their browsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Browser {
    Chromium,
    Firefox,
    Safari,
}

/// What is asked of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Plain,
    IfNoneMatch,
    /// The same by when it last changed.
    IfModifiedSince,
    Range(Bounds),
    /// The same if what was seen last is still so.
    IfRange(Bounds),
    Head,
    Post,
}

impl Browser {
    pub(super) const ALL: [Browser; 3] = [Browser::Chromium, Browser::Firefox, Browser::Safari];

    /// The name in the cookies of this user; nobody else's body may hold it.
    pub(super) fn sid(self, number: u64) -> String {
        format!("{self:?}-{number}-{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn agent(self) -> &'static str {
        match self {
            Browser::Chromium => {
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36"
            }
            Browser::Firefox => "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0",
            Browser::Safari => {
                "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15"
            }
        }
    }

    fn accept(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Browser::Chromium, Kind::Page) => {
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8"
            }
            (Browser::Firefox | Browser::Safari, Kind::Page) => {
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
            }
            (_, Kind::Style) => "text/css,*/*;q=0.1",
            (_, Kind::Script) => "*/*",
            (Browser::Chromium, Kind::Image) => {
                "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
            }
            (Browser::Firefox, Kind::Image) => {
                "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
            }
            (Browser::Safari, Kind::Image) => {
                "image/webp,image/avif,image/jxl,image/heic,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5"
            }
        }
    }
}

/// How users reach the site.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) proxy: SocketAddr,
    /// Where the site is.
    pub(super) host: SocketAddr,
    /// Whom they believe that it is that, where it is asked over TLS.
    pub(super) trust: Option<Arc<ClientConfig>>,
}

/// A user.
pub(super) struct User {
    browser: Browser,
    number: u64,
    address: Ipv4Addr,
    way: Way,
    base: String,
    judge: Judge,
    language: &'static str,
    authorization: String,
    /// Whether the load under way is one that goes past caches.
    reload: bool,
    shared: Mutex<Shared>,
}

/// What requests that run beside each other share.
#[derive(Default)]
struct Shared {
    jar: BTreeMap<String, String>,
    tags: BTreeMap<usize, String>,
    dates: BTreeMap<usize, String>,
    idle: Vec<Connection>,
}

impl User {
    pub(super) fn new(number: u64, browser: Browser, address: Ipv4Addr, way: Way, judge: Judge) -> User {
        let scheme = if way.trust.is_some() { "https" } else { "http" };
        let base = format!("{scheme}://{}/{number}", way.host);
        let mut shared = Shared::default();
        shared.jar.insert("sid".into(), browser.sid(number));
        let language = match browser {
            Browser::Chromium => "en-US,en;q=0.9",
            Browser::Firefox => "fr,fr-FR;q=0.8,en;q=0.5",
            Browser::Safari => "en-GB,en;q=0.9",
        };
        User {
            browser,
            number,
            address,
            way,
            base,
            judge,
            language,
            authorization: String::new(),
            reload: false,
            shared: Mutex::new(shared),
        }
    }

    pub(super) fn change_language(&mut self, random: &mut Random) {
        self.language = random.one_of(&["de", "en-US,en;q=0.9", "pt-BR,pt;q=0.9"]);
    }

    pub(super) fn change_cookie(&mut self, random: &mut Random) {
        self.shared().jar.insert("role".into(), random.one_of(&["guest", "member", "admin"]).into());
    }

    pub(super) fn change_credentials(&mut self, random: &mut Random) {
        let key = random.one_of(&["", "YTpi", "eDp5"]);
        self.authorization = if key.is_empty() { String::new() } else { format!("Basic {key}") };
    }

    /// Asks for a page; `reload` goes past caches.
    pub(super) async fn load(&mut self, page: usize, reload: bool) {
        self.reload = reload;
        self.judge.load_begins(self.browser, page);
        self.send(page, Ask::Plain, Wish::Nothing, None).await;
    }

    /// Asks for a page and goes away before the answer is whole.
    pub(super) async fn give_up(&mut self, page: usize) {
        self.reload = false;
        self.judge.load_begins(self.browser, page);
        let (_, request) = self.request(page, Ask::Plain, Wish::Nothing, None);
        if let Some(mut connection) = self.connection().await
            && let Ok(Ok(response)) = tokio::time::timeout(PATIENCE, connection.send_request(request)).await
        {
            let mut body = response.into_body();
            let _ = tokio::time::timeout(PATIENCE, body.frame()).await;
        }
    }

    /// Asks for what `parent` names, three at a time, as the load of a page goes on; `ask` is how.
    pub(super) async fn fetch_all(&self, parent: usize, things: &[usize], ask: Ask) {
        let lane = |first: usize| async move {
            for thing in things.iter().skip(first).step_by(3) {
                self.send(*thing, ask, Wish::Nothing, Some(parent)).await;
            }
        };
        tokio::join!(lane(0), lane(1), lane(2));
    }

    /// Asks for one thing, out of any load.
    pub(super) async fn ask(&mut self, thing: usize, ask: Ask) {
        self.reload = false;
        self.send(thing, ask, Wish::Nothing, None).await;
    }

    /// The same, with something to say of what is held.
    pub(super) async fn wish(&mut self, thing: usize, wish: Wish) {
        self.reload = false;
        self.send(thing, Ask::Plain, wish, None).await;
    }

    fn request(
        &self,
        thing: usize,
        ask: Ask,
        wish: Wish,
        referer: Option<usize>,
    ) -> (Asked, Request<Full<Bytes>>) {
        let shared = self.shared();
        let kind = self.judge.model().things[thing].kind;
        let cookies: Vec<String> = shared.jar.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let fields = Fields {
            cookie: cookies.join("; "),
            language: self.language.into(),
            accept: self.browser.accept(kind).into(),
            authorization: self.authorization.clone(),
        };
        let url = format!("{}/{thing}", self.base);
        let host = self.way.host.to_string();
        // RFC 9112 §3.2: the whole of it is for proxies.
        let target = if self.way.trust.is_some() { format!("/{}/{thing}", self.number) } else { url };
        let mut request = Request::builder()
            .method(match ask {
                Ask::Head => Method::HEAD,
                Ask::Post => Method::POST,
                _ => Method::GET,
            })
            .uri(target)
            .header(header::HOST, host)
            .header(header::USER_AGENT, self.browser.agent())
            .header(header::ACCEPT, &fields.accept)
            .header(header::ACCEPT_LANGUAGE, &fields.language)
            .header(header::ACCEPT_ENCODING, "gzip, deflate")
            .header(header::COOKIE, &fields.cookie);
        if kind == Kind::Page {
            request = request.header(header::UPGRADE_INSECURE_REQUESTS, "1");
        }
        if let Some(parent) = referer {
            request = request.header(header::REFERER, format!("{}/{parent}", self.base));
        }
        if !fields.authorization.is_empty() {
            request = request.header(header::AUTHORIZATION, &fields.authorization);
        }
        if self.reload {
            request = request.header(header::PRAGMA, "no-cache").header(header::CACHE_CONTROL, "no-cache");
        }
        if let Some(wish) = wish.cache_control() {
            request = request.header(header::CACHE_CONTROL, wish);
        }
        let condition = match ask {
            Ask::IfNoneMatch => Some(header::IF_NONE_MATCH),
            Ask::IfRange(_) => Some(header::IF_RANGE),
            _ => None,
        };
        let tag = shared.tags.get(&thing).filter(|_| condition.is_some()).cloned();
        if let (Some(name), Some(tag)) = (condition, &tag) {
            request = request.header(name, tag);
        }
        let date = shared.dates.get(&thing).filter(|_| ask == Ask::IfModifiedSince).cloned();
        if let Some(date) = &date {
            request = request.header(header::IF_MODIFIED_SINCE, date);
        }
        if let Ask::Range(bounds) | Ask::IfRange(bounds) = ask {
            request = request.header(header::RANGE, bounds.to_string());
        }
        let body = if ask == Ask::Post { Bytes::from_static(b"change") } else { Bytes::new() };
        let request = request.body(Full::new(body)).expect("every field is valid");
        let user = self.browser.sid(self.number);
        let (by, at) = (self.browser, Instant::now());
        let asked = Asked { by, user, thing, ask, wish, at, fields, tag, date, reload: self.reload };
        (asked, request)
    }

    async fn send(&self, thing: usize, ask: Ask, wish: Wish, referer: Option<usize>) {
        let (asked, request) = self.request(thing, ask, wish, referer);
        let came = tokio::time::timeout(PATIENCE, self.exchange(request)).await;
        let came = came.unwrap_or_else(|_| Err(format!("no answer in {} s", PATIENCE.as_secs())));
        if let Ok(came) = &came {
            self.keep(thing, came);
        }
        self.judge.judge(&asked, came);
    }

    /// Keeps cookies, tags and dates as a browser does.
    fn keep(&self, thing: usize, came: &Came) {
        let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let mut shared = self.shared();
        for cookie in came.fields.get_all(header::SET_COOKIE).iter().map(text) {
            let pair = cookie.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                shared.jar.insert(name.into(), value.into());
            }
        }
        if let (StatusCode::OK, Some(tag)) = (came.status, came.fields.get(header::ETAG)) {
            shared.tags.insert(thing, text(tag));
        }
        if let (StatusCode::OK, Some(date)) = (came.status, came.fields.get(header::LAST_MODIFIED)) {
            shared.dates.insert(thing, text(date));
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Came, String> {
        let mut connection = self.connection().await.ok_or("the proxy cannot be reached")?;
        let response = connection.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| format!("cut off: {error}"))?.to_bytes().to_vec();
        self.shared().idle.push(connection);
        Ok(Came { status: head.status, fields: without_hop(head.headers), body })
    }

    /// A connection that is ready: one that was used before, else a new one.
    async fn connection(&self) -> Option<Connection> {
        loop {
            let Some(mut idle) = self.shared().idle.pop() else { break };
            if idle.ready().await.is_ok() {
                return Some(idle);
            }
        }
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind((self.address, 0).into()).ok()?;
        let stream = socket.connect(self.way.proxy).await.ok()?;
        let _ = stream.set_nodelay(true);
        let Some(trust) = &self.way.trust else { return speak(stream).await };
        let stream = tunnel(stream, self.way.host).await;
        speak(TlsConnector::from(trust.clone()).connect(self.way.host.ip().into(), stream).await.ok()?).await
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no holder of this lock panics")
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Option<Connection> {
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

/// The fields without those that say how it came.
fn without_hop(mut fields: HeaderMap) -> HeaderMap {
    for name in ["via", "date", "connection", "keep-alive"] {
        fields.remove(name);
    }
    fields
}
