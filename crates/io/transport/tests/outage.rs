//! What is under way when the link is cut: nothing of it is lost or said twice, and it goes on as soon as the link is back.
//! Both real ends, HTOTP over QUIC, on the in-process link in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Coding, Tunnel};
use farhop_htotp::scheduler::Pace;
use farhop_htotp::session::{Ask, Config, Probe, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::{Profile, Way};
use farhop_transport::hop::{Arrival, Closed, Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::Identity;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use http::{HeaderMap, Method, StatusCode};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

const PROFILE: &str = "geo-hylas2";
/// Longer than anything here should take.
const PATIENCE: Duration = Duration::from_secs(1000);

/// Both ends with a carrier between them.
struct Ends {
    link: Link,
    near: Hop,
    far: Hop,
    plan: PathPlan,
    // Each holds its endpoint.
    _dialer: Dialer,
    _listener: Listener,
}

fn config(plan: &PathPlan, end: End) -> Config {
    let probe = Probe { patience: Duration::from_secs(1) + plan.rtt, ..Probe::default() };
    Config { pace: Pace { rate: plan.sending_rate(end), ..Pace::default() }, probe, ..Config::default() }
}

async fn ends(seed: u64) -> Ends {
    let profile = Profile::named(PROFILE).unwrap();
    let plan = PathPlan::for_profile(&profile);
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, at_ground, at_remote) = link::pair(&profile, seed);
    let addr = at_ground.addr();
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let keys = [ground.public()];
    let choice = |end| plan.default_choice(end);
    let mut listener =
        Listener::replayable(at_ground, ground, peers, plan, choice(End::Ground), seed).unwrap();
    let dialer = Dialer::replayable(at_remote, remote, plan, choice(End::Remote), !seed).unwrap();
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let far = far.unwrap().unwrap().connection;
    let near = Hop::start(near.unwrap(), Role::Remote, config(&plan, End::Remote), &plan);
    let far = Hop::start(far, Role::Ground, config(&plan, End::Ground), &plan);
    Ends { link, near, far, plan, _dialer: dialer, _listener: listener }
}

fn pattern(len: usize, salt: u64) -> Bytes {
    (0..len as u64).map(|index| (index * 31 + index / 251 + salt) as u8).collect::<Vec<_>>().into()
}

fn head(method: Method, path: &str) -> RequestHead {
    RequestHead {
        method,
        scheme: "https".into(),
        authority: "site.test".into(),
        path: path.into(),
        fields: HeaderMap::new(),
    }
}

/// What a stream has carried to its end.
struct Taken {
    bytes: Vec<u8>,
    /// When the end came.
    at: Instant,
    /// Each time at which bytes came.
    times: Vec<Instant>,
}

/// Takes a stream to its end.
async fn take(mut receiver: Receiver) -> Taken {
    let mut taken = Taken { bytes: Vec::new(), at: Instant::now(), times: vec![Instant::now()] };
    loop {
        match timeout(PATIENCE, receiver.next()).await.expect("it goes on") {
            Arrival::Body(bytes) => {
                taken.bytes.extend_from_slice(&bytes);
                taken.times.push(Instant::now());
            }
            Arrival::Ended => break,
            Arrival::Answered { .. } | Arrival::TunnelOpened => {}
            other => panic!("{other:?} after {} bytes", taken.bytes.len()),
        }
    }
    taken.at = Instant::now();
    taken
}

impl Taken {
    /// The first bytes after `moment`.
    fn next_after(&self, moment: Instant) -> Instant {
        *self.times.iter().find(|time| **time > moment).expect("something came after it")
    }
}

async fn give(mut sender: Sender, bytes: Bytes) {
    for start in (0..bytes.len()).step_by(16 << 10) {
        sender.write(bytes.slice(start..bytes.len().min(start + (16 << 10)))).await.expect("taken");
    }
    sender.finish(None);
}

/// Plays an origin behind ground: takes what is asked, answers with `size` bytes, echoes tunnels; gives the bodies of
/// requests in the order in which they were whole.
async fn serve(far: Hop, size: usize) -> Vec<(u64, Vec<u8>)> {
    let mut tasks = tokio::task::JoinSet::new();
    while let Some(incoming) = far.accept().await {
        match incoming {
            Incoming::Exchange { exchange, sender, receiver, .. } => {
                tasks.spawn(async move {
                    let asked = take(receiver).await;
                    sender.answer(
                        &ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() },
                        Coding::Identity,
                        None,
                    );
                    give(sender, pattern(size, exchange)).await;
                    (exchange, asked.bytes)
                });
            }
            Incoming::Tunnel { asked: Tunnel { tunnel, .. }, mut sender, mut receiver } => {
                sender.accept_tunnel();
                tasks.spawn(async move {
                    let mut said = Vec::new();
                    while let Arrival::Body(bytes) = receiver.next().await {
                        said.extend_from_slice(&bytes);
                        sender.write(bytes).await.expect("taken");
                    }
                    sender.finish(None);
                    (tunnel, said)
                });
            }
            _ => {}
        }
    }
    tasks.join_all().await
}

fn ask(near: &Hop, exchange: u64) -> Receiver {
    let (mut sender, receiver) = near.ask(Ask { exchange, ..Ask::default() }, &head(Method::GET, "/big"));
    sender.finish(None);
    receiver
}

/// Cuts the link for `long` after `after`; gives when it came back.
async fn cut(link: &Link, after: Duration, long: Duration) -> Instant {
    sleep(after).await;
    link.cut();
    sleep(long).await;
    link.restore();
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn a_download_goes_on_within_three_round_trips_of_the_links_return_however_long_it_was_away() {
    const SIZE: usize = 3_000_000;
    for seconds in [1, 2, 5, 10, 30, 60, 120] {
        let Ends { link, near, far, plan, .. } = &ends(1).await;
        let long = Duration::from_secs(seconds);
        let start = Instant::now();
        let origin = tokio::spawn(serve(far.clone(), SIZE));
        let (taken, back) = tokio::join!(take(ask(near, 7)), cut(link, Duration::from_secs(2), long));
        assert!(taken.bytes == pattern(SIZE, 7), "{seconds} s: bytes differ");
        let waited = taken.next_after(back) - back;
        assert!(waited <= 3 * plan.rtt, "{seconds} s: the next byte came {waited:?} after the link");
        let rate = plan.forward.unwrap();
        let limit = plan.rtt + rate.time_for(farhop_units::Bytes(SIZE as u64));
        let total = taken.at - start;
        assert!(total <= limit.mul_f64(1.05) + long + 4 * plan.rtt, "{seconds} s: {total:?} of {limit:?}");
        near.close();
        assert_eq!(origin.await.unwrap().len(), 1, "the origin was asked once");
    }
}

/// The bound that the part on transport sets. Its limit counts the bytes on the wire of the same transfer without a cut.
#[tokio::test(start_paused = true)]
async fn a_cut_of_30_seconds_in_the_middle_of_20_megabytes_costs_30_seconds_and_three_round_trips() {
    const SIZE: usize = 20_000_000;
    let long = Duration::from_secs(30);
    let mut limit = Duration::MAX;
    for is_cut in [false, true] {
        let Ends { link, near, far, plan, .. } = &ends(1).await;
        let start = Instant::now();
        let origin = tokio::spawn(serve(far.clone(), SIZE));
        let cutting = async {
            if is_cut {
                cut(link, Duration::from_secs(10), long).await;
            }
        };
        let (taken, ()) = tokio::join!(take(ask(near, 7)), cutting);
        assert!(taken.bytes == pattern(SIZE, 7), "bytes differ");
        let total = taken.at - start;
        if is_cut {
            let bound = limit.mul_f64(1.05) + long + 3 * plan.rtt;
            assert!(total <= bound, "{total:?}, where the limit is {limit:?} and the bound {bound:?}");
        } else {
            let wire = link.counters(Way::Forward).delivered.bytes;
            limit = plan.rtt + plan.forward.unwrap().time_for(wire);
        }
        near.close();
        assert_eq!(origin.await.unwrap().len(), 1, "the origin was asked once");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upload_is_sent_once_and_answered_when_the_link_is_cut_under_it() {
    let body = pattern(150_000, 3);
    for seconds in [2, 30, 120] {
        let Ends { link, near, far, plan, .. } = &ends(1).await;
        let origin = tokio::spawn(serve(far.clone(), 1000));
        let (sender, receiver) =
            near.ask(Ask { exchange: 9, ..Ask::default() }, &head(Method::POST, "/order"));
        let ((), taken, back) = tokio::join!(
            give(sender, body.clone()),
            take(receiver),
            cut(link, Duration::from_secs(1), Duration::from_secs(seconds)),
        );
        assert!(taken.bytes == pattern(1000, 9), "{seconds} s");
        // The rest of the upload takes 2.3 s at the most.
        let waited = taken.at - back;
        assert!(waited < 5 * plan.rtt + Duration::from_millis(2400), "{seconds} s: {waited:?}");
        near.close();
        assert_eq!(origin.await.unwrap(), [(9, body.to_vec())], "whole, and once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_and_what_is_said_in_it_outlive_a_cut() {
    let Ends { link, near, far, plan, .. } = &ends(1).await;
    let echo = tokio::spawn(serve(far.clone(), 0));
    let (mut sender, mut receiver) = near.open_tunnel(Tunnel::to(4, 1, Class::Web, "ssh.test", 22));
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::TunnelOpened);
    link.cut();
    sender.write(Bytes::from_static(b"said during the cut")).await.unwrap();
    sleep(Duration::from_secs(40)).await;
    assert!(near.silent().borrow().is_some(), "the silence was noticed");
    link.restore();
    let back = Instant::now();
    let heard = timeout(PATIENCE, receiver.next()).await.unwrap();
    assert_eq!(heard, Arrival::Body(Bytes::from_static(b"said during the cut")));
    assert!(back.elapsed() <= 3 * plan.rtt, "{:?}", back.elapsed());
    assert!(near.silent().borrow().is_none(), "and its end");
    sender.finish(None);
    near.close();
    assert_eq!(echo.await.unwrap(), [(4, b"said during the cut".to_vec())]);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_does_not_come_back_ends_the_carrier_when_the_hold_is_over() {
    let Ends { link, near, .. } = &ends(1).await;
    let mut receiver = ask(near, 1);
    sleep(Duration::from_secs(1)).await;
    link.cut();
    let start = Instant::now();
    assert_eq!(timeout(PATIENCE, receiver.next()).await.unwrap(), Arrival::Lost);
    assert_eq!(near.closed(), Some(Closed::Silent));
    let hold = Probe::default().hold;
    assert!((hold..hold + Duration::from_secs(4)).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// A NAT between the remote and `ground`: what it passes on comes from an address of its own, until it is told to forget it
/// and take another. Gives the address at which the remote reaches it.
async fn nat(ground: SocketAddr, forget: Arc<Notify>) -> SocketAddr {
    let bind = || async { UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap() };
    let (inside, mut outside) = (bind().await, bind().await);
    let addr = inside.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
        let mut remote = None;
        loop {
            tokio::select! {
                Ok((len, from)) = inside.recv_from(&mut up) => {
                    remote = Some(from);
                    outside.send_to(&up[..len], ground).await.unwrap();
                }
                Ok((len, _)) = outside.recv_from(&mut down) => {
                    if let Some(remote) = remote {
                        inside.send_to(&down[..len], remote).await.unwrap();
                    }
                }
                () = forget.notified() => outside = bind().await,
            }
        }
    });
    addr
}

#[tokio::test]
async fn a_remote_whose_address_changes_goes_on() {
    moves(PathPlan { repair: 0, ..PathPlan::UNKNOWN }).await;
}

#[tokio::test]
async fn a_remote_whose_address_changes_goes_on_beneath_repairs_too() {
    moves(PathPlan { repair: 25, ..PathPlan::UNKNOWN }).await;
}

/// A download whose remote gets another address meanwhile.
async fn moves(plan: PathPlan) {
    const SIZE: usize = 8_000_000;
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let keys = [ground.public()];
    let socket = || {
        let addr = (Ipv4Addr::LOCALHOST, 0).into();
        farhop_transport::socket::udp::UdpSocket::bind(addr, farhop_units::Bytes(1 << 20)).unwrap()
    };
    let choice = |end| plan.default_choice(end);
    let mut listener = Listener::new(socket(), ground, peers, plan, choice(End::Ground)).unwrap();
    let forget = Arc::new(Notify::new());
    let addr = nat(listener.local_addr().unwrap(), Arc::clone(&forget)).await;
    let dialer = Dialer::new(socket(), remote, plan, choice(End::Remote)).unwrap();
    let (near, far) = tokio::join!(dialer.connect(addr, &keys), listener.accept());
    let far_connection = far.unwrap().unwrap().connection;
    let before = far_connection.remote_address();
    let near = Hop::start(near.unwrap(), Role::Remote, config(&plan, End::Remote), &plan);
    let far = Hop::start(far_connection.clone(), Role::Ground, config(&plan, End::Ground), &plan);
    let origin = tokio::spawn(serve(far, SIZE));
    let mut receiver = ask(&near, 3);
    assert!(matches!(receiver.next().await, Arrival::Answered { .. }));
    forget.notify_one();
    let taken = take(receiver).await;
    assert!(taken.bytes == pattern(SIZE, 3), "{} bytes", taken.bytes.len());
    assert_ne!(far_connection.remote_address(), before, "ground follows");
    near.close();
    assert_eq!(origin.await.unwrap().len(), 1, "the origin was asked once");
}

/// Numbers that a seed gives (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }
}

/// Exchanges and uploads of random sizes over a link that is cut at random, both ways or one; then all must be whole,
/// each asked once, and nothing may have stood still for longer than the outage and a few round trips.
async fn random_cuts(seed: u64) {
    let mut dice = Dice(seed);
    let Ends { link, near, far, plan, .. } = &ends(seed).await;
    let size = 20_000 + dice.below(1_500_000) as usize;
    let origin = tokio::spawn(serve(far.clone(), size));
    let mut asked = tokio::task::JoinSet::new();
    let count = 1 + dice.below(5);
    let mut uploads = Vec::new();
    for exchange in 1..=count {
        let upload = pattern(dice.below(40_000) as usize, seed + exchange);
        let (sender, receiver) = near.ask(Ask { exchange, ..Ask::default() }, &head(Method::POST, "/"));
        uploads.push((exchange, upload.to_vec()));
        asked.spawn(async move {
            let ((), taken) = tokio::join!(give(sender, upload), take(receiver));
            assert!(taken.bytes == pattern(size, exchange), "seed {seed}: exchange {exchange} differs");
            taken.times
        });
    }
    let cuts = async {
        let mut away = Vec::new();
        for _ in 0..1 + dice.below(3) {
            sleep(Duration::from_millis(dice.below(6_000))).await;
            let from = Instant::now();
            match dice.below(4) {
                0 => link.cut_way(Way::Forward),
                1 => link.cut_way(Way::Return),
                _ => link.cut(),
            }
            sleep(Duration::from_millis(200 + dice.below(3).pow(2) * dice.below(25_000))).await;
            link.restore();
            away.push((from, Instant::now()));
        }
        away
    };
    let (times, away) = tokio::join!(asked.join_all(), cuts);
    near.close();
    let mut heard = timeout(PATIENCE, origin).await.unwrap().unwrap();
    heard.sort();
    assert!(heard == uploads, "seed {seed}: the origin was asked once for each, with its whole body");
    let mut times: Vec<Instant> = times.into_iter().flatten().collect();
    times.sort();
    // From when the uploads are certainly through, if nothing is cut.
    for gap in times.windows(2).filter(|gap| gap[1] - gap[0] > 3 * plan.rtt) {
        let outage: Duration = away
            .iter()
            .map(|(from, to)| (*to).min(gap[1]).saturating_duration_since((*from).max(gap[0])))
            .sum();
        let stood = (gap[1] - gap[0]).saturating_sub(outage);
        // Before its answer each upload crosses: 5 × 40 KB at 512 kbit/s.
        let uploads = if gap[0] == times[0] { Duration::from_secs(4) } else { Duration::ZERO };
        let bound = (3 * away.len() as u32 + 1) * plan.rtt + uploads;
        assert!(stood <= bound, "seed {seed}: stood still for {stood:?} beside an outage of {outage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn random_cuts_lose_nothing_repeat_nothing_and_stall_nothing() {
    let seeds = std::env::var("FARHOP_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(24);
    let first = std::env::var("FARHOP_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in first.map_or(0..seeds, |seed| seed..seed + 1) {
        eprintln!("replay with FARHOP_SEED={seed}");
        random_cuts(seed).await;
    }
}
