//! The judge of histories has to be right about proxies that are simply right, and simply wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use farhop_testkit::histories::{Histories, Outcome, live};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

type Held = Arc<Mutex<HashMap<String, Response<Full<Bytes>>>>>;

/// A proxy that asks every time, or that gives everyone what anyone got before.
async fn proxy(keeps: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let held = Held::default();
        while let Ok((stream, _)) = listener.accept().await {
            let held = held.clone();
            let service = hyper::service::service_fn(move |request| pass(held.clone(), keeps, request));
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    address
}

async fn pass(
    held: Held,
    keeps: bool,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let url = request.uri().to_string();
    let may_keep = keeps && request.method() == Method::GET;
    let known = held.lock().unwrap().get(&url).cloned();
    if let Some(known) = known.filter(|_| may_keep) {
        return Ok(known);
    }
    let stream = TcpStream::connect(request.uri().authority().unwrap().as_str()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let (head, body) = sender.send_request(Request::from_parts(head, Full::new(body))).await?.into_parts();
    let response = Response::from_parts(head, Full::new(body.collect().await?.to_bytes()));
    if may_keep {
        held.lock().unwrap().insert(url, response.clone());
    }
    Ok(response)
}

async fn lived(keeps: bool, first: u64, count: u64) -> Outcome {
    live(proxy(keeps).await, Histories { first, count, concurrent: 4 }).await
}

#[tokio::test]
async fn a_proxy_that_asks_every_time_is_never_wrong() {
    let outcome = lived(false, 0, 60).await;
    assert_eq!(outcome.wrong, Vec::<String>::new());
    assert!(outcome.histories == 60 && outcome.answers > 500 && outcome.answers <= outcome.at_origin);
}

#[tokio::test]
async fn a_proxy_that_gives_everyone_what_anyone_got_is_found_out() {
    // So much is wrong that only the first histories of each hundred are told of.
    let mut found = String::new();
    for first in [0, 100, 200, 300] {
        found += &lived(true, first, 60).await.wrong.join("\n");
    }
    for kind in ["FOREIGN: ", "WRONG: ", "TWICE: "] {
        assert!(found.contains(kind), "{kind} in {found}");
    }
}
