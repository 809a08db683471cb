//! Clients that ask, and hold every answer against what the site is and was.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Kind, Site, USER, VERSION, length, seed};
use crate::histories::random::Random;
use crate::pattern::bytes_at;

/// No answer takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(90);
/// Findings that are kept; what follows the first few says little.
const KEPT: usize = 20;
/// Users, each at an address of its own.
const USERS: u64 = 3;

/// What has been found.
#[derive(Debug, Default, Clone)]
pub struct Outcome {
    /// Answers that came whole and were right.
    pub right: u64,
    /// Of these, without a request having reached the origin for them, as `Cache-Status` has it.
    pub hits: u64,
    /// Exchanges that broke off.
    pub cut: u64,
    /// What was asked for in the first of them, and how they broke off.
    pub cuts: Vec<String>,
    /// Errors of the proxy's own.
    pub errors: u64,
    /// What was wrong.
    pub wrong: Vec<String>,
}

impl Outcome {
    /// Adds what another found.
    pub fn add(&mut self, other: Outcome) {
        self.right += other.right;
        self.hits += other.hits;
        self.cut += other.cut;
        self.cuts.extend(other.cuts);
        self.cuts.truncate(KEPT);
        self.errors += other.errors;
        self.wrong.extend(other.wrong);
        self.wrong.truncate(KEPT);
    }
}

/// Clients at work.
#[derive(Debug)]
pub struct Load {
    found: Arc<Mutex<Outcome>>,
    over: watch::Sender<bool>,
    answers: watch::Receiver<u64>,
    clients: JoinSet<()>,
}

struct Client {
    site: Arc<Site>,
    at: SocketAddr,
    proxy: SocketAddr,
    user: u64,
    random: Random,
    found: Arc<Mutex<Outcome>>,
    answers: watch::Sender<u64>,
    over: watch::Receiver<bool>,
}

/// An answer that came whole.
struct Came {
    status: StatusCode,
    fields: HeaderMap,
    body: Bytes,
}

/// Why there is none.
enum Failed {
    /// Nobody listens.
    Gone,
    Cut(String),
    Late,
}

impl Failed {
    fn cut(when: &str, error: impl std::fmt::Display) -> Failed {
        Failed::Cut(format!("{when}: {error}"))
    }
}

impl Load {
    pub(super) fn begin(
        at: SocketAddr,
        site: Arc<Site>,
        proxy: SocketAddr,
        clients: u8,
        number: u64,
    ) -> Load {
        let found = Arc::<Mutex<Outcome>>::default();
        let (over, ends) = watch::channel(false);
        let (sender, answers) = watch::channel(0);
        let mut random = Random::new(number);
        let mut tasks = JoinSet::new();
        for client in 0..u64::from(clients) {
            let (site, found, over) = (Arc::clone(&site), Arc::clone(&found), ends.clone());
            let (user, answers, random) = (1 + client % USERS, sender.clone(), random.fork());
            let mut client = Client { site, at, proxy, user, random, found, answers, over };
            tasks.spawn(async move { client.go_on().await });
        }
        Load { found, over, answers, clients: tasks }
    }

    /// Waits until so many answers have come, or none will.
    pub async fn answers(&mut self, enough: u64) {
        // Its senders go with the clients.
        let _ = self.answers.wait_for(|came| *came >= enough).await;
    }

    /// Asks no more, and tells what was found.
    pub async fn end(mut self) -> Outcome {
        self.over.send_replace(true);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("a client does not panic");
        }
        std::mem::take(&mut *self.found.lock().expect("no holder of this lock panics"))
    }
}

impl Client {
    async fn go_on(&mut self) {
        while !*self.over.borrow() {
            let thing = self.random.below(self.site.things().len() as u64);
            let failed = match self.random.below(12) {
                0 => self.post(thing).await,
                1 | 2 => self.get(thing, true).await,
                _ => self.get(thing, false).await,
            };
            if let Err(Failed::Gone) = failed {
                // The proxy is dead: there is nothing more to find out. An error means that the load is dropped.
                let _ = self.over.wait_for(|over| *over).await;
                return;
            }
        }
    }

    fn found(&self) -> MutexGuard<'_, Outcome> {
        self.found.lock().expect("no holder of this lock panics")
    }

    fn wrong(&self, what: String) {
        let mut found = self.found();
        if found.wrong.len() < KEPT {
            found.wrong.push(what);
        }
    }

    async fn post(&mut self, thing: u64) -> Result<(), Failed> {
        let came = self.send(thing, Method::POST, None).await?;
        if let (StatusCode::OK, Some(version)) = (came.status, number(&came.fields, &VERSION)) {
            let told = &mut self.site.things()[thing as usize].told;
            *told = version.max(*told);
        }
        Ok(())
    }

    async fn get(&mut self, thing: u64, part: bool) -> Result<(), Failed> {
        let before = self.site.things()[thing as usize];
        let part = part.then(|| {
            let first = self.random.below(length(thing, 0) as u64);
            first..first + 1 + self.random.below(5_000)
        });
        let came = self.send(thing, Method::GET, part.clone()).await?;
        let now = self.site.things()[thing as usize].now;
        let least = if Kind::of(thing).is_current() { before.now } else { before.told };
        if came.status.is_server_error() {
            self.found().errors += 1;
            return Ok(());
        }
        match self.judge(thing, part, &came, least..now + 1) {
            Ok(()) => {
                let is_hit = came.fields.get_all("cache-status").iter();
                let is_hit =
                    is_hit.filter_map(|value| value.to_str().ok()).any(|value| value.contains("; hit"));
                let mut found = self.found();
                found.right += 1;
                found.hits += u64::from(is_hit);
            }
            Err(what) => {
                let Came { status, fields, body } = came;
                let length = body.len();
                self.wrong(format!(
                    "/{thing} for user {}: {what}; {status}, {length} bytes, {fields:?}",
                    self.user
                ));
            }
        }
        Ok(())
    }

    fn judge(
        &self,
        thing: u64,
        part: Option<Range<u64>>,
        came: &Came,
        versions: Range<u64>,
    ) -> Result<(), String> {
        let version = number(&came.fields, &VERSION).ok_or("it has no version")?;
        if !versions.contains(&version) {
            return Err(format!("version {version} is none of {versions:?}"));
        }
        if Kind::of(thing) == Kind::Private && number(&came.fields, &USER) != Some(self.user) {
            return Err("it is another user's".into());
        }
        let whole = length(thing, version) as u64;
        let of = match (came.status, part) {
            (StatusCode::OK, _) => 0..whole,
            (StatusCode::PARTIAL_CONTENT, Some(part)) => part.start..part.end.min(whole),
            _ => return Err("that is not what was asked for".into()),
        };
        if came.status == StatusCode::PARTIAL_CONTENT {
            let range = came.fields.get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
            let expected = format!("bytes {}-{}/{whole}", of.start, of.end - 1);
            if range != Some(&*expected) {
                return Err(format!("{range:?} in place of {expected}"));
            }
        }
        let right = bytes_at(seed(thing, version, self.user), of.start, (of.end - of.start) as usize);
        if came.body == right { Ok(()) } else { Err(format!("the bytes are not those of version {version}")) }
    }

    async fn send(&mut self, thing: u64, method: Method, part: Option<Range<u64>>) -> Result<Came, Failed> {
        let asked = format!("{method} /{thing} for user {}, part {part:?}", self.user);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}/{thing}", self.at))
            .header(header::HOST, self.at.to_string())
            .header(USER, self.user);
        if let Some(part) = part {
            request = request.header(header::RANGE, format!("bytes={}-{}", part.start, part.end - 1));
        }
        let request = request.body(Empty::<Bytes>::new()).expect("every field is valid");
        let came =
            timeout(PATIENCE, exchange(self.proxy, self.user, request)).await.unwrap_or(Err(Failed::Late));
        match &came {
            Ok(_) => self.answers.send_modify(|answers| *answers += 1),
            Err(Failed::Late) => self.wrong(format!("/{thing}: no answer in {} s", PATIENCE.as_secs())),
            Err(Failed::Cut(how)) => {
                let mut found = self.found();
                found.cut += 1;
                if found.cuts.len() < KEPT {
                    found.cuts.push(format!("{asked}: {how}"));
                }
            }
            Err(Failed::Gone) => {}
        }
        came
    }
}

async fn exchange(proxy: SocketAddr, user: u64, request: Request<Empty<Bytes>>) -> Result<Came, Failed> {
    let socket = TcpSocket::new_v4().map_err(|error| Failed::cut("a socket", error))?;
    let own = Ipv4Addr::new(127, 35, 0, user as u8);
    socket.bind((own, 0).into()).map_err(|error| Failed::cut("its address", error))?;
    let stream = socket.connect(proxy).await.map_err(|_| Failed::Gone)?;
    let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = made.map_err(|error| Failed::cut("its beginning", error))?;
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| Failed::cut("before the head", error))?;
    let (head, body) = answer.into_parts();
    let within =
        |error| Failed::cut(&format!("within the body of {} {:?}", head.status, head.headers), error);
    let body = body.collect().await.map_err(within)?.to_bytes();
    Ok(Came { status: head.status, fields: head.headers, body })
}

fn number(fields: &HeaderMap, name: &header::HeaderName) -> Option<u64> {
    fields.get(name)?.to_str().ok()?.parse().ok()
}
