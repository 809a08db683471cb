//! Two ends over the in-process link and over loopback: they come together, refuse strangers with
//! words that help, carry data at the speed the link allows, and notice a restarted ground.
//! Times on the link are virtual.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhop_congestion::Choice;
use farhop_orbit::{Profile, Way};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Accepted, CarrierError, Dialer, Listener, Peers, Refused};
use farhop_transport::socket::link::{self, Link};
use farhop_transport::socket::udp::UdpSocket;
use farhop_transport::write_ahead::{Given, WriteAhead};
use farhop_units::Bytes;
use quinn::{AsyncUdpSocket, Connection, SendStream, VarInt};
use tokio::time::Instant;

const MEGABYTE: usize = 1_000_000;

fn remote() -> Identity {
    Identity::from_seed([1; 32])
}

fn ground() -> Identity {
    Identity::from_seed([2; 32])
}

fn peers(keys: &[PublicKey]) -> Peers {
    Peers::new(keys.iter().map(|key| ("ship".to_string(), *key))).unwrap()
}

fn listener(socket: Arc<dyn AsyncUdpSocket>, plan: PathPlan, keys: &[PublicKey]) -> Listener {
    Listener::replayable(socket, ground(), peers(keys), plan, plan.default_choice(End::Ground), 1).unwrap()
}

fn dialer(socket: Arc<dyn AsyncUdpSocket>, plan: PathPlan) -> Dialer {
    Dialer::replayable(socket, remote(), plan, plan.default_choice(End::Remote), 2).unwrap()
}

/// Both ends on an emulated link, and the established carrier.
struct Crossing {
    link: Link,
    dialer: Dialer,
    listener: Listener,
    near: Connection,
    far: Connection,
}

async fn cross(profile: &Profile) -> Crossing {
    let plan = PathPlan::for_profile(profile);
    let (link, at_ground, at_remote) = link::pair(profile, 1);
    let addr = at_ground.addr();
    let mut listener = listener(at_ground, plan, &[remote().public()]);
    let dialer = dialer(at_remote, plan);
    let keys = [ground().public()];
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let Accepted { connection: far, name, key } = far.unwrap().unwrap();
    assert_eq!((&*name, key), ("ship", remote().public()));
    Crossing { link, dialer, listener, near: near.unwrap(), far }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + index / 251) as u8).collect()
}

/// Makes room after losses on behalf of the sender, as the carrier's driver does.
async fn adapt(connection: &Connection, plan: PathPlan, end: End) {
    let start = Instant::now();
    let mut ahead = WriteAhead::new(&plan, end);
    loop {
        ahead.adapt(start.elapsed(), connection, Given::default());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Writes in pieces, as the scheduler does: quinn counts a written piece against the send window until
/// all of it is acknowledged, so one of a megabyte would hold the window for round trips.
async fn write_pieces(stream: &mut SendStream, bytes: &[u8]) {
    for piece in bytes.chunks(8 << 10) {
        stream.write_all(piece).await.unwrap();
    }
}

/// Sends `len` bytes from one end to the other on one stream; how long until the last has arrived.
async fn transfer(from: &Connection, to: &Connection, len: usize) -> Duration {
    let start = Instant::now();
    let sending = async {
        let mut stream = from.open_uni().await.unwrap();
        write_pieces(&mut stream, &pattern(len)).await;
        stream.finish().unwrap();
    };
    let receiving = async {
        let mut stream = to.accept_uni().await.unwrap();
        let received = stream.read_to_end(len).await.unwrap();
        assert!(received == pattern(len), "bytes differ");
        start.elapsed()
    };
    tokio::join!(sending, receiving).1
}

#[tokio::test(start_paused = true)]
async fn a_fresh_carrier_fills_a_geo_link_from_its_first_round_trip() {
    let profile = Profile::named("geo-hylas2").unwrap();
    let start = Instant::now();
    let ends = cross(&profile).await;
    let handshake = start.elapsed();
    assert!(handshake < profile.rtt() * 2, "{handshake:?}");

    let took = transfer(&ends.far, &ends.near, 2 * MEGABYTE).await;
    // 2 MB at 8 Mbit/s are 2.0 s, the way across 0.325 s; headers cost 4 %.
    assert!(took > Duration::from_millis(2325), "{took:?} is faster than light");
    assert!(took < Duration::from_millis(2700), "{took:?}");
    let forward = ends.link.counters(Way::Forward);
    assert_eq!(forward.drops(), 0, "{forward:?}");
    // Half a second of return link at most goes to acknowledgements: 64 kbit/s of 512.
    let acks = ends.link.counters(Way::Return).sent.bytes;
    assert!(acks < Bytes(32_000), "{acks}");
}

#[tokio::test(start_paused = true)]
async fn uploads_fill_the_return_link() {
    let profile = Profile::named("geo-hylas2").unwrap();
    let ends = cross(&profile).await;
    let took = transfer(&ends.near, &ends.far, 256_000).await;
    // 4.0 s at 512 kbit/s and 0.325 s across.
    assert!(took < Duration::from_millis(4800), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn one_per_cent_of_random_loss_costs_round_trips_but_not_the_rate() {
    let profile = Profile::named("geo-hylas2").unwrap().with_loss(0.01, 0.01);
    let ends = cross(&profile).await;
    let plan = PathPlan::for_profile(&profile);
    let took = tokio::select! {
        took = transfer(&ends.far, &ends.near, 10 * MEGABYTE) => took,
        () = adapt(&ends.far, plan, End::Ground) => unreachable!("never ends"),
    };
    // 10.8 s without loss; with quinn's CUBIC minutes.
    assert!(took < Duration::from_secs(13), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_idle_timeout_is_survived() {
    let profile = Profile::named("geo-hylas2").unwrap();
    let ends = cross(&profile).await;
    let outage = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ends.link.cut();
        tokio::time::sleep(Duration::from_secs(5)).await;
        ends.link.restore();
    };
    let (took, ()) = tokio::join!(transfer(&ends.far, &ends.near, 2 * MEGABYTE), outage);
    assert!(took > Duration::from_secs(6), "{took:?}");
    assert!(took < Duration::from_secs(16), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_urgent_stream_overtakes_a_bulk_transfer() {
    let profile = Profile::named("geo-hylas2").unwrap();
    let ends = cross(&profile).await;
    let mut bulk = ends.far.open_uni().await.unwrap();
    write_pieces(&mut bulk, b"first").await;
    let mut bulk_in = ends.near.accept_uni().await.unwrap();
    let draining = tokio::spawn(async move { bulk_in.read_to_end(40 * MEGABYTE).await });

    // One writer decides what goes next, as the scheduler does: two would race for the send window.
    let piece = pattern(8 << 10);
    let filling = async {
        loop {
            bulk.write_all(&piece).await.unwrap();
        }
    };
    tokio::pin!(filling);
    let full = tokio::time::timeout(Duration::from_secs(4), &mut filling).await;
    assert!(full.is_err());

    let start = Instant::now();
    let mut urgent = ends.far.open_uni().await.unwrap();
    urgent.set_priority(1).unwrap();
    let sending = async {
        urgent.write_all(&pattern(5_000)).await.unwrap();
        urgent.finish().unwrap();
    };
    let arriving = async {
        let mut stream = ends.near.accept_uni().await.unwrap();
        stream.read_to_end(5_000).await.unwrap();
    };
    let both = async { tokio::join!(sending, arriving) };
    tokio::select! {
        biased;
        _ = both => (),
        () = filling => (),
    }
    let took = start.elapsed();
    // One way across, a quarter RTT of queue at most, the writes ahead, and the object itself.
    assert!(took < Duration::from_millis(325 + 163 + 60 + 50), "{took:?}");
    draining.abort();
}

#[tokio::test(start_paused = true)]
async fn streams_that_nobody_reads_hold_up_no_other() {
    let Crossing { link: _link, near, far, .. } = cross(&Profile::named("geo-hylas2").unwrap()).await;
    let mut unread = Vec::new();
    for _ in 0..40 {
        let mut stream = far.open_uni().await.unwrap();
        let full = tokio::time::timeout(Duration::from_secs(5), async {
            loop {
                write_pieces(&mut stream, &[0; 64 * 1024]).await;
            }
        });
        assert!(full.await.is_err(), "its own window ends it");
        unread.push((stream, near.accept_uni().await.unwrap()));
    }
    let other = tokio::time::timeout(Duration::from_secs(60), transfer(&far, &near, MEGABYTE));
    other.await.expect("another goes on");
}

#[tokio::test(start_paused = true)]
async fn a_link_without_effect_carries_at_once_and_loses_nothing() {
    let ends = cross(&Profile::named("none").unwrap()).await;
    transfer(&ends.far, &ends.near, 20 * MEGABYTE).await;
    transfer(&ends.near, &ends.far, 20 * MEGABYTE).await;
    for way in Way::BOTH {
        assert_eq!((ends.link.counters(way).drops(), ends.link.overflowed(way)), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn closing_says_why() {
    let ends = cross(&Profile::named("geo-hylas2").unwrap()).await;
    let addr = ends.near.remote_address();
    ends.listener.close(7, "ground is going down").await;
    let error = CarrierError::explain(&ends.near.closed().await, addr, ends.dialer.public_key());
    assert_eq!(error.to_string(), format!("{addr} closed the carrier: ground is going down (code 7)"));
    assert!(error.retry_can_help());
}

/// What each end says when ground lists `admitted` and the remote expects `expected`.
async fn refusal(admitted: PublicKey, expected: PublicKey) -> (CarrierError, Refused) {
    let profile = Profile::named("geo-hylas2").unwrap();
    let plan = PathPlan::for_profile(&profile);
    let (_link, at_ground, at_remote) = link::pair(&profile, 1);
    let addr = at_ground.addr();
    let mut listener = listener(at_ground, plan, &[admitted]);
    let dialer = dialer(at_remote, plan);
    let calling = async {
        match dialer.connect(addr, &[expected]).await {
            Ok(connection) => CarrierError::explain(&connection.closed().await, addr, dialer.public_key()),
            Err(error) => error,
        }
    };
    let (near, far) = tokio::join!(calling, listener.accept());
    (near, far.unwrap().unwrap_err())
}

#[tokio::test(start_paused = true)]
async fn a_remote_that_ground_does_not_list_is_refused_and_both_ends_name_the_key() {
    let other = Identity::from_seed([3; 32]).public();
    let (near, far) = refusal(other, ground().public()).await;
    assert!(matches!(near, CarrierError::Denied { own, .. } if own == remote().public()), "{near}");
    assert!(matches!(far.error, CarrierError::Stranger { key, .. } if key == remote().public()), "{far}");
    let key = remote().public().to_string();
    assert!(near.to_string().contains(&key) && far.to_string().contains(&key), "{near}\n{far}");
    assert!(!near.retry_can_help());
}

#[tokio::test(start_paused = true)]
async fn a_ground_with_another_key_is_refused_and_both_ends_say_so() {
    let other = Identity::from_seed([3; 32]).public();
    let (near, far) = refusal(remote().public(), other).await;
    assert!(matches!(near, CarrierError::Stranger { key, .. } if key == ground().public()), "{near}");
    assert!(matches!(far.error, CarrierError::Denied { own, .. } if own == ground().public()), "{far}");
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_running_is_admitted_from_then_on() {
    let profile = Profile::named("geo-hylas2").unwrap();
    let plan = PathPlan::for_profile(&profile);
    let (_link, at_ground, at_remote) = link::pair(&profile, 1);
    let addr = at_ground.addr();
    let mut listener = listener(at_ground, plan, &[]);
    let dialer = dialer(at_remote, plan);
    let keys = [ground().public()];
    let (_, refused) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    assert!(refused.unwrap().is_err());
    listener.set_peers(peers(&[remote().public()]));
    let (_, admitted) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    assert_eq!(&*admitted.unwrap().unwrap().name, "ship");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_answers_says_what_to_check() {
    let profile = Profile::named("geo-hylas2").unwrap();
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    link.cut();
    let dialer = dialer(at_remote, PathPlan::for_profile(&profile));
    let error = dialer.connect(at_ground.addr(), &[ground().public()]).await.unwrap_err();
    assert!(matches!(error, CarrierError::NoAnswer { .. }), "{error}");
    assert!(error.retry_can_help());
}

#[tokio::test(start_paused = true)]
async fn in_a_flood_of_unfinished_handshakes_a_newcomer_proves_its_address_and_comes_in() {
    let profile = Profile::named("geo-20m").unwrap();
    let plan = PathPlan::for_profile(&profile);
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    let addr = at_ground.addr();
    let mut listener = listener(at_ground, plan, &[remote().public()]);
    let dialer = dialer(at_remote, plan);
    // Ground's answers are lost, so none of these can finish.
    link.cut_way(Way::Forward);
    for _ in 0..64 {
        let dialer = dialer.clone();
        tokio::spawn(async move { dialer.connect(addr, &[ground().public()]).await });
    }
    let none_comes_in = tokio::time::timeout(Duration::from_secs(1), listener.accept()).await;
    assert!(none_comes_in.is_err());

    link.restore();
    let accepting = tokio::spawn(async move { while listener.accept().await.is_some() {} });
    let start = Instant::now();
    dialer.connect(addr, &[ground().public()]).await.unwrap();
    let took = start.elapsed();
    // One round trip to prove the address, one for the handshake.
    assert!(took > profile.rtt() * 2 && took < profile.rtt() * 3, "{took:?}");
    accepting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_ground_that_is_going_down_says_so_to_newcomers() {
    let ends = cross(&Profile::named("geo-hylas2").unwrap()).await;
    let addr = ends.near.remote_address();
    ends.listener.close(0, "").await;
    let error = ends.dialer.connect(addr, &[ground().public()]).await.unwrap_err();
    assert_eq!(error, CarrierError::Refusing { addr });
    assert!(error.retry_can_help());
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn udp(addr: SocketAddr) -> Arc<UdpSocket> {
    UdpSocket::bind(addr, Bytes(256 << 10)).unwrap()
}

/// A ground in a runtime of its own, which can be taken away without a farewell.
struct Process {
    runtime: tokio::runtime::Runtime,
    addr: SocketAddr,
}

impl Process {
    fn start(addr: SocketAddr) -> Process {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let guard = runtime.enter();
        let socket = udp(addr);
        let addr = socket.local_addr().unwrap();
        let mut listener = listener(socket, PathPlan::UNKNOWN, &[remote().public()]);
        drop(guard);
        runtime.spawn(async move {
            let mut carriers = Vec::new();
            while let Some(accepted) = listener.accept().await {
                let connection = accepted.unwrap().connection;
                carriers.push(connection.clone());
                tokio::spawn(async move {
                    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                        let echo = receive.read_to_end(MEGABYTE).await.unwrap();
                        send.write_all(&echo).await.unwrap();
                        send.finish().unwrap();
                    }
                });
            }
        });
        Process { runtime, addr }
    }

    /// Takes the process away: no close is sent, as after SIGKILL.
    fn kill(self) {
        let (stop, stopped) = std::sync::mpsc::channel();
        let runtime = self.runtime;
        std::thread::spawn(move || {
            runtime.shutdown_timeout(Duration::from_secs(10));
            let _ = stop.send(());
        });
        stopped.recv().unwrap();
    }
}

#[tokio::test]
async fn a_ground_that_was_killed_and_restarted_is_noticed_by_its_reset() {
    let first = Process::start(loopback());
    let addr = first.addr;
    let dialer = dialer(udp(loopback()), PathPlan::UNKNOWN);
    let connection = dialer.connect(addr, &[ground().public()]).await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(b"are you there?").await.unwrap();
    send.finish().unwrap();
    assert_eq!(receive.read_to_end(100).await.unwrap(), b"are you there?");

    tokio::task::spawn_blocking(move || first.kill()).await.unwrap();
    let second = tokio::task::spawn_blocking(move || Process::start(addr)).await.unwrap();
    // Anything sent now reaches a process that does not know this connection.
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    let _ = send.write_all(b"and now?").await;
    let noticed = tokio::time::timeout(Duration::from_secs(10), connection.closed()).await.unwrap();
    let error = CarrierError::explain(&noticed, addr, dialer.public_key());
    assert_eq!(error, CarrierError::Restarted { addr });

    assert!(dialer.connect(addr, &[ground().public()]).await.is_ok(), "and can be called again");
    tokio::task::spawn_blocking(move || second.kill()).await.unwrap();
}

#[tokio::test]
async fn over_loopback_datagrams_are_counted_and_data_arrives_whole() {
    let at_ground = udp(loopback());
    let addr = at_ground.local_addr().unwrap();
    let mut listener = listener(at_ground.clone(), PathPlan::UNKNOWN, &[remote().public()]);
    let at_remote = udp(loopback());
    let dialer = Dialer::new(at_remote.clone(), remote(), PathPlan::UNKNOWN, Choice::NewReno).unwrap();
    let keys = [ground().public()];
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let (near, far) = (near.unwrap(), far.unwrap().unwrap().connection);
    transfer(&far, &near, 2 * MEGABYTE).await;
    near.close(VarInt::from_u32(0), b"");
    let (sent, received) = (at_ground.traffic(), at_remote.traffic());
    assert!(sent.sent >= Bytes(2_000_000) && sent.sent_datagrams > 1_300, "{sent:?}");
    assert!(received.received >= Bytes(2_000_000), "{received:?}");
}
