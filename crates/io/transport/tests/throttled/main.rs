//! UDP that is policed to a fraction of what the path carries: noticed on a carrier that rides on it, left for TCP on the same
//! port, and TCP kept where it does better. Over loopback; the signs themselves are tested in `farhop_congestion`.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

mod policed;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{self, Peers};
use farhop_transport::race::{Choice, Dialers};
use farhop_transport::socket::udp::UdpSocket;
use farhop_transport::{Connection, Kind, tcp};
use farhop_units::{BitRate, Bytes as Size};
use http::{HeaderMap, Method, StatusCode};
use quinn::AsyncUdpSocket;
use tokio::time::timeout;

use policed::Policed;

const PATIENCE: Duration = Duration::from_secs(60);
/// Both ways are contracted; UDP gets a fortieth of one.
const PLAN: PathPlan = PathPlan {
    rtt: Duration::from_millis(20),
    forward: Some(BitRate::mbit(8)),
    return_: Some(BitRate::mbit(8)),
    ..PathPlan::UNKNOWN
};
const HELD: BitRate = BitRate::kbit(200);

/// A remote that has called a ground over UDP, and fetches something endless or sends it.
struct World {
    dialers: Dialers,
    addr: SocketAddr,
    keys: [PublicKey; 1],
    over_tcp: tcp::Listener,
    over_quic: Connection,
    hop: Hop,
    _moving: Receiver,
    _listening: quic::Listener,
}

fn udp(port: u16) -> Arc<UdpSocket> {
    UdpSocket::bind(SocketAddr::from(([127, 0, 0, 1], port)), Size(256 << 10)).unwrap()
}

/// Where UDP is held back that `sender` sends, of which there is no end.
async fn world(sender: End) -> World {
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let keys = [ground.public()];
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let options = |end| tcp::Options::new(&PLAN, end, None).unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let over_tcp =
        tcp::Listener::bind(any, ground.clone(), peers.clone(), PLAN, options(End::Ground)).unwrap();
    let addr = over_tcp.local_addr().unwrap();
    let socket = |end, port| -> Arc<dyn AsyncUdpSocket> {
        if end == sender { Policed::new(udp(port), HELD) } else { udp(port) }
    };
    let choice = |end| PLAN.default_choice(end);
    let mut listening =
        quic::Listener::new(socket(End::Ground, addr.port()), ground, peers, PLAN, choice(End::Ground))
            .unwrap();
    let quic = quic::Dialer::new(socket(End::Remote, 0), remote.clone(), PLAN, choice(End::Remote)).unwrap();
    let tcp = tcp::Dialer::new(remote, PLAN, options(End::Remote), 1);
    let dialers = Dialers::new(quic, tcp, Choice::Either, &PLAN);
    let (near, far) = tokio::join!(dialers.connect(addr, &keys, Kind::Quic), listening.accept());
    let (over_quic, far) = (near.unwrap(), far.unwrap().unwrap().connection);
    assert_eq!(over_quic.kind(), Kind::Quic);
    tokio::spawn(serve(hop(far, Role::Ground)));
    let hop = hop(over_quic.clone(), Role::Remote);
    let _moving = if sender == End::Ground { fetch(&hop) } else { send(&hop) };
    World { dialers, addr, keys, over_tcp, over_quic, hop, _moving, _listening: listening }
}

fn hop(connection: impl Into<Connection>, role: Role) -> Hop {
    Hop::start(connection, role, Config::default(), &PLAN)
}

/// Answers whatever is asked without end, and takes all that is sent.
async fn serve(hop: Hop) {
    while let Some(incoming) = hop.accept().await {
        let Incoming::Exchange { mut sender, mut receiver, .. } = incoming else { continue };
        tokio::spawn(async move { while matches!(receiver.next().await, Arrival::Body(_)) {} });
        tokio::spawn(async move {
            let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
            sender.answer(&head, Coding::Identity, None);
            while sender.write(Bytes::from_static(&[7; 16 << 10])).await.is_ok() {}
        });
    }
}

/// Asks for something, and reads it elsewhere.
fn fetch(hop: &Hop) -> Receiver {
    let (mut sender, receiver) = ask(hop, Method::GET);
    sender.finish(None);
    receiver
}

/// Sends something without end.
fn send(hop: &Hop) -> Receiver {
    let (mut sender, receiver) = ask(hop, Method::POST);
    tokio::spawn(async move { while sender.write(Bytes::from_static(&[7; 16 << 10])).await.is_ok() {} });
    receiver
}

fn ask(hop: &Hop, method: Method) -> (Sender, Receiver) {
    let head = RequestHead {
        method,
        scheme: "https".into(),
        authority: "site.test".into(),
        path: "/".into(),
        fields: HeaderMap::new(),
    };
    hop.ask(Ask::default(), &head)
}

impl World {
    /// The carrier over TCP for which the one over UDP is left, both of its ends.
    async fn left_for(&mut self) -> (Connection, Hop, Hop) {
        let World { dialers, addr, keys, over_tcp, over_quic, hop: old, .. } = self;
        let leaving = dialers.doubt(over_quic, old, *addr, &keys[..]);
        let (near, far) =
            timeout(PATIENCE, async { tokio::join!(leaving, over_tcp.accept()) }).await.unwrap();
        assert_eq!(near.kind(), Kind::Tcp);
        (near.clone(), hop(near, Role::Remote), hop(far.unwrap().connection, Role::Ground))
    }
}

#[tokio::test]
async fn policed_udp_is_left_for_tcp_which_is_kept_as_it_does_better() {
    let mut world = world(End::Ground).await;
    let (connection, near, far) = world.left_for().await;
    tokio::spawn(serve(far));
    let mut fetching = fetch(&near);
    let reading = async { while !matches!(fetching.next().await, Arrival::Ended) {} };
    let proving = timeout(PATIENCE, world.dialers.prove(&connection, &near));
    tokio::select! {
        () = reading => panic!("it has no end"),
        better = proving => assert!(better.unwrap()),
    }
    assert!(world.dialers.prove(&connection, &near).await, "it is not tried a second time");
}

#[tokio::test]
async fn tcp_that_brings_no_more_is_left_again() {
    let mut world = world(End::Ground).await;
    let (connection, near, _silent) = world.left_for().await;
    let _fetching = fetch(&near);
    let better = timeout(PATIENCE, world.dialers.prove(&connection, &near)).await.unwrap();
    assert!(!better);
}

#[tokio::test]
async fn udp_that_is_policed_on_its_way_to_ground_is_left_for_tcp_too() {
    let mut world = world(End::Remote).await;
    let (connection, near, far) = world.left_for().await;
    tokio::spawn(serve(far));
    let _sending = send(&near);
    assert!(timeout(PATIENCE, world.dialers.prove(&connection, &near)).await.unwrap());
}
