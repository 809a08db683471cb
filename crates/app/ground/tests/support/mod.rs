//! A ground with a carrier over the in-process link, its remote's half played by the test, and small origins on
//! loopback that say exactly what they are told to.
#![allow(dead_code, unreachable_pub)] // each test binary uses its own part
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use farhop_events::{Bus, Event};
use farhop_ground::Ground;
use farhop_htotp::frame::{Coding, Failure, Resume, Validating};
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Profile;
use farhop_settings::GroundSettings;
use farhop_squeeze::HopDecoder;
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link;
use farhop_transport::{Connection, tcp};
use http::{HeaderMap, HeaderName, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A ground and the remote's end of its carrier.
pub struct Pair {
    pub ground: Ground,
    pub bus: Bus,
    pub hop: Hop,
    _dialer: Dialer,
    pub link: link::Link,
    next: Mutex<u64>,
}

impl Pair {
    /// Over a link without effect, to origins on loopback, with `sets` over the default settings. With
    /// `FARHOP_TEST_CARRIER=tcp` in the environment the carrier is one over TCP.
    pub async fn new(sets: &[&str]) -> Pair {
        Pair::that_is(false, Config::default(), sets).await
    }

    /// The same with a remote that keeps streams for another carrier, and tells what it has taken.
    pub async fn lasting(sets: &[&str]) -> Pair {
        Pair::that_is(true, Config::default(), sets).await
    }

    /// With a remote that undoes the codings of origins and deltas of several frames, and keeps streams for another carrier.
    pub async fn undoing(sets: &[&str]) -> Pair {
        Pair::that_is(true, Config { undoes: true, ..Config::default() }, sets).await
    }

    async fn that_is(lasting: bool, config: Config, sets: &[&str]) -> Pair {
        let profile = Profile::named("none").unwrap();
        let plan = PathPlan::for_profile(&profile);
        let (remote_id, ground_id) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
        let (ground_key, remote_key) = (ground_id.public(), remote_id.public());
        let (link, at_ground, at_remote) = link::pair(&profile, 1);
        let addr = at_ground.addr();
        let peers = Peers::new([("ship".to_string(), remote_key)]).unwrap();
        let mut listener = Listener::new(
            at_ground,
            ground_id.clone(),
            peers.clone(),
            plan,
            plan.default_choice(End::Ground),
        )
        .unwrap();
        let dialer =
            Dialer::new(at_remote, remote_id.clone(), plan, plan.default_choice(End::Remote)).unwrap();
        let bus = Bus::new();
        let ground = Ground::new(settings(sets), 1, bus.clone()).unwrap();
        let keys = [ground_key];
        let (serving, near): (_, Connection) = if over_tcp() {
            let options = |end| tcp::Options::new(&plan, end, None).unwrap();
            let any = "127.0.0.1:0".parse().unwrap();
            let mut listener =
                tcp::Listener::bind(any, ground_id, peers, plan, options(End::Ground)).unwrap();
            let dialer = tcp::Dialer::new(remote_id, plan, options(End::Remote), 2);
            let addr = listener.local_addr().unwrap();
            let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
            // Further lanes join for as long as it is listened.
            tokio::spawn(async move { while listener.accept().await.is_ok() {} });
            let accepted = far.unwrap();
            ((Connection::from(accepted.connection), accepted.name), near.unwrap().into())
        } else {
            let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
            let accepted = far.unwrap().unwrap();
            ((accepted.connection.into(), accepted.name), near.unwrap().into())
        };
        let (served, (connection, name)) = (ground.clone(), serving);
        tokio::spawn(async move {
            let _listener = listener;
            served.serve_carrier(connection, name).await;
        });
        let hop = match lasting {
            true => Hop::start_lasting(near, Role::Remote, config, &plan),
            false => Hop::start(near, Role::Remote, config, &plan),
        };
        Pair { ground, bus, hop, _dialer: dialer, link, next: Mutex::new(1) }
    }

    pub fn ask(&self, head: &RequestHead, resume: Option<Resume>) -> (Sender, Receiver) {
        let mut next = self.next.lock().unwrap();
        *next += 1;
        self.hop.ask(Ask { exchange: *next, user: 7, resume, ..Ask::default() }, head)
    }

    /// Asks without a body and takes the whole answer.
    pub async fn get(&self, head: &RequestHead) -> Reply {
        self.get_from(head, None).await
    }

    pub async fn get_from(&self, head: &RequestHead, resume: Option<Resume>) -> Reply {
        let (mut sender, mut receiver) = self.ask(head, resume);
        sender.finish(None);
        Reply::take(&mut receiver).await
    }
}

/// Whether carriers of tests go over TCP. The link in the process, which a test may cut, carries QUIC alone.
pub fn over_tcp() -> bool {
    std::env::var("FARHOP_TEST_CARRIER").is_ok_and(|carrier| carrier == "tcp")
}

pub fn settings(sets: &[&str]) -> GroundSettings {
    let text = "allow = ['127.0.0.0/8']\nlink.profile = 'none'\n[[remote]]\nname = 'ship'\nkeys = ['made in the test']";
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    farhop_settings::parse(text, Path::new("ground.toml"), &sets).unwrap()
}

/// What arrived for one request, body decoded from the hop's coding.
#[derive(Debug, Default)]
pub struct Reply {
    pub informed: Vec<ResponseHead>,
    /// Each with the number of body bytes that had arrived before it.
    pub promises: Vec<(u64, RequestHead, usize)>,
    /// What is asked about in place of a promise: its number, and the entry.
    pub validating: Vec<(u64, u64)>,
    pub head: Option<ResponseHead>,
    pub coding: Coding,
    pub resumed: Option<u64>,
    pub body: Vec<u8>,
    /// Body bytes as they crossed.
    pub crossed: usize,
    pub trailers: Option<HeaderMap>,
    pub failure: Option<Failure>,
    /// The body came to its end.
    pub whole: bool,
}

impl Reply {
    pub async fn take(receiver: &mut Receiver) -> Reply {
        let mut reply = Reply::default();
        let mut decoder = HopDecoder::default();
        loop {
            match receiver.next().await {
                Arrival::Informed(head) => reply.informed.push(head),
                Arrival::Promised { promise, head, .. } => {
                    reply.promises.push((promise, head, reply.body.len()));
                }
                Arrival::Validating(Validating { promise, entry, .. }) => {
                    reply.validating.push((promise, entry))
                }
                Arrival::Answered { head, coding, resumed } => {
                    decoder = match coding {
                        Coding::Brotli => HopDecoder::brotli(),
                        Coding::Gzip => HopDecoder::gzip(),
                        _ => HopDecoder::default(),
                    };
                    (reply.head, reply.coding, reply.resumed) = (Some(head), coding, resumed);
                }
                Arrival::Body(bytes) => reply.add(&mut decoder, bytes),
                Arrival::Trailers(fields) => reply.trailers = Some(fields),
                Arrival::Ended => {
                    reply.whole = reply.coding == Coding::Identity || decoder.is_complete();
                    return reply;
                }
                Arrival::Failed(failure) => {
                    reply.failure = Some(failure);
                    return reply;
                }
                Arrival::Reset(_) | Arrival::Lost | Arrival::TunnelOpened | Arrival::Urgent => return reply,
            }
        }
    }

    fn add(&mut self, decoder: &mut HopDecoder, bytes: Bytes) {
        self.crossed += bytes.len();
        if self.coding == Coding::Identity {
            return self.body.extend_from_slice(&bytes);
        }
        decoder.feed(bytes);
        while let Some(piece) = decoder.pull().unwrap() {
            self.body.extend_from_slice(&piece);
        }
    }

    pub fn head(&self) -> &ResponseHead {
        self.head.as_ref().unwrap_or_else(|| panic!("no answer: {self:?}"))
    }

    pub fn failure(&self) -> &Failure {
        self.failure.as_ref().unwrap_or_else(|| panic!("no failure: {:?}", self.head))
    }

    pub fn promised_paths(&self) -> Vec<&str> {
        self.promises.iter().map(|(_, head, _)| head.path.as_str()).collect()
    }
}

pub fn request(method: Method, authority: impl ToString, path: &str, fields: &[(&str, &str)]) -> RequestHead {
    let fields =
        fields.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()));
    RequestHead {
        method,
        scheme: "http".into(),
        authority: authority.to_string(),
        path: path.into(),
        fields: fields.collect(),
    }
}

pub fn get(origin: &Origin, path: &str) -> RequestHead {
    request(Method::GET, origin.addr, path, &[("accept-encoding", "gzip, deflate")])
}

/// A request for a document, as Chromium sends it over plain HTTP.
pub fn navigate(origin: &Origin, path: &str) -> RequestHead {
    let accept =
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8";
    let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
    let fields = [
        ("upgrade-insecure-requests", "1"),
        ("user-agent", agent),
        ("accept", accept),
        ("accept-encoding", "gzip, deflate"),
        ("accept-language", "en-US,en;q=0.9"),
        ("cookie", "session=1"),
    ];
    request(Method::GET, origin.addr, path, &fields)
}

/// One connection to an origin, with a request head read off it.
pub struct Peer {
    pub stream: TcpStream,
    /// As it came, in lower case.
    pub head: String,
    /// Read beyond the head.
    pub rest: Vec<u8>,
}

impl Peer {
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        // The test may have ended the connection on purpose.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// A whole response.
    pub async fn answer(&mut self, fields: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let fields: String = fields
            .split('|')
            .filter(|field| !field.is_empty())
            .map(|field| format!("{}\r\n", field.trim()))
            .collect();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{fields}\r\n", body.len());
        self.say([head.as_bytes(), body].concat()).await;
    }

    /// More of what the client sends; empty at its end.
    pub async fn read(&mut self) -> Vec<u8> {
        if !self.rest.is_empty() {
            return std::mem::take(&mut self.rest);
        }
        let mut buffer = vec![0; 64 * 1024];
        let length = self.stream.read(&mut buffer).await.unwrap_or(0);
        buffer.truncate(length);
        buffer
    }

    pub async fn read_until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        while !all.ends_with(end) {
            let more = self.read().await;
            assert!(!more.is_empty(), "ended after {:?}", String::from_utf8_lossy(&all));
            all.extend(more);
        }
        all
    }
}

type Handled = Pin<Box<dyn Future<Output = Option<Peer>> + Send>>;

/// An origin; `Some` from its handler keeps the connection.
pub struct Origin {
    pub addr: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    pub async fn start<H, F>(handler: H) -> Origin
    where
        H: Fn(Peer) -> F + Send + Sync + 'static,
        F: Future<Output = Option<Peer>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let handler: Arc<dyn Fn(Peer) -> Handled + Send + Sync> =
            Arc::new(move |peer| Box::pin(handler(peer)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (handler, log) = (Arc::clone(&handler), Arc::clone(&log));
                tokio::spawn(async move {
                    let mut next = Some((stream, Vec::new()));
                    while let Some((stream, rest)) = next.take() {
                        let Some(peer) = read_head(stream, rest).await else { return };
                        log.lock().unwrap().push(peer.head.clone());
                        next = handler(peer).await.map(|peer| (peer.stream, peer.rest));
                    }
                });
            }
        });
        Origin { addr, requests }
    }

    /// Heads of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub fn paths(&self) -> Vec<String> {
        self.requests().iter().map(|head| head.split(' ').nth(1).unwrap().to_string()).collect()
    }
}

async fn read_head(mut stream: TcpStream, mut read: Vec<u8>) -> Option<Peer> {
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Some(Peer { stream, head: String::from_utf8(read).unwrap().to_lowercase(), rest });
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

/// The next event that `wanted` picks.
pub async fn event<T>(
    subscription: &mut farhop_events::Subscription,
    wanted: impl Fn(&Event) -> Option<T>,
) -> T {
    loop {
        let stamped = subscription.next().await.unwrap().unwrap();
        if let Some(found) = wanted(&stamped.event) {
            return found;
        }
    }
}

pub fn gzip(body: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// Bytes that do not compress and differ from place to place.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// An origin with the page at `/`, and for anything else what `answer` says.
pub async fn site<F>(fields: &'static str, page: impl Into<Vec<u8>>, answer: fn(Peer) -> F) -> Origin
where
    F: Future<Output = Option<Peer>> + Send + 'static,
{
    let page = page.into();
    Origin::start(move |mut peer: Peer| {
        let page = page.clone();
        async move {
            if peer.path() != "/" {
                return answer(peer).await;
            }
            peer.answer(fields, page).await;
            Some(peer)
        }
    })
    .await
}

/// The next push: which promise it keeps, and what it brings.
pub async fn pushed(pair: &Pair) -> (u64, Reply) {
    loop {
        if let Some(Incoming::Push { promise, mut receiver }) = pair.hop.accept().await {
            return (promise, Reply::take(&mut receiver).await);
        }
    }
}
