//! Pages loaded in virtual time: what each way of loading costs in round trips, by the standards' own count.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use farhop_loader::{
    Connect, Handshake, Kind, Loaded, Loader, Named, Object, PageGraph, Persistence, Protocol, Push,
    Settings, SocketOptions,
};
use rustls::RootCertStore;
use support::{Net, RTT, certificate, page, paths};

const H1: Protocol = Protocol::Http1(Persistence::Persistent);

fn one(protocol: Protocol) -> Settings {
    Settings { protocol, connections: 1, ..Settings::default() }
}

async fn load(net: Net, graph: PageGraph, settings: &Settings) -> (Loaded, Arc<Net>) {
    let net = Arc::new(net);
    let loader = Loader::new(net.clone(), RootCertStore::empty()).unwrap();
    (loader.load(&Arc::new(graph), settings).await, net)
}

/// A load in round trips, everything having come right.
fn trips(loaded: &Loaded) -> f64 {
    assert_eq!(loaded.faults(), [""; 0]);
    loaded.time.unwrap().as_millis() as f64 / RTT.as_millis() as f64
}

async fn plain(settings: &Settings, images: usize) -> Loaded {
    let (graph, content) = page("http", images, 100);
    load(Net::new(content), graph, settings).await.0
}

#[tokio::test(start_paused = true)]
async fn each_way_of_http_1_takes_its_round_trips() {
    let table = [
        // Connection and answer for each of seven.
        (Protocol::Http1(Persistence::NonPersistent), 1, 14.0, 7),
        // One connection, then one answer after the other.
        (H1, 1, 8.0, 1),
        // The first connection takes another image while five more come to stand.
        (H1, 6, 4.0, 6),
        (Protocol::Http1(Persistence::Pipelined(8)), 1, 3.0, 1),
        // Two at a time.
        (Protocol::Http1(Persistence::Pipelined(2)), 1, 5.0, 1),
    ];
    for (protocol, connections, expected, made) in table {
        let settings = Settings { connections, ..one(protocol) };
        let loaded = plain(&settings, 6).await;
        assert_eq!(trips(&loaded), expected, "{protocol:?} over {connections}");
        assert_eq!((loaded.connections.len(), loaded.connections_used()), (made, made), "{protocol:?}");
        assert_eq!(loaded.requests(), 7);
        assert!(
            loaded.objects.iter().skip(1).all(|object| object.bytes == 100 && object.connection.is_some())
        );
        assert_eq!(loaded.first_byte(), Some(RTT * 2));
    }
}

#[tokio::test(start_paused = true)]
async fn fast_open_spares_a_connection_its_round_trip_once_its_origin_has_given_a_cookie() {
    let (graph, content) = page("http", 1, 100);
    let (graph, net) = (Arc::new(graph), Arc::new(Net::new(content)));
    let loader = Loader::new(net, RootCertStore::empty()).unwrap();
    let settings = Settings { fast_open: true, ..one(H1) };
    loader.prime(&graph, &one(H1)).await.unwrap();
    assert_eq!(trips(&loader.load(&graph, &one(H1)).await), 3.0, "who does not want it has none");
    loader.prime(&graph, &settings).await.unwrap();
    assert_eq!(trips(&loader.load(&graph, &settings).await), 2.0);
}

#[tokio::test(start_paused = true)]
async fn http_2_asks_for_all_at_once_within_the_limit_of_streams() {
    for (streams, expected) in [(100, 3.0), (2, 5.0), (1, 8.0)] {
        let (graph, content) = page("http", 6, 100);
        let net = Net { multiplexed: true, ..Net::new(content) };
        let settings = Settings { streams, ..one(Protocol::Http2(Push::Off)) };
        let (loaded, _) = load(net, graph, &settings).await;
        assert_eq!((trips(&loaded), loaded.connections.len()), (expected, 1), "{streams} streams");
    }
}

#[tokio::test(start_paused = true)]
async fn the_servers_limit_of_streams_is_kept_too() {
    let (graph, mut content) = page("http", 6, 100);
    content.streams = Some(3);
    let net = Net { multiplexed: true, ..Net::new(content) };
    let (loaded, _) = load(net, graph, &one(Protocol::Http2(Push::Off))).await;
    assert_eq!(trips(&loaded), 4.0);
}

#[tokio::test(start_paused = true)]
async fn a_share_of_the_page_is_pushed_taken_or_refused() {
    for (push, share, expected, requests, pushed, refused) in [
        (Push::Accepted, 1.0, 2.0, 1, 10, 0),
        (Push::Accepted, 0.3, 3.0, 8, 3, 0),
        (Push::Accepted, 0.0, 3.0, 11, 0, 0),
        (Push::Refused, 1.0, 3.0, 11, 0, 10),
        (Push::Off, 1.0, 3.0, 11, 0, 0),
    ] {
        let (graph, mut content) = page("http", 10, 2000);
        content.push_share("/", &paths(10), share);
        let net = Net { multiplexed: true, ..Net::new(content) };
        let (loaded, _) = load(net, graph, &one(Protocol::Http2(push))).await;
        assert_eq!(trips(&loaded), expected, "{push:?} {share}");
        let pushes = loaded.objects.iter().filter(|object| object.pushed).count();
        assert_eq!(
            (loaded.requests(), pushes, loaded.pushes_refused),
            (requests, pushed, refused),
            "{push:?} {share}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refused_pushes_cost_their_bytes_and_never_the_connection() {
    // So slow that a frame of a long document is still under way when the refusals of what was promised ahead of it come back.
    let pace = Some(Duration::from_millis(100));
    for (document, images, size) in
        [(10, 20, 5_000), (100_000, 20, 5_000), (10, 20, 100_000), (100_000, 120, 1_000)]
    {
        let (mut graph, mut content) = page("http", images, size);
        let bytes = vec![b'x'; document];
        let mut long = Object::new("http://a.test/".parse().unwrap(), Kind::Document, &bytes);
        long.names = std::mem::take(&mut graph.objects[0].names);
        graph.objects[0] = long;
        content.files.insert("/".into(), (bytes.into(), "text/html"));
        content.push_share("/", &paths(images), 1.0);
        let net = Net { multiplexed: true, pace, ..Net::new(content) };
        let (loaded, _) = load(net, graph, &one(Protocol::Http2(Push::Refused))).await;
        let case = format!("{document} bytes, {images} images of {size}");
        assert_eq!(loaded.faults(), [""; 0], "{case}");
        let counted = (loaded.connections.len(), loaded.requests(), loaded.pushes_refused);
        assert_eq!(counted, (1, images as u32 + 1, images as u32), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_is_told_even_where_another_brings_the_rest() {
    let (graph, content) = page("http", 7, 5_000);
    let net = Net { multiplexed: true, breaks: Some(20_000), ..Net::new(content) };
    let (loaded, _) = load(net, graph, &one(Protocol::Http2(Push::Off))).await;
    assert_eq!(loaded.connections.len(), 2);
    assert!(loaded.objects.iter().all(|object| object.fault.is_none()));
    let faults = loaded.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("http://a.test:80: its connection broke: "), "{faults:?}");
}

#[tokio::test(start_paused = true)]
async fn handshakes_take_a_round_trip_and_0_rtt_none() {
    let (graph, content) = page("https", 2, 100);
    let graph = Arc::new(graph);
    for (protocol, rest) in [(H1, 3.0), (Protocol::Http2(Push::Off), 2.0)] {
        // Connection, handshake, then the objects; resumption spares bytes and no round trip (RFC 8446 §2.2).
        for (handshake, expected, resumed) in [
            (Handshake::Full, 2.0, Some(false)),
            (Handshake::Resumed, 2.0, Some(true)),
            (Handshake::ZeroRtt, 1.0, Some(true)),
        ] {
            let (tls, roots) = certificate();
            let net = Arc::new(Net { tls: Some(tls), ..Net::new(content.clone()) });
            let loader = Loader::new(net, roots).unwrap();
            let settings = Settings { handshake, ..one(protocol) };
            loader.prime(&graph, &settings).await.unwrap();
            let loaded = loader.load(&graph, &settings).await;
            assert_eq!(trips(&loaded), expected + rest, "{protocol:?} {handshake:?}");
            let connection = &loaded.connections[0];
            assert_eq!((connection.resumed, connection.early), (resumed, handshake == Handshake::ZeroRtt));
            assert!(connection.sent > 0 && connection.received > 200);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_no_early_data_gets_it_again() {
    let (graph, content) = page("https", 2, 100);
    let graph = Arc::new(graph);
    let (tls, roots) = certificate();
    let net = Arc::new(Net { tls: Some(tls.clone()), ..Net::new(content.clone()) });
    let loader = Loader::new(net, roots).unwrap();
    let settings = Settings { handshake: Handshake::ZeroRtt, ..one(H1) };
    loader.prime(&graph, &settings).await.unwrap();
    // The same server, its sessions with it, but no early data any more.
    let mut strict = (*tls).clone();
    strict.max_early_data_size = 0;
    let net = Arc::new(Net { tls: Some(Arc::new(strict)), ..Net::new(content) });
    let loaded = loader.over(net).load(&graph, &settings).await;
    assert_eq!(trips(&loaded), 5.0, "as with any resumed session");
    assert_eq!((loaded.connections[0].resumed, loaded.connections[0].early), (Some(true), false));
    assert_eq!(loaded.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_retry_timer_opens_connections_beside_one_that_is_slow_to_stand() {
    for (retry, made) in [(None, 1), (Some(1500), 1), (Some(250), 3), (Some(100), 6), (Some(10), 6)] {
        let (graph, content) = page("http", 2, 100);
        let settings = Settings { retry: retry.map(Duration::from_millis), ..one(H1) };
        let (loaded, net) = load(Net::new(content), graph, &settings).await;
        assert_eq!(trips(&loaded), 4.0);
        assert_eq!((loaded.connections.len(), net.made.load(Ordering::Relaxed)), (made, made), "{retry:?}");
        assert_eq!(loaded.connections_used(), 1, "the others are closed unused");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_stands_idle_for_too_long_is_closed() {
    // The document names an image and a slow script elsewhere, which names an image again.
    let (mut graph, mut content) = page("http", 2, 100);
    let script = Object::new("http://b.test/slow.js".parse().unwrap(), Kind::Script, b"script");
    content.files.insert("/slow.js".into(), ("script".into(), "text/javascript"));
    graph.objects.push(script);
    graph.objects[0].names = vec![Named { object: 1, from: 1 }, Named { object: 3, from: 1 }];
    graph.objects[3].names = vec![Named { object: 2, from: 6 }];
    for (idle, made) in [(None, 2), (Some(10_000), 2), (Some(500), 3)] {
        let settings = Settings { idle: idle.map(Duration::from_millis), ..one(H1) };
        let net = Net { trips: 2, ..Net::new(content.clone()) };
        let (loaded, _) = load(net, graph.clone(), &settings).await;
        assert_eq!(loaded.faults(), [""; 0]);
        assert_eq!(loaded.connections.len(), made, "{idle:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_closing_connection_left_unanswered_is_asked_for_again() {
    for protocol in [H1, Protocol::Http1(Persistence::Pipelined(8))] {
        let (graph, mut content) = page("http", 7, 100);
        content.requests = Some(3);
        let (loaded, _) = load(Net::new(content), graph, &one(protocol)).await;
        assert_eq!(loaded.faults(), [""; 0], "{protocol:?}");
        assert_eq!(loaded.connections.len(), 3, "{protocol:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_byte_a_missing_object_and_a_dead_server_are_told_by_object() {
    let (mut graph, mut content) = page("http", 3, 100);
    graph.objects[1].sha256 = "0".repeat(64);
    content.files.remove("/2.dat");
    let (loaded, _) = load(Net::new(content), graph, &one(H1)).await;
    assert_eq!(loaded.time, None);
    assert_eq!(
        loaded.faults(),
        [
            "http://a.test/0.dat: other bytes than the original's (100 bytes)",
            "http://a.test/2.dat: status 404"
        ]
    );
    assert!(loaded.objects[2].fault.is_none() && loaded.objects[2].end.is_some());

    struct Dead;
    impl Connect for Dead {
        fn connect(&self, _: &str, _: u16, _: SocketOptions) -> farhop_loader::Connecting {
            Box::pin(async { Err(std::io::ErrorKind::ConnectionRefused.into()) })
        }
    }
    let (graph, _) = page("http", 1, 100);
    let loader = Loader::new(Arc::new(Dead), RootCertStore::empty()).unwrap();
    let loaded = loader.load(&Arc::new(graph), &one(H1)).await;
    assert_eq!(
        loaded.faults(),
        [
            "http://a.test/: no connection to a.test:80: connection refused",
            "http://a.test/0.dat: what names it is missing"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_load_ends_with_its_patience_and_says_what_did_not_come() {
    let (graph, mut content) = page("http", 1, 100);
    content.delay = Duration::from_secs(1000);
    let settings = Settings { patience: Duration::from_secs(20), ..one(H1) };
    let start = tokio::time::Instant::now();
    let (loaded, _) = load(Net::new(content), graph, &settings).await;
    assert_eq!(start.elapsed(), Duration::from_secs(20));
    assert_eq!(loaded.faults()[0], "http://a.test/: it did not come in time");
}

#[tokio::test(start_paused = true)]
async fn a_proxy_gets_absolute_targets_and_connect() {
    let proxy = Some(("proxy.test".to_owned(), 3128));
    let (graph, content) = page("http", 1, 100);
    let settings = Settings { proxy: proxy.clone(), ..one(H1) };
    let (loaded, net) = load(Net::new(content), graph, &settings).await;
    assert_eq!(trips(&loaded), 3.0);
    assert_eq!(*net.asked.lock().unwrap(), ["proxy.test:3128"]);

    let (graph, content) = page("https", 1, 100);
    let (tls, roots) = certificate();
    let net = Arc::new(Net { tls: Some(tls), ..Net::new(content) });
    let loader = Loader::new(net, roots).unwrap();
    let settings = Settings { handshake: Handshake::Full, proxy, ..one(Protocol::Http2(Push::Off)) };
    let loaded = loader.load(&Arc::new(graph), &settings).await;
    assert_eq!(trips(&loaded), 5.0, "connection, CONNECT, handshake, document, image");
}

#[tokio::test(start_paused = true)]
async fn the_first_paint_that_is_possible_waits_for_what_blocks_it_alone() {
    let (mut graph, content) = page("http", 3, 100);
    graph.objects[2].blocking = true;
    let (loaded, _) = load(Net::new(content), graph, &one(H1)).await;
    assert_eq!((loaded.blocking, loaded.time), (Some(RTT * 4), Some(RTT * 5)));
}
