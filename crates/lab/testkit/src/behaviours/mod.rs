//! RFC 9111 as a client meets it: for each behaviour an origin of its own that answers what the table says, requests through a
//! proxy, in the clear or inside TLS that the proxy looks into, and what has to come. Knows nothing of caches.

mod table;

use std::convert::Infallible;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::conformance::secure::{client, identity, tunnel};
use table::{Behaviour, Origin, Step, all};

/// No answer takes so long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// From an answer to the next request. A cache may have an entry a moment after its client has the last byte, and no behaviour
/// is about that moment.
const PAUSE: Duration = Duration::from_millis(100);

/// What the proxy under test has to have in its settings: some behaviours are of a field for chosen caches (RFC 9213) that it
/// obeys, others of such a one that it does not.
pub const SETTING: &str = "ground.origin.targets=Example-Cache-Control";

/// What became of a behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Where it is said, and what.
    pub behaviour: String,
    /// What was wrong, if anything was.
    pub wrong: Option<String>,
}

/// The origins of all behaviours, in the clear or over TLS. They end when this is dropped.
#[derive(Debug)]
pub struct Origins {
    origins: Vec<(SocketAddr, Arc<Mutex<Seen>>)>,
    root: Option<String>,
    _serving: JoinSet<()>,
}

/// The heads of the requests that reached an origin, in lower case.
type Seen = Vec<String>;

/// How many behaviours there are.
pub fn count() -> usize {
    all().count()
}

impl Origins {
    /// Starts one for each behaviour, on loopback.
    ///
    /// # Panics
    /// No socket or certificate is to be had.
    pub async fn start(secure: bool) -> Origins {
        let (acceptor, root) = match secure.then(|| identity([Ipv4Addr::LOCALHOST.into()])) {
            Some((config, root)) => (Some(TlsAcceptor::from(config)), Some(root)),
            None => (None, None),
        };
        let mut serving = JoinSet::new();
        let mut origins = Vec::new();
        for behaviour in all() {
            let listener =
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has free ports");
            let address = listener.local_addr().expect("a bound listener has an address");
            let seen = Arc::default();
            origins.push((address, Arc::clone(&seen)));
            serving.spawn(accept(listener, acceptor.clone(), behaviour, seen));
        }
        Origins { origins, root, _serving: serving }
    }

    /// The certificate of their CA (PEM), which the proxy has to trust; empty for origins in the clear.
    pub fn root(&self) -> &str {
        self.root.as_deref().unwrap_or_default()
    }

    /// Goes through every behaviour through `proxy`, which serves clients from 127/8 and fetches from 127/8; origins over TLS are
    /// asked inside TLS that the proxy looks into with the CA whose certificate is `authority` (PEM).
    ///
    /// # Panics
    /// The proxy cannot be reached, or does not look into the connection.
    pub async fn run(&self, proxy: SocketAddr, authority: &str) -> Vec<Verdict> {
        let trust = self.root.as_ref().map(|_| client(authority, b"http/1.1"));
        let mut running = JoinSet::new();
        for (place, (behaviour, (origin, seen))) in all().zip(&self.origins).enumerate() {
            let (trust, origin, seen) = (trust.clone(), *origin, Arc::clone(seen));
            running.spawn(async move {
                let way = Way { proxy, origin, trust };
                let wrong = go_through(behaviour, &way, &seen).await.err();
                (place, Verdict { behaviour: behaviour.to_string(), wrong })
            });
        }
        let mut verdicts = Vec::new();
        while let Some(ended) = running.join_next().await {
            verdicts.push(ended.expect("a behaviour ends with a verdict"));
        }
        verdicts.sort_by_key(|(place, _)| *place);
        verdicts.into_iter().map(|(_, verdict)| verdict).collect()
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.section, self.name)
    }
}

/// From a client to an origin.
struct Way {
    proxy: SocketAddr,
    origin: SocketAddr,
    trust: Option<Arc<rustls::ClientConfig>>,
}

async fn go_through(behaviour: &Behaviour, way: &Way, seen: &Mutex<Seen>) -> Result<(), String> {
    for (number, step) in behaviour.course.iter().enumerate() {
        if number > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let before = locked(seen).len();
        let answer = tokio::time::timeout(PATIENCE, way.ask(step)).await;
        let answer = answer.unwrap_or_else(|_| Err("no answer came".into()));
        let judged = answer.and_then(|(status, fields, body)| {
            judge_answer(step, status, &fields, &body)?;
            judge_origin(step, locked(seen).get(before..).unwrap_or_default())
        });
        judged.map_err(|wrong| format!("step {}: {wrong}", number + 1))?;
    }
    Ok(())
}

fn judge_answer(step: &Step, status: StatusCode, fields: &HeaderMap, body: &str) -> Result<(), String> {
    if status.as_u16() != step.status || (step.body != "*" && body != step.body) {
        return Err(format!("{status} '{body}', not {} '{}'", step.status, step.body));
    }
    let Some((name, text)) = step.has else { return Ok(()) };
    let values: Vec<_> =
        fields.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let right =
        if text.is_empty() { values.is_empty() } else { values.iter().any(|value| value.contains(text)) };
    if right { Ok(()) } else { Err(format!("{name} is {values:?}, not '{text}'")) }
}

fn judge_origin(step: &Step, new: &[String]) -> Result<(), String> {
    let right = match step.origin {
        Origin::Idle => new.is_empty(),
        Origin::Asked => !new.is_empty(),
        Origin::AskedWith(line) => new.iter().any(|head| head.lines().any(|known| known == line)),
        Origin::Any => true,
    };
    if right { Ok(()) } else { Err(format!("the origin saw {new:?}, not {:?}", step.origin)) }
}

impl Way {
    /// A connection to the proxy from the address of this user.
    async fn connect(&self, who: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket is to be had");
        socket.bind((Ipv4Addr::new(127, 0, 0, who), 0).into()).expect("loopback has free ports");
        socket.connect(self.proxy).await.expect("the proxy accepts")
    }

    /// One exchange on a connection of its own.
    async fn ask(&self, step: &Step) -> Result<(StatusCode, HeaderMap, String), String> {
        let stream = self.connect(step.who).await;
        let (stream, target): (Box<dyn Stream>, String) = match &self.trust {
            None => (Box::new(stream), format!("http://{}/", self.origin)),
            Some(trust) => {
                let stream = tunnel(stream, self.origin).await;
                let name = self.origin.ip().into();
                let stream = TlsConnector::from(Arc::clone(trust)).connect(name, stream).await;
                (Box::new(stream.map_err(|error| format!("TLS: {error}"))?), "/".into())
            }
        };
        let mut request =
            Request::builder().method(step.method).uri(target).header(header::HOST, self.origin.to_string());
        for (name, value) in step.fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::<Bytes>::default()).expect("the table's fields are valid");
        let said = |error: hyper::Error| error.to_string();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(said)?;
        let connection = tokio::spawn(connection);
        let (head, body) = sender.send_request(request).await.map_err(said)?.into_parts();
        let body = body.collect().await.map_err(said)?.to_bytes();
        connection.abort();
        Ok((head.status, head.headers, String::from_utf8_lossy(&body).into_owned()))
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    behaviour: &'static Behaviour,
    seen: Arc<Mutex<Seen>>,
) {
    // Dropped with this task, which ends every connection.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
        connections.spawn(async move {
            let stream: Box<dyn Stream> = match acceptor {
                None => Box::new(stream),
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => Box::new(stream),
                    Err(_) => return, // a connection prepared and not used
                },
            };
            let service = hyper::service::service_fn(move |request| {
                let answer = answer(behaviour, &seen, &request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let server = hyper::server::conn::http1::Builder::new();
            let _ = server.serve_connection(TokioIo::new(stream), service).await; // a client that leaves is no error
        });
    }
}

fn answer(behaviour: &Behaviour, seen: &Mutex<Seen>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let mut head = format!("{} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        head.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
    }
    let number = {
        let mut seen = locked(seen);
        seen.push(head.to_ascii_lowercase());
        seen.len() - 1
    };
    let last = behaviour.answers.len().saturating_sub(1);
    let (head, body) = behaviour.answers[number.min(last)];
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.get(..3)?.parse().ok())
        .and_then(|code| StatusCode::from_u16(code).ok());
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status.expect("the table's statuses are valid");
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("the table's names are valid");
        response.headers_mut().append(name, HeaderValue::from_static(value));
    }
    response
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("no holder of this lock panics")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> Step {
        all().next().unwrap().course[1]
    }

    #[test]
    fn an_answer_of_another_status_body_or_field_is_wrong() {
        let fields = |text| {
            HeaderMap::from_iter([(HeaderName::from_static("cache-status"), HeaderValue::from_static(text))])
        };
        assert!(judge_answer(&step(), StatusCode::OK, &fields("x; hit"), "a").is_ok());
        assert!(judge_answer(&step(), StatusCode::OK, &fields("x; hit"), "b").is_err());
        assert!(judge_answer(&step(), StatusCode::NOT_FOUND, &fields("x; hit"), "a").is_err());
        assert!(judge_answer(&step(), StatusCode::OK, &fields("x"), "a").is_err());
        let without = Step { has: Some(("cache-status", "")), ..step() };
        assert!(judge_answer(&without, StatusCode::OK, &fields("x"), "a").is_err());
        assert!(judge_answer(&without, StatusCode::OK, &HeaderMap::new(), "a").is_ok());
    }

    #[test]
    fn an_origin_that_was_asked_when_it_need_not_be_is_told() {
        let new = ["get /\nif-none-match: \"a\"\n".to_owned()];
        assert!(judge_origin(&step(), &[]).is_ok() && judge_origin(&step(), &new).is_err());
        let asked = |origin| Step { origin, ..step() };
        assert!(judge_origin(&asked(Origin::Asked), &[]).is_err());
        assert!(judge_origin(&asked(Origin::AskedWith("if-none-match: \"a\"")), &new).is_ok());
        assert!(judge_origin(&asked(Origin::AskedWith("if-none-match: \"b\"")), &new).is_err());
    }
}
