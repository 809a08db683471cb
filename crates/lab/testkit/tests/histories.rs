//! The judge of histories has to be right about proxies that are simply right, and simply wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use farhop_testkit::histories::{Histories, Outcome, live};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// What a proxy does with answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It asks every time.
    Asks,
    /// It gives everyone what anyone got before.
    GivesAll,
    /// It gives each user again what is old when it comes, and right in everything else: for as long as this after it was asked for.
    GivesAged(Duration),
}

/// Answers by what was asked, each with when that was.
type Held = Arc<Mutex<HashMap<String, (Instant, Response<Full<Bytes>>)>>>;

async fn proxy(manner: Manner) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let held = Held::default();
        while let Ok((stream, _)) = listener.accept().await {
            let held = held.clone();
            let service = hyper::service::service_fn(move |request| pass(held.clone(), manner, request));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    address
}

impl Manner {
    /// What a request is known by; nothing for one that only the origin answers.
    fn key(self, request: &Request<Incoming>) -> Option<String> {
        let url = request.uri();
        let has = |name: &str| request.headers().contains_key(name);
        let is_plain = || {
            let own = ["cache-control", "range", "if-none-match", "if-modified-since"];
            own.iter().all(|name| !has(name))
        };
        let known = match self {
            Manner::Asks => None,
            Manner::GivesAll => Some(url.to_string()),
            Manner::GivesAged(_) => is_plain().then(|| {
                let by = ["cookie", "accept", "accept-language", "authorization"];
                let by = by.map(|name| format!("{:?}", request.headers().get(name)));
                format!("{url} {}", by.join(" "))
            }),
        };
        known.filter(|_| request.method() == Method::GET)
    }

    fn gives(self, asked: Instant) -> bool {
        match self {
            Manner::Asks => false,
            Manner::GivesAll => true,
            Manner::GivesAged(lasts) => asked.elapsed() < lasts,
        }
    }

    fn keeps(self, response: &Response<Full<Bytes>>) -> bool {
        match self {
            Manner::Asks => false,
            Manner::GivesAll => true,
            Manner::GivesAged(_) => response.headers().contains_key("age"),
        }
    }
}

async fn pass(
    held: Held,
    manner: Manner,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (key, url, asked) = (manner.key(&request), request.uri().to_string(), Instant::now());
    let known = key.as_ref().and_then(|key| held.lock().unwrap().get(key).cloned());
    if let Some((_, known)) = known.filter(|(asked, _)| manner.gives(*asked)) {
        return Ok(known);
    }
    let stream = TcpStream::connect(request.uri().authority().unwrap().as_str()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (head, body) = request.into_parts();
    if head.method == Method::POST && manner != Manner::GivesAll {
        held.lock().unwrap().retain(|key, _| !key.starts_with(&format!("{url} ")));
    }
    let body = body.collect().await?.to_bytes();
    let (head, body) = sender.send_request(Request::from_parts(head, Full::new(body))).await?.into_parts();
    let response = Response::from_parts(head, Full::new(body.collect().await?.to_bytes()));
    if let Some(key) = key.filter(|_| manner.keeps(&response)) {
        held.lock().unwrap().insert(key, (asked, response.clone()));
    }
    Ok(response)
}

async fn lived(manner: Manner, wanted: Histories) -> Outcome {
    live(proxy(manner).await, wanted).await
}

fn at_once(first: u64, count: u64) -> Histories {
    Histories { first, count, concurrent: 4, waiting: 0 }
}

/// Histories that wait for some seconds, all beside each other.
const WAITING: Histories = Histories { first: 0, count: 60, concurrent: 60, waiting: 1 };

#[tokio::test]
async fn a_proxy_that_asks_every_time_is_never_wrong() {
    let outcome = lived(Manner::Asks, at_once(0, 60)).await;
    assert_eq!(outcome.wrong, Vec::<String>::new());
    assert!(outcome.histories == 60 && outcome.answers > 500 && outcome.answers <= outcome.at_origin);
}

#[tokio::test]
async fn a_proxy_that_gives_everyone_what_anyone_got_is_found_out() {
    // So much is wrong that only the first histories of each hundred are told of.
    let mut found = String::new();
    for first in [0, 100, 200, 300] {
        found += &lived(Manner::GivesAll, at_once(first, 60)).await.wrong.join("\n");
    }
    for kind in ["FOREIGN: ", "WRONG: ", "TWICE: "] {
        assert!(found.contains(kind), "{kind} in {found}");
    }
}

#[tokio::test]
async fn a_proxy_that_gives_what_lasts_for_as_long_as_that_lasts_is_never_wrong() {
    let outcome = lived(Manner::GivesAged(Duration::from_secs(2)), WAITING).await;
    assert_eq!(outcome.wrong, Vec::<String>::new());
    assert_eq!(outcome.histories, WAITING.count);
}

#[tokio::test]
async fn a_proxy_that_gives_it_for_longer_is_found_out_and_no_other_fault_with_it() {
    let outcome = lived(Manner::GivesAged(Duration::from_secs(3600)), WAITING).await;
    assert!(!outcome.wrong.is_empty());
    assert!(outcome.wrong.iter().all(|wrong| wrong.contains("STALE: ")), "{}", outcome.wrong.join("\n"));
}
