//! Clients that keep to no rule: each costs no more than the settings say, nothing of it reaches ground as if it were
//! whole, and others are served meanwhile.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_transport::hop::{Arrival, Gone};
use support::{
    Asked, BROWSER, PATIENCE, UNCACHEABLE, World, answer, answer_with, head, read_until, world, world_with,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection that has taken nothing for so long is full.
const FULL: Duration = Duration::from_millis(500);
/// More than this is never on its way for one client: both kernels' buffers and the carrier's windows, here without a rate.
const MOST_ON_ITS_WAY: usize = 24 << 20;

/// Fails unless another client is served.
async fn serves_others(world: &World) {
    let client = world.get("/", BROWSER).await;
    answer_with(world, "well").await;
    assert!(answer(client).await.contains("well"));
}

/// What the remote says to these bytes, until it closes.
async fn said_to(world: &World, bytes: &[u8]) -> String {
    let mut client = world.client().await;
    // It may close before it has read everything.
    let _ = client.write_all(bytes).await;
    answer(client).await
}

#[tokio::test]
async fn a_head_that_comes_a_byte_at_a_time_is_answered_408() {
    let world = world_with(&["timeouts.head=1 s"]).await;
    let mut client = world.client().await;
    let mut got = String::new();
    let (mut reading, mut writing) = client.split();
    let trickle = async {
        let head = b"GET http://site.test/ HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'x'));
        for byte in head {
            if writing.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        std::future::pending::<()>().await;
    };
    let read = async {
        use tokio::io::AsyncReadExt;
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = reading.read(&mut buffer).await {
            got.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    let ended = async {
        tokio::select! {
            () = trickle => {}
            () = read => {}
        }
    };
    timeout(PATIENCE, ended).await.expect("the remote closes");
    assert!(got.starts_with("HTTP/1.1 408 "), "{got}");
    serves_others(&world).await;
    assert_eq!(world.crossed(), 1);
}

#[tokio::test]
async fn malformed_requests_are_refused_and_never_cross() {
    let world = world().await;
    let post = "POST http://site.test/ HTTP/1.1\r\nhost: site.test\r\n";
    for (bytes, status) in [
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\r\n\r\n".to_owned(), 400),
        ("GET http://site.test/ HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET http://site.test/ HTTP/1.1\r\nhost: site.test\r\nhost: other.test\r\n\r\n".to_owned(), 400),
        ("GET http://site.test/ HTTP/1.1\r\nhost: site.test\r\nbad name: x\r\n\r\n".to_owned(), 400),
        (format!("{post}content-length: 1\r\ncontent-length: 2\r\n\r\nxy"), 400),
        (format!("{post}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (format!("{post}transfer-encoding: gzip\r\n\r\n"), 400),
    ] {
        let got = said_to(&world, bytes.as_bytes()).await;
        let line = got.lines().next().unwrap_or_default();
        assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{bytes:?} was answered {line:?}");
    }
    assert_eq!(world.crossed(), 0);
    serves_others(&world).await;
}

#[tokio::test]
async fn heads_without_end_are_answered_431_and_targets_414() {
    let world = world().await;
    let fields = "x: y\r\n".repeat(1 << 16);
    for (head, status) in [
        (format!("GET http://site.test/ HTTP/1.1\r\n{fields}"), 431),
        (format!("GET http://site.test/ HTTP/1.1\r\nx: {}", "y".repeat(1 << 20)), 431),
        (format!("GET http://site.test/{}", "y".repeat(1 << 20)), 414),
    ] {
        let got = said_to(&world, head.as_bytes()).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{:?}", got.lines().next());
    }
    assert_eq!(world.crossed(), 0);
    serves_others(&world).await;
}

/// RFC 9110 §9.3.8: as it was received, with its target.
#[tokio::test]
async fn a_trace_that_may_go_no_further_is_sent_back_as_it_came_without_secrets() {
    let world = world().await;
    let head =
        "TRACE http://site.test/x?y HTTP/1.1\r\nHost: site.test\r\nMax-Forwards: 0\r\nCookie: a=b\r\n\r\n";
    let got = said_to(&world, head.as_bytes()).await;
    let (_, echoed) = got.split_once("\r\n\r\n").unwrap();
    assert!(echoed.starts_with("TRACE http://site.test/x?y HTTP/1.1\r\n"), "{got}");
    assert!(echoed.contains("max-forwards: 0\r\n") && !echoed.contains("a=b"), "{got}");
    assert_eq!(world.crossed(), 0);
}

/// Begins a chunked upload and gives it with what ground hears of it.
async fn upload(world: &World) -> (TcpStream, Asked) {
    let mut client = world.client().await;
    support::send(&mut client, "POST", "/upload", "transfer-encoding: chunked\r\n").await;
    (client, world.asked().await)
}

#[tokio::test]
async fn an_endless_upload_that_nobody_takes_waits_at_the_client() {
    let world = world().await;
    let (mut client, asked) = upload(&world).await;
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 1 << 16], b"\r\n"].concat();
    let mut sent = 0;
    while let Ok(written) = timeout(FULL, client.write_all(&chunk)).await {
        written.unwrap();
        sent += chunk.len();
        assert!(sent < MOST_ON_ITS_WAY, "{sent} bytes were taken for ground, which takes none");
    }
    serves_others(&world).await;
    drop(asked);
}

#[tokio::test]
async fn an_upload_that_is_broken_off_or_malformed_never_ends_at_ground_as_if_it_were_whole() {
    for (rest, breaks_off) in [("5\r\nhello\r\n", true), ("5\r\nhello\r\nnot a size\r\n", false)] {
        let world = world().await;
        let (mut client, mut asked) = upload(&world).await;
        client.write_all(rest.as_bytes()).await.unwrap();
        if breaks_off {
            client.set_zero_linger().unwrap();
            drop(client);
        }
        // The reset may overtake what came before it.
        let mut heard = timeout(PATIENCE, asked.receiver.next()).await.expect("ground hears of it");
        while let Arrival::Body(_) = heard {
            heard = timeout(PATIENCE, asked.receiver.next()).await.expect("ground hears of it");
        }
        assert!(matches!(heard, Arrival::Reset(_)), "{rest:?}: {heard:?}");
        drop(asked);
        serves_others(&world).await;
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_off_and_its_download_stopped() {
    let world = world_with(&["timeouts.stall=1 s"]).await;
    let mut client = world.get("/big", BROWSER).await;
    let Asked { mut sender, .. } = world.asked().await;
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    let piece = Bytes::from(vec![b'.'; 256 * 1024]);
    let endless = async {
        let mut sent = 0;
        while sender.write(piece.clone()).await.is_ok() {
            sent += piece.len();
            assert!(sent < MOST_ON_ITS_WAY, "{sent} bytes were taken for a client that takes none");
        }
    };
    timeout(PATIENCE, endless).await.expect("the download is stopped");
    assert_eq!(sender.gone().await, Gone::Stopped);
    let mut got = String::new();
    read_until(&mut client, &mut got, "").await;
    assert!(!got.ends_with("0\r\n\r\n"), "it looks whole");
    serves_others(&world).await;
}

#[tokio::test]
async fn how_long_clients_are_waited_for_is_taken_over_while_it_runs() {
    let world = world().await;
    let sets = [
        "ground.0.name=\"test\"",
        "ground.0.address=\"127.0.0.1:1\"",
        "ground.0.keys=[\"x\"]",
        "timeouts.idle=1 s",
        "timeouts.head=1 s",
    ];
    let settings = farhop_settings::load::<farhop_settings::RemoteSettings>(None, &sets.map(str::to_owned));
    world.running.reload(settings.unwrap());
    assert_eq!(answer(world.client().await).await, "", "closed without a word");
    let mut slow = world.client().await;
    slow.write_all(b"GET http://site.test/ HTTP/1.1\r\n").await.unwrap();
    assert!(answer(slow).await.starts_with("HTTP/1.1 408 "));
}

#[tokio::test]
async fn idle_connections_are_closed_and_keep_nobody_out() {
    let world = world_with(&["timeouts.idle=1 s", "limits.connections_per_client=1000"]).await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(world.client().await);
    }
    serves_others(&world).await;
    for client in idle {
        assert_eq!(answer(client).await, "", "closed without a word");
    }
    assert_eq!(world.crossed(), 1);
}
