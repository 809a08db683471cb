//! How many TLS handshakes one core answers in a second, whole and resumed, and what a first one adds.
//!
//! `cargo run --release -p farhop-front --example handshakes`, on an idle machine. Client and server take turns on one
//! thread; only the turns of the server are counted, from the hello to where requests can come.

#![allow(clippy::unwrap_used)] // an example fails by panicking

#[path = "../tests/support/mod.rs"]
mod support;

use farhop_front::Settings;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use support::{Authority, HOST, intercept, tunnel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Handshakes of each kind.
const ROUNDS: u32 = 3000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let authority = Authority::new();
    let settings = Arc::new(Settings::default());
    let config = Arc::new(authority.trusted(&["h2", "http/1.1"]));
    let first = one(&authority, &settings, &config).await;
    println!("first handshake: {:.2} ms of the server's time", first.as_secs_f64() * 1e3);
    for (kind, resumes) in [("whole", false), ("resumed", true)] {
        let mut spent = Duration::ZERO;
        for _ in 0..ROUNDS {
            let config =
                if resumes { config.clone() } else { Arc::new(authority.trusted(&["h2", "http/1.1"])) };
            spent += one(&authority, &settings, &config).await;
        }
        println!("{kind}: {:.0} handshakes/s on one core", f64::from(ROUNDS) / spent.as_secs_f64());
    }
}

/// The server's time in one handshake, from the hello until requests can come.
async fn one(
    authority: &Authority,
    settings: &Arc<Settings>,
    config: &Arc<rustls::ClientConfig>,
) -> Duration {
    let (mut stream, tunnel) = tunnel().await;
    let mut client = ClientConnection::new(config.clone(), ServerName::try_from(HOST).unwrap()).unwrap();
    let mut accepting = pin!(intercept(tunnel, authority, settings.clone()));
    let mut spent = Duration::ZERO;
    let mut buffer = vec![0; 16 * 1024];
    let mut connection = loop {
        let mut out = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut out).unwrap();
        }
        stream.write_all(&out).await.unwrap();
        let begun = Instant::now();
        let polled = accepting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        spent += begun.elapsed();
        if let Poll::Ready(connection) = polled {
            break connection.unwrap();
        }
        let count = stream.read(&mut buffer).await.unwrap();
        let mut read = &buffer[..count];
        while !read.is_empty() {
            client.read_tls(&mut read).unwrap();
            client.process_new_packets().unwrap();
        }
    };
    // Tickets come after the handshake. The server's own part of it is counted too.
    let count = stream.read(&mut buffer).await.unwrap();
    client.read_tls(&mut &buffer[..count]).unwrap();
    client.process_new_packets().unwrap();
    drop(stream);
    let _ = connection.next_request().await;
    spent
}
