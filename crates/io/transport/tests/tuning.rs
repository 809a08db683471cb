//! Ends that were told nothing of their path: what they measure of it over the in-process link in virtual time, what they
//! decide by it, and how near to the limit that takes a transfer.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use farhop_congestion::Choice;
use farhop_htotp::frame::Coding;
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Profile;
use farhop_transport::Kind;
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::PathPlan;
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use farhop_tuning::{Decision, Source, Told, Value};
use farhop_units::{BitRate, Bytes as Size};
use http::{HeaderMap, Method, StatusCode};
use tokio::time::{Instant, sleep};

/// Two ends and the link between them.
struct Ends {
    _link: Link,
    profile: Profile,
    plan: PathPlan,
    dialer: Dialer,
    listener: Listener,
    ground: (SocketAddr, PublicKey),
}

fn ends(profile: Profile, plan: PathPlan) -> Ends {
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    let known = (at_ground.addr(), ground.public());
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let listener = Listener::new(at_ground, ground, peers, plan, Choice::Bbr).unwrap();
    let dialer = Dialer::new(at_remote, remote, plan, Choice::Bbr).unwrap();
    Ends { _link: link, profile, plan, dialer, listener, ground: known }
}

impl Ends {
    /// A carrier whose requests are answered: its remote's side and ground's.
    async fn call(&mut self) -> (Hop, Hop) {
        let (near, far) = self.connect().await;
        tokio::spawn(serve(far.clone()));
        (near, far)
    }

    async fn connect(&mut self) -> (Hop, Hop) {
        let keys = [self.ground.1];
        let (near, far) = tokio::join!(self.dialer.connect(self.ground.0, &keys), self.listener.accept());
        let (near, far) = (near.unwrap(), far.unwrap().unwrap().connection);
        let peers = (near.remote_address().ip(), far.remote_address().ip());
        let near = Hop::start(near, Role::Remote, Config::default(), &self.plan);
        near.learn(self.dialer.learned(), peers.0);
        let far = Hop::start(far, Role::Ground, Config::default(), &self.plan);
        far.learn(self.listener.learned(), peers.1);
        (near, far)
    }

    /// What distance and rate allow for `bytes` of a body.
    fn limit(&self, bytes: usize) -> Duration {
        self.profile.rtt() + self.profile.forward.rate.unwrap().time_for(Size(bytes as u64))
    }
}

/// Answers each exchange with as many bytes as its path says.
async fn serve(far: Hop) {
    while let Some(incoming) = far.accept().await {
        let Incoming::Exchange { head, mut sender, receiver, .. } = incoming else { continue };
        let mut left: usize = head.path.trim_start_matches('/').parse().unwrap();
        tokio::spawn(async move {
            let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
            sender.answer(&head, Coding::Identity, None);
            let piece = Bytes::from(vec![7; 16 << 10]);
            while left > 0 {
                let next = piece.slice(..left.min(piece.len()));
                left -= next.len();
                if sender.write(next).await.is_err() {
                    return; // who asked has left
                }
            }
            sender.finish(None);
            drop(receiver);
        });
    }
}

/// Names exchanges.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Asks for so many bytes.
fn ask(near: &Hop, bytes: usize) -> (Sender, Receiver) {
    let head = RequestHead {
        method: Method::GET,
        scheme: "http".into(),
        authority: "site.test".into(),
        path: format!("/{bytes}"),
        fields: HeaderMap::new(),
    };
    let ask = Ask { exchange: NEXT.fetch_add(1, Ordering::Relaxed), ..Ask::default() };
    let (mut sender, receiver) = near.ask(ask, &head);
    sender.finish(None);
    (sender, receiver)
}

/// Fetches so many bytes; gives the time that it took.
async fn fetch(near: &Hop, bytes: usize) -> Duration {
    let began = Instant::now();
    let (_sender, mut receiver) = ask(near, bytes);
    let mut came = 0;
    loop {
        match receiver.next().await {
            Arrival::Body(bytes) => came += bytes.len(),
            Arrival::Ended => break,
            Arrival::Answered { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(came, bytes);
    began.elapsed()
}

fn row<'a>(told: &'a Told, parameter: &str) -> &'a Decision {
    told.decided.iter().find(|decision| decision.parameter == parameter).unwrap()
}

fn bytes(value: Value) -> u64 {
    let Value::Bytes(bytes) = value else { panic!("{value:?} is no size") };
    bytes
}

/// What is measured is within so much of the truth.
fn is_near(measured: f64, truth: f64, part: f64) -> bool {
    (measured / truth - 1.0).abs() <= part
}

#[tokio::test(start_paused = true)]
async fn what_nobody_has_set_is_measured_from_low_orbit_to_the_moon_and_the_transfer_is_near_its_limit() {
    let (mbit, kbit) = (BitRate::mbit, BitRate::kbit);
    let ms = Duration::from_millis;
    // How much slower than the limit the first transfer of a path may be that BBR has to search: it doubles each round trip.
    for (name, forward, return_, delay, most) in [
        ("leo", mbit(50), mbit(10), ms(10), 1.5),
        ("geo", mbit(8), kbit(512), ms(325), 1.5),
        ("lunar", mbit(2), kbit(64), ms(1300), 1.75),
    ] {
        let profile = Profile::symmetric_delay(name, forward, return_, delay);
        // What repairs take of the link is not measured.
        let mut ends = ends(profile, PathPlan::UNKNOWN.with_repair(0));
        let (near, far) = ends.call().await;
        let took = fetch(&near, 10_000_000).await;
        let limit = ends.limit(10_000_000);
        assert!(took < limit.mul_f64(most), "{name}: {took:?} of {limit:?}");
        // The last report may be on its way.
        sleep(Duration::from_secs(4) + 2 * ends.profile.rtt()).await;
        fetch(&near, 10_000).await;
        for told in [near.path(Kind::Quic), far.path(Kind::Quic)] {
            let measured = told.measured;
            let rtt = ends.profile.rtt().as_secs_f64() * 1e3;
            assert!(is_near(measured.round_trip_ms.unwrap(), rtt, 0.15), "{name}: {measured:?}");
            assert!(
                is_near(measured.forward_bps.unwrap() as f64, forward.0 as f64, 0.1),
                "{name}: {measured:?}"
            );
            let fills = forward.bytes_in(ends.profile.rtt()).0;
            for window in ["stream window", "carrier window"] {
                assert!(bytes(row(&told, window).value) >= fills, "{name}: {:?}", row(&told, window));
            }
            assert_eq!(row(&told, "call timeout").from, Source::Measured);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_settings_say_stays_and_what_is_measured_is_told_beside_it() {
    let profile =
        Profile::symmetric_delay("truth", BitRate::mbit(8), BitRate::mbit(1), Duration::from_millis(300));
    let said = PathPlan {
        rtt: Duration::from_millis(500),
        forward: Some(BitRate::mbit(4)),
        return_: Some(BitRate::mbit(1)),
        ..PathPlan::UNKNOWN
    };
    let mut ends = ends(profile, said);
    let (near, far) = ends.call().await;
    let before = near.path(Kind::Quic);
    fetch(&near, 4_000_000).await;
    let after = near.path(Kind::Quic);
    assert_eq!(after.set.round_trip_ms, Some(500.0));
    assert!(is_near(after.measured.round_trip_ms.unwrap(), 600.0, 0.05), "{:?}", after.measured);
    assert!(after.measured.forward_bps.unwrap() > 6_000_000, "{:?}", after.measured);
    for parameter in ["stream window", "carrier window", "call timeout", "browser stream window"] {
        assert_eq!(row(&before, parameter), row(&after, parameter));
    }
    assert_eq!(row(&after, "stream window").from, Source::Set);
    // These ends measure, whatever is set.
    let driven = row(&far.path(Kind::Quic), "in flight").clone();
    assert!(driven.from == Source::Measured && driven.because.starts_with("bbr: "), "{driven:?}");
    assert!(bytes(driven.value) >= BitRate::mbit(8).bytes_in(ends.profile.rtt()).0, "{driven:?}");
}

#[tokio::test(start_paused = true)]
async fn a_path_that_turns_out_quicker_than_assumed_has_larger_windows_and_streams_of_the_next_carrier_too() {
    let (rate, distance) = (BitRate::mbit(100), Duration::from_millis(600));
    let profile = Profile::symmetric_delay("quick", rate, BitRate::mbit(20), distance / 2);
    let mut ends = ends(profile, PathPlan::UNKNOWN.with_repair(0));
    let (near, _far) = ends.call().await;
    // On one stream its window is the limit; several at once show what the path can do.
    let several: Vec<_> = (0..3)
        .map(|_| {
            let near = near.clone();
            tokio::spawn(async move { fetch(&near, 12_000_000).await })
        })
        .collect();
    for one in several {
        one.await.unwrap();
    }
    let stream = row(&near.path(Kind::Quic), "stream window").clone();
    assert_eq!(stream.from, Source::Measured);
    let fills = rate.bytes_in(distance).0;
    assert!(bytes(stream.in_use) < fills && bytes(stream.value) > fills, "{stream:?}");
    near.close();
    let (near, _far) = ends.call().await;
    // Decided afresh: what differs is what is too little to change a window under way.
    let in_use = bytes(row(&near.path(Kind::Quic), "stream window").in_use);
    assert!(is_near(in_use as f64, bytes(stream.value) as f64, 0.25), "{in_use} of {stream:?}");
    // The controller has to search again before the window counts, and it looks for less now and then: one transfer that
    // the first window could not have carried shows that there is a larger one.
    let mut took = Duration::MAX;
    for _ in 0..4 {
        took = took.min(fetch(&near, 20_000_000).await);
    }
    let behind_the_first = distance.mul_f64(1.0 + 20e6 / bytes(stream.in_use) as f64);
    assert!(took < behind_the_first.mul_f64(0.95), "{took:?}, {behind_the_first:?} at the first window");
}

#[tokio::test(start_paused = true)]
async fn a_path_that_turns_out_shorter_than_assumed_takes_back_nothing_that_a_resumed_session_counts_on() {
    let profile =
        Profile::symmetric_delay("short", BitRate::mbit(20), BitRate::mbit(5), Duration::from_millis(10));
    let mut ends = ends(profile, PathPlan::UNKNOWN);
    let (near, far) = ends.call().await;
    fetch(&near, 500_000).await;
    sleep(Duration::from_secs(2)).await;
    near.close();
    while far.accept().await.is_some() {}
    let keys = [ends.ground.1];
    let early = ends.dialer.early(ends.ground.0, &keys).unwrap();
    let (taken, far) = tokio::join!(early.answered(), ends.listener.accept());
    assert!(taken.unwrap() && far.unwrap().is_ok(), "what is said early is heard");
}

#[tokio::test(start_paused = true)]
async fn whoever_opens_more_streams_at_once_than_there_was_room_for_gets_more_within_a_few_round_trips() {
    let profile =
        Profile::symmetric_delay("many", BitRate::mbit(20), BitRate::mbit(5), Duration::from_millis(300));
    let mut ends = ends(profile, PathPlan::UNKNOWN);
    let (near, far) = ends.connect().await;
    let began = Instant::now();
    // Nobody answers them.
    let open: Vec<_> = (0..5_000).map(|_| ask(&near, 1)).collect();
    let room = || match row(&far.path(Kind::Quic), "streams").value {
        Value::Streams(room) => room,
        other => panic!("{other:?}"),
    };
    while room() < 7_500 {
        assert!(began.elapsed() < 10 * ends.profile.rtt(), "room for {} after {:?}", room(), began.elapsed());
        sleep(Duration::from_millis(50)).await;
    }
    drop(open);
}
