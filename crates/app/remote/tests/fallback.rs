//! A remote whose UDP does not pass: pages load over TCP, and once UDP passes what begins goes over QUIC, while what
//! is under way goes on where it is.
#![allow(clippy::unwrap_used)] // helpers of tests fail by panicking

mod support;

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use farhop_events::{Bus, Event, Subscription};
use farhop_htotp::frame::Coding;
use farhop_htotp::session::{Config, Role};
use farhop_remote::{Reach, Running};
use farhop_transport::hop::{Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Listener, Peers};
use farhop_transport::socket::udp::UdpSocket;
use farhop_transport::tcp;
use farhop_units::Bytes as ByteCount;
use support::{BROWSER, PATIENCE, UNCACHEABLE, answer, head, read_until, send};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PLAN: PathPlan = PathPlan::UNKNOWN;

/// A remote, and a ground of which so far only TCP is within reach.
struct Blocked {
    running: Running,
    bus: Bus,
    events: Subscription,
    identity: Identity,
    peers: Peers,
    over_tcp: tcp::Listener,
    /// Takes UDP in and says nothing.
    mute: std::net::UdpSocket,
    _folder: tempfile::TempDir,
}

async fn blocked() -> Blocked {
    let (identity, remote) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let peers = Peers::new([("test".to_owned(), remote.public())]).unwrap();
    let options = tcp::Options::new(&PLAN, End::Ground, None).unwrap();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let over_tcp = tcp::Listener::bind(any, identity.clone(), peers.clone(), PLAN, options).unwrap();
    let address = over_tcp.local_addr().unwrap();
    let mute = std::net::UdpSocket::bind(address).unwrap();
    // What a remote keeps beside itself.
    let folder = tempfile::tempdir().unwrap();
    let kept = |name| serde_json::json!(folder.path().join(name));
    let sets = [
        format!("paths={}", kept("paths")),
        format!("interception.state={}", kept("consent")),
        "listen=127.0.0.1:0".to_owned(),
        "ground.0.name=test".to_owned(),
        format!("ground.0.address={address}"),
        format!("ground.0.keys=[\"{}\"]", identity.public()),
        "quic_again=1 s".to_owned(),
    ];
    let settings = farhop_settings::load(None, &sets).unwrap();
    let socket = UdpSocket::bind(any, ByteCount(256 << 10)).unwrap();
    let reach =
        Reach { socket, identity: remote, plan: PLAN, in_process: None, authority: None, first_window: None };
    let bus = Bus::new();
    let events = bus.subscribe();
    let running = farhop_remote::start(settings, reach, bus.clone(), false).await.unwrap();
    Blocked { running, bus, events, identity, peers, over_tcp, mute, _folder: folder }
}

impl Blocked {
    async fn get(&self, path: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.running.addresses()[0]).await.unwrap();
        send(&mut client, "GET", path, BROWSER).await;
        client
    }

    async fn event<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let finding = async {
            loop {
                if let Some(found) = wanted(&self.events.next().await.unwrap().unwrap().event) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, finding).await.unwrap()
    }

    /// What the next carrier rides on.
    async fn up(&mut self) -> String {
        self.event(|event| match event {
            Event::CarrierUp { over, .. } => Some(over.clone()),
            _ => None,
        })
        .await
    }
}

async fn asked(hop: &Hop) -> (String, Sender, Receiver) {
    loop {
        let incoming = timeout(PATIENCE, hop.accept()).await.expect("a request crosses").unwrap();
        if let Incoming::Exchange { head, sender, receiver, .. } = incoming {
            return (head.path, sender, receiver);
        }
    }
}

/// Begins an answer; gives what ends it.
async fn begin(mut sender: Sender, body: &'static [u8]) -> Sender {
    sender.answer(&head(UNCACHEABLE), Coding::Identity, None);
    sender.write(Bytes::from_static(body)).await.unwrap();
    sender
}

#[tokio::test]
async fn pages_load_over_tcp_while_udp_does_not_pass_and_over_quic_once_it_does() {
    let mut world = blocked().await;
    let accepted = timeout(PATIENCE, world.over_tcp.accept()).await.unwrap().unwrap();
    let over_tcp = Hop::start(accepted.connection, Role::Ground, Config::default(), &PLAN);
    assert_eq!(world.up().await, "tcp");

    let client = world.get("/first").await;
    let (path, sender, _receiver) = asked(&over_tcp).await;
    assert_eq!(path, "/first");
    begin(sender, b"over TCP").await.finish(None);
    assert!(answer(client).await.contains("over TCP"));

    // A long answer is under way when UDP begins to pass.
    let mut long = world.get("/long").await;
    let (_, sender, _receiver) = asked(&over_tcp).await;
    let mut sender = begin(sender, b"begun, ").await;
    let mut got = String::new();
    read_until(&mut long, &mut got, "begun, ").await;

    let address = world.mute.local_addr().unwrap();
    drop(std::mem::replace(&mut world.mute, std::net::UdpSocket::bind("127.0.0.1:0").unwrap()));
    let socket = UdpSocket::bind(address, ByteCount(256 << 10)).unwrap();
    let choice = PLAN.default_choice(End::Ground);
    let mut listener =
        Listener::new(socket, world.identity.clone(), world.peers.clone(), PLAN, choice).unwrap();
    let accepted = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap().unwrap();
    let over_quic = Hop::start(accepted.connection, Role::Ground, Config::default(), &PLAN);
    assert_eq!(world.up().await, "quic");

    let client = world.get("/second").await;
    let (path, second, _receiver) = asked(&over_quic).await;
    assert_eq!(path, "/second");
    begin(second, b"over QUIC").await.finish(None);
    assert!(answer(client).await.contains("over QUIC"));

    assert!(over_tcp.closed().is_none(), "something is under way on it");
    sender.write(Bytes::from_static(b"and ended")).await.unwrap();
    sender.finish(None);
    read_until(&mut long, &mut got, "").await;
    assert!(got.contains("begun, ") && got.contains("and ended"), "{got}");
    let why = world
        .event(|event| match event {
            Event::CarrierDown { why, .. } => Some(why.clone()),
            _ => None,
        })
        .await;
    assert_eq!(why, "left for one over QUIC");
    assert_eq!(world.bus.counters().carriers_up(), 2);
}
