//! Two QUIC ends across a link that loses packets, with the repair layer between: bytes are exact, what crosses takes
//! little longer than without loss, and QUIC hears of few losses. Times are virtual.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

mod bad;
mod ends;

use std::net::SocketAddr;
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_fec::Sent;
use farhop_htotp::frame::Coding;
use farhop_htotp::scheduler::Pace;
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Way;
use farhop_transport::hop::{Arrival, Hop, Incoming};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::udp::UdpSocket;
use farhop_units::Bytes;
use http::{HeaderMap, Method, StatusCode};
use quinn::AsyncUdpSocket;
use tokio::time::Instant;

use bad::Bad;
use ends::{Ends, ends, hylas, meet, pattern};

const MEGABYTE: usize = 1_000_000;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The median over three seeds of how long `objects` of `len` take on a carrier that has carried 2 MB before, and the
/// packets that QUIC took for lost meanwhile, of all seeds.
async fn warm(loss: f64, repair: u32, objects: usize, len: usize) -> (Duration, u64) {
    let mut times = Vec::new();
    let mut lost = 0;
    for seed in 1..=3 {
        let ends = ends(&hylas(loss), seed, [repair; 2]).await;
        ends.transfer(1, 2 * MEGABYTE).await;
        let before = ends.far.stats().path.lost_packets;
        times.push(ends.transfer(objects, len).await);
        lost += ends.far.stats().path.lost_packets - before;
    }
    (median(times), lost)
}

/// What the link alone needs for so many bytes: one way across and its rate, 4 % of which are headers.
fn limit(bytes: usize) -> f64 {
    0.325 + bytes as f64 * 1.04 / 1e6
}

#[tokio::test(start_paused = true)]
async fn loss_costs_a_transfer_little_more_than_its_repairs() {
    for (objects, len) in [(1, 2 * MEGABYTE), (200, 5_000)] {
        let (unrepaired, lost_unrepaired) = warm(0.03, 0, objects, len).await;
        for (loss, most) in [(0.01, 1.12), (0.03, 1.20)] {
            let (took, lost) = warm(loss, 25, objects, len).await;
            let ratio = took.as_secs_f64() / limit(objects * len);
            let told = format!(
                "{objects} × {len} B, {loss} lost: {took:?}, {ratio:.3} of the limit, QUIC lost {lost}; \
                 at 0.03 without repairs {unrepaired:?}, QUIC lost {lost_unrepaired}"
            );
            assert!(ratio <= most, "{told}");
            assert!(took < unrepaired && lost * 4 < lost_unrepaired, "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bursts_are_repaired_too() {
    let mut times = Vec::new();
    let mut sent = Vec::new();
    for seed in 1..=3 {
        let ends = meet(&hylas(0.0), seed, [25; 2], |socket| Bad::new(socket, 0.01, 4.0, 0.0, seed)).await;
        ends.transfer(1, 4 * MEGABYTE).await;
        times.push(ends.transfer(1, 2 * MEGABYTE).await);
        sent.push(ends.repairs().unwrap().sent);
    }
    let ratio = median(times).as_secs_f64() / limit(2 * MEGABYTE);
    let [lost, recovered] =
        [|s: &Sent| s.lost, |s: &Sent| s.recovered].map(|of| sent.iter().map(of).sum::<u64>());
    assert!(ratio <= 1.25 && lost > 40 && recovered * 10 > lost * 3, "{ratio:.3}, {recovered} of {lost}");
}

#[tokio::test(start_paused = true)]
async fn without_loss_the_layer_costs_five_bytes_a_packet() {
    let ends = ends(&hylas(0.0), 1, [25; 2]).await;
    ends.transfer(1, 2 * MEGABYTE).await;
    let sent = ends.repairs().unwrap().sent;
    assert_eq!((sent.repairs, sent.lost), (0, 0));
    assert!(sent.sources > 1_300, "the layer is in use: {sent:?}");
    let forward = ends.link.counters(Way::Forward).sent;
    let plain = meet(&hylas(0.0), 1, [0; 2], |socket| socket).await;
    plain.transfer(1, 2 * MEGABYTE).await;
    let without = plain.link.counters(Way::Forward).sent;
    assert!(forward.bytes.0 < without.bytes.0 + 6 * forward.packets + 10_000, "{forward:?}, {without:?}");
}

#[tokio::test(start_paused = true)]
async fn repairs_stay_within_what_the_plan_allows() {
    let ends = ends(&hylas(0.03), 1, [25, 5]).await;
    ends.transfer(1, 6 * MEGABYTE).await;
    let sent = ends.repairs().unwrap().sent;
    assert!(sent.repairs > 100, "{sent:?}");
    assert!(sent.repair_bytes as f64 <= 0.051 * sent.source_bytes as f64 + 24e3, "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_without_the_layer_and_one_with_it_go_together() {
    for repair in [[25, 0], [0, 25]] {
        let ends = ends(&hylas(0.01), 1, repair).await;
        ends.transfer(1, 2 * MEGABYTE).await;
        let sent = [ends.repairs(), ends.dialer.repairs().counters(ends.near.remote_address())];
        assert!(sent.into_iter().flatten().all(|counters| counters.sent.sources == 0), "{sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn damaged_datagrams_cost_no_byte() {
    let ends = meet(&hylas(0.0), 1, [25; 2], |socket| Bad::new(socket, 0.02, 2.0, 0.01, 1)).await;
    // `transfer` compares the bytes.
    ends.transfer(1, 4 * MEGABYTE).await;
    ends.transfer(100, 5_000).await;
    let sent = ends.repairs().unwrap().sent;
    assert!(sent.lost > 20 && sent.recovered * 2 > sent.lost, "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn uploads_over_a_narrow_return_link_are_repaired() {
    let ends = ends(&hylas(0.02), 3, [25; 2]).await;
    for _ in 0..3 {
        let mut stream = ends.near.open_uni().await.unwrap();
        let sending = async {
            stream.write_all(&pattern(300_000, 7)).await.unwrap();
            stream.finish().unwrap();
        };
        let receiving = async {
            let mut stream = ends.far.accept_uni().await.unwrap();
            assert!(stream.read_to_end(300_000).await.unwrap() == pattern(300_000, 7));
        };
        tokio::join!(sending, receiving);
    }
    let sent = ends.dialer.repairs().counters(ends.near.remote_address()).unwrap().sent;
    assert!(sent.lost > 5 && sent.recovered * 2 > sent.lost, "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_second_carrier_between_the_same_addresses_takes_the_layer_over() {
    let mut ends = ends(&hylas(0.01), 1, [25; 2]).await;
    ends.transfer(1, 2 * MEGABYTE).await;
    let keys = [Identity::from_seed([2; 32]).public()];
    let addr = ends.near.remote_address();
    let (near, far) = tokio::join!(ends.dialer.connect(addr, &keys), ends.listener.accept());
    (ends.near, ends.far) = (near.unwrap(), far.unwrap().unwrap().connection);
    ends.transfer(1, 4 * MEGABYTE).await;
    let sent = ends.repairs().unwrap().sent;
    assert!(sent.sources > 2_800 && sent.recovered > 10, "{sent:?}");
}

/// How long each of `objects` of 5 KB takes that is sent alone, ends to ends.
async fn lone(ends: &Ends, objects: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..objects {
        times.push(ends.transfer(1, 5_000).await);
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    times.sort_unstable();
    times
}

#[tokio::test(start_paused = true)]
async fn a_small_object_that_loses_a_packet_waits_for_no_round_trip() {
    let mut late = [0, 0];
    for (late, repair) in late.iter_mut().zip([25, 0]) {
        let ends = ends(&hylas(0.03), 2, [repair; 2]).await;
        ends.transfer(1, 2 * MEGABYTE).await;
        let times = lone(&ends, 150).await;
        // One way takes 0.33 s.
        *late = times.iter().filter(|took| **took > Duration::from_millis(400)).count();
    }
    // One in nine loses one of its four packets, one in a hundred more than its repair brings back.
    assert!(late[0] <= 7 && late[1] > late[0] + 2, "late with and without repairs: {late:?}");
}

#[tokio::test]
async fn over_sockets_of_the_system_segments_and_marks_survive_the_layer() {
    let plan = PathPlan::UNKNOWN;
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let bind = || UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)), Bytes(4 << 20)).unwrap();
    let at_ground = Bad::in_batches(bind(), 0.025, 1);
    let addr = at_ground.local_addr().unwrap();
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let keys = [ground.public()];
    // Paced, so that the loopback's own queues lose nothing.
    let mut listener = Listener::new(at_ground, ground, peers, plan, Choice::Cubic).unwrap();
    let dialer = Dialer::new(bind(), remote, plan, Choice::Cubic).unwrap();
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let (near, far) = (near.unwrap(), far.unwrap().unwrap().connection);
    let ends = (near, far);
    for _ in 0..4 {
        let sending = async {
            let mut stream = ends.1.open_uni().await.unwrap();
            stream.write_all(&pattern(2 * MEGABYTE, 3)).await.unwrap();
            stream.finish().unwrap();
        };
        let receiving = async {
            let mut stream = ends.0.accept_uni().await.unwrap();
            assert!(stream.read_to_end(2 * MEGABYTE).await.unwrap() == pattern(2 * MEGABYTE, 3));
        };
        tokio::join!(sending, receiving);
    }
    let sent = listener.repairs().counters(ends.1.remote_address()).unwrap().sent;
    assert!(sent.sources > 5_000 && sent.lost > 20 && sent.recovered > 10, "{sent:?}");
}

/// Ground answers with `size` bytes; gives how long they take and the longest queue before the forward link, in KB, once
/// the first half has crossed.
async fn download(ends: &Ends, size: usize) -> (Duration, u64) {
    let start = Instant::now();
    let config = |end| Config {
        pace: Pace { rate: ends.plan.sending_rate(end), ..Pace::default() },
        ..Config::default()
    };
    let near = Hop::start(ends.near.clone(), Role::Remote, config(End::Remote), &ends.plan);
    let far = Hop::start(ends.far.clone(), Role::Ground, config(End::Ground), &ends.plan);
    let answering = async {
        loop {
            let Some(Incoming::Exchange { mut sender, .. }) = far.accept().await else { continue };
            let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
            sender.answer(&head, Coding::Identity, None);
            for _ in 0..size / 10_000 {
                sender.write(bytes::Bytes::from(vec![7; 10_000])).await.unwrap();
            }
            sender.finish(None);
            return sender;
        }
    };
    let asking = async {
        let head = RequestHead {
            method: Method::GET,
            scheme: "https".into(),
            authority: "site.test".into(),
            path: "/".into(),
            fields: HeaderMap::new(),
        };
        let (mut sender, mut receiver) = near.ask(Ask::default(), &head);
        sender.finish(None);
        let mut received = 0;
        loop {
            match receiver.next().await {
                Arrival::Body(bytes) => {
                    let before = received;
                    received += bytes.len();
                    if before < size / 2 && received >= size / 2 {
                        ends.link.take_counters(Way::Forward);
                    }
                }
                Arrival::Ended => break,
                _ => {}
            }
        }
        assert_eq!(received, size);
    };
    let (_sender, ()) = tokio::join!(answering, asking);
    (start.elapsed(), ends.link.counters(Way::Forward).queue_peak.0 / 1000)
}

#[tokio::test(start_paused = true)]
async fn repairs_and_packets_together_keep_to_the_contracted_rate() {
    let clean = ends(&hylas(0.0), 1, [25; 2]).await;
    let (limit, _) = download(&clean, 8 * MEGABYTE).await;
    let lossy = ends(&hylas(0.03), 1, [25; 2]).await;
    let (took, queue) = download(&lossy, 8 * MEGABYTE).await;
    let share = lossy.repairs().unwrap().sent.share;
    assert!(share > 0.06, "{share}");
    // A queue of 100 KB is 0.1 s by which anything urgent would be late.
    assert!(queue < 100, "{queue} KB of queue");
    assert!(took.as_secs_f64() < limit.as_secs_f64() * (1.03 + share), "{took:?} of {limit:?}, {share}");
}
