//! Carriers over TCP on loopback: ends come together on several lanes, refuse strangers with words that help,
//! carry sessions, and notice how a carrier ends.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Coding, Priority, Tunnel};
use farhop_htotp::mux::Spread;
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};

use farhop_transport::Kind;
use farhop_transport::hop::{Arrival, Closed, Hop, Incoming};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{CarrierError, Peers, Refused};
use farhop_transport::tcp::{Connection, Dialer, Listener, Options};
use farhop_tuning::Value;
use farhop_units::BitRate;
use http::{HeaderMap, Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

fn remote() -> Identity {
    Identity::from_seed([1; 32])
}

fn ground() -> Identity {
    Identity::from_seed([2; 32])
}

fn peers(keys: &[PublicKey]) -> Peers {
    Peers::new(keys.iter().map(|key| ("ship".to_string(), *key))).unwrap()
}

fn listener(keys: &[PublicKey]) -> Listener {
    let options = Options::new(&PathPlan::UNKNOWN, End::Ground, None).unwrap();
    Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), ground(), peers(keys), PathPlan::UNKNOWN, options)
        .unwrap()
}

fn dialer(lanes: usize) -> Dialer {
    let options = Options::new(&PathPlan::UNKNOWN, End::Remote, None).unwrap();
    Dialer::new(remote(), PathPlan::UNKNOWN, options, lanes)
}

fn hop(connection: Connection, role: Role) -> Hop {
    Hop::start(connection, role, Config::default(), &PathPlan::UNKNOWN)
}

/// Passes connections on to ground, and cuts one when told.
struct Between {
    addr: SocketAddr,
    cut: watch::Sender<Option<usize>>,
}

impl Between {
    async fn new(to: SocketAddr) -> Between {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = socket.local_addr().unwrap();
        let cut = watch::Sender::new(None);
        let cuts = cut.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let (mut near, _) = socket.accept().await.unwrap();
                let mut far = TcpStream::connect(to).await.unwrap();
                let mut cut = cuts.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.wait_for(|cut| *cut == Some(number)) => {}
                    }
                });
            }
        });
        Between { addr, cut }
    }
}

struct Pair {
    near: Hop,
    far: Hop,
    dialled: Connection,
    between: Between,
    listening: tokio::task::JoinHandle<()>,
}

/// Both ends, with something between them that counts and cuts; all lanes have been called.
async fn pair(lanes: usize) -> Pair {
    pair_spreading(lanes, Spread::RoundRobin).await
}

async fn pair_spreading(lanes: usize, spread: Spread) -> Pair {
    let mut listener = listener(&[remote().public()]);
    let between = Between::new(listener.local_addr().unwrap()).await;
    let options = Options::new(&PathPlan::UNKNOWN, End::Remote, None).unwrap().spreading(spread);
    let dialer = Dialer::new(remote(), PathPlan::UNKNOWN, options, lanes);
    let keys = [ground().public()];
    let (near, far) = tokio::join!(dialer.connect(between.addr, &keys), listener.accept());
    let (dialled, accepted) = (near.unwrap(), far.unwrap());
    assert_eq!((&*accepted.name, accepted.key), ("ship", remote().public()));
    assert_eq!(dialled.peer_key(), ground().public());
    let joined = [dialled.lanes(), accepted.connection.lanes()];
    let (near, far) = (hop(dialled.clone(), Role::Remote), hop(accepted.connection, Role::Ground));
    let listening = tokio::spawn(async move {
        let other = listener.accept().await;
        panic!("nobody else comes in: {other:?}");
    });
    for mut joined in joined {
        timeout(PATIENCE, joined.wait_for(|joined| *joined == lanes)).await.unwrap().unwrap();
    }
    Pair { near, far, dialled, between, listening }
}

fn request(path: &str) -> RequestHead {
    RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: "site.test".into(),
        path: path.into(),
        fields: HeaderMap::new(),
    }
}

fn pattern(length: usize, seed: usize) -> Bytes {
    (0..length).map(|index| (index * 31 + index / 251 + seed) as u8).collect::<Vec<u8>>().into()
}

/// Answers everything with as many bytes as its path says, and says everything back that comes through a tunnel.
async fn serve(hop: Hop) {
    while let Some(incoming) = hop.accept().await {
        match incoming {
            Incoming::Exchange { head, mut sender, .. } => {
                let length: usize = head.path[1..].parse().unwrap();
                let ok = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
                tokio::spawn(async move {
                    sender.answer(&ok, Coding::Identity, None);
                    for piece in pattern(length, length).chunks(10_000) {
                        if sender.write(Bytes::copy_from_slice(piece)).await.is_err() {
                            return;
                        }
                    }
                    sender.finish(None);
                });
            }
            Incoming::Tunnel { mut sender, mut receiver, .. } => {
                tokio::spawn(async move {
                    sender.accept_tunnel();
                    while let Arrival::Body(bytes) = receiver.next().await {
                        if sender.write(bytes).await.is_err() {
                            return;
                        }
                    }
                    sender.finish(None);
                });
            }
            _ => {}
        }
    }
}

async fn get(hop: &Hop, exchange: u64, length: usize) -> Vec<u8> {
    let priority = Priority { urgency: (exchange % 8) as u8, ..Priority::default() };
    let ask = Ask { exchange, user: 1, priority, ..Ask::default() };
    let (mut sender, mut receiver) = hop.ask(ask, &request(&format!("/{length}")));
    sender.finish(None);
    let mut body = Vec::new();
    loop {
        match timeout(PATIENCE, receiver.next()).await.unwrap() {
            Arrival::Answered { head, .. } => assert_eq!(head.status, StatusCode::OK),
            Arrival::Body(bytes) => body.extend_from_slice(&bytes),
            Arrival::Ended => return body,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn exchanges_of_all_sizes_cross_on_one_lane_and_on_several() {
    for (lanes, spread) in [(1, Spread::RoundRobin), (4, Spread::RoundRobin), (4, Spread::Priority)] {
        let Pair { near, far, listening, .. } = pair_spreading(lanes, spread).await;
        tokio::spawn(serve(far));
        let near = Arc::new(near);
        let gets = (0..40).map(|number| {
            let near = Arc::clone(&near);
            let length = [0, 1, 5_000, 70_000, 1_500_000][number % 5];
            tokio::spawn(async move {
                assert!(get(&near, number as u64 + 1, length).await == pattern(length, length));
            })
        });
        for got in gets.collect::<Vec<_>>() {
            got.await.unwrap();
        }
        assert!(!listening.is_finished());
    }
}

/// What the remote takes unread of a stream.
fn stream_window(hop: &Hop) -> Value {
    let told = hop.path(Kind::Tcp);
    told.decided.iter().find(|row| row.parameter == "stream window").unwrap().in_use
}

#[tokio::test]
async fn windows_grow_with_the_path_while_the_carrier_lasts() {
    let mut listener = listener(&[remote().public()]);
    let (dialer, keys) = (dialer(1), [ground().public()]);
    let addr = listener.local_addr().unwrap();
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let begun = Value::Bytes(PathPlan::UNKNOWN.mux_windows(End::Remote).stream);
    // To the moon, as it turns out.
    let path = PathPlan {
        rtt: Duration::from_millis(2600),
        forward: Some(BitRate(1_000_000_000)),
        ..PathPlan::UNKNOWN
    };
    let near = Hop::start(near.unwrap(), Role::Remote, Config::default(), &path);
    let far = hop(far.unwrap().connection, Role::Ground);
    tokio::spawn(serve(far));
    let length = 20_000_000;
    assert_eq!(get(&near, 1, length).await.len(), length);
    let grown = stream_window(&near);
    assert!(
        matches!((begun, grown), (Value::Bytes(begun), Value::Bytes(grown)) if grown > 10 * begun),
        "{grown:?}"
    );
}

#[tokio::test]
async fn a_tunnel_carries_both_ways_and_half_closes() {
    let Pair { near, far, .. } = pair(2).await;
    tokio::spawn(serve(far));
    let (mut sender, mut receiver) = near.open_tunnel(Tunnel::to(1, 1, Class::Web, "host.test", 7));
    let said = pattern(3_000_000, 1);
    let saying = async {
        for piece in said.chunks(50_000) {
            sender.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        sender.finish(None);
    };
    let hearing = async {
        assert_eq!(receiver.next().await, Arrival::TunnelOpened);
        let mut heard = Vec::new();
        loop {
            match receiver.next().await {
                Arrival::Body(bytes) => heard.extend_from_slice(&bytes),
                Arrival::Ended => return heard,
                other => panic!("{other:?}"),
            }
        }
    };
    let (heard, ()) = timeout(PATIENCE, async { tokio::join!(hearing, saying) }).await.unwrap();
    assert!(heard == said);
}

#[tokio::test]
async fn a_download_that_nobody_reads_holds_up_no_other_and_ends_when_it_is_dropped() {
    let Pair { near, far, .. } = pair(1).await;
    tokio::spawn(serve(far));
    let ask = Ask { exchange: 1, user: 1, ..Ask::default() };
    let (mut sender, unread) = near.ask(ask, &request("/50000000"));
    sender.finish(None);
    for exchange in 2..6 {
        assert_eq!(get(&near, exchange, 1_000_000).await.len(), 1_000_000);
    }
    drop(unread);
    assert_eq!(get(&near, 7, 1_000_000).await.len(), 1_000_000);
}

#[tokio::test]
async fn five_thousand_tunnels_stand_at_once_and_another_still_answers() {
    let Pair { near, far, .. } = pair(4).await;
    tokio::spawn(serve(far));
    let mut open = Vec::new();
    for id in 1..=5_000 {
        open.push(near.open_tunnel(Tunnel::to(id, 1, Class::Web, "host.test", 7)));
    }
    for (sender, receiver) in &mut open {
        assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::TunnelOpened);
        sender.write(Bytes::from_static(b"x")).await.unwrap();
        assert_eq!(
            timeout(PATIENCE, receiver.next()).await.unwrap(),
            Arrival::Body(Bytes::from_static(b"x"))
        );
    }
    assert_eq!(get(&near, 5_001, 100).await.len(), 100);
}

#[tokio::test]
async fn closing_says_why() {
    let Pair { near, far, dialled, .. } = pair(3).await;
    far.close();
    assert!(timeout(PATIENCE, near.accept()).await.unwrap().is_none());
    let closed = timeout(PATIENCE, dialled.closed()).await.unwrap();
    let addr = dialled.remote_address();
    assert_eq!(closed, CarrierError::Closed { addr, code: 0, reason: Closed::Local.to_string() });
    assert!(closed.retry_can_help());
}

#[tokio::test]
async fn a_lost_lane_ends_the_carrier_at_both_ends() {
    let Pair { near, far, between, dialled, .. } = pair(3).await;
    // What is under way ends with it.
    let (_sender, mut receiver) = near.ask(Ask::default(), &request("/1"));
    between.cut.send_replace(Some(2));
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Lost);
    let ground_side = async { while far.accept().await.is_some() {} };
    timeout(PATIENCE, ground_side).await.unwrap();
    assert!(matches!(near.closed(), Some(Closed::Lost(_))), "{:?}", near.closed());
    assert!(matches!(dialled.close_reason(), Some(CarrierError::Cut { .. })), "{:?}", dialled.close_reason());
}

/// What each end says when ground lists `admitted` and the remote expects `expected`.
async fn refusal(admitted: PublicKey, expected: PublicKey) -> (CarrierError, Refused) {
    let mut listener = listener(&[admitted]);
    let (addr, dialer, keys) = (listener.local_addr().unwrap(), dialer(1), [expected]);
    let calling = async {
        match dialer.connect(addr, &keys).await {
            Ok(connection) => {
                let _hop = hop(connection.clone(), Role::Remote);
                connection.closed().await
            }
            Err(error) => error,
        }
    };
    let both = async { tokio::join!(calling, listener.accept()) };
    let (near, far) = timeout(PATIENCE, both).await.unwrap();
    (near, far.unwrap_err())
}

#[tokio::test]
async fn each_end_refuses_a_key_that_it_does_not_list_and_both_say_which() {
    let other = Identity::from_seed([3; 32]).public();
    let (near, far) = refusal(other, ground().public()).await;
    assert!(matches!(near, CarrierError::Denied { own, .. } if own == remote().public()), "{near}");
    assert!(matches!(far.error, CarrierError::Stranger { key, .. } if key == remote().public()), "{far}");
    let (near, far) = refusal(remote().public(), other).await;
    assert!(matches!(near, CarrierError::Stranger { key, .. } if key == ground().public()), "{near}");
    assert!(matches!(far.error, CarrierError::Denied { own, .. } if own == ground().public()), "{far}");
}

#[tokio::test]
async fn a_port_where_nobody_listens_says_what_to_check() {
    let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = dialer(1).connect(addr, &[ground().public()]).await.unwrap_err();
    assert!(matches!(error, CarrierError::Unreachable { .. }), "{error}");
    assert!(error.to_string().ends_with("check the address, that the other end runs, and that TCP passes"));
    assert!(error.retry_can_help());
}

#[tokio::test]
async fn what_speaks_something_else_is_refused_and_disturbs_nobody() {
    let mut listener = listener(&[remote().public()]);
    let addr = listener.local_addr().unwrap();
    let mut stranger = TcpStream::connect(addr).await.unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\nhost: site.test\r\n\r\n").await.unwrap();
    let refused = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap_err();
    assert!(matches!(refused.error, CarrierError::Protocol { .. }), "{refused}");
    // An alert may come; then the end does.
    let _ = timeout(PATIENCE, stranger.read_to_end(&mut Vec::new())).await.unwrap();
    let (dialer, keys) = (dialer(1), [ground().public()]);
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    assert!(near.is_ok() && far.is_ok());
}
