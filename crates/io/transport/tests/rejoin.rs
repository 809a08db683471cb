//! Carriers that are lost before ground's first word on them has come: both ends know what they call them all the same, so
//! what was under way goes on on the next one. Both real ends on the in-process link in virtual time.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not know as such")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use farhop_htotp::frame::{Class, Coding, Tunnel, Verdict};
use farhop_htotp::session::{Ask, Config, Role};
use farhop_htotp::{RequestHead, ResponseHead};
use farhop_orbit::Profile;
use farhop_transport::begun::Begun;
use farhop_transport::hop::{Arrival, Closed, Hop, Incoming, Receiver, Sender};
use farhop_transport::identity::{Identity, PublicKey};
use farhop_transport::path::{End, PathPlan};
use farhop_transport::quic::{Dialer, Listener, Peers};
use farhop_transport::socket::link::{self, Link};
use http::{HeaderMap, Method, StatusCode};
use tokio::time::sleep;

const ORDER: &[u8] = b"one piano";
const ANSWER: &[u8] = b"bought";

/// What ground was asked, and what it said to whom came back.
#[derive(Default)]
struct Books {
    orders: Mutex<Vec<Vec<u8>>>,
    verdicts: Mutex<Vec<Verdict>>,
    tunnels: Mutex<Vec<(Sender, Receiver)>>,
    carriers: Mutex<Vec<Hop>>,
}

struct Remote {
    link: Link,
    plan: PathPlan,
    dialer: Dialer,
    ground: (std::net::SocketAddr, PublicKey),
    begun: Begun,
    books: Arc<Books>,
}

fn ends() -> Remote {
    let profile = Profile::named("geo-hylas2").unwrap();
    let plan = PathPlan::for_profile(&profile);
    let (remote, ground) = (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]));
    let (link, at_ground, at_remote) = link::pair(&profile, 1);
    let known = (at_ground.addr(), ground.public());
    let peers = Peers::new([("ship".to_owned(), remote.public())]).unwrap();
    let choice = |end| plan.default_choice(end);
    let listener = Listener::replayable(at_ground, ground, peers, plan, choice(End::Ground), 1).unwrap();
    let dialer = Dialer::replayable(at_remote, remote, plan, choice(End::Remote), 2).unwrap();
    let books = Arc::new(Books::default());
    let begun = listener.begun().clone();
    tokio::spawn(serve(listener, plan, Arc::clone(&books)));
    Remote { link, plan, dialer, ground: known, begun, books }
}

/// Ground: serves carrier after carrier, each order a second after it is whole, and keeps what was under way.
async fn serve(mut listener: Listener, plan: PathPlan, books: Arc<Books>) {
    let begun = listener.begun().clone();
    while let Some(Ok(accepted)) = listener.accept().await {
        let hop = Hop::start_lasting(accepted.connection, Role::Ground, Config::default(), &plan);
        books.carriers.lock().unwrap().push(hop.clone());
        let (books, begun) = (Arc::clone(&books), begun.clone());
        tokio::spawn(async move {
            while let Some(incoming) = hop.accept().await {
                match incoming {
                    Incoming::Exchange { sender, receiver, .. } => {
                        tokio::spawn(sell(sender, receiver, Arc::clone(&books)));
                    }
                    Incoming::Tunnel { sender, receiver, .. } => {
                        books.tunnels.lock().unwrap().push((sender, receiver));
                    }
                    Incoming::Rejoin { carrier, claim } => {
                        let bears = |hop: &&Hop| hop.name().is_some_and(|name| name.number() == carrier);
                        let former = books.carriers.lock().unwrap().iter().find(bears).cloned();
                        let verdict = match former {
                            Some(former) => claim.grant(&former),
                            None => {
                                assert!(begun.never_came(carrier), "ground knows the carrier's name");
                                claim.never_came();
                                Verdict::NeverCame
                            }
                        };
                        books.verdicts.lock().unwrap().push(verdict);
                    }
                    _ => {}
                }
            }
        });
    }
}

async fn sell(mut sender: Sender, mut receiver: Receiver, books: Arc<Books>) {
    let mut order = Vec::new();
    while let Arrival::Body(bytes) = receiver.next().await {
        order.extend_from_slice(&bytes);
    }
    books.orders.lock().unwrap().push(order);
    sleep(Duration::from_secs(1)).await;
    let head = ResponseHead { status: StatusCode::OK, fields: HeaderMap::new() };
    sender.answer(&head, Coding::Identity, None);
    sender.write(Bytes::from_static(ANSWER)).await.unwrap();
    sender.finish(None);
}

impl Remote {
    async fn call(&self) -> Hop {
        let connection = self.dialer.connect(self.ground.0, &[self.ground.1]).await.unwrap();
        Hop::start_lasting(connection, Role::Remote, Config::default(), &self.plan)
    }

    /// Goes on on another carrier, and takes the answer to its end.
    async fn finish(&self, former: Hop, mut receiver: Receiver) -> Vec<u8> {
        former.replace();
        let next = self.call().await;
        assert_eq!(next.adopt(&former), 1);
        let mut answer = Vec::new();
        loop {
            match receiver.next().await {
                Arrival::Answered { head, .. } => assert_eq!(head.status, StatusCode::OK),
                Arrival::Body(bytes) => answer.extend_from_slice(&bytes),
                Arrival::Ended => return answer,
                other => panic!("{other:?}"),
            }
        }
    }
}

fn head() -> RequestHead {
    let (scheme, authority, path) = ("https".into(), "site.test".into(), "/order".into());
    RequestHead { method: Method::POST, scheme, authority, path, fields: HeaderMap::new() }
}

async fn order(hop: &Hop) -> Receiver {
    let (mut sender, receiver) = hop.ask(Ask { exchange: 7, ..Ask::default() }, &head());
    sender.write(Bytes::from_static(ORDER)).await.unwrap();
    sender.finish(None);
    receiver
}

#[tokio::test(start_paused = true)]
async fn a_post_whose_carrier_dies_within_its_first_round_trip_is_carried_out_once_and_answered() {
    let remote = ends();
    let hop = remote.call().await;
    let receiver = order(&hop).await;
    // It is there after half a round trip, and nothing of ground's session is here before a whole one.
    sleep(remote.plan.rtt.mul_f64(0.7)).await;
    assert_eq!(*remote.books.orders.lock().unwrap(), [ORDER], "it is there");
    assert_eq!(remote.finish(hop, receiver).await, ANSWER);
    assert_eq!(*remote.books.orders.lock().unwrap(), [ORDER], "and once");
    // Nothing of the request need be said again.
    let [Verdict::GoesOn(_)] = remote.books.verdicts.lock().unwrap()[..] else { panic!("another verdict") };
}

#[tokio::test(start_paused = true)]
async fn a_post_that_was_lost_with_its_carriers_first_words_is_sent_on_the_next_carrier() {
    let remote = ends();
    let hop = remote.call().await;
    // Ground has the remote's part of the handshake, and the remote nothing of ground's session.
    sleep(remote.plan.rtt.mul_f64(0.7)).await;
    remote.link.cut();
    let receiver = order(&hop).await;
    sleep(Duration::from_secs(2)).await;
    hop.replace();
    sleep(Duration::from_secs(1)).await;
    remote.link.restore();
    assert!(remote.books.orders.lock().unwrap().is_empty(), "it is not there");
    assert_eq!(remote.finish(hop, receiver).await, ANSWER);
    assert_eq!(*remote.books.orders.lock().unwrap(), [ORDER], "once");
    assert_eq!(*remote.books.verdicts.lock().unwrap(), [Verdict::NeverCame]);
}

#[tokio::test(start_paused = true)]
async fn a_post_that_was_lost_with_the_last_part_of_its_carriers_handshake_is_sent_on_the_next_carrier() {
    let remote = ends();
    let hop = remote.call().await;
    // The handshake is over here; what would end it at ground is lost.
    remote.link.cut();
    let receiver = order(&hop).await;
    sleep(Duration::from_secs(2)).await;
    hop.replace();
    sleep(Duration::from_secs(1)).await;
    remote.link.restore();
    assert_eq!(remote.finish(hop, receiver).await, ANSWER);
    assert_eq!(*remote.books.orders.lock().unwrap(), [ORDER], "once");
    assert_eq!(*remote.books.verdicts.lock().unwrap(), [Verdict::NeverCame]);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_of_which_ground_has_said_that_nothing_came_is_not_over_when_its_last_part_is_late() {
    let remote = ends();
    let hop = remote.call().await;
    remote.link.cut();
    let _receiver = order(&hop).await;
    sleep(Duration::from_secs(2)).await;
    assert!(remote.begun.never_came(hop.name().unwrap().number()));
    // The remote has not given it up, and says it all again.
    remote.link.restore();
    assert!(hop.accept().await.is_none());
    assert!(matches!(hop.closed(), Some(Closed::Lost(_))), "{:?}", hop.closed());
    assert!(remote.books.orders.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_same_holds_on_a_carrier_on_which_the_remote_spoke_before_ground_had_answered() {
    let remote = ends();
    let first = remote.call().await;
    // Ground's ticket comes after its handshake.
    sleep(2 * remote.plan.rtt).await;
    first.close();
    let early = remote.dialer.early(remote.ground.0, &[remote.ground.1]).expect("there is a ticket");
    let hop = Hop::start_lasting(early.connection().clone(), Role::Remote, Config::default(), &remote.plan);
    assert!(early.answered().await.unwrap(), "ground has resumed the session");
    remote.link.cut();
    let receiver = order(&hop).await;
    sleep(Duration::from_secs(2)).await;
    hop.replace();
    sleep(Duration::from_secs(1)).await;
    remote.link.restore();
    assert_eq!(remote.finish(hop, receiver).await, ANSWER);
    assert_eq!(*remote.books.orders.lock().unwrap(), [ORDER], "once");
    assert_eq!(*remote.books.verdicts.lock().unwrap(), [Verdict::NeverCame]);
}

#[tokio::test(start_paused = true)]
async fn what_begins_on_a_carrier_that_all_has_left_is_lost_and_does_not_wait_for_ever() {
    let remote = ends();
    let former = remote.call().await;
    former.replace();
    remote.call().await.adopt(&former);
    let never_used = remote.call().await;
    never_used.replace();
    never_used.give_up();
    for hop in [former, never_used] {
        let (_sender, mut receiver) = hop.ask(Ask { exchange: 7, ..Ask::default() }, &head());
        assert!(matches!(receiver.next().await, Arrival::Lost));
    }
}

#[tokio::test(start_paused = true)]
async fn the_class_that_a_tunnel_shows_while_it_has_no_carrier_is_said_on_the_next() {
    let remote = ends();
    let hop = remote.call().await;
    // Ground has said that it takes marks.
    sleep(2 * remote.plan.rtt).await;
    let (mut sender, _receiver) = hop.open_tunnel(Tunnel::to(9, 1, Class::Web, "site.test", 22));
    sender.write(Bytes::from_static(b"SSH-2.0-x")).await.unwrap();
    sleep(remote.plan.rtt).await;
    let there = || remote.books.tunnels.lock().unwrap()[0].0.class();
    sender.tell_class(Class::Bulk);
    sleep(remote.plan.rtt).await;
    assert_eq!(there(), Some(Class::Bulk));
    hop.replace();
    sender.tell_class(Class::Interactive);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(there(), Some(Class::Bulk), "it has not heard of it");
    let next = remote.call().await;
    assert_eq!(next.adopt(&hop), 1);
    sleep(3 * remote.plan.rtt).await;
    assert_eq!((sender.class(), there()), (Some(Class::Interactive), Some(Class::Interactive)));
}

#[tokio::test(start_paused = true)]
async fn where_not_all_that_a_carrier_has_left_can_be_kept_what_is_longest_is_lost_and_nothing_else() {
    let remote = ends();
    let hop = remote.call().await;
    let tunnel = |number| hop.open_tunnel(Tunnel::to(number, 1, Class::Web, "site.test", 443));
    let (_to_endless, mut endless) = tunnel(1);
    let (_to_modest, mut modest) = tunnel(2);
    sleep(2 * remote.plan.rtt).await;
    remote.link.cut();
    let (first, second) = {
        let mut tunnels = remote.books.tunnels.lock().unwrap();
        (tunnels.remove(0), tunnels.remove(0))
    };
    for ((mut sender, receiver), bytes) in [(first, vec![1; 300_000]), (second, b"hello".to_vec())] {
        tokio::spawn(async move {
            sender.accept_tunnel();
            let _ = sender.write(bytes.into()).await;
            sender.gone().await;
            drop(receiver);
        });
    }
    sleep(Duration::from_secs(1)).await;
    let there = remote.books.carriers.lock().unwrap()[0].clone();
    there.replace();
    there.bound(10_000);
    assert!(there.kept().unwrap() <= 10_000);
    hop.replace();
    remote.link.restore();
    let next = remote.call().await;
    assert_eq!(next.adopt(&hop), 2);
    assert_eq!(modest.next().await, Arrival::TunnelOpened);
    assert_eq!(modest.next().await, Arrival::Body(Bytes::from_static(b"hello")));
    assert_eq!(endless.next().await, Arrival::Lost);
}
