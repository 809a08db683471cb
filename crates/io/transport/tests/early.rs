//! Calls that are spoken on before they are answered: what that saves, and what becomes of the words where ground does not
//! know this end any more. On the in-process link, in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Profile;
use farhop_transport::hop::{Arrival, Hop, Incoming};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{CarrierError, Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use farhop_transport::socket::udp::UdpSocket;
use http::{HeaderMap, Method, StatusCode};
use quinn::{AsyncUdpSocket, Connection};
use tokio::sync::watch;
use tokio::time::Instant;

fn remote() -> Identity {
    Identity::from_seed([1; 32])
}

fn ground() -> Identity {
    Identity::from_seed([2; 32])
}

fn listed() -> Peers {
    Peers::new([("ship".to_owned(), remote().public())]).unwrap()
}

/// A ground that answers every request with a word; who may call it can be changed.
fn serve(socket: Arc<dyn AsyncUdpSocket>, plan: PathPlan) -> watch::Sender<Peers> {
    let (told, mut peers) = watch::channel(listed());
    let mut listener =
        Listener::replayable(socket, ground(), listed(), plan, plan.default_choice(End::Ground), 1).unwrap();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Some(Ok(accepted)) = accepted else { continue };
                    tokio::spawn(answer(Hop::start(accepted.connection, Role::Ground, Config::default(), &plan)));
                }
                changed = peers.changed() => match changed {
                    Ok(()) => listener.set_peers(peers.borrow().clone()),
                    Err(_) => return,
                },
            }
        }
    });
    told
}

async fn answer(hop: Hop) {
    while let Some(incoming) = hop.accept().await {
        if let Incoming::Exchange { mut sender, .. } = incoming {
            let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
            sender.answer(&head, Coding::Identity, None);
            sender.write(Bytes::from_static(b"word")).await.unwrap();
            sender.finish(None);
        }
    }
}

/// Asks on a connection that has just been begun; gives the hop and what came first.
async fn ask(connection: Connection, plan: PathPlan) -> (Hop, Arrival) {
    let hop = Hop::start(connection, Role::Remote, Config::default(), &plan);
    let head = RequestHead {
        method: Method::GET,
        scheme: "https".into(),
        authority: "site.test".into(),
        path: "/".into(),
        fields: HeaderMap::new(),
    };
    let (mut sender, mut receiver) = hop.ask(Ask::default(), &head);
    sender.finish(None);
    (hop, receiver.next().await)
}

fn is_answer(arrival: &Arrival) -> bool {
    matches!(arrival, Arrival::Answered { .. })
}

struct Geo {
    addr: SocketAddr,
    plan: PathPlan,
    dialer: Dialer,
    peers: watch::Sender<Peers>,
    link: Link,
}

/// Both ends over a geostationary link.
fn geo() -> Geo {
    let profile = Profile::named("geo-hylas2").unwrap();
    let plan = PathPlan::for_profile(&profile);
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    let addr = at_ground.addr();
    let peers = serve(at_ground, plan);
    let choice = plan.default_choice(End::Remote);
    let dialer = Dialer::replayable(at_remote, remote(), plan, choice, 2).unwrap();
    Geo { addr, plan, dialer, peers, link }
}

#[tokio::test(start_paused = true)]
async fn a_second_call_is_answered_a_round_trip_sooner() {
    let Geo { addr, plan, dialer, .. } = &geo();
    let (keys, slack) = ([ground().public()], Duration::from_millis(120));
    assert!(dialer.early(*addr, &keys).is_none(), "nothing is known of a ground that was never reached");

    let start = Instant::now();
    let (hop, first) = ask(dialer.connect(*addr, &keys).await.unwrap(), *plan).await;
    assert!(is_answer(&first));
    assert!((2 * plan.rtt..2 * plan.rtt + slack).contains(&start.elapsed()), "{:?}", start.elapsed());
    // Tickets come with the end of the handshake.
    tokio::time::sleep(plan.rtt).await;
    hop.close();

    let start = Instant::now();
    let early = dialer.early(*addr, &keys).expect("ground has given tickets");
    let (_hop, second) = ask(early.connection().clone(), *plan).await;
    assert!(is_answer(&second));
    assert!((plan.rtt..plan.rtt + slack).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(early.answered().await, Ok(true));
}

#[tokio::test(start_paused = true)]
async fn call_after_call_is_heard_early() {
    let Geo { addr, plan, dialer, .. } = &geo();
    let (keys, slack) = ([ground().public()], Duration::from_millis(120));
    let (hop, _) = ask(dialer.connect(*addr, &keys).await.unwrap(), *plan).await;
    tokio::time::sleep(plan.rtt).await;
    hop.close();
    for call in 1..=12 {
        let start = Instant::now();
        let early = dialer.early(*addr, &keys).unwrap_or_else(|| panic!("no ticket at call {call}"));
        let (hop, heard) = ask(early.connection().clone(), *plan).await;
        assert!(is_answer(&heard), "call {call}: {heard:?}");
        assert!(start.elapsed() < plan.rtt + slack, "call {call}: {:?}", start.elapsed());
        assert_eq!(early.answered().await, Ok(true), "call {call}");
        // Some end before ground's tickets have come, two round trips after the call, and live on those of the one before.
        tokio::time::sleep(if call % 3 == 0 { plan.rtt + slack } else { Duration::ZERO }).await;
        hop.close();
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_nobody_answered_leave_tickets_for_the_one_after_the_cut() {
    let Geo { addr, plan, dialer, link, .. } = &geo();
    let keys = [ground().public()];
    let (hop, _) = ask(dialer.connect(*addr, &keys).await.unwrap(), *plan).await;
    tokio::time::sleep(plan.rtt).await;
    hop.close();
    tokio::time::sleep(plan.rtt).await;
    link.cut();
    let in_vain = dialer.early(*addr, &keys).expect("ground has given tickets");
    assert!(in_vain.answered().await.is_err());
    for _ in 0..10 {
        assert!(dialer.connect(*addr, &keys).await.is_err());
    }
    link.restore();
    let start = Instant::now();
    let early = dialer.early(*addr, &keys).expect("a ticket is left");
    let (_hop, heard) = ask(early.connection().clone(), *plan).await;
    assert!(is_answer(&heard));
    assert!(start.elapsed() < plan.rtt + Duration::from_millis(120), "{:?}", start.elapsed());
    assert_eq!(early.answered().await, Ok(true));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_struck_off_does_not_come_in_with_a_ticket() {
    let Geo { addr, plan, dialer, peers, .. } = &geo();
    let keys = [ground().public()];
    let (hop, _) = ask(dialer.connect(*addr, &keys).await.unwrap(), *plan).await;
    tokio::time::sleep(plan.rtt).await;
    hop.close();

    peers.send_replace(Peers::default());
    let early = dialer.early(*addr, &keys).expect("ground has given tickets");
    let (_hop, heard) = ask(early.connection().clone(), *plan).await;
    assert_eq!(heard, Arrival::Lost);
    // Ground judges when the handshake is over for this end: it may hear of it a moment later.
    let connection = early.connection().clone();
    assert_ne!(early.answered().await, Ok(true));
    let denied = CarrierError::explain(&connection.closed().await, *addr, remote().public());
    assert!(matches!(denied, CarrierError::Denied { .. }), "{denied:?}");
}

#[tokio::test]
async fn what_is_said_early_to_a_ground_that_forgot_is_not_heard_and_the_call_stands() {
    let plan = PathPlan::UNKNOWN;
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into(), farhop_units::Bytes(1 << 20)).unwrap();
    let dialer = Dialer::new(socket(), remote(), plan, plan.default_choice(End::Remote)).unwrap();
    let keys = [ground().public()];
    // The second is the first as it is after a restart: the same key, and nothing remembered.
    let (first, second) = (socket(), socket());
    let addr = |socket: &Arc<UdpSocket>| socket.local_addr().unwrap();
    let (before, after) = (addr(&first), addr(&second));
    let _peers = (serve(first, plan), serve(second, plan));

    let (hop, _) = ask(dialer.connect(before, &keys).await.unwrap(), plan).await;
    while dialer.early(before, &keys).is_none() {
        tokio::task::yield_now().await;
    }
    hop.close();

    let early = dialer.early(after, &keys).expect("tickets are left");
    let connection = early.connection().clone();
    let asking = tokio::spawn(ask(connection.clone(), plan));
    assert_eq!(early.answered().await, Ok(false));
    assert!(!asking.is_finished(), "nobody has heard it");
    let (_hop, heard) = ask(connection, plan).await;
    assert!(is_answer(&heard));
    asking.abort();
}
