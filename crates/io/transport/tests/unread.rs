//! Clients that ask for much and read nothing of it: what waits for them is bounded, and neither other users nor other
//! streams of the same one stand still. Both real ends on the in-process link in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::Coding;
use farhop_htotp::session::{Ask, Config, ROOM, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Profile;
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use http::{HeaderMap, Method, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

const PIECE: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(600);
/// Streams of one user that nobody reads.
const UNREAD: u64 = 100;
/// What the remote reads ahead of its readers, of all streams, and has said that it has taken.
const READ_AHEAD: u64 = 16 << 20;

struct World {
    near: Hop,
    far: Hop,
    dialer: Dialer,
    ground: (std::net::SocketAddr, PublicKey),
    plan: PathPlan,
    /// What ground could write of all bodies.
    written: Arc<AtomicU64>,
    asked: u64,
    _link: Link,
}

async fn world() -> World {
    let profile = Profile::named("geo-hylas2").unwrap();
    let plan = PathPlan::for_profile(&profile);
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    let (address, key) = (at_ground.addr(), ground.public());
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let choice = |end| plan.default_choice(end);
    let mut listener = Listener::replayable(at_ground, ground, peers, plan, choice(End::Ground), 1).unwrap();
    let dialer = Dialer::replayable(at_remote, remote, plan, choice(End::Remote), 2).unwrap();
    let written = Arc::new(AtomicU64::new(0));
    let carriers = Arc::new(Mutex::new(Vec::new()));
    let (began, mut begun) = mpsc::unbounded_channel();
    let bytes = Arc::clone(&written);
    tokio::spawn(async move {
        while let Some(Ok(accepted)) = listener.accept().await {
            let far = Hop::start_lasting(accepted.connection, Role::Ground, Config::default(), &plan);
            carriers.lock().unwrap().push(far.clone());
            tokio::spawn(serve(far.clone(), Arc::clone(&carriers), Arc::clone(&bytes)));
            began.send(far).unwrap();
        }
    });
    let ground = (address, key);
    let near = dialer.connect(address, &[key]).await.unwrap();
    let near = Hop::start_lasting(near, Role::Remote, Config::default(), &plan);
    let far = begun.recv().await.unwrap();
    World { near, far, dialer, ground, plan, written, asked: 0, _link: link }
}

/// Answers with bodies as long as their paths say.
async fn serve(hop: Hop, carriers: Arc<Mutex<Vec<Hop>>>, written: Arc<AtomicU64>) {
    while let Some(incoming) = hop.accept().await {
        match incoming {
            Incoming::Exchange { head, sender, .. } => {
                tokio::spawn(answer(head.path[1..].parse().unwrap(), sender, Arc::clone(&written)));
            }
            Incoming::Rejoin { carrier, claim } => {
                let bears = |hop: &&Hop| hop.name().is_some_and(|name| name.number() == carrier);
                let former = carriers.lock().unwrap().iter().find(bears).cloned();
                claim.grant(&former.unwrap());
            }
            _ => {}
        }
    }
}

async fn answer(length: usize, mut sender: Sender, written: Arc<AtomicU64>) {
    let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
    sender.answer(&head, Coding::Identity, None);
    for start in (0..length).step_by(PIECE) {
        let piece = Bytes::from(vec![b'.'; PIECE.min(length - start)]);
        written.fetch_add(piece.len() as u64, Relaxed);
        if sender.write(piece).await.is_err() {
            return;
        }
    }
    sender.finish(None);
}

impl World {
    fn ask(&mut self, user: u64, length: usize) -> (Sender, Receiver) {
        self.asked += 1;
        let head = RequestHead {
            method: Method::GET,
            scheme: "https".into(),
            authority: "site.test".into(),
            path: format!("/{length}"),
            fields: HeaderMap::new(),
        };
        let (mut sender, receiver) =
            self.near.ask(Ask { exchange: self.asked, user, ..Ask::default() }, &head);
        sender.finish(None);
        (sender, receiver)
    }

    /// Asks for more than anybody may have unread, and reads nothing.
    fn neglect(&mut self, user: u64) -> (Sender, Receiver) {
        self.ask(user, 1 << 30)
    }

    /// How long a body takes that is read.
    async fn load(&mut self, user: u64, length: usize) -> Duration {
        let start = Instant::now();
        let (_sender, receiver) = self.ask(user, length);
        assert_eq!(timeout(PATIENCE, read(receiver)).await.expect("it goes on"), length);
        start.elapsed()
    }

    /// The carrier is lost, and what was under way goes on on another.
    async fn lose(&mut self) {
        let former = self.near.clone();
        former.replace();
        let next = self.dialer.connect(self.ground.0, &[self.ground.1]).await.unwrap();
        self.near = Hop::start_lasting(next, Role::Remote, Config::default(), &self.plan);
        self.near.adopt(&former);
    }

    /// Waits until nothing more is written.
    async fn settle(&self) {
        let mut before = u64::MAX;
        while before != self.written.load(Relaxed) {
            before = self.written.load(Relaxed);
            sleep(20 * self.plan.rtt).await;
        }
    }
}

async fn read(mut receiver: Receiver) -> usize {
    let mut length = 0;
    loop {
        match receiver.next().await {
            Arrival::Answered { .. } => {}
            Arrival::Body(bytes) => length += bytes.len(),
            Arrival::Ended => return length,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_reads_nothing_leaves_room_and_stops_nobody() {
    let mut world = world().await;
    let alone = world.load(2, 2_000_000).await;
    let neglected: Vec<_> = (0..UNREAD).map(|_| world.neglect(1)).collect();
    world.settle().await;
    let room = world.far.sizes().borrow().unread.0;
    let held = world.written.load(Relaxed) - 2_000_000;
    let unread = world.far.unread().0;
    // Half is a user's, and a quarter for the little that any stream may have.
    let most = room * 3 / 4 + UNREAD * PIECE as u64;
    assert!(unread <= most, "{unread} bytes have gone out and are not taken");
    // Besides, each may have queued at ground what it may queue in any case.
    let queued = UNREAD * (ROOM + PIECE) as u64;
    assert!(held <= most + READ_AHEAD + queued, "{held} bytes wait");
    let another = world.load(2, 2_000_000).await;
    assert!(another < alone * 11 / 10, "another user's takes {another:?}, alone {alone:?}");
    // Each stream has little room left, and a page has many.
    let start = Instant::now();
    let own: Vec<_> = (0..8).map(|_| world.ask(1, 250_000)).collect();
    for (_sender, receiver) in own {
        assert_eq!(timeout(PATIENCE, read(receiver)).await.expect("it goes on"), 250_000);
    }
    let own = start.elapsed();
    assert!(own < alone * 5, "a page of the same user's takes {own:?}, a body {alone:?} alone");
    drop(neglected);
    world.settle().await;
    assert_eq!((world.far.unread().0, world.near.unread().0), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_read_again_goes_on_and_ends() {
    const STREAMS: usize = 20;
    const LENGTH: usize = 3 << 20;
    let mut world = world().await;
    let neglected: Vec<_> = (0..STREAMS).map(|_| world.ask(1, LENGTH)).collect();
    world.settle().await;
    let reading: Vec<_> = neglected
        .into_iter()
        .map(|(_sender, receiver)| tokio::spawn(timeout(PATIENCE, read(receiver))))
        .collect();
    for reading in reading {
        assert_eq!(reading.await.unwrap().expect("it goes on"), LENGTH);
    }
    assert_eq!(world.written.load(Relaxed), (STREAMS * LENGTH) as u64);
    world.settle().await;
    assert_eq!(world.far.unread().0, 0);
}

#[tokio::test(start_paused = true)]
async fn who_reads_nothing_does_not_keep_other_streams_from_the_next_carrier() {
    let mut world = world().await;
    let neglected: Vec<_> = (0..10).map(|_| world.neglect(1)).collect();
    world.settle().await;
    let room = world.far.sizes().borrow().unread.0;
    let unread = world.far.unread().0;
    assert!(unread > room / 4, "{unread} bytes wait for them");
    let (_sender, receiver) = world.ask(2, 4_000_000);
    let reading = tokio::spawn(timeout(PATIENCE, read(receiver)));
    sleep(3 * world.plan.rtt).await;
    assert!(!reading.is_finished(), "it is under way");
    world.lose().await;
    assert_eq!(reading.await.unwrap().expect("it goes on"), 4_000_000);
    for (_sender, mut receiver) in neglected {
        assert!(matches!(receiver.next().await, Arrival::Answered { .. }));
        let mut read = 0;
        while read < 3 << 20 {
            let Arrival::Body(bytes) = receiver.next().await else { panic!("it goes on, too") };
            read += bytes.len();
        }
    }
}
