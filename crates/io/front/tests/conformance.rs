//! HTTP/2 as the corpus of malformed and ambiguous messages has it, frame by frame: what would be handed on, and what the
//! client is told.

#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

use std::sync::Arc;

use farhop_front::connection::Protocol;
use farhop_front::{Connection, Exchange, Head, Scope, Settings, Target};
use farhop_testkit::conformance::h2::{Log, run, told};
use farhop_testkit::conformance::{assert_right, only};
use http::{HeaderMap, StatusCode};
use tokio::io::DuplexStream;

const AUTHORITY: &str = "127.0.0.1:8443";

/// A connection whose requests are answered with what they are.
async fn open() -> (DuplexStream, Log) {
    let (client, server) = tokio::io::duplex(1 << 20);
    let scope = Scope::new("127.0.0.1", 8443).unwrap();
    let mut connection = Connection::within(server, Protocol::Http2, scope, Arc::new(Settings::default()));
    let log = Log::default();
    let seen = log.clone();
    tokio::spawn(async move {
        while let Ok(Some(exchange)) = connection.next_request().await {
            tokio::spawn(answer(exchange, seen.clone()));
        }
    });
    (client, log)
}

async fn answer(exchange: Exchange, log: Log) {
    let Exchange { head, mut body, responder } = exchange;
    let Target::Absolute { authority, path, .. } = &head.target else { panic!("{:?}", head.target) };
    assert_eq!(authority.to_string(), AUTHORITY);
    let mut whole = Vec::new();
    loop {
        match body.data().await {
            Ok(Some(data)) => whole.extend_from_slice(&data),
            Ok(None) => break,
            // As the remote does: nothing is answered to what is not whole.
            Err(_) => return,
        }
    }
    log.lock().unwrap().push(format!("{} {path}", head.method));
    let fields = head.fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let text = told(head.method.as_str(), path.as_str(), fields, &whole);
    // The client may have gone.
    let _ = responder.respond(Head { status: StatusCode::OK, fields: HeaderMap::new() }, text.into()).await;
}

#[tokio::test]
async fn every_case_of_http_2_ends_as_the_table_says() {
    assert_right(&run(open, AUTHORITY, &only()).await);
}
