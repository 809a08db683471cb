//! What an answer that is held costs the remote, with the client's side of loopback in it: `cargo bench -p farhop-remote --bench hit`.
//! The body is 1 KB, the connections are kept; ground is played as in the tests and asked once.
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on should panic")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use support::{BROWSER, CACHEABLE, World, head, world};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const BODY: usize = 1024;
const ROUNDS: usize = 10;
/// In a round, over all connections.
const HITS: usize = 2_000;

async fn hit(client: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) {
    client.write_all(request).await.unwrap();
    answer.clear();
    loop {
        assert!(client.read_buf(answer).await.unwrap() > 0, "the connection is kept");
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        if head.is_some_and(|end| answer.len() == end + 4 + BODY) {
            return;
        }
    }
}

/// How long a hit takes in the best round, over so many connections at a time.
async fn best(world: &World, request: &[u8], connections: usize) -> Duration {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(world.client().await);
    }
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut working = tokio::task::JoinSet::new();
        for mut client in clients.drain(..) {
            let request = request.to_vec();
            working.spawn(async move {
                let mut answer = Vec::with_capacity(4 * BODY);
                for _ in 0..HITS / connections {
                    hit(&mut client, &request, &mut answer).await;
                }
                client
            });
        }
        clients = working.join_all().await;
        best = best.min(start.elapsed());
    }
    best / (HITS / connections * connections) as u32
}

fn main() {
    // One thread for all: what it takes together is what is told.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = world().await;
        let request =
            format!("GET http://site.test/held HTTP/1.1\r\nhost: site.test\r\n{BROWSER}\r\n").into_bytes();
        let mut first = world.client().await;
        let (mut answer, crossing) = (Vec::new(), async {
            let mut asked = world.asked().await;
            let mut told = head(CACHEABLE);
            told.fields.insert("content-length", BODY.into());
            asked.sender.answer(&told, Coding::Identity, None);
            asked.sender.write(Bytes::from(vec![b'x'; BODY])).await.unwrap();
            asked.sender.finish(None);
        });
        tokio::join!(hit(&mut first, &request, &mut answer), crossing);
        for connections in [1, 32] {
            let each = best(&world, &request, connections).await.as_secs_f64();
            println!("{connections} connections: {:.1} µs a hit, {:.0} a second", each * 1e6, 1.0 / each);
        }
        assert_eq!(world.crossed(), 1, "all the others were held");
    });
}
