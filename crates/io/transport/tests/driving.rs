//! What each controller makes of a real carrier: QUIC, HTOTP, its scheduler and what is remembered of the path, on the
//! in-process link in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use farhop_congestion::{Choice, Phase};
use farhop_htotp::frame::{Coding, Priority};
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::{Profile, Way};
use farhop_transport::Connection;
use farhop_transport::congestion::Driven;
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::memory::Memory;
use farhop_transport::path::PathPlan;
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use farhop_units::Bytes as Size;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::{Instant, sleep};

const BULK: usize = 2_000_000;

/// Both ends of a link, between carriers.
struct Ends {
    link: Link,
    dialer: Dialer,
    listener: Listener,
    plan: PathPlan,
    ground: (SocketAddr, PublicKey),
}

/// One carrier between them.
struct Carrier {
    near: Hop,
    far: Hop,
    ground: Connection,
}

fn hylas() -> Profile {
    Profile::named("geo-hylas2").unwrap()
}

/// The plan of someone who knows how far it is, and how fast only where `choice` has to.
fn plan(choice: Choice) -> PathPlan {
    let plan = PathPlan::for_profile(&hylas()).with_repair(0);
    if choice.searches() { PathPlan { forward: None, return_: None, ..plan } } else { plan }
}

/// Ground sends as `choice` says; the memory is ground's.
fn ends(choice: Choice, memory: Option<Arc<Memory>>) -> Ends {
    let plan = plan(choice);
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, at_ground, at_remote) = link::pair(&hylas(), 1);
    let known = (at_ground.addr(), ground.public());
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let listener = Listener::new(at_ground, ground, peers, plan, choice).unwrap();
    if let Some(memory) = memory {
        listener.remember(memory);
    }
    let dialer = Dialer::new(at_remote, remote, plan, choice).unwrap();
    Ends { link, dialer, listener, plan, ground: known }
}

impl Ends {
    async fn call(&mut self) -> Carrier {
        let keys = [self.ground.1];
        let (near, far) = tokio::join!(self.dialer.connect(self.ground.0, &keys), self.listener.accept());
        let far = far.unwrap().unwrap().connection;
        let near = Hop::start(near.unwrap(), Role::Remote, Config::default(), &self.plan);
        let ground = Connection::from(far.clone());
        let far = Hop::start(far, Role::Ground, Config::default(), &self.plan);
        tokio::spawn(serve(far.clone()));
        Carrier { near, far, ground }
    }
}

/// Answers each exchange with as many bytes as its number says.
async fn serve(far: Hop) {
    while let Some(incoming) = far.accept().await {
        if let Incoming::Exchange { exchange, mut sender, receiver, .. } = incoming {
            tokio::spawn(async move {
                let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
                sender.answer(&head, Coding::Identity, None);
                let piece = Bytes::from(vec![7; 16 << 10]);
                let mut left = exchange as usize;
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
}

impl Carrier {
    fn ask(&self, bytes: usize, urgency: u8) -> Receiver {
        let head = RequestHead {
            method: Method::GET,
            scheme: "https".into(),
            authority: "site.test".into(),
            path: "/".into(),
            fields: HeaderMap::new(),
        };
        let priority = Priority { urgency, ..Priority::default() };
        let ask = Ask { exchange: bytes as u64, priority, ..Ask::default() };
        let (mut sender, receiver) = self.near.ask(ask, &head);
        sender.finish(None);
        receiver
    }

    /// How long `bytes` take from being asked for.
    async fn fetch(&self, bytes: usize, urgency: u8) -> Duration {
        let start = Instant::now();
        let mut receiver = self.ask(bytes, urgency);
        let mut got = 0;
        loop {
            match receiver.next().await {
                Arrival::Answered { .. } => {}
                Arrival::Body(piece) => got += piece.len(),
                Arrival::Ended => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(got, bytes);
        start.elapsed()
    }

    fn driven(&self) -> Driven {
        self.ground.driven().expect("quinn's controller is ours")
    }

    async fn end(self) {
        self.near.close();
        self.far.close();
        self.ground.closed().await;
        sleep(Duration::from_secs(60)).await;
    }
}

/// Bytes that have crossed the forward link so far, headers and all.
fn crossed(link: &Link) -> u64 {
    link.counters(Way::Forward).sent.bytes.0
}

/// What distance and rate allow for what has crossed since `before`.
fn limit(link: &Link, before: u64) -> Duration {
    let profile = hylas();
    profile.rtt() + profile.forward.rate.unwrap().time_for(Size(crossed(link) - before))
}

#[tokio::test(start_paused = true)]
async fn a_known_rate_is_kept_to_and_no_queue_forms() {
    let mut ends = ends(Choice::Rate, None);
    let carrier = ends.call().await;
    for _ in 0..2 {
        let before = crossed(&ends.link);
        let took = carrier.fetch(BULK, 3).await;
        let limit = limit(&ends.link, before);
        assert!(took < limit.mul_f64(1.05), "{took:?} of {limit:?}");
    }
    let counters = ends.link.counters(Way::Forward);
    assert_eq!(counters.queue_drops.packets, 0);
    // What is written 50 ms ahead arrives in bursts of the carrier's own pacer, and that is all.
    assert!(counters.queue_peak.0 < 80_000, "{:?}", counters.queue_peak);
    assert_eq!(carrier.driven().pacing, hylas().forward.rate);
}

#[tokio::test(start_paused = true)]
async fn what_is_urgent_waits_for_no_bulk_whichever_sensible_controller_drives() {
    // BBR asks now and then whether there is more, with a queue of a quarter of what is under way.
    let probe = hylas().rtt() / 4;
    for (choice, queue) in [(Choice::Rate, Duration::ZERO), (Choice::Bbr, probe)] {
        let mut ends = ends(choice, None);
        let carrier = ends.call().await;
        let bulk = carrier.ask(20 * BULK, 5);
        let reading = tokio::spawn(async move {
            let mut bulk = bulk;
            while !matches!(bulk.next().await, Arrival::Ended) {}
        });
        sleep(Duration::from_secs(25)).await;
        let took = carrier.fetch(5_000, 0).await;
        let most = hylas().rtt() + queue + Duration::from_millis(150);
        assert!(took <= most, "{choice}: {took:?} of {most:?}");
        reading.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_that_was_measured_is_full_sooner_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    for choice in Choice::ALL.into_iter().filter(|choice| choice.searches()) {
        let memory = Memory::open(folder.path().join(choice.name())).unwrap();
        let mut ends = ends(choice, Some(Arc::clone(&memory)));
        let carrier = ends.call().await;
        let unknown = carrier.fetch(BULK, 3).await;
        carrier.fetch(10 * BULK, 3).await;
        carrier.end().await;
        let carrier = ends.call().await;
        let known = carrier.fetch(BULK, 3).await;
        assert_eq!(carrier.driven().phase, Phase::Normal, "{choice}");
        assert!(known + Duration::from_millis(1500) < unknown, "{choice}: {unknown:?}, then {known:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bulk_on_a_warm_carrier_takes_what_the_link_needs_and_on_a_fresh_one_about_a_tenth_more() {
    // The second has nothing but what it measured before, and starts with half of that.
    for (choice, most) in [(Choice::Rate, 1.10), (Choice::Bbr, 1.12)] {
        warm_and_fresh(choice, most).await;
    }
}

async fn warm_and_fresh(choice: Choice, most: f64) {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::open(folder.path().join("paths")).unwrap();
    let mut ends = ends(choice, Some(memory));
    let carrier = ends.call().await;
    carrier.fetch(10 * BULK, 3).await;
    let before = crossed(&ends.link);
    let warm = carrier.fetch(BULK, 3).await;
    let warm_limit = limit(&ends.link, before);
    assert!(warm < warm_limit.mul_f64(1.05), "{choice}: {warm:?} of {warm_limit:?}");
    carrier.end().await;
    let (start, before) = (Instant::now(), crossed(&ends.link));
    let carrier = ends.call().await;
    carrier.fetch(BULK, 3).await;
    // The client's first packet is a full one.
    let hello = hylas().return_.rate.unwrap().time_for(Size(1228));
    let (fresh, limit) = (start.elapsed(), hello + hylas().rtt() + limit(&ends.link, before));
    assert!(fresh < limit.mul_f64(most), "{choice}: {fresh:?} of {limit:?}");
}
