//! Two ends with HTOTP between them over the in-process link; ground answers as many bytes as it is asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use farhop_congestion::Choice;
use farhop_fec::Counters;
use farhop_htotp::frame::{Coding, Priority};
use farhop_htotp::scheduler::Pace;
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::{Profile, Way};
use farhop_transport::Connection;
use farhop_transport::congestion::Driven;
use farhop_transport::hop::{Arrival, Hop, Incoming, Receiver};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::memory::Memory;
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use farhop_units::Bytes as Size;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::{Instant, sleep};

/// Both ends of a link, between carriers.
pub(crate) struct Ends {
    pub(crate) link: Link,
    profile: Profile,
    dialer: Dialer,
    listener: Listener,
    plan: PathPlan,
    ground: (SocketAddr, PublicKey),
}

/// One carrier between them.
pub(crate) struct Carrier {
    pub(crate) near: Hop,
    pub(crate) far: Hop,
    ground: Connection,
    asked: AtomicU64,
}

/// Ends on a link like `profile` that think of it as `plan` says; ground sends by `choice`, the memory is ground's.
pub(crate) fn ends(
    profile: &Profile,
    plan: PathPlan,
    choice: Choice,
    memory: Option<Arc<Memory>>,
    seed: u64,
) -> Ends {
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, at_ground, at_remote) = link::pair(profile, seed);
    let known = (at_ground.addr(), ground.public());
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let listener = Listener::replayable(at_ground, ground, peers, plan, choice, seed).unwrap();
    if let Some(memory) = memory {
        listener.remember(memory);
    }
    let dialer = Dialer::replayable(at_remote, remote, plan, choice, !seed).unwrap();
    Ends { link, profile: profile.clone(), dialer, listener, plan, ground: known }
}

impl Ends {
    pub(crate) async fn call(&mut self) -> Carrier {
        let keys = [self.ground.1];
        let (near, far) = tokio::join!(self.dialer.connect(self.ground.0, &keys), self.listener.accept());
        let far = far.unwrap().unwrap().connection;
        // As the ends do.
        let config = |end| Config {
            pace: Pace { rate: self.plan.sending_rate(end), ..Pace::default() },
            ..Config::default()
        };
        let near = Hop::start(near.unwrap(), Role::Remote, config(End::Remote), &self.plan);
        let ground = Connection::from(far.clone());
        let far = Hop::start(far, Role::Ground, config(End::Ground), &self.plan);
        tokio::spawn(serve(far.clone()));
        Carrier { near, far, ground, asked: AtomicU64::new(1) }
    }

    /// Bytes that have crossed the forward link so far, headers and all.
    pub(crate) fn crossed(&self) -> u64 {
        self.link.counters(Way::Forward).sent.bytes.0
    }

    /// What distance and rate allow for what has crossed since `before`.
    pub(crate) fn limit(&self, before: u64) -> Duration {
        self.limit_of(self.crossed() - before)
    }

    /// What distance and rate allow for so many bytes on the wire.
    pub(crate) fn limit_of(&self, wire: u64) -> Duration {
        self.profile.rtt() + self.profile.forward.rate.unwrap().time_for(Size(wire))
    }

    /// What ground's repair layer has done for this carrier.
    pub(crate) fn repairs(&self, carrier: &Carrier) -> Counters {
        let Connection::Quic(connection) = &carrier.ground else { panic!("these ends speak QUIC") };
        self.listener.repairs().counters(connection.remote_address()).unwrap_or_default()
    }
}

const TRICKLING: &str = "/trickling/";

/// Answers each exchange with as many bytes as its path says, of which all come at once or one after the other.
async fn serve(far: Hop) {
    while let Some(incoming) = far.accept().await {
        if let Incoming::Exchange { head, mut sender, receiver, .. } = incoming {
            let (asked, trickles) = match head.path.strip_prefix(TRICKLING) {
                Some(asked) => (asked, true),
                None => (head.path.trim_start_matches('/'), false),
            };
            let asked: usize = asked.parse().unwrap();
            tokio::spawn(async move {
                let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
                sender.answer(&head, Coding::Identity, None);
                let piece = Bytes::from(vec![7; if trickles { 1 } else { 16 << 10 }]);
                let mut left = asked;
                while left > 0 {
                    let next = piece.slice(..left.min(piece.len()));
                    left -= next.len();
                    if sender.write(next).await.is_err() {
                        return; // who asked has left
                    }
                    if trickles {
                        tokio::task::yield_now().await;
                    }
                }
                sender.finish(None);
                drop(receiver);
            });
        }
    }
}

/// Bytes of a whole body.
async fn read(mut receiver: Receiver) -> usize {
    let mut got = 0;
    loop {
        match receiver.next().await {
            Arrival::Answered { .. } => {}
            Arrival::Body(piece) => got += piece.len(),
            Arrival::Ended => return got,
            other => panic!("{other:?}"),
        }
    }
}

impl Carrier {
    pub(crate) fn ask(&self, bytes: usize, urgency: u8) -> Receiver {
        self.ask_for(format!("/{bytes}"), urgency)
    }

    fn ask_for(&self, path: String, urgency: u8) -> Receiver {
        let head = RequestHead {
            method: Method::GET,
            scheme: "https".into(),
            authority: "site.test".into(),
            path,
            fields: HeaderMap::new(),
        };
        let priority = Priority { urgency, ..Priority::default() };
        let ask = Ask { exchange: self.asked.fetch_add(1, Ordering::Relaxed), priority, ..Ask::default() };
        let (mut sender, receiver) = self.near.ask(ask, &head);
        sender.finish(None);
        receiver
    }

    /// How long `bytes` take from being asked for.
    pub(crate) async fn fetch(&self, bytes: usize, urgency: u8) -> Duration {
        self.fetch_all(1, bytes, urgency).await
    }

    /// How long `objects` of so many `bytes` take that are asked for at once.
    pub(crate) async fn fetch_all(&self, objects: usize, bytes: usize, urgency: u8) -> Duration {
        let start = Instant::now();
        let receivers: Vec<_> = (0..objects).map(|_| self.ask(bytes, urgency)).collect();
        for receiver in receivers {
            assert_eq!(read(receiver).await, bytes);
        }
        start.elapsed()
    }

    /// Fetches so many bytes that come one by one.
    pub(crate) async fn fetch_trickling(&self, bytes: usize) {
        assert_eq!(read(self.ask_for(format!("{TRICKLING}{bytes}"), 3)).await, bytes);
    }

    pub(crate) fn driven(&self) -> Driven {
        self.ground.driven().expect("quinn's controller is ours")
    }

    pub(crate) async fn end(self) {
        self.near.close();
        self.far.close();
        self.ground.closed().await;
        sleep(Duration::from_secs(60)).await;
    }
}
