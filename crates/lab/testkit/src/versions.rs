//! A site whose things change with each POST, and clients that ask for them through a proxy until it is killed or enough
//! has been answered. Each answer tells its version, and every byte follows from that: an answer of an earlier version than
//! a POST has told, of another user, or with a wrong byte in it is found out, whatever the proxy has been through.

use std::convert::Infallible;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::response::Builder;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::pattern::bytes_at;

mod client;

pub use client::{Load, Outcome};

/// In which version an answer is.
const VERSION: HeaderName = HeaderName::from_static("x-version");
/// The user that a request is of, and that a private answer is for.
const USER: HeaderName = HeaderName::from_static("x-user");

/// By which rules a thing may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// By everybody, with a strong validator.
    Shared,
    /// By everybody, and nothing tells one version from another.
    Untagged,
    /// By its user.
    Private,
    /// If it is asked about each time.
    Checked,
    /// Not at all.
    Unheld,
}

const KINDS: [Kind; 6] =
    [Kind::Shared, Kind::Shared, Kind::Untagged, Kind::Private, Kind::Checked, Kind::Unheld];
/// Bytes of things, some of several chunks on disk.
const SIZES: [usize; 5] = [10, 3_000, 70_000, 200_000, 20_000];

impl Kind {
    fn of(thing: u64) -> Kind {
        KINDS[(thing % KINDS.len() as u64) as usize]
    }

    fn cache_control(self) -> &'static str {
        match self {
            Kind::Shared | Kind::Untagged => "max-age=600",
            Kind::Private => "private, max-age=600",
            Kind::Checked => "no-cache",
            Kind::Unheld => "no-store",
        }
    }

    /// Nothing older than what the origin has may be given.
    fn is_current(self) -> bool {
        matches!(self, Kind::Checked | Kind::Unheld)
    }
}

fn length(thing: u64, version: u64) -> usize {
    // Another version has another length.
    SIZES[(thing / KINDS.len() as u64 % SIZES.len() as u64) as usize] + version as usize % 7
}

/// By which number the bytes of a thing are made, in a version and for a user.
fn seed(thing: u64, version: u64, user: u64) -> u64 {
    let user = if Kind::of(thing) == Kind::Private { user } else { 0 };
    (thing << 40) ^ (user << 32) ^ version
}

/// What is true of a thing.
#[derive(Debug, Clone, Copy, Default)]
struct Thing {
    /// The origin's version.
    now: u64,
    /// What a POST that was answered has told: nothing older may be given after it.
    told: u64,
}

/// The site. It ends when it is dropped.
pub struct Versions {
    address: SocketAddr,
    site: Arc<Site>,
    serving: AbortHandle,
}

struct Site {
    things: Mutex<Vec<Thing>>,
    asked: std::sync::atomic::AtomicU64,
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versions").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Versions {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Site {
    fn things(&self) -> MutexGuard<'_, Vec<Thing>> {
        self.things.lock().expect("no holder of this lock panics")
    }
}

impl Versions {
    /// A site of so many things, on loopback.
    ///
    /// # Panics
    /// No socket is to be had.
    pub async fn of(things: usize) -> Versions {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("this machine has free ports");
        let address = listener.local_addr().expect("a bound listener has an address");
        let things = Mutex::new(vec![Thing::default(); things]);
        let site = Arc::new(Site { things, asked: <_>::default() });
        let serving = tokio::spawn(accept(listener, Arc::clone(&site))).abort_handle();
        Versions { address, site, serving }
    }

    /// Requests that have reached it.
    pub fn asked(&self) -> u64 {
        self.site.asked.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Lets so many clients ask through `proxy` for what `number` makes them ask for, until [`Load::end`].
    pub fn load(&self, proxy: SocketAddr, clients: u8, number: u64) -> Load {
        Load::begin(self.address, Arc::clone(&self.site), proxy, clients, number)
    }
}

async fn accept(listener: TcpListener, site: Arc<Site>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let site = Arc::clone(&site);
        let service = hyper::service::service_fn(move |request| {
            let answer = serve(&site, &request);
            async move { Ok::<_, Infallible>(answer) }
        });
        connections.spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
        );
    }
}

fn serve(site: &Site, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    site.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    let mut things = site.things();
    let named = number(request.uri().path().strip_prefix('/'));
    let Some((name, thing)) = named.and_then(|name| Some((name, things.get_mut(name as usize)?))) else {
        return finished(Response::builder().status(StatusCode::NOT_FOUND), Bytes::new());
    };
    if request.method() == Method::POST {
        thing.now += 1;
        let answer = Response::builder().header(header::CACHE_CONTROL, "no-store").header(VERSION, thing.now);
        return finished(answer, Bytes::new());
    }
    let field = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let (version, user) = (thing.now, number(field(USER)).unwrap_or_default());
    drop(things);
    let kind = Kind::of(name);
    let tag = format!("\"{version}\"");
    let mut answer = Response::builder()
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header(header::CACHE_CONTROL, kind.cache_control())
        .header(VERSION, version);
    if kind == Kind::Private {
        answer = answer.header(USER, user);
    }
    if kind != Kind::Untagged {
        answer = answer.header(header::ETAG, &tag);
        if field(header::IF_NONE_MATCH).is_some_and(|tags| tags.contains(&tag)) {
            return finished(answer.status(StatusCode::NOT_MODIFIED), Bytes::new());
        }
    }
    let whole = length(name, version);
    let range = field(header::RANGE).and_then(|range| {
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?.min(whole - 1)))
    });
    let wanted = field(header::IF_RANGE).is_none_or(|condition| condition == tag);
    match range.filter(|(first, last)| wanted && first <= last) {
        Some((first, last)) => {
            let answer = answer.header(header::CONTENT_RANGE, format!("bytes {first}-{last}/{whole}"));
            let bytes = bytes_at(seed(name, version, user), first as u64, last + 1 - first);
            finished(answer.status(StatusCode::PARTIAL_CONTENT), bytes)
        }
        None => finished(answer, bytes_at(seed(name, version, user), 0, whole)),
    }
}

fn finished(answer: Builder, body: Bytes) -> Response<Full<Bytes>> {
    answer.body(Full::new(body)).expect("every field is valid")
}
