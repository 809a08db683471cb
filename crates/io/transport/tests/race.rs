//! Which of QUIC and TCP a remote comes to ride on, on loopback, where UDP passes and where it does not.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::net::SocketAddr;
use std::time::Duration;

use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{self, CarrierError, Peers};
use farhop_transport::race::{CallError, Choice, Dialers};
use farhop_transport::socket::udp::UdpSocket;
use farhop_transport::{Connection, Kind, tcp};
use farhop_units::Bytes;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);
/// A path so long that its head start and the time after which QUIC gives up are many times what either way needs here, on a
/// slow and busy machine too.
const FAR: PathPlan = PathPlan { rtt: Duration::from_secs(4), ..PathPlan::UNKNOWN };

fn remote() -> Identity {
    Identity::from_seed([1; 32])
}

fn ground() -> Identity {
    Identity::from_seed([2; 32])
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Where grounds are and nobody else: a port that is free there for TCP is free for UDP too.
fn grounds() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 3], 0))
}

fn udp(addr: SocketAddr) -> std::sync::Arc<UdpSocket> {
    UdpSocket::bind(addr, Bytes(256 << 10)).unwrap()
}

fn dialers(choice: Choice, plan: PathPlan) -> Dialers {
    let quic = quic::Dialer::new(udp(loopback()), remote(), plan, plan.default_choice(End::Remote)).unwrap();
    let options = tcp::Options::new(&plan, End::Remote, None).unwrap();
    Dialers::new(quic, tcp::Dialer::new(remote(), plan, options, 1), choice, &plan)
}

/// A ground that answers over TCP, and over QUIC or not at all, on the same port.
struct Ground {
    addr: SocketAddr,
    /// What takes UDP in and says nothing.
    _mute: Option<std::net::UdpSocket>,
    serving: Vec<JoinHandle<()>>,
}

impl Ground {
    fn new(over_quic: bool, over_tcp: bool) -> Ground {
        let plan = PathPlan::UNKNOWN;
        let peers = Peers::new([("ship".to_string(), remote().public())]).unwrap();
        let options = tcp::Options::new(&plan, End::Ground, None).unwrap();
        let mut listener = tcp::Listener::bind(grounds(), ground(), peers.clone(), plan, options).unwrap();
        let addr = listener.local_addr().unwrap();
        let mut serving = Vec::new();
        if over_tcp {
            serving.push(tokio::spawn(async move {
                let mut kept = Vec::new();
                loop {
                    kept.push(listener.accept().await);
                }
            }));
        }
        let _mute = (!over_quic).then(|| std::net::UdpSocket::bind(addr).unwrap());
        if over_quic {
            let choice = plan.default_choice(End::Ground);
            let mut listener = quic::Listener::new(udp(addr), ground(), peers, plan, choice).unwrap();
            serving.push(tokio::spawn(async move {
                let mut kept = Vec::new();
                while let Some(accepted) = listener.accept().await {
                    kept.push(accepted);
                }
            }));
        }
        Ground { addr, _mute, serving }
    }

    /// Called by a remote that takes it to be far away, if it has a choice.
    async fn called(&self, choice: Choice, key: PublicKey, favourite: Kind) -> Result<Connection, CallError> {
        let dialers = dialers(choice, if choice == Choice::Either { FAR } else { PathPlan::UNKNOWN });
        timeout(PATIENCE, dialers.connect(self.addr, &[key], favourite)).await.unwrap()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}

#[tokio::test]
async fn where_both_pass_the_favourite_is_ridden() {
    let world = Ground::new(true, true);
    for favourite in [Kind::Quic, Kind::Tcp] {
        let connection = world.called(Choice::Either, ground().public(), favourite).await.unwrap();
        assert_eq!(connection.kind(), favourite);
        assert_eq!(connection.remote_address(), world.addr);
    }
}

#[tokio::test]
async fn where_udp_is_swallowed_tcp_is_ridden_without_waiting_for_quic_to_give_up() {
    let world = Ground::new(false, true);
    let calling = world.called(Choice::Either, ground().public(), Kind::Quic);
    let connection = timeout(FAR.handshake_timeout(), calling).await.unwrap().unwrap();
    assert_eq!(connection.kind(), Kind::Tcp);
}

#[tokio::test]
async fn a_carrier_that_is_chosen_alone_is_called_alone() {
    let world = Ground::new(true, true);
    for kind in [Kind::Quic, Kind::Tcp] {
        let called = world.called(Choice::Only(kind), ground().public(), Kind::Quic).await;
        assert_eq!(called.unwrap().kind(), kind);
    }
    let mute = Ground::new(false, true);
    let error = mute.called(Choice::Only(Kind::Quic), ground().public(), Kind::Quic).await.unwrap_err();
    assert!(matches!(error, CallError::One(CarrierError::NoAnswer { .. })), "{error}");
}

#[tokio::test]
async fn a_ground_with_another_key_is_not_asked_twice() {
    let world = Ground::new(true, true);
    let other = Identity::from_seed([3; 32]).public();
    let error = world.called(Choice::Either, other, Kind::Quic).await.unwrap_err();
    assert!(matches!(error, CallError::One(CarrierError::Stranger { .. })), "{error}");
}

#[tokio::test]
async fn where_neither_answers_both_are_named() {
    // Its own: what was free must not become another test's meanwhile.
    let addr = std::net::TcpListener::bind("127.0.0.4:0").unwrap().local_addr().unwrap();
    let keys = [ground().public()];
    let dialers = dialers(Choice::Either, PathPlan::UNKNOWN);
    let error = timeout(PATIENCE, dialers.connect(addr, &keys, Kind::Quic)).await;
    let error = error.unwrap().unwrap_err();
    let CallError::Neither { quic, tcp } = &error else { panic!("{error}") };
    assert!(matches!(quic, CarrierError::NoAnswer { .. }), "{quic}");
    assert!(matches!(tcp, CarrierError::Unreachable { .. }), "{tcp}");
}
